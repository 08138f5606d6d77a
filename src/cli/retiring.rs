//! `weirgate models retiring`: what providers end, and who calls it.

use std::collections::BTreeSet;

use clap::Args;
use filters::models::routing::Date;
use filters::models::routing::ending::{Ending, find_endings};
use serde_json::{Value, json};

use super::accounts::{now_ms, on_store};
use super::models::{HOUR_MS, is_on, last_call, read_catalog};
use super::usage::{parse_days, parse_since};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::config::Config;
use crate::store::ledger::{MAX_CALLERS, ModelCaller, ModelCallers};

/// The columns, which are also the fields of its JSON.
const COLUMNS: [&str; 14] = [
    "model",
    "provider",
    "is_on",
    "deprecated_at",
    "deactivated_at",
    "days_left",
    "successor",
    "others",
    "organization",
    "key",
    "label",
    "requests",
    "cost",
    "last_call_at",
];

/// Arguments of `models retiring`.
#[derive(Args)]
pub struct RetiringArgs {
    /// Only models that are not served after so long (30d, 4w); exit 1 if one of them was called
    #[arg(long, value_name = "TIME")]
    within: Option<String>,
    /// Calls since when: a time (RFC 3339) or so long ago (30m, 24h, 7d)
    #[arg(long, value_name = "TIME", default_value = "30d")]
    since: String,
    /// Also models of providers that are off
    #[arg(long)]
    all: bool,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(args: &RetiringArgs, of: (&Source, &Config), out: &mut Output) -> Exit {
    tell(args, of, out).unwrap_or_else(Exit::without_verdict)
}

fn tell(
    args: &RetiringArgs,
    (source, config): (&Source, &Config),
    out: &mut Output,
) -> Result<Exit, Exit> {
    let now_ms = now_ms();
    let within = match &args.within {
        None => None,
        Some(text) => Some(parse_days("--within", text, out)?),
    };
    let since_ms =
        parse_since(&args.since, now_ms).ok_or_else(|| refuse_since(&args.since, out))?;
    let catalog = read_catalog(config, out)?;
    let mut endings = find_endings(catalog, |name| is_on(config, name), now_ms / 1000);
    endings.retain(|ending| {
        let is_wanted = args.all || is_on(config, &ending.mapping.provider);
        is_wanted && within.is_none_or(|days| ending.is_within(days))
    });
    let callers = match endings.is_empty() {
        true => ModelCallers::default(),
        false => {
            let models: BTreeSet<&str> = endings.iter().map(|it| it.model.id.as_str()).collect();
            let models: Vec<&str> = models.into_iter().collect();
            on_store(source, out, async |store| {
                store
                    .model_callers(&models, since_ms.div_euclid(HOUR_MS))
                    .await
            })?
        }
    };
    let (mut records, mut in_use) = (Vec::new(), 0);
    for ending in &endings {
        let of_ending = callers.callers.iter().filter(|it| is_of(it, ending));
        let is_on = is_on(config, &ending.mapping.provider);
        let before = records.len();
        records.extend(of_ending.map(|caller| to_record(ending, is_on, Some(caller))));
        match records.len() == before {
            true => records.push(to_record(ending, is_on, None)),
            false => in_use += 1,
        }
    }
    out.records(args.format, &COLUMNS, &records);
    if callers.is_cut {
        out.warn(&format!(
            "only the {MAX_CALLERS} keys with the most calls are listed"
        ));
    }
    Ok(match (within, in_use) {
        (None, _) | (_, 0) => Exit::Done,
        (Some(days), count) => out.fail(&format!(
            "within {days} days providers end {count} of the models that were called"
        )),
    })
}

/// Refuses a time of `--since`.
pub(super) fn refuse_since(text: &str, out: &mut Output) -> Exit {
    out.fail(&format!(
        "--since: {text:?} is neither a time such as 2026-11-01T00:00:00Z nor so long ago as 24h"
    ));
    Exit::Usage
}

fn is_of(caller: &ModelCaller, ending: &Ending<'_>) -> bool {
    caller.usage.name == ending.model.id && caller.provider == ending.mapping.provider
}

fn to_record(ending: &Ending<'_>, is_on: bool, caller: Option<&ModelCaller>) -> Record {
    let day = |date: &Option<Date>| date.as_ref().map(|date| date.0.clone());
    let values: [Value; 14] = [
        json!(ending.model.id),
        json!(ending.mapping.provider),
        json!(is_on),
        json!(day(&ending.mapping.deprecated_at)),
        json!(day(&ending.mapping.deactivated_at)),
        json!(ending.days_left),
        json!(ending.model.successor),
        json!(ending.others),
        json!(caller.map(|it| &it.organization)),
        json!(caller.map(|it| &it.key_id)),
        json!(caller.and_then(|it| it.key_label.as_ref())),
        json!(caller.map_or(0, |it| it.usage.requests)),
        json!(caller.map_or_else(|| "0".to_owned(), |it| it.cost().to_string())),
        caller.map_or(Value::Null, |it| last_call(it.last_hour)),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
