//! Makes a body that says all by itself of one that goes on with a kept response: before its items stand those that this response
//! answers, and those of its output.

use std::ops::Range;

use super::items::{ItemIndex, StoredTurn, goes_on, visit, write_message};
use crate::fault::{Fault, FaultKind, quoted};
use crate::fault_code::FaultCode;
use crate::json::Error;
use crate::models::request::Source;
use crate::models::stateful::StatefulRequest;

/// Members that the body does not need any more.
const STATE_MEMBERS: [&str; 3] = ["store", "background", "previous_response_id"];

/// A body that says all by itself.
#[derive(Debug)]
pub struct Expanded {
    pub body: Vec<u8>,
    /// Where the value of `input` stands in it; empty: it has none.
    pub input: Range<usize>,
}

/// What a request goes on with.
#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    /// The responses that the request needs.
    pub turns: &'a [StoredTurn<'a>],
    /// Whether the first of them comes before the request. Items of the others are referred to.
    pub has_previous: bool,
    /// Where the items of all stand.
    pub index: &'a ItemIndex<'a>,
}

/// Returns the body of a request with its history.
///
/// Cost: one pass over the history, and a copy of both. Errors: 400 for a reference to an item that is not there, 413 for a body
/// beyond `max_bytes`; a fault of ours for a history that is no JSON.
pub fn expand(
    request: &StatefulRequest,
    history: History<'_>,
    max_bytes: usize,
) -> Result<Expanded, Fault> {
    let mut out = BoundedBody {
        body: Vec::with_capacity(request.source.body.len()),
        max_bytes,
    };
    let mut input = None;
    let mut separator: &[u8] = b"{";
    for member in &request.source.members {
        let key = &*member.key;
        if STATE_MEMBERS.contains(&key) {
            continue;
        }
        out.add(separator)?;
        separator = b",";
        if key != "input" {
            out.add(part(&request.source, member.whole.clone()))?;
            continue;
        }
        out.add(b"\"input\":")?;
        let start = out.body.len();
        write_input(request, Some(member.value.clone()), history, &mut out)?;
        input = Some(start..out.body.len());
    }
    if input.is_none() && history.has_previous {
        out.add(separator)?;
        separator = b",";
        out.add(b"\"input\":")?;
        let start = out.body.len();
        write_input(request, None, history, &mut out)?;
        input = Some(start..out.body.len());
    }
    if separator == b"{" {
        out.add(b"{")?;
    }
    out.add(b"}")?;
    Ok(Expanded {
        body: out.body,
        input: input.unwrap_or_default(),
    })
}

fn part(source: &Source, range: Range<usize>) -> &[u8] {
    source.body.get(range).unwrap_or_default()
}

/// Writes the history and the items of a request. Without either `input` stays as it came.
fn write_input(
    request: &StatefulRequest,
    value: Option<Range<usize>>,
    history: History<'_>,
    out: &mut BoundedBody,
) -> Result<(), Fault> {
    let value = value.unwrap_or_default();
    let own = part(&request.source, value.clone());
    if !history.has_previous && request.references.is_empty() {
        return out.add(own);
    }
    out.add(b"[")?;
    let mut is_first = true;
    if let Some(previous) = history.turns.first().filter(|_| history.has_previous) {
        for items in previous.parts() {
            visit(items, |_, item| -> Result<(), ExpandError> {
                if goes_on(item) {
                    out.item(item.as_bytes(), &mut is_first)?;
                }
                Ok(())
            })?;
        }
    }
    match own.first() {
        Some(b'"') => {
            let mut message = Vec::with_capacity(own.len() + 64);
            write_message(&mut message, std::str::from_utf8(own).unwrap_or_default());
            out.item(&message, &mut is_first)?;
        }
        Some(b'[') => write_items(request, value, history, (out, &mut is_first))?,
        _ => {}
    }
    out.add(b"]")
}

/// Writes the items of a request, with those that they refer to in their places.
fn write_items(
    request: &StatefulRequest,
    value: Range<usize>,
    history: History<'_>,
    (out, is_first): (&mut BoundedBody, &mut bool),
) -> Result<(), Fault> {
    let text = std::str::from_utf8(part(&request.source, value.clone())).unwrap_or_default();
    let mut references = request.references.iter().peekable();
    visit(text, |at, item| -> Result<(), ExpandError> {
        let Some(reference) = references.next_if(|reference| reference.index == at) else {
            return Ok(out.item(item.as_bytes(), is_first)?);
        };
        let found = history.index.find(&reference.id, history.turns);
        let found = found.ok_or_else(|| {
            let (id, param) = (quoted(&reference.id), format!("input[{at}].id"));
            let message = format!(
                "`{param}` is {id:?}, which is no item of a kept response of this key; accepted is the item itself"
            );
            Fault::invalid(param, message).with_code(FaultCode::ItemNotFound)
        })?;
        Ok(out.item(found.as_bytes(), is_first)?)
    })?;
    Ok(())
}

/// Why a body could not be made.
enum ExpandError {
    Json(Error),
    Fault(Fault),
}

impl From<Error> for ExpandError {
    fn from(error: Error) -> Self {
        Self::Json(error)
    }
}

impl From<Fault> for ExpandError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<ExpandError> for Fault {
    fn from(error: ExpandError) -> Self {
        match error {
            ExpandError::Fault(fault) => fault,
            ExpandError::Json(error) => {
                let message = "a kept response cannot be read";
                Self::new(FaultKind::Internal, message).with_detail(error.to_string())
            }
        }
    }
}

/// A body that grows up to a bound.
struct BoundedBody {
    body: Vec<u8>,
    max_bytes: usize,
}

impl BoundedBody {
    fn add(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if self.body.len() + bytes.len() > self.max_bytes {
            let most = self.max_bytes;
            let message = format!(
                "the request has more than {most} bytes with its history, which `limits.body_bytes.chat` is; accepted is a shorter conversation"
            );
            return Err(Fault::new(FaultKind::TooLarge, message).with_param("input"));
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn item(&mut self, item: &[u8], is_first: &mut bool) -> Result<(), Fault> {
        if !std::mem::take(is_first) {
            self.add(b",")?;
        }
        self.add(item)
    }
}
