//! The process: started, told about, stopped.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::app::boot::BootError;
use crate::app::{Running, StopMode, boot};
use crate::config::{Config, GraphUpstream, LoadedConfig};
use crate::telemetry::logging;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;

/// How often a stopping process looks whether the last request has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the gateway until it is told to stop.
///
/// Exit codes: 0 stopped, 1 could not start, 78 the configuration has to change.
pub fn serve(loaded: LoadedConfig) -> ExitCode {
    let mut err = std::io::stderr();
    let off = loaded.config.off_providers.len();
    let store = shown_store(&loaded.config.store.url);
    let providers: Vec<String> = loaded
        .config
        .providers
        .iter()
        .map(|provider| provider.name.clone())
        .collect();
    let query_key = query_key(&loaded.config);
    let grace = loaded.config.server.grace_period;
    let level = loaded.config.log.level;
    // Signals are taken from here on: one that comes while starting stops the process once it has started.
    let signals = match Signals::new([SIGTERM, SIGINT, SIGHUP]) {
        Ok(signals) => signals,
        Err(error) => return tell(&mut err, &format!("signals: {error}")),
    };
    // Beyond a limit of its size a file cannot be written, which is dealt with there: no reason to end.
    let is_over = Arc::new(AtomicBool::new(false));
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, is_over) {
        return tell(&mut err, &format!("signals: {error}"));
    }
    let lines = |metrics: &Metrics| {
        let lines = AccessLog::to(std::io::stdout(), metrics.log_dropped.clone())?;
        logging::install(&lines, level);
        Ok(lines)
    };
    let running = match boot(loaded.config, lines) {
        Ok(running) => running,
        Err(BootError {
            message,
            is_configuration,
        }) => {
            tell(&mut err, &message);
            return ExitCode::from(if is_configuration { 78 } else { 1 });
        }
    };
    // A closed stderr is no reason not to serve.
    _ = err.write_all(banner(&running, &store, &providers, off, query_key.as_deref()).as_bytes());
    notify(&[sd_notify::NotifyState::Ready]);
    wait(running, signals, grace)
}

fn tell(err: &mut impl Write, message: &str) -> ExitCode {
    _ = writeln!(err, "weirgate: {message}");
    ExitCode::FAILURE
}

/// Tells the service manager, where there is one.
fn notify(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        ::log::warn!("the service manager was not told: {error}");
    }
}

fn wait(mut running: Running, mut signals: Signals, grace: Duration) -> ExitCode {
    for signal in signals.forever() {
        match signal {
            SIGHUP => {
                ::log::warn!("SIGHUP: reloading is not built yet; the configuration stays as it is")
            }
            SIGINT => {
                running.stop(StopMode::Now);
                break;
            }
            _ => {
                notify(&[sd_notify::NotifyState::Stopping]);
                running.stop(StopMode::Gracefully);
                let until = Instant::now() + grace;
                while running.app.proxy.metrics.in_flight.get() > 0 && Instant::now() < until {
                    std::thread::sleep(POLL_INTERVAL);
                }
                break;
            }
        }
    }
    running.end();
    running.app.proxy.access_log.flush();
    // `running` is not dropped: Pingora would sleep through the whole grace period even with nothing in flight.
    std::process::exit(0)
}

/// The store without a password in it.
fn shown_store(url: &str) -> String {
    crate::store::StoreUrl::parse(url).map_or_else(|_| "?".to_owned(), |url| url.redacted())
}

/// A public key for queries to the graph sandbox, where it is in use.
fn query_key(config: &Config) -> Option<String> {
    let graph = config.graph.as_ref();
    let graph = graph.filter(|graph| graph.upstream == GraphUpstream::Sandbox)?;
    let mut keys = graph.tenants.iter().flat_map(|tenant| &tenant.single_keys);
    keys.next().cloned()
}

/// What a start says on stderr: at most 12 lines. The key only where this start made it.
fn banner(
    running: &Running,
    store: &str,
    providers: &[String],
    off: usize,
    query_key: Option<&str>,
) -> String {
    let mut out = format!(
        "weirgate {} listens on http://{} (admin http://{})\n",
        env!("CARGO_PKG_VERSION"),
        running.public,
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
        out.push_str(&format!(
            "organization: {}; its API key, shown this once:\n{key}\nTry it:\n\
             curl http://{}/v1/chat/completions -H 'Authorization: Bearer {key}' \
             -H 'Content-Type: application/json' \
             -d '{{\"model\":\"sandbox-chat\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}'\n",
            first.organization, running.public,
        ));
        let flags = running.app.decisions.as_ref();
        if let Some(key) = flags.and_then(|flags| flags.local_datafiles.sandbox_key()) {
            out.push_str(&format!(
                "curl 'http://{}/v1/decide?keys=dark_mode' -H 'X-Platform-SDK-Key: {key}' \
                 -H 'Content-Type: application/json' \
                 -d '{{\"userId\":\"ada\",\"userAttributes\":{{\"version\":\"2.1\"}}}}'\n",
                running.public,
            ));
        }
        if let Some(key) = query_key {
            out.push_str(&format!(
                "curl 'http://{}/content/v2?auth={key}' -H 'Content-Type: application/json' \
                 -d '{{\"query\":\"{{ hello(name: \\\"Ada\\\") }}\"}}'\n",
                running.public,
            ));
        }
    }
    out
}
