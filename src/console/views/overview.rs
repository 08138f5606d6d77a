//! The overview: is it well?

use maud::{Markup, html};

use crate::console::Console;
use crate::console::parts::{Tone, badge, count, figure};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::control::status::{ProcessStatus, SERVES};

pub(super) async fn show(console: &Console, _request: &ConsoleRequest) -> ConsoleReply {
    let body = match console.status() {
        Some(status) => render(&status),
        None => html! { p { "The process starts." } },
    };
    ConsoleReply::page("Overview", body)
}

fn render(status: &ProcessStatus) -> Markup {
    let tone = match status.state.as_str() {
        SERVES => Tone::Good,
        _ => Tone::Bad,
    };
    html! {
        section #process hx-get="/console" hx-trigger="every 5s" hx-select="#process" hx-swap="outerHTML" {
            dl.figures {
                (figure("State", &badge(tone, &status.state), None))
                (figure("Requests", &html! { (count(status.load.requests)) }, Some("since the start")))
            }
        }
    }
}
