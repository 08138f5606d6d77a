//! Reading what serde's own derive cannot borrow: text, and values of several types.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de};

use super::{ChatRequest, MessageContent, NamedFunction, Stop, Text, ToolChoice};
use crate::fault::{Fault, FaultKind};

/// Reads the typed tree of a checked body.
///
/// Cost: one parse; text without escapes is borrowed from the body. Errors: an internal fault, because the checks
/// have passed.
pub fn read_tree(body: &[u8]) -> Result<ChatRequest<'_>, Fault> {
    serde_json::from_slice(body).map_err(|error| {
        Fault::new(FaultKind::Internal, "the request could not be translated")
            .with_detail(format!("checked request does not parse: {error}"))
    })
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// A value that is a string or a sequence.
enum TextOr<'a, T> {
    Text(Text<'a>),
    Several(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<'de, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
            type Value = TextOr<'de, T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or an array")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(Text(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(Text(Cow::Owned(text.to_owned()))))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(TextOr::Several(items))
            }
        }
        deserializer.deserialize_any(Visitor(std::marker::PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MessageContent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match TextOr::deserialize(deserializer)? {
            TextOr::Text(text) => Self::Text(text),
            TextOr::Several(parts) => Self::Parts(parts),
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Stop<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match TextOr::deserialize(deserializer)? {
            TextOr::Text(text) => Self(vec![text]),
            TextOr::Several(texts) => Self(texts),
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ToolChoice<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = ToolChoice<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or an object")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(ToolChoice::Mode(Text(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(ToolChoice::Mode(Text(Cow::Owned(text.to_owned()))))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                #[derive(Deserialize)]
                struct Named<'a> {
                    #[serde(borrow, rename = "type")]
                    kind: Text<'a>,
                    #[serde(borrow, default)]
                    function: Option<NamedFunction<'a>>,
                }
                let choice = Named::deserialize(de::value::MapAccessDeserializer::new(map))?;
                match choice.function.filter(|_| &*choice.kind != "web_search") {
                    Some(function) => Ok(ToolChoice::Named(function)),
                    // The checks let no other object without a function pass.
                    None => Ok(ToolChoice::WebSearch),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
