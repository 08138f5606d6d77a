//! Runs the gateway as a process: starts it, prints its banner, handles signals and stops it.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::app::boot::{BootError, boot_with};
use crate::app::drain::{Events, serve_until_stopped};
use crate::app::handover::peer::Peer;
use crate::app::handover::predecessor::Inheritance;
use crate::app::handover::program::Program;
use crate::app::openapi::curl::{self, ApiKey, Keys};
use crate::app::supervisor::Supervisor;
use crate::app::{Running, commands, watchdog};
use crate::config::{LoadedConfig, LogFormat};
use crate::control::server::ControlSocket;
use crate::telemetry::logging;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::text_lines::TextLines;

/// The operations whose command lines the first start prints, one per product.
const SHOWN_OPERATIONS: [&str; 3] = ["chat_completions", "decide", "graph_post_content_v2"];

/// Runs the gateway until a signal stops it.
///
/// `is_successor`: a running process has started this one to take its place.
///
/// Exit codes: 0 after a stop, 1 if the gateway could not start, 78 if the configuration has to change.
pub fn serve(loaded: LoadedConfig, is_successor: bool) -> ExitCode {
    let mut err = std::io::stderr();
    let program = Program::of_this_process();
    let inheritance = match inherit(&loaded, is_successor) {
        Ok(inheritance) => inheritance,
        Err(message) => return print_error(&mut err, &message),
    };
    let facts = BannerFacts::new(&loaded);
    let control_path = loaded.config.upgrade_socket();
    let (level, format) = (loaded.config.log.level.into(), loaded.config.log.format);
    // Signals are caught from here on. A signal during the start stops the process after the start.
    let events = match catch_signals() {
        Ok(events) => events,
        Err(error) => return print_error(&mut err, &format!("signals: {error}")),
    };
    let access_log = |metrics: &Metrics| {
        let access_log = AccessLog::start(log_output(format), metrics.log_dropped.clone())?;
        logging::install(&access_log, level);
        Ok(access_log)
    };
    let mut running = match boot_with(loaded, inheritance, access_log) {
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
    _ = err.write_all(facts.banner(&running).as_bytes());
    let manager = Supervisor::default();
    let predecessor = take_place(&mut running, &manager);
    let control = running.control.take();
    let control = control.or_else(|| rebind(&control_path, predecessor.is_some()));
    let upgrade = commands::upgrade(&running, program, &predecessor, &events);
    commands::serve(&running, control, upgrade);
    watchdog::start(running.app.proxy.clone(), manager.clone());
    let predecessor = predecessor.as_ref().map(|(_, peer)| peer);
    serve_until_stopped(running, events, &manager, predecessor)
}

/// Takes what another process passes to this one. Call it before the process has other threads.
///
/// Errors: in words.
fn inherit(loaded: &LoadedConfig, is_successor: bool) -> Result<Inheritance, String> {
    if is_successor {
        let inherited = Inheritance::from_predecessor();
        return inherited.map_err(|error| format!("the running process passes nothing: {error}"));
    }
    Ok(Inheritance {
        control_path: Some(loaded.config.upgrade_socket()),
        ..Inheritance::from_service_manager()
    })
}

fn catch_signals() -> std::io::Result<Events> {
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    // Writing beyond the file size limit of the process sends a signal. It must not end the process, because the
    // writer handles the error.
    let is_over_limit = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, is_over_limit)?;
    Events::of_signals(signals)
}

/// Takes the socket of commands from the predecessor.
fn rebind(path: &Path, is_successor: bool) -> Option<ControlSocket> {
    if !is_successor {
        return None;
    }
    commands::bind(path, true).unwrap_or_else(|error| {
        ::log::error!("commands cannot reach this process: {error}");
        None
    })
}

/// Tells the predecessor, if there is one, and the service manager that this process serves. Returns the predecessor.
fn take_place(running: &mut Running, manager: &Supervisor) -> Option<(u32, Arc<Peer>)> {
    let Some(mut predecessor) = running.predecessor.take() else {
        manager.notify(&[NotifyState::Ready]);
        return None;
    };
    if let Err(error) = predecessor.replace() {
        log::warn!("stderr stays that of process {}: {error}", predecessor.pid);
    }
    running.name_store_holder();
    let states = [NotifyState::Ready, NotifyState::MainPid(std::process::id())];
    manager.notify(&states);
    log::warn!(
        "this process took the place of process {}, version {}",
        predecessor.pid,
        predecessor.version
    );
    Some((predecessor.pid, predecessor.peer))
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

/// Returns the store's URL without its password.
fn mask_password(url: &str) -> String {
    crate::store::StoreUrl::parse(url).map_or_else(|_| "?".to_owned(), |url| url.redacted())
}

/// What the text of a start says about the configuration.
struct BannerFacts {
    scheme: &'static str,
    store: String,
    providers: Vec<String>,
    /// The number of providers that are off.
    off: usize,
    keys: Keys,
}

impl BannerFacts {
    fn new(loaded: &LoadedConfig) -> Self {
        let config = &loaded.config;
        let providers = config.providers.iter();
        Self {
            scheme: match config.listen.tls {
                Some(_) => "https",
                None => "http",
            },
            store: mask_password(&config.store.url),
            providers: providers.map(|provider| provider.name.clone()).collect(),
            off: config.off_providers.len(),
            keys: Keys::from_sandboxes(config),
        }
    }

    /// Returns the text that a start prints on stderr, of at most 12 lines. A start that created a key shows the key and
    /// a command line for each of [`SHOWN_OPERATIONS`].
    ///
    /// Source: interface "First run".
    fn banner(self, running: &Running) -> String {
        let Self {
            scheme,
            store,
            providers,
            off,
            keys,
        } = self;
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
}

/// Returns a command line for each of [`SHOWN_OPERATIONS`] that the process serves.
fn example_commands(running: &Running, base: &str, keys: &Keys) -> Vec<String> {
    let catalog = running.app.models.planner.catalog();
    let serves = |model: &str| catalog.find(model).is_some();
    let mut commands = curl::commands(running.app.openapi.json(), base, keys, serves);
    commands.retain(|command| SHOWN_OPERATIONS.contains(&command.operation.as_str()));
    commands.into_iter().map(|command| command.line).collect()
}
