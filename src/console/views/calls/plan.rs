//! Why the providers of a call were chosen: the plan that `x-weirgate-debug` tells callers, as docs/routing.md has it.

use maud::{Markup, html};
use serde::Deserialize;

use crate::console::parts::{TableColumn, Tone, badge, number, table, text};
use crate::telemetry::calls::{KeptCall, KeptLeftOut};

/// The rows of a table that are shown at most. A plan may have all providers of a model.
const MAX_ROWS: usize = 50;

/// A plan.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ShownPlan {
    strategy: String,
    max_attempts: u64,
    first_by: String,
    session: Option<ShownSession>,
    candidates: Vec<ShownCandidate>,
    left_out: Vec<KeptLeftOut>,
}

/// Where a session is bound.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ShownSession {
    provider: Option<String>,
    cached_tokens: u64,
}

/// Who could serve the request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ShownCandidate {
    provider: String,
    model: String,
    region: Option<String>,
    is_tried: bool,
    has_own_key: bool,
    score: f64,
    price: Option<f64>,
    readiness: String,
    uptime: Option<f64>,
    latency_ms: Option<f64>,
    throughput: Option<f64>,
}

const CANDIDATES: [TableColumn; 9] = [
    text("Provider"),
    text("Model"),
    text("Tried"),
    number("Score, lower is better"),
    number("Price, USD a million"),
    text("Ready"),
    number("Uptime"),
    number("Latency"),
    number("Tokens a second"),
];

const LEFT_OUT: [TableColumn; 4] = [text("Provider"), text("Model"), text("Field"), text("Why")];

pub(super) fn plan(call: &KeptCall) -> Markup {
    let plan = call.plan.as_ref();
    let plan = plan.and_then(|plan| serde_json::from_str::<ShownPlan>(plan.get()).ok());
    html! {
        @if let Some(plan) = &plan {
            (order(plan))
            (left_out(&plan.left_out))
        } @else {
            p.muted {
                "The plan of this call was not noted. It is noted while a page of the last calls is open, and for requests that ask for it with "
                code { "x-weirgate-debug" } ". " code { "weirgate explain" } " plans any request anew."
            }
            (left_out(&call.left_out))
        }
    }
}

fn order(plan: &ShownPlan) -> Markup {
    let rows: Vec<_> = plan
        .candidates
        .iter()
        .take(MAX_ROWS)
        .map(candidate)
        .collect();
    html! {
        p {
            "Compared by " strong { (plan.strategy) } "; up to " (plan.max_attempts) " are tried; the first is first by "
            strong { (plan.first_by) } "."
            @if let Some(session) = &plan.session {
                " The session was bound to " strong { (session.provider.as_deref().unwrap_or("nobody")) }
                " with " (session.cached_tokens) " cached tokens."
            }
        }
        (table("Who could serve it, in order", &CANDIDATES, &rows, "Nobody could."))
        (rest(plan.candidates.len()))
    }
}

fn rest(all: usize) -> Markup {
    html! {
        @if all > MAX_ROWS { p { (all - MAX_ROWS) " others are not shown; the line has them." } }
    }
}

fn candidate(candidate: &ShownCandidate) -> Vec<Markup> {
    let figure = |value: Option<f64>, unit: &str| match value {
        Some(value) => html! { (format!("{value:.1}")) (unit) },
        None => html! { span.muted { "–" } },
    };
    let price = candidate.price.map(|price| format!("{price:.4}"));
    let tried = match candidate.is_tried {
        true => badge(Tone::Good, "yes"),
        false => html! { "no" },
    };
    vec![
        html! {
            (candidate.provider)
            @if let Some(region) = &candidate.region { " " span.muted { (region) } }
            @if candidate.has_own_key { " " (badge(Tone::Neutral, "own key")) }
        },
        html! { (candidate.model) },
        tried,
        html! { (format!("{:.3}", candidate.score)) },
        html! { (price.as_deref().unwrap_or("unknown")) },
        html! { (candidate.readiness) },
        figure(candidate.uptime, " %"),
        figure(candidate.latency_ms, " ms"),
        figure(candidate.throughput, ""),
    ]
}

fn left_out(all: &[KeptLeftOut]) -> Markup {
    let row = |it: &KeptLeftOut| {
        vec![
            html! { (it.provider) },
            html! { (it.model) },
            html! { code { (it.param) } },
            html! { (it.reason) },
        ]
    };
    let rows: Vec<_> = all.iter().take(MAX_ROWS).map(row).collect();
    html! {
        @if !rows.is_empty() {
            (table("Who could not, or might not", &LEFT_OUT, &rows, ""))
            (rest(all.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn shown(plan: &str) -> String {
        let call = KeptCall {
            plan: Some(serde_json::from_str(plan).unwrap()),
            ..KeptCall::default()
        };
        super::plan(&call).0
    }

    #[test]
    fn a_plan_is_shown_with_its_order_and_who_is_left_out() {
        let page = shown(
            r#"{"strategy":"auto","max_attempts":3,"first_by":"session","session":{"provider":null},"candidates":[{"provider":"one","model":"m","region":null,"is_tried":true,"score":0.5,"price":null,"readiness":"later","ready_in_ms":5}],"left_out":[{"provider":"two","model":"m","param":"<tools>","reason":"it has none"}]}"#,
        );
        for part in [
            "auto",
            "session",
            "nobody",
            "one",
            "0.500",
            "unknown",
            "&lt;tools&gt;",
            "it has none",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn a_plan_that_was_not_noted_says_so() {
        assert!(plan(&KeptCall::default()).0.contains("was not noted"));
        assert!(shown("3").contains("was not noted"));
    }
}
