//! `weirgate credit`: platform credit.

use clap::Subcommand;
use serde_json::json;

use super::accounts::{now_ms, on_store, parse_usd};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::Credit;

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate credit add --org acme 25
  weirgate credit show --org acme --format json";

/// The columns of `credit show`, which are also the fields of its JSON.
const COLUMNS: [&str; 5] = ["organization", "balance", "reserved", "granted", "used"];

/// The commands of `credit`.
#[derive(Subcommand)]
pub(super) enum CreditCommand {
    /// Give credit to an organization
    Add {
        /// The organization's name
        #[arg(long)]
        org: String,
        /// How much, as a plain decimal such as 2.50
        #[arg(value_name = "USD", allow_hyphen_values = true)]
        amount: String,
    },
    /// Show what is left, held back, given and used
    Show {
        /// The organization's name
        #[arg(long)]
        org: String,
        /// For people or for programs
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
}

pub(super) fn run(command: &CreditCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        CreditCommand::Add { org, amount } => add(org, amount, source, out),
        CreditCommand::Show { org, format } => show(org, *format, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn add(org: &str, amount: &str, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let amount = parse_usd("USD", amount, out)?;
    if amount.is_zero() {
        out.fail("USD: 0 gives nothing; an amount above 0 is accepted");
        return Err(Exit::Usage);
    }
    let id = on_store(source, out, async |store| {
        store.add_credit(org, amount, now_ms()).await
    })?;
    out.note(&format!("gave {amount} USD to `{org}`"));
    out.line(&id);
    Ok(())
}

fn show(org: &str, format: OutputFormat, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let credit = on_store(source, out, async |store| store.credit(org).await)?;
    out.record(format, &COLUMNS, to_record(org, &credit));
    Ok(())
}

fn to_record(org: &str, credit: &Credit) -> Record {
    let values = [
        json!(org),
        json!(credit.balance().to_string()),
        json!(credit.reserved.to_string()),
        json!(credit.granted.to_string()),
        json!(credit.used.to_string()),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
