//! The socket pair between a process and its successor: messages with a body, and open files.
//!
//! Shape of a message: its length and that of its body (u32, little endian), the message as JSON, the body. Open files
//! go once, with one byte, before any message.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

/// The most open files that are passed.
pub const MAX_FILES: usize = 64;
/// The maximum size of a message without its body.
const MAX_MESSAGE_BYTES: u32 = 64 << 10;
/// The maximum size of a body. Our choice: the largest state that passes on is the response cache, with as much.
pub const MAX_BODY_BYTES: u32 = 64 << 20;

/// What the two processes tell each other.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Message {
    /// The old process says which open files it passes, in their order.
    Offer {
        version: String,
        pid: u32,
        files: Vec<String>,
    },
    /// The new process has read its configuration and opened everything, and wants the state.
    Loaded,
    /// The old process passes a part of its state, in the body.
    State { name: String },
    /// No more state follows.
    StateEnd,
    /// The new process accepts connections.
    Ready,
    /// The other process asks for something that only this one can decide. The body has the question.
    Ask { number: u64, about: String },
    /// The answer, in the body.
    Answer { number: u64 },
    /// Something that the other process should know, in the body.
    Tell { about: String },
}

/// One end of the pair.
pub struct Channel(UnixStream);

impl Channel {
    /// Makes a pair: our end, and the other one for the standard input of a child.
    ///
    /// Errors: the operating system's.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok((Self(ours), theirs.into()))
    }

    /// Takes an inherited end.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(UnixStream::from(fd))
    }

    /// Returns the socket, for what comes after the handover.
    pub fn into_stream(self) -> UnixStream {
        self.0
    }

    /// Sends open files.
    ///
    /// Errors: there are too many, or the other process is gone.
    pub fn send_files(&self, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        if files.len() > MAX_FILES {
            return Err(io::Error::other(format!(
                "{} open files are too many",
                files.len()
            )));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::Error::other("no space for open files"));
        }
        sendmsg(
            &self.0,
            &[IoSlice::new(&[0])],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    /// Receives the open files.
    ///
    /// Errors: the time is over, or the other process is gone.
    pub fn receive_files(&self, deadline: Instant) -> io::Result<Vec<OwnedFd>> {
        self.wait_until(deadline)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut bytes = [IoSliceMut::new(&mut byte)];
        let got =
            retry_on_intr(|| recvmsg(&self.0, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC))?;
        if got.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut files = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                files.extend(received);
            }
        }
        Ok(files)
    }

    /// Sends a message and its body.
    ///
    /// Errors: the time is over, or the other process is gone.
    pub fn send(&mut self, message: &Message, body: &[u8], deadline: Instant) -> io::Result<()> {
        self.0.set_write_timeout(Some(left(deadline)?))?;
        self.0.write_all(&encode(message, body)?)
    }

    /// Receives a message and its body.
    ///
    /// Errors: the time is over, the other process is gone, or it does not speak this protocol.
    pub fn receive(&mut self, deadline: Instant) -> io::Result<(Message, Vec<u8>)> {
        let mut head = [0; HEAD_BYTES];
        self.read(&mut head, deadline)?;
        let (message_bytes, body_bytes) = lengths(head)?;
        let mut message = vec![0; message_bytes];
        self.read(&mut message, deadline)?;
        let mut body = vec![0; body_bytes];
        self.read(&mut body, deadline)?;
        Ok((serde_json::from_slice(&message)?, body))
    }

    fn read(&mut self, mut bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            self.wait_until(deadline)?;
            match self.0.read(bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => bytes = bytes.get_mut(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Lets the next read end at a time.
    fn wait_until(&self, deadline: Instant) -> io::Result<()> {
        self.0.set_read_timeout(Some(left(deadline)?))
    }
}

/// The size of the two lengths before a message.
pub const HEAD_BYTES: usize = 8;

/// Returns the bytes of a message and its body.
///
/// Errors: it is too large.
pub fn encode(message: &Message, body: &[u8]) -> io::Result<Vec<u8>> {
    let message = serde_json::to_vec(message)?;
    let too_large = || io::Error::other("the message is too large");
    let message_bytes = u32::try_from(message.len())
        .ok()
        .filter(|&it| it <= MAX_MESSAGE_BYTES);
    let body_bytes = u32::try_from(body.len())
        .ok()
        .filter(|&it| it <= MAX_BODY_BYTES);
    let mut bytes = Vec::with_capacity(HEAD_BYTES + message.len() + body.len());
    bytes.extend_from_slice(&message_bytes.ok_or_else(too_large)?.to_le_bytes());
    bytes.extend_from_slice(&body_bytes.ok_or_else(too_large)?.to_le_bytes());
    bytes.extend_from_slice(&message);
    bytes.extend_from_slice(body);
    Ok(bytes)
}

/// Returns the lengths of a message and of its body.
///
/// Errors: one is beyond its bound.
pub fn lengths([a, b, c, d, e, f, g, h]: [u8; HEAD_BYTES]) -> io::Result<(usize, usize)> {
    let (message, body) = (
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    );
    if message > MAX_MESSAGE_BYTES || body > MAX_BODY_BYTES {
        return Err(io::Error::other("this is no message of a handover"));
    }
    Ok((message as usize, body as usize))
}

/// Returns the time until a deadline.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    fn pair() -> (Channel, Channel) {
        let (ours, theirs) = Channel::pair().unwrap();
        (ours, Channel::from_fd(theirs))
    }

    #[test]
    fn open_files_arrive_in_their_order_before_messages() {
        let (mut old, mut new) = pair();
        let listeners = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let files = [listeners[0].as_fd(), listeners[1].as_fd()];
        old.send_files(&files).unwrap();
        old.send(&Message::StateEnd, b"after", soon()).unwrap();
        let received = new.receive_files(soon()).unwrap();
        let received: Vec<_> = received.into_iter().map(TcpListener::from).collect();
        for (sent, received) in listeners.iter().zip(&received) {
            assert_eq!(sent.local_addr().unwrap(), received.local_addr().unwrap());
        }
        let expected = (Message::StateEnd, b"after".to_vec());
        assert_eq!(new.receive(soon()).unwrap(), expected);
    }

    #[test]
    fn a_message_may_come_in_pieces_and_no_file_is_no_error() {
        let (old, mut new) = pair();
        old.send_files(&[]).unwrap();
        assert!(new.receive_files(soon()).unwrap().is_empty());
        let message = Message::State {
            name: "windows".to_owned(),
        };
        let bytes = encode(&message, &[7; 1000]).unwrap();
        let mut stream = old.into_stream();
        let writing = std::thread::spawn(move || {
            for piece in bytes.chunks(13) {
                stream.write_all(piece).unwrap();
            }
            stream
        });
        assert_eq!(new.receive(soon()).unwrap(), (message, vec![7; 1000]));
        _ = writing.join();
    }

    #[test]
    fn a_peer_that_is_gone_silent_or_no_peer_ends_the_wait() {
        let (old, mut new) = pair();
        drop(old);
        let gone = new.receive(soon()).unwrap_err().kind();
        assert_eq!(gone, io::ErrorKind::UnexpectedEof);
        assert!(new.receive_files(soon()).is_err());
        let (_old, mut new) = pair();
        let silent = new.receive(Instant::now() + Duration::from_millis(20));
        assert!(silent.is_err());
        let (old, mut new) = pair();
        old.into_stream()
            .write_all(b"GET / HTTP/1.1\r\n\r\n")
            .unwrap();
        assert!(
            new.receive(soon()).is_err(),
            "a length beyond the bound allocates nothing"
        );
    }
}
