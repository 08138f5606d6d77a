//! `weirgate reconcile`: whether the ledger and a provider's bill say the same.

use std::path::{Path, PathBuf};

use clap::Args;
use filters::models::routing::CatalogFile;
use filters::money::Usd;
use filters::reconcile::report::{Reports, reports};
use filters::reconcile::table::read_table;
use filters::reconcile::{Amounts, BillLine, ModelNames, ReconciledRow, Tolerance, compare};
use jiff::civil::Date;
use serde_json::{Value, json};

use super::accounts::{now_ms, on_store};
use super::usage::parse_since;
use super::{Exit, Output, OutputFormat, Record, Source, load, refuse_configuration};
use crate::config::{LoadedConfig, ProviderConfig, nearest, secret};

mod fetch;
mod ledger;

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate reconcile --provider openai --since 2026-11-01
  weirgate reconcile --provider anthropic --since 30d --tolerance 0.5% --admin-key file:/run/secrets/anthropic-admin
  weirgate reconcile --provider groq --file bill.csv --format json

Exit codes: 0 all agree within the tolerance, 1 some do not, 2 it could not be found out, 78 bad configuration.";

const DAY_MS: i64 = 86_400_000;
/// The most days of one comparison.
const MAX_DAYS: i64 = 366;
/// The days before today that are compared unless others are named.
const USUAL_DAYS: i64 = 7;
/// The maximum size of a table.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// The columns, which are also the fields of its JSON.
const COLUMNS: [&str; 17] = [
    "day",
    "model",
    "requests",
    "billed_requests",
    "prompt_tokens",
    "billed_prompt_tokens",
    "cached_tokens",
    "billed_cached_tokens",
    "cache_write_tokens",
    "billed_cache_write_tokens",
    "completion_tokens",
    "billed_completion_tokens",
    "cost",
    "billed_cost",
    "difference",
    "agrees",
    "causes",
];

/// Arguments of `reconcile`.
#[derive(Args)]
pub(super) struct ReconcileArgs {
    /// The provider, as the configuration names it
    #[arg(long, value_name = "NAME")]
    provider: String,
    /// The first day in UTC, or so long ago (7d, 4w) [default: 7d, or the first day of the file]
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// The last day in UTC [default: yesterday, or the last day of the file]
    #[arg(long, value_name = "DAY")]
    until: Option<Date>,
    /// The share by which both may differ
    #[arg(long, default_value = "1%")]
    tolerance: String,
    /// Where the provider's admin key is: env:NAME or file:PATH [default: env:OPENAI_ADMIN_KEY, env:ANTHROPIC_ADMIN_API_KEY]
    #[arg(long, value_name = "REFERENCE", conflicts_with = "file")]
    admin_key: Option<String>,
    /// A table of the bill (CSV or JSON), of any provider
    #[arg(long)]
    file: Option<PathBuf>,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(args: &ReconcileArgs, source: &Source, out: &mut Output) -> Exit {
    match reconcile(args, source, out) {
        Ok(exit) => exit,
        Err(exit) => exit.without_verdict(),
    }
}

fn reconcile(args: &ReconcileArgs, source: &Source, out: &mut Output) -> Result<Exit, Exit> {
    let tolerance = Tolerance::parse(&args.tolerance);
    let tolerance = tolerance.map_err(|error| refuse(out, &format!("--tolerance: {error}")))?;
    let loaded = load(source, out)?;
    let catalog = loaded.config.models.catalog.as_ref();
    let catalog = catalog.map_err(|problems| refuse_configuration(problems, out))?;
    let (days, mut bill, types) = match &args.file {
        Some(file) => {
            let bill = read_file(file, out)?;
            (find_days(args, &bill, out)?, bill, None)
        }
        None => {
            let days = find_days(args, &[], out)?;
            let (bill, types) = ask(args, &loaded, days, out)?;
            (days, bill, types)
        }
    };
    let [first, after] = days.map(ledger::to_number);
    bill.retain(|line| (first..after).contains(&ledger::to_number(line.day)));
    let own = on_store(source, out, async |store| {
        ledger::read(store, &args.provider, (first, after)).await
    })?;
    let names = ModelNames::new(catalog, &args.provider, types);
    warn(args, catalog, (&own, &bill), out);
    let rows = compare(&own.lines, &bill, &names, tolerance);
    let records: Vec<Record> = rows.iter().map(to_record).collect();
    out.records(args.format, &COLUMNS, &records);
    Ok(judge(&rows, tolerance, out))
}

/// Says how the comparison ended.
fn judge(rows: &[ReconciledRow], tolerance: Tolerance, out: &mut Output) -> Exit {
    let differ = rows.iter().filter(|row| !row.agrees).count();
    let money = |of: fn(&ReconciledRow) -> &Amounts| {
        let costs = rows.iter().filter_map(|row| of(row).cost);
        costs.fold(Usd::ZERO, Usd::plus)
    };
    let (own, billed) = (money(|row| &row.ledger), money(|row| &row.bill));
    out.note(&format!(
        "the ledger has {own} USD of what was compared, the bill {billed} USD"
    ));
    match differ {
        0 => Exit::Done,
        count => out.fail(&format!(
            "{count} of {} rows differ by more than {tolerance}",
            rows.len()
        )),
    }
}

/// Warns of what the comparison cannot see.
fn warn(
    args: &ReconcileArgs,
    catalog: &CatalogFile,
    (own, bill): (&ledger::LedgerDays, &[BillLine]),
    out: &mut Output,
) {
    let mut mappings = catalog.models.iter().flat_map(|model| &model.providers);
    if !mappings.any(|mapping| mapping.provider == args.provider) {
        out.warn(&format!(
            "the catalogue has no model of the provider {:?}",
            args.provider
        ));
    }
    if bill.is_empty() {
        out.warn("the bill says nothing of these days");
    }
    if own.own_key_calls > 0 {
        out.note(&format!(
            "{} calls with callers' own keys are left out: they are on other bills",
            own.own_key_calls
        ));
    }
    if let [first, .., last] | [first @ last] = own.days_of_sums.as_slice() {
        out.warn(&format!(
            "the single calls of days from {first} to {last} are not kept any more (store.usage_retention_days), so calls with \
             callers' own keys may be among theirs, and searches are not told apart"
        ));
    }
}

fn refuse(out: &mut Output, why: &str) -> Exit {
    out.fail(why);
    Exit::Usage
}

/// Returns the first day, and the one after the last.
fn find_days(args: &ReconcileArgs, bill: &[BillLine], out: &mut Output) -> Result<[Date; 2], Exit> {
    let today = now_ms().div_euclid(DAY_MS);
    let known = bill.iter().map(|line| ledger::to_number(line.day));
    let first = match &args.since {
        None => known.clone().min().unwrap_or(today - USUAL_DAYS),
        Some(text) => {
            let day = text.parse::<Date>().ok().map(ledger::to_number);
            let ago = || Some(parse_since(text, now_ms())?.div_euclid(DAY_MS));
            let accepted = "is neither a day such as 2026-11-01 nor so long ago as 7d";
            day.or_else(ago)
                .ok_or_else(|| refuse(out, &format!("--since: {text:?} {accepted}")))?
        }
    };
    let last = match args.until {
        None => known.max().unwrap_or(today - 1),
        Some(day) => ledger::to_number(day),
    };
    if !(0..MAX_DAYS).contains(&(last - first)) {
        let [first, last] = [first, last].map(ledger::to_date);
        let why =
            format!("--since, --until: {first} to {last} is no time of one to {MAX_DAYS} days");
        return Err(refuse(out, &why));
    }
    Ok([first, last + 1].map(ledger::to_date))
}

fn read_file(file: &Path, out: &mut Output) -> Result<Vec<BillLine>, Exit> {
    let mut failed = |why: String| out.fail(&format!("{}: {why}", file.display()));
    let size = std::fs::metadata(file).map_err(|error| failed(error.to_string()))?;
    if size.len() > MAX_FILE_BYTES {
        return Err(failed(format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    read_table(&text).map_err(failed)
}

/// A bill, and the types of models that it tells apart.
type Bill = (Vec<BillLine>, Option<&'static [&'static str]>);

/// Asks the provider for its bill.
fn ask(
    args: &ReconcileArgs,
    loaded: &LoadedConfig,
    days: [Date; 2],
    out: &mut Output,
) -> Result<Bill, Exit> {
    let provider = find_provider(&args.provider, loaded, out)?;
    let reports = reports(provider.kind).ok_or_else(|| {
        let why = "--provider: {:?} tells its bill over no interface that is known here; give a table of it with --file";
        refuse(out, &why.replace("{:?}", &format!("{:?}", provider.name)))
    })?;
    let key = find_key(args, reports, out)?;
    let asked = fetch::ReportRequest {
        base_url: provider.base_urls.first().map_or("", String::as_str),
        reports,
        key: &key,
        days,
    };
    // It may already be installed.
    _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| out.fail(&format!("nothing can be asked: {error}")))?;
    let lines = runtime.block_on(fetch::fetch(&asked, fetch::FetchLimits::USUAL));
    let lines = lines.map_err(|why| out.fail(&format!("{}: {why}", provider.name)))?;
    Ok((lines, reports.types))
}

fn find_provider<'c>(
    name: &str,
    loaded: &'c LoadedConfig,
    out: &mut Output,
) -> Result<&'c ProviderConfig, Exit> {
    let providers = &loaded.config.providers;
    let found = providers.iter().find(|provider| provider.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = providers.iter().map(|it| it.name.as_str()).collect();
        let meant = nearest(name, &known).map(|meant| format!("; did you mean {meant:?}?"));
        let why = format!(
            "--provider: {name:?} is no provider that is on{}",
            meant.unwrap_or_default()
        );
        refuse(out, &why)
    })
}

fn find_key(
    args: &ReconcileArgs,
    reports: &Reports,
    out: &mut Output,
) -> Result<secret::Secret, Exit> {
    let usual = format!("env:{}", reports.key_variable);
    let reference = args.admin_key.as_deref().unwrap_or(&usual);
    let found = secret::find_referred(reference, crate::config::environment());
    found.map_err(|why| refuse(out, &format!("--admin-key: {why}")))
}

fn to_record(row: &ReconciledRow) -> Record {
    let (own, bill) = (&row.ledger, &row.bill);
    let usd = |cost: Option<Usd>| json!(cost.map(|cost| cost.to_string()));
    let causes: Vec<&str> = row.causes.iter().map(|cause| cause.as_str()).collect();
    let difference = Usd::from_units(i128::from(row.difference) * 10_i128.pow(14));
    let values: [Value; 17] = [
        json!(row.day.to_string()),
        json!(row.model),
        json!(own.requests),
        json!(bill.requests),
        json!(own.input),
        json!(bill.input),
        json!(own.cached),
        json!(bill.cached),
        json!(own.cache_write),
        json!(bill.cache_write),
        json!(own.output),
        json!(bill.output),
        usd(own.cost),
        usd(bill.cost),
        json!(format!("{difference}%")),
        json!(row.agrees),
        json!(causes),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
