//! The views: one row for each, in the order of the navigation.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::reply::ConsoleReply;
use super::request::ConsoleRequest;
use super::state::Console;

mod models;
mod overview;
mod playground;

/// A view: all paths at or below its own.
pub(super) struct View {
    pub(super) path: &'static str,
    pub(super) title: &'static str,
    /// Whether its forms change nothing that the gateway keeps, so that they need no `admin.write`.
    pub(super) is_harmless: bool,
    pub(super) show: Show,
}

type Show = for<'v> fn(&'v Console, &'v ConsoleRequest) -> BoxFuture<'v, ConsoleReply>;

const fn view(path: &'static str, title: &'static str, show: Show) -> View {
    View {
        path,
        title,
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
    harmless(view(models::PATH, "Models", |console, request| {
        models::show(console, request).boxed()
    })),
    harmless(view(playground::PATH, "Playground", |console, request| {
        playground::show(console, request).boxed()
    })),
];

/// Returns the paths and titles of the views.
pub(super) fn navigation() -> Vec<(&'static str, &'static str)> {
    VIEWS.iter().map(|view| (view.path, view.title)).collect()
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
