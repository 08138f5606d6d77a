//! One call: what became of it, its attempts in time, its usage and cost by part, and why its providers were chosen.

mod attempts;
mod plan;

use maud::{Markup, html};
use serde::Deserialize;

use super::call_parts::{
    CALLS, LIVE, call_link, cost, ended, filter_link, key_link, nothing_kept, outcome,
    session_link, share,
};
use crate::console::parts::{count, duration, figure, money, number, table, text};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::state::Console;
use crate::telemetry::calls::{
    CallFilter, KeptCall, KeptFault, KeptQuota, KeptUsage, OpenCallFacts, RecentCalls,
};

/// The calls of one id that are looked at. Clients choose ids, also the same again and again.
const MAX_OF_ID: usize = 50;

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let calls = &console.app().proxy.calls;
    if !calls.is_on() {
        return ConsoleReply::page("Calls", nothing_kept());
    }
    let id = match request.rest(CALLS) {
        "" => request.query("request_id"),
        id => Some(id.to_owned()),
    };
    let Some(id) = id else {
        return ConsoleReply::page("Find a call", search());
    };
    let filter = CallFilter {
        request_id: Some(id.clone()),
        ..CallFilter::default()
    };
    let found = calls.find(&filter, None, MAX_OF_ID);
    let wanted = request.query("n").and_then(|number| number.parse().ok());
    let is_wanted = |call: &&KeptCall| wanted.is_none_or(|number: u64| call.number == number);
    if let Some(call) = found.iter().find(is_wanted).or(found.first()) {
        let bodies = bodies(console, request, call).await;
        return ConsoleReply::page(format!("Call {id}"), page(call, &found, &bodies));
    }
    match running(calls, &id) {
        Some(call) => ConsoleReply::page(format!("Call {id}"), still_running(&call)),
        None => ConsoleReply::refused(404, "No such call", not_found(&id)),
    }
}

fn running(calls: &RecentCalls, id: &str) -> Option<OpenCallFacts> {
    let mut running = calls.running().into_iter();
    running.find(|call| call.request_id.as_bytes() == id.as_bytes())
}

fn search() -> Markup {
    html! {
        form.filters method="get" action=(CALLS) role="search" {
            div {
                label for="request_id" { "Request id" }
                input #request_id name="request_id" required maxlength="128" autocomplete="off" aria-describedby="id-help";
            }
            button type="submit" { "Find" }
        }
        p #id-help .muted { "It is in the header x-request-id of each response, and in its line of the log." }
    }
}

fn not_found(id: &str) -> Markup {
    html! {
        p { "No call with the id " code { (id) } " is kept in the memory of this process: it was none of a model, has ended too long ago, or another process had it." }
        (search())
        p { a href=(LIVE) { "To the last calls" } }
    }
}

fn still_running(call: &OpenCallFacts) -> Markup {
    html! {
        section #call hx-get="" hx-trigger="every 2s" hx-select="#call, #ended-call" hx-swap="outerHTML" {
            p { "This call runs. The page shows the rest once it has ended." }
            dl.pairs {
                dt { "Route" } dd { (call.route) }
                dt { "Model" } dd { (call.model.as_deref().unwrap_or("none was asked yet")) }
                dt { "Provider" } dd { (call.provider.as_deref().unwrap_or("–")) }
                dt { "Attempts" } dd { (call.attempts) }
                dt { "The client" } dd { (if call.has_content { "gets content" } else { "waits" }) }
            }
        }
    }
}

fn page(call: &KeptCall, of_id: &[KeptCall], bodies: &CallBodies) -> Markup {
    html! {
        div #ended-call {
            @if of_id.len() > 1 { (others(call, of_id)) }
            (figures(call))
            @if let Some(fault) = &call.error { (error(fault)) }
            @if call.cut {
                p.notice.warning { "The line of this call was too long to be kept whole: only these facts are left." }
            }
            (facts(call))
            h2 { "Attempts" }
            (attempts::attempts(call))
            div.columns {
                section { h2 { "Usage" } (usage(call)) }
                section { h2 { "Cost by part" } (cost_by_part(call.usage.as_ref())) }
                section { h2 { "Limits" } (limits(call.quota)) }
            }
            h2 { "Why these providers" }
            (plan::plan(call))
            h2 { "Asked and answered" }
            (asked_and_answered(call, bodies))
            h2 { "The line" }
            p.muted { "As in the log, with what is kept beside it." }
            pre tabindex="0" role="region" aria-label="The line of the log" { (call.line) }
        }
    }
}

/// What was asked and answered in a call.
enum CallBodies {
    /// The organization does not allow that it is kept.
    NotAllowed,
    /// It allows it, and of this call nothing is kept.
    Gone,
    Kept(KeptContent),
}

/// What was asked, a JSON text, and the text of the answer.
#[derive(Deserialize)]
struct KeptContent {
    request: String,
    answer: String,
    #[serde(default)]
    content_cut: bool,
}

/// Finds what was asked and answered, if the organization still allows that it is kept.
async fn bodies(console: &Console, request: &ConsoleRequest, call: &KeptCall) -> CallBodies {
    let (name, now_ms) = (call.organization.clone(), request.now_ms);
    let reading = console.with_store(|store| async move { store.organization(&name).await });
    let until_ms = reading.await.ok().and_then(|of| of.keep_bodies_until_ms);
    if until_ms.is_none_or(|until_ms| until_ms <= now_ms) {
        return CallBodies::NotAllowed;
    }
    let found = console.app().proxy.calls.find_bodies(call.number, now_ms);
    let content = found.and_then(|found| serde_json::from_slice(&found).ok());
    content.map_or(CallBodies::Gone, CallBodies::Kept)
}

fn asked_and_answered(call: &KeptCall, bodies: &CallBodies) -> Markup {
    match bodies {
        CallBodies::NotAllowed => html! {
            p.muted { "Not kept. " code { "weirgate org update " (call.organization) " --keep-bodies 4h" } " keeps it of later calls, for four hours." }
        },
        CallBodies::Gone => html! {
            p.muted { "Not kept: the call had ended before it was allowed, or later ones have its place." }
        },
        CallBodies::Kept(content) => html! {
            @if content.content_cut { p.notice.warning { "It is long, and cut." } }
            pre tabindex="0" role="region" aria-label="What was asked" { (content.request) }
            pre tabindex="0" role="region" aria-label="What was answered" { (content.answer) }
        },
    }
}

/// Clients may give one id to several requests.
fn others(call: &KeptCall, of_id: &[KeptCall]) -> Markup {
    html! {
        p.notice.warning { (of_id.len()) " calls have this id, because their clients have chosen it." }
        ul {
            @for other in of_id {
                li {
                    (ended(&other.time)) " "
                    @if other.number == call.number { "this one" } @else { (call_link(other)) }
                    " " (outcome(other))
                }
            }
        }
    }
}

fn figures(call: &KeptCall) -> Markup {
    let first = match call.first_event_ms {
        Some(first) => html! { (duration(first)) },
        None => html! { "–" },
    };
    let cached = html! { (share(call.cached_share())) };
    html! {
        dl.figures {
            (figure("Outcome", &outcome(call), None))
            (figure("Took", &html! { (duration(call.duration_ms)) }, None))
            (figure("First content", &first, Some("after the request began")))
            (figure("Cost", &cost(call.cost), None))
            (figure("Cached share", &cached, Some("of the prompt")))
        }
    }
}

fn error(fault: &KeptFault) -> Markup {
    html! {
        h2 { "What the client was told" }
        p.notice { (fault.message) }
        dl.pairs {
            dt { "Type" } dd { code { (fault.error_type) } }
            @if let Some(code) = &fault.code { dt { "Code" } dd { code { (code) } } }
            @if let Some(param) = &fault.param { dt { "Field" } dd { code { (param) } } }
            @if !fault.detail.is_empty() { dt { "For the log alone" } dd { (fault.detail) } }
        }
    }
}

fn facts(call: &KeptCall) -> Markup {
    html! {
        h2 { "The request" }
        dl.pairs {
            dt { "Ended" } dd { (ended(&call.time)) }
            dt { "Route" } dd { (call.route) " " span.muted { (call.path) } }
            dt { "Organization" } dd { (filter_link("organization", &call.organization, &call.organization)) }
            dt { "Project" } dd { (or_dash(&call.project)) }
            dt { "Key" } dd { (key_link(&call.key_id, &call.key_label)) }
            dt { "Model asked for" } dd { (filter_link("model", &call.model, &call.model)) }
            dt { "Model used" } dd { (or_dash(&call.used_model)) @if call.cached { " " span.muted { "a stored reply" } } }
            dt { "Stream" } dd { (if call.stream { "yes" } else { "no" }) }
            @if !call.session_id.is_empty() {
                dt { "Session" } dd { (session_link(&call.organization, &call.session_id)) }
            }
            @if !call.agent_id.is_empty() {
                dt { "Agent" }
                dd {
                    (call.agent_id)
                    @if !call.parent_agent_id.is_empty() { span.muted { ", asked by " (call.parent_agent_id) } }
                }
            }
            @if !call.tool.is_empty() { dt { "Tool" } dd { (call.tool) } }
            @if !call.client_id.is_empty() { dt { "Client of OAuth" } dd { (call.client_id) } }
            @if !call.log_id.is_empty() { dt { "Id in the ledger" } dd { code { (call.log_id) } } }
            dt { "Client" } dd { (or_dash(&call.client_ip)) " " span.muted { (call.user_agent) } }
            dt { "Bytes in, out" } dd { (count(call.request_bytes)) ", " (count(call.response_bytes)) }
            @if call.shared_wait_ms > 0.0 {
                dt { "Waited for Redis" } dd { (duration(call.shared_wait_ms)) }
            }
        }
    }
}

fn or_dash(text: &str) -> Markup {
    match text {
        "" => html! { span.muted { "–" } },
        text => html! { (text) },
    }
}

fn usage(call: &KeptCall) -> Markup {
    let row = |name: &str, tokens: u64| vec![html! { (name) }, html! { (count(tokens)) }];
    let mut rows = vec![
        row("Prompt", call.prompt_tokens),
        row("of it read from a cache", call.cached_tokens),
    ];
    let details = |of: &serde_json::Map<String, serde_json::Value>, shown: &[(&str, &str)]| {
        let some = shown.iter().filter_map(|(key, name)| {
            let tokens = of.get(*key)?.as_u64()?;
            (tokens > 0).then(|| row(name, tokens))
        });
        some.collect::<Vec<_>>()
    };
    let usage = call.usage.as_ref();
    let prompt = [
        ("cache_write_tokens", "of it written to a cache"),
        ("audio_tokens", "of it audio"),
        ("video_tokens", "of it video"),
    ];
    rows.extend(
        usage
            .into_iter()
            .flat_map(|usage| details(&usage.prompt_tokens_details, &prompt)),
    );
    rows.push(row("Completion", call.completion_tokens));
    let completion = [
        ("reasoning_tokens", "of it reasoning"),
        ("image_tokens", "of it images"),
        ("audio_tokens", "of it audio"),
    ];
    rows.extend(
        usage
            .into_iter()
            .flat_map(|usage| details(&usage.completion_tokens_details, &completion)),
    );
    html! {
        (table("Tokens", &[text("Part"), number("Tokens")], &rows, ""))
        @if call.estimated { p.muted { "Estimated: the provider has not reported it whole." } }
    }
}

/// The parts of a cost, by their names in `usage.cost_details`.
const PARTS: [(&str, &str); 13] = [
    ("input_cost", "Prompt"),
    ("cached_input_cost", "Prompt from a cache"),
    ("cache_write_input_cost", "Prompt written to a cache"),
    ("image_input_cost", "Images of the prompt"),
    ("audio_input_cost", "Audio of the prompt"),
    ("output_cost", "Completion"),
    ("image_output_cost", "Images of the completion"),
    ("request_cost", "Request"),
    ("web_search_cost", "Searches of the web"),
    ("data_storage_cost", "Storage"),
    ("unit_cost", "Pages, seconds and other units"),
    ("upstream_inference_cost", "Prompt and completion together"),
    ("total_cost", "All"),
];

fn cost_by_part(usage: Option<&KeptUsage>) -> Markup {
    let amounts = usage.map(|usage| &usage.cost_details);
    let row = |(key, name): &(&str, &str)| {
        let amount = amounts?.get(*key)?;
        Some(vec![html! { (name) }, html! { (money(amount)) }])
    };
    let rows: Vec<_> = PARTS.iter().filter_map(row).collect();
    table(
        "Cost in USD",
        &[text("Part"), number("Cost")],
        &rows,
        "Nothing was charged, or the price is unknown.",
    )
}

fn limits(quota: Option<KeptQuota>) -> Markup {
    let Some(quota) = quota else {
        return html! { p.muted { "No quota of requests holds for this route and organization." } };
    };
    let reset_ms = quota.reset_ms as f64;
    html! {
        p {
            meter min="0" max=(quota.limit) value=(quota.remaining) aria-label="Requests left" {}
            " " (count(quota.remaining)) " of " (count(quota.limit)) " requests were left, in windows of "
            (duration(quota.window_ms as f64)) ", the rest of which was " (duration(reset_ms)) "."
        }
        p.muted { "Budgets of keys, members and plans stand with the key." }
    }
}
