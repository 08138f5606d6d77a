//! Values of a reply that is scanned instead of parsed. What is not of the expected type counts as absent.
//!
//! A small reply is taken apart level by level: [`reply`] and [`object`] return the JSON of members, an empty text for one that is
//! absent.

use super::error_body::classify_error;
use super::failure::Failure;
use crate::json::{Error, Str, Type, Walker};

/// A string; `None` for null and anything else.
pub(super) fn text<'a>(walk: &mut Walker<'a>) -> Result<Option<Str<'a>>, Error> {
    if walk.peek()? == Type::String {
        return walk.string().map(Some);
    }
    walk.skip().map(|_| None)
}

/// The arguments of a call: a string, or the object itself, as some hosts give it.
pub(super) fn arguments<'a>(walk: &mut Walker<'a>) -> Result<Option<Str<'a>>, Error> {
    if walk.peek()? == Type::Object {
        return walk.skip().map(|object| Some(Str::Plain(object)));
    }
    text(walk)
}

/// The inside of an array; `None` for anything else.
pub(super) fn list<'a>(walk: &mut Walker<'a>) -> Result<Option<&'a str>, Error> {
    let value = walk.skip()?;
    Ok(value.starts_with('[').then(|| inside(value)))
}

/// The inside of an array's text.
pub(super) fn inside(array: &str) -> &str {
    let inside = array
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inside.unwrap_or_default().trim()
}

/// A time in unix seconds, which some hosts write with a fraction.
pub(super) fn seconds(walk: &mut Walker<'_>) -> Result<Option<u64>, Error> {
    walk.skip().map(count)
}

/// Returns the whole number that a JSON is, which some hosts write with a fraction; `None` for anything else.
pub(super) fn count(json: &str) -> Option<u64> {
    let whole = json.split_once('.').map_or(json, |(whole, _)| whole);
    whole.parse().ok()
}

/// Returns the JSON of these members of a whole reply; of a member that came twice, the last.
///
/// Errors: what came is not an object, or holds an error.
pub(super) fn reply<'a, const N: usize>(
    body: &'a [u8],
    keys: [&str; N],
) -> Result<[&'a str; N], Failure> {
    let (mut values, mut error) = ([""; N], "null");
    let mut walk = Walker::new(body).map_err(malformed)?;
    let walked = walk.object(|walk, key| {
        let value = walk.skip()?;
        if key == "error" {
            error = value;
        }
        note(&key, value, &keys, &mut values);
        Ok::<(), Error>(())
    });
    walked.and_then(|()| walk.end()).map_err(malformed)?;
    match error {
        "null" => Ok(values),
        error => Err(classify_error(error)),
    }
}

/// Returns the JSON of these members of an object; `None` for anything else.
pub(super) fn object<'a, const N: usize>(json: &'a str, keys: [&str; N]) -> Option<[&'a str; N]> {
    let (mut values, mut walk) = ([""; N], Walker::over(json));
    let walked = walk.object(|walk, key| {
        note(&key, walk.skip()?, &keys, &mut values);
        Ok::<(), Error>(())
    });
    let walked = walked.and_then(|()| walk.end());
    walked.ok().map(|()| values)
}

fn note<'a>(key: &str, value: &'a str, keys: &[&str], values: &mut [&'a str]) {
    let mut named = keys.iter().zip(values);
    if let Some((_, place)) = named.find(|(known, _)| **known == key) {
        *place = value;
    }
}

/// Returns the JSON of the items of an array; `None` for anything else.
pub(super) fn items(json: &str) -> Option<Vec<&str>> {
    let mut items = Vec::new();
    let mut walk = Walker::over(json);
    let walked = walk.array(|walk, _| {
        items.push(walk.skip()?);
        Ok::<(), Error>(())
    });
    let walked = walked.and_then(|()| walk.end());
    walked.ok().map(|()| items)
}

/// Returns the object of a body, which some hosts wrap in an array: its first item; `None`: the array cannot be read.
pub(super) fn first_item(body: &[u8]) -> Option<&str> {
    let body = std::str::from_utf8(body).ok()?.trim_ascii();
    match body.starts_with('[') {
        true => items(body)?.first().copied(),
        false => Some(body),
    }
}

/// Returns the string that a JSON is; `None` for anything else.
pub(super) fn string(json: &str) -> Option<Str<'_>> {
    inside_string(json).map(Str::Raw)
}

/// Returns what stands between the quotes of a string; `None` for anything else.
pub(super) fn inside_string(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

/// Returns the number that a JSON is, as it is written; `None` for anything else.
pub(super) fn number(json: &str) -> Option<&str> {
    json.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        .then_some(json)
}

/// The failure of a reply that cannot be scanned.
pub(super) fn malformed(error: Error) -> Failure {
    Failure::malformed(format!("the provider's reply cannot be read: {error}"))
}
