//! Runs the gateway as a process: starts it, prints its banner, handles signals and stops it.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::app::boot::BootError;
use crate::app::openapi::curl::{self, ApiKey, Keys};
use crate::app::watchdog;
use crate::app::{Refused, Reloaded, Reloader, Running, StopMode, boot};
use crate::config::{LoadedConfig, LogFormat};
use crate::telemetry::logging;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::text_lines::TextLines;

/// The interval at which a stopping process checks whether the last request has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The operations whose command lines the first start prints, one per product.
const SHOWN_OPERATIONS: [&str; 3] = ["chat_completions", "decide", "graph_post_content_v2"];

/// Runs the gateway until a signal stops it.
///
/// Exit codes: 0 after a stop, 1 if the gateway could not start, 78 if the configuration has to change.
pub fn serve(loaded: LoadedConfig) -> ExitCode {
    let mut err = std::io::stderr();
    let off = loaded.config.off_providers.len();
    let store = mask_password(&loaded.config.store.url);
    let providers: Vec<String> = loaded
        .config
        .providers
        .iter()
        .map(|provider| provider.name.clone())
        .collect();
    let keys = Keys::from_sandboxes(&loaded.config);
    let scheme = match loaded.config.listen.tls {
        Some(_) => "https",
        None => "http",
    };
    let grace = loaded.config.server.grace_period;
    let level = loaded.config.log.level.into();
    let format = loaded.config.log.format;
    // Signals are caught from here on. A signal during the start stops the process after the start.
    let signals = match Signals::new([SIGTERM, SIGINT, SIGHUP]) {
        Ok(signals) => signals,
        Err(error) => return print_error(&mut err, &format!("signals: {error}")),
    };
    // Writing beyond the file size limit of the process sends a signal. It must not end the process, because the
    // writer handles the error.
    let is_over_limit = Arc::new(AtomicBool::new(false));
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, is_over_limit) {
        return print_error(&mut err, &format!("signals: {error}"));
    }
    let access_log = |metrics: &Metrics| {
        let access_log = AccessLog::start(log_output(format), metrics.log_dropped.clone())?;
        logging::install(&access_log, level);
        Ok(access_log)
    };
    let running = match boot(loaded, access_log) {
        Ok(running) => running,
        Err(BootError {
            message,
            is_configuration,
        }) => {
            print_error(&mut err, &message);
            return ExitCode::from(if is_configuration { 78 } else { 1 });
        }
    };
    // The gateway serves even if stderr is closed.
    let banner = banner(&running, scheme, &store, (&providers, off), keys);
    _ = err.write_all(banner.as_bytes());
    notify_service_manager(&[sd_notify::NotifyState::Ready]);
    watchdog::start(running.app.proxy.clone());
    wait_for_signal(running, signals, grace)
}

/// Returns the output of the log, stdout, in this form.
fn log_output(format: LogFormat) -> Box<dyn Write + Send> {
    let stdout = std::io::stdout();
    match format {
        LogFormat::Auto if stdout.is_terminal() => Box::new(TextLines::new(stdout)),
        LogFormat::Text => Box::new(TextLines::new(stdout)),
        LogFormat::Auto | LogFormat::Json => Box::new(stdout),
    }
}

fn print_error(err: &mut impl Write, message: &str) -> ExitCode {
    _ = writeln!(err, "weirgate: {message}");
    ExitCode::FAILURE
}

/// Notifies the service manager, if there is one.
pub(super) fn notify_service_manager(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        ::log::warn!("the service manager was not told: {error}");
    }
}

fn wait_for_signal(mut running: Running, mut signals: Signals, grace: Duration) -> ExitCode {
    for signal in signals.forever() {
        match signal {
            SIGHUP => reload(&running.reloader),
            SIGINT => {
                running.stop(StopMode::Now);
                break;
            }
            _ => {
                notify_service_manager(&[sd_notify::NotifyState::Stopping]);
                running.stop(StopMode::Gracefully);
                wait_for_requests(&running, &mut signals, grace);
                break;
            }
        }
    }
    exit_at_next_signal(signals);
    running.end();
    running.app.proxy.access_log.flush();
    // `running` is not dropped: Pingora would sleep for the whole grace period even without a request in flight.
    std::process::exit(0)
}

/// Reloads the configuration, and logs the outcome.
fn reload(reloader: &Reloader) {
    match reloader.reload() {
        Ok(Reloaded::Unchanged) => ::log::info!("the configuration is the same as before"),
        Ok(Reloaded::Changed) => ::log::warn!("the configuration is reloaded"),
        Err(Refused(problems)) => {
            for problem in problems {
                ::log::error!("the configuration in force stays: {}", problem.trim_end());
            }
        }
    }
}

/// Waits until no request is in flight, but not longer than the grace period. Another signal ends the wait.
fn wait_for_requests(running: &Running, signals: &mut Signals, grace: Duration) {
    let deadline = Instant::now() + grace;
    while running.app.proxy.metrics.in_flight.get() > 0 && Instant::now() < deadline {
        if signals.pending().any(is_stop) {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Ends the process at the next signal, even if background services still run. Charges and events that could not be
/// stored or sent are on disk for the next start.
fn exit_at_next_signal(mut signals: Signals) {
    let wait = move || {
        if signals.forever().any(is_stop) {
            std::process::exit(0)
        }
    };
    // Without the thread the process ends a few seconds later.
    _ = std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait);
}

fn is_stop(signal: i32) -> bool {
    signal != SIGHUP
}

/// Returns the store's URL without its password.
fn mask_password(url: &str) -> String {
    crate::store::StoreUrl::parse(url).map_or_else(|_| "?".to_owned(), |url| url.redacted())
}

/// Returns the text that a start prints on stderr, of at most 12 lines. A start that created a key shows the key and
/// a command line for each of [`SHOWN_OPERATIONS`].
///
/// Source: interface "First run".
fn banner(
    running: &Running,
    scheme: &str,
    store: &str,
    (providers, off): (&[String], usize),
    keys: Keys,
) -> String {
    let base = format!("{scheme}://{}", running.public);
    let mut out = format!(
        "weirgate {} listens on {base} (admin http://{})\n",
        env!("CARGO_PKG_VERSION"),
        running.admin,
    );
    out.push_str(&format!("store: {store}\n"));
    let providers = if providers.is_empty() {
        "none".to_owned()
    } else {
        providers.join(", ")
    };
    let off = if off > 0 {
        format!(" ({off} more are off: `weirgate check` tells why)")
    } else {
        String::new()
    };
    out.push_str(&format!("providers: {providers}{off}\n"));
    if let Some(first) = &running.first_run {
        let key = first.key.reveal();
        let organization = &first.organization;
        out.push_str(&format!(
            "organization: {organization}; its API key, shown this once:\n{key}\nTry it:\n"
        ));
        let keys = Keys {
            api: Some(ApiKey::Text(key.to_owned())),
            ..keys
        };
        for line in example_commands(running, &base, &keys) {
            out.push_str(&line);
            out.push('\n');
        }
        out.push_str("All of it: `weirgate examples`\n");
    }
    out
}

/// Returns a command line for each of [`SHOWN_OPERATIONS`] that the process serves.
fn example_commands(running: &Running, base: &str, keys: &Keys) -> Vec<String> {
    let catalog = running.app.models.planner.catalog();
    let serves = |model: &str| catalog.find(model).is_some();
    let mut commands = curl::commands(running.app.openapi.json(), base, keys, serves);
    commands.retain(|command| SHOWN_OPERATIONS.contains(&command.operation.as_str()));
    commands.into_iter().map(|command| command.line).collect()
}
