//! What a view answers.

use bytes::Bytes;
use maud::Markup;
use tokio::sync::mpsc;

use crate::proxy::concurrency_limit::ConcurrencyPermit;

/// The media type of text.
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// The answer of a view.
pub enum ConsoleReply {
    /// A whole page, in the frame of the console.
    Page {
        status: u16,
        title: String,
        body: Markup,
    },
    /// A part of a page, for htmx.
    Fragment(Markup),
    /// Elsewhere, after a change: 303.
    Redirect(String),
    /// Server-sent events, until the sender is dropped, the client leaves, or the process stops. See [`event`].
    Events(ConsoleStream),
    /// Text that comes piece by piece, as [`Self::Events`] does.
    Text(ConsoleStream),
    /// There are as many of something as there may be: 503.
    Busy { why: String, retry_after_s: u64 },
    /// A body of another kind, with its media type.
    Other {
        status: u16,
        media_type: &'static str,
        body: Bytes,
    },
}

/// What comes piece by piece, and counts among the streams until it is dropped.
pub struct ConsoleStream {
    pub pieces: mpsc::Receiver<Bytes>,
    _permit: ConcurrencyPermit,
}

impl ConsoleStream {
    pub(super) fn new(pieces: mpsc::Receiver<Bytes>, permit: ConcurrencyPermit) -> Self {
        Self {
            pieces,
            _permit: permit,
        }
    }
}

impl ConsoleReply {
    /// A page that shows what was asked for.
    pub fn page(title: impl Into<String>, body: Markup) -> Self {
        Self::Page {
            status: 200,
            title: title.into(),
            body,
        }
    }

    /// A page that says why something was not done.
    pub fn refused(status: u16, title: impl Into<String>, body: Markup) -> Self {
        Self::Page {
            status,
            title: title.into(),
            body,
        }
    }

    /// Text for a script.
    pub fn text(status: u16, text: impl Into<Bytes>) -> Self {
        Self::Other {
            status,
            media_type: TEXT,
            body: text.into(),
        }
    }

    /// A page that says that there is no such thing.
    pub fn not_found(what: &str) -> Self {
        let body = maud::html! {
            p { (what) }
            p { a href="/console" { "To the overview" } }
        };
        Self::refused(404, "Not found", body)
    }

    /// A page that says that the store did not answer, or another failure of the gateway.
    pub fn failed(error: &impl std::fmt::Display) -> Self {
        let body = maud::html! {
            p.notice role="alert" { "This could not be shown: " (error) }
            p { "The gateway serves on. Reload this page to try again." }
        };
        Self::refused(503, "Not available", body)
    }
}

/// Returns a server-sent event with the text of an element, which replaces the element of the same id or is put on top.
pub fn event(name: &str, markup: &Markup) -> Bytes {
    let mut text = format!("event: {name}\n");
    for line in markup.0.lines() {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.into()
}
