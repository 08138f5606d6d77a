//! Responses that are kept for their clients: how they are named, how a request goes on with one, which items it answers, and how far
//! one has come that is made in the background. Source: docs/stored-responses.md.

pub mod expand;
pub mod items;
pub mod progress;

#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::dialects::responses::own_id;

const PREFIX: &str = "resp_wg_";
/// Hex digits of an id.
const ID_CHARS: usize = 32;

/// What a request promises of its response.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ResponsePromise {
    /// The id under which it is kept: 32 hex digits; `None`: it is not kept.
    pub id: Option<Box<str>>,
    /// The public id of the response that it goes on with.
    pub previous: Option<Box<str>>,
    pub is_background: bool,
    /// The items of the request with those before them: a JSON array, or a text of the user's.
    pub input: Bytes,
}

/// Returns the id of a response as clients see it.
pub fn public_id(id: &str) -> String {
    format!("{PREFIX}{id}")
}

/// Returns the id of a response without its prefix; `None`: no kept response can have it.
pub fn stored_id(public: &str) -> Option<&str> {
    public.strip_prefix(PREFIX).filter(|id| is_id(id))
}

/// Returns the id of the response that has made an item with this id, or that answers it; `None`: the id does not tell.
pub fn response_of_item(item_id: &str) -> Option<&str> {
    let (_, rest) = item_id.split_once("_wg_")?;
    let (id, _) = rest.split_once('_')?;
    Some(id).filter(|id| is_id(id))
}

/// Returns the id of an item that a response answers, where it came without one.
pub fn input_item_id(response: &str, index: usize) -> String {
    own_id("item", response, index)
}

fn is_id(id: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    id.len() == ID_CHARS && id.bytes().all(is_hex)
}
