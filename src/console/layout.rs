//! The frame around every view.

use maud::{DOCTYPE, Markup, html};

use super::access::Visitor;
use super::assets::address;

/// Without what the Content-Security-Policy forbids: evaluated code and styles in elements.
const HTMX_CONFIG: &str = r#"{"allowEval":false,"includeIndicatorStyles":false,"historyCacheSize":0,"selfRequestsOnly":true,"allowScriptTags":false}"#;

/// What the frame shows beside the view.
pub(super) struct Frame<'f> {
    /// `None` on the page to sign in.
    pub(super) visitor: Option<&'f Visitor>,
    /// The paths and titles of the views.
    pub(super) navigation: &'f [(&'static str, &'static str)],
    /// The path of the request, by which the navigation shows where one is.
    pub(super) path: &'f str,
    /// Whether there is something to sign out of.
    pub(super) has_token: bool,
    /// Whether changes are allowed.
    pub(super) is_writable: bool,
}

/// Puts a view into the frame.
pub(super) fn page(frame: &Frame<'_>, title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="htmx-config" content=(HTMX_CONFIG);
                title { (title) " · Weirgate" }
                link rel="icon" href=(address("icon.svg")) type="image/svg+xml";
                link rel="stylesheet" href=(address("uplot.css"));
                link rel="stylesheet" href=(address("console.css"));
                script src=(address("htmx.js")) defer {}
                script src=(address("uplot.js")) defer {}
                script src=(address("console.js")) defer {}
            }
            body {
                a.skip href="#main" { "To the content" }
                header.top {
                    a.brand href="/console" { "Weirgate" }
                    @if let Some(visitor) = frame.visitor {
                        (navigation(frame))
                        (session(frame, visitor))
                    }
                }
                p #connection .connection role="status" aria-live="polite" {}
                main #main tabindex="-1" {
                    h1 { (title) }
                    (body)
                }
            }
        }
    }
}

fn navigation(frame: &Frame<'_>) -> Markup {
    html! {
        nav aria-label="Views" {
            ul {
                @for (path, title) in frame.navigation {
                    li {
                        a href=(path) aria-current=[is_current(path, frame.path).then_some("page")] { (title) }
                    }
                }
            }
        }
    }
}

fn session(frame: &Frame<'_>, visitor: &Visitor) -> Markup {
    html! {
        div.session {
            span.muted { (if frame.is_writable { "may change things" } else { "read-only" }) }
            @if frame.has_token {
                span { (visitor.name) }
                form method="post" action="/console/sign-out" {
                    (csrf(visitor))
                    button type="submit" { "Sign out" }
                }
            }
        }
    }
}

/// The hidden field that each form with a change has.
pub fn csrf(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="csrf" value=(visitor.csrf); }
}

fn is_current(view: &str, path: &str) -> bool {
    let rest = path.strip_prefix(view);
    match view {
        "/console" => path == view,
        _ => rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    }
}

/// The page to sign in.
pub(super) fn sign_in(problem: Option<&str>) -> Markup {
    html! {
        @if let Some(problem) = problem {
            p.notice role="alert" { (problem) }
        }
        form.stacked method="post" action="/console/sign-in" {
            label for="name" { "Your name" }
            input #name name="name" required maxlength="64" autocomplete="username" aria-describedby="name-help";
            p #name-help .muted { "It stands in the audit log beside what you change." }
            label for="token" { "Token" }
            input #token name="token" type="password" required autocomplete="current-password" aria-describedby="token-help";
            p #token-help .muted { "The one of admin.token. Or run " code { "weirgate console" } " on the machine: it prints a link." }
            button type="submit" { "Sign in" }
        }
    }
}
