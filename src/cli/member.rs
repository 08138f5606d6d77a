//! `weirgate member`: the owners of keys, and their budgets.

use clap::Subcommand;
use serde_json::json;

use super::accounts::{change_accounts, format_time, now_ms, on_store, parse_usd, write_deletion};
use super::arguments::{DeleteArgs, FormatArgs, OwnedArgs, RenameArgs};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::Member;

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate member add --org acme ada
  weirgate member budget --org acme ada 250
  weirgate key create --org acme --member ada
  weirgate member budget --org acme ada none     lifts it
  weirgate member rename --org acme ada ida";

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
        #[command(flatten)]
        output: FormatArgs,
    },
    /// List the members of an organization
    List {
        /// The organization's name
        #[arg(long)]
        org: String,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Show a member
    Show(OwnedArgs),
    /// Give a member another name
    Rename(RenameArgs<OwnedArgs>),
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
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Delete a member to whom no key belongs
    Delete(DeleteArgs<OwnedArgs>),
}

pub(super) fn run(command: &MemberCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        MemberCommand::Add { org, name, output } => add((org, name), *output, source, out),
        MemberCommand::List { org, output } => list(org, output.format, source, out),
        MemberCommand::Show(args) => show(args, source, out),
        MemberCommand::Rename(args) => rename(args, source, out),
        MemberCommand::Budget {
            org,
            name,
            budget,
            output,
        } => set_budget((org, name, budget), *output, source, out),
        MemberCommand::Delete(args) => delete(args, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn add(
    (org, name): (&str, &str),
    output: FormatArgs,
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    let created = change_accounts(source, out, async |store| {
        store.add_member(org, name, now_ms()).await
    })?;
    let note = format!("made the member `{name}` of `{org}`");
    let done = json!({"done": "created", "id": created.id, "name": name});
    out.done(output.format, &note, Some(&created.id), &done);
    Ok(())
}

fn show(args: &OwnedArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let found = on_store(source, out, async |store| {
        store.member(&args.org, &args.name).await
    })?;
    out.record(args.output.format, &COLUMNS, to_record(&found));
    Ok(())
}

fn rename(args: &RenameArgs<OwnedArgs>, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let (org, name, new_name) = (&args.of.org, &args.of.name, &args.new_name);
    let renamed = change_accounts(source, out, async |store| {
        store.rename_member((org, name), new_name).await?;
        store.member(org, new_name).await
    })?;
    let note = format!("renamed the member `{name}` of `{org}` to `{new_name}`");
    let done = json!({"done": "renamed", "id": renamed.id, "name": new_name});
    out.done(args.of.output.format, &note, None, &done);
    Ok(())
}

fn delete(args: &DeleteArgs<OwnedArgs>, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let (org, name) = (&args.of.org, &args.of.name);
    let deletion = change_accounts(source, out, async |store| {
        store.delete_member((org, name), args.yes).await
    })?;
    let how = (args.yes, args.of.output.format);
    write_deletion(("member", name), &deletion, how, out)
}

fn list(org: &str, format: OutputFormat, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let all = on_store(source, out, async |store| store.members(org).await)?;
    let records: Vec<Record> = all.iter().map(to_record).collect();
    out.records(format, &COLUMNS, &records);
    Ok(())
}

fn set_budget(
    (org, name, budget): (&str, &str, &str),
    output: FormatArgs,
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    let amount = match budget {
        "none" => None,
        text => Some(parse_usd("USD", text, out)?),
    };
    let member = change_accounts(source, out, async |store| {
        store.set_budget(org, name, amount).await?;
        store.member(org, name).await
    })?;
    let note = format!("the budget of `{name}` of `{org}` is {budget}");
    let amount = amount.map(|usd| usd.to_string());
    let done = json!({"done": "updated", "id": member.id, "name": name, "budget": amount});
    out.done(output.format, &note, None, &done);
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
