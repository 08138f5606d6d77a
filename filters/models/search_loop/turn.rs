//! One turn of an answer: what the model says between two searches, which goes to the client as it comes, but for the calls of
//! the function.

use bytes::Bytes;

use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece, StateOf};
use crate::models::metadata::Metadata;
use crate::models::reply::{Reported, Sink, Writer};
use crate::models::sink_event::SinkEvent;
use crate::models::usage::{Settlement, Usage};
use crate::money::ServiceTier;

/// A turn on its way.
pub struct SearchTurn {
    /// Makes the whole answer of the turn, which the next request says again.
    fold: Box<dyn Writer>,
    /// The name of the function.
    function: Box<str>,
    calls: Vec<TurnCall>,
    /// What stands before its first text.
    separator: &'static str,
    /// What the client gets once the turn has ended, where no part of an answer goes out before.
    held: Option<Vec<u8>>,
    /// Whether the client gets state: the response has that of one maker.
    tells_state: bool,
    /// It has ended by something else than calls, so that nothing follows.
    is_over: bool,
}

/// A call of the turn.
struct TurnCall {
    key: u64,
    kind: CallKind,
}

enum CallKind {
    /// Of the function.
    Search,
    /// Of a tool of the client's.
    Other,
    /// Its name has not come. What came of it waits.
    Unnamed { id: String, arguments: String },
}

impl SearchTurn {
    /// Begins a turn whose whole answer `fold` makes. `function` is the name of the function, `separator` stands before its
    /// first text, and `is_whole` tells that the client gets nothing before the turn has ended.
    pub fn new(
        fold: Box<dyn Writer>,
        function: &str,
        separator: &'static str,
        is_whole: bool,
    ) -> Self {
        Self {
            fold,
            function: function.into(),
            calls: Vec::new(),
            separator,
            held: is_whole.then(Vec::new),
            tells_state: true,
            is_over: false,
        }
    }

    /// The same, which tells the client state or not.
    #[must_use]
    pub fn telling_state(self, tells_state: bool) -> Self {
        Self {
            tells_state,
            ..self
        }
    }

    /// Returns whether the turn has ended with nothing but searches left to do.
    pub fn wants_search(&self) -> bool {
        let mut calls = self.calls.iter();
        let has_search = calls.any(|call| matches!(call.kind, CallKind::Search));
        has_search && !self.has_others() && !self.is_over
    }

    /// Returns the provider's reports of this turn.
    pub fn reported(&self) -> Reported {
        self.fold.reported()
    }

    /// Returns why a reply that has come to its end is not an answer.
    pub fn lack(&self) -> Option<&'static str> {
        self.fold.lack()
    }

    /// Gives the client what was held.
    pub fn release(&mut self, client: &mut dyn Sink) {
        let held = self.held.take().unwrap_or_default();
        let mut rest = &*held;
        while let Some(event) = SinkEvent::take(&mut rest) {
            event.put_into(client);
        }
    }

    /// Returns the whole answer of the turn.
    pub fn end(mut self, settlement: &Settlement, metadata: &Metadata<'_>) -> Bytes {
        self.fold.end_text(true);
        self.fold.complete(settlement, metadata);
        self.fold.take()
    }

    /// Returns whether it calls tools of the client's.
    pub fn has_others(&self) -> bool {
        let mut calls = self.calls.iter();
        calls.any(|call| matches!(call.kind, CallKind::Other))
    }

    fn find(&mut self, key: u64) -> Option<&mut CallKind> {
        let call = self.calls.iter_mut().find(|call| call.key == key);
        call.map(|call| &mut call.kind)
    }

    fn is_search(&mut self, key: u64) -> bool {
        matches!(self.find(key), Some(CallKind::Search))
    }

    /// Notes the calls that pieces begin, so that what is said beside a call is known, too.
    fn note(&mut self, pieces: &[Piece<'_>]) {
        for piece in pieces {
            let Piece::Call { key, name, .. } = piece else {
                continue;
            };
            if self.find(*key).is_some() {
                continue;
            }
            let name = name.filter(|name| !name.is_empty());
            let kind = match name.map(Str::unescaped) {
                Some(name) if name == *self.function => CallKind::Search,
                Some(_) => CallKind::Other,
                None => CallKind::Unnamed {
                    id: String::new(),
                    arguments: String::new(),
                },
            };
            self.calls.push(TurnCall { key: *key, kind });
        }
    }

    /// Returns whether the client gets a piece now. `client` gets what waited for the piece.
    fn shows(&mut self, piece: &Piece<'_>, client: &mut dyn FnMut(&[Piece<'_>])) -> bool {
        match piece {
            Piece::Call { key, id, name } => self.shows_call((*key, *id, *name), client),
            Piece::Arguments { key, json } => match self.find(*key) {
                Some(CallKind::Search) => false,
                Some(CallKind::Unnamed { arguments, .. }) => {
                    arguments.push_str(&json.contents());
                    false
                }
                Some(CallKind::Other) | None => true,
            },
            Piece::CallEnd { key } => !self.is_search(*key),
            Piece::State(_) if !self.tells_state => false,
            Piece::State(state) => match state.of {
                StateOf::Call(key) | StateOf::Extra(Some(key)) => !self.is_search(key),
                _ => true,
            },
            Piece::Finish(finish) => {
                let is_natural = matches!(finish, Finish::Stop | Finish::ToolCalls);
                self.is_over |= !is_natural;
                !self.wants_search()
            }
            _ => true,
        }
    }

    fn shows_call(
        &mut self,
        (key, id, name): (u64, Option<Str<'_>>, Option<Str<'_>>),
        client: &mut dyn FnMut(&[Piece<'_>]),
    ) -> bool {
        let function = self.function.clone();
        let Some(kind) = self.find(key) else {
            return true;
        };
        let CallKind::Unnamed {
            id: held_id,
            arguments,
        } = kind
        else {
            return matches!(kind, CallKind::Other);
        };
        if let Some(id) = id {
            held_id.push_str(&id.contents());
        }
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return false;
        };
        let (held_id, arguments) = (std::mem::take(held_id), std::mem::take(arguments));
        if name.unescaped() == *function {
            *kind = CallKind::Search;
            return false;
        }
        *kind = CallKind::Other;
        let call = Piece::Call {
            key,
            id: Some(Str::Raw(&held_id)),
            name: Some(name),
        };
        let json = Str::Raw(&arguments);
        client(&[call, Piece::Arguments { key, json }]);
        false
    }
}

/// A sink that takes a turn: the turn gets everything, the client all but the calls of the function.
pub struct TurnSink<'a> {
    pub turn: &'a mut SearchTurn,
    pub client: &'a mut dyn Sink,
}

impl TurnSink<'_> {
    /// Gives the client an event, now or at the end of the turn. An event that cannot be kept ends the record.
    fn give(turn_held: &mut Option<Vec<u8>>, client: &mut dyn Sink, event: &SinkEvent<'_>) {
        match turn_held {
            Some(held) => _ = event.write(held),
            None => event.put_into(client),
        }
    }

    fn separate(&mut self, choice: u32) {
        let separator = std::mem::take(&mut self.turn.separator);
        if !separator.is_empty() {
            let event = SinkEvent::Text(choice, Str::Plain(separator));
            Self::give(&mut self.turn.held, self.client, &event);
        }
    }
}

impl Sink for TurnSink<'_> {
    fn identity(&mut self, id: Option<&str>, created: Option<u64>) {
        self.turn.fold.identity(id, created);
        self.client.identity(id, created);
    }

    fn pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
        self.turn.fold.pieces(choice, pieces);
        self.turn.note(pieces);
        let mut shown = Vec::with_capacity(pieces.len());
        for piece in pieces {
            if matches!(piece, Piece::Text(text) if !text.is_empty()) {
                self.separate(choice);
            }
            let mut waited = Vec::new();
            let is_shown = self.turn.shows(piece, &mut |pieces| {
                _ = SinkEvent::Pieces(choice, pieces.to_vec()).write(&mut waited);
            });
            if let Some(event) = SinkEvent::take(&mut &*waited) {
                Self::give(&mut self.turn.held, self.client, &event);
            }
            if is_shown {
                shown.push(*piece);
            }
        }
        if !shown.is_empty() || pieces.is_empty() {
            let event = SinkEvent::Pieces(choice, shown);
            Self::give(&mut self.turn.held, self.client, &event);
        }
    }

    fn text(&mut self, choice: u32, text: Str<'_>) {
        self.turn.fold.text(choice, text);
        if !text.is_empty() {
            self.separate(choice);
        }
        let event = SinkEvent::Text(choice, text);
        Self::give(&mut self.turn.held, self.client, &event);
    }

    fn member(&mut self, key: &str, value: &str) {
        self.turn.fold.member(key, value);
        let event = SinkEvent::Member(key, value);
        Self::give(&mut self.turn.held, self.client, &event);
    }

    // What the reply says of its own searches counts in its turn alone, and nothing passes as it came.

    fn searches(&mut self, count: u64) {
        self.turn.fold.searches(count);
    }

    fn usage(&mut self, usage: Usage) {
        self.turn.fold.usage(usage);
        self.client.usage(usage);
    }

    fn service_tier(&mut self, tier: ServiceTier) {
        self.turn.fold.service_tier(tier);
        self.client.service_tier(tier);
    }
}
