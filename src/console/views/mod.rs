//! The views: one row for each, in the order of the navigation.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::reply::ConsoleReply;
use super::request::ConsoleRequest;
use super::state::Console;

mod audit;
mod call_parts;
mod calls;
mod flags;
mod forms;
mod limits;
mod links;
mod live;
mod models;
mod money;
mod overview;
mod playground;
mod prompts;
mod sessions;
mod spend_limits;
mod spending;

/// A view: all paths at or below its own.
pub(super) struct View {
    pub(super) path: &'static str,
    pub(super) title: &'static str,
    is_in_navigation: bool,
    /// Whether its forms change nothing that the gateway keeps, so that they need no `admin.write`.
    pub(super) is_harmless: bool,
    pub(super) show: Show,
}

type Show = for<'v> fn(&'v Console, &'v ConsoleRequest) -> BoxFuture<'v, ConsoleReply>;

const fn view(path: &'static str, title: &'static str, show: Show) -> View {
    View {
        path,
        title,
        is_in_navigation: true,
        is_harmless: false,
        show,
    }
}

/// A view whose forms change nothing that the gateway keeps.
const fn harmless(view: View) -> View {
    View {
        is_harmless: true,
        ..view
    }
}

pub(super) const VIEWS: &[View] = &[
    view("/console", "Overview", |console, request| {
        overview::show(console, request).boxed()
    }),
    view(call_parts::LIVE, "Live", |console, request| {
        live::show(console, request).boxed()
    }),
    View {
        is_in_navigation: false,
        ..view(call_parts::CALLS, "Calls", |console, request| {
            calls::show(console, request).boxed()
        })
    },
    view(call_parts::SESSIONS, "Sessions", |console, request| {
        sessions::show(console, request).boxed()
    }),
    view(money::PATH, "Money", |console, request| {
        money::show(console, request).boxed()
    }),
    harmless(view(models::PATH, "Models", |console, request| {
        models::show(console, request).boxed()
    })),
    view(flags::PATH, "Flags", |console, request| {
        flags::show(console, request).boxed()
    }),
    view(limits::PATH, "Limits", |console, request| {
        limits::show(console, request).boxed()
    }),
    harmless(view(playground::PATH, "Playground", |console, request| {
        playground::show(console, request).boxed()
    })),
    view(prompts::PATH, "Prompts", |console, request| {
        prompts::show(console, request).boxed()
    }),
    View {
        is_in_navigation: false,
        ..harmless(view(
            prompts::RENDER,
            "Render a prompt",
            |console, request| prompts::render(console, request).boxed(),
        ))
    },
    view(audit::PATH, "Audit", |console, request| {
        audit::show(console, request).boxed()
    }),
];

/// Returns the paths and titles of the views.
pub(super) fn navigation() -> Vec<(&'static str, &'static str)> {
    let shown = VIEWS.iter().filter(|view| view.is_in_navigation);
    shown.map(|view| (view.path, view.title)).collect()
}

/// Returns the view of a path: the one whose path is the longest.
pub(super) fn find(path: &str) -> Option<&'static View> {
    let matches = VIEWS.iter().filter(|view| {
        let rest = path.strip_prefix(view.path);
        rest.is_some_and(|rest| {
            rest.is_empty() || (rest.starts_with('/') && view.path != "/console")
        })
    });
    matches.max_by_key(|view| view.path.len())
}
