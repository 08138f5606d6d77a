//! Tells the service manager whether the required tasks run, and whether the threads that serve requests do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sd_notify::NotifyState;

use super::supervisor::Supervisor;
use crate::proxy::progress::WorkerProgress;
use crate::proxy::state::{ProxyState, STALLED};

/// The interval at which tasks and threads are checked.
const INTERVAL: Duration = Duration::from_millis(500);
/// The longest time for which no thread may run a task. Our choice: requests of large bodies take a tenth of a second.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts the thread that watches tasks and threads. It sends the signs of life that systemd asks for (`WatchdogSec`).
/// When a task has ended, it reports that once and ends, and the service manager acts as its unit says. While the threads
/// are stuck it sends none, so the service manager acts when its time is over.
pub(super) fn start(state: Arc<ProxyState>, manager: Supervisor) {
    let watch = move || {
        let due = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        let pause = due.map_or(INTERVAL, |due| due.min(INTERVAL));
        let timeout = due.map_or(STALL_TIMEOUT, |due| due.min(STALL_TIMEOUT));
        let mut stall = StallDetector::new(state.progress.clone(), timeout);
        let mut told: Option<Instant> = None;
        // Another process that took the place of this one has its own watchdog.
        while !manager.is_silent() {
            // Tasks end when the process stops, but only after it stopped accepting requests.
            let is_serving = state.accepts_requests();
            if let Some(name) = state.tasks.find_ended().filter(|_| is_serving) {
                log::error!("the task `{name}` has ended: this process has to be restarted");
                let status = format!("the task {name} has ended");
                let states = [NotifyState::Status(&status), NotifyState::WatchdogTrigger];
                return manager.notify(&states);
            }
            let is_stalled = is_serving && stall.look(pause, &manager);
            let is_due = due.is_some_and(|due| told.is_none_or(|told| told.elapsed() >= due));
            if is_due && !is_stalled {
                manager.notify(&[NotifyState::Watchdog]);
                told = Some(Instant::now());
            }
            std::thread::sleep(pause);
        }
    };
    // Without the thread systemd restarts the process.
    _ = std::thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(watch);
}

/// Finds that the threads that serve requests are stuck: their rounds stand still for longer than the timeout. Time counts
/// by looks and not by the clock, so that a process which was stopped as a whole, like a frozen container, has time to go on.
struct StallDetector {
    progress: WorkerProgress,
    timeout: Duration,
    /// The rounds at the last look.
    rounds: u64,
    /// How long they have stood still.
    still: Duration,
}

impl StallDetector {
    fn new(progress: WorkerProgress, timeout: Duration) -> Self {
        Self {
            rounds: progress.rounds(),
            progress,
            timeout,
            still: Duration::ZERO,
        }
    }

    /// Looks, a pause after the last look, and returns whether the threads are stuck. Reports when that changes.
    fn look(&mut self, pause: Duration, manager: &Supervisor) -> bool {
        let rounds = self.progress.rounds();
        self.still = if rounds == self.rounds {
            self.still.saturating_add(pause)
        } else {
            Duration::ZERO
        };
        self.rounds = rounds;
        let is_stalled = self.still >= self.timeout;
        if is_stalled != self.progress.is_stalled() {
            self.progress.set_stalled(is_stalled);
            let status = if is_stalled {
                log::error!("{STALLED}: unless they go on, this process has to be restarted");
                STALLED
            } else {
                log::warn!("the threads that serve requests run again");
                ""
            };
            manager.notify(&[NotifyState::Status(status)]);
        }
        is_stalled
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::mpsc;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(500);

    fn detector(progress: &WorkerProgress) -> StallDetector {
        StallDetector::new(progress.clone(), Duration::from_secs(2))
    }

    /// Looks until the answer is this one.
    fn look_until(stall: &mut StallDetector, expected: bool) {
        let began = Instant::now();
        while stall.look(PAUSE, &Supervisor::default()) != expected {
            assert!(began.elapsed() < Duration::from_secs(30));
            // A few rounds of the runtime pass between two looks, as in the process.
            std::thread::sleep(Duration::from_millis(600));
        }
    }

    #[test]
    fn threads_are_stuck_once_their_rounds_stand_still_for_the_timeout() {
        let progress = WorkerProgress::default();
        let mut stall = detector(&progress);
        let seen: Vec<bool> = (0..4)
            .map(|_| stall.look(PAUSE, &Supervisor::default()))
            .collect();
        assert_eq!(seen, [false, false, false, true]);
        assert!(progress.is_stalled());
    }

    #[test]
    fn a_runtime_whose_threads_all_wait_is_stuck_until_one_of_them_goes_on() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .unwrap();
        let progress = WorkerProgress::default();
        runtime.spawn(progress.clone().count_rounds());
        let mut stall = detector(&progress);
        look_until(&mut stall, false);
        let (blocked, releases): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let ((began, is_blocked), (release, released)) =
                    (mpsc::channel(), mpsc::channel::<()>());
                runtime.spawn(async move {
                    began.send(()).unwrap();
                    // A thread that waits like this one serves nobody.
                    _ = released.recv();
                });
                (is_blocked, release)
            })
            .unzip();
        blocked.iter().for_each(|it| it.recv().unwrap());
        look_until(&mut stall, true);
        let mut releases = releases.into_iter();
        drop(releases.next());
        look_until(&mut stall, false);
        assert!(!progress.is_stalled());
    }
}
