//! The calls as they run and end. The page shows the last ones, and follows what comes by events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use maud::{Markup, html};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::call_parts::{
    CALLS, LIVE, PAGE_ROWS, call_link, cost, encoded, ended, filter_form, filter_link, filter_of,
    key_link, nothing_kept, outcome,
};
use crate::console::parts::{
    TableColumn, Tone, badge, cells, count, duration, followed_table, number, pager, table,
    table_of, text, time,
};
use crate::console::reply::{ConsoleReply, ConsoleStream, event};
use crate::console::request::ConsoleRequest;
use crate::console::state::Console;
use crate::telemetry::calls::{
    CallFilter, InvalidFilter, KeptCall, OpenCallFacts, RecentCalls, Viewer,
};

/// How often a page is told what is new.
const STEP: Duration = Duration::from_millis(300);
/// The calls that a page is shown at most in a step. It is told how many others there were.
const STEP_CALLS: usize = 10;
/// The pieces that may wait for a page before it is not looked for any more.
const WAITING_PIECES: usize = 4;
/// The calls that run that a page lists at most.
const MAX_RUNNING: usize = 50;
/// After how many seconds a page that got no place asks again.
const RETRY_AFTER_S: u64 = 30;

const ENDED: [TableColumn; 10] = [
    text("Ended"),
    text("Call"),
    text("Organization"),
    text("Key"),
    text("Model"),
    text("Provider"),
    text("Status"),
    number("Took"),
    number("Tokens in, out"),
    number("Cost"),
];
const RUNNING: [TableColumn; 7] = [
    text("Began"),
    text("Call"),
    text("Organization"),
    text("Key"),
    text("Model"),
    text("Provider"),
    text("State"),
];

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let calls = Arc::clone(&console.app().proxy.calls);
    let filter = match filter_of(request) {
        Ok(filter) => filter,
        Err(error) => return refuse(request, &error),
    };
    match request.rest(LIVE) {
        "" => ConsoleReply::page("Live", page(&calls, request, &filter)),
        "events" => follow(console, &calls, request, filter),
        _ => ConsoleReply::not_found("There is no such page."),
    }
}

fn refuse(request: &ConsoleRequest, error: &InvalidFilter) -> ConsoleReply {
    let body = html! {
        p.notice role="alert" { (error) "." }
        (filter_form(request))
    };
    ConsoleReply::refused(400, "Live", body)
}

fn page(calls: &RecentCalls, request: &ConsoleRequest, filter: &CallFilter) -> Markup {
    if !calls.is_on() {
        return nothing_kept();
    }
    let before = request
        .query("before")
        .and_then(|before| before.parse().ok());
    // Read before the list, so that no call falls between both.
    let seen = calls.ended();
    let shown = calls.find(filter, before, PAGE_ROWS + 1);
    let rows = shown.iter().take(PAGE_ROWS);
    let rows = html! { @for call in rows { (ended_row(calls.epoch(), call)) } };
    let query = request.query_without(&["before"]);
    let last = shown.get(PAGE_ROWS - 1).filter(|_| shown.len() > PAGE_ROWS);
    let next = last.map(|call| format!("{LIVE}?{query}&before={}", call.number));
    html! {
        p {
            "The last " (count(calls.capacity() as u64)) " calls of models that this process has ended, and those that run. Bodies are not kept. "
            a href=(CALLS) { "Find a call by its id" }
        }
        (filter_form(request))
        @if before.is_none() {
            (running(&calls.running(), filter))
            (following(calls.epoch(), seen, &query, &rows))
        } @else {
            h2 { "Earlier calls" }
            p { a href=(format!("{LIVE}?{query}")) { "Back to the newest" } }
            (table_of("Calls that have ended, newest first", &ENDED, &rows, None))
            @if shown.is_empty() { p.muted { "No earlier call matches." } }
        }
        (pager(next.as_deref()))
    }
}

/// The table that follows what comes.
fn following(epoch: u64, seen: u64, query: &str, rows: &Markup) -> Markup {
    let address = format!("{LIVE}/events?{query}&since={epoch}-{seen}");
    html! {
        h2 { "Ended" }
        p {
            button type="button" data-pauses="ended" aria-pressed="false" { "Pause" }
            " "
            span #skipped .muted {}
        }
        (followed_table("Calls that have ended, newest first; new ones come to the top", &ENDED, rows, ("ended", &address)))
    }
}

fn ended_row(epoch: u64, call: &KeptCall) -> Markup {
    let model = if call.model.is_empty() {
        &call.used_model
    } else {
        &call.model
    };
    let tokens = html! { (count(call.prompt_tokens)) ", " (count(call.completion_tokens)) };
    let provider = html! {
        (filter_link("provider", &call.provider, &call.provider))
        @if call.cached { " " (badge(Tone::Neutral, "cached")) }
        @if call.attempts.len() > 1 { " " span.muted { (call.attempts.len()) " attempts" } }
    };
    let row = [
        ended(&call.time),
        call_link(call),
        filter_link("organization", &call.organization, &call.organization),
        key_link(&call.key_id, &call.key_label),
        filter_link("model", model, model),
        provider,
        outcome(call),
        html! { (duration(call.duration_ms)) },
        tokens,
        cost(call.cost),
    ];
    html! { tr id=(format!("call-{epoch}-{}", call.number)) { (cells(&ENDED, &row)) } }
}

/// The calls that run, as one element that is replaced as a whole.
fn running(all: &[OpenCallFacts], filter: &CallFilter) -> Markup {
    let matching: Vec<_> = all
        .iter()
        .filter(|call| filter.matches_open(call))
        .collect();
    let rows: Vec<Vec<Markup>> = matching
        .iter()
        .take(MAX_RUNNING)
        .map(|call| running_row(call))
        .collect();
    let others = matching.len() - rows.len();
    html! {
        section #running {
            h2 { "Running" }
            (table("Calls that run, oldest first", &RUNNING, &rows, "No call runs."))
            @if others > 0 {
                p { (count(others as u64)) " others run that are not shown." }
            }
            @if filter.session.is_some() || filter.status.is_some() || filter.cost.is_some() {
                p.muted { "Session, status and cost of a call are known at its end." }
            }
        }
    }
}

fn running_row(call: &OpenCallFacts) -> Vec<Markup> {
    let caller = call.caller.as_deref();
    let organization = caller.map_or("", |caller| &caller.organization);
    let (key, label) = caller.map_or(("", ""), |caller| (&*caller.key_id, &*caller.key_label));
    let id = call.request_id.to_str().unwrap_or_default();
    let state = match (call.attempts, call.has_content) {
        (0, _) => "is planned".to_owned(),
        (1, false) => "waits".to_owned(),
        (attempts, false) => format!("waits, attempt {attempts}"),
        (_, true) => "answers".to_owned(),
    };
    let unix_ms = i64::try_from(call.started_unix_us / 1000).unwrap_or_default();
    vec![
        time(unix_ms),
        html! { a.id href=(format!("{CALLS}/{}", encoded(id))) { (id) } " " span.muted { (call.route) } },
        filter_link("organization", organization, organization),
        key_link(key, label),
        html! { (call.model.as_deref().unwrap_or("–")) },
        html! { (call.provider.as_deref().unwrap_or("–")) },
        html! { (state) },
    ]
}

/// Sends what is new to a page, until it is closed.
fn follow(
    console: &Console,
    calls: &Arc<RecentCalls>,
    request: &ConsoleRequest,
    filter: CallFilter,
) -> ConsoleReply {
    let permit = match console.capacity.streams.enter() {
        Ok(permit) => permit,
        Err(full) => return full.into(),
    };
    let viewer = match calls.follow(seen(calls, request)) {
        Ok(viewer) => viewer,
        Err(error) => {
            return ConsoleReply::Busy {
                why: error.to_string(),
                retry_after_s: RETRY_AFTER_S,
            };
        }
    };
    let (sender, pieces) = mpsc::channel(WAITING_PIECES);
    let page = FollowedPage::new(viewer, filter);
    console.thread().spawn(page.run(sender));
    ConsoleReply::Events(ConsoleStream::new(pieces, permit))
}

/// Returns the number of the last call that a page has seen. One of another process has seen none of these.
fn seen(calls: &RecentCalls, request: &ConsoleRequest) -> u64 {
    // A browser that connects again says what it has got.
    let last = request.headers.get("last-event-id");
    let last = last.and_then(|last| last.to_str().ok()).map(str::to_owned);
    let since = last
        .or_else(|| request.query("last"))
        .or_else(|| request.query("since"));
    let Some(since) = since else {
        return calls.ended();
    };
    let of_epoch = |(epoch, number): (&str, &str)| {
        let is_ours = epoch.parse() == Ok(calls.epoch());
        is_ours.then(|| number.parse().ok()).flatten()
    };
    since.split_once('-').and_then(of_epoch).unwrap_or(0)
}

/// A page that follows the calls.
struct FollowedPage {
    viewer: Viewer,
    filter: CallFilter,
    /// The list of running calls that the page has.
    running: String,
    /// How many calls it was not shown.
    skipped: u64,
}

impl FollowedPage {
    fn new(viewer: Viewer, filter: CallFilter) -> Self {
        Self {
            viewer,
            filter,
            running: String::new(),
            skipped: 0,
        }
    }

    /// Each step sends what is new. While pieces wait that the page does not take, nothing is looked for.
    async fn run(mut self, sender: mpsc::Sender<Bytes>) {
        let mut steps = interval(STEP);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = steps.tick() => {}
                () = sender.closed() => return,
            }
            let Some(news) = self.step(Instant::now()) else {
                _ = sender
                    .send(event(
                        "note",
                        &skipped("Another page has taken this place."),
                    ))
                    .await;
                return;
            };
            if !news.is_empty() && sender.send(news.into()).await.is_err() {
                return;
            }
        }
    }

    /// Returns what is new, which may be nothing; or `None` if the page has lost its place.
    fn step(&mut self, now: Instant) -> Option<Vec<u8>> {
        let ended = self.viewer.ask(&self.filter, STEP_CALLS, now)?;
        let calls = Arc::clone(self.viewer.calls());
        let mut news = Vec::new();
        // The newest comes last, to the top.
        for call in ended.calls.iter().rev() {
            news.extend(event("row", &ended_row(calls.epoch(), call)));
        }
        let missed = ended.others + ended.unread;
        if missed > 0 {
            self.skipped += missed;
            let why = format!(
                "{} calls ended that are not shown here.",
                count(self.skipped)
            );
            news.extend(event("note", &skipped(&why)));
        }
        let running = running(&calls.running(), &self.filter);
        if running.0 != self.running {
            news.extend(event("note", &running));
            self.running = running.0;
        }
        if !news.is_empty() {
            let id = format!("id: {}-{}\n", calls.epoch(), self.viewer.seen());
            news.splice(0..0, id.into_bytes());
        }
        Some(news)
    }
}

/// What a page was not shown.
fn skipped(why: &str) -> Markup {
    html! { span #skipped .muted { (why) } }
}
