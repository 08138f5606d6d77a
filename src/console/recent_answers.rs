//! Answers of the store that are kept for a while: many look at one page, and a sum of a month may take the database a second.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::store::StoreError;

/// The number of answers that are kept. Another one replaces the oldest.
const MAX_KEPT: usize = 32;
/// How many times as long as it took an answer is kept. So whoever looks, the database works for looks a twentieth of the time.
const KEPT_TIMES: u32 = 20;

/// The answers to questions of one kind.
pub(super) struct RecentAnswers<K, V> {
    kept: Mutex<Vec<RecentAnswer<K, V>>>,
    /// Held by the one who asks the store: nobody asks the same beside it, and all looks together take one connection.
    turn: tokio::sync::Mutex<()>,
}

struct RecentAnswer<K, V> {
    key: K,
    answer: DatedAnswer<V>,
    until: Instant,
}

/// An answer, and when the store gave it.
pub(super) struct DatedAnswer<V> {
    pub(super) answer: Arc<V>,
    /// Units: unix milliseconds.
    pub(super) at_ms: i64,
}

impl<V> Clone for DatedAnswer<V> {
    fn clone(&self) -> Self {
        Self {
            answer: Arc::clone(&self.answer),
            at_ms: self.at_ms,
        }
    }
}

impl<K, V> Default for RecentAnswers<K, V> {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }
}

impl<K: Eq, V> RecentAnswers<K, V> {
    /// Returns the answer that is kept, or else that of the store. Failures are not kept.
    pub(super) async fn answer(
        &self,
        key: K,
        read: impl Future<Output = Result<V, StoreError>>,
    ) -> Result<DatedAnswer<V>, StoreError> {
        if let Some(answer) = self.find(&key) {
            return Ok(answer);
        }
        let _turn = self.turn.lock().await;
        if let Some(answer) = self.find(&key) {
            return Ok(answer);
        }
        let began = Instant::now();
        let answer = DatedAnswer {
            answer: Arc::new(read.await?),
            at_ms: Timestamp::now().as_millisecond(),
        };
        self.keep(key, answer.clone(), began.elapsed());
        Ok(answer)
    }

    fn find(&self, key: &K) -> Option<DatedAnswer<V>> {
        let (kept, now) = (self.lock(), Instant::now());
        let mut matching = kept.iter().filter(|it| it.key == *key && it.until > now);
        matching.next().map(|it| it.answer.clone())
    }

    fn keep(&self, key: K, answer: DatedAnswer<V>, took: Duration) {
        let mut kept = self.lock();
        let now = Instant::now();
        kept.retain(|it| it.key != key && it.until > now);
        if kept.len() >= MAX_KEPT {
            kept.remove(0);
        }
        kept.push(RecentAnswer {
            key,
            answer,
            until: now + took.saturating_mul(KEPT_TIMES),
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecentAnswer<K, V>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    async fn slow(count: &AtomicU32) -> Result<u32, StoreError> {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(count.fetch_add(1, Ordering::Relaxed))
    }

    #[tokio::test]
    async fn those_who_ask_at_once_get_one_answer() {
        let (kept, count) = (RecentAnswers::default(), AtomicU32::new(7));
        let (a, b) = tokio::join!(
            kept.answer("q", slow(&count)),
            kept.answer("q", slow(&count))
        );
        assert_eq!((*a.unwrap().answer, *b.unwrap().answer), (7, 7));
        let other = kept.answer("r", slow(&count)).await.unwrap();
        assert_eq!(*other.answer, 8);
    }

    #[tokio::test]
    async fn a_failure_is_asked_again_and_a_quick_answer_too() {
        let kept = RecentAnswers::default();
        let failed = kept.answer("q", async { Err::<u32, _>(StoreError::TimedOut) });
        assert!(failed.await.is_err());
        assert_eq!(*kept.answer("q", async { Ok(1) }).await.unwrap().answer, 1);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(*kept.answer("q", async { Ok(2) }).await.unwrap().answer, 2);
    }

    #[test]
    fn the_number_of_answers_is_bounded() {
        let kept = RecentAnswers::default();
        for key in 0..100 {
            let answer = DatedAnswer {
                answer: Arc::new(key),
                at_ms: 0,
            };
            kept.keep(key, answer, Duration::from_secs(9));
        }
        assert_eq!(kept.lock().len(), MAX_KEPT);
        assert!(kept.find(&99).is_some() && kept.find(&0).is_none());
    }
}
