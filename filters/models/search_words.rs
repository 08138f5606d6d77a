//! How the fronts of chats say a search of the web that the gateway runs.

use std::fmt::Debug;

use super::request::{ModelRequest, Source};
use super::search_loop::{SearchFunction, SearchOutcome};
use crate::json::Str;

/// A call of the function.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SearchCall {
    pub id: Box<str>,
    /// The arguments, which should be a JSON object.
    pub arguments: Box<str>,
}

/// What became of a call.
#[derive(Clone, Debug)]
pub struct SearchResult {
    pub call: SearchCall,
    pub found: SearchOutcome,
}

/// How a front's dialect says a search that the gateway runs.
pub trait SearchWords: Debug + Send + Sync {
    /// Returns the body of a checked request with a function in place of its search, and the function; `None`: the function
    /// cannot do what is asked.
    fn begin(&self, request: &ModelRequest) -> Option<(Vec<u8>, SearchFunction)>;

    /// Returns the calls of this function in a whole answer, in their order.
    fn calls(&self, answer: &[u8], function: &str) -> Vec<SearchCall>;

    /// Returns a body behind which the whole answer and the results of its calls stand. Nothing demands a call any more.
    fn proceed(&self, source: &Source, answer: &[u8], results: &[SearchResult]) -> Option<Vec<u8>>;

    /// Returns the body of a checked request without its search, where the search is an offer that the model may do without; `None`:
    /// what is asked for is a search.
    fn forgo(&self, _request: &ModelRequest) -> Option<Vec<u8>> {
        None
    }

    /// Returns the text between two turns, where the dialect has one text for all of them.
    fn separator(&self) -> &'static str {
        ""
    }
}

/// Returns the most searches that a request allows; `None`: a function cannot do what it asks.
pub(super) fn allowed_searches(request: &ModelRequest) -> Option<Option<u64>> {
    let needs = &request.needs;
    let search = needs.web_search?;
    let can_be = needs.odd_max_uses.is_none() && needs.choices <= 1;
    can_be.then_some(search.max_uses)
}

/// Returns a body with other values of some members; `None` leaves a member out. A member that it has not is added.
pub(super) fn replace_members(source: &Source, values: &[(&str, Option<String>)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(source.body.len() + 1024);
    out.push(b'{');
    let separate = |out: &mut Vec<u8>| {
        if out.len() > 1 {
            out.push(b',');
        }
    };
    for member in &source.members {
        let replaced = values.iter().any(|(key, _)| **key == *member.key);
        if !replaced {
            separate(&mut out);
            let whole = source.body.get(member.whole.clone());
            out.extend_from_slice(whole.unwrap_or_default());
        }
    }
    for (key, value) in values {
        if let Some(value) = value {
            separate(&mut out);
            Str::Plain(key).write(&mut out);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
    }
    out.push(b'}');
    out
}

/// Returns a JSON array with more items behind its own.
pub(super) fn extend_array(array: &str, items: &[String]) -> Option<String> {
    let inside = array.trim().strip_prefix('[')?.strip_suffix(']')?;
    let is_empty = inside.trim().is_empty();
    let added = items.join(",");
    let separator = if is_empty || items.is_empty() {
        ""
    } else {
        ","
    };
    Some(["[", inside, separator, &added, "]"].concat())
}
