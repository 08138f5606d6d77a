//! Limits: who is near one, and who was refused.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::console::Console;
use crate::console::parts::{TableColumn, Tone, badge, count, duration, number, table, text};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::limits::near_limits::{LimitUsage, MAX_WINDOWS, NearLimits, NearWindow};

/// The path of the view.
pub(super) const PATH: &str = "/console/limits";
/// From this part of a limit on, a window is near it.
const NEAR_SHARE: f64 = 0.8;

pub(super) async fn show(console: &Console, _request: &ConsoleRequest) -> ConsoleReply {
    let app = console.app();
    let graph = match &app.graph {
        Some(graph) => Some((graph.near_limits().await, graph.window_s)),
        None => None,
    };
    let mut quotas = app.proxy.quotas.near_limits().await;
    let are_named = name_organizations(console, &mut quotas).await;
    let body = html! {
        section #limits hx-get=(PATH) hx-trigger="every 5s" hx-select="#limits" hx-swap="outerHTML" {
            h2 { "Graph service" }
            @match &graph {
                None => p { "The graph service is off: the configuration has no " code { "graph.upstream" } "." },
                Some((limits, window_s)) => {
                    p { "Requests of tenants and operations in windows of " (window_s) " s. A client without a tenant's credential counts by its address." }
                    (render(limits, GRAPH))
                },
            }
            h2 { "Quotas of organizations" }
            p { "Requests per minute to the model gateway, by group of endpoints." }
            @if !are_named {
                p.notice.warning { "The store does not answer: organizations are shown by their ids." }
            }
            (render(&quotas, QUOTAS))
        }
    };
    ConsoleReply::page("Limits", body)
}

/// Puts the names of organizations in place of their ids. Returns whether the store has answered.
async fn name_organizations(console: &Console, limits: &mut NearLimits) -> bool {
    let all = limits.near.iter().chain(&limits.refused);
    let ids: BTreeSet<String> = all.map(|limit| limit.subject.clone()).collect();
    let finding = console.with_store(|store| async move { store.organization_names(&ids).await });
    let Ok(names) = finding.await else {
        return false;
    };
    for limit in limits.near.iter_mut().chain(&mut limits.refused) {
        if let Some(name) = names.get(&limit.subject) {
            limit.subject.clone_from(name);
        }
    }
    true
}

/// The words for one kind of limits.
#[derive(Clone, Copy)]
struct LimitWords {
    subject: &'static str,
    name: &'static str,
    near: &'static str,
    refused: &'static str,
}

const GRAPH: LimitWords = LimitWords {
    subject: "Tenant or address",
    name: "Operation",
    near: "Graph service: nearest to their limits",
    refused: "Graph service: refused since the start",
};
const QUOTAS: LimitWords = LimitWords {
    subject: "Organization",
    name: "Endpoints",
    near: "Quotas: nearest to their limits",
    refused: "Quotas: refused since the start",
};

fn render(limits: &NearLimits, words: LimitWords) -> Markup {
    html! {
        @if limits.count > 0 { p.muted { (scope(limits)) } }
        (near(limits, words))
        (refused(limits, words))
    }
}

/// Says what was looked at.
fn scope(limits: &NearLimits) -> String {
    if limits.is_shared {
        return format!(
            "The windows are in Redis. Shown are at most {MAX_WINDOWS} that this process has lately asked for often or \
             seen refused, with their counts over all processes."
        );
    }
    let (compared, all) = (limits.compared as u64, limits.count as u64);
    match compared < all {
        true => format!(
            "A sample: {} of {} windows were compared. Shown are the {MAX_WINDOWS} fullest of them.",
            count(compared),
            count(all)
        ),
        false => format!(
            "All {} windows of this process were compared. Shown are the {MAX_WINDOWS} fullest.",
            count(all)
        ),
    }
}

fn near(limits: &NearLimits, words: LimitWords) -> Markup {
    let columns: [TableColumn; 6] = [
        text(words.subject),
        text(words.name),
        text("State"),
        number("Used"),
        text("More in"),
        number("Refused in this window"),
    ];
    let rows = limits.near.iter().map(|limit| {
        let [state, used, reset] = usage(limit);
        vec![
            html! { (limit.subject) },
            html! { (limit.name) },
            state,
            used,
            reset,
            html! { (count(limit.refused.in_window)) },
        ]
    });
    let rows: Vec<Vec<Markup>> = rows.collect();
    table(words.near, &columns, &rows, "No request counts now.")
}

/// Returns the state of a limit, how much of it is used, and when there is more.
fn usage(limit: &NearWindow) -> [Markup; 3] {
    let total = limit.limit.unwrap_or_default();
    let Some(LimitUsage { used, reset_ms }) = limit.usage else {
        let unknown = badge(Tone::Warning, "not known: Redis does not answer");
        return [unknown, html! { "– / " (count(total)) }, html! { "–" }];
    };
    let share = used as f64 / total.max(1) as f64;
    let state = match used {
        used if used >= total => badge(Tone::Bad, "full"),
        _ if share >= NEAR_SHARE => badge(Tone::Warning, "near"),
        _ => badge(Tone::Good, "has room"),
    };
    let used =
        html! { (count(used)) " / " (count(total)) " (" (format!("{:.0}", share * 100.0)) " %)" };
    [state, used, html! { (duration(reset_ms as f64)) }]
}

fn refused(limits: &NearLimits, words: LimitWords) -> Markup {
    let columns: [TableColumn; 5] = [
        text(words.subject),
        text(words.name),
        number("Limit"),
        number("Refused in this window"),
        number("Since the start"),
    ];
    let rows = limits.refused.iter().map(|limit| {
        let total = limit.limit.map_or_else(|| "–".to_owned(), count);
        vec![
            html! { (limit.subject) },
            html! { (limit.name) },
            html! { (total) },
            html! { (count(limit.refused.in_window)) },
            html! { (count(limit.refused.in_all)) },
        ]
    });
    let rows: Vec<Vec<Markup>> = rows.collect();
    html! {
        @if limits.refused_in_all > 0 {
            p.muted {
                "Refused since the start of this process: " (count(limits.refused_in_all)) ". "
                "Shown are the " (MAX_WINDOWS) " kinds of requests with the most."
                @if limits.dropped_windows > 0 {
                    " " (count(limits.dropped_windows)) " that refused earlier are not known any more."
                }
            }
        }
        (table(words.refused, &columns, &rows, "Nothing was refused."))
    }
}
