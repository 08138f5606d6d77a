//! Names of organizations, projects, members and provider keys, labels of keys, and tags of calls.

use crate::fault::{Fault, quoted};

/// The maximum length of a name, in characters.
const MAX_CHARS: usize = 128;
/// The maximum length of a tag.
const MAX_TAG_BYTES: usize = 64;
/// The most tags of a call.
const MAX_TAGS: usize = 10;

/// Checks a name, or a label, which may be empty.
///
/// Errors: what is wrong with it, to be written behind its kind or its text.
pub fn check_account_name(name: &str, may_be_empty: bool) -> Result<(), &'static str> {
    if name.is_empty() && !may_be_empty {
        Err("is empty")
    } else if name.trim() != name {
        Err("begins or ends with a space")
    } else if name.chars().any(char::is_control) {
        Err("has a control character")
    } else if name.chars().count() > MAX_CHARS {
        Err("has more than 128 characters")
    } else {
        Ok(())
    }
}

/// Checks the name of a tag, and returns it. Errors: what is accepted.
pub fn check_tag(tag: &str) -> Result<&str, String> {
    let is_tag = (1..=MAX_TAG_BYTES).contains(&tag.len())
        && tag
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/=".contains(&byte));
    is_tag.then_some(tag).ok_or_else(|| {
        let came = quoted(tag);
        format!("`{came}` is no tag; accepted are 1 to {MAX_TAG_BYTES} letters, digits and -_.:/=")
    })
}

/// Reads the tags of a call from the header of this name, separated by commas. One that is repeated counts once.
///
/// Errors: one that is no tag, or too many.
pub fn parse_tags(name: &str, header: &[u8]) -> Result<Box<[Box<str>]>, Fault> {
    let invalid = |problem: String| Fault::invalid("x-weirgate-tags", format!("{name}: {problem}"));
    let text = std::str::from_utf8(header);
    let text = text.map_err(|_| invalid("it is no text; accepted are tags".to_owned()))?;
    let mut tags: Vec<Box<str>> = Vec::new();
    for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
        let tag = check_tag(tag).map_err(invalid)?;
        if tags.iter().any(|known| **known == *tag) {
            continue;
        }
        if tags.len() == MAX_TAGS {
            return Err(invalid(format!("there are more than {MAX_TAGS} tags")));
        }
        tags.push(tag.into());
    }
    Ok(tags.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn tags_are_separated_by_commas_and_each_counts_once() {
        let tags = parse_tags("x-weirgate-tags", b" team=a ,nightly,, nightly ").unwrap();
        assert_eq!(tags.join(" "), "team=a nightly");
        assert!(parse_tags("x-weirgate-tags", b"").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_tag_and_too_many_are_told() {
        let long = "x".repeat(65);
        let many: Vec<String> = (0..11).map(|n| n.to_string()).collect();
        let many = many.join(",");
        let told = |header: &[u8]| parse_tags("x-weirgate-tags", header).unwrap_err().message;
        for (header, part) in [
            (&b"a b"[..], "`a b` is no tag"),
            (b"<b>", "letters, digits"),
            (long.as_bytes(), "1 to 64"),
            (many.as_bytes(), "more than 10 tags"),
            (b"\xff", "no text"),
        ] {
            let told = told(header);
            assert!(
                told.starts_with("x-weirgate-tags: ") && told.contains(part),
                "{told}"
            );
        }
    }
}
