//! The pair after the handover: while the old process drains, each of the two may tell and ask the other something.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::channel::{HEAD_BYTES, Message, encode, lengths};

/// How long an answer is waited for. Our choice: the other process answers from memory, and requests wait for it.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// The most messages that wait to be sent. One more is not sent.
const MAX_QUEUED: usize = 4096;

/// Answers what the other process asks or tells. Parameters: what it is about, and the body. A question gets the bytes.
pub type AnswerPeer = dyn Fn(&str, Vec<u8>) -> BoxFuture<'static, Vec<u8>> + Send + Sync;

/// The way to the other process.
pub struct Peer {
    outgoing: mpsc::Sender<Vec<u8>>,
    pending: Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>,
    last_number: AtomicU64,
    /// What is known of the other process.
    life: watch::Receiver<Life>,
}

/// What the other process has reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Life {
    Starting,
    Ready,
    Gone,
}

impl Peer {
    /// Begins to read and write on a runtime.
    ///
    /// Errors: the operating system's.
    pub fn start(
        runtime: &Handle,
        stream: std::os::unix::net::UnixStream,
        answer: Arc<AnswerPeer>,
    ) -> io::Result<Arc<Self>> {
        let _entered = runtime.enter();
        stream.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(stream)?.into_split();
        let (outgoing, queued) = mpsc::channel(MAX_QUEUED);
        let (told, life) = watch::channel(Life::Starting);
        let peer = Arc::new(Self {
            outgoing,
            pending: Mutex::default(),
            last_number: AtomicU64::new(0),
            life,
        });
        runtime.spawn(write(writer, queued));
        runtime.spawn(Arc::clone(&peer).read(reader, answer, told));
        Ok(peer)
    }

    /// Tells the other process something. What does not fit into the queue is dropped.
    pub fn tell(&self, about: &str, body: &[u8]) {
        let message = Message::Tell {
            about: about.to_owned(),
        };
        self.send(&message, body);
    }

    /// Asks the other process. Returns `None` if it has ended or does not answer.
    pub async fn ask(&self, about: &str, body: &[u8]) -> Option<Vec<u8>> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed);
        let (answered, answer) = oneshot::channel();
        self.pending().insert(number, answered);
        let message = Message::Ask {
            number,
            about: about.to_owned(),
        };
        let is_sent = self.send(&message, body) && !self.has_ended();
        let answer = match is_sent {
            true => timeout(ANSWER_TIMEOUT, answer)
                .await
                .ok()
                .and_then(Result::ok),
            false => None,
        };
        self.pending().remove(&number);
        answer
    }

    /// Tells the other process that this one serves.
    pub fn say_ready(&self) {
        self.send(&Message::Ready, &[]);
    }

    /// Waits until the other process serves. Returns false if it has ended before.
    pub async fn ready(&self) -> bool {
        let mut life = self.life.clone();
        let reached = life.wait_for(|life| *life != Life::Starting).await;
        reached.is_ok_and(|life| *life == Life::Ready)
    }

    /// Waits until the other process has ended.
    pub async fn gone(&self) {
        let mut life = self.life.clone();
        // Without a sender its reader has ended, too.
        _ = life.wait_for(|life| *life == Life::Gone).await;
    }

    /// Returns whether the other process has ended.
    pub fn has_ended(&self) -> bool {
        *self.life.borrow() == Life::Gone
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Vec<u8>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message. Returns whether it will be sent if the other process lives.
    fn send(&self, message: &Message, body: &[u8]) -> bool {
        let encoded = encode(message, body);
        encoded.is_ok_and(|bytes| self.outgoing.try_send(bytes).is_ok())
    }

    async fn read(
        self: Arc<Self>,
        mut reader: OwnedReadHalf,
        answer: Arc<AnswerPeer>,
        told: watch::Sender<Life>,
    ) {
        while let Ok((message, body)) = receive(&mut reader).await {
            match message {
                Message::Answer { number } => {
                    if let Some(waiting) = self.pending().remove(&number) {
                        _ = waiting.send(body);
                    }
                }
                Message::Ask { number, about } => {
                    let (peer, answering) = (Arc::clone(&self), answer(&about, body));
                    tokio::spawn(async move {
                        peer.send(&Message::Answer { number }, &answering.await);
                    });
                }
                Message::Ready => {
                    told.send_replace(Life::Ready);
                }
                Message::Tell { about } => {
                    tokio::spawn(answer(&about, body));
                }
                other => log::warn!("the other process says {other:?} out of turn"),
            }
        }
        told.send_replace(Life::Gone);
        self.pending().clear();
    }
}

async fn receive(reader: &mut OwnedReadHalf) -> io::Result<(Message, Vec<u8>)> {
    let mut head = [0; HEAD_BYTES];
    reader.read_exact(&mut head).await?;
    let (message_bytes, body_bytes) = lengths(head)?;
    let mut message = vec![0; message_bytes];
    reader.read_exact(&mut message).await?;
    let mut body = vec![0; body_bytes];
    reader.read_exact(&mut body).await?;
    Ok((serde_json::from_slice(&message)?, body))
}

/// Writes until the other process has ended, or nothing more comes.
async fn write(mut writer: OwnedWriteHalf, mut queued: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = queued.recv().await {
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures::FutureExt;

    use super::*;

    fn answering(name: &'static str) -> Arc<AnswerPeer> {
        Arc::new(move |about: &str, body: Vec<u8>| {
            let about = about.to_owned();
            async move {
                if about == "never" {
                    std::future::pending::<()>().await;
                }
                [name.as_bytes(), about.as_bytes(), &body].concat()
            }
            .boxed()
        })
    }

    fn pair() -> (Arc<Peer>, Arc<Peer>) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let start =
            |stream, name| Peer::start(&Handle::current(), stream, answering(name)).unwrap();
        (start(ours, "old "), start(theirs, "new "))
    }

    #[tokio::test]
    async fn both_may_ask_at_once_and_get_their_own_answers() {
        let (old, new) = pair();
        let of_old = (0..50_u8).map(|n| old.ask("a", vec![n].leak()));
        let of_new = (0..50_u8).map(|n| new.ask("b", vec![n].leak()));
        let (at_new, at_old) = futures::join!(
            futures::future::join_all(of_old),
            futures::future::join_all(of_new)
        );
        for (n, (at_new, at_old)) in (0..50_u8).zip(at_new.into_iter().zip(at_old)) {
            assert_eq!(at_new.unwrap(), [b"new a".as_slice(), &[n]].concat());
            assert_eq!(at_old.unwrap(), [b"old b".as_slice(), &[n]].concat());
        }
    }

    #[tokio::test]
    async fn a_silent_peer_is_not_waited_for_and_an_ended_one_is_gone() {
        let (old, new) = pair();
        assert_eq!(old.ask("never", b"").await, None);
        assert_eq!(old.ask("a", b"").await.unwrap(), b"new a");
        assert!(!old.has_ended());
        new.say_ready();
        assert!(old.ready().await);
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let left = Peer::start(&Handle::current(), ours, answering("")).unwrap();
        drop(theirs);
        left.gone().await;
        assert!(!left.ready().await);
        assert_eq!(left.ask("a", b"").await, None);
        drop((old, new));
    }
}
