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

/// The type of what stands for an item that it names.
const REFERENCE: &str = "item_reference";

/// Writes the message that a text of the user's is: a JSON string.
pub(super) fn write_message(out: &mut Vec<u8>, text: &str) {
    let mut message = Object::open(out);
    message.text("type", "message");
    message.text("role", "user");
    message.raw("content", text);
    message.close();
}

/// Returns whether an item of the history goes into the next request. A call that broke off has no result, and nobody reads its half;
/// what asked for a summary was answered; and what refers to an item, which a provider alone can have said, is no item.
pub(super) fn goes_on(item: &str) -> bool {
    let kind = find_text(item, "type").unwrap_or_default();
    match kind.ends_with("_call") {
        true => find_text(item, "status").is_none_or(|status| status != "incomplete"),
        false => kind != "compaction_trigger" && kind != REFERENCE,
    }
}

/// Where the items stand to which a request refers.
#[derive(Debug, Default)]
pub struct ItemIndex<'r> {
    places: HashMap<&'r str, Option<ItemPlace>>,
    turns: u32,
}

/// Where an item stands: in which response, in which part of it, and between which bytes.
#[derive(Clone, Copy, Debug)]
struct ItemPlace {
    turn: u32,
    part: u32,
    start: u32,
    end: u32,
}

impl<'r> ItemIndex<'r> {
    /// Returns the index of items with these ids, none of which is found yet.
    pub fn new(ids: impl IntoIterator<Item = &'r str>) -> Self {
        Self {
            places: ids.into_iter().map(|id| (id, None)).collect(),
            turns: 0,
        }
    }

    /// Looks for items in another response. One that is found stays where it is.
    ///
    /// Cost: one pass over the response. Errors: broken JSON.
    pub fn add(&mut self, turn: &StoredTurn<'_>) -> Result<(), Error> {
        let of_turn = self.turns;
        self.turns += 1;
        if self.places.is_empty() {
            return Ok(());
        }
        for (part, array) in (0..).zip(turn.parts()) {
            let mut walk = Walker::over(array);
            if walk.peek()? != Type::Array {
                continue;
            }
            walk.array(|walk, at| {
                walk.peek()?;
                let start = walk.at();
                let id = match skip_with_id(walk)? {
                    None if part == 0 => Some(input_item_id(turn.id, at).into()),
                    id => id,
                };
                let place = id.and_then(|id| self.places.get_mut(&*id));
                if let Some(place) = place.filter(|place| place.is_none()) {
                    *place = ItemPlace::new(of_turn, part, start..walk.at());
                }
                Ok::<(), Error>(())
            })?;
        }
        Ok(())
    }

    /// Returns whether an item is there.
    pub fn has(&self, id: &str) -> bool {
        matches!(self.places.get(id), Some(Some(_)))
    }

    /// Returns an item of the responses, which are those that were added; `None` also for one that is a reference itself.
    pub fn find<'a>(&self, id: &str, turns: &[StoredTurn<'a>]) -> Option<&'a str> {
        let place = (*self.places.get(id)?)?;
        let parts = turns.get(place.turn as usize)?.parts();
        let part = parts.get(place.part as usize)?;
        let item = part.get(place.start as usize..place.end as usize)?;
        (find_text(item, "type").as_deref() != Some(REFERENCE)).then_some(item)
    }
}

/// Skips an item. Returns its id.
fn skip_with_id<'a>(walk: &mut Walker<'a>) -> Result<Option<Cow<'a, str>>, Error> {
    let mut id = None;
    if walk.peek()? != Type::Object {
        walk.skip()?;
        return Ok(id);
    }
    walk.object(|walk, key| {
        match key == "id" && walk.peek()? == Type::String {
            true => id = Some(walk.text()?),
            false => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    })?;
    Ok(id)
}

impl ItemPlace {
    /// Returns `None` for a place beyond what is kept of any response.
    fn new(turn: u32, part: u32, bytes: Range<usize>) -> Option<Self> {
        Some(Self {
            turn,
            part,
            start: u32::try_from(bytes.start).ok()?,
            end: u32::try_from(bytes.end).ok()?,
        })
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
