//! The projects in memory: where their datafiles come from and how current they are.

use maud::{Markup, html};

use super::{PAGE_ROWS, PATH, events, first_row, link, since};
use crate::console::parts::{TableColumn, Tone, badge, count, number, pager, table, text};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::decisions::DecisionService;
use crate::decisions::datafiles::state::{DatafileOrigin, DatafileRefresh, DatafileState};

const COLUMNS: [TableColumn; 7] = [
    text("Project"),
    text("Id"),
    text("Environment"),
    number("Flags"),
    text("Revision"),
    text("In force since"),
    text("Refresh"),
];

pub(super) fn list(service: &DecisionService, request: &ConsoleRequest) -> ConsoleReply {
    let all = service.datafile_states();
    let from = first_row(request);
    let shown = all.iter().skip(from).take(PAGE_ROWS);
    let rows: Vec<Vec<Markup>> = shown.map(row).collect();
    let end = from.saturating_add(PAGE_ROWS);
    let next = (end < all.len()).then(|| link(PATH, &[("from", &end.to_string())]));
    let remote = service.remote_datafiles.as_ref();
    let failed = remote.map_or(0, |remote| remote.failed_keys());
    let body = html! {
        p.muted {
            (count(all.len() as u64)) " in memory. "
            @if remote.is_some() {
                "Datafiles of other SDK keys are fetched when they are first asked for. "
            }
            @if failed > 0 {
                "For " (count(failed as u64)) " other SDK keys the source has just refused or failed."
            }
        }
        (table("Projects", &COLUMNS, &rows, "No datafile is in memory yet: one comes with the first request for its SDK key."))
        (pager(next.as_deref()))
        h2 { "Recent events" }
        (events::show(service, None))
    };
    ConsoleReply::page("Flags", body)
}

fn row(datafile: &DatafileState) -> Vec<Markup> {
    let address = format!("{PATH}/{}", datafile.id());
    let link = html! { a href=(address) { (datafile.hint()) } };
    let Some(loaded) = &datafile.loaded else {
        let none = || html! { span.muted { "–" } };
        let missing = html! { (badge(Tone::Bad, "no usable datafile")) };
        return vec![
            link,
            none(),
            none(),
            none(),
            none(),
            missing,
            refresh(&datafile.refresh),
        ];
    };
    let project = &loaded.project;
    vec![
        link,
        html! { (project.project_id) },
        html! { (project.environment_key) },
        html! { (count(project.parts().flags as u64)) },
        html! { (project.revision) },
        since(loaded.loaded_at.elapsed()),
        refresh(&datafile.refresh),
    ]
}

/// Returns where a datafile comes from.
pub(super) fn origin(origin: &DatafileOrigin) -> Markup {
    match origin {
        DatafileOrigin::BuiltIn => html! { "built in" },
        DatafileOrigin::File(path) => html! { "the file " code { (path.display()) } },
        DatafileOrigin::Host(host) => html! { "fetched from " code { (host) } },
    }
}

/// Returns how a datafile is kept current.
pub(super) fn refresh(refresh: &DatafileRefresh) -> Markup {
    let state = match &refresh.error {
        Some(error) => html! { (badge(Tone::Bad, "failed")) " " (error) },
        None => html! { (badge(Tone::Good, "current")) },
    };
    html! {
        (state)
        @if refresh.is_running { " " (badge(Tone::Neutral, "under way")) }
        span.muted {
            @match refresh.interval {
                None => " never changes",
                Some(interval) if interval.as_millis() < 1_000 => { " looked at every " (interval.as_millis()) " ms" },
                Some(interval) => { " fetched every " (interval.as_secs()) " s" },
            }
            @if let Some(age) = refresh.age { ", last " (super::age_words(age)) " ago" }
        }
    }
}
