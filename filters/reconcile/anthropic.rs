//! Anthropic's usage and cost reports of an organization. Source: docs/facts/bills.md 2.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::bill::{Amounts, BillLine, parse_amount};
use super::report::{Report, ReportPage, Reports, WrittenPage, parse, tier};
use crate::money::Usd;

/// The cents of a dollar, in which costs are written.
const CENTS: i128 = 100;

/// Its reports. Usage has no number of calls.
pub const REPORTS: Reports = Reports {
    reports: &[
        Report {
            name: "usage of messages",
            path: "/v1/organizations/usage_report/messages",
            query: |days| {
                let groups = "group_by%5B%5D=model&group_by%5B%5D=service_tier";
                format!("{}&limit=31&{groups}", times(days))
            },
            read: read_usage,
        },
        Report {
            name: "costs",
            path: "/v1/organizations/cost_report",
            query: |days| format!("{}&limit=31&group_by%5B%5D=description", times(days)),
            read: read_costs,
        },
    ],
    types: None,
    key_variable: "ANTHROPIC_ADMIN_API_KEY",
    key_header: ("x-api-key", ""),
    headers: &[("anthropic-version", "2023-06-01")],
};

fn times([from, until]: [Date; 2]) -> String {
    format!("starting_at={from}T00:00:00Z&ending_at={until}T00:00:00Z&bucket_width=1d")
}

#[derive(Deserialize)]
struct Bucket<R> {
    starting_at: Box<str>,
    results: Vec<R>,
}

impl<R> Bucket<R> {
    fn day(&self) -> Result<Date, String> {
        let time = self.starting_at.parse::<Timestamp>();
        let time = time.map_err(|_| "a `starting_at` is no time".to_owned())?;
        Ok(time.to_zoned(TimeZone::UTC).date())
    }
}

#[derive(Deserialize)]
struct UsageResult {
    uncached_input_tokens: u64,
    cache_read_input_tokens: u64,
    #[serde(default)]
    cache_creation: Option<CacheCreation>,
    output_tokens: u64,
    model: Option<Box<str>>,
    #[serde(default)]
    service_tier: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
struct CacheCreation {
    #[serde(default)]
    ephemeral_1h_input_tokens: u64,
    #[serde(default)]
    ephemeral_5m_input_tokens: u64,
}

#[derive(Deserialize)]
struct CostResult {
    amount: Box<str>,
    currency: Box<str>,
    #[serde(default)]
    model: Option<Box<str>>,
    #[serde(default)]
    service_tier: Option<Box<str>>,
}

/// Reads a page of usage. Its kinds of prompt tokens exclude each other.
fn read_usage(page: &[u8]) -> Result<ReportPage, String> {
    let page: WrittenPage<Bucket<UsageResult>> = parse(page)?;
    page.read(|bucket, lines| {
        let day = bucket.day()?;
        for result in bucket.results {
            let model = result.model.ok_or("a result has no `model`")?;
            let written = result.cache_creation.unwrap_or_default();
            let written = written
                .ephemeral_1h_input_tokens
                .saturating_add(written.ephemeral_5m_input_tokens);
            let cached = result.cache_read_input_tokens;
            let input = result.uncached_input_tokens.saturating_add(cached);
            lines.push(BillLine {
                day,
                model: Some(model),
                tier: tier(result.service_tier),
                amounts: Amounts {
                    input: Some(input.saturating_add(written)),
                    cached: Some(cached),
                    cache_write: Some(written),
                    output: Some(result.output_tokens),
                    ..Amounts::default()
                },
            });
        }
        Ok(())
    })
}

/// Reads a page of costs, which are in cents. Searches and the like have no model.
fn read_costs(page: &[u8]) -> Result<ReportPage, String> {
    let page: WrittenPage<Bucket<CostResult>> = parse(page)?;
    page.read(|bucket, lines| {
        let day = bucket.day()?;
        for result in bucket.results {
            if !result.currency.eq_ignore_ascii_case("usd") {
                return Err("its amounts are not in USD".to_owned());
            }
            let cents = parse_amount(&result.amount).ok_or("an `amount` is no amount")?;
            lines.push(BillLine {
                day,
                model: result.model,
                tier: tier(result.service_tier),
                amounts: Amounts {
                    cost: Some(Usd::from_units(cents.units() / CENTS)),
                    ..Amounts::default()
                },
            });
        }
        Ok(())
    })
}
