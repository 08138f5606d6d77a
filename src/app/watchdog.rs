//! Tells the service manager whether the required tasks run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sd_notify::NotifyState;

use super::supervisor::Supervisor;
use crate::proxy::state::ProxyState;

/// The interval at which the tasks are checked.
const INTERVAL: Duration = Duration::from_millis(500);

/// Starts the thread that watches the tasks. It sends the signs of life that systemd asks for (`WatchdogSec`), until
/// a task has ended. Then it reports that once, and the service manager acts as its unit says.
pub(super) fn start(state: Arc<ProxyState>, manager: Supervisor) {
    let watch = move || {
        let due = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        let mut told: Option<Instant> = None;
        // Another process that took the place of this one has its own watchdog.
        while !manager.is_silent() {
            // Tasks end when the process stops, but only after it stopped accepting requests.
            let ended = state.tasks.find_ended();
            if let Some(name) = ended.filter(|_| state.accepts_requests()) {
                log::error!("the task `{name}` has ended: this process has to be restarted");
                let status = format!("the task {name} has ended");
                let states = [NotifyState::Status(&status), NotifyState::WatchdogTrigger];
                return manager.notify(&states);
            }
            if due.is_some_and(|due| told.is_none_or(|told| told.elapsed() >= due)) {
                manager.notify(&[NotifyState::Watchdog]);
                told = Some(Instant::now());
            }
            std::thread::sleep(due.map_or(INTERVAL, |due| due.min(INTERVAL)));
        }
    };
    // Without the thread systemd restarts the process.
    _ = std::thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(watch);
}
