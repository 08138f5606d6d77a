//! Models: the catalogue with prices and health, and why a request would go where it goes.

mod catalog;
mod question;

use maud::html;

use crate::console::Console;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;

/// The path of the view.
pub(super) const PATH: &str = "/console/models";
/// The page on which a request is asked about.
const ROUTE: &str = "route";

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    match request.rest(PATH) {
        "" => catalog::list(console, request),
        ROUTE => question::show(console, request).await,
        "day" => ConsoleReply::page(
            "A day of outages",
            html! {
                p { "What the router does with a day of outages, as the repository's simulator plays it: " code { "docs/routing.md" } " tells how." }
                img.drawing src=(crate::console::assets::address("routing-day.svg")) alt="Shares of calls by provider over a simulated day: while a provider fails, its calls go to the others, and come back when it has recovered.";
            },
        ),
        id => catalog::model(console, id),
    }
}
