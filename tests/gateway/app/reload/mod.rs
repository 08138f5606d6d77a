//! Reloads of the configuration while requests run: each kind of setting, and what stays as it was.

mod kinds;
mod process;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::support::ask::Ask;
use crate::support::client::Client;

/// Clients that ask again and again, each on connections that it keeps.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<usize>>,
}

impl Load {
    /// Starts a client for each request.
    fn start(address: SocketAddr, asks: impl IntoIterator<Item = Ask>) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = asks.into_iter().map(|ask| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || keep_asking(address, &ask, &stop))
        });
        Load {
            threads: threads.collect(),
            stop,
        }
    }

    /// Stops the clients. Returns how many answers each has got; any that was not 200 fails the test.
    fn end(self) -> Vec<usize> {
        self.stop.store(true, Ordering::Relaxed);
        let answers = self
            .threads
            .into_iter()
            .map(|thread| thread.join().unwrap());
        answers.collect()
    }
}

/// Reads the rest of a response.
fn rest_of(client: &mut Client) -> String {
    let chunks = std::iter::from_fn(|| client.chunk());
    let bytes: Vec<u8> = chunks.flat_map(|chunk| chunk.bytes).collect();
    String::from_utf8(bytes).unwrap()
}

fn keep_asking(address: SocketAddr, ask: &Ask, stop: &AtomicBool) -> usize {
    let mut answers = 0;
    let mut client = Client::connect(address);
    while !stop.load(Ordering::Relaxed) {
        client.send(ask);
        let answer = client.answer();
        assert_eq!(
            answer.status(),
            200,
            "{}: {}",
            ask.target().1,
            answer.text()
        );
        answers += 1;
        let closes = answer.header("connection") == Some("close");
        if closes || answers % 50 == 0 {
            client = Client::connect(address);
        }
    }
    answers
}
