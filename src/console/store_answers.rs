//! What views ask the store: on its runtime, and the long answers kept for a while.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::recent_answers::{DatedAnswer, RecentAnswers};
use super::state::{Console, STORE_TIMEOUT};
use crate::store::ledger::{NearLimit, SpendQuery, Spending};
use crate::store::{Store, StoreError};

/// How long a page waits for a long answer before it is shown without it. It asks for the rest by itself then.
const PAGE_PATIENCE: Duration = Duration::from_millis(150);

/// The answers that are kept.
#[derive(Default)]
pub(super) struct StoreAnswers {
    spending: RecentAnswers<SpendQuery, Spending>,
    nearest: RecentAnswers<usize, Vec<NearLimit>>,
}

/// How long one waits for an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WaitFor {
    /// A page shows what it has.
    Page,
    /// Whoever asks wants this alone.
    Answer,
}

/// An answer; `None`: it has not come yet, and does so in the background.
pub(super) type LongAnswer<V> = Result<Option<DatedAnswer<V>>, StoreError>;

impl Console {
    /// Waits for work with the store, which runs in the background and to its end, whether or not the person waits for it.
    ///
    /// Errors: those of the work; it takes longer than [`STORE_TIMEOUT`].
    pub(super) async fn with_store<T, F>(
        &self,
        work: impl FnOnce(Store) -> F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let work = work(self.store().clone());
        match timeout(STORE_TIMEOUT, self.background().spawn(work)).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(StoreError::Database(sqlx::Error::WorkerCrashed)),
            Err(_) => Err(StoreError::TimedOut),
        }
    }

    /// Returns what was spent. The answer is kept for a while.
    pub(super) async fn spending(&self, asked: &SpendQuery, wait: WaitFor) -> LongAnswer<Spending> {
        let (answers, store, asked) = (
            Arc::clone(&self.answers),
            self.store().clone(),
            asked.clone(),
        );
        let work = async move {
            let read = store.spending(&asked);
            answers.spending.answer(asked.clone(), read).await
        };
        self.wait(work, wait).await
    }

    /// Returns the limits that are nearest to their end. The answer is kept for a while.
    pub(super) async fn nearest_limits(
        &self,
        (now_ms, count): (i64, usize),
        wait: WaitFor,
    ) -> LongAnswer<Vec<NearLimit>> {
        let (answers, store) = (Arc::clone(&self.answers), self.store().clone());
        let plans = self.app().models.plans;
        let work = async move {
            let read = store.nearest_limits(&plans, now_ms, count);
            answers.nearest.answer(count, read).await
        };
        self.wait(work, wait).await
    }

    /// Waits for an answer, which comes in the background whether or not one waits for it.
    async fn wait<V: Send + Sync + 'static>(
        &self,
        work: impl Future<Output = Result<DatedAnswer<V>, StoreError>> + Send + 'static,
        wait: WaitFor,
    ) -> LongAnswer<V> {
        let time = match wait {
            WaitFor::Page => PAGE_PATIENCE,
            WaitFor::Answer => STORE_TIMEOUT,
        };
        match (timeout(time, self.background().spawn(work)).await, wait) {
            (Ok(Ok(done)), _) => done.map(Some),
            (Ok(Err(_)), _) => Err(StoreError::Database(sqlx::Error::WorkerCrashed)),
            (Err(_), WaitFor::Page) => Ok(None),
            (Err(_), WaitFor::Answer) => Err(StoreError::TimedOut),
        }
    }
}
