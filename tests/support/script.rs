//! The script of an upstream for one request: a list of steps on the socket.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// One action on the connection.
#[derive(Clone, Debug)]
pub enum Step {
    /// Write these bytes in one call.
    Send(Vec<u8>),
    /// Write these bytes one call per byte.
    Drip(Vec<u8>),
    /// Stay silent for this long.
    Pause(Duration),
    /// Stay silent until the test opens the gate.
    Wait(Gate),
    /// Stay silent until the peer closes or the upstream is dropped.
    Hang,
    /// Close in order (FIN).
    Close,
    /// Tear the connection down (RST).
    Reset,
}

/// How a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// An orderly close (FIN).
    Close,
    /// A reset (RST).
    Reset,
}

/// A gate the test opens once: a script waits at it, so that both go in lockstep without sleeping.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// Lets everything through that waits here, now and later.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Resolves once it is open.
    pub(super) async fn opened(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// The reply to one request, as steps; built from a constructor and modifiers, in wire order.
///
/// `Reply::json(200, "{}")`, `Reply::sse(["{}", "[DONE]"])`,
/// `Reply::stream().event("{}").wait(&gate).event("[DONE]").end()`, `Reply::sse(…).cut(100, Cut::Reset)`.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    steps: Vec<Step>,
}

impl Reply {
    /// An empty script, as the base of others.
    pub fn empty() -> Reply {
        Reply::default()
    }

    /// These bytes, whatever they are: garbage, a hand-made head, two replies at once.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Reply {
        Reply::empty().bytes(bytes)
    }

    /// Silence until the peer closes.
    pub fn hang() -> Reply {
        Reply::empty().and_hang()
    }

    /// A whole reply with the right `Content-Length`.
    pub fn whole(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        let length = body.as_ref().len();
        Reply::claiming(status, headers, length, body)
    }

    /// A whole JSON reply.
    pub fn json(status: u16, body: impl AsRef<[u8]>) -> Reply {
        Reply::whole(status, &[("content-type", "application/json")], body)
    }

    /// A reply whose `Content-Length` is `length`, whatever the body's length is. After a body that is too short the
    /// connection stays open and silent: add [`Reply::and_close`] to cut it.
    pub fn claiming(
        status: u16,
        headers: &[(&str, &str)],
        length: usize,
        body: impl AsRef<[u8]>,
    ) -> Reply {
        let mut head = head_text(status, headers);
        head.push_str(&format!("content-length: {length}\r\n\r\n"));
        Reply::raw([head.as_bytes(), body.as_ref()].concat())
    }

    /// A reply without framing, which ends when the connection closes.
    pub fn until_close(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        let head = head_text(status, headers) + "connection: close\r\n\r\n";
        Reply::raw([head.as_bytes(), body.as_ref()].concat()).and_close()
    }

    /// The head of a chunked reply; continue with [`Reply::chunk`] or [`Reply::event`], then
    /// [`Reply::end`].
    pub fn chunked(status: u16, headers: &[(&str, &str)]) -> Reply {
        Reply::raw(head_text(status, headers) + "transfer-encoding: chunked\r\n\r\n")
    }

    /// The head of a 200 event stream, chunked.
    pub fn stream() -> Reply {
        Reply::chunked(200, &[("content-type", "text/event-stream")])
    }

    /// A whole event stream: each text becomes `data: TEXT` in one chunk and one write.
    pub fn sse<'a>(events: impl IntoIterator<Item = &'a str>) -> Reply {
        events.into_iter().fold(Reply::stream(), Reply::event).end()
    }

    /// Bytes written as they are.
    pub fn bytes(self, bytes: impl AsRef<[u8]>) -> Reply {
        self.step(Step::Send(bytes.as_ref().to_vec()))
    }

    /// One chunk of a chunked body.
    pub fn chunk(self, bytes: impl AsRef<[u8]>) -> Reply {
        let bytes = bytes.as_ref();
        let size = format!("{:x}\r\n", bytes.len());
        self.bytes([size.as_bytes(), bytes, b"\r\n"].concat())
    }

    /// One `data:` event as one chunk.
    pub fn event(self, data: &str) -> Reply {
        self.chunk(format!("data: {data}\n\n"))
    }

    /// One named event as one chunk.
    pub fn named_event(self, name: &str, data: &str) -> Reply {
        self.chunk(format!("event: {name}\ndata: {data}\n\n"))
    }

    /// The last chunk: the body is complete.
    pub fn end(self) -> Reply {
        self.bytes("0\r\n\r\n")
    }

    /// An informational head (100, 103, …) before all steps so far.
    pub fn after_informational(mut self, status: u16, headers: &[(&str, &str)]) -> Reply {
        let head = head_text(status, headers) + "\r\n";
        self.steps.insert(0, Step::Send(head.into_bytes()));
        self
    }

    /// Silence for this long before all steps so far.
    pub fn before(mut self, pause: Duration) -> Reply {
        self.steps.insert(0, Step::Pause(pause));
        self
    }

    /// Silence for this long.
    pub fn pause(self, pause: Duration) -> Reply {
        self.step(Step::Pause(pause))
    }

    /// Silence until the test opens the gate.
    pub fn wait(self, gate: &Gate) -> Reply {
        self.step(Step::Wait(gate.clone()))
    }

    /// Silence until the peer closes.
    pub fn and_hang(self) -> Reply {
        self.step(Step::Hang)
    }

    /// All steps of another script.
    pub fn then(mut self, other: Reply) -> Reply {
        self.steps.extend(other.steps);
        self
    }

    /// An orderly close.
    pub fn and_close(self) -> Reply {
        self.step(Step::Close)
    }

    /// A reset.
    pub fn and_reset(self) -> Reply {
        self.step(Step::Reset)
    }

    /// Writes all steps so far one byte at a time.
    pub fn dripped(mut self) -> Reply {
        for step in &mut self.steps {
            if let Step::Send(bytes) = step {
                *step = Step::Drip(std::mem::take(bytes));
            }
        }
        self
    }

    /// Only the first `bytes` bytes of the wire (head included), then cut.
    pub fn cut(self, bytes: usize, how: Cut) -> Reply {
        let mut left = bytes;
        let mut steps = Vec::new();
        for mut step in self.steps {
            if let Step::Send(text) | Step::Drip(text) = &mut step {
                text.truncate(left);
                left -= text.len();
            }
            steps.push(step);
            if left == 0 {
                break;
            }
        }
        steps.push(if how == Cut::Close {
            Step::Close
        } else {
            Step::Reset
        });
        Reply { steps }
    }

    /// How many bytes it writes in all: the range of [`Reply::cut`].
    pub fn wire_len(&self) -> usize {
        let written = |step: &Step| match step {
            Step::Send(bytes) | Step::Drip(bytes) => bytes.len(),
            _ => 0,
        };
        self.steps.iter().map(written).sum()
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn step(mut self, step: Step) -> Reply {
        self.steps.push(step);
        self
    }
}

fn head_text(status: u16, headers: &[(&str, &str)]) -> String {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}
