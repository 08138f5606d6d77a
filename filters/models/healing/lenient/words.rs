//! What stands without quotation marks in a value that is nearly JSON: numbers, literals, keys, texts.

use std::borrow::Cow;

use super::Reader;
use crate::json::Walker;

/// What ends a word.
const ENDS: &[u8] = b",]}\n\r;:\"";
/// Literals that a text may end in, with what they stand for.
const CUT_LITERALS: [(&str, &str); 6] = [
    ("true", "true"),
    ("false", "false"),
    ("null", "null"),
    ("True", "true"),
    ("False", "false"),
    ("None", "null"),
];

impl Reader<'_> {
    pub(super) fn bare_key(&mut self) -> Option<String> {
        let rest = self.rest();
        let is_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.' | '@');
        let length = rest.find(|c| !is_key(c)).unwrap_or(rest.len());
        let key = rest.get(..length).filter(|key| !key.is_empty())?;
        self.is_fixed = true;
        self.at += length;
        Some(key.to_owned())
    }

    /// Reads a number, a literal or a text up to the next mark of the structure.
    pub(super) fn bare_value(&mut self) -> Option<()> {
        let rest = self.rest();
        let end = rest.bytes().position(|byte| ENDS.contains(&byte));
        let end = end.unwrap_or(rest.len());
        let (raw, behind) = rest.split_at_checked(end)?;
        let raw = raw.split("//").next().unwrap_or(raw);
        let word = raw.trim();
        let value = literal(word).map(Cow::Borrowed).or_else(|| number(word));
        let is_broken = behind.starts_with(':') || behind.starts_with('"') && value.is_none();
        if word.is_empty() || is_broken {
            return None;
        }
        self.at += raw.len();
        let is_cut = self.rest().is_empty();
        let value = value.or_else(|| is_cut.then(|| cut_value(word)).flatten());
        self.is_fixed |= value.as_deref() != Some(word) && !is_cut;
        match value {
            Some(value) => self.out.extend_from_slice(value.as_bytes()),
            None => {
                self.lacks_comma |= is_row(word);
                self.write(word);
            }
        }
        Some(())
    }
}

/// Returns whether a text is several numbers or literals side by side.
fn is_row(text: &str) -> bool {
    let mut words = text.split_whitespace();
    text.contains(char::is_whitespace)
        && words.all(|word| literal(word).is_some() || number(word).is_some())
}

/// Returns the JSON of a word of JSON, Python or JavaScript.
pub(super) fn literal(word: &str) -> Option<&'static str> {
    match word {
        "true" | "True" | "TRUE" => Some("true"),
        "false" | "False" | "FALSE" => Some("false"),
        "null" | "None" | "NULL" | "Null" | "nil" | "undefined" | "NaN" | "Infinity"
        | "-Infinity" => Some("null"),
        _ => None,
    }
}

/// Returns the value whose beginning a text ends with.
pub(super) fn cut_value(word: &str) -> Option<Cow<'_, str>> {
    if word == "-" {
        return Some("null".into());
    }
    let mut literals = CUT_LITERALS.iter();
    let known = literals.find(|(literal, _)| literal.starts_with(word));
    known.map(|(_, value)| Cow::Borrowed(*value))
}

/// Returns a number as JSON wants it; `None`: it is not one.
fn number(word: &str) -> Option<Cow<'_, str>> {
    if Walker::over(word)
        .number()
        .is_ok_and(|number| number.len() == word.len())
    {
        return Some(word.into());
    }
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    let digits = digits.replace('_', "");
    if let Some(digits) = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        let value = u64::from_str_radix(digits, 16).ok()?;
        return Some(format!("{sign}{value}").into());
    }
    let (mantissa, power) = match digits.split_once(['e', 'E']) {
        Some((mantissa, power)) => (mantissa, Some(power)),
        None => (&*digits, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let mut out = format!("{sign}{whole}");
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    // A power that was cut off is none.
    let power = power.filter(|power| !power.trim_start_matches(['+', '-']).is_empty());
    if let Some(power) = power {
        if !is_digits(power.strip_prefix(['+', '-']).unwrap_or(power)) {
            return None;
        }
        out.push('e');
        out.push_str(power);
    }
    Some(out.into())
}
