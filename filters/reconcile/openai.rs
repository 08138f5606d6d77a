//! OpenAI's usage and costs of an organization. Source: docs/facts/bills.md 1.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::bill::{Amounts, BillLine, parse_amount};
use super::report::{Report, ReportPage, Reports, WrittenPage, parse, tier};

/// Its reports. The costs are those of a day alone: what its line items are called is not documented.
pub const REPORTS: Reports = Reports {
    reports: &[
        Report {
            name: "usage of completions",
            path: "/organization/usage/completions",
            query: |days| {
                format!(
                    "{}&limit=31&group_by=model&group_by=service_tier",
                    times(days)
                )
            },
            read: read_usage,
        },
        Report {
            name: "usage of embeddings",
            path: "/organization/usage/embeddings",
            query: |days| format!("{}&limit=31&group_by=model", times(days)),
            read: read_usage,
        },
        Report {
            name: "costs",
            path: "/organization/costs",
            query: |days| format!("{}&limit=180", times(days)),
            read: read_costs,
        },
    ],
    types: Some(&["chat", "embedding"]),
    key_variable: "OPENAI_ADMIN_KEY",
    key_header: ("authorization", "Bearer "),
    headers: &[],
};

fn times([from, until]: [Date; 2]) -> String {
    let second = |day: Date| {
        let begins = day.to_zoned(TimeZone::UTC);
        begins.map_or(0, |begins| begins.timestamp().as_second())
    };
    format!(
        "start_time={}&end_time={}&bucket_width=1d",
        second(from),
        second(until)
    )
}

#[derive(Deserialize)]
struct Bucket<R> {
    start_time: i64,
    results: Vec<R>,
}

#[derive(Deserialize)]
struct UsageResult {
    input_tokens: u64,
    #[serde(default)]
    input_cached_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    num_model_requests: u64,
    model: Option<Box<str>>,
    #[serde(default)]
    service_tier: Option<Box<str>>,
}

#[derive(Deserialize)]
struct CostResult {
    amount: Option<CostAmount>,
}

#[derive(Deserialize)]
struct CostAmount {
    /// A number, or a text of one.
    value: Box<RawValue>,
    currency: Box<str>,
}

fn day(start_time: i64) -> Result<Date, String> {
    let time = Timestamp::from_second(start_time);
    let time = time.map_err(|_| format!("its `start_time` {start_time} is no time"))?;
    Ok(time.to_zoned(TimeZone::UTC).date())
}

/// Reads a page of usage. Its prompt tokens include cached ones.
fn read_usage(page: &[u8]) -> Result<ReportPage, String> {
    let page: WrittenPage<Bucket<UsageResult>> = parse(page)?;
    page.read(|bucket, lines| {
        let day = day(bucket.start_time)?;
        for result in bucket.results {
            let model = result.model.ok_or("a result has no `model`")?;
            lines.push(BillLine {
                day,
                model: Some(model),
                tier: tier(result.service_tier),
                amounts: Amounts {
                    requests: Some(result.num_model_requests),
                    input: Some(result.input_tokens),
                    cached: result.input_cached_tokens,
                    output: result.output_tokens,
                    ..Amounts::default()
                },
            });
        }
        Ok(())
    })
}

/// Reads a page of costs.
fn read_costs(page: &[u8]) -> Result<ReportPage, String> {
    let page: WrittenPage<Bucket<CostResult>> = parse(page)?;
    page.read(|bucket, lines| {
        let day = day(bucket.start_time)?;
        for amount in bucket.results.into_iter().filter_map(|it| it.amount) {
            if !amount.currency.eq_ignore_ascii_case("usd") {
                return Err("its amounts are not in USD".to_owned());
            }
            let cost = parse_amount(amount.value.get());
            let cost = cost.ok_or("an `amount.value` is no amount")?;
            lines.push(BillLine {
                day,
                model: None,
                tier: None,
                amounts: Amounts {
                    cost: Some(cost),
                    ..Amounts::default()
                },
            });
        }
        Ok(())
    })
}
