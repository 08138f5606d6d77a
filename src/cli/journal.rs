//! `weirgate journal`: processes with calls that may not be in the store.

use clap::Subcommand;
use serde_json::json;

use super::accounts::{change_accounts, format_time, on_store};
use super::arguments::FormatArgs;
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::ledger::JournalOwner;

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate journal list
  weirgate journal forget 0190c3a2…          says what it gives up, and changes nothing
  weirgate journal forget 0190c3a2… --yes    gives it up";

/// The columns of `journal list`, which are also the fields of its JSON.
const COLUMNS: [&str; 4] = ["owner", "status", "calls", "last_call_at"];

/// The commands of `journal`.
#[derive(Subcommand)]
pub(super) enum JournalCommand {
    /// List the processes whose journal may hold calls that the store does not have, running ones too
    List(FormatArgs),
    /// Give up the journal of a process that never returns, so that its single calls are deleted with their age
    Forget {
        /// The process, as `journal list` shows it: the name of its folder under `journal` in `store.state_dir`
        owner: String,
        /// Do it; without this option it only says what is given up
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        output: FormatArgs,
    },
}

pub(super) fn run(command: &JournalCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        JournalCommand::List(output) => list(output.format, source, out),
        JournalCommand::Forget { owner, yes, output } => {
            forget(owner, (*yes, output.format), source, out)
        }
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn list(format: OutputFormat, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let owners = on_store(source, out, async |store| store.journal_owners().await)?;
    let records: Vec<Record> = owners.iter().map(to_record).collect();
    out.records(format, &COLUMNS, &records);
    Ok(())
}

fn forget(
    owner: &str,
    (yes, format): (bool, OutputFormat),
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    let owners = on_store(source, out, async |store| store.journal_owners().await)?;
    let Some(journal) = owners.iter().find(|journal| journal.owner == owner) else {
        return Err(out.fail(&format!(
            "no journal `{owner}` is waited for: `weirgate journal list` shows those that are"
        )));
    };
    if journal.is_running {
        return Err(out.fail(&format!("the process `{owner}` runs: stop it first")));
    }
    let done = |done: &str| json!({"done": done, "owner": owner, "calls": journal.calls});
    if !yes {
        if format == OutputFormat::Json {
            out.json(&done("nothing"));
        }
        return Err(out.fail(&format!(
            "nothing was done. To forget `{owner}` gives up two things. Calls that its journal alone has are never \
             charged, if that is gone. And if it is brought back after all, those of its calls that are older than \
             store.usage_retention_days are charged a second time: the store has {} of them, which prevent that, and \
             deletes them with their age once it is forgotten. Say --yes to forget it",
            journal.calls
        )));
    }
    let is_done = change_accounts(source, out, async |store| {
        store.give_up_journal(owner).await
    })?;
    if !is_done {
        return Err(out.fail(&format!(
            "the process `{owner}` has come back: it keeps its journal. Stop it first"
        )));
    }
    let note = format!("forgot the journal `{owner}`");
    out.done(format, &note, None, &done("forgotten"));
    Ok(())
}

fn to_record(journal: &JournalOwner) -> Record {
    let status = match journal.is_running {
        true => "running",
        false => "gone",
    };
    let values = [
        json!(journal.owner),
        json!(status),
        json!(journal.calls),
        format_time(Some(journal.ended_last_ms)),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
