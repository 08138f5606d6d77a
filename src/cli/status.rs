//! `weirgate status`: what the running server is doing.

use std::io::IsTerminal;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::{Exit, Output, OutputFormat, Source, load};
use crate::control::status::{ProcessStatus, ProviderState, SERVES};
use crate::control::{ControlCommand, client};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate status
  weirgate status --watch                     anew every 2 seconds, until Ctrl-C
  weirgate status --quiet                     for health checks: says nothing, exits 0 while it serves
  weirgate status --format json | jq .journal";

/// Arguments of `status`.
#[derive(Args)]
pub(super) struct StatusArgs {
    /// Print nothing: exit 0 if the server serves, 1 with the reason on stderr if it does not
    #[arg(long, short, conflicts_with_all = ["watch", "every", "format"])]
    quiet: bool,
    /// Show it again and again, with what happened in between
    #[arg(long)]
    watch: bool,
    /// How often, in seconds
    #[arg(long, value_name = "S", default_value_t = 2, requires = "watch", value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    /// For people or for programs; with --watch one JSON object for each line
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// What the process has said, and when.
struct Seen {
    status: ProcessStatus,
    at: Instant,
}

pub(super) fn run(args: &StatusArgs, source: &Source, out: &mut Output) -> Exit {
    let path = match load(source, out) {
        Ok(loaded) => loaded.config.upgrade_socket(),
        Err(exit) => return exit,
    };
    let mut before: Option<Seen> = None;
    loop {
        let reply = match client::ask(&path, ControlCommand::Status) {
            Ok(reply) => reply,
            // A process that is being replaced answers again in a moment.
            Err(error) if args.watch && before.is_some() => {
                out.note(&error.to_string());
                thread::sleep(Duration::from_secs(args.every));
                continue;
            }
            Err(error) => return out.fail(&error.to_string()),
        };
        let Some(status) = reply.status else {
            // An older process has one line.
            out.line(&reply.message);
            return Exit::Done;
        };
        if args.quiet {
            return judge(&status, out);
        }
        let now = Seen {
            status,
            at: Instant::now(),
        };
        print(args, before.as_ref(), &now, out);
        if !args.watch || out.is_unwanted() {
            return Exit::Done;
        }
        before = Some(now);
        thread::sleep(Duration::from_secs(args.every));
    }
}

/// Says in the exit code alone whether a process serves.
fn judge(status: &ProcessStatus, out: &mut Output) -> Exit {
    match status.state.as_str() {
        SERVES => Exit::Done,
        why => out.fail(&format!("process {}: {why}", status.process)),
    }
}

fn print(args: &StatusArgs, before: Option<&Seen>, now: &Seen, out: &mut Output) {
    match (args.format, args.watch) {
        (OutputFormat::Json, false) => out.json(&json!(now.status)),
        (OutputFormat::Json, true) => out.line(&json!(now.status).to_string()),
        (OutputFormat::Table, is_watching) => {
            if is_watching && std::io::stdout().is_terminal() {
                out.text("\x1b[H\x1b[2J");
            }
            let before = before.filter(|before| before.status.process == now.status.process);
            for line in lines(before, now) {
                out.line(&line);
            }
            if is_watching && !std::io::stdout().is_terminal() {
                out.line("");
            }
        }
    }
    out.flush();
}

/// Describes a process, one subject on each line.
fn lines(before: Option<&Seen>, now: &Seen) -> Vec<String> {
    let status = &now.status;
    let mut lines = vec![
        format!(
            "weirgate {}, process {}: {} since {} ({})",
            status.version,
            status.process,
            status.state,
            status.started_at,
            duration(status.uptime_s)
        ),
        row("listeners", &status.listeners.join(", ")),
        row("load", &load_of(before, now)),
        row(
            "store",
            &format!(
                "{} {}; confirmed {:.1} s ago",
                status.store.url, status.store.state, status.store.confirmed_s
            ),
        ),
    ];
    lines.extend(status.redis.as_ref().map(|state| row("redis", state)));
    let (journal, leases) = (&status.journal, &status.leases);
    lines.push(row(
        "journal",
        &format!(
            "{:.1} MB on the disk, the oldest call waits {:.1} s; {} calls refused by the store",
            journal.bytes as f64 / 1e6,
            journal.lag_s,
            journal.refused
        ),
    ));
    lines.push(row(
        "leases",
        &format!(
            "of {} organizations: {} USD free, {} USD reserved",
            leases.organizations, leases.free, leases.reserved
        ),
    ));
    let (asked, others): (Vec<_>, Vec<_>) =
        (status.providers.iter()).partition(|it| it.attempts > 0 || it.resting > 0);
    lines.extend(asked.into_iter().map(provider));
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|it| it.provider.as_str()).collect();
        lines.push(row(
            "provider",
            &format!("not asked yet: {}", names.join(", ")),
        ));
    }
    lines.push(row("reload", &configuration(&status.configuration)));
    lines
}

/// Describes what the process has to do, and how much came since an earlier look.
fn load_of(before: Option<&Seen>, now: &Seen) -> String {
    let load = &now.status.load;
    let rate = before.map(|before| {
        let requests = load.requests.saturating_sub(before.status.load.requests);
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(0.001);
        format!(", {:.1} requests a second", requests as f64 / seconds)
    });
    let memory = load
        .memory_bytes
        .map(|bytes| format!(", {} MB of memory", bytes / 1_000_000));
    format!(
        "{} running, {} of them streams; {} connections; {} requests ended{}{}",
        load.in_flight,
        load.streams,
        load.connections,
        load.requests,
        rate.unwrap_or_default(),
        memory.unwrap_or_default()
    )
}

fn row(name: &str, text: &str) -> String {
    // What a process says is one line.
    let text: String = text
        .chars()
        .map(|it| if it.is_control() { ' ' } else { it })
        .collect();
    format!("{name:<10} {text}")
}

fn provider(state: &ProviderState) -> String {
    let uptime = state
        .uptime
        .map(|percent| format!(", {percent} % of the last hour answered"));
    let resting = match state.resting {
        0 => String::new(),
        resting => format!(", {resting} of {} candidates rest", state.candidates),
    };
    row(
        "provider",
        &format!(
            "{}: {} attempts, {} failed{}{resting}",
            state.provider,
            state.attempts,
            state.failed,
            uptime.unwrap_or_default()
        ),
    )
}

fn configuration(value: &Value) -> String {
    let text = |value: &Value, name: &str| {
        let found = value.get(name).and_then(Value::as_str);
        found.unwrap_or("unknown").to_owned()
    };
    let in_force = format!(
        "{} in force since {}",
        text(value, "hash"),
        text(value, "loaded_at")
    );
    let Some(last) = value.get("last") else {
        return format!("none; configuration {in_force}");
    };
    let problems = last.get("problems").and_then(Value::as_array);
    let problems = problems.map_or(0, Vec::len);
    let problems = match problems {
        0 => String::new(),
        count => format!(" ({count} problems: `weirgate reload` names them)"),
    };
    format!(
        "{} at {}{problems}; configuration {in_force}",
        text(last, "result"),
        text(last, "at")
    )
}

/// Writes a duration with its two largest units.
fn duration(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, _) => format!("{minutes} min {rest} s"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::ProcessLoad;

    fn seen(requests: u64, at: Instant) -> Seen {
        let status = ProcessStatus {
            version: "1.2.3".to_owned(),
            process: 7,
            state: "serves".to_owned(),
            uptime_s: 7_300,
            load: ProcessLoad {
                requests,
                ..ProcessLoad::default()
            },
            providers: vec![
                ProviderState {
                    provider: "first".to_owned(),
                    candidates: 3,
                    resting: 1,
                    uptime: Some(50.0),
                    attempts: 8,
                    failed: 4,
                },
                ProviderState {
                    provider: "second".to_owned(),
                    ..ProviderState::default()
                },
            ],
            configuration: json!({"hash": "aa", "loaded_at": "T", "last": {"at": "U", "result": "refused", "problems": ["x\ny"]}}),
            ..ProcessStatus::default()
        };
        Seen { status, at }
    }

    #[test]
    fn each_subject_is_a_line() {
        let lines = lines(None, &seen(5, Instant::now()));
        let subjects = lines
            .iter()
            .skip(1)
            .filter_map(|line| line.split(' ').next());
        let subjects: Vec<&str> = subjects.collect();
        let expected = [
            "listeners",
            "load",
            "store",
            "journal",
            "leases",
            "provider",
            "provider",
            "reload",
        ];
        assert_eq!(subjects, expected);
        let all = lines.join("\n");
        for part in [
            "weirgate 1.2.3, process 7: serves since  (2 h 1 min)",
            "first: 8 attempts, 4 failed, 50 % of the last hour answered, 1 of 3 candidates rest",
            "not asked yet: second",
            "refused at U (1 problems: `weirgate reload` names them); configuration aa in force since T",
        ] {
            assert!(all.contains(part), "{part} in {all}");
        }
        assert!(!all.contains("a second"), "{all}");
    }

    #[test]
    fn a_quiet_look_prints_nothing_of_a_server_that_serves_and_the_reason_of_one_that_does_not() {
        let judged = |state: &str| {
            let status = ProcessStatus {
                state: state.to_owned(),
                ..seen(0, Instant::now()).status
            };
            let (mut out, captured) = Output::captured();
            let exit = judge(&status, &mut out);
            (exit, captured.out(), captured.err())
        };
        assert_eq!(judged(SERVES), (Exit::Done, String::new(), String::new()));
        let (exit, out, err) = judged("starting or stopping");
        assert_eq!((exit, out.as_str()), (Exit::Failed, ""));
        assert_eq!(err, "error: process 7: starting or stopping\n");
    }

    #[test]
    fn a_second_look_says_what_happened_in_between() {
        let then = Instant::now();
        let now = then + Duration::from_secs(2);
        let all = lines(Some(&seen(5, then)), &seen(25, now)).join("\n");
        assert!(all.contains("10.0 requests a second"), "{all}");
    }
}
