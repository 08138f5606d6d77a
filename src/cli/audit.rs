//! `weirgate audit`: who has changed accounts.

use clap::Args;
use filters::audit::{AuditHead, AuditKind, Verb};
use serde_json::{Map, Value, json};

use super::accounts::{format_time, now_ms, on_store};
use super::output::OutputFormat;
use super::usage::parse_since;
use super::{Exit, Output, Record, Source};
use crate::store::{AuditFilter, AuditPage, HashedEntry};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate audit                              the last 50 changes, newest first
  weirgate audit --org acme --since 7d --action key
  weirgate audit --actor ada --action key.revoke --format json
  weirgate audit --before 1200                the 50 before entry 1200
  weirgate audit --verify > head              checks the whole log; keep what it prints elsewhere
  weirgate audit --verify --expect \"$(cat head)\"

What it proves, and what not, is in docs/audit.md. Who gives a command says so with WEIRGATE_ACTOR.";

/// The columns of the table. The JSON has the two sides of `changes` as `before` and `after`.
const COLUMNS: [&str; 8] = [
    "number",
    "at",
    "actor",
    "origin",
    "action",
    "organization",
    "name",
    "changes",
];

/// Arguments of `audit`.
#[derive(Args)]
pub(super) struct AuditArgs {
    /// Since when: a time (RFC 3339) or so long ago (30m, 24h, 7d)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Of this organization: its name or its id, also if it is deleted
    #[arg(long, value_name = "NAME")]
    org: Option<String>,
    /// By this one, as the log names them
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// What was done: an action such as key.create, or a kind of thing such as key
    #[arg(long, value_parser = parse_action)]
    action: Option<String>,
    /// How many entries
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Only entries with a lower number, such as that of the last one of the page before
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    before: Option<i64>,
    /// Check that no entry was changed, taken out or put in, and print the last one's number and hash
    #[arg(long, conflicts_with_all = ["since", "org", "actor", "action", "limit", "before"])]
    verify: bool,
    /// What `--verify` has printed earlier: also check that the log still has that entry
    #[arg(long, value_name = "NUMBER:HASH", requires = "verify")]
    expect: Option<AuditHead>,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(args: &AuditArgs, source: &Source, out: &mut Output) -> Exit {
    let done = match args.verify {
        true => verify(args, source, out),
        false => list(args, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

/// Reads an action or a kind of thing.
fn parse_action(text: &str) -> Result<String, String> {
    let kinds = AuditKind::ALL.map(AuditKind::as_str);
    let verbs = Verb::ALL.map(Verb::as_str);
    let is_known = match text.split_once('.') {
        Some((kind, verb)) => kinds.contains(&kind) && verbs.contains(&verb),
        None => kinds.contains(&text),
    };
    match is_known {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "accepted is a kind ({}), or a kind, a full stop and a verb ({})",
            kinds.join(", "),
            verbs.join(", ")
        )),
    }
}

fn list(args: &AuditArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let since_ms = match &args.since {
        None => None,
        Some(text) => Some(parse_since(text, now_ms()).ok_or_else(|| {
            out.fail(&format!(
                "--since: {text:?} is neither a time such as 2026-11-01T00:00:00Z nor so long ago as 24h"
            ));
            Exit::Usage
        })?),
    };
    let page = on_store(source, out, async |store| {
        let organization_id = match &args.org {
            Some(name) => Some(store.audited_organization(name).await?),
            None => None,
        };
        let filter = AuditFilter {
            since_ms,
            organization_id,
            actor: args.actor.clone(),
            action: args.action.clone(),
            subject_id: None,
            below: args.before,
        };
        store.audit_entries(&filter, args.limit).await
    })?;
    write_page(&page, args.format, out);
    Ok(())
}

fn write_page(page: &AuditPage, format: OutputFormat, out: &mut Output) {
    let records: Vec<Record> = match format {
        OutputFormat::Table => page.entries.iter().map(to_row).collect(),
        OutputFormat::Json => page.entries.iter().map(to_record).collect(),
    };
    out.records(format, &COLUMNS, &records);
    if let (true, Some(last)) = (page.has_more, page.entries.last()) {
        let number = last.entry.number;
        out.note(&format!(
            "there are older ones: --before {number} lists them"
        ));
    }
}

fn verify(args: &AuditArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let verified = on_store(source, out, async |store| {
        store.verify_audit_log(args.expect).await
    })?;
    match verified {
        Ok(head) => {
            let note = match args.expect {
                Some(_) => "the log is whole, and has the entry that was expected",
                None => {
                    "the log is whole as far as it goes: --expect also shows whether its end is there"
                }
            };
            let done = json!({
                "done": "verified", "entries": head.number, "head": head.to_string(),
                "expected": args.expect.map(|it| it.to_string()),
            });
            out.done(args.format, note, Some(&head.to_string()), &done);
            Ok(())
        }
        Err(broken) => {
            if args.format == OutputFormat::Json {
                let problem = broken.to_string();
                out.json(&json!({"done": "broken", "number": broken.number, "problem": problem}));
            }
            Err(out.fail(&broken.to_string()))
        }
    }
}

/// Returns an entry for programs: all of it.
fn to_record(HashedEntry { entry, hash }: &HashedEntry) -> Record {
    let fields = |text: &Option<String>| text.as_deref().map_or(Value::Null, read_fields);
    let values = [
        ("number", json!(entry.number)),
        ("at", format_time(Some(entry.at_ms))),
        ("actor", json!(entry.actor)),
        ("origin", json!(entry.origin)),
        ("action", json!(entry.action)),
        ("kind", json!(entry.kind)),
        ("id", json!(entry.subject_id)),
        ("name", json!(entry.name)),
        ("organization_id", json!(entry.organization_id)),
        ("organization", json!(entry.organization)),
        ("before", fields(&entry.before)),
        ("after", fields(&entry.after)),
        ("hash", json!(hash)),
    ];
    let values = values.into_iter();
    values
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns an entry for people.
fn to_row(hashed: &HashedEntry) -> Record {
    let entry = &hashed.entry;
    let mut row = to_record(hashed);
    if entry.name.is_empty() {
        row.insert("name".to_owned(), json!(entry.subject_id));
    }
    let side = |text: &Option<String>| match text.as_deref().map(read_fields) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (before, after) = (side(&entry.before), side(&entry.after));
    let names = before
        .keys()
        .chain(after.keys().filter(|name| !before.contains_key(*name)));
    let is_update = entry.before.is_some() && entry.after.is_some();
    let changes = names.map(|name| {
        let (was, is) = (shown(before.get(name)), shown(after.get(name)));
        match (is_update, entry.after.is_some()) {
            (true, _) => format!("{name} {was} → {is}"),
            (false, true) => format!("{name} {is}"),
            (false, false) => format!("{name} {was}"),
        }
    });
    let changes: Vec<String> = changes.collect();
    row.insert("changes".to_owned(), json!(changes.join(", ")));
    row
}

/// Reads the fields of an entry. A text that somebody has damaged is shown as it is.
fn read_fields(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
