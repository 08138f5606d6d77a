//! The output items of one answer, on their way into a sink. Whole replies and events hand over the same items, so that
//! both give the same answer. Source: docs/facts/wire-formats.md 2.3, 2.4.

use std::collections::BTreeSet;

use super::annotations::citations;
use super::item::{Item, ItemKind, ItemPart};
use super::reasoning::UnsaidState;
use crate::json::{Error, Str};
use crate::models::chat::piece::{Image, Piece};
use crate::models::dialects::Dialect;
use crate::models::numbering::Numbering;
use crate::models::reply::Sink;

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
#[derive(Debug, Default)]
pub(super) struct Output {
    items: Vec<OpenItem>,
    numbers: Numbering<u64>,
    /// The parts whose text has come in pieces.
    streamed: BTreeSet<PartPlace>,
    /// How many messages and calls have been said.
    place: u64,
    /// State of reasoning whose following item has not come.
    pending: Vec<UnsaidState>,
    has_reasoning: bool,
    /// The images so far.
    images: u64,
    /// Characters of earlier parts, by which the places of annotations move.
    chars: u64,
    searches: u64,
    /// The client speaks the dialect, so it gets items that others have no words for as they are.
    tells_all: bool,
}

#[derive(Debug, Default)]
struct OpenItem {
    /// It is told as it is, once it has ended.
    is_native: bool,
    /// Texts, which begin a message, or arguments.
    has_text: bool,
    is_done: bool,
}

impl Output {
    /// Returns one without items. `tells_all`: the client speaks the dialect.
    pub(super) fn new(tells_all: bool) -> Self {
        Self {
            tells_all,
            ..Self::default()
        }
    }

    /// Returns whether an item is told as it is.
    fn is_native(&self, item: &Item<'_>) -> bool {
        let is_beyond = match item.kind {
            ItemKind::Search | ItemKind::Other => true,
            // Other dialects have the namespace in the name.
            ItemKind::Call => item.has_namespace,
            ItemKind::Message | ItemKind::Reasoning | ItemKind::Image => false,
        };
        is_beyond && self.tells_all
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
        let is_native = self.is_native(item);
        match item.kind {
            ItemKind::Message | ItemKind::Call => self.hand_out_pending(sink),
            ItemKind::Reasoning => {}
            _ if is_native => self.hand_out_pending(sink),
            // The provider refuses reasoning without the item that followed it, and this one never goes back.
            ItemKind::Image | ItemKind::Search | ItemKind::Other => self.pending.clear(),
        }
        match item.kind {
            ItemKind::Message => sink.pieces(0, &[Piece::Message { phase: item.phase }]),
            ItemKind::Call if !is_native => {
                self.place += 1;
                sink.pieces(0, &[call(number, item)]);
            }
            _ => {}
        }
        self.items.push(OpenItem {
            is_native,
            ..OpenItem::default()
        });
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
                self.say(place.item, sink);
                sink.text(0, text);
            }
            PartKind::Refusal => {
                self.say(place.item, sink);
                sink.pieces(0, &[Piece::Refusal(text)]);
            }
            PartKind::Summary | PartKind::Reasoning => {
                let separator = (is_first && self.has_reasoning).then_some(Str::Raw(r"\n\n"));
                self.has_reasoning = true;
                for reasoning in [separator, Some(text)].into_iter().flatten() {
                    sink.pieces(0, &[Piece::Reasoning(reasoning)]);
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
            if open.is_native {
                return;
            }
            open.has_text = true;
        }
        let (key, json) = (number, piece);
        sink.pieces(0, &[Piece::Arguments { key, json }]);
    }

    /// Takes the arguments of a call as a whole, unless they have come in pieces.
    pub(super) fn whole_arguments(
        &mut self,
        number: u64,
        whole: Option<Str<'_>>,
        sink: &mut dyn Sink,
    ) {
        let known = self.numbers.get(&number).and_then(|at| self.items.get(at));
        if !known.is_some_and(|open| open.has_text) {
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
        let is_native = match self.items.get_mut(at) {
            Some(open) if !open.is_done => {
                open.is_done = true;
                open.is_native
            }
            _ => return Ok(()),
        };
        if is_native {
            let (dialect, json) = (Dialect::Responses, item.json);
            sink.pieces(
                0,
                &[Piece::Native {
                    dialect,
                    number,
                    json,
                }],
            );
        }
        match item.kind {
            ItemKind::Message => self.message(number, item, sink),
            ItemKind::Reasoning => self.reasoning(number, item, sink),
            ItemKind::Call if is_native => Ok(()),
            ItemKind::Call => {
                // Where the beginning did not come, or had no name, this opens the call.
                sink.pieces(0, &[call(number, item)]);
                self.whole_arguments(number, item.arguments, sink);
                // One that was cut ends with the answer, which says why.
                if !item.is_cut {
                    sink.pieces(0, &[Piece::CallEnd { key: number }]);
                }
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

    /// Takes note that a message says something; a text whose item has not been begun begins one.
    fn say(&mut self, number: u64, sink: &mut dyn Sink) {
        let item = Item {
            kind: ItemKind::Message,
            ..Item::default()
        };
        let at = self.begin(number, &item, sink);
        if let Some(open) = self.items.get_mut(at) {
            self.place += u64::from(!open.has_text);
            open.has_text = true;
        }
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
            let citations = citations(read.annotations, self.chars)?;
            if !citations.is_empty() {
                sink.pieces(0, &citations);
            }
            self.chars += read.text.map_or(0, Str::count_chars);
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
        self.pending.extend(UnsaidState::new(item, self.place));
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
        for state in self.pending.drain(..) {
            sink.pieces(0, &[Piece::State(state.piece())]);
        }
    }
}

/// Hands out an image, and returns whether there is one: a call of the drawing tool that failed has none.
fn image(item: &Item<'_>, sink: &mut dyn Sink) -> bool {
    let Some(data) = item.result.filter(|result| !result.is_empty()) else {
        return false;
    };
    let format = item.output_format.map(Str::unescaped);
    let media_type = &format!("image/{}", format.as_deref().unwrap_or("png"));
    sink.pieces(0, &[Piece::Image(Image::Data { media_type, data })]);
    true
}

fn call<'a>(number: u64, item: &Item<'a>) -> Piece<'a> {
    Piece::Call {
        key: number,
        id: item.call_id,
        name: item.name,
    }
}
