//! What was asked and answered in kept calls, of organizations that allow it for some hours.
//!
//! The last bodies are kept, up to a bound in bytes over the process, each until the time that its organization allows. Those of other
//! organizations are never here, and cost nothing.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most bytes of all bodies together.
const MAX_BYTES: usize = 64 << 20;

/// Bodies, oldest first.
#[derive(Default)]
pub(super) struct KeptBodies(Mutex<Bodies>);

#[derive(Default)]
struct Bodies {
    all: VecDeque<KeptBody>,
    bytes: usize,
}

struct KeptBody {
    /// The number of the call.
    number: u64,
    /// When it is forgotten, in unix milliseconds.
    until_ms: i64,
    body: Box<[u8]>,
}

impl KeptBodies {
    /// Keeps a body until this time.
    pub(super) fn keep(&self, (number, until_ms): (u64, i64), body: &[u8], now_ms: i64) {
        let mut bodies = self.lock();
        bodies.drop_old(now_ms);
        bodies.bytes += body.len();
        bodies.all.push_back(KeptBody {
            number,
            until_ms,
            body: body.into(),
        });
        while bodies.bytes > MAX_BYTES && bodies.drop_first() {}
    }

    /// Returns the body of a call.
    pub(super) fn find(&self, number: u64, now_ms: i64) -> Option<Vec<u8>> {
        let mut bodies = self.lock();
        bodies.drop_old(now_ms);
        let found = bodies.all.iter().find(|it| it.number == number);
        found.map(|it| it.body.to_vec())
    }

    /// Forgets all whose time is over.
    pub(super) fn forget_old(&self, now_ms: i64) {
        self.lock().drop_old(now_ms);
    }

    fn lock(&self) -> MutexGuard<'_, Bodies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bodies {
    fn drop_first(&mut self) -> bool {
        let first = self.all.pop_front();
        self.bytes -= first.as_ref().map_or(0, |it| it.body.len());
        first.is_some()
    }

    /// Cost: a look at the time of each body.
    fn drop_old(&mut self, now_ms: i64) {
        if self.all.iter().all(|it| it.until_ms > now_ms) {
            return;
        }
        self.all.retain(|it| it.until_ms > now_ms);
        self.bytes = self.all.iter().map(|it| it.body.len()).sum();
        self.all.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes and the number of the bodies.
    fn sizes(bodies: &KeptBodies) -> (usize, usize) {
        let bodies = bodies.lock();
        (bodies.bytes, bodies.all.len())
    }

    #[test]
    fn a_body_is_kept_until_its_time_is_over() {
        let bodies = KeptBodies::default();
        bodies.keep((1, 100), b"one", 0);
        bodies.keep((2, 50), b"two", 0);
        assert_eq!(bodies.find(1, 49).as_deref(), Some(&b"one"[..]));
        assert_eq!(bodies.find(2, 49).as_deref(), Some(&b"two"[..]));
        assert_eq!(bodies.find(3, 49), None);
        assert_eq!(bodies.find(2, 50), None);
        assert_eq!(sizes(&bodies), (3, 1));
        bodies.forget_old(100);
        assert_eq!(sizes(&bodies), (0, 0));
    }

    #[test]
    fn the_oldest_make_room_and_none_is_beyond_the_bound() {
        let bodies = KeptBodies::default();
        let body = vec![b'x'; MAX_BYTES / 4];
        for number in 1..=6 {
            bodies.keep((number, 100), &body, 0);
            assert!(sizes(&bodies).0 <= MAX_BYTES);
        }
        assert_eq!(bodies.find(2, 0), None);
        assert!(bodies.find(3, 0).is_some() && bodies.find(6, 0).is_some());
        bodies.keep((7, 100), &vec![b'x'; MAX_BYTES + 1], 0);
        assert_eq!(sizes(&bodies), (0, 0));
    }
}
