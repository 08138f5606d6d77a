//! The sessions of the calls in memory: what they cost, what of their prompts was cached, and their agents.

use std::ops::ControlFlow;

use maud::{Markup, html};

use super::call_parts::{
    PAGE_ROWS, SESSIONS, call_link, cost, encoded, ended, filter_link, nothing_kept, outcome,
    session_address, session_link, share, total_cost,
};
use crate::console::parts::{TableColumn, count, duration, figure, number, pager, table, text};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::state::Console;
use crate::telemetry::calls::{
    AgentSummary, CallFilter, CallTotals, KeptCall, RecentCalls, SessionCall, SessionSummary,
    SessionTable, agents, sessions,
};

const COLUMNS: [TableColumn; 8] = [
    text("Session"),
    text("Organization"),
    text("Last call"),
    number("Calls"),
    number("Without an answer"),
    number("Agents"),
    number("Cost"),
    number("Cached share"),
];

const AGENTS: [TableColumn; 6] = [
    text("Agent"),
    text("Last call"),
    number("Calls"),
    number("Tokens in, out"),
    number("Cost"),
    number("Cached share"),
];

const CALLS_OF_SESSION: [TableColumn; 9] = [
    text("Ended"),
    text("Call"),
    text("Agent"),
    text("Model"),
    text("Status"),
    number("Took"),
    number("Tokens in, out"),
    number("Cost"),
    number("Cached share"),
];

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let calls = &console.app().proxy.calls;
    if !calls.is_on() {
        return ConsoleReply::page("Sessions", nothing_kept());
    }
    let page = request.query("page").and_then(|page| page.parse().ok());
    let page: usize = page.unwrap_or(1).max(1);
    let session = request.query("session");
    let session = session.or_else(|| Some(request.rest(SESSIONS).to_owned()));
    match session.filter(|session| !session.is_empty()) {
        None => ConsoleReply::page("Sessions", list(calls, page)),
        Some(session) => one(calls, request.query("organization"), &session, page),
    }
}

/// Returns the part of a list that a page shows, and whether there are others behind it.
fn part_of<T>(all: &[T], page: usize) -> (&[T], bool) {
    let from = page
        .saturating_sub(1)
        .saturating_mul(PAGE_ROWS)
        .min(all.len());
    let to = from.saturating_add(PAGE_ROWS).min(all.len());
    (all.get(from..to).unwrap_or_default(), to < all.len())
}

fn list(calls: &RecentCalls, page: usize) -> Markup {
    let mut table_of_all = SessionTable::default();
    calls.read_newest(None, |_, line| {
        if let Some(call) = SessionCall::parse(line) {
            table_of_all.add(&call);
        }
        ControlFlow::Continue(())
    });
    let all = table_of_all.into_list();
    let (shown, has_more) = part_of(&all, page);
    let rows: Vec<_> = shown.iter().map(session_row).collect();
    let next = has_more.then(|| format!("{SESSIONS}?page={}", page + 1));
    html! {
        p {
            "Of the last " (count(calls.capacity() as u64)) " calls that this process has ended, those of clients that name their session: "
            (count(all.len() as u64)) " sessions."
        }
        (table("Sessions, the last used first", &COLUMNS, &rows, "No kept call names a session."))
        (pager(next.as_deref()))
    }
}

fn session_row(session: &SessionSummary) -> Vec<Markup> {
    let SessionSummary {
        organization,
        session_id,
        agents,
        totals,
    } = session;
    vec![
        session_link(organization, session_id),
        filter_link("organization", organization, organization),
        ended(&totals.last),
        html! { (count(totals.calls as u64)) },
        html! { (count(totals.failed as u64)) },
        html! { (count(*agents as u64)) },
        total_cost(totals),
        share(totals.cached_share()),
    ]
}

fn one(
    calls: &RecentCalls,
    organization: Option<String>,
    session: &str,
    page: usize,
) -> ConsoleReply {
    let filter = CallFilter {
        session: Some(session.to_owned()),
        organization: organization.clone(),
        ..CallFilter::default()
    };
    let mut found = calls.find(&filter, None, usize::MAX);
    found.reverse();
    let Some(organization) = organization else {
        return choose(&found, session);
    };
    let Some(whole) = sessions(&found).into_iter().next() else {
        let body = html! {
            p { "No call of the session " code { (session) } " of " code { (organization) } " is kept in the memory of this process." }
            p { a href=(SESSIONS) { "To the sessions" } }
        };
        return ConsoleReply::refused(404, "No such session", body);
    };
    let (shown, has_more) = part_of(&found, page);
    let next = has_more.then(|| {
        format!(
            "{}&page={}",
            session_address(&organization, session),
            page + 1
        )
    });
    let body = html! {
        (figures(&whole))
        (agents_of(&found))
        h2 { "Calls" }
        (calls_of(shown))
        (pager(next.as_deref()))
        p { a href=(format!("/console/live?session={}&organization={}", encoded(session), encoded(&organization))) { "Follow this session" } }
    };
    ConsoleReply::page(format!("Session {session}"), body)
}

/// An id without its organization may be that of several sessions.
fn choose(found: &[KeptCall], session: &str) -> ConsoleReply {
    let of_id = sessions(found);
    match &of_id[..] {
        [] => ConsoleReply::not_found(
            "No call of this session is kept in the memory of this process.",
        ),
        [only] => ConsoleReply::Redirect(session_address(&only.organization, session)),
        several => {
            let rows: Vec<_> = several.iter().take(PAGE_ROWS).map(session_row).collect();
            ConsoleReply::page(
                "Sessions",
                table("Sessions of this id", &COLUMNS, &rows, ""),
            )
        }
    }
}

fn figures(session: &SessionSummary) -> Markup {
    let totals = &session.totals;
    html! {
        dl.figures {
            (figure("Organization", &html! { (session.organization) }, None))
            (figure("Calls", &html! { (count(totals.calls as u64)) }, Some("that are kept")))
            (figure("Without an answer", &html! { (count(totals.failed as u64)) }, None))
            (figure("Cost", &total_cost(totals), None))
            (figure("Cached share", &share(totals.cached_share()), Some("of the prompts")))
        }
        p { "From " (ended(&totals.first)) " to " (ended(&totals.last)) "." }
    }
}

fn agents_of(calls: &[KeptCall]) -> Markup {
    let all = agents(calls);
    let rows: Vec<_> = all.iter().take(PAGE_ROWS).map(agent_row).collect();
    html! {
        h2 { "Agents" }
        (table("Agents, each above those that it has asked", &AGENTS, &rows, ""))
        @if all.len() > PAGE_ROWS { p { (count((all.len() - PAGE_ROWS) as u64)) " others are not shown." } }
    }
}

fn agent_row(agent: &AgentSummary) -> Vec<Markup> {
    let AgentSummary {
        agent_id,
        depth,
        totals,
    } = agent;
    let name = if agent_id.is_empty() {
        "the first one"
    } else {
        agent_id
    };
    vec![
        html! {
            @if *depth > 0 { span.muted { (format!("{} ", "›".repeat((*depth).min(8)))) } }
            (name)
        },
        ended(&totals.last),
        html! { (count(totals.calls as u64)) },
        tokens(totals),
        total_cost(totals),
        share(totals.cached_share()),
    ]
}

fn tokens(totals: &CallTotals) -> Markup {
    html! { (count(totals.prompt_tokens)) ", " (count(totals.completion_tokens)) }
}

fn calls_of(calls: &[KeptCall]) -> Markup {
    let row = |call: &KeptCall| {
        vec![
            ended(&call.time),
            call_link(call),
            html! { (call.agent_id) },
            html! { (call.model) },
            outcome(call),
            html! { (duration(call.duration_ms)) },
            html! { (count(call.prompt_tokens)) ", " (count(call.completion_tokens)) },
            cost(call.cost),
            share(call.cached_share()),
        ]
    };
    let rows: Vec<_> = calls.iter().map(row).collect();
    table(
        "Calls of the session, first to last",
        &CALLS_OF_SESSION,
        &rows,
        "",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_shown_in_pages() {
        let all: Vec<usize> = (0..120).collect();
        let page = |page| {
            let (shown, has_more) = part_of(&all, page);
            (shown.first().copied(), shown.len(), has_more)
        };
        assert_eq!(page(1), (Some(0), 50, true));
        assert_eq!(page(3), (Some(100), 20, false));
        assert_eq!(page(4), (None, 0, false));
        assert_eq!(page(usize::MAX), (None, 0, false));
    }
}
