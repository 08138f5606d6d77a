//! `weirgate session`: what sessions of clients spend under their budget, and what people say of them.

use clap::{Args, Subcommand};
use filters::money::Period;
use filters::money::budgets::{nameless_budget, session_budget};
use serde_json::json;

use super::accounts::{change_accounts, format_time, now_ms, on_store, parse_usd};
use super::arguments::FormatArgs;
use super::{Exit, Output, Record, Source};
use crate::models::sessions::session_name;
use crate::store::{BudgetChange, BudgetReport, Store, StoreError, check_amount};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate session show --org acme 0190c3a2-…
  weirgate session grant --org acme 0190c3a2-… 5     it goes on with its next request
  weirgate session pause --org acme 0190c3a2-…       its next request is refused, with or without a budget
  weirgate session resume --org acme 0190c3a2-…
  weirgate session show --org acme key_0190c3a2-…    the calls of a key that name no session";

/// The columns of `session show`, which are also the fields of its JSON.
const COLUMNS: [&str; 13] = [
    "session",
    "status",
    "limits",
    "left",
    "spent",
    "spent_hour",
    "spent_day",
    "spent_week",
    "spent_month",
    "granted",
    "grace_calls",
    "keys",
    "paused_at",
];

/// The commands of `session`.
#[derive(Subcommand)]
pub(super) enum SessionCommand {
    /// Show what a session has spent, and what is left of its budget
    Show(SessionArgs),
    /// Let a session spend more than its budget, once; a paused one goes on
    Grant(GrantArgs),
    /// Refuse the next requests of a session, whether or not it has a budget
    Pause(SessionArgs),
    /// Let a paused session go on
    Resume(SessionArgs),
}

/// A session of an organization.
#[derive(Args)]
pub(super) struct SessionArgs {
    /// The organization's name
    #[arg(long)]
    org: String,
    /// The session's id, as the client names it; of calls without one the id of their key
    id: String,
    #[command(flatten)]
    output: FormatArgs,
}

/// What a session may spend beyond its budget.
#[derive(Args)]
pub(super) struct GrantArgs {
    #[command(flatten)]
    of: SessionArgs,
    /// How much, as a plain decimal such as 2.50
    #[arg(value_name = "USD", allow_hyphen_values = true)]
    amount: String,
}

pub(super) fn run(command: &SessionCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        SessionCommand::Show(args) => show(args, source, out),
        SessionCommand::Grant(args) => grant(args, source, out),
        SessionCommand::Pause(args) => change(args, ("paused", BudgetChange::Pause), source, out),
        SessionCommand::Resume(args) => {
            change(args, ("resumed", BudgetChange::Resume), source, out)
        }
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn grant(args: &GrantArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let amount = parse_usd("USD", &args.amount, out)?;
    if let Err(error) = check_amount(amount, true) {
        out.fail(&format!("USD: {error}"));
        return Err(Exit::Usage);
    }
    let did = format!("granted {amount} USD to");
    change(&args.of, (&did, BudgetChange::Grant(amount)), source, out)
}

fn change(
    args: &SessionArgs,
    (did, what): (&str, BudgetChange),
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    check_id(args, out)?;
    change_accounts(source, out, async |store| {
        let name = find_name(&store, args).await?;
        store.change_budget(&args.org, &name, what, now_ms()).await
    })?;
    let done = json!({"done": did, "session": args.id, "organization": args.org});
    let note = format!("{did} session `{}` of `{}`", args.id, args.org);
    out.done(args.output.format, &note, None, &done);
    Ok(())
}

fn show(args: &SessionArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    check_id(args, out)?;
    let report = on_store(source, out, async |store| {
        let name = find_name(store, args).await?;
        store.budget_report(&args.org, &name, now_ms()).await
    })?;
    out.record(args.output.format, &COLUMNS, to_record(args, &report));
    Ok(())
}

fn check_id(args: &SessionArgs, out: &mut Output) -> Result<(), Exit> {
    match args.id.is_empty() {
        false => Ok(()),
        true => {
            out.fail("ID: it is empty; accepted is the id of a session or of a key");
            Err(Exit::Usage)
        }
    }
}

/// Returns the name of the budget of a session, or of the calls of a key that name none.
async fn find_name(store: &Store, args: &SessionArgs) -> Result<String, StoreError> {
    if args.id.starts_with("key_") {
        match store.key(&args.id).await {
            Ok((organization, _)) if organization == args.org => {
                return Ok(nameless_budget(&args.id));
            }
            Ok(_) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let name = session_name(args.id.as_bytes()).unwrap_or_default();
    Ok(session_budget(&name))
}

fn to_record(args: &SessionArgs, report: &BudgetReport) -> Record {
    let spent = &report.spent;
    let [hour, day, week, month] = spent.periods.map(|usd| json!(usd.to_string()));
    let lifetime = report.limits.lifetime.map(|usd| usd.to_string());
    let periods = Period::ALL.into_iter().zip(report.limits.periods);
    let periods = periods.filter_map(|(period, usd)| Some(format!("{}/{period}", usd?)));
    let limits: Vec<String> = lifetime.into_iter().chain(periods).collect();
    let values = [
        json!(args.id),
        json!(report.paused_ms.map_or("active", |_| "paused")),
        json!(limits),
        json!(report.left().map(|usd| usd.to_string())),
        json!(spent.total.to_string()),
        hour,
        day,
        week,
        month,
        json!(report.granted.to_string()),
        json!(report.grace_calls),
        json!(report.keys),
        format_time(report.paused_ms),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
