//! Counts in reports of usage: a broken one does not end the reply, because the answer around it is good.

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The largest number that a float holds exactly.
const MAX_FLOAT: f64 = 9_007_199_254_740_992.0;

/// Reads a count; `None`: it is null, negative, a fraction, or no number at all. Some providers write `12.0`.
pub(super) fn lenient<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    from.deserialize_any(CountVisitor)
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Self::Value, E> {
        Ok(Some(count))
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(count).ok())
    }

    fn visit_f64<E: Error>(self, count: f64) -> Result<Self::Value, E> {
        let is_count = (0.0..=MAX_FLOAT).contains(&count) && count.fract() == 0.0;
        Ok(is_count.then_some(count as u64))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_is_no_count_is_none_and_ends_nothing() {
        for (json, expected) in [
            ("12", Some(12)),
            ("12.0", Some(12)),
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("-1", None),
            ("1.5", None),
            ("1e300", None),
            ("null", None),
            ("true", None),
            ("\"12\"", None),
            ("[1,[2]]", None),
            ("{\"a\":{}}", None),
        ] {
            let mut from = serde_json::Deserializer::from_str(json);
            assert_eq!(lenient(&mut from).unwrap(), expected, "{json}");
            from.end().unwrap();
        }
    }
}
