//! What stands between a gateway and its Redis, and can make it slow or mad.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::loopback::own_address;
use super::redis::Redis;

/// In place of a delay: what comes back is no answer of Redis.
const GARBAGE: u64 = u64::MAX;

/// A proxy. Its threads end with the test process.
pub struct RedisProxy {
    address: SocketAddr,
    /// The milliseconds by which answers are late, or [`GARBAGE`].
    delay_ms: Arc<AtomicU64>,
}

impl RedisProxy {
    /// Passes on what comes and goes.
    pub fn before(redis: &Redis) -> RedisProxy {
        let listener = TcpListener::bind((own_address(), 0)).unwrap();
        let proxy = RedisProxy {
            address: listener.local_addr().unwrap(),
            delay_ms: Arc::default(),
        };
        let url = redis.url();
        let address = url.trim_start_matches("redis://").trim_end_matches("/0");
        let (server, delay_ms) = (address.to_owned(), Arc::clone(&proxy.delay_ms));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // Without a server the client is hung up on.
                if let Ok(server) = TcpStream::connect(&server) {
                    join(&client, &server, &delay_ms);
                }
            }
        });
        proxy
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// Passes on answers at once.
    pub fn pass(&self) {
        self.delay(0);
    }

    /// Makes each answer this late.
    pub fn delay(&self, delay_ms: u64) {
        self.delay_ms.store(delay_ms, Ordering::SeqCst);
    }

    /// Answers with garbage.
    pub fn garble(&self) {
        self.delay(GARBAGE);
    }
}

fn join(client: &TcpStream, server: &TcpStream, delay_ms: &Arc<AtomicU64>) {
    for socket in [client, server] {
        socket.set_nodelay(true).unwrap();
    }
    let both = || [client.try_clone().unwrap(), server.try_clone().unwrap()];
    let [mut to_server, mut from_client] = {
        let [client, server] = both();
        [server, client]
    };
    std::thread::spawn(move || {
        _ = std::io::copy(&mut from_client, &mut to_server);
        _ = to_server.shutdown(Shutdown::Both);
    });
    let ([mut to_client, mut from_server], delay_ms) = (both(), Arc::clone(delay_ms));
    let (send, receive) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        for (due, bytes) in receive {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to_client.write_all(&bytes).is_err() {
                break;
            }
        }
        _ = to_client.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(count @ 1..) = from_server.read(&mut buffer) {
            let answer = match delay_ms.load(Ordering::SeqCst) {
                GARBAGE => (
                    Instant::now(),
                    b"$-7\r\n*99999\r\n\0garbage\r\n:x\r\n".to_vec(),
                ),
                delay_ms => {
                    let due = Instant::now() + Duration::from_millis(delay_ms);
                    (due, buffer[..count].to_vec())
                }
            };
            if send.send(answer).is_err() {
                break;
            }
        }
    });
}
