//! `weirgate check`: all problems of the configuration at once.
//!
//! The findings are the result, so they go to stdout. Warnings and providers that are off do not change the exit
//! code; a provider that `--online` cannot reach makes it 1. [`online`] compares the lists of models that providers
//! publish.

mod listed_model;
mod model_list;
mod online;
mod retirement;

use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use filters::models::hosts::ProviderKind;
use serde_json::{Value, json};

use super::progress::WorkProgress;
use super::{CheckArgs, CheckFormat, Exit, Output};
use crate::config;
use crate::config::{Config, LoadedConfig, OffProvider, Problem, ProviderConfig, Source};

/// A severity and a problem.
type CheckFinding = (&'static str, Problem);

/// Timeout of a connection to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Checks the configuration of `source` in the process's environment.
pub fn run(args: &CheckArgs, source: &Source, out: &mut Output) -> Exit {
    report(
        args,
        source,
        config::load(source, config::environment()),
        out,
    )
}

fn report(
    args: &CheckArgs,
    source: &Source,
    loaded: Result<LoadedConfig, Vec<Problem>>,
    out: &mut Output,
) -> Exit {
    let (findings, exit) = match &loaded {
        Ok(loaded) => collect_findings(args, loaded, &out.progress()),
        Err(problems) => (
            with_severity("error", problems.iter().cloned()),
            Exit::Configuration,
        ),
    };
    match args.format {
        CheckFormat::Json => {
            out.json(&Value::Array(
                findings
                    .iter()
                    .map(|(kind, found)| to_row(kind, found))
                    .collect(),
            ));
        }
        CheckFormat::Human => print_human(source, loaded.as_ref().ok(), &findings, exit, out),
    }
    exit
}

/// Collects the findings of a configuration with valid values.
fn collect_findings(
    args: &CheckArgs,
    loaded: &LoadedConfig,
    progress: &WorkProgress,
) -> (Vec<CheckFinding>, Exit) {
    let config = &loaded.config;
    let mut findings = with_severity("warning", loaded.warnings.iter().cloned());
    let off = config.off_providers.iter().map(off_problem);
    findings.extend(with_severity("note", off));
    if let Err(problems) = &config.models.catalog {
        findings.extend(with_severity("error", problems.iter().cloned()));
        return (findings, Exit::Configuration);
    }
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now_s.map_or(0, |since| since.as_secs());
    findings.extend(with_severity("warning", retirement::find(config, now_s)));
    let unreachable = if args.online {
        let remote = config.providers.iter();
        let remote: Vec<_> = remote
            .filter(|it| it.kind != ProviderKind::Sandbox)
            .collect();
        let (reached, unreachable) = reach(&remote, progress);
        let (told, counts) = online::compare(config, &reached, progress);
        findings.extend(with_severity("warning", told));
        findings.extend(with_severity("note", counts));
        let export = online::try_log_export(config);
        findings.extend(with_severity("warning", export));
        unreachable
    } else {
        Vec::new()
    };
    let exit = if unreachable.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    };
    findings.extend(with_severity("error", unreachable));
    (findings, exit)
}

fn with_severity(
    severity: &'static str,
    problems: impl IntoIterator<Item = Problem>,
) -> Vec<CheckFinding> {
    let problems = problems.into_iter();
    problems.map(|problem| (severity, problem)).collect()
}

fn to_row(severity: &str, problem: &Problem) -> Value {
    let mut row = json!({ "severity": severity });
    if let (Some(row), Ok(Value::Object(members))) =
        (row.as_object_mut(), serde_json::to_value(problem))
    {
        row.extend(members);
    }
    row
}

fn print_human(
    source: &Source,
    loaded: Option<&LoadedConfig>,
    findings: &[CheckFinding],
    exit: Exit,
    out: &mut Output,
) {
    let is_shown = |problem: &Problem, severity: &str| {
        severity != "note" || problem.key.ends_with(online::COUNTED)
    };
    let shown = findings.iter();
    for (severity, problem) in shown.filter(|(severity, it)| is_shown(it, severity)) {
        out.line(&format!("{severity}: {problem}"));
    }
    for line in loaded
        .map(|loaded| off_lines(&loaded.config))
        .unwrap_or_default()
    {
        out.line(&line);
    }
    let count = |kind: &str| {
        findings
            .iter()
            .filter(|(severity, _)| *severity == kind)
            .count()
    };
    let Some(loaded) = loaded.filter(|_| exit != Exit::Configuration) else {
        // An invalid configuration has no values, so its other warnings are unknown.
        return out.line(&format!(
            "{source} is bad: {}",
            format_count(count("error"), "error")
        ));
    };
    let on = provider_names(&loaded.config);
    if !on.is_empty() {
        out.line(&format!("providers on: {on}"));
    }
    let (errors, warnings) = (
        format_count(count("error"), "error"),
        format_count(count("warning"), "warning"),
    );
    out.line(&format!("{source} is good: {errors}, {warnings}"));
}

fn provider_names(config: &Config) -> String {
    let names: Vec<_> = config
        .providers
        .iter()
        .map(|provider| provider.name.as_str())
        .collect();
    names.join(", ")
}

fn format_count(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

fn off_problem(off: &OffProvider) -> Problem {
    Problem {
        key: format!("providers.{}", off.name),
        place: config::Location::Nowhere {},
        message: match off.serves_own_keys {
            true => format!(
                "is off: {} (callers with a key of their own are served)",
                off.why
            ),
            false => format!("is off: {}", off.why),
        },
        cure: off.cure.clone(),
    }
}

/// Returns lines with the providers that are off, each with the setting that switches it on: those that serve callers with keys
/// of their own, and those that serve nobody.
fn off_lines(config: &Config) -> Vec<String> {
    let line = |serves_own_keys: bool, begin: &str| {
        let off = config.off_providers.iter();
        let off = off.filter(|off| off.serves_own_keys == serves_own_keys);
        let shown: Vec<_> = off
            .map(|off| format!("{} ({})", off.name, off.cure))
            .collect();
        (!shown.is_empty()).then(|| format!("{begin}: {}", shown.join(", ")))
    };
    let own = line(
        true,
        "providers off, but for callers with keys of their own",
    );
    own.into_iter()
        .chain(line(false, "providers off"))
        .collect()
}

/// Connects to providers. Returns those that accept a connection, and a problem for each other one.
fn reach<'c>(
    providers: &[&'c ProviderConfig],
    progress: &WorkProgress,
) -> (Vec<&'c ProviderConfig>, Vec<Problem>) {
    let (mut reached, mut problems) = (Vec::new(), Vec::new());
    let total = providers.len() as u64;
    for (done, provider) in (0..total).zip(providers) {
        progress.show(format_args!("connecting to {}", provider.name), done, total);
        let mut is_reached = false;
        for url in &provider.base_urls {
            match connect(url) {
                Ok(()) => is_reached = true,
                Err(why) => problems.push(Problem {
                    key: format!("providers.{}", provider.name),
                    place: config::Location::Nowhere {},
                    message: format!("{url} cannot be reached: {why}"),
                    cure: "correct the address, or look at DNS, firewall and proxy".to_owned(),
                }),
            }
        }
        if is_reached {
            reached.push(*provider);
        }
    }
    (reached, problems)
}

fn connect(base_url: &str) -> Result<(), String> {
    let uri: http::Uri = base_url.parse().map_err(|_| "no URL".to_owned())?;
    let default_port = if uri.scheme_str() == Some("http") {
        80
    } else {
        443
    };
    let host = uri
        .host()
        .unwrap_or_default()
        .trim_start_matches('[')
        .trim_end_matches(']');
    let addresses = (host, uri.port_u16().unwrap_or(default_port))
        .to_socket_addrs()
        .map_err(|error| error.to_string())?;
    let mut why = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

#[cfg(test)]
#[path = "check/cloud_tests.rs"]
mod cloud_tests;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn check(toml: &str, format: CheckFormat, online: bool) -> (Exit, String) {
        let source = Source::Text {
            name: "w.toml".into(),
            text: toml.into(),
        };
        let loaded = config::load(&source, []);
        let (mut out, captured) = Output::captured();
        let exit = report(&CheckArgs { online, format }, &source, loaded, &mut out);
        (exit, captured.out())
    }

    #[test]
    fn a_bad_configuration_exits_78_and_shows_place_and_cure() {
        let (exit, shown) = check("[routing]\nattemps = 2\n", CheckFormat::Human, false);
        assert_eq!(exit.code(), 78);
        assert!(shown.contains("w.toml:2:1"), "{shown}");
        assert!(shown.contains("did you mean attempts?"), "{shown}");
        assert!(shown.contains("w.toml is bad: 1 error"), "{shown}");
    }

    #[test]
    fn json_has_a_row_for_each_problem() {
        let (_, shown) = check(
            "[routing]\nattemps = 2\nidle_timeout_s = 0\n",
            CheckFormat::Json,
            false,
        );
        let rows: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(rows.as_array().unwrap().len(), 2);
        assert_eq!(rows[0]["severity"], "error");
        assert_eq!(
            (&rows[0]["line"], &rows[0]["column"]),
            (&json!(2), &json!(1))
        );
        assert_eq!(rows[1]["key"], "routing.idle_timeout_s");
        assert!(rows[1]["cure"].as_str().unwrap().contains("from 1 to"));
    }

    #[test]
    fn a_cloud_without_a_place_is_off_for_everybody() {
        let toml = "[providers.vertex]\nkind = \"vertex\"\nkeys = [{ env = \"TOKEN\" }]\n";
        let (exit, shown) = check(toml, CheckFormat::Human, false);
        assert_eq!(exit, Exit::Done);
        let line = "providers off: vertex (set providers.vertex.project)\n";
        assert!(shown.contains(line), "{shown}");
        let (_, shown) = check(toml, CheckFormat::Json, false);
        let rows: Value = serde_json::from_str(&shown).unwrap();
        let said = |row: &Value| row["message"] == "is off: no project is named";
        assert!(rows.as_array().unwrap().iter().any(said), "{shown}");
    }

    #[test]
    fn providers_without_secrets_are_one_line_that_says_how_to_switch_them_on() {
        let toml = "[providers.groq]\nkind = \"openai-compatible\"\nbase_url = \"https://x.test/v1\"\n\
                    keys = [{ env = \"GROQ_API_KEY\" }]\n\
                    [providers.other]\nkind = \"openai-compatible\"\nbase_url = \"https://x.test/v1\"\n\
                    [providers.two]\nkind = \"openai\"\nkeys = [{ env = \"A\" }, { file = \"/nonexistent\" }]\n";
        let (exit, shown) = check(toml, CheckFormat::Human, false);
        assert_eq!(exit, Exit::Done);
        let off: Vec<_> = shown.lines().filter(|it| it.contains("groq")).collect();
        assert_eq!(
            off,
            ["providers off, but for callers with keys of their own: \
              groq (set GROQ_API_KEY), \
              other (list its keys), two (set A or write it to /nonexistent)"]
        );
        let (_, shown) = check(toml, CheckFormat::Json, false);
        let rows: Value = serde_json::from_str(&shown).unwrap();
        let rows = rows.as_array().unwrap().iter();
        let notes: Vec<_> = rows.filter(|row| row["severity"] == "note").collect();
        assert_eq!(notes.len(), 3);
        assert_eq!(notes[0]["key"], "providers.groq");
        assert_eq!(notes[0]["cure"], "set GROQ_API_KEY");
        let why = "is off: GROQ_API_KEY is not set (callers with a key of their own are served)";
        assert_eq!(notes[0]["message"], why);
    }

    #[test]
    fn a_bad_catalogue_exits_78_and_shows_all_its_problems() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("models.toml");
        let model =
            "[[models.providers]]\nprovider = \"p\"\nname = \"n\"\ninput_price = \"dear\"\n";
        std::fs::write(
            &file,
            format!("[[models]]\nid = \"a\"\n{model}[[models]]\nid = \"a\"\n"),
        )
        .unwrap();
        let toml = format!("[models]\nfile = \"{}\"\n", file.display());
        let (exit, shown) = check(&toml, CheckFormat::Human, false);
        assert_eq!(exit.code(), 78, "{shown}");
        for (key, line) in [
            ("models[0].providers[0].input_price", 6),
            ("models[1].id", 8),
        ] {
            assert!(shown.contains(&format!("error: {key}: ")), "{shown}");
            let place = format!("--> {}:{line}:", file.display());
            assert!(shown.contains(&place), "{shown}");
        }
        assert!(shown.contains("dear"), "{shown}");
        assert!(shown.contains("is bad: 2 errors"), "{shown}");
    }

    #[test]
    fn online_fails_where_a_provider_takes_no_connection() {
        let at = |address: std::net::SocketAddr| {
            format!(
                "[providers.local]\nkind = \"openai-compatible\"\nbase_url = \"http://{address}/v1\"\n"
            )
        };
        let open = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let toml = at(open.local_addr().unwrap());
        assert_eq!(check(&toml, CheckFormat::Human, true).0, Exit::Done);
        // Bound but not listening: the port refuses connections, and no other test gets it.
        let closed = tokio::net::TcpSocket::new_v4().unwrap();
        closed.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let toml = at(closed.local_addr().unwrap());
        assert_eq!(check(&toml, CheckFormat::Human, true).0, Exit::Failed);
    }

    #[test]
    fn online_compares_the_catalogue_with_what_a_provider_lists() {
        use std::io::{Read, Write};
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let asked = std::thread::spawn(move || {
            loop {
                let (mut stream, _) = server.accept().unwrap();
                let mut head = [0; 4096];
                // The first connection only tells that the provider is there.
                let length = stream.read(&mut head).unwrap();
                if length > 0 {
                    let body = "{\"data\": [{\"id\": \"there\"}]}";
                    let reply = format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    stream.write_all(reply.as_bytes()).unwrap();
                    return String::from_utf8_lossy(&head[..length]).into_owned();
                }
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("models.toml");
        let model = |name: &str| {
            format!(
                "[[models]]\nid = \"{name}\"\n[[models.providers]]\nprovider = \"local\"\nname = \"{name}\"\n"
            )
        };
        std::fs::write(&file, model("there") + &model("gone")).unwrap();
        let toml = format!(
            "[models]\nfile = \"{}\"\n[providers.local]\nkind = \"openai-compatible\"\nbase_url = \"http://{address}/v1\"\nkeys = []\n",
            file.display()
        );
        let (exit, shown) = check(&toml, CheckFormat::Human, true);
        let asked = asked.join().unwrap();
        assert!(asked.starts_with("GET /v1/models HTTP/1.1"), "{asked}");
        assert_eq!(exit, Exit::Done, "{shown}");
        assert!(
            shown.contains("warning: providers.local: does not list gone"),
            "{shown}"
        );
    }
}
