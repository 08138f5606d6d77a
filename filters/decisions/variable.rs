//! Variables of flags: their types and values. Source: docs/facts/decision-engine.md D.

use serde_json::Value;

use super::encode;

/// A variable of a flag.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) id: Box<str>,
    pub(super) key: Box<str>,
    pub(super) kind: VariableKind,
    pub(super) default: Box<str>,
    pub(super) typed_default: TypedValue,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum VariableKind {
    Text,
    Boolean,
    Integer,
    Double,
    Json,
}

/// A value with its type.
#[derive(Clone, Debug)]
pub(super) struct TypedValue {
    pub(super) json: Box<str>,
    /// Whether the text is not a value of the type. Then `json` replaces the text.
    pub(super) is_bad: bool,
}

impl VariableKind {
    pub(super) fn parse(kind: &str, sub_type: &str) -> Self {
        match (kind, sub_type) {
            ("json", _) | ("string", "json") => Self::Json,
            ("boolean", _) => Self::Boolean,
            ("integer", _) => Self::Integer,
            ("double", _) => Self::Double,
            _ => Self::Text,
        }
    }

    /// Returns the name in the overview.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Json => "json",
        }
    }

    /// Reads a value as written.
    pub(super) fn read(self, text: &str) -> TypedValue {
        let good = |json: String| TypedValue {
            json: json.into(),
            is_bad: false,
        };
        let bad = |json: &str| TypedValue {
            json: json.into(),
            is_bad: true,
        };
        match self {
            Self::Text => good(encode::text(text)),
            Self::Boolean => match text {
                "1" | "t" | "T" | "TRUE" | "true" | "True" => good("true".to_owned()),
                "0" | "f" | "F" | "FALSE" | "false" | "False" => good("false".to_owned()),
                _ => bad("false"),
            },
            Self::Integer => integer(text).map_or_else(bad, good),
            Self::Double => match double(text) {
                Some(number) => good(encode::number(number)),
                None => bad("0"),
            },
            Self::Json => match serde_json::from_str::<Value>(text) {
                Ok(value @ (Value::Object(_) | Value::Null)) => good(encode::value(&value)),
                _ => bad("{}"),
            },
        }
    }
}

/// Reads a 64-bit integer. A number out of range becomes the nearest one in range.
fn integer(text: &str) -> Result<String, &'static str> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err("0");
    }
    match text.parse::<i64>() {
        Ok(number) => Ok(number.to_string()),
        Err(_) if text.starts_with('-') => Err("-9223372036854775808"),
        Err(_) => Err("9223372036854775807"),
    }
}

/// Reads a finite float. Words such as `inf` and `nan` do not count.
fn double(text: &str) -> Option<f64> {
    let is_plain = text
        .bytes()
        .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let number: f64 = text.parse().ok().filter(|_| is_plain)?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_is_told_and_stands_for_nothing() {
        for (kind, text, json, is_bad) in [
            (VariableKind::Boolean, "True", "true", false),
            (VariableKind::Boolean, "yes", "false", true),
            (VariableKind::Integer, "-7", "-7", false),
            (VariableKind::Integer, "1.5", "0", true),
            (
                VariableKind::Integer,
                "99999999999999999999",
                "9223372036854775807",
                true,
            ),
            (VariableKind::Double, "1e3", "1000", false),
            (VariableKind::Double, "1.50", "1.5", false),
            (VariableKind::Double, "NaN", "0", true),
            (VariableKind::Double, "1e400", "0", true),
            (
                VariableKind::Json,
                r#"{"b":1.0,"a":[2]}"#,
                r#"{"a":[2],"b":1}"#,
                false,
            ),
            (VariableKind::Json, "[1]", "{}", true),
            (VariableKind::Json, "{", "{}", true),
            (VariableKind::Json, "null", "null", false),
            (VariableKind::Text, "a\"b", r#""a\"b""#, false),
        ] {
            let typed = kind.read(text);
            assert_eq!(
                (&*typed.json, typed.is_bad),
                (json, is_bad),
                "{kind:?} {text}"
            );
        }
    }
}
