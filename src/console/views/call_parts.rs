//! What the views of calls share: links, words about how calls ended, and the filter as a form.

use filters::money::Usd;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::console::parts::{Tone, badge, money, time};
use crate::console::request::ConsoleRequest;
use crate::telemetry::calls::{CallFilter, CallTotals, FILTER_FIELDS, InvalidFilter, KeptCall};

/// The path of the calls as they run and end.
pub(super) const LIVE: &str = "/console/live";
/// The path above that of each call.
pub(super) const CALLS: &str = "/console/calls";
/// The path of the sessions, and above that of each.
pub(super) const SESSIONS: &str = "/console/sessions";
/// The rows of a page.
pub(super) const PAGE_ROWS: usize = 50;

/// What is said where no calls are kept.
pub(super) fn nothing_kept() -> Markup {
    html! {
        p.notice.warning {
            "No calls are kept in memory: " code { "console.keep_calls" } " is 0."
        }
    }
}

/// Returns a text as a part of a path or of a query.
pub(super) fn encoded(text: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}

/// The link to the page of a call.
pub(super) fn call_link(call: &KeptCall) -> Markup {
    let href = format!("{CALLS}/{}?n={}", encoded(&call.request_id), call.number);
    html! { a.id href=(href) { (call.request_id) } }
}

/// The address of a session. A browser would read some ids as steps in the path, so those stand in the query.
pub(super) fn session_address(organization: &str, session: &str) -> String {
    let organization = encoded(organization);
    let id = encoded(session);
    match session {
        "." | ".." => format!("{SESSIONS}/-?session={id}&organization={organization}"),
        _ => format!("{SESSIONS}/{id}?organization={organization}"),
    }
}

/// The link to a session.
pub(super) fn session_link(organization: &str, session: &str) -> Markup {
    html! { a href=(session_address(organization, session)) { (session) } }
}

/// A link to the calls with this value of a field of the filter.
pub(super) fn filter_link(field: &str, value: &str, text: &str) -> Markup {
    html! {
        @if value.is_empty() {
            span.muted { "–" }
        } @else {
            a href=(format!("{LIVE}?{field}={}", encoded(value))) { (text) }
        }
    }
}

/// The key of a call: its label, or else its id.
pub(super) fn key_link(key_id: &str, label: &str) -> Markup {
    filter_link("key", key_id, if label.is_empty() { key_id } else { label })
}

/// How a call has ended.
pub(super) fn outcome(call: &KeptCall) -> Markup {
    let tone = match &*call.outcome {
        "ok" | "queued" => Tone::Good,
        "refused" | "client_gone" => Tone::Warning,
        _ => Tone::Bad,
    };
    let word = match &*call.outcome {
        "client_gone" => "client left",
        word => word,
    };
    let text = match call.status {
        0 => word.to_owned(),
        status => format!("{status} {word}"),
    };
    badge(tone, &text)
}

/// When a call has ended.
pub(super) fn ended(rfc3339: &str) -> Markup {
    match rfc3339.parse::<Timestamp>() {
        Ok(at) => time(at.as_millisecond()),
        Err(_) => html! { span.muted { "–" } },
    }
}

/// An amount, if it is known.
pub(super) fn cost(cost: Option<Usd>) -> Markup {
    match cost {
        Some(cost) => html! { (money(cost)) },
        None => html! { span.muted { "–" } },
    }
}

/// The cost of several calls, and how many of them have no price.
pub(super) fn total_cost(totals: &CallTotals) -> Markup {
    html! {
        (money(totals.cost))
        @if totals.unpriced > 0 {
            span.muted { " + " (totals.unpriced) " without a price" }
        }
    }
}

/// A share as percent.
pub(super) fn share(share: Option<f64>) -> Markup {
    match share {
        Some(share) => html! { (format!("{:.0} %", share * 100.0)) },
        None => html! { span.muted { "–" } },
    }
}

/// Returns the filter that the query says.
///
/// Errors: a value of it is none.
pub(super) fn filter_of(request: &ConsoleRequest) -> Result<CallFilter, InvalidFilter> {
    let values = FILTER_FIELDS.map(|field| (field, request.query(field)));
    CallFilter::parse(|wanted| {
        let (_, value) = values.iter().find(|(field, _)| *field == wanted)?;
        value.as_deref()
    })
}

/// The form of a filter, with what the query says.
pub(super) fn filter_form(request: &ConsoleRequest) -> Markup {
    html! {
        form.filters method="get" action=(LIVE) role="search" aria-label="Which calls" {
            @for field in FILTER_FIELDS {
                @let (name, hint) = words_of(field);
                div {
                    label for=(field) { (name) }
                    input id=(field) name=(field) value=[request.query(field)] placeholder=(hint) maxlength="256" autocomplete="off";
                }
            }
            button type="submit" { "Show" }
            a href=(LIVE) { "All calls" }
        }
    }
}

/// The name of a field, and what it takes.
fn words_of(field: &str) -> (&'static str, &'static str) {
    match field {
        "request_id" => ("Request id", "whole"),
        "organization" => ("Organization", "name"),
        "key" => ("Key", "id or label"),
        "model" => ("Model", "a part of its name"),
        "provider" => ("Provider", "name"),
        "session" => ("Session", "id"),
        "status" => ("Status", "429, 5xx or failed"),
        _ => ("Cost from, USD", "0.05"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_one_part_of_a_path() {
        assert_eq!(encoded("a/b?c d+é"), "a%2Fb%3Fc%20d%2B%C3%A9");
        assert_eq!(
            session_address("o", "s/1"),
            "/console/sessions/s%2F1?organization=o"
        );
        assert_eq!(
            session_address("o&p", ".."),
            "/console/sessions/-?session=..&organization=o%26p"
        );
    }

    #[test]
    fn how_a_call_ended_is_said_in_words() {
        let said = |status, outcome: &str| {
            let call = KeptCall {
                status,
                outcome: outcome.to_owned(),
                ..KeptCall::default()
            };
            super::outcome(&call).0
        };
        assert_eq!(said(200, "ok"), "<span class=\"badge good\">200 ok</span>");
        assert_eq!(
            said(0, "client_gone"),
            "<span class=\"badge warning\">client left</span>"
        );
        assert_eq!(
            said(502, "failed"),
            "<span class=\"badge bad\">502 failed</span>"
        );
    }
}
