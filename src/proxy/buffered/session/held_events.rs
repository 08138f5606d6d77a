//! Events that wait for those right behind them, so that one write takes them all.
//!
//! Pingora passes on as many events at once as its pipe holds. A full pipe tells that more events have arrived than were
//! passed on, and that the next ones follow once the two halves of the request have taken their turns. A write is the
//! dearest part of an event. An event that comes alone never waits.

use std::future::poll_fn;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use pingora::protocols::http::HttpTask;

/// The number of tasks in a full pipe.
const FULL_PIPE: usize = 4;
/// So many bytes are written without a wait for more.
const MAX_HELD_BYTES: usize = 16 << 10;
/// After so many turns of the request without events, the held ones are written. Pingora's halves swap their order with each
/// turn, so up to three turns lie between two full pipes.
const MAX_TURNS: u8 = 4;

/// Events that are not written yet.
#[derive(Default)]
pub(super) struct HeldEvents {
    bytes: BytesMut,
    /// The turns since the last event.
    turns: u8,
}

impl HeldEvents {
    /// Returns whether `tasks` came out of a full pipe.
    pub(super) fn is_full_pipe(tasks: &[HttpTask]) -> bool {
        tasks.len() >= FULL_PIPE
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes the events of `tasks`. Returns false, and takes nothing, if there are too many bytes, or the response ends.
    pub(super) fn hold(&mut self, tasks: &[HttpTask]) -> bool {
        let mut bytes = self.bytes.len();
        for task in tasks {
            match task {
                HttpTask::Body(Some(body), false) => bytes += body.len(),
                _ => return false,
            }
        }
        if bytes > MAX_HELD_BYTES {
            return false;
        }
        for task in tasks {
            if let HttpTask::Body(Some(body), _) = task {
                self.bytes.extend_from_slice(body);
            }
        }
        self.turns = 0;
        true
    }

    /// Returns the events as one piece of the body.
    pub(super) fn release(&mut self) -> Option<HttpTask> {
        let bytes = std::mem::take(&mut self.bytes).freeze();
        let piece = |bytes: Bytes| HttpTask::Body(Some(bytes), false);
        Some(bytes).filter(|bytes| !bytes.is_empty()).map(piece)
    }

    /// Waits until no event has followed for some turns. A dropped wait loses nothing, and the next one goes on with its
    /// turns.
    pub(super) async fn settled(&mut self) {
        poll_fn(|context| {
            if self.turns >= MAX_TURNS {
                return Poll::Ready(());
            }
            self.turns += 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&'static str]) -> Vec<HttpTask> {
        let piece =
            |text: &&'static str| HttpTask::Body(Some(Bytes::from_static(text.as_bytes())), false);
        pieces.iter().map(piece).collect()
    }

    #[test]
    fn held_events_are_one_piece_in_their_order() {
        let mut held = HeldEvents::default();
        assert!(held.hold(&events(&["a", "b"])) && held.hold(&events(&["c"])));
        assert!(
            matches!(held.release(), Some(HttpTask::Body(Some(bytes), false)) if bytes == "abc")
        );
        assert!(held.is_empty() && held.release().is_none());
    }

    #[test]
    fn neither_an_end_nor_many_bytes_wait() {
        let mut held = HeldEvents::default();
        assert!(held.hold(&events(&["a"])));
        let mut ending = events(&["b"]);
        ending.push(HttpTask::Done);
        assert!(!held.hold(&ending));
        let large = Bytes::from(vec![b'c'; MAX_HELD_BYTES]);
        assert!(!held.hold(&[HttpTask::Body(Some(large), false)]));
        assert!(matches!(held.release(), Some(HttpTask::Body(Some(bytes), false)) if bytes == "a"));
    }

    #[tokio::test]
    async fn each_event_begins_the_wait_anew_and_a_dropped_wait_goes_on() {
        use futures::FutureExt;
        let mut held = HeldEvents::default();
        for _ in 0..2 {
            assert!(held.hold(&events(&["a"])));
            for _ in 0..MAX_TURNS {
                assert!(held.settled().now_or_never().is_none());
            }
        }
        assert!(held.settled().now_or_never().is_some());
    }
}
