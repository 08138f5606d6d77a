//! Pages of reports: valid ones, others and damaged ones.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use jiff::civil::date;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::models::hosts::ProviderKind;

fn page(kind: ProviderKind, report: usize, page: serde_json::Value) -> Result<ReportPage, String> {
    let report = &reports(kind).unwrap().reports[report];
    (report.read)(page.to_string().as_bytes())
}

fn usd(text: &str) -> Option<crate::money::Usd> {
    Some(crate::money::Usd::parse(text).unwrap())
}

#[test]
fn the_usage_of_openai_is_read_with_its_tier_and_the_next_page() {
    let read = page(
        ProviderKind::OpenAi,
        0,
        json!({"object": "page", "has_more": true, "next_page": "AAAA", "data": [
            {"object": "bucket", "start_time": 1_761_955_200, "end_time": 1_762_041_600, "results": [
                {"object": "organization.usage.completions.result", "input_tokens": 1000, "output_tokens": 500,
                 "input_cached_tokens": 800, "num_model_requests": 5, "model": "gpt-5", "batch": null,
                 "service_tier": "flex"},
                {"input_tokens": 1, "output_tokens": 2, "num_model_requests": 1, "model": "gpt-5",
                 "service_tier": "default"},
            ]},
            {"start_time": 1_762_041_600, "results": []},
        ]}),
    )
    .unwrap();
    assert_eq!(read.next.as_deref(), Some("AAAA"));
    assert_eq!(read.lines.len(), 2);
    let first = &read.lines[0];
    assert_eq!(first.day, date(2025, 11, 1));
    assert_eq!(first.tier.as_deref(), Some("flex"));
    let amounts = Amounts {
        requests: Some(5),
        input: Some(1000),
        cached: Some(800),
        output: Some(500),
        ..Amounts::default()
    };
    assert_eq!(first.amounts, amounts);
    assert_eq!(
        (&read.lines[1].tier, read.lines[1].amounts.cached),
        (&None, None)
    );
}

#[test]
fn the_costs_of_openai_are_numbers_or_texts_of_a_day() {
    let amount = |value| json!({"object": "organization.costs.result", "line_item": null, "amount": {"value": value, "currency": "usd"}});
    let bucket = |results| json!({"data": [{"start_time": 1_761_955_200, "results": results}], "has_more": false, "next_page": null});
    let results = json!([
        amount(json!(0.06)),
        amount(json!("0.8958740000000000")),
        amount(json!(6e-5))
    ]);
    let read = page(ProviderKind::OpenAi, 2, bucket(results)).unwrap();
    let costs: Vec<_> = read.lines.iter().map(|line| line.amounts.cost).collect();
    assert_eq!(costs, [usd("0.06"), usd("0.895874"), usd("0.00006")]);
    assert!(read.lines.iter().all(|line| line.model.is_none()) && read.next.is_none());
    let mut euros = amount(json!(1));
    euros["amount"]["currency"] = "eur".into();
    for (results, said) in [
        (json!([euros]), "not in USD"),
        (json!([amount(json!("much"))]), "no amount"),
        (
            json!([{"amount": {"currency": "usd"}}]),
            "missing field `value`",
        ),
    ] {
        let error = page(ProviderKind::OpenAi, 2, bucket(results)).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn the_reports_of_anthropic_are_read_in_our_words() {
    let read = page(
        ProviderKind::Anthropic,
        0,
        json!({"has_more": false, "next_page": null, "data": [{
            "starting_at": "2026-11-01T00:00:00Z", "ending_at": "2026-11-02T00:00:00Z", "results": [{
                "uncached_input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 7,
                "cache_creation": {"ephemeral_1h_input_tokens": 3, "ephemeral_5m_input_tokens": 4},
                "model": "claude-sonnet-4-20250514", "service_tier": "standard", "api_key_id": null}],
        }]}),
    )
    .unwrap();
    let amounts = Amounts {
        input: Some(127),
        cached: Some(20),
        cache_write: Some(7),
        output: Some(7),
        ..Amounts::default()
    };
    assert_eq!(read.lines[0].amounts, amounts);
    assert_eq!(
        (read.lines[0].day, &read.lines[0].tier),
        (date(2026, 11, 1), &None)
    );
    let read = page(
        ProviderKind::Anthropic,
        1,
        json!({"has_more": false, "next_page": null, "data": [{"starting_at": "2026-11-01T00:00:00Z", "results": [
            {"amount": "123.45", "currency": "USD", "model": "m", "service_tier": "batch"},
            {"amount": "10", "currency": "USD", "model": null, "cost_type": "web_search"},
        ]}]}),
    )
    .unwrap();
    assert_eq!(read.lines[0].amounts.cost, usd("1.2345"));
    assert_eq!(read.lines[0].tier.as_deref(), Some("batch"));
    assert_eq!(
        (&read.lines[1].model, read.lines[1].amounts.cost),
        (&None, usd("0.1"))
    );
}

#[test]
fn a_page_that_is_none_is_refused() {
    for (kind, count) in [(ProviderKind::OpenAi, 3), (ProviderKind::Anthropic, 2)] {
        for report in 0..count {
            for (bad, said) in [
                (json!({}), "missing field `data`"),
                (json!({"data": [], "has_more": true}), "no `next_page`"),
                (
                    json!({"data": [], "has_more": true, "next_page": ""}),
                    "no `next_page`",
                ),
                (json!({"data": [{}]}), "missing field"),
                (json!([]), "not as its documentation says"),
                (json!({"data": 4}), "not as its documentation says"),
            ] {
                let error = page(kind, report, bad).unwrap_err();
                assert!(error.contains(said), "{error}");
            }
            let read = reports(kind).unwrap().reports[report].read;
            assert_eq!(read(b"<html>").unwrap_err(), "it is no JSON");
            assert_eq!(read(&[0xff]).unwrap_err(), "it is no JSON");
            assert_eq!(read(br#"{"data": []}"#).unwrap(), ReportPage::default());
        }
    }
    let nobody = json!({"data": [{"start_time": 0, "results": [{"input_tokens": 1, "num_model_requests": 1, "model": null}]}]});
    let error = page(ProviderKind::OpenAi, 0, nobody).unwrap_err();
    assert_eq!(error, "a result has no `model`");
    let late = json!({"data": [{"start_time": i64::MAX, "results": []}]});
    assert!(
        page(ProviderKind::OpenAi, 0, late)
            .unwrap_err()
            .contains("is no time")
    );
    let late = json!({"data": [{"starting_at": "soon", "results": []}]});
    assert!(
        page(ProviderKind::Anthropic, 0, late)
            .unwrap_err()
            .contains("is no time")
    );
}

#[test]
fn queries_are_of_whole_days_and_other_kinds_have_no_reports() {
    let days = [date(2026, 11, 1), date(2026, 11, 3)];
    let queries = |kind| {
        reports(kind)
            .unwrap()
            .reports
            .iter()
            .map(move |it| (it.query)(days))
    };
    let openai: Vec<String> = queries(ProviderKind::OpenAi).collect();
    let times = "start_time=1793491200&end_time=1793664000&bucket_width=1d";
    assert!(
        openai.iter().all(|query| query.starts_with(times)),
        "{openai:?}"
    );
    let anthropic: Vec<String> = queries(ProviderKind::Anthropic).collect();
    let times = "starting_at=2026-11-01T00:00:00Z&ending_at=2026-11-03T00:00:00Z&bucket_width=1d";
    assert!(
        anthropic.iter().all(|query| query.starts_with(times)),
        "{anthropic:?}"
    );
    assert!(reports(ProviderKind::Bedrock).is_none());
}

/// A valid page of each report.
const PAGES: [(ProviderKind, usize, &str); 4] = [
    (
        ProviderKind::OpenAi,
        0,
        r#"{"data":[{"start_time":1,"results":[{"input_tokens":1,"output_tokens":2,"num_model_requests":3,"model":"m"}]}]}"#,
    ),
    (
        ProviderKind::OpenAi,
        2,
        r#"{"data":[{"start_time":1,"results":[{"amount":{"value":1e-5,"currency":"usd"}}]}],"has_more":true,"next_page":"n"}"#,
    ),
    (
        ProviderKind::Anthropic,
        0,
        r#"{"data":[{"starting_at":"2026-11-01T00:00:00Z","results":[{"uncached_input_tokens":1,"cache_read_input_tokens":2,"cache_creation":{},"output_tokens":3,"model":"m"}]}]}"#,
    ),
    (
        ProviderKind::Anthropic,
        1,
        r#"{"data":[{"starting_at":"2026-11-01T00:00:00Z","results":[{"amount":"1.5","currency":"USD","model":"m"}]}]}"#,
    ),
];

proptest! {
    /// A damaged page is read or refused, and has no more lines than it has bytes.
    #[test]
    fn damaged_pages_and_tables_do_no_harm(
        which in 0..PAGES.len(),
        at in any::<prop::sample::Index>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..4),
        cut in any::<bool>(),
    ) {
        let (kind, report, text) = PAGES[which];
        let read = reports(kind).unwrap().reports[report].read;
        prop_assert_eq!(read(text.as_bytes()).unwrap().lines.len(), 1);
        let mut damaged = text.as_bytes().to_vec();
        let at = at.index(damaged.len());
        let until = if cut { damaged.len() } else { at + 1 };
        damaged.splice(at..until, bytes);
        if let Ok(page) = read(&damaged) {
            prop_assert!(page.lines.len() <= 1);
        }
        let text = String::from_utf8_lossy(&damaged);
        _ = table::read_table(&text);
        _ = table::read_table(&format!("day,model,cost\n{text}"));
    }
}
