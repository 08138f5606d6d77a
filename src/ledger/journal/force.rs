//! The background thread: it forces lanes to the disk, creates segments ahead, and deletes those that are stored.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use filters::ledger::journal::SegmentId;

use super::super::error::{LedgerError, file_error};
use super::lane::SpareState;
use super::segment::{Folder, Spare, delete_folder};
use super::{Durability, Shared};

/// The interval between two forces. With the force itself, a record is on the disk within 20 ms.
const FORCE_INTERVAL: Duration = Duration::from_millis(10);
/// After this time without a record the thread sleeps until the next one.
const ACTIVE_PERIOD: Duration = Duration::from_secs(1);
/// The maximum sleep.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between two tries if the journal cannot be written.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// See the module.
pub(super) struct Forcer {
    shared: Arc<Shared>,
    folder: Folder,
    /// Requests segments, by lane and number.
    requests: mpsc::Sender<(usize, u32)>,
    /// Creates segments on a thread of its own, because that takes long.
    maker: JoinHandle<()>,
    last_active: Instant,
    last_request: Instant,
}

impl Forcer {
    /// Starts the thread that creates segments.
    pub(super) fn new(shared: Arc<Shared>, folder: Folder) -> Result<Self, LedgerError> {
        let (requests, wanted) = mpsc::channel::<(usize, u32)>();
        let (lanes, path, owner) = (Arc::clone(&shared), folder.path.clone(), folder.owner);
        let make = move || {
            for (lane, number) in wanted {
                let id = SegmentId {
                    owner,
                    lane: u32::try_from(lane).unwrap_or(u32::MAX),
                    number,
                };
                let spare = match Spare::create(&path, id) {
                    Ok(spare) => SpareState::Ready(spare),
                    Err(error) => SpareState::Failed(error),
                };
                if let Some(lane) = lanes.lanes.get(lane) {
                    lane.lock().spare = spare;
                }
            }
        };
        let maker = std::thread::Builder::new()
            .name("journal-spare".to_owned())
            .spawn(make)
            .map_err(file_error(&folder.path))?;
        let now = Instant::now();
        let mut forcer = Self {
            shared,
            folder,
            requests,
            maker,
            last_active: now,
            last_request: now,
        };
        forcer.request_spares();
        Ok(forcer)
    }

    /// Runs until the journal is closed.
    pub(super) fn run(mut self) {
        loop {
            let is_stopping = self.shared.is_stopping.load(Ordering::Relaxed);
            self.force_all();
            self.clean();
            self.report();
            if is_stopping {
                break;
            }
            self.sleep();
        }
        self.end();
    }

    /// Forces all lanes at the same time. The disk works while requests go on writing.
    fn force_all(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut tasks = Vec::new();
        for lane in &shared.lanes {
            let mut state = lane.lock();
            if state.is_active() {
                self.last_active = Instant::now();
                state.write_backlog(shared.durability);
            }
            if let Some(task) = state.begin_force() {
                tasks.push((lane, task));
            }
        }
        let forced = at_once(&tasks, |(_, task)| {
            task.files.iter().try_for_each(|file| file.sync_data())
        });
        for ((lane, task), forced) in tasks.iter().zip(forced) {
            let mut state = lane.lock();
            match forced {
                Ok(()) => state.end_force(task),
                Err(error) => state.refuse_force(error),
            }
        }
    }

    /// Deletes stored segments and requests new ones.
    fn clean(&mut self) {
        let shared = &self.shared;
        let mut bytes = 0;
        let mut started_ms = i64::MAX;
        for lane in &shared.lanes {
            let mut state = lane.lock();
            bytes += state.clean(shared.max_segment_age);
            started_ms = started_ms.min(state.started_ms());
        }
        shared.bytes.store(bytes, Ordering::Relaxed);
        shared.started_ms.store(started_ms, Ordering::Relaxed);
        self.request_spares();
    }

    fn request_spares(&mut self) {
        for (number, lane) in self.shared.lanes.iter().enumerate() {
            let mut state = lane.lock();
            let has_failed = matches!(state.spare, SpareState::Failed(_));
            // Freed space is noticed by another try.
            if has_failed && self.last_request.elapsed() < RETRY_INTERVAL {
                continue;
            }
            if let Some(segment) = state.request_spare() {
                self.last_request = Instant::now();
                // The maker lives as long as this sender.
                _ = self.requests.send((number, segment));
            }
        }
    }

    /// Records whether the journal can be written. It logs only when that changes.
    fn report(&self) {
        let reason = self
            .shared
            .lanes
            .iter()
            .find_map(|lane| lane.lock().stuck_reason());
        let was_stuck = self
            .shared
            .is_stuck
            .swap(reason.is_some(), Ordering::Relaxed);
        match reason {
            Some(reason) if !was_stuck => {
                log::error!("the journal cannot be written: {reason}; calls on credit are refused");
            }
            None if was_stuck => log::warn!("the journal can be written again"),
            _ => {}
        }
    }

    fn sleep(&self) {
        let shared = &self.shared;
        let is_idle = self.last_active.elapsed() > ACTIVE_PERIOD;
        if shared.durability == Durability::Process && !is_idle {
            return std::thread::park_timeout(FORCE_INTERVAL);
        }
        // A record that is written before this store is seen by the look behind it; one that is written later wakes.
        shared.is_asleep.store(true, Ordering::SeqCst);
        let has_work = shared.lanes.iter().any(|lane| lane.lock().is_active());
        let is_stuck = shared.is_stuck.load(Ordering::Relaxed);
        if has_work && !is_stuck {
            shared.is_asleep.store(false, Ordering::Relaxed);
            return;
        }
        let timeout = match (is_stuck, is_idle) {
            (true, _) => RETRY_INTERVAL,
            (false, false) => FORCE_INTERVAL,
            (false, true) => IDLE_TIMEOUT,
        };
        std::thread::park_timeout(timeout);
        shared.is_asleep.store(false, Ordering::Relaxed);
    }

    /// Ends the maker, and deletes the folder if all calls are stored.
    fn end(self) {
        // A running maker would add a segment to the folder during its deletion.
        drop(self.requests);
        _ = self.maker.join();
        if self.shared.is_done() {
            delete_folder(&self.folder.path);
        }
    }
}

/// Does work for all items at the same time, as a slow disk takes as long for one as for all of them: for the first on this
/// thread, for each other one on its own. Returns the results in the order of the items.
fn at_once<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let Some((first, others)) = items.split_first() else {
        return Vec::new();
    };
    let work = &work;
    std::thread::scope(|scope| {
        let start = |item| {
            let thread = std::thread::Builder::new().name("journal-force".to_owned());
            (item, thread.spawn_scoped(scope, move || work(item)).ok())
        };
        let started: Vec<_> = others.iter().map(start).collect();
        let mut results = vec![work(first)];
        // Without a thread of its own, the work is done here.
        results.extend(started.into_iter().map(|(item, thread)| {
            let done = thread.and_then(|thread| thread.join().ok());
            done.unwrap_or_else(|| work(item))
        }));
        results
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn all_lanes_are_forced_at_the_same_time() {
        let together = Barrier::new(8);
        let lanes: Vec<usize> = (0..8).collect();
        // None of them ends before all have begun.
        let forced = at_once(&lanes, |lane| {
            together.wait();
            *lane
        });
        assert_eq!(forced, lanes);
        assert_eq!(at_once(&[7], |lane| *lane), [7]);
        assert!(at_once(&[], |lane: &usize| *lane).is_empty());
    }
}
