//! `weirgate key`: API keys.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::accounts::{now_ms, on_store, shown};
use super::{Exit, Format, Output, Record, Source, not_yet};
use crate::store::{DEFAULT_PROJECT, IssuedKey, NewKey};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate key create --org acme --label laptop --expires 2031-01-01T00:00:00Z
  KEY=$(weirgate key create --org acme --project app | tail -n 1)
  weirgate key list --org acme --format json
  weirgate key revoke key_0190c3a2-…";

/// The columns of `key list`, and the fields of its JSON.
const COLUMNS: [&str; 8] = [
    "id",
    "label",
    "project",
    "last_four",
    "status",
    "created_at",
    "expires_at",
    "revoked_at",
];

/// What `key` can do.
#[derive(Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key; its text is printed this once, alone on the last line
    Create(CreateArgs),
    /// List the keys of an organization, revoked ones too
    List {
        /// The organization's name
        #[arg(long)]
        org: String,
        /// For people or for programs
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Revoke a key: it stops to count within a second
    Revoke {
        /// The key's id, as `key list` shows it
        id: String,
    },
}

/// What `key create` takes.
#[derive(Args)]
pub(super) struct CreateArgs {
    /// The organization's name
    #[arg(long)]
    org: String,
    /// The project's name
    #[arg(long, default_value = DEFAULT_PROJECT)]
    project: String,
    /// What you call it
    #[arg(long, default_value = "")]
    label: String,
    /// The most it may spend (not supported yet)
    #[arg(long, value_name = "USD")]
    limit: Option<String>,
    /// When it stops to count
    #[arg(long, value_name = "RFC3339")]
    expires: Option<Timestamp>,
}

pub(super) fn run(command: &KeyCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        KeyCommand::Create(args) => create(args, source, out),
        KeyCommand::List { org, format } => list(org, *format, source, out),
        KeyCommand::Revoke { id } => revoke(id, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn create(args: &CreateArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    if args.limit.is_some() {
        return Err(not_yet(out, "--limit"));
    }
    let now_ms = now_ms();
    let expires_at_ms = args.expires.map(Timestamp::as_millisecond);
    if expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms) {
        out.fail("--expires is not in the future");
        return Err(Exit::Usage);
    }
    let new = NewKey {
        organization: &args.org,
        project: &args.project,
        label: &args.label,
        expires_at_ms,
    };
    let (text, issued) = on_store(source, out, async |store| {
        store.create_key(&new, now_ms).await
    })?;
    out.note(&format!(
        "created {} of `{}` / `{}`; its text is shown this once:",
        issued.id, args.org, args.project
    ));
    out.line(text.reveal());
    Ok(())
}

fn list(org: &str, format: Format, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let keys = on_store(source, out, async |store| store.keys(org).await)?;
    let now_ms = now_ms();
    let records: Vec<Record> = keys.iter().map(|key| record(key, now_ms)).collect();
    out.records(format, &COLUMNS, &records);
    Ok(())
}

fn revoke(id: &str, source: &Source, out: &mut Output) -> Result<(), Exit> {
    on_store(source, out, async |store| {
        store.revoke_key(id, now_ms()).await
    })?;
    out.note(&format!("revoked {id}"));
    Ok(())
}

fn record(key: &IssuedKey, now_ms: i64) -> Record {
    let values = [
        json!(key.id),
        json!(key.label),
        json!(key.project),
        json!(key.last_four),
        json!(status(key, now_ms)),
        shown(Some(key.created_at_ms)),
        shown(key.expires_at_ms),
        shown(key.revoked_at_ms),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}

fn status(key: &IssuedKey, now_ms: i64) -> &'static str {
    if key.revoked_at_ms.is_some() {
        "revoked"
    } else if key.expires_at_ms.is_some_and(|end_ms| now_ms >= end_ms) {
        "expired"
    } else {
        "active"
    }
}
