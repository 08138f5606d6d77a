//! JSON objects of providers with other members, for what passes as it came.

use std::borrow::Cow;

use super::{Error, Walker, quoted};

/// Returns an object with further members: what stands behind its brace. What is no object stays as it is.
pub fn joined(object: &str, members: &str) -> String {
    let Some(object) = object.trim_end().strip_suffix('}') else {
        return object.to_owned();
    };
    let is_empty = object.trim_end().ends_with('{');
    [object, if is_empty { "" } else { "," }, members].concat()
}

/// Returns an object with this value of a member, which it may lack.
pub fn with_member(json: &str, key: &str, value: &str) -> Result<String, Error> {
    let mut is_there = false;
    let told = replaced(json, key, |_| {
        is_there = true;
        Ok(value.to_owned())
    })?;
    Ok(match is_there {
        true => told,
        false => joined(&told, &["\"", key, "\":", value, "}"].concat()),
    })
}

/// Returns an object without a member, and the value of that, if it has the member.
pub fn without<'a>(json: &'a str, left_out: &str) -> Result<(String, Option<&'a str>), Error> {
    let (mut out, mut value) = (String::with_capacity(json.len()), None);
    out.push('{');
    Walker::over(json).object(|walk, key| {
        let skipped = walk.skip()?;
        if key == left_out {
            value = Some(skipped);
            return Ok(());
        }
        let separator = if out.len() > 1 { "," } else { "" };
        out.extend([separator, &quoted(&key), ":", skipped]);
        Ok::<(), Error>(())
    })?;
    out.push('}');
    Ok((out, value))
}

/// Returns the value of a member of an object; `None`: the object lacks it, or is none.
pub fn find<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let mut value = None;
    let walked = Walker::over(json).object(|walk, found| {
        let skipped = walk.skip()?;
        if found == key {
            value = Some(skipped);
        }
        Ok::<(), Error>(())
    });
    walked.ok().and(value)
}

/// Returns such a value that is a text.
pub fn find_text<'a>(json: &'a str, key: &str) -> Option<Cow<'a, str>> {
    let value = find(json, key)?;
    Walker::over(value).text().ok()
}

/// Returns an object with another value of a member, if it has the member.
pub fn replaced(
    json: &str,
    key: &str,
    value: impl FnOnce(&str) -> Result<String, Error>,
) -> Result<String, Error> {
    let mut place = None;
    let mut walk = Walker::over(json);
    walk.object(|walk, found| {
        let length = walk.skip()?.len();
        if found == key {
            place = Some(walk.at() - length..walk.at());
        }
        Ok::<(), Error>(())
    })?;
    let Some(place) = place else {
        return Ok(json.to_owned());
    };
    let part = |range: std::ops::Range<usize>| json.get(range).unwrap_or_default();
    let new = value(part(place.clone()))?;
    Ok([part(0..place.start), &new, part(place.end..json.len())].concat())
}
