//! What stands between a gateway and its PostgreSQL: it can fall silent as a host does that is gone without a word, take no
//! connection, freeze a process at a statement, and drop the options of a connection as a pooler does.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::loopback::own_address;

/// A proxy. Its threads end with the test process.
pub struct PostgresProxy {
    address: SocketAddr,
    url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Odd while it is silent. A connection of another time stays silent for ever.
    era: AtomicU64,
    /// Connections that nobody accepts. While there are some, none is accepted.
    backlog: Mutex<Vec<TcpStream>>,
    /// Whether the options of connections are dropped.
    is_pooler: bool,
    /// The statement at which a process is frozen, and its id.
    trap: Mutex<Option<(String, u32)>>,
}

impl PostgresProxy {
    /// Passes on what comes and goes.
    pub fn before(url: &str) -> PostgresProxy {
        Self::start(url, State::default())
    }

    /// Passes on what comes and goes, except the options of connections.
    pub fn pooling(url: &str) -> PostgresProxy {
        let is_pooler = true;
        Self::start(
            &format!("{url}?sslmode=disable"),
            State {
                is_pooler,
                ..State::default()
            },
        )
    }

    fn start(url: &str, state: State) -> PostgresProxy {
        let (scheme, rest) = url.split_once('@').unwrap();
        let (server, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind((own_address(), 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = PostgresProxy {
            address,
            url: format!("{scheme}@{address}/{database}"),
            state: Arc::new(state),
        };
        let (server, state) = (server.to_owned(), Arc::clone(&proxy.state));
        std::thread::spawn(move || {
            let mut lost = Vec::new();
            for client in listener.incoming().map_while(Result::ok) {
                while !state.backlog.lock().unwrap().is_empty() {
                    std::thread::sleep(Duration::from_millis(10));
                }
                let era = state.era.load(Ordering::SeqCst);
                match TcpStream::connect(&server) {
                    Ok(server) if era.is_multiple_of(2) => {
                        if state.is_pooler {
                            pass_start(&client, &server);
                        }
                        join(&client, &server, (&state, era));
                    }
                    _ => lost.push(client),
                }
            }
        });
        proxy
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on nothing is read or answered, and no connection is closed.
    pub fn fall_silent(&self) {
        self.state.era.fetch_add(1, Ordering::SeqCst);
    }

    /// Falls silent, and fills the queue of its listener: a new connection is not even opened.
    pub fn fill_backlog(&self) {
        self.fall_silent();
        let mut backlog = self.state.backlog.lock().unwrap();
        let patience = Duration::from_millis(200);
        while let Ok(queued) = TcpStream::connect_timeout(&self.address, patience) {
            backlog.push(queued);
        }
    }

    /// New connections are served again; those of before are not.
    pub fn speak(&self) {
        self.state.backlog.lock().unwrap().clear();
        self.state.era.fetch_add(1, Ordering::SeqCst);
    }

    /// Freezes a process (SIGSTOP) once it sends a statement with these words for the first time. The server gets it.
    pub fn freeze_at(&self, words: &str, process: u32) {
        *self.state.trap.lock().unwrap() = Some((words.to_owned(), process));
    }

    /// Whether the process has been frozen.
    pub fn has_frozen(&self) -> bool {
        self.state.trap.lock().unwrap().is_none()
    }
}

impl State {
    fn spring(&self, bytes: &[u8]) {
        let mut trap = self.trap.lock().unwrap();
        let text = String::from_utf8_lossy(bytes);
        if trap.as_ref().is_some_and(|(words, _)| text.contains(words)) {
            let (_, process) = trap.take().unwrap();
            let mut kill = Command::new("kill");
            let stopped = kill.args(["-STOP", &process.to_string()]).status();
            assert!(stopped.unwrap().success());
        }
    }
}

/// Passes on the packet that begins a session, without its options.
fn pass_start(mut client: &TcpStream, mut server: &TcpStream) {
    let mut length = [0; 4];
    client.read_exact(&mut length).unwrap();
    let mut packet = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut packet).unwrap();
    let (version, settings) = packet.split_at(4);
    let words: Vec<&[u8]> = settings.split(|byte| *byte == 0).collect();
    let mut passed = version.to_vec();
    for setting in words.chunks(2).filter(|setting| setting[0] != b"options") {
        for word in setting.iter().filter(|_| !setting[0].is_empty()) {
            passed.extend_from_slice(word);
            passed.push(0);
        }
    }
    passed.push(0);
    let length = u32::try_from(passed.len() + 4).unwrap();
    server.write_all(&length.to_be_bytes()).unwrap();
    server.write_all(&passed).unwrap();
}

fn join(client: &TcpStream, server: &TcpStream, (state, era): (&Arc<State>, u64)) {
    for (from, to, is_client) in [(client, server, true), (server, client, false)] {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        to.set_nodelay(true).unwrap();
        let state = Arc::clone(state);
        std::thread::spawn(move || {
            let mut buffer = [0; 64 << 10];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                while state.era.load(Ordering::SeqCst) != era {
                    std::thread::park();
                }
                if is_client {
                    state.spring(&buffer[..count]);
                }
                if to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
            while state.era.load(Ordering::SeqCst) != era {
                std::thread::park();
            }
            _ = to.shutdown(Shutdown::Both);
        });
    }
}
