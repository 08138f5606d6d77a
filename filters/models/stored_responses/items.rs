//! The items of a kept response: those that it answers, and those of its output.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use super::input_item_id;
use crate::json::members::{find, find_text, joined};
use crate::json::{Error, Object, Type, Walker, quoted};

/// A response that is kept, with the items that it answers.
#[derive(Clone, Copy, Debug)]
pub struct StoredTurn<'a> {
    /// The id of the response, without its prefix.
    pub id: &'a str,
    /// The items that it answers: a JSON array.
    pub input: &'a str,
    /// The response, as JSON.
    pub response: &'a str,
}

impl<'a> StoredTurn<'a> {
    /// Returns its items: those that it answers, and those of its output.
    pub fn parts(&self) -> [&'a str; 2] {
        [self.input, find(self.response, "output").unwrap_or("[]")]
    }
}

/// Calls `visit` with each item of an array, and its index. What is no array has none.
///
/// Errors: those of `visit`, and broken JSON.
pub fn visit<'a, E: From<Error>>(
    array: &'a str,
    mut visit: impl FnMut(usize, &'a str) -> Result<(), E>,
) -> Result<(), E> {
    let mut walk = Walker::over(array);
    if walk.peek()? != Type::Array {
        return Ok(());
    }
    walk.array(|walk, at| visit(at, walk.skip()?))
}

/// Returns the items of a request as an array: a text is a message of the user's.
pub fn to_array(input: &Bytes) -> Bytes {
    match input.first() {
        Some(b'[') => input.clone(),
        Some(b'"') => {
            let mut items = b"[".to_vec();
            write_message(&mut items, std::str::from_utf8(input).unwrap_or_default());
            items.push(b']');
            items.into()
        }
        _ => Bytes::from_static(b"[]"),
    }
}

/// Writes the message that a text of the user's is: a JSON string.
pub(super) fn write_message(out: &mut Vec<u8>, text: &str) {
    let mut message = Object::open(out);
    message.text("type", "message");
    message.text("role", "user");
    message.raw("content", text);
    message.close();
}

/// Returns whether an item of an output goes into the next request. A call that broke off has no result, and nobody reads its half.
pub(super) fn goes_on(item: &str) -> bool {
    let is_call = find_text(item, "type").is_some_and(|kind| kind.ends_with("_call"));
    !(is_call && find_text(item, "status").is_some_and(|status| status == "incomplete"))
}

/// Where items of kept responses stand, by their ids.
#[derive(Debug, Default)]
pub struct ItemIndex {
    places: HashMap<Box<str>, (usize, usize, Range<usize>)>,
    turns: usize,
}

impl ItemIndex {
    /// Adds the items of another response. Items of earlier ones keep their ids.
    ///
    /// Cost: one pass over them. Errors: broken JSON.
    pub fn add(&mut self, turn: &StoredTurn<'_>) -> Result<(), Error> {
        for (part, array) in turn.parts().into_iter().enumerate() {
            let mut walk = Walker::over(array);
            if walk.peek()? != Type::Array {
                continue;
            }
            walk.array(|walk, at| {
                let item = walk.skip()?;
                let place = walk.at() - item.len()..walk.at();
                let id = match find_text(item, "id") {
                    Some(id) => id.into(),
                    None if part == 0 => input_item_id(turn.id, at).into(),
                    None => return Ok(()),
                };
                self.places.entry(id).or_insert((self.turns, part, place));
                Ok::<(), Error>(())
            })?;
        }
        self.turns += 1;
        Ok(())
    }

    /// Returns whether an item is there.
    pub fn has(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }

    /// Returns an item of the responses, which are those that were added.
    pub fn find<'a>(&self, id: &str, turns: &[StoredTurn<'a>]) -> Option<&'a str> {
        let (turn, part, place) = self.places.get(id)?;
        let parts = turns.get(*turn)?.parts();
        parts.get(*part)?.get(place.clone())
    }
}

/// Which of the items that a response answers are listed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ItemPage {
    /// The id of the item behind which the list begins; `None`: with the first.
    pub after: Option<Box<str>>,
    /// The most items.
    pub limit: usize,
    /// Whether the first item comes first; else the last one.
    pub is_ascending: bool,
}

/// Writes a page of the items that a response answers; `None`: `after` is none of them.
///
/// Cost: one pass over the items. Errors: broken JSON.
pub fn write_page(turn: &StoredTurn<'_>, page: &ItemPage) -> Result<Option<Vec<u8>>, Error> {
    let mut items: Vec<&str> = Vec::new();
    visit(turn.input, |_, item| {
        items.push(item);
        Ok::<(), Error>(())
    })?;
    let id = |at: usize| -> Cow<'_, str> {
        let own = items.get(at).and_then(|item| find_text(item, "id"));
        own.unwrap_or_else(|| input_item_id(turn.id, at).into())
    };
    let mut order: Vec<usize> = (0..items.len()).collect();
    if !page.is_ascending {
        order.reverse();
    }
    let start = match &page.after {
        None => 0,
        Some(after) => match order.iter().position(|at| id(*at) == **after) {
            Some(position) => position + 1,
            None => return Ok(None),
        },
    };
    let rest = order.get(start..).unwrap_or_default();
    let shown = rest.get(..page.limit.min(rest.len())).unwrap_or_default();
    let mut out = Vec::new();
    let mut body = Object::open(&mut out);
    body.text("object", "list");
    body.array("data", shown, |at, out| {
        let item = items.get(*at).copied().unwrap_or_default();
        out.extend_from_slice(told(item, &id(*at)).as_bytes());
    });
    let first_and_last = [shown.first(), shown.last()];
    let [first, last] = first_and_last.map(|at| at.map(|at| id(*at)));
    body.text_or_null("first_id", first.as_deref());
    body.text_or_null("last_id", last.as_deref());
    body.bool("has_more", rest.len() > shown.len());
    body.close();
    Ok(Some(out))
}

/// Returns an item as lists tell it: with its id, and a message with its type and with its text as a part.
fn told(item: &str, id: &str) -> String {
    let mut told = item.to_owned();
    let mut add = |key: &str, value: &str| {
        told = joined(&told, &["\"", key, "\":", value, "}"].concat());
    };
    if find(item, "id").is_none() {
        add("id", &quoted(id));
    }
    if find(item, "type").is_none() {
        add("type", "\"message\"");
    }
    told
}
