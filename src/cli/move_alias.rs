//! `weirgate models move-alias`: gives an alias to another model, and says whom that concerns and what it changes.

use std::collections::BTreeMap;

use clap::Args;
use filters::models::routing::CatalogFile;
use filters::models::routing::alias_move::{AliasMove, AliasMoveError, CallSums, Difference};
use filters::money::Usd;
use serde_json::{Value, json};

use super::accounts::{now_ms, on_store};
use super::models::{HOUR_MS, is_on, last_call, read_catalog};
use super::retiring::refuse_since;
use super::usage::parse_since;
use super::{Exit, Output, OutputFormat, Record, Source, alias_file};
use crate::config::{Config, nearest};
use crate::store::ledger::{MAX_CALLERS, ModelCaller};

/// The columns of what differs.
const DIFFERENCE_COLUMNS: [&str; 3] = ["property", "from", "to"];
/// The columns of who calls.
const CALLER_COLUMNS: [&str; 7] = [
    "organization",
    "key",
    "label",
    "requests",
    "cost",
    "cost_then",
    "last_call_at",
];

/// Arguments of `models move-alias`.
#[derive(Args)]
pub struct MoveAliasArgs {
    /// The alias, as the catalogue writes it
    alias: String,
    /// The model that gets it: its id, or another alias of it
    #[arg(long, value_name = "MODEL")]
    to: String,
    /// Only say whom it concerns and what it changes
    #[arg(long)]
    dry_run: bool,
    /// Calls since when: a time (RFC 3339) or so long ago (30m, 24h, 7d)
    #[arg(long, value_name = "TIME", default_value = "30d")]
    since: String,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// What a key has called of the model, and what it would have cost.
#[derive(Default)]
struct AliasCaller {
    label: Option<String>,
    requests: i64,
    last_hour: i64,
    cost: Usd,
    /// `None`: the price of some of the calls is unknown.
    cost_then: Option<Usd>,
}

/// The callers of the model that has the alias, by organization and key.
type Callers = BTreeMap<(String, String), AliasCaller>;

pub(super) fn run(args: &MoveAliasArgs, of: (&Source, &Config), out: &mut Output) -> Exit {
    move_alias(args, of, out).unwrap_or_else(|exit| exit)
}

fn move_alias(
    args: &MoveAliasArgs,
    (source, config): (&Source, &Config),
    out: &mut Output,
) -> Result<Exit, Exit> {
    let since_ms = parse_since(&args.since, now_ms());
    let since_ms = since_ms.ok_or_else(|| refuse_since(&args.since, out))?;
    let catalog = read_catalog(config, out)?;
    let found = AliasMove::find(catalog, &args.alias, &args.to);
    let found = found.map_err(|error| refuse(&error, args, catalog, out))?;
    let on = |provider: &str| is_on(config, provider);
    let from_hour = since_ms.div_euclid(HOUR_MS);
    let called = on_store(source, out, async |store| {
        store.model_callers(&[&found.from.id], from_hour).await
    })?;
    let callers = group(&called.callers, &found, &on);
    if !args.dry_run {
        let file = config.models.file.as_deref();
        let file = file.ok_or_else(|| out.fail("the configuration has no models.file"))?;
        let names = (args.alias.as_str(), &*found.from.id, &*found.to.id);
        alias_file::move_alias(file, names).map_err(|error| out.fail(&error))?;
    }
    tell(args, (&found, &found.differences(&on), &callers), out);
    if called.is_cut {
        out.warn(&format!(
            "only the {MAX_CALLERS} keys with the most calls count"
        ));
    }
    Ok(Exit::Done)
}

/// Says why there is nothing to move.
fn refuse(
    error: &AliasMoveError,
    args: &MoveAliasArgs,
    catalog: &CatalogFile,
    out: &mut Output,
) -> Exit {
    let models = catalog.models.iter();
    let (argument, name, known): (_, _, Vec<&str>) = match error {
        AliasMoveError::NoTarget => ("--to", &args.to, models.map(|it| it.id.as_str()).collect()),
        _ => {
            let known = models.flat_map(|model| &model.aliases);
            ("alias", &args.alias, known.map(String::as_str).collect())
        }
    };
    let meant = match error {
        AliasMoveError::NoAlias | AliasMoveError::NoTarget => nearest(name, &known),
        _ => None,
    };
    let meant = meant.map(|meant| format!("; did you mean {meant:?}?"));
    out.fail(&format!(
        "{argument}: {name:?} {error}{}",
        meant.unwrap_or_default()
    ));
    Exit::Usage
}

/// Returns the callers by organization and key, with what their calls would have cost.
fn group(called: &[ModelCaller], found: &AliasMove<'_>, on: &impl Fn(&str) -> bool) -> Callers {
    let mut callers = Callers::new();
    for caller in called {
        let sums = CallSums {
            requests: u64::try_from(caller.usage.requests).unwrap_or_default(),
            tokens: caller.tokens(),
        };
        let then = found.recost(&caller.provider, &sums, on);
        let names = (caller.organization.clone(), caller.key_id.clone());
        let sum = callers.entry(names).or_insert_with(|| AliasCaller {
            label: caller.key_label.clone(),
            cost_then: Some(Usd::ZERO),
            ..AliasCaller::default()
        });
        sum.requests += caller.usage.requests;
        sum.last_hour = sum.last_hour.max(caller.last_hour);
        sum.cost = sum.cost.plus(caller.cost());
        sum.cost_then = sum.cost_then.zip(then).map(|(sum, then)| sum.plus(then));
    }
    callers
}

/// Writes what differs, who calls, and what was done.
fn tell(
    args: &MoveAliasArgs,
    (found, differences, callers): (&AliasMove<'_>, &[Difference], &Callers),
    out: &mut Output,
) {
    let sum = callers
        .values()
        .fold(Usd::ZERO, |sum, it| sum.plus(it.cost));
    let then = callers
        .values()
        .try_fold(Usd::ZERO, |sum, it| it.cost_then.map(|cost| sum.plus(cost)));
    let differences: Vec<Record> = differences.iter().map(difference_record).collect();
    let callers: Vec<Record> = callers.iter().map(caller_record).collect();
    let (alias, from, to) = (&args.alias, &found.from.id, &found.to.id);
    let done = match args.dry_run {
        true => "nothing",
        false => "moved",
    };
    if args.format == OutputFormat::Json {
        out.json(&json!({
            "done": done, "alias": alias, "from": from, "to": to, "differences": differences,
            "callers": callers, "cost": sum.to_string(), "cost_then": then.map(|it| it.to_string()),
        }));
    } else {
        out.records(args.format, &DIFFERENCE_COLUMNS, &differences);
        out.line("");
        out.records(args.format, &CALLER_COLUMNS, &callers);
    }
    let then = then.map_or_else(|| "an unknown amount".to_owned(), |it| format!("{it} USD"));
    out.note(&format!(
        "since {}: the calls of {from}, by any of its names, have cost {sum} USD; with {to}, at its usual prices, {then}",
        args.since
    ));
    out.note(&match args.dry_run {
        true => format!("nothing was done; without --dry-run {alias} moves from {from} to {to}"),
        false => format!(
            "moved {alias} from {from} to {to}; a running server takes it with `weirgate reload`"
        ),
    });
}

fn difference_record(difference: &Difference) -> Record {
    let values = [
        json!(difference.property),
        json!(difference.from),
        json!(difference.to),
    ];
    let columns = DIFFERENCE_COLUMNS.map(str::to_owned);
    columns.into_iter().zip(values).collect()
}

fn caller_record(((organization, key), caller): (&(String, String), &AliasCaller)) -> Record {
    let values: [Value; 7] = [
        json!(organization),
        json!(key),
        json!(caller.label),
        json!(caller.requests),
        json!(caller.cost.to_string()),
        json!(caller.cost_then.map(|cost| cost.to_string())),
        last_call(caller.last_hour),
    ];
    let columns = CALLER_COLUMNS.map(str::to_owned);
    columns.into_iter().zip(values).collect()
}
