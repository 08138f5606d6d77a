//! The events that were queued last.

use filters::decisions::queued_event::QueuedVisitor;
use maud::{Markup, html};

use super::PAGE_ROWS;
use crate::console::parts::{TableColumn, Tone, badge, count, table, text, time};
use crate::decisions::DecisionService;
use crate::decisions::events::recent::{MAX_EVENTS, RecentEvent};

const COLUMNS: [TableColumn; 6] = [
    text("Time"),
    text("User"),
    text("Flag"),
    text("Variation"),
    text("Rule"),
    text("Event"),
];

/// Shows the newest events of a project, or of all projects.
pub(super) fn show(service: &DecisionService, project_id: Option<&str>) -> Markup {
    let Some(recent) = service.events.recent() else {
        return html! {
            p.muted { "Events are not sent (" code { "decisions.event_url" } " is empty), so none are known here." }
        };
    };
    let list = recent.list(project_id, PAGE_ROWS);
    let rows: Vec<Vec<Markup>> = list.events.iter().filter_map(|event| row(event)).collect();
    html! {
        p.muted {
            "The newest " (PAGE_ROWS) " of the last " (MAX_EVENTS) " events of this process, as they were queued. "
            (count(list.count)) " were queued in all"
            @if list.oversized > 0 { ", of which " (count(list.oversized)) " were too long to be kept here" }
            "."
        }
        (table("Recent events", &COLUMNS, &rows, "No event yet."))
    }
}

fn row(event: &RecentEvent) -> Option<Vec<Markup>> {
    let visitor = QueuedVisitor::read(&event.visitor)?;
    let at_ms = i64::try_from(visitor.at_ms).unwrap_or(i64::MAX);
    let mut cells = vec![time(at_ms), html! { (visitor.user_id) }];
    match &visitor.impression {
        Some(seen) => {
            let tone = if seen.is_enabled {
                Tone::Good
            } else {
                Tone::Neutral
            };
            let state = if seen.is_enabled { "on" } else { "off" };
            let rule = html! { (seen.rule_key) " " span.muted { (seen.rule_type) } };
            cells.push(html! { (seen.flag_key) });
            cells.push(html! { (seen.variation_key) " " (badge(tone, state)) });
            cells.push(rule);
            cells.push(html! { "impression" });
        }
        None => {
            let none = || html! { span.muted { "–" } };
            cells.extend([none(), none(), none()]);
            cells.push(html! { "conversion " (visitor.event_key) });
        }
    }
    Some(cells)
}
