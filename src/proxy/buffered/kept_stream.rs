//! An event stream that outlives the connection of its client. It keeps the newest notice and the answer, and a
//! client that returns resumes after the last event that it has seen.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

/// One stream.
#[derive(Debug)]
pub struct KeptStream {
    /// The prefix of the ids of its events.
    id: String,
    /// How long the stream lives without a listener.
    kept_for: Duration,
    state: watch::Sender<StreamState>,
}

#[derive(Debug, Default)]
struct StreamState {
    /// The number of the next event.
    next: u64,
    /// The newest event before the answer. It replaces all earlier ones.
    told: Option<Event>,
    answer: Option<Event>,
    /// Whether the answer may be sent, because its cost is recorded.
    is_released: bool,
    /// Whether no further event comes.
    is_over: bool,
    /// The time at which the last listener left.
    left: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Event {
    number: u64,
    bytes: Bytes,
}

impl StreamState {
    fn number(&mut self, id: &str, event: &[u8]) -> Event {
        let number = self.next;
        self.next += 1;
        let head = format!("id: {id}-{number}\n");
        let bytes = Bytes::from([head.as_bytes(), event].concat());
        Event { number, bytes }
    }
}

impl KeptStream {
    /// Returns a stream with this id, which lives for `kept_for` without a listener.
    pub fn new(id: String, kept_for: Duration) -> Self {
        let state = watch::Sender::new(StreamState::default());
        Self {
            id,
            kept_for,
            state,
        }
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the stream and the number in the id of an event, or `None` if the text is no such id.
    pub fn read_event_id(id: &[u8]) -> Option<(&str, u64)> {
        let (stream, number) = std::str::from_utf8(id).ok()?.rsplit_once('-')?;
        let number = number.parse().ok()?;
        Some((stream, number))
    }

    /// Stores an event in place of all earlier ones. Returns it with its id.
    pub fn store_event(&self, event: &[u8]) -> Bytes {
        self.add(event, |state, event| state.told = Some(event))
    }

    /// Stores the answer. Returns it with its id. Listeners get it after [`release`](Self::release).
    pub fn store_answer(&self, event: &[u8]) -> Bytes {
        self.add(event, |state, event| state.answer = Some(event))
    }

    fn add(&self, event: &[u8], keep: impl FnOnce(&mut StreamState, Event)) -> Bytes {
        let mut added = Bytes::new();
        self.state.send_modify(|state| {
            let event = state.number(&self.id, event);
            added = event.bytes.clone();
            keep(state, event);
        });
        added
    }

    /// Lets listeners get the answer.
    pub fn release(&self) {
        self.state.send_modify(|state| state.is_released = true);
    }

    /// Ends the stream. Returns the size of an answer that clients may still fetch, if there is one.
    pub fn end(&self) -> Option<usize> {
        self.state.send_modify(|state| state.is_over = true);
        let state = self.state.borrow();
        let answer = state.answer.as_ref().filter(|_| state.is_released)?;
        let told = state.told.as_ref().map_or(0, |event| event.bytes.len());
        Some(answer.bytes.len() + told)
    }

    /// Returns when to give up a stream whose connection was lost at `lost`, as far as known now. While there are
    /// listeners, that is at least `kept_for` from now.
    pub(super) fn give_up_time(&self, lost: Instant, now: Instant) -> Instant {
        let unheard = match self.state.receiver_count() {
            0 => self.state.borrow().left.map_or(lost, |left| left.max(lost)),
            _ => now,
        };
        unheard + self.kept_for
    }

    /// Returns whether there was an event, so that a client may know an id.
    pub(super) fn has_begun(&self) -> bool {
        self.state.borrow().next > 0
    }

    /// Returns the events after this number, as they come.
    pub fn listen(self: &Arc<Self>, after: u64) -> StreamListener {
        StreamListener {
            receiver: self.state.subscribe(),
            stream: Arc::clone(self),
            after,
        }
    }
}

/// A listener of a stream. Dropping it ends the subscription.
pub struct StreamListener {
    stream: Arc<KeptStream>,
    receiver: watch::Receiver<StreamState>,
    /// The number of the last event that the listener has got.
    after: u64,
}

impl StreamListener {
    /// Waits for the next event. Returns `None` at the end of the stream. Cancel safety: a dropped call loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            {
                let state = self.receiver.borrow_and_update();
                let answer = state.answer.as_ref().filter(|_| state.is_released);
                let mut events = state.told.iter().chain(answer);
                if let Some(event) = events.find(|event| event.number > self.after) {
                    self.after = event.number;
                    return Some(event.bytes.clone());
                }
                if answer.is_some() || state.is_over {
                    return None;
                }
            }
            self.receiver.changed().await.ok()?;
        }
    }
}

impl Drop for StreamListener {
    fn drop(&mut self) {
        self.stream.state.send_if_modified(|state| {
            state.left = Some(Instant::now());
            false
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures::FutureExt;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn stream() -> Arc<KeptStream> {
        Arc::new(KeptStream::new("s".to_owned(), MINUTE))
    }

    fn next(listener: &mut StreamListener) -> Option<Option<Bytes>> {
        listener.next().now_or_never()
    }

    #[tokio::test]
    async fn a_listener_gets_what_it_has_not_seen_and_the_answer_once_it_is_released() {
        let stream = stream();
        assert!(!stream.has_begun());
        assert_eq!(stream.store_event(b"data:\n\n"), "id: s-0\ndata:\n\n");
        assert!(stream.has_begun());
        let (mut first, mut late) = (stream.listen(0), stream.listen(1));
        assert_eq!(next(&mut first), None);
        stream.store_event(b"one\n\n");
        stream.store_event(b"two\n\n");
        // The newest stands for those before it.
        assert_eq!(next(&mut first).unwrap().unwrap(), "id: s-2\ntwo\n\n");
        stream.store_answer(b"end\n\n");
        assert_eq!(next(&mut first), None);
        stream.release();
        assert_eq!(next(&mut first).unwrap().unwrap(), "id: s-3\nend\n\n");
        assert_eq!(next(&mut first), Some(None));
        assert_eq!(stream.end(), Some(13 + 13));
        assert_eq!(next(&mut late).unwrap().unwrap(), "id: s-2\ntwo\n\n");
        assert_eq!(next(&mut stream.listen(3)), Some(None));
    }

    #[tokio::test]
    async fn a_stream_without_an_answer_ends_for_its_listeners() {
        let stream = stream();
        let mut listener = stream.listen(0);
        stream.store_answer(b"unpaid\n\n");
        assert_eq!(stream.end(), None);
        assert_eq!(next(&mut listener), Some(None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_given_up_a_minute_after_its_last_listener() {
        let (stream, lost) = (stream(), Instant::now());
        assert_eq!(stream.give_up_time(lost, lost), lost + MINUTE);
        let listener = stream.listen(0);
        tokio::time::advance(MINUTE * 3).await;
        let now = Instant::now();
        assert_eq!(stream.give_up_time(lost, now), now + MINUTE);
        drop(listener);
        tokio::time::advance(MINUTE / 2).await;
        assert_eq!(stream.give_up_time(lost, Instant::now()), now + MINUTE);
    }

    #[test]
    fn an_event_names_its_stream_and_its_number() {
        assert_eq!(KeptStream::read_event_id(b"a-b-7"), Some(("a-b", 7)));
        for id in [&b""[..], b"7", b"a-", b"a-x", b"a--7x", b"\xff-7"] {
            assert_eq!(KeptStream::read_event_id(id), None);
        }
    }
}
