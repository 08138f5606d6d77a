//! `weirgate member`: the owners of keys, and their budgets.

use clap::Subcommand;
use serde_json::json;

use super::accounts::{format_time, now_ms, on_store, parse_usd};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::Member;

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate member add --org acme ada
  weirgate member budget --org acme ada 250
  weirgate key create --org acme --member ada
  weirgate member budget --org acme ada none     lifts it";

/// The columns of `member list`, which are also the fields of its JSON.
const COLUMNS: [&str; 4] = ["id", "name", "budget", "created_at"];

/// The commands of `member`.
#[derive(Subcommand)]
pub(super) enum MemberCommand {
    /// Make a member; prints its id
    Add {
        /// The organization's name
        #[arg(long)]
        org: String,
        /// Its name, which no other of the organization has
        name: String,
    },
    /// List the members of an organization
    List {
        /// The organization's name
        #[arg(long)]
        org: String,
        /// For people or for programs
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
    /// Set the most that all keys of a member may ever spend together
    Budget {
        /// The organization's name
        #[arg(long)]
        org: String,
        /// Its name
        name: String,
        /// The amount, or `none`
        #[arg(value_name = "USD", allow_hyphen_values = true)]
        budget: String,
    },
}

pub(super) fn run(command: &MemberCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        MemberCommand::Add { org, name } => add(org, name, source, out),
        MemberCommand::List { org, format } => list(org, *format, source, out),
        MemberCommand::Budget { org, name, budget } => set_budget(org, name, budget, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn add(org: &str, name: &str, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let created = on_store(source, out, async |store| {
        store.add_member(org, name, now_ms()).await
    })?;
    out.note(&format!("made the member `{name}` of `{org}`"));
    out.line(&created.id);
    Ok(())
}

fn list(org: &str, format: OutputFormat, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let all = on_store(source, out, async |store| store.members(org).await)?;
    let records: Vec<Record> = all.iter().map(to_record).collect();
    out.records(format, &COLUMNS, &records);
    Ok(())
}

fn set_budget(
    org: &str,
    name: &str,
    budget: &str,
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    let amount = match budget {
        "none" => None,
        text => Some(parse_usd("USD", text, out)?),
    };
    on_store(source, out, async |store| {
        store.set_budget(org, name, amount).await
    })?;
    out.note(&format!("the budget of `{name}` of `{org}` is {budget}"));
    Ok(())
}

fn to_record(member: &Member) -> Record {
    let values = [
        json!(member.id),
        json!(member.name),
        json!(member.budget.map(|usd| usd.to_string())),
        format_time(Some(member.created_at_ms)),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
