//! The output items of one answer, on their way into a sink. Whole replies and events hand over the same items, so that
//! both give the same answer. Source: docs/facts/wire-formats.md 2.3, 2.4.

use std::collections::BTreeSet;

use super::annotations::write_annotations;
use super::item::{Item, ItemKind, ItemPart};
use super::reasoning::write_details;
use super::turn::TurnOrder;
use crate::json::{Error, Str};
use crate::models::chat::delta::{Delta, Finish, ToolDelta};
use crate::models::numbering::Numbering;
use crate::models::reply::Sink;
use crate::models::wires::drawn;

/// Which text of an item a piece belongs to.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum PartKind {
    Text,
    Refusal,
    Summary,
    /// Reasoning as it is, which hosts of open models show.
    Reasoning,
}

/// A part of an item. Items have the numbers of the provider, because some hosts change their ids.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct PartPlace {
    pub(super) item: u64,
    pub(super) kind: PartKind,
    pub(super) part: u64,
}

/// The items so far.
#[derive(Debug)]
pub(super) struct Output {
    origin: Box<str>,
    items: Vec<OpenItem>,
    numbers: Numbering<u64>,
    /// The parts whose text has come in pieces.
    streamed: BTreeSet<PartPlace>,
    order: TurnOrder,
    /// Carriers of reasoning whose following item has not come.
    pending: Vec<String>,
    has_reasoning: bool,
    /// The images so far.
    images: u64,
    /// Characters of earlier parts, by which the places of annotations move.
    chars: u64,
    searches: u64,
}

#[derive(Debug, Default)]
struct OpenItem {
    has_arguments: bool,
    is_done: bool,
}

impl Output {
    /// The output of a provider, whose name marks the reasoning.
    pub(super) fn new(origin: Box<str>) -> Self {
        Self {
            origin,
            items: Vec::new(),
            numbers: Numbering::default(),
            streamed: BTreeSet::new(),
            order: TurnOrder::default(),
            pending: Vec::new(),
            has_reasoning: false,
            images: 0,
            chars: 0,
            searches: 0,
        }
    }

    /// Returns whether no item has come.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the number of images that have come.
    pub(super) fn images(&self) -> u64 {
        self.images
    }

    /// Begins an item at its first sight, and opens a call. Returns its place in the list.
    pub(super) fn begin(&mut self, number: u64, item: &Item<'_>, sink: &mut dyn Sink) -> usize {
        let (at, is_new) = self.numbers.see(number);
        if !is_new {
            return at;
        }
        match item.kind {
            ItemKind::Message | ItemKind::Call => self.hand_out_pending(sink),
            ItemKind::Reasoning => {}
            // The provider refuses reasoning without the item that followed it, and this one never goes back.
            ItemKind::Image | ItemKind::Search | ItemKind::Other => self.pending.clear(),
        }
        match item.kind {
            ItemKind::Message => self.order.begin_message(number, item.phase),
            ItemKind::Call => {
                self.order.begin_call();
                call(number, item, None, sink);
            }
            ItemKind::Reasoning | ItemKind::Image | ItemKind::Search | ItemKind::Other => {}
        }
        self.items.push(OpenItem::default());
        at
    }

    /// Takes a piece of a text.
    pub(super) fn piece(&mut self, place: PartPlace, text: Str<'_>, sink: &mut dyn Sink) {
        if text.is_empty() {
            return;
        }
        let is_first = self.streamed.insert(place);
        match place.kind {
            PartKind::Text => {
                self.begin_message(place.item, sink);
                self.order.text(place.item, text);
                sink.text(0, text);
            }
            PartKind::Refusal => {
                self.begin_message(place.item, sink);
                self.order.text(place.item, Str::Plain(""));
                let refusal = Some(text);
                sink.delta(&Delta {
                    refusal,
                    ..Delta::default()
                });
            }
            PartKind::Summary | PartKind::Reasoning => {
                let separator = (is_first && self.has_reasoning).then_some(Str::Raw(r"\n\n"));
                self.has_reasoning = true;
                for reasoning in [separator, Some(text)].into_iter().flatten() {
                    sink.delta(&Delta {
                        reasoning: Some(reasoning),
                        ..Delta::default()
                    });
                }
            }
        }
    }

    /// Takes a piece of a call's arguments.
    pub(super) fn arguments(&mut self, number: u64, piece: Option<Str<'_>>, sink: &mut dyn Sink) {
        let Some(piece) = piece.filter(|piece| !piece.is_empty()) else {
            return;
        };
        let item = Item {
            kind: ItemKind::Call,
            ..Item::default()
        };
        let at = self.begin(number, &item, sink);
        if let Some(open) = self.items.get_mut(at) {
            open.has_arguments = true;
        }
        call(number, &item, Some(piece), sink);
    }

    /// Takes the arguments of a call as a whole, unless they have come in pieces.
    pub(super) fn whole_arguments(
        &mut self,
        number: u64,
        whole: Option<Str<'_>>,
        sink: &mut dyn Sink,
    ) {
        let known = self.numbers.get(&number).and_then(|at| self.items.get(at));
        if !known.is_some_and(|open| open.has_arguments) {
            self.arguments(number, whole, sink);
        }
    }

    /// Ends an item: hands out what has not come in pieces.
    pub(super) fn done(
        &mut self,
        number: u64,
        item: &Item<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let at = self.begin(number, item, sink);
        match self.items.get_mut(at) {
            Some(open) if !open.is_done => open.is_done = true,
            _ => return Ok(()),
        }
        match item.kind {
            ItemKind::Message => self.message(number, item, sink),
            ItemKind::Reasoning => self.reasoning(number, item, sink),
            ItemKind::Call => {
                // Where the beginning did not come, or had no name, this opens the call.
                call(number, item, None, sink);
                self.whole_arguments(number, item.arguments, sink);
                sink.tool_done(0, number);
                Ok(())
            }
            ItemKind::Image => {
                self.images += u64::from(image(item, sink));
                Ok(())
            }
            ItemKind::Search => {
                self.searches += u64::from(item.is_search());
                sink.searches(self.searches);
                Ok(())
            }
            ItemKind::Other => Ok(()),
        }
    }

    /// Ends the answer.
    pub(super) fn end(&mut self, finish: Finish, sink: &mut dyn Sink) {
        let members = std::mem::take(&mut self.order).into_members();
        let extra: Vec<(&str, &str)> = members
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        sink.delta(&Delta {
            extra: &extra,
            finish: Some(finish),
            ..Delta::default()
        });
    }

    /// A text whose item has not been begun begins a message.
    fn begin_message(&mut self, number: u64, sink: &mut dyn Sink) {
        let item = Item {
            kind: ItemKind::Message,
            ..Item::default()
        };
        self.begin(number, &item, sink);
    }

    fn message(&mut self, number: u64, item: &Item<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        ItemPart::each(item.content, |part, read| {
            let place = |kind| PartPlace {
                item: number,
                kind,
                part,
            };
            self.rest(place(PartKind::Text), read.text, sink);
            self.rest(place(PartKind::Refusal), read.refusal, sink);
            let list = write_annotations(read.annotations, self.chars)?;
            if !list.is_empty() {
                sink.delta(&Delta {
                    annotations: Some(&list),
                    ..Delta::default()
                });
            }
            let text = read.text.map(Str::unescaped).unwrap_or_default();
            self.chars += text.chars().count() as u64;
            Ok(())
        })
    }

    fn reasoning(
        &mut self,
        number: u64,
        item: &Item<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let lists = [
            (item.summary, PartKind::Summary),
            (item.content, PartKind::Reasoning),
        ];
        for (list, kind) in lists {
            ItemPart::each(list, |part, read| {
                let place = PartPlace {
                    item: number,
                    kind,
                    part,
                };
                self.rest(place, read.text, sink);
                Ok(())
            })?;
        }
        let details = write_details(item, &self.origin, self.order.place());
        self.pending.extend(details);
        Ok(())
    }

    /// Hands out the text of a part, unless it has come in pieces.
    fn rest(&mut self, place: PartPlace, text: Option<Str<'_>>, sink: &mut dyn Sink) {
        if let Some(text) = text.filter(|_| !self.is_streamed(place)) {
            self.piece(place, text, sink);
        }
    }

    fn is_streamed(&self, place: PartPlace) -> bool {
        self.streamed.contains(&place)
    }

    fn hand_out_pending(&mut self, sink: &mut dyn Sink) {
        for details in self.pending.drain(..) {
            sink.delta(&Delta {
                reasoning_details: Some(&details),
                ..Delta::default()
            });
        }
    }
}

/// Hands out an image, and returns whether there is one: a call of the drawing tool that failed has none.
fn image(item: &Item<'_>, sink: &mut dyn Sink) -> bool {
    let Some(result) = item.result.filter(|result| !result.is_empty()) else {
        return false;
    };
    let format = item.output_format.map(Str::unescaped);
    let media_type = format!("image/{}", format.as_deref().unwrap_or("png"));
    sink.delta(&Delta {
        images: Some(&drawn::item(&media_type, &result.unescaped())),
        image_count: 1,
        ..Delta::default()
    });
    true
}

/// Hands out a piece of a call.
fn call(number: u64, item: &Item<'_>, arguments: Option<Str<'_>>, sink: &mut dyn Sink) {
    let tool = ToolDelta {
        key: number,
        id: item.call_id,
        name: item.name,
        arguments,
        extra_content: None,
    };
    sink.delta(&Delta {
        tools: &[tool],
        ..Delta::default()
    });
}
