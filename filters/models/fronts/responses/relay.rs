//! A response of a provider that speaks Responses itself: its events or its response pass as they came, so that what the vendor adds
//! reaches the client. Replaced are the model and, of hosts that are not the vendor's, the state, which is sealed. The end waits
//! for the cost.

use std::borrow::Cow;

use super::head::{COMPACTED, ResponseHead};
use super::output::Output;
use crate::json::members::{find, find_text, joined, replaced, with_member};
use crate::json::{Error, Object, Type, Walker, quoted};
use crate::models::dialects::Dialect;
use crate::models::dialects::state::{OwnedMaker, is_sealed};

/// Events behind which nothing has been said yet.
const SILENT: [&str; 5] = [
    "response.created",
    "response.in_progress",
    "response.queued",
    "response.output_item.added",
    "response.content_part.added",
];

/// What passes through.
#[derive(Debug)]
pub(super) struct Relay {
    maker: OwnedMaker,
    /// The model as the client calls it.
    model: Box<str>,
    /// The id that the provider has told.
    id: Box<str>,
    /// The last event with its name and its number, or the whole response, which gets the cost.
    end: Option<(Box<str>, String, Option<u64>)>,
    /// What the gateway says of the response, each with its JSON.
    promised: Vec<(&'static str, String)>,
}

/// What an event says of itself.
#[derive(Default)]
struct EventHead<'a> {
    kind: Option<Cow<'a, str>>,
    number: Option<u64>,
}

impl<'a> EventHead<'a> {
    fn read(data: &'a str) -> Result<Self, Error> {
        let mut told = Self::default();
        Walker::over(data).object(|walk, key| {
            match (&*key, walk.peek()?) {
                ("type", Type::String) => told.kind = Some(walk.text()?),
                ("sequence_number", Type::Number) => told.number = walk.skip()?.parse().ok(),
                _ => _ = walk.skip()?,
            }
            Ok::<(), Error>(())
        })?;
        Ok(told)
    }
}

impl Relay {
    pub(super) fn new(maker: &OwnedMaker, head: &ResponseHead) -> Self {
        Self {
            maker: maker.clone(),
            model: head.model().into(),
            id: Box::default(),
            end: None,
            promised: head.promised(),
        }
    }

    /// Returns the id that the provider has told.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Passes an event on, or keeps it. Returns whether it says something.
    pub(super) fn event(&mut self, name: &str, data: &str, output: &mut Output) -> bool {
        // Clients read the data of every event as JSON. Some hosts end with a word that is none.
        if !data.trim_start().starts_with('{') {
            return false;
        }
        let told = EventHead::read(data).unwrap_or_default();
        let (kind, number) = (told.kind.unwrap_or(Cow::Borrowed(name)), told.number);
        match &*kind {
            "response.completed" | "response.incomplete" => {
                let told = replaced(data, "response", |response| self.response(response));
                let told = told.unwrap_or_else(|_| data.to_owned());
                self.end = Some((kind.as_ref().into(), told, number));
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                let id = find(data, "response").and_then(|it| find_text(it, "id"));
                self.id = id.map_or_else(Box::default, |id| id.as_ref().into());
                let told = replaced(data, "response", |response| self.response(response));
                output.pass(&kind, told.as_deref().unwrap_or(data), number);
            }
            "response.output_item.added" | "response.output_item.done" => {
                let told = match self.is_bare() {
                    true => Cow::Borrowed(data),
                    false => replaced(data, "item", |item| self.item(item))
                        .map_or(Cow::Borrowed(data), Cow::Owned),
                };
                output.pass(&kind, &told, number);
                // A response that breaks off tells its items.
                if let Some(item) = find(&told, "item").filter(|_| kind.ends_with(".done")) {
                    output.keep(item);
                }
            }
            _ => output.pass(&kind, data, number),
        }
        !SILENT.contains(&&*kind)
    }

    /// Keeps a whole response.
    pub(super) fn whole(&mut self, data: &str) {
        let told = self.response(data).unwrap_or_else(|_| data.to_owned());
        self.end = Some((Box::default(), told, None));
    }

    /// Ends the response, with the members that `more` writes. Returns the response, or nothing where none are kept.
    pub(super) fn complete(
        &mut self,
        is_stream: bool,
        more: impl FnOnce(&mut Object<'_>),
        output: &mut Output,
    ) -> String {
        let (name, end, number) = self.end.take().unwrap_or_default();
        let mut added = Vec::new();
        let mut object = Object::open(&mut added);
        more(&mut object);
        object.close();
        let added = String::from_utf8(added).unwrap_or_default();
        let inside = added.strip_prefix('{').unwrap_or_default();
        if !is_stream {
            let told = joined(&end, inside);
            output.out.extend_from_slice(told.as_bytes());
            return told;
        }
        let told = replaced(&end, "response", |it| Ok(joined(it, inside)));
        let told = told.as_deref().unwrap_or(&end);
        output.pass(&name, told, number);
        if self.promised.is_empty() {
            return String::new();
        }
        let items = std::str::from_utf8(&output.items).unwrap_or_default();
        with_items(find(told, "response").unwrap_or("{}"), items)
    }

    /// Writes the history that the response is a summary of, with the members that `more` writes.
    pub(super) fn complete_compacted(
        &mut self,
        more: impl FnOnce(&mut Object<'_>),
        output: &mut Output,
    ) {
        let (_, end, _) = self.end.take().unwrap_or_default();
        let mut response = Object::open(&mut output.out);
        response.raw("id", find(&end, "id").unwrap_or("null"));
        response.text("object", COMPACTED);
        for key in ["created_at", "output", "usage"] {
            response.raw(key, find(&end, key).unwrap_or("null"));
        }
        more(&mut response);
        response.close();
    }

    fn is_bare(&self) -> bool {
        self.maker.speaks_bare(Dialect::Responses)
    }

    /// Returns a response as the client gets it.
    fn response(&self, response: &str) -> Result<String, Error> {
        let mut told = replaced(response, "model", |_| Ok(quoted(&self.model)))?;
        for (key, value) in &self.promised {
            told = with_member(&told, key, value)?;
        }
        if self.is_bare() {
            return Ok(told);
        }
        replaced(&told, "output", |items| {
            let mut out = String::with_capacity(items.len() + 128);
            out.push('[');
            let mut walk = Walker::over(items);
            if walk.peek()? != Type::Array {
                return Ok(items.to_owned());
            }
            walk.array(|walk, at| {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(&self.item(walk.skip()?)?);
                Ok::<(), Error>(())
            })?;
            out.push(']');
            Ok(out)
        })
    }

    fn item(&self, item: &str) -> Result<String, Error> {
        sealed_item(&self.maker, item)
    }
}

/// Returns an item of this maker as the client gets it: with its state sealed, unless the maker is the vendor.
pub(super) fn sealed_item(maker: &OwnedMaker, item: &str) -> Result<String, Error> {
    if !item.starts_with('{') || maker.speaks_bare(Dialect::Responses) {
        return Ok(item.to_owned());
    }
    replaced(item, "encrypted_content", |state| {
        let mut walk = Walker::over(state);
        if walk.peek()? != Type::String {
            return Ok(state.to_owned());
        }
        let state = walk.text()?;
        Ok(match is_sealed(&state) {
            true => quoted(&state),
            false => quoted(&maker.borrow().seal(Dialect::Responses, &state)),
        })
    })
}

/// Returns the response of the last event, with the items that came before. Some hosts do not repeat them there.
fn with_items(response: &str, items: &str) -> String {
    let is_bare = find(response, "output").is_none_or(|output| output == "[]");
    if !is_bare || items.is_empty() {
        return response.to_owned();
    }
    let output = ["[", items, "]"].concat();
    with_member(response, "output", &output).unwrap_or_else(|_| response.to_owned())
}
