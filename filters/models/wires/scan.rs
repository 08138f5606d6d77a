//! Values of a reply that is scanned instead of parsed. What is not of the expected type counts as absent.

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
    let written = walk.skip()?;
    let whole = written.split_once('.').map_or(written, |(whole, _)| whole);
    Ok(whole.parse().ok())
}

/// The failure of a reply that cannot be scanned.
pub(super) fn malformed(error: Error) -> Failure {
    Failure::malformed(format!("the provider's reply cannot be read: {error}"))
}
