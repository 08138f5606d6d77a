//! `weirgate credit`: platform credit.

use clap::{Args, Subcommand};
use filters::money::Usd;
use serde_json::json;

use super::accounts::{change_accounts, now_ms, on_store, parse_usd};
use super::arguments::FormatArgs;
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::{Credit, check_amount};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate credit add --org acme 25
  weirgate credit take --org acme 5      what is neither used nor held back for calls that run
  weirgate credit show --org acme --format json";

/// The columns of `credit show`, which are also the fields of its JSON.
const COLUMNS: [&str; 5] = ["organization", "balance", "reserved", "granted", "used"];

/// The commands of `credit`.
#[derive(Subcommand)]
pub(super) enum CreditCommand {
    /// Give credit to an organization
    Add(AmountArgs),
    /// Take credit back that is neither used nor held back for calls that run
    Take(AmountArgs),
    /// Show what is left, held back, given and used
    Show {
        /// The organization's name
        #[arg(long)]
        org: String,
        #[command(flatten)]
        output: FormatArgs,
    },
}

/// An amount of an organization.
#[derive(Args)]
pub(super) struct AmountArgs {
    /// The organization's name
    #[arg(long)]
    org: String,
    /// How much, as a plain decimal such as 2.50
    #[arg(value_name = "USD", allow_hyphen_values = true)]
    amount: String,
    #[command(flatten)]
    output: FormatArgs,
}

pub(super) fn run(command: &CreditCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        CreditCommand::Add(args) => add(args, source, out),
        CreditCommand::Take(args) => take(args, source, out),
        CreditCommand::Show { org, output } => show(org, output.format, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn add(args: &AmountArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let amount = parse_amount(args, true, out)?;
    let id = change_accounts(source, out, async |store| {
        store.add_credit(&args.org, amount, now_ms()).await
    })?;
    let note = format!("gave {amount} USD to `{}`", args.org);
    write_grant(args, ("added", &id), &note, out);
    Ok(())
}

fn take(args: &AmountArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let amount = parse_amount(args, false, out)?;
    let id = change_accounts(source, out, async |store| {
        store.take_credit(&args.org, amount, now_ms()).await
    })?;
    let note = format!("took {amount} USD from `{}`", args.org);
    write_grant(args, ("taken", &id), &note, out);
    Ok(())
}

fn parse_amount(args: &AmountArgs, is_given: bool, out: &mut Output) -> Result<Usd, Exit> {
    let amount = parse_usd("USD", &args.amount, out)?;
    match check_amount(amount, is_given) {
        Ok(()) => Ok(amount),
        Err(error) => {
            out.fail(&format!("USD: {error}"));
            Err(Exit::Usage)
        }
    }
}

fn write_grant(args: &AmountArgs, (done, id): (&str, &str), note: &str, out: &mut Output) {
    let done = json!({
        "done": done, "id": id, "organization": args.org, "amount": args.amount,
    });
    out.done(args.output.format, note, Some(id), &done);
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
