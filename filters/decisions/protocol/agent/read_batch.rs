//! Reads a batch as the agent does: names match in any case, the last value that is not null counts, parameters and
//! headers are strings, and a body is an object. Source: docs/facts/decision-engine.md E.

use std::fmt;
use std::marker::PhantomData;
use std::mem::take;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::decisions::batch::BatchOperation;

/// Reads the first JSON value of a body. Returns `None` if the value is not a batch.
pub(super) fn read(body: &[u8]) -> Option<Vec<BatchOperation>> {
    let mut values = serde_json::Deserializer::from_slice(body).into_iter();
    let batch: Option<Read<AgentBatch>> = values.next()?.ok()?;
    let operations = batch.unwrap_or_default().0.0.into_iter();
    Some(operations.map(|one| one.unwrap_or_default().0).collect())
}

/// A type that is read member by member, with names in any case.
trait Folded: Default {
    /// Reads the value of the member with this lower-case name.
    fn read_member<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        from: &mut A,
    ) -> Result<(), A::Error>;
}

#[derive(Default)]
struct Read<T>(T);

#[derive(Default)]
struct AgentBatch(Vec<Option<Read<BatchOperation>>>);

impl Folded for AgentBatch {
    fn read_member<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        from: &mut A,
    ) -> Result<(), A::Error> {
        match name {
            "operations" => read_into(&mut self.0, from),
            _ => from.next_value::<IgnoredAny>().map(drop),
        }
    }
}

impl Folded for BatchOperation {
    fn read_member<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        from: &mut A,
    ) -> Result<(), A::Error> {
        match name {
            "method" => read_into(&mut self.method, from),
            "url" => read_into(&mut self.url, from),
            "operationid" => read_into(&mut self.operation_id, from),
            "body" => {
                let body: Option<Map<String, Value>> = from.next_value()?;
                self.body = body.map_or_else(|| take(&mut self.body), Value::Object);
                Ok(())
            }
            "parameters" => {
                let parameters: Option<Map<String, Value>> = from.next_value()?;
                self.parameters = parameters.or_else(|| self.parameters.take());
                Ok(())
            }
            "params" => read_texts(&mut self.params, from),
            "headers" => read_texts(&mut self.headers, from),
            _ => from.next_value::<IgnoredAny>().map(drop),
        }
    }
}

/// Reads a value into `target`, unless it is null.
fn read_into<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    target: &mut T,
    from: &mut A,
) -> Result<(), A::Error> {
    if let Some(value) = from.next_value()? {
        *target = value;
    }
    Ok(())
}

/// Reads strings by name into `target`, unless the value is null. A null string becomes an empty one.
fn read_texts<'de, A: MapAccess<'de>>(
    target: &mut Option<Map<String, Value>>,
    from: &mut A,
) -> Result<(), A::Error> {
    let Some(mut given) = from.next_value::<Option<Map<String, Value>>>()? else {
        return Ok(());
    };
    for value in given.values_mut() {
        match value {
            Value::Null => *value = Value::from(""),
            Value::String(_) => {}
            _ => return Err(A::Error::custom("what is no text")),
        }
    }
    *target = Some(given);
    Ok(())
}

impl<'de, T: Folded> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(FoldedVisitor(PhantomData)).map(Self)
    }
}

struct FoldedVisitor<T>(PhantomData<T>);

impl<'de, T: Folded> Visitor<'de> for FoldedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<T, A::Error> {
        let mut read = T::default();
        while let Some(mut name) = from.next_key::<String>()? {
            name.make_ascii_lowercase();
            read.read_member(&name, &mut from)?;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn names_are_of_whatever_case_and_null_is_nothing() {
        let body = br#"{"Operations":[null,{"METHOD":"POST","Url":"/v1/decide","operationid":"7",
            "body":null,"params":{"keys":null},"headers":null}]} behind it"#;
        let read = read(body).unwrap();
        assert_eq!((read.len(), &*read[0].url), (2, ""));
        let one = &read[1];
        assert_eq!(
            (&*one.method, &*one.url, &*one.operation_id),
            ("POST", "/v1/decide", "7")
        );
        assert_eq!(one.params.as_ref().unwrap()["keys"], "");
        assert!(one.body.is_null() && one.headers.is_none());
        assert!(super::read(b"null").unwrap().is_empty());
    }

    #[test]
    fn the_last_member_of_a_name_counts_that_is_not_null() {
        let one = |url: &str, more: &str| format!("[{{\"url\":\"{url}\"{more}}}]");
        let more = r#","body":{"at":1},"BODY":{"at":2},"body":{"at":3},"Body":null,
            "headers":{"h":"1"},"Headers":{"h":"2"},"headers":{"h":"0","h":"3"},"HEADERS":null,
            "parameters":{"p":1},"PARAMETERS":{"p":2},"parameters":{"p":3},
            "params":{"q":"1"},"PARAMS":{"q":"2"},"params":{"q":"3"},
            "method":"GET","METHOD":"PUT","method":"POST","Method":null"#;
        let body = format!(
            "{{\"operations\":{},\"OPERATIONS\":{},\"operations\":{},\"Operations\":null}}",
            one("/1", ""),
            one("/2", ""),
            one("/3", more)
        );
        let read = read(body.as_bytes()).unwrap();
        assert_eq!((read.len(), &*read[0].url), (1, "/3"));
        let one = &read[0];
        assert_eq!((&one.body["at"], &*one.method), (&3.into(), "POST"));
        let (headers, params) = (one.headers.as_ref().unwrap(), one.params.as_ref().unwrap());
        assert_eq!((&headers["h"], &params["q"]), (&"3".into(), &"3".into()));
        assert_eq!(one.parameters.as_ref().unwrap()["p"], 3);
    }
}
