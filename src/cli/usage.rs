//! `weirgate usage`: sums of the ledger.

use clap::{Args, ValueEnum};
use filters::ledger::usage_query::UsageGroup;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::accounts::{now_ms, on_store};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::ledger::{By, Usage, VariationUsage};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate usage --org acme
  weirgate usage --org acme --since 24h --by model
  weirgate usage --org acme --since 7d --by day
  weirgate usage --org acme --since 7d --by variation
  weirgate usage --org acme --since 1h --by agent
  weirgate usage --org acme --since 7d --by tag
  weirgate usage --org acme --since 2026-11-01T00:00:00Z --by key --format json";

const DAY_MS: i64 = 86_400_000;
/// The columns after the one that the sums are grouped by.
const COLUMNS: [&str; 5] = [
    "requests",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "cost",
];

/// The columns of usage by variation.
const VARIATION_COLUMNS: [&str; 12] = [
    "project",
    "flag",
    "rule",
    "variation",
    "requests",
    "failures",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "cost",
    "duration_p50_ms",
    "duration_p95_ms",
];

/// Arguments of `usage`.
#[derive(Args)]
pub(super) struct UsageArgs {
    /// The organization's name
    #[arg(long)]
    org: String,
    /// Since when: a time (RFC 3339) or so long ago (30m, 24h, 7d) [default: all that is kept]
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// One row for each of these [default: one row]
    #[arg(long, value_enum)]
    by: Option<ByArg>,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// The grouping of the sums.
#[derive(Clone, Copy, ValueEnum)]
enum ByArg {
    Key,
    Model,
    Provider,
    /// The days in UTC, the oldest first
    Day,
    /// Experiments alone, with failed calls and with how long calls took
    Variation,
    /// The sessions that clients name, of the last 30 days
    Session,
    /// The agents of those sessions
    Agent,
    /// The tags that clients give their calls; a call with two is in both
    Tag,
}

pub(super) fn run(args: &UsageArgs, source: &Source, out: &mut Output) -> Exit {
    show(args, source, out).map_or_else(|exit| exit, |()| Exit::Done)
}

fn show(args: &UsageArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let since_ms = match &args.since {
        None => 0,
        Some(text) => parse_since(text, now_ms()).ok_or_else(|| {
            out.fail(&format!(
                "--since: {text:?} is neither a time such as 2026-11-01T00:00:00Z nor so long ago as 24h"
            ));
            Exit::Usage
        })?,
    };
    let by = match args.by {
        None => None,
        Some(ByArg::Key) => Some(By::Key),
        Some(ByArg::Model) => Some(By::Model),
        Some(ByArg::Provider) => Some(By::Provider),
        Some(ByArg::Day) => Some(By::Day),
        Some(ByArg::Variation) => return show_variations(args, since_ms, source, out),
        Some(ByArg::Session) => {
            return show_sessions(args, since_ms, UsageGroup::Session, (source, out));
        }
        Some(ByArg::Agent) => {
            return show_sessions(args, since_ms, UsageGroup::Agent, (source, out));
        }
        Some(ByArg::Tag) => {
            return show_sessions(args, since_ms, UsageGroup::Tag, (source, out));
        }
    };
    let rows = on_store(source, out, async |store| {
        store.usage(&args.org, since_ms, by).await
    })?;
    let columns: Vec<&str> = by.map(By::as_str).into_iter().chain(COLUMNS).collect();
    let name = |row: &Usage| by.map(|by| (by.as_str().to_owned(), json!(row.name)));
    let records = rows.iter().map(|row| to_record(name(row), row));
    out.records(args.format, &columns, &records.collect::<Vec<Record>>());
    Ok(())
}

fn show_sessions(
    args: &UsageArgs,
    since_ms: i64,
    group: UsageGroup,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    let rows = on_store(source, out, async |store| {
        store.usage_by_session(&args.org, since_ms, group).await
    })?;
    let names: &[&str] = match group {
        UsageGroup::Agent => &["session", "agent", "parent"],
        UsageGroup::Tag => &["tag"],
        _ => &["session"],
    };
    let columns: Vec<&str> = names.iter().copied().chain(COLUMNS).collect();
    let records = rows.iter().map(|row| {
        let own = &row.usage.name;
        let values = match &row.origin {
            Some(origin) => vec![json!(origin.session), json!(own), json!(origin.parent)],
            None => vec![json!(own)],
        };
        let names = names.iter().map(|name| (*name).to_owned());
        to_record(names.zip(values), &row.usage)
    });
    out.records(args.format, &columns, &records.collect::<Vec<Record>>());
    Ok(())
}

fn show_variations(
    args: &UsageArgs,
    since_ms: i64,
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    let rows = on_store(source, out, async |store| {
        store.usage_by_variation(&args.org, since_ms).await
    })?;
    let records: Vec<Record> = rows.iter().map(variation_record).collect();
    out.records(args.format, &VARIATION_COLUMNS, &records);
    Ok(())
}

fn variation_record(row: &VariationUsage) -> Record {
    let values: [Value; 12] = [
        json!(row.project),
        json!(row.names.flag),
        json!(row.names.rule),
        json!(row.names.variation),
        json!(row.requests),
        json!(row.failures),
        json!(row.prompt_tokens),
        json!(row.cached_tokens),
        json!(row.completion_tokens),
        json!(row.cost.to_string()),
        json!(row.duration_p50_ms),
        json!(row.duration_p95_ms),
    ];
    let columns = VARIATION_COLUMNS.map(str::to_owned);
    columns.into_iter().zip(values).collect()
}

/// Returns the sums of a row behind its names.
fn to_record(names: impl IntoIterator<Item = (String, Value)>, row: &Usage) -> Record {
    let values: [Value; 5] = [
        json!(row.requests),
        json!(row.prompt_tokens),
        json!(row.cached_tokens),
        json!(row.completion_tokens),
        json!(row.cost.to_string()),
    ];
    let columns = COLUMNS.map(str::to_owned).into_iter().zip(values);
    names.into_iter().chain(columns).collect()
}

/// Parses a time, or a duration before now, to unix milliseconds.
pub(super) fn parse_since(text: &str, now_ms: i64) -> Option<i64> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_millisecond());
    }
    let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count: i64 = count.parse().ok().filter(|count| *count >= 0)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    let ago = SignedDuration::from_secs(count.checked_mul(seconds)?);
    now_ms.checked_sub(i64::try_from(ago.as_millis()).ok()?)
}

/// Parses a number of days, such as `30d` or `4w`.
pub(super) fn parse_days(name: &str, text: &str, out: &mut Output) -> Result<i64, Exit> {
    let is_plain = text.ends_with(['d', 'w']);
    let ago_ms = parse_since(text, 0).filter(|_| is_plain);
    ago_ms.map(|ago| -ago / DAY_MS).ok_or_else(|| {
        out.fail(&format!(
            "{name}: {text:?} is no number of days or weeks such as 30d or 4w"
        ));
        Exit::Usage
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_so_long_ago_are_understood_and_nothing_else() {
        let now = 1_800_000_000_000;
        assert_eq!(parse_since("1970-01-01T00:00:01Z", now), Some(1_000));
        assert_eq!(parse_since("2h", now), Some(now - 7_200_000));
        assert_eq!(parse_since("7d", now), Some(now - 604_800_000));
        for bad in [
            "",
            "h",
            "-1h",
            "1.5h",
            "1y",
            "yesterday",
            "9223372036854775807w",
        ] {
            assert_eq!(parse_since(bad, now), None, "{bad}");
        }
    }
}
