//! What a running process waits for, and how it ends: by a signal, or because another process has taken its place.

use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT};
use signal_hook::iterator::Signals;

use super::handover::peer::Peer;
use super::running::{Running, StopMode};
use super::supervisor::Supervisor;
use crate::config::Server;

/// The interval at which a stopping process checks whether the last request has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long idle connections stay open behind the last request, if no other process serves: a request may be on its way.
const IDLE_TIMEOUT: Duration = Duration::from_millis(500);
/// The same while another process serves, so that nobody waits for this one.
const IDLE_TIMEOUT_BESIDE_SUCCESSOR: Duration = Duration::from_secs(5);
/// How long a drain takes at least: a connection that was accepted last is not counted yet, and the command that asked for an
/// upgrade gets its answer.
const MIN_DRAIN: Duration = Duration::from_millis(200);
/// How long streams may take for their error event after the grace period. They notice its end within two seconds.
pub(super) const CUT_TIMEOUT: Duration = Duration::from_secs(5);

/// The tasks that end what they have claimed before they end.
const WORKERS: [&str; 2] = ["videos", "responses"];

/// What happens to a running process.
pub(super) enum Event {
    Reload,
    /// Stop once what runs has ended.
    Stop,
    StopNow,
    /// Another process serves in place of this one.
    HandedOver {
        pid: u32,
        peer: Arc<Peer>,
    },
}

/// The events of the process, of signals and of others.
pub(super) struct Events {
    pub(super) sender: mpsc::Sender<Event>,
    receiver: mpsc::Receiver<Event>,
}

/// How the process ends.
struct DrainTimes {
    /// How long it accepts connections after a signal.
    delay: Duration,
    grace: Duration,
}

impl DrainTimes {
    fn new(server: &Server) -> Self {
        Self {
            delay: server.drain_delay,
            grace: server.grace_period,
        }
    }
}

impl Events {
    /// Passes signals on from here on.
    ///
    /// Errors: the thread for it cannot be started.
    pub(super) fn of_signals(mut signals: Signals) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let of_signals = sender.clone();
        let pass = move || {
            for signal in signals.forever() {
                let event = match signal {
                    SIGHUP => Event::Reload,
                    SIGINT => Event::StopNow,
                    _ => Event::Stop,
                };
                if of_signals.send(event).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned());
        thread.spawn(pass)?;
        Ok(Self { sender, receiver })
    }

    /// Returns whether another request to stop has come.
    fn stops_again(&self) -> bool {
        let mut events = self.receiver.try_iter();
        events.any(|event| matches!(event, Event::Stop | Event::StopNow))
    }

    /// Ends the process at the next request to stop, even if background services still run. Charges and events that could not
    /// be stored or sent are on disk for the next start.
    fn exit_at_next_stop(self) {
        let wait = move || {
            let mut events = self.receiver.iter();
            if events.any(|event| matches!(event, Event::Stop | Event::StopNow)) {
                std::process::exit(0)
            }
        };
        // Without the thread the process ends a few seconds later.
        _ = std::thread::Builder::new()
            .name("last-signal".to_owned())
            .spawn(wait);
    }
}

/// Serves until an event ends the process. `predecessor` is the process whose place this one took.
pub(super) fn serve_until_stopped(
    mut running: Running,
    events: Events,
    manager: &Supervisor,
    predecessor: Option<&Arc<Peer>>,
) -> ExitCode {
    for event in &events.receiver {
        match event {
            Event::Reload => running.reloader.request_reload(),
            Event::StopNow => {
                running.stop(StopMode::Now);
                break;
            }
            Event::Stop => {
                manager.notify(&[NotifyState::Stopping]);
                let times = DrainTimes::new(&running.reloader.server());
                drain(&running, &events, &times);
                wait_for_predecessor(predecessor, &events, times.grace);
                break;
            }
            Event::HandedOver { pid, peer } => {
                // The unit listens to the main process alone, so this one has to name the next. The first sign of life
                // of that one was not heard yet, and its second comes late: so this one gives one more.
                manager.notify(&[NotifyState::MainPid(pid), NotifyState::Watchdog]);
                manager.fall_silent();
                log::warn!("process {pid} serves; this process ends what it serves");
                let times = DrainTimes::new(&running.reloader.server());
                drain_beside(&running, &events, (&times, peer));
                break;
            }
        }
    }
    events.exit_at_next_stop();
    running.end();
    running.app.proxy.access_log.flush();
    // `running` is not dropped: Pingora would sleep for the whole grace period even without a request in flight.
    std::process::exit(0)
}

/// Fails `/readyz`, goes on accepting for the delay, and then lets end what runs. Another request to stop ends the wait.
fn drain(running: &Running, events: &Events, times: &DrainTimes) {
    running.fail_readiness();
    running.app.proxy.drain.begin();
    let until = Instant::now() + times.delay;
    while Instant::now() < until {
        if events.stops_again() {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    running.stop(StopMode::Gracefully);
    wait_for_requests(running, events, (times.grace, IDLE_TIMEOUT));
}

/// Lets end what runs while another process serves.
fn drain_beside(running: &Running, events: &Events, (times, _peer): (&DrainTimes, Arc<Peer>)) {
    running.app.proxy.drain.begin();
    running.reloader.close_listeners();
    running.stop(StopMode::Gracefully);
    wait_for_requests(
        running,
        events,
        (times.grace, IDLE_TIMEOUT_BESIDE_SUCCESSOR),
    );
}

/// Waits until no request and no job is running, and idle connections have had their time. At the end of the grace period
/// what runs is cut.
fn wait_for_requests(
    running: &Running,
    events: &Events,
    (grace, idle_timeout): (Duration, Duration),
) {
    let began = Instant::now();
    let cut = began + grace;
    running.app.proxy.drain.set_deadline(cut.into());
    running.reloader.stop_claiming();
    let mut busy_until = began;
    while Instant::now() < cut + CUT_TIMEOUT && !events.stops_again() {
        let (metrics, tasks) = (&running.app.proxy.metrics, &running.app.proxy.tasks);
        let is_working = WORKERS.into_iter().any(|name| tasks.is_running(name));
        let is_busy = metrics.in_flight.get() > 0 || is_working;
        if is_busy {
            busy_until = Instant::now();
        }
        let is_quiet = metrics.connections.get() == 0 || busy_until.elapsed() >= idle_timeout;
        if !is_busy && is_quiet && began.elapsed() >= MIN_DRAIN {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits for the process before this one, which the service manager would kill once this one has ended.
fn wait_for_predecessor(predecessor: Option<&Arc<Peer>>, events: &Events, grace: Duration) {
    let until = Instant::now() + grace;
    let Some(predecessor) = predecessor else {
        return;
    };
    while !predecessor.has_ended() && Instant::now() < until && !events.stops_again() {
        std::thread::sleep(POLL_INTERVAL);
    }
}
