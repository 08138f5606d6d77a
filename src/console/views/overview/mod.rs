//! The overview: is it well? What does it cost? What is near its end?

mod data;
mod render;

use jiff::Timestamp;
use maud::html;

use self::data::Overview;
use super::links::one_of;
use super::spending::{Look, LookBack};
use crate::console::Console;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::console::store_answers::WaitFor;
use crate::store::ledger::SpendBy;

/// The times and the divisions that one may look at.
const PERIODS: [LookBack; 3] = LookBack::ALL;
const DIVISIONS: [SpendBy; 4] = [
    SpendBy::Model,
    SpendBy::Provider,
    SpendBy::Organization,
    SpendBy::Key,
];

/// What of the page is asked for.
#[derive(Clone, Copy)]
enum Part {
    All,
    /// How it is now, without the store.
    Live,
    /// The last hour, without the store.
    Hour,
    Spend,
    Nearest,
}

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let read = Look::parse(request, &PERIODS, &DIVISIONS);
    let words = [
        ("all", Part::All),
        ("live", Part::Live),
        ("hour", Part::Hour),
        ("spend", Part::Spend),
        ("nearest", Part::Nearest),
    ];
    let part = one_of("part", request.query("part").as_deref(), &words);
    let (look, part) = match (read, part) {
        (Ok(look), Ok(part)) => (look, part),
        (Err(refused), _) | (_, Err(refused)) => return *refused,
    };
    let Some(live) = data::live(console) else {
        return ConsoleReply::page("Overview", html! { p { "The process starts." } });
    };
    match part {
        Part::Live => ConsoleReply::Fragment(render::live(&live)),
        Part::Hour => ConsoleReply::Fragment(render::hour(&live.hour)),
        Part::Spend => {
            let asked = look.query(None, Timestamp::now().as_millisecond());
            let answer = console.spending(&asked, WaitFor::Answer).await;
            ConsoleReply::Fragment(render::spend_section(look, &asked, &answer))
        }
        Part::Nearest => {
            let nearest = data::nearest(console, WaitFor::Answer).await;
            ConsoleReply::Fragment(render::near(&nearest))
        }
        Part::All => {
            let overview = Overview::gather(console, live, look).await;
            ConsoleReply::page("Overview", render::page(&overview))
        }
    }
}
