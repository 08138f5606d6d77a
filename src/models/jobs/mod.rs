//! Work on the jobs of the store, whatever they make.
//!
//! Processes with one store share the work. A process claims a job to work on it, and a claim ends with its time or
//! its process, so another process soon takes over. The result does not depend on the process, because the store ends
//! a job once.

mod lane;

pub use lane::WorkLane;

use crate::ledger::Ledger;
use crate::store::ledger::{DueJobs, JobKind, StoredJob};

/// The interval, in ticks of workers, at which older rows are deleted.
pub const CLEAN_TICKS: u64 = 7_200;

/// Claims jobs with due work, for so long. Returns none while the store does not respond.
pub async fn claim(ledger: &Ledger, kind: JobKind, room: DueJobs, claim_ms: i64) -> Vec<StoredJob> {
    let now_ms = ledger.now_ms();
    let claimed = ledger.with_store(|store, process| async move {
        // Almost always nothing is due, and this check writes nothing.
        match store.has_due_job(kind, now_ms, room.is_open).await? {
            true => {
                let times = (now_ms, now_ms + claim_ms);
                store.claim_jobs(kind, &process, times, &room).await
            }
            false => Ok(Vec::new()),
        }
    });
    claimed.await.unwrap_or_default()
}

/// Writes the state of a claimed job, and the time at which it is due again. If this fails, the claim ends with its time, and the
/// job is due again.
pub async fn postpone(ledger: &Ledger, job: &StoredJob, state: String, due_ms: i64) {
    let (kind, id) = (job.kind, job.id);
    let written = ledger.with_store(|store, process| async move {
        let written = store.postpone_job(&process, (kind, &id), (&state, due_ms));
        written.await
    });
    _ = written.await;
}
