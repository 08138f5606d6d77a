//! Addresses within the console, and the parameters that come back in them.

use maud::html;

use crate::console::reply::ConsoleReply;

/// No name and no id is longer.
const MAX_NAME_CHARS: usize = 200;

/// Returns the address of a view with parameters. Those without a value are left out.
pub(super) fn link(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
    query.extend_pairs(pairs);
    let query = query.finish();
    match query.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{query}"),
    }
}

/// Returns the value of a word; without one, the first.
///
/// Errors: 400 naming the parameter, what came and what is accepted.
pub(super) fn one_of<T: Copy>(
    name: &str,
    word: Option<&str>,
    words: &[(&str, T)],
) -> Result<T, Box<ConsoleReply>> {
    let found = match word {
        None => words.first(),
        Some(word) => words.iter().find(|(known, _)| *known == word),
    };
    let unknown = || {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let shown: String = word.unwrap_or_default().chars().take(80).collect();
        bad_parameter(&format!(
            "{name} is {shown:?}; accepted is one of {}",
            known.join(", ")
        ))
    };
    found.map(|(_, value)| *value).ok_or_else(unknown)
}

/// Returns a text of the address that is, or begins, a name or an id; empty: there is none.
///
/// Errors: 400 naming the parameter, because no name is like that.
pub(super) fn name_of(parameter: &str, text: Option<String>) -> Result<String, Box<ConsoleReply>> {
    let text = text.unwrap_or_default();
    match text.chars().count() > MAX_NAME_CHARS || text.chars().any(char::is_control) {
        true => Err(bad_parameter(&format!(
            "{parameter}: accepted are at most {MAX_NAME_CHARS} characters, none of which is a control character"
        ))),
        false => Ok(text),
    }
}

/// Says that a parameter of the address is wrong.
pub(super) fn bad_parameter(why: &str) -> Box<ConsoleReply> {
    let body = html! {
        p.notice role="alert" { (why) }
        p { a href="/console" { "To the overview" } }
    };
    Box::new(ConsoleReply::refused(400, "Not understood", body))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn values_are_encoded_and_empty_ones_left_out() {
        let hostile = "a&b=c \"<é>#?/+";
        let made = link("/console/money", &[("name", hostile), ("after", "")]);
        let (path, query) = made.split_once('?').unwrap();
        assert_eq!(path, "/console/money");
        let read: Vec<_> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        assert_eq!(read, [("name".to_owned(), hostile.to_owned())]);
        assert_eq!(link("/console", &[("after", "")]), "/console");
    }

    #[test]
    fn an_unknown_word_and_an_impossible_search_are_refused() {
        let words = [("day", 1), ("month", 2)];
        assert_eq!(one_of("period", None, &words).ok(), Some(1));
        assert_eq!(one_of("period", Some("month"), &words).ok(), Some(2));
        let refused = *one_of("period", Some("<b>"), &words).err().unwrap();
        let ConsoleReply::Page { status, body, .. } = refused else {
            panic!("no page");
        };
        assert_eq!(status, 400);
        assert!(
            body.0
                .contains("period is &quot;&lt;b&gt;&quot;; accepted is one of day, month")
        );
        assert!(name_of("search", Some("a\0b".to_owned())).is_err());
        assert!(name_of("search", Some("a".repeat(201))).is_err());
        assert_eq!(name_of("search", None).ok(), Some(String::new()));
    }
}
