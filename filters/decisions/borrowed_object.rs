//! The members of a JSON object as a caller sent them. Names and texts without escapes are borrowed from the body.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Up to this many members are searched one by one, more of them by a hash.
const MAX_SCANNED_MEMBERS: usize = 16;

/// Members in the order received. If a name repeats, its last value counts, at the position of the first.
///
/// Cost: reading a few allocates once, and finding one of them hashes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BorrowedObject<'b> {
    all: Vec<(Cow<'b, str>, BorrowedValue<'b>)>,
    /// The index of each name, once there are more than a few.
    #[expect(
        clippy::box_collection,
        reason = "most have none, and values are moved"
    )]
    indices: Option<Box<HashMap<Cow<'b, str>, usize>>>,
}

/// The value of a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BorrowedValue<'b> {
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    Number(Number),
    Text(Cow<'b, str>),
    List(Vec<Value>),
    Object(BorrowedObject<'b>),
}

impl<'b> BorrowedObject<'b> {
    /// Returns the value of a name.
    pub fn get(&self, name: &str) -> Option<&BorrowedValue<'b>> {
        let at = self.find_index(name)?;
        self.all.get(at).map(|(_, value)| value)
    }

    /// Removes and returns the value of a name. The others keep their order. Cost: visits every member.
    pub fn remove(&mut self, name: &str) -> Option<BorrowedValue<'b>> {
        let at = self.find_index(name)?;
        let (_, value) = self.all.remove(at);
        self.indices = None;
        self.index_names();
        Some(value)
    }

    /// Returns names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BorrowedValue<'b>)> + Clone {
        self.all.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns the members as pairs.
    pub(super) fn into_pairs(self) -> Vec<(Cow<'b, str>, BorrowedValue<'b>)> {
        self.all
    }

    /// Returns the members as an owned map.
    pub fn into_map(self) -> Map<String, Value> {
        let owned =
            |(name, value): (Cow<'_, str>, BorrowedValue<'_>)| (name.into_owned(), value.into());
        self.all.into_iter().map(owned).collect()
    }

    fn find_index(&self, name: &str) -> Option<usize> {
        match &self.indices {
            Some(indices) => indices.get(name).copied(),
            None => self.all.iter().position(|(one, _)| *one == name),
        }
    }

    fn insert(&mut self, name: Cow<'b, str>, value: BorrowedValue<'b>) {
        let known = self.find_index(&name).and_then(|at| self.all.get_mut(at));
        if let Some((_, before)) = known {
            *before = value;
            return;
        }
        if let Some(indices) = &mut self.indices {
            indices.insert(name.clone(), self.all.len());
        }
        self.all.push((name, value));
        if self.all.len() > MAX_SCANNED_MEMBERS {
            self.index_names();
        }
    }

    /// Indexes the names if there are more than a few.
    fn index_names(&mut self) {
        if self.indices.is_none() && self.all.len() > MAX_SCANNED_MEMBERS {
            let names = self.all.iter().enumerate();
            let indices = names.map(|(at, (name, _))| (name.clone(), at)).collect();
            self.indices = Some(Box::new(indices));
        }
    }
}

impl BorrowedValue<'_> {
    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the value of a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    /// Returns whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl From<BorrowedValue<'_>> for Value {
    fn from(given: BorrowedValue<'_>) -> Self {
        match given {
            BorrowedValue::Null => Self::Null,
            BorrowedValue::Bool(value) => Self::Bool(value),
            BorrowedValue::Number(number) => Self::Number(number),
            BorrowedValue::Text(text) => Self::String(text.into_owned()),
            BorrowedValue::List(items) => Self::Array(items),
            BorrowedValue::Object(members) => Self::Object(members.into_map()),
        }
    }
}

impl From<Value> for BorrowedValue<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text.into()),
            Value::Array(items) => Self::List(items),
            Value::Object(members) => Self::Object(members.into()),
        }
    }
}

impl From<Map<String, Value>> for BorrowedObject<'_> {
    fn from(map: Map<String, Value>) -> Self {
        let mut members = Self::default();
        for (name, value) in map {
            members.insert(name.into(), value.into());
        }
        members
    }
}

impl<'de> Deserialize<'de> for BorrowedObject<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor)
    }
}

impl<'de> Deserialize<'de> for BorrowedValue<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ValueVisitor)
    }
}

/// A name, borrowed if it has no escape.
pub(super) struct Name<'b>(pub(super) Cow<'b, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(NameVisitor).map(Self)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(text.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.to_owned().into())
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = BorrowedObject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut members = BorrowedObject::default();
        while let Some((Name(name), value)) = from.next_entry()? {
            members.insert(name, value);
        }
        Ok(members)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = BorrowedValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Bool(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(number).map_or(BorrowedValue::Null, BorrowedValue::Number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Text(text.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Text(text.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, from: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(from)).map(BorrowedValue::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<Self::Value, A::Error> {
        ObjectVisitor.visit_map(from).map(BorrowedValue::Object)
    }
}

#[cfg(test)]
#[path = "borrowed_object_tests.rs"]
mod tests;
