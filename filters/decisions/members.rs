//! Members of a JSON object as a caller sent them: names and texts are borrowed from the body where they can be.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Up to how many members are looked at one by one; more of them are found by a hash.
const FEW: usize = 16;

/// Members in the order they came; of one name the last value counts, in the place of the first.
///
/// Cost: reading a few allocates once, and looking one up hashes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BorrowedObject<'b> {
    all: Vec<(Cow<'b, str>, BorrowedValue<'b>)>,
    /// Where each name stands, once there are more than a few.
    #[expect(
        clippy::box_collection,
        reason = "most have none, and values are moved"
    )]
    places: Option<Box<HashMap<Cow<'b, str>, usize>>>,
}

/// The value of a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BorrowedValue<'b> {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Truth(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(Cow<'b, str>),
    /// A list.
    List(Vec<Value>),
    /// An object.
    Object(BorrowedObject<'b>),
}

impl<'b> BorrowedObject<'b> {
    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&BorrowedValue<'b>> {
        let at = self.place(name)?;
        self.all.get(at).map(|(_, value)| value)
    }

    /// Takes the value of this name out; the others keep their order. Cost: looks at every member.
    pub fn remove(&mut self, name: &str) -> Option<BorrowedValue<'b>> {
        let at = self.place(name)?;
        let (_, value) = self.all.remove(at);
        self.places = None;
        self.find_by_hash();
        Some(value)
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BorrowedValue<'b>)> + Clone {
        self.all.iter().map(|(name, value)| (&**name, value))
    }

    /// The same as pairs.
    pub(super) fn into_pairs(self) -> Vec<(Cow<'b, str>, BorrowedValue<'b>)> {
        self.all
    }

    /// The same as a map of their own.
    pub fn into_map(self) -> Map<String, Value> {
        let owned =
            |(name, value): (Cow<'_, str>, BorrowedValue<'_>)| (name.into_owned(), value.into());
        self.all.into_iter().map(owned).collect()
    }

    fn place(&self, name: &str) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(name).copied(),
            None => self.all.iter().position(|(one, _)| *one == name),
        }
    }

    fn insert(&mut self, name: Cow<'b, str>, value: BorrowedValue<'b>) {
        let known = self.place(&name).and_then(|at| self.all.get_mut(at));
        if let Some((_, before)) = known {
            *before = value;
            return;
        }
        if let Some(places) = &mut self.places {
            places.insert(name.clone(), self.all.len());
        }
        self.all.push((name, value));
        if self.all.len() > FEW {
            self.find_by_hash();
        }
    }

    /// Remembers where the names stand, as soon as there are more than a few.
    fn find_by_hash(&mut self) {
        if self.places.is_none() && self.all.len() > FEW {
            let names = self.all.iter().enumerate();
            let places = names.map(|(at, (name, _))| (name.clone(), at)).collect();
            self.places = Some(Box::new(places));
        }
    }
}

impl BorrowedValue<'_> {
    /// The text, where it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The truth, where it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Truth(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The number, where it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    /// Whether nothing was given.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl From<BorrowedValue<'_>> for Value {
    fn from(given: BorrowedValue<'_>) -> Self {
        match given {
            BorrowedValue::Null => Self::Null,
            BorrowedValue::Truth(truth) => Self::Bool(truth),
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
            Value::Bool(truth) => Self::Truth(truth),
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
        from.deserialize_map(OfMembers)
    }
}

impl<'de> Deserialize<'de> for BorrowedValue<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OfGiven)
    }
}

/// A name, borrowed where it has no escape.
pub(super) struct Name<'b>(pub(super) Cow<'b, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(OfName).map(Self)
    }
}

struct OfName;

impl<'de> Visitor<'de> for OfName {
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

struct OfMembers;

impl<'de> Visitor<'de> for OfMembers {
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

struct OfGiven;

impl<'de> Visitor<'de> for OfGiven {
    type Value = BorrowedValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Null)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Self::Value, E> {
        Ok(BorrowedValue::Truth(truth))
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
        OfMembers.visit_map(from).map(BorrowedValue::Object)
    }
}

#[cfg(test)]
#[path = "members_tests.rs"]
mod tests;
