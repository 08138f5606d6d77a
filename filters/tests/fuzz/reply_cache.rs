//! The key of a cached reply: one for bodies of one meaning, and for no others.

use std::fmt;

use filters::accounts::Mode;
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::reply_cache::key::{KeyScope, ReplyKey, ReplyKeys};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::choices::Choices;
use crate::run::run;
use crate::{damage, grammar};

/// The meaning of a JSON text, read by another parser: numbers are as they are written, and members keep their order.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Meaning {
    /// A number, a literal or a text.
    Plain(char, String),
    List(Vec<Meaning>),
    Members(Vec<(String, Meaning)>),
}

/// Members in their order, doubled ones too.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Reading)
    }
}

impl Meaning {
    /// Returns the meaning of a text; `None`: it is no JSON.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim_matches([' ', '\n', '\r', '\t']);
        Some(match text.chars().next()? {
            '{' => {
                let members: Members = serde_json::from_str(text).ok()?;
                let members = members.0.into_iter();
                let read = members.map(|(key, raw)| Some((key, Self::read(raw.get())?)));
                Self::Members(read.collect::<Option<_>>()?)
            }
            '[' => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(text).ok()?;
                let items = items.iter().map(|raw| Self::read(raw.get()));
                Self::List(items.collect::<Option<_>>()?)
            }
            '"' => Self::Plain('"', serde_json::from_str(text).ok()?),
            _ => {
                let raw: Box<RawValue> = serde_json::from_str(text).ok()?;
                Self::Plain(' ', raw.get().to_owned())
            }
        })
    }

    /// Sorts the members of objects; doubled ones keep their order.
    fn sorted(self) -> Self {
        match self {
            Self::List(items) => Self::List(items.into_iter().map(Self::sorted).collect()),
            Self::Members(members) => {
                let members = members.into_iter().map(|(key, it)| (key, it.sorted()));
                let mut members: Vec<_> = members.collect();
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                Self::Members(members)
            }
            plain => plain,
        }
    }

    /// Writes it with other white space, escapes and orders of members.
    fn write(&self, choices: &mut Choices<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Plain('"', text) => {
                out.extend(grammar::write(choices, &Value::from(text.as_str())));
            }
            Self::Plain(_, plain) => out.extend_from_slice(plain.as_bytes()),
            Self::List(items) => {
                out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    out.extend_from_slice(if at > 0 { b" ," } else { b"" });
                    item.write(choices, out);
                }
                out.push(b']');
            }
            Self::Members(members) => {
                let mut members: Vec<_> = members.iter().collect();
                for at in 1..members.len() {
                    if members[at - 1].0 != members[at].0 && choices.once_in(2) {
                        members.swap(at - 1, at);
                    }
                }
                out.push(b'{');
                for (at, (key, member)) in members.into_iter().enumerate() {
                    out.extend_from_slice(if at > 0 { b",\n" } else { b"" });
                    out.extend(grammar::write(choices, &Value::from(key.as_str())));
                    out.push(b':');
                    member.write(choices, out);
                }
                out.push(b'}');
            }
        }
    }
}

/// Returns the key of a request with this member; `None`: it is refused.
fn key(member: &str) -> Option<ReplyKey> {
    let body =
        format!(r#"{{"model":"m","messages":[{{"role":"user","content":"Hi"}}],"x":{member}}}"#);
    let request = ChatCompletions.parse(body.into()).ok()?;
    let scope = KeyScope {
        organization_id: "o",
        project_id: "p",
        mode: Mode::Platform,
        candidates: [1; 32],
    };
    ReplyKeys::new(&[9; 32]).unwrap().key(&scope, &request)
}

#[test]
fn requests_share_a_key_if_they_mean_the_same_and_only_then() {
    let compared = std::cell::Cell::new([0, 0]);
    run("response cache: keys", |choices| {
        let value = grammar::any(choices, 5);
        let one = grammar::write(choices, &value);
        let other = match choices.below(3) {
            0 => {
                let mut other = Vec::new();
                let meaning = Meaning::read(std::str::from_utf8(&one).unwrap()).unwrap();
                meaning.write(choices, &mut other);
                other
            }
            1 => {
                let changed = damage::tree(choices, value);
                grammar::write(choices, &changed)
            }
            _ => damage::bytes(choices, one.clone()),
        };
        let texts = [one, other].map(|text| String::from_utf8(text).unwrap_or_default());
        let [Some(one), Some(other)] = texts.each_ref().map(|text| Meaning::read(text)) else {
            return;
        };
        let [Some(first), Some(second)] = texts.each_ref().map(|text| key(text)) else {
            return;
        };
        let means_the_same = one.sorted() == other.sorted();
        assert_eq!(first == second, means_the_same, "{texts:?}");
        let mut counts = compared.get();
        counts[usize::from(means_the_same)] += 1;
        compared.set(counts);
    });
    let counts = compared.get();
    assert!(counts.iter().all(|count| *count > 40), "{counts:?}");
}
