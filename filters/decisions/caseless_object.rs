//! The members of a JSON object whose names match in any case. Source: docs/facts/decision-engine.md E.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::borrowed_object::{BorrowedObject, BorrowedValue, Name};

/// Names and values in the order received. Among names that differ only in case, the last value that is not null
/// counts.
///
/// Shape: contains every member of the JSON, including those with repeated names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaselessObject<'b>(Vec<(Cow<'b, str>, BorrowedValue<'b>)>);

impl<'b> CaselessObject<'b> {
    /// Removes and returns the value of a name.
    pub fn take(&mut self, name: &str) -> Option<BorrowedValue<'b>> {
        let mut all = self.0.iter_mut().rev();
        all.find(|(key, value)| is_named(key, name) && !value.is_null())
            .map(|(_, value)| std::mem::take(value))
    }

    /// Returns all values of a name except null, in order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &BorrowedValue<'b>> {
        let all = self.0.iter();
        all.filter(move |(key, value)| is_named(key, name) && !value.is_null())
            .map(|(_, value)| value)
    }
}

/// Returns whether a key matches a name. The exact comparison comes first, because it is faster and most keys match.
fn is_named(key: &str, name: &str) -> bool {
    key.len() == name.len() && (key == name || key.eq_ignore_ascii_case(name))
}

impl<'b> From<BorrowedObject<'b>> for CaselessObject<'b> {
    fn from(members: BorrowedObject<'b>) -> Self {
        Self(members.into_pairs())
    }
}

impl<'de> Deserialize<'de> for CaselessObject<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = CaselessObject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some((Name(name), value)) = from.next_entry()? {
            pairs.push((name, value));
        }
        Ok(CaselessObject(pairs))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn of_one_name_in_any_case_the_last_value_counts_that_is_not_null() {
        for (text, expected) in [
            (r#"{"userId":"a","USERID":"b","userId":"c"}"#, Some("c")),
            (r#"{"userId":"a","userId":"c","USERID":"b"}"#, Some("b")),
            (r#"{"userId":"a","userId":null}"#, Some("a")),
            (r#"{"userId":"a","USERID":null,"other":1}"#, Some("a")),
            (r#"{"userId":null}"#, None),
            (r#"{"user_id":"a"}"#, None),
        ] {
            let mut pairs: CaselessObject<'_> = serde_json::from_str(text).unwrap();
            let found = pairs.take("userId");
            assert_eq!(
                found.as_ref().and_then(BorrowedValue::as_str),
                expected,
                "{text}"
            );
        }
    }
}
