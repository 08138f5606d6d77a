//! State inside the JSON of chat completions: sealed in what a client gets, opened in what a provider of the convention gets
//! back.
//!
//! The strings of an object that hold state are sealed each. An object that has none gets a member [`ORIGIN`], a seal of
//! nothing, because its provider alone takes it back all the same.

use std::borrow::Cow;

use super::Dialect;
use super::chat::STATE_KEYS;
use super::state::{LeftOutState, Maker};
use crate::json::{Error, Object, Type, Walker, quoted};

/// The member that says whose an object is.
pub const ORIGIN: &str = "origin";

/// The members of an object that hold state.
const STRINGS: [&str; 4] = [
    "data",
    "signature",
    "encrypted_content",
    "thought_signature",
];

/// Returns whether a request may hold state.
pub fn may_be_in(body: &[u8]) -> bool {
    let has = |name: &str| memchr::memmem::find(body, name.as_bytes()).is_some();
    STATE_KEYS.into_iter().any(has)
}

/// Seals the objects of an array, of which `items` is the inside. Items that are not objects are left out.
pub fn seal_items(items: &str, maker: Maker<'_>) -> String {
    each_item(&format!("[{items}]"), |walk, out| seal(walk, maker, out))
}

/// Opens the objects of an array. Those that the maker has not made are left out, and counted. Returns the inside of an
/// array.
pub fn open_items(items: &str, maker: Maker<'_>, left_out: LeftOutState<'_>) -> String {
    each_item(items, |walk, out| open(walk, maker, left_out, out))
}

/// Seals the objects of an object, which has one for each vendor; `None`: it has none.
pub fn seal_vendors(vendors: &str, maker: Maker<'_>) -> Option<String> {
    each_vendor(vendors, |walk, out| seal(walk, maker, out))
}

/// Opens them. Those that the maker has not made are left out, and counted; `None`: it has made none.
pub fn open_vendors(vendors: &str, maker: Maker<'_>, left_out: LeftOutState<'_>) -> Option<String> {
    each_vendor(vendors, |walk, out| open(walk, maker, left_out, out))
}

/// Writes the object that comes next with the seal of its maker and the members that `more` adds. Its state stays as it is.
///
/// Errors: it is not an object.
pub fn seal_whole(
    walk: &mut Walker<'_>,
    (maker, dialect): (Maker<'_>, Dialect),
    more: impl FnOnce(&mut Object<'_>),
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut object = Object::open(out);
    walk.object(|walk, key| {
        let value = walk.skip()?;
        if key != ORIGIN {
            object.foreign(&key, value);
        }
        Ok::<(), Error>(())
    })?;
    object.text(ORIGIN, &maker.seal(dialect, ""));
    more(&mut object);
    object.close();
    Ok(())
}

/// Writes the object that comes next with its state sealed. An origin that it names itself is left out.
fn seal(walk: &mut Walker<'_>, maker: Maker<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut object = Object::open(out);
    let mut is_sealed = false;
    walk.object(|walk, key| {
        match walk.peek()? {
            Type::String if STRINGS.contains(&&*key) => {
                // A seal and its base64 need no escapes.
                let sealed = maker.seal(Dialect::Chat, &walk.text()?);
                object.foreign(&key, &format!("\"{sealed}\""));
                is_sealed = true;
            }
            _ => {
                let value = walk.skip()?;
                if key != ORIGIN {
                    object.foreign(&key, value);
                }
            }
        }
        Ok::<(), Error>(())
    })?;
    if !is_sealed {
        object.text(ORIGIN, &maker.seal(Dialect::Chat, ""));
    }
    object.close();
    Ok(())
}

/// Writes the object that comes next as its maker has said it; nothing, if that is another.
fn open(
    walk: &mut Walker<'_>,
    maker: Maker<'_>,
    left_out: LeftOutState<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let start = out.len();
    let mut object = Object::open(out);
    let (mut opened, mut refused) = (false, false);
    walk.object(|walk, key| {
        let is_state = key == ORIGIN || STRINGS.contains(&&*key);
        if !is_state || walk.peek()? != Type::String {
            let value = walk.skip()?;
            object.foreign(&key, value);
            return Ok(());
        }
        let sealed = walk.text()?;
        match maker.open(Dialect::Chat, &sealed) {
            Some(_) if key == ORIGIN => opened = true,
            Some(state) => {
                opened = true;
                object.foreign(&key, &quoted(&state));
            }
            None => refused = true,
        }
        Ok::<(), Error>(())
    })?;
    object.close();
    if refused || !opened {
        left_out.add();
        out.truncate(start);
    }
    Ok(())
}

/// Writes the objects of an array anew, with commas between those of which anything is left.
fn each_item(
    array: &str,
    write: impl Fn(&mut Walker<'_>, &mut Vec<u8>) -> Result<(), Error>,
) -> String {
    let mut out = Vec::with_capacity(array.len());
    let walked = Walker::over(array).array(|walk, _| {
        if walk.peek()? != Type::Object {
            return walk.skip().map(|_| ());
        }
        let start = out.len();
        if start > 0 {
            out.push(b',');
        }
        let inside = out.len();
        write(walk, &mut out)?;
        if out.len() == inside {
            out.truncate(start);
        }
        Ok(())
    });
    let items = walked.ok().and_then(|()| String::from_utf8(out).ok());
    items.unwrap_or_default()
}

/// Writes the objects of an object anew, likewise; `None`: nothing of them is left.
fn each_vendor(
    vendors: &str,
    write: impl Fn(&mut Walker<'_>, &mut Vec<u8>) -> Result<(), Error>,
) -> Option<String> {
    let mut out = Vec::with_capacity(vendors.len());
    let mut object = Object::open(&mut out);
    let mut is_empty = true;
    let walked = Walker::over(vendors).object(|walk, vendor: Cow<'_, str>| {
        if walk.peek()? != Type::Object {
            return walk.skip().map(|_| ());
        }
        let mut own = Vec::new();
        write(walk, &mut own)?;
        if !own.is_empty() {
            is_empty = false;
            object.foreign(&vendor, &String::from_utf8_lossy(&own));
        }
        Ok::<(), Error>(())
    });
    object.close();
    walked.ok().filter(|()| !is_empty)?;
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use std::cell::Cell;

    use serde_json::{Value, json};

    use super::*;
    use crate::models::dialects::state::States;

    const MAKER: Maker<'static> = Maker {
        states: States::NONE,
        family: "here",
        model: "m",
        own_key: None,
    };
    const OTHER: Maker<'static> = Maker {
        model: "n",
        ..MAKER
    };

    fn items(inside: &str) -> Vec<Value> {
        serde_json::from_str(&format!("[{inside}]")).unwrap()
    }

    #[test]
    fn items_are_sealed_one_by_one_and_opened_for_their_maker() {
        let said = r#"{"type": "t", "data": "QQ==", "id": null}, 5, {}, {"origin": "x", "signature": null, "a": [1, 2], "\n\"": 1}"#;
        let sealed = seal_items(said, MAKER);
        let read = items(&sealed);
        assert_eq!(read.len(), 3);
        assert_eq!(
            MAKER
                .open(Dialect::Chat, read[0]["data"].as_str().unwrap())
                .unwrap(),
            "QQ=="
        );
        assert!(read[0].get(ORIGIN).is_none());
        for origin in [&read[1][ORIGIN], &read[2][ORIGIN]] {
            assert_eq!(
                MAKER.open(Dialect::Chat, origin.as_str().unwrap()).unwrap(),
                ""
            );
        }
        let opened = open_items(&format!("[{sealed}]"), MAKER, LeftOutState::UNCOUNTED);
        assert_eq!(
            items(&opened),
            [
                json!({"type": "t", "data": "QQ==", "id": null}),
                json!({}),
                json!({"signature": null, "a": [1, 2], "\n\"": 1})
            ]
        );
        let left_out = Cell::new(0);
        let counted = LeftOutState::counted(&left_out);
        assert_eq!(open_items(&format!("[{sealed}]"), OTHER, counted), "");
        assert_eq!(left_out.get(), 3);
        assert_eq!(
            open_items(&format!("[{said}]"), MAKER, LeftOutState::UNCOUNTED),
            ""
        );
        assert_eq!(seal_items("", MAKER), "");
    }

    #[test]
    fn an_item_of_which_one_state_is_of_another_maker_is_left_out() {
        let mixed = json!([{"data": MAKER.seal(Dialect::Chat, "QQ=="), "signature": OTHER.seal(Dialect::Chat, "QQ==")}]);
        assert_eq!(
            open_items(&mixed.to_string(), MAKER, LeftOutState::UNCOUNTED),
            ""
        );
    }

    #[test]
    fn what_stands_beside_a_call_is_sealed_for_each_vendor() {
        let said = r#"{"google": {"thought_signature": "QQ=="}, "x": 1, "other": {"a": 1}}"#;
        let sealed = seal_vendors(said, MAKER).unwrap();
        let opened: Value =
            serde_json::from_str(&open_vendors(&sealed, MAKER, LeftOutState::UNCOUNTED).unwrap())
                .unwrap();
        assert_eq!(
            opened,
            json!({"google": {"thought_signature": "QQ=="}, "other": {"a": 1}})
        );
        assert_eq!(open_vendors(&sealed, OTHER, LeftOutState::UNCOUNTED), None);
        assert_eq!(seal_vendors(r#"{"x": 1}"#, MAKER), None);
    }
}
