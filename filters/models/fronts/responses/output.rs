//! The items of an answer, as events and as the list that a whole response has. Each item begins and ends, its ids and numbers stay
//! the same, and every event has a number. Source: docs/facts/responses.md 2.

mod closing;
mod open_item;

use self::open_item::{OpenCall, OpenItem, json};
use super::tools::{CallForm, NamedTool, ToolNames};
use crate::json::{Object, Str, write_number};
use crate::models::chat::piece::Search;
use crate::models::dialects::Dialect;
use crate::models::dialects::responses::own_id;
use crate::models::fronts::sequencer::{BlockKind, BlockWriter};
use crate::models::search_loop::pages::Page;
use crate::sse::{join_lines, write_name};

/// The items, and the events that tell them.
#[derive(Debug)]
pub(super) struct Output {
    /// What goes out.
    pub(super) out: Vec<u8>,
    /// The inside of the array of items that have ended.
    pub(super) items: Vec<u8>,
    is_stream: bool,
    /// The number of the next event.
    number: u64,
    /// The response, as the ids of items name it.
    response: Box<str>,
    names: ToolNames,
    open: Option<OpenItem>,
    /// The phase of the next message: the inside of a JSON string.
    phase: Option<Box<str>>,
    /// The status of items that end, unless they end by themselves.
    pub(super) status: &'static str,
    /// Whether searches tell their sources.
    tells_sources: bool,
}

impl Output {
    /// Returns one without items. `response` is the response as the ids of items name it.
    pub(super) fn new(
        is_stream: bool,
        response: &str,
        names: ToolNames,
        tells_sources: bool,
    ) -> Self {
        Self {
            out: Vec::new(),
            items: Vec::new(),
            is_stream,
            number: 0,
            response: response.into(),
            names,
            open: None,
            phase: None,
            status: "completed",
            tells_sources,
        }
    }

    /// Writes an event, of which `data` writes the members behind its type and number. Where none go out, nothing.
    pub(super) fn event(&mut self, name: &str, data: impl FnOnce(&mut Object<'_>)) {
        if !self.is_stream {
            return;
        }
        self.begin_event(name);
        let start = self.out.len();
        let mut event = Object::open(&mut self.out);
        event.text("type", name);
        event.number("sequence_number", self.number);
        data(&mut event);
        event.close();
        join_lines(self.out.get_mut(start..).unwrap_or_default());
        self.out.extend_from_slice(b"\n\n");
        self.number += 1;
    }

    /// Returns the number of the next event.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Goes on with this number: the events from there on have not gone out.
    pub(super) fn go_back(&mut self, number: u64) {
        self.number = number;
    }

    /// Writes an event that a provider has said, under a number if it has one.
    pub(super) fn pass(&mut self, name: &str, data: &str, number: Option<u64>) {
        self.number = number.map_or(self.number, |number| number.saturating_add(1));
        self.begin_event(name);
        let start = self.out.len();
        self.out.extend_from_slice(data.as_bytes());
        join_lines(self.out.get_mut(start..).unwrap_or_default());
        self.out.extend_from_slice(b"\n\n");
    }

    /// Keeps an item that has ended, a JSON object, for the end of the response.
    pub(super) fn keep(&mut self, item: &str) {
        if !self.items.is_empty() {
            self.items.push(b',');
        }
        self.items.extend_from_slice(item.as_bytes());
    }

    fn begin_event(&mut self, name: &str) {
        write_name(name, &mut self.out);
        self.out.extend_from_slice(b"data: ");
    }

    /// Writes a piece of a text or of arguments, which is most of what is written. `place` is what stands behind the number of its
    /// item, `more` what stands behind the piece.
    fn delta(&mut self, name: &str, (place, more): (&str, &str), index: usize, piece: Str<'_>) {
        if !self.is_stream {
            return;
        }
        self.begin_event(name);
        let id = self.open.as_ref().map_or("", |open| &open.id);
        let out = &mut self.out;
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\",\"sequence_number\":");
        write_number(self.number, out);
        out.extend_from_slice(b",\"item_id\":\"");
        out.extend_from_slice(id.as_bytes());
        out.extend_from_slice(b"\",\"output_index\":");
        write_number(index as u64, out);
        out.extend_from_slice(place.as_bytes());
        out.extend_from_slice(b",\"delta\":");
        piece.write(out);
        out.extend_from_slice(more.as_bytes());
        out.extend_from_slice(b"}\n\n");
        self.number += 1;
    }

    /// Writes an event of an item, of which `data` writes what stands behind its place.
    fn item_event(
        &mut self,
        name: &str,
        (id, index): (&str, usize),
        data: impl FnOnce(&mut Object<'_>),
    ) {
        self.event(name, |event| {
            event.text("item_id", id);
            event.number("output_index", index as u64);
            data(event);
        });
    }

    fn added(&mut self, index: usize, item: &str) {
        self.event("response.output_item.added", |event| {
            event.number("output_index", index as u64);
            event.raw("item", item);
        });
    }

    /// Ends an item: a JSON object.
    fn done(&mut self, index: usize, item: &str) {
        self.event("response.output_item.done", |event| {
            event.number("output_index", index as u64);
            event.raw("item", item);
        });
        self.keep(item);
    }

    /// Writes an item that comes whole. `steps` are the events between its beginning and its end.
    fn hosted(&mut self, index: usize, id: &str, (begun, ended): (&str, &str), steps: &[&str]) {
        self.added(index, begun);
        for step in steps {
            self.item_event(step, (id, index), |_| ());
        }
        self.done(index, ended);
    }

    pub(super) fn own_id(&self, kind: &str, index: usize) -> String {
        own_id(kind, &self.response, index)
    }

    /// Returns the call that another dialect names so, as the request calls it.
    fn named(&self, name: &str) -> (Box<str>, Option<Box<str>>, CallForm) {
        let plain = Str::Raw(name).unescaped();
        match self.names.find(&plain) {
            Some(NamedTool {
                name,
                namespace,
                form,
            }) => (name.clone(), namespace.clone(), *form),
            None => (plain.as_ref().into(), None, CallForm::Arguments),
        }
    }
}

impl BlockWriter for Output {
    const DIALECT: Dialect = Dialect::Responses;
    const REFUSAL: BlockKind = BlockKind::Refusal;
    const HAS_IMAGES: bool = true;

    fn message(&mut self, phase: Option<Str<'_>>) -> bool {
        self.phase = phase.map(|phase| phase.contents().into());
        true
    }

    fn open(&mut self, index: usize, kind: BlockKind, call: Option<(&str, &str)>) {
        let call = call.map(|(id, name)| {
            let (name, namespace, form) = self.named(name);
            OpenCall {
                id: id.into(),
                name,
                namespace,
                form,
            }
        });
        let id_kind = match (kind, &call) {
            (BlockKind::Thinking, _) => "rs",
            (BlockKind::Call, Some(call)) => call.form.id_kind(),
            _ => "msg",
        };
        let mut open = OpenItem {
            id: self.own_id(id_kind, index),
            text: Vec::new(),
            annotations: Vec::new(),
            cited: 0,
            phase: None,
            call,
        };
        if matches!(kind, BlockKind::Text | BlockKind::Refusal) {
            open.phase = self.phase.take();
        }
        let item = match (kind, &open.call) {
            (BlockKind::Thinking, _) => open.reasoning("", None),
            (BlockKind::Call, Some(call)) => open.call(call, "in_progress", ""),
            _ => open.message("in_progress", ""),
        };
        self.added(index, &item);
        let place = (&*open.id, index);
        if matches!(kind, BlockKind::Text | BlockKind::Refusal) {
            let part = open.part(kind);
            self.item_event("response.content_part.added", place, |event| {
                event.number("content_index", 0);
                event.raw("part", &part);
            });
        }
        self.open = Some(open);
    }

    fn part(&mut self, index: usize, kind: BlockKind, part: Str<'_>) {
        const CONTENT: &str = ",\"content_index\":0";
        let Some(open) = &mut self.open else { return };
        let is_first = open.text.is_empty();
        part.write_contents(&mut open.text);
        let is_told = open.form() == CallForm::Arguments;
        let (name, place) = match kind {
            BlockKind::Text => {
                let around = (CONTENT, ",\"logprobs\":[]");
                return self.delta("response.output_text.delta", around, index, part);
            }
            BlockKind::Refusal => ("response.refusal.delta", CONTENT),
            BlockKind::Thinking => {
                if is_first {
                    let id = open.id.clone();
                    self.begin_summary(&id, index);
                }
                let place = ",\"summary_index\":0";
                ("response.reasoning_summary_text.delta", place)
            }
            BlockKind::Call if is_told => ("response.function_call_arguments.delta", ""),
            // Its text is known once the arguments are whole.
            BlockKind::Call => return,
        };
        self.delta(name, (place, ""), index, part);
    }

    fn cite(&mut self, index: usize, json: &str) {
        let Some(open) = &mut self.open else { return };
        if !open.annotations.is_empty() {
            open.annotations.push(b',');
        }
        open.annotations.extend_from_slice(json.as_bytes());
        let (id, number) = (open.id.clone(), open.cited);
        open.cited += 1;
        let name = "response.output_text.annotation.added";
        self.item_event(name, (&id, index), |event| {
            event.number("content_index", 0);
            event.number("annotation_index", number);
            event.raw("annotation", json);
        });
    }

    fn close(&mut self, index: usize, kind: BlockKind, signature: Option<&str>) {
        let Some(open) = self.open.take() else { return };
        let status = self.status;
        match kind {
            BlockKind::Text | BlockKind::Refusal => self.close_message(index, kind, &open, status),
            BlockKind::Thinking => self.close_reasoning(index, &open, signature),
            BlockKind::Call => {
                if let Some(call) = &open.call {
                    self.close_call(index, &open, call, status);
                }
            }
        }
    }

    fn whole(&mut self, index: usize, json: &str) {
        self.added(index, json);
        self.done(index, json);
    }

    fn redacted(&mut self, index: usize, data: &str) {
        let id = self.own_id("rs", index);
        let item = json(|item| {
            item.text("id", &id);
            item.text("type", "reasoning");
            item.raw("summary", "[]");
            item.text("encrypted_content", data);
        });
        self.whole(index, &item);
    }

    fn image(&mut self, index: usize, media_type: &str, data: Str<'_>) {
        let id = self.own_id("ig", index);
        let format = media_type.strip_prefix("image/").unwrap_or(media_type);
        let item = |status: &str, data: Option<Str<'_>>| {
            json(|item| {
                item.text("id", &id);
                item.text("type", "image_generation_call");
                item.text("status", status);
                item.text("output_format", format);
                item.value("result", |out| match data {
                    Some(data) => data.write(out),
                    None => out.extend_from_slice(b"null"),
                });
            })
        };
        let (begun, ended) = (item("in_progress", None), item("completed", Some(data)));
        let steps = [
            "response.image_generation_call.in_progress",
            "response.image_generation_call.generating",
            "response.image_generation_call.completed",
        ];
        self.hosted(index, &id, (&begun, &ended), &steps);
    }

    fn search(&mut self, index: usize, _: &str, search: &Search<'_>) -> usize {
        let id = self.own_id("ws", index);
        let tells_sources = self.tells_sources;
        let item = |status: &str, has_ended: bool| {
            json(|item| {
                item.text("id", &id);
                item.text("type", "web_search_call");
                item.text("status", status);
                item.object("action", |action| {
                    action.text("type", "search");
                    action.text("query", search.query);
                    if let Some(pages) = search.found.ok().filter(|_| has_ended && tells_sources) {
                        let pages: Vec<Page> = serde_json::from_str(pages).unwrap_or_default();
                        action.array("sources", &pages, |page, out| {
                            let mut source = Object::open(out);
                            source.text("type", "url");
                            source.text("url", &page.url);
                            source.close();
                        });
                    }
                });
            })
        };
        let status = if search.found.is_ok() {
            "completed"
        } else {
            "failed"
        };
        let (begun, ended) = (item("in_progress", false), item(status, true));
        let steps = [
            "response.web_search_call.in_progress",
            "response.web_search_call.searching",
            "response.web_search_call.completed",
        ];
        self.hosted(index, &id, (&begun, &ended), &steps);
        1
    }
}
