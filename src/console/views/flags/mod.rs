//! Flags: projects with their datafiles, flags with their rules, and which flag decides what for whom.
//!
//! A look decides as `POST /v1/decide/explain` does: it sends no event and stores nothing about the user.

mod decisions;
mod events;
mod flag;
mod project;
mod projects;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use maud::{Markup, html};

use crate::console::Console;
use crate::console::parts::time;
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;

/// The path of the view.
pub(super) const PATH: &str = "/console/flags";
/// The rows on one page.
const PAGE_ROWS: usize = 50;

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let app = console.app();
    let Some(service) = &app.decisions else {
        let body = html! {
            p { "Flag decisions are off: the configuration has no table " code { "[decisions]" } "." }
        };
        return ConsoleReply::page("Flags", body);
    };
    match request.rest(PATH) {
        "" => projects::list(service, request),
        id => match service.datafile_states().iter().find(|it| it.id() == id) {
            Some(datafile) => project::show(service, datafile, request).await,
            None => ConsoleReply::not_found("No project in memory has this address."),
        },
    }
}

/// Returns the number of the first row that is asked for.
fn first_row(request: &ConsoleRequest) -> usize {
    let from = request.query("from");
    from.and_then(|from| from.parse().ok()).unwrap_or(0)
}

/// Returns the address of a page with these parameters, without those that are empty.
fn link(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    query.extend_pairs(given);
    match query.finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// Returns the time that is so long ago, with the duration in words.
fn since(age: Duration) -> Markup {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let at = now.unwrap_or_default().saturating_sub(age);
    let at_ms = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    html! { (time(at_ms)) " (" (age_words(age)) " ago)" }
}

/// Returns a duration in its largest unit.
fn age_words(age: Duration) -> String {
    let seconds = age.as_secs();
    let (number, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_words() {
        for (seconds, words) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "1 minute"),
            (7_200, "2 hours"),
            (90_000, "1 day"),
        ] {
            assert_eq!(age_words(Duration::from_secs(seconds)), words);
        }
    }

    #[test]
    fn whatever_stands_in_an_address_is_encoded() {
        assert_eq!(link("/a", &[("flag", ""), ("q", "")]), "/a");
        let hostile = "\"><b>&user=x#/../ä";
        let address = link("/a", &[("flag", hostile), ("from", "50")]);
        assert_eq!(
            address,
            "/a?flag=%22%3E%3Cb%3E%26user%3Dx%23%2F..%2F%C3%A4&from=50"
        );
    }
}
