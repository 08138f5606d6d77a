//! One connection of a scripted upstream: it reads requests, plays replies and notices when the peer closes.

use std::future::pending;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Plan, Received, Script, Shared, Stop};
use crate::support::script::{Reply, Step};

/// Accepts connections until it is stopped, then ends every connection.
pub(super) async fn accept(
    listener: TcpListener,
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<Stop>,
) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a tokio listener");
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted.expect("accepting on loopback").0,
            _ = stopped.changed() => break,
        };
        let connection = Connection::new(stream, shared.clone());
        connections.spawn(connection.run(plan.clone(), stopped.clone()));
    }
    drop(listener);
    connections.join_all().await;
}

/// Whether the connection stays open after a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Open,
    Over,
}

struct Connection {
    stream: TcpStream,
    number: usize,
    shared: Arc<Shared>,
    /// Bytes read and not yet part of a request.
    buffer: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream, shared: Arc<Shared>) -> Connection {
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let number = shared.connected();
        Connection {
            stream,
            number,
            shared,
            buffer: Vec::new(),
        }
    }

    async fn run(mut self, plan: Arc<Plan>, mut stopped: watch::Receiver<Stop>) {
        let how = tokio::select! {
            () = self.serve(&plan) => return,
            how = stopped.wait_for(|stop| *stop != Stop::No) => how.map_or(Stop::Close, |how| *how),
        };
        if how == Stop::Reset {
            let _ = self.stream.set_zero_linger();
        }
    }

    async fn serve(&mut self, plan: &Plan) {
        match plan {
            Plan::Greet(reply) => {
                self.play(reply, true).await;
            }
            Plan::Early(reply) => {
                if let Some(head) = self.read_head().await {
                    self.shared.received(head);
                    self.play(reply, false).await;
                }
            }
            Plan::Answer(script) => while self.answer(script).await == After::Open {},
        }
    }

    async fn answer(&mut self, script: &Script) -> After {
        let Some(mut request) = self.read_head().await else {
            return After::Over;
        };
        request.is_complete = self.read_body(&mut request).await.is_some();
        let is_complete = request.is_complete;
        let number = self.shared.received(request.clone());
        if !is_complete {
            return After::Over;
        }
        let after = self.play(&script(number, &request), true).await;
        let close = request
            .header("connection")
            .is_some_and(|v| v.eq_ignore_ascii_case("close"));
        if close { After::Over } else { after }
    }

    /// Plays the steps. It reads at the same time, so that it notices at once when the peer closes.
    async fn play(&mut self, reply: &Reply, watches: bool) -> After {
        for step in reply.steps() {
            let (mut reader, mut writer) = self.stream.split();
            let gone = async {
                if watches {
                    until_closed(&mut reader, &mut self.buffer).await
                } else {
                    pending().await
                }
            };
            let after = tokio::select! {
                biased;
                after = take(step, &mut writer) => after,
                () = gone => {
                    self.shared.peer_closed(self.number);
                    return After::Over;
                }
            };
            match (step, after) {
                (Step::Reset, _) => {
                    let _ = self.stream.set_zero_linger();
                    return After::Over;
                }
                (Step::Close, _) => {
                    if watches {
                        // Bytes still unread would turn the orderly close into a reset.
                        until_closed(&mut reader, &mut self.buffer).await;
                        self.shared.peer_closed(self.number);
                    }
                    return After::Over;
                }
                (_, After::Over) => {
                    self.shared.peer_closed(self.number);
                    return After::Over;
                }
                (_, After::Open) => {}
            }
        }
        After::Open
    }

    async fn read_head(&mut self) -> Option<Received> {
        let end = loop {
            let found = self
                .buffer
                .windows(4)
                .position(|window| window == b"\r\n\r\n");
            match found {
                Some(end) => break end,
                None => self.read_more().await?,
            }
        };
        let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
        Some(parse_head(&String::from_utf8_lossy(&head), self.number))
    }

    async fn read_body(&mut self, request: &mut Received) -> Option<()> {
        if request.header("expect").is_some() {
            self.stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await
                .ok()?;
        }
        if request.header("transfer-encoding").is_some() {
            return self.read_chunks(&mut request.body).await;
        }
        let length = request
            .header("content-length")
            .map_or(0, |v| v.parse().expect("a length"));
        request.body = self.read_exactly(length).await?;
        Some(())
    }

    async fn read_chunks(&mut self, body: &mut Vec<u8>) -> Option<()> {
        loop {
            let line = self.read_line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).expect("a chunk size");
            if size == 0 {
                while !self.read_line().await?.is_empty() {}
                return Some(());
            }
            body.extend(self.read_exactly(size).await?);
            self.read_line().await?;
        }
    }

    async fn read_line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.read_more().await?;
        }
    }

    async fn read_exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < length {
            self.read_more().await?;
        }
        Some(self.buffer.drain(..length).collect())
    }

    /// Reads at least a byte, or notes that the peer closed.
    async fn read_more(&mut self) -> Option<()> {
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(read) if read > 0 => Some(()),
            _ => {
                self.shared.peer_closed(self.number);
                None
            }
        }
    }
}

async fn until_closed(reader: &mut ReadHalf<'_>, buffer: &mut Vec<u8>) {
    while reader.read_buf(buffer).await.is_ok_and(|read| read > 0) {}
}

async fn take(step: &Step, writer: &mut WriteHalf<'_>) -> After {
    let written = match step {
        Step::Send(bytes) => writer.write_all(bytes).await,
        Step::Drip(bytes) => drip(bytes, writer).await,
        Step::Close => writer.shutdown().await,
        Step::Hang => pending().await,
        Step::Reset => Ok(()),
        Step::Pause(pause) => {
            tokio::time::sleep(*pause).await;
            Ok(())
        }
        Step::Wait(gate) => {
            gate.opened().await;
            Ok(())
        }
    };
    if written.is_ok() {
        After::Open
    } else {
        After::Over
    }
}

async fn drip(bytes: &[u8], writer: &mut WriteHalf<'_>) -> std::io::Result<()> {
    for byte in bytes {
        writer.write_all(std::slice::from_ref(byte)).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

fn parse_head(head: &str, connection: usize) -> Received {
    let mut lines = head.trim_end().split("\r\n");
    let mut request_line = lines.next().unwrap_or_default().split(' ');
    let mut word = || request_line.next().unwrap_or_default().to_owned();
    let (method, path) = (word(), word());
    let header = |line: &str| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        (name.to_owned(), value.trim().to_owned())
    };
    Received {
        method,
        path,
        headers: lines.map(header).collect(),
        body: Vec::new(),
        is_complete: true,
        at: Instant::now(),
        connection,
    }
}
