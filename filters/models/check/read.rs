//! Reading values of an expected type.

use crate::fault_code::FaultCode;
use std::borrow::Cow;
use std::fmt;

use super::reject::{Reject, other};
use crate::json::{Str, Type, Walker};

/// A string.
pub(crate) fn string<'a>(walk: &mut Walker<'a>) -> Result<Str<'a>, Reject> {
    expect(walk, Type::String, "a string")?;
    Ok(walk.string()?)
}

/// A string or null.
pub(crate) fn nullable_string<'a>(walk: &mut Walker<'a>) -> Result<Option<Str<'a>>, Reject> {
    if walk.null()? {
        return Ok(None);
    }
    expect(walk, Type::String, "a string or null")?;
    Ok(Some(walk.string()?))
}

/// A finite number. Where one stands, null counts as absent.
pub(crate) fn number(walk: &mut Walker<'_>) -> Result<f64, Reject> {
    expect(walk, Type::Number, "a number or null")?;
    let written = walk.number()?;
    let number: f64 = written.parse().unwrap_or(f64::INFINITY);
    if number.is_finite() {
        return Ok(number);
    }
    Err(Reject::rule(
        "is a number beyond what a number can be; accepted is a finite number or null",
    ))
}

/// An integer of a range.
pub(crate) fn integer(walk: &mut Walker<'_>, least: u64, most: u64) -> Result<u64, Reject> {
    // Written only into a message, because a request may hold many integers.
    let accepted = || match most {
        u64::MAX => format!("an integer of at least {least}"),
        _ => format!("an integer from {least} to {most}"),
    };
    if walk.peek()? != Type::Number {
        return Err(other(walk, &accepted()));
    }
    let written = walk.number()?;
    // `5.0` is an integer in JSON's eyes, as some clients write it.
    let whole = written
        .split_once('.')
        .filter(|(_, rest)| rest.bytes().all(|b| b == b'0'));
    let value: Option<u64> = whole.map_or(written, |(whole, _)| whole).parse().ok();
    value
        .filter(|value| (least..=most).contains(value))
        .ok_or_else(|| {
            let shown: String = written.chars().take(40).collect();
            Reject::rule(format!("is {shown}; accepted is {}", accepted()))
        })
}

/// A limit as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub number: f64,
    /// What it counts; `u64::MAX`: nothing that bounds.
    pub count: u64,
    /// The text of a number that counts nothing: below 1, broken or huge.
    pub odd: Option<Box<str>>,
}

/// A limit: any number, of which the provider judges.
pub(crate) fn limit(walk: &mut Walker<'_>) -> Result<Limit, Reject> {
    expect(walk, Type::Number, "a number")?;
    let written = walk.number()?;
    let number: f64 = written.parse().unwrap_or(f64::INFINITY);
    if !number.is_finite() {
        let said = "is a number beyond what a number can be; accepted is a finite number";
        return Err(Reject::rule(said));
    }
    let counts = number.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&number);
    Ok(Limit {
        number,
        count: if counts { number as u64 } else { u64::MAX },
        odd: (!counts).then(|| written.into()),
    })
}

/// A boolean.
pub(crate) fn boolean(walk: &mut Walker<'_>) -> Result<bool, Reject> {
    expect(walk, Type::Bool, "a boolean")?;
    Ok(walk.boolean()?)
}

/// One word of a closed list.
pub(crate) fn one_of(
    walk: &mut Walker<'_>,
    words: &[&'static str],
) -> Result<&'static str, Reject> {
    if walk.peek()? != Type::String {
        return Err(other(walk, &OneOf(words).to_string()));
    }
    let word = walk.string()?.unescaped();
    words
        .iter()
        .copied()
        .find(|known| *known == word)
        .ok_or_else(|| {
            let shown: String = word.chars().take(40).collect();
            Reject::rule(format!("is {shown:?}; accepted is {}", OneOf(words)))
        })
}

/// `one of` and the words of a closed list, written only into a message.
pub(crate) struct OneOf<'w>(pub(crate) &'w [&'w str]);

impl fmt::Display for OneOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one of ")?;
        for (at, word) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            f.write_str(word)?;
        }
        Ok(())
    }
}

/// Reads an object: calls `member` with each member whose key is in `known`, and skips the others.
///
/// Errors: not an object, or a key of `known` twice.
pub(crate) fn object<'a>(
    walk: &mut Walker<'a>,
    known: &[&'static str],
    mut member: impl FnMut(&mut Walker<'a>, &'static str) -> Result<(), Reject>,
) -> Result<(), Reject> {
    any_object(walk, known, |walk, key, known| match known {
        Some(key) => member(walk, key).map_err(|reject| reject.within(key)),
        None => {
            _ = key;
            walk.skip()?;
            Ok(())
        }
    })
}

/// Reads an object as [`object`] does, in which null counts as absent: the OpenAI convention writes null for "unset".
pub(crate) fn object_of_set<'a>(
    walk: &mut Walker<'a>,
    known: &[&'static str],
    mut member: impl FnMut(&mut Walker<'a>, &'static str) -> Result<(), Reject>,
) -> Result<(), Reject> {
    object(walk, known, |walk, key| match walk.null()? {
        true => Ok(()),
        false => member(walk, key),
    })
}

/// An object; `member` is called with each member, and the key of `known` that it has.
pub(crate) fn any_object<'a>(
    walk: &mut Walker<'a>,
    known: &[&'static str],
    mut member: impl FnMut(&mut Walker<'a>, Cow<'a, str>, Option<&'static str>) -> Result<(), Reject>,
) -> Result<(), Reject> {
    expect(walk, Type::Object, "an object")?;
    let mut seen = 0_u64;
    walk.object(|walk, key| {
        let at = known.iter().position(|known| *known == key);
        if let Some(at) = at {
            if seen & (1 << at) != 0 {
                return Err(twice().within(&key));
            }
            seen |= 1 << at;
        }
        let name = at.and_then(|at| known.get(at)).copied();
        member(walk, key, name)
    })
}

/// An array; `item` is called with each item.
pub(crate) fn array<'a>(
    walk: &mut Walker<'a>,
    mut item: impl FnMut(&mut Walker<'a>, usize) -> Result<(), Reject>,
) -> Result<usize, Reject> {
    expect(walk, Type::Array, "an array")?;
    let mut count = 0;
    walk.array(|walk, index| {
        count += 1;
        item(walk, index).map_err(|reject| reject.within_item(index))
    })?;
    Ok(count)
}

/// A member that came twice: two parsers might read different ones.
pub(crate) fn twice() -> Reject {
    Reject::rule("came twice in the same object; accepted is once")
        .with_code(FaultCode::DuplicateKey)
}

/// A member that has to be there.
///
/// Cost: `accepted` is written only if it is missing.
pub(crate) fn required<T>(
    value: Option<T>,
    key: &str,
    accepted: impl fmt::Display,
) -> Result<T, Reject> {
    value.ok_or_else(|| Reject::rule(format!("is missing; accepted is {accepted}")).within(key))
}

pub(crate) fn expect(walk: &mut Walker<'_>, wanted: Type, accepted: &str) -> Result<(), Reject> {
    if walk.peek()? == wanted {
        Ok(())
    } else {
        Err(other(walk, accepted))
    }
}
