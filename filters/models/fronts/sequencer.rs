//! The order of blocks, for APIs whose answers name their blocks: one is open at a time, their numbers are dense, a piece of
//! another kind ends the one before it, and no arguments of a call are lost.
//!
//! The first call goes out as it comes. What comes of another one meanwhile waits for the end of the first.

use std::collections::HashSet;
use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;

use super::said_text::SaidText;
use crate::json::{Object, Str};
use crate::models::chat::piece::{Image, Piece, Search, StateOf, StatePiece};
use crate::models::dialects::Dialect;
use crate::models::dialects::state::OwnedMaker;
use crate::models::dialects::told_reasoning::ToldReasoning;
use crate::models::numbering::Numbering;
use crate::models::search_loop::OWN_ID;

/// The most characters of a call's id.
const MAX_ID_CHARS: usize = 64;

/// How many calls of an answer have their ids looked for in the history. Further ones get ids of our making.
const MAX_SOUGHT_IDS: usize = 64;

/// The kind of an open block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum BlockKind {
    Text,
    Refusal,
    Thinking,
    Call,
}

/// Writes blocks. Texts and arguments are pieces of JSON strings.
pub(super) trait BlockWriter {
    /// The dialect whose native blocks it writes.
    const DIALECT: Dialect;
    /// The block of a refusal.
    const REFUSAL: BlockKind;
    /// Whether its answers have images.
    const HAS_IMAGES: bool = false;

    /// Returns the open thinking so far, where its state has to hold it, because clients keep state alone.
    fn reasoning(&self) -> Option<&str> {
        None
    }

    /// Ends the message that was said last, where an answer has several; `phase` is that of the next one. Returns whether its
    /// answers have.
    fn message(&mut self, _phase: Option<Str<'_>>) -> bool {
        false
    }

    /// Begins a block; `call` are its id and its name, insides of JSON strings.
    fn open(&mut self, index: usize, kind: BlockKind, call: Option<(&str, &str)>);

    /// Adds to the open block.
    fn part(&mut self, index: usize, kind: BlockKind, part: Str<'_>);

    /// Adds a citation to the open text: a JSON object.
    fn cite(&mut self, index: usize, json: &str);

    /// Ends the open block; `signature` is that of thinking.
    fn close(&mut self, index: usize, kind: BlockKind, signature: Option<&str>);

    /// Writes a block that comes whole: a JSON object.
    fn whole(&mut self, index: usize, json: &str);

    /// Writes a block of state that belongs to nothing that is shown.
    fn redacted(&mut self, index: usize, data: &str);

    /// Writes an image, in base64.
    fn image(&mut self, _index: usize, _media_type: &str, _data: Str<'_>) {}

    /// Writes a search that the gateway has run, under an id. Returns how many blocks it takes.
    fn search(&mut self, index: usize, id: &str, search: &Search<'_>) -> usize;
}

/// Puts pieces into blocks.
#[derive(Debug)]
pub(super) struct Sequencer<W> {
    pub(super) writer: W,
    maker: OwnedMaker,
    /// The prefix of ids that the provider has not given.
    own_id: Box<str>,
    /// The number of blocks so far.
    blocks: usize,
    open: Option<BlockKind>,
    calls: Vec<Call>,
    numbers: Numbering<u64>,
    /// The place of the open call in `calls`.
    open_call: usize,
    ids: HashSet<Box<str>>,
    /// The request, whose calls have ids, too.
    history: Bytes,
    /// The text so far, where citations quote it.
    said: Option<SaidText>,
    /// Citations that wait for a text.
    citations: Vec<String>,
    /// Bytes of text, reasoning and arguments.
    pub(super) bytes: u64,
    pub(super) tells_reasoning: bool,
}

/// A call. Texts are insides of JSON strings.
#[derive(Debug, Default)]
struct Call {
    id: Option<Box<str>>,
    name: Option<Box<str>>,
    /// Arguments that wait.
    waiting: String,
    /// State that stands before it.
    state: Option<String>,
    stage: Stage,
    has_arguments: bool,
    /// The provider has ended it.
    is_ended: bool,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Stage {
    #[default]
    Waiting,
    Open,
    Closed,
}

impl<W: BlockWriter> Sequencer<W> {
    /// Returns one without blocks. `own_id` is what ids of our making begin with.
    pub(super) fn new(writer: W, maker: OwnedMaker, own_id: String) -> Self {
        Self {
            writer,
            maker,
            own_id: own_id.into(),
            blocks: 0,
            open: None,
            calls: Vec::new(),
            numbers: Numbering::default(),
            open_call: 0,
            ids: HashSet::new(),
            history: Bytes::new(),
            said: None,
            citations: Vec::new(),
            bytes: 0,
            tells_reasoning: false,
        }
    }

    /// The same, where the ids of calls differ from all that this request holds: some providers number the calls of each answer
    /// anew, and clients leave out a call whose id they know.
    pub(super) fn behind(self, history: Bytes) -> Self {
        Self { history, ..self }
    }

    /// The same, where citations quote the text if `quotes`.
    pub(super) fn citing(self, quotes: bool) -> Self {
        Self {
            said: quotes.then(SaidText::default),
            ..self
        }
    }

    /// Returns whether a call had an id, as the inside of a JSON string, before.
    fn was_said(&self, id: &str) -> bool {
        self.ids.len() >= MAX_SOUGHT_IDS
            || memmem::find(&self.history, ["\"", id, "\""].concat().as_bytes()).is_some()
    }

    /// Returns who makes the answer.
    pub(super) fn maker(&self) -> &OwnedMaker {
        &self.maker
    }

    /// Returns whether a block has begun.
    pub(super) fn has_blocks(&self) -> bool {
        self.blocks > 0
    }

    /// Returns whether a call has begun or waits.
    pub(super) fn has_calls(&self) -> bool {
        self.calls.iter().any(|call| call.name.is_some())
    }

    /// Takes a text.
    pub(super) fn text(&mut self, text: Str<'_>) {
        self.say(BlockKind::Text, text);
    }

    /// Takes a citation, a JSON object, for the open text, or for the next one where none is open.
    pub(super) fn cite(&mut self, json: String) {
        match self.open {
            Some(BlockKind::Text) => self.writer.cite(self.index(), &json),
            _ => self.citations.push(json),
        }
    }

    /// Returns the text from one character to another; empty: it is not known.
    pub(super) fn quote(&self, start: u64, end: u64) -> &str {
        let said = self.said.as_ref();
        said.map_or("", |said| said.quote(start, end))
    }

    /// Returns the bytes of the text that stand from one character to another; `None`: they are not known.
    pub(super) fn bytes_of(&self, start: u64, end: u64) -> Option<Range<usize>> {
        self.said.as_ref()?.bytes(start, end)
    }

    /// Takes pieces that are said together, but for their end. Text goes through `text`.
    pub(super) fn take(&mut self, piece: &Piece<'_>, together: &[Piece<'_>]) {
        match piece {
            Piece::Text(text) => self.say(BlockKind::Text, *text),
            Piece::Refusal(text) => self.say(W::REFUSAL, *text),
            Piece::Message { phase } => self.message(*phase),
            Piece::Image(Image::Data { media_type, data }) if W::HAS_IMAGES => {
                self.close(None);
                self.writer.image(self.blocks, media_type, *data);
                self.blocks += 1;
            }
            Piece::Reasoning(text) => {
                self.tells_reasoning |= !text.is_empty();
                self.say(BlockKind::Thinking, *text);
            }
            Piece::State(state) => self.state(state),
            Piece::Call { key, id, name } => {
                let state = together
                    .iter()
                    .find_map(|other| self.state_of_call(other, *key));
                self.call(*key, *id, *name, state);
            }
            Piece::Arguments { key, json } => self.arguments(*key, *json),
            Piece::CallEnd { key } => self.end_call(*key),
            Piece::Native { dialect, json, .. } if *dialect == W::DIALECT => self.whole(json),
            Piece::Search(search) => self.search(search),
            _ => {}
        }
    }

    /// Ends all blocks.
    pub(super) fn end(&mut self) {
        self.close(None);
        for at in 0..self.calls.len() {
            self.open_waiting(at);
            self.close(None);
        }
    }

    /// Begins a message, where an answer has several.
    fn message(&mut self, phase: Option<Str<'_>>) {
        let ends = self.writer.message(phase);
        if ends && self.open == Some(BlockKind::Text) {
            self.close(None);
        }
    }

    fn say(&mut self, kind: BlockKind, text: Str<'_>) {
        if text.is_empty() || self.is_break(kind, text) {
            return;
        }
        self.begin(kind);
        if let (BlockKind::Text, Some(said)) = (kind, &mut self.said) {
            said.push(&text.unescaped());
        }
        self.bytes += text.len() as u64;
        self.writer.part(self.index(), kind, text);
    }

    /// Returns whether a text divides reasoning that here is two blocks, so that nothing is left to divide. Decoders of Responses say
    /// an empty line between all summaries of an answer; elsewhere it may be signed.
    fn is_break(&self, kind: BlockKind, text: Str<'_>) -> bool {
        let begins = kind == BlockKind::Thinking && self.open != Some(kind);
        begins && self.maker.dialect == Some(Dialect::Responses) && text.unescaped() == "\n\n"
    }

    /// Returns the number of the open block.
    fn index(&self) -> usize {
        self.blocks.saturating_sub(1)
    }

    /// Opens a block of texts, unless it is open.
    fn begin(&mut self, kind: BlockKind) {
        if self.open == Some(kind) {
            return;
        }
        self.close(None);
        self.writer.open(self.blocks, kind, None);
        self.blocks += 1;
        self.open = Some(kind);
        if kind == BlockKind::Text {
            for json in std::mem::take(&mut self.citations) {
                self.writer.cite(self.index(), &json);
            }
        }
    }

    /// Ends the open block. Thinking without a signature gets a seal, by which its maker knows it again.
    fn close(&mut self, signature: Option<&str>) {
        let Some(kind) = self.open.take() else {
            return;
        };
        let index = self.index();
        if kind == BlockKind::Call
            && let Some(call) = self.calls.get_mut(self.open_call)
        {
            call.stage = Stage::Closed;
            if !call.has_arguments {
                self.writer.part(index, kind, Str::Raw("{}"));
            }
        }
        let sealed;
        let signature = match (kind, signature) {
            (BlockKind::Thinking, None) => {
                let dialect = self.maker.dialect.unwrap_or(Dialect::Chat);
                let told = self.writer.reasoning();
                let told = told.map(|told| ToldReasoning::write(told, ""));
                let maker = self.maker.borrow();
                sealed = maker.seal(dialect, &told.unwrap_or_default());
                Some(sealed.as_str())
            }
            (_, signature) => signature,
        };
        self.writer.close(index, kind, signature);
    }

    fn whole(&mut self, json: &str) {
        self.close(None);
        self.writer.whole(self.blocks, json);
        self.blocks += 1;
    }

    fn search(&mut self, search: &Search<'_>) {
        self.close(None);
        let own = self.own_id.split_once('_').map_or("", |(_, own)| own);
        let id = [OWN_ID, own, &search.number.to_string()].concat();
        self.blocks += self.writer.search(self.blocks, &id, search);
    }

    fn state(&mut self, state: &StatePiece<'_>) {
        let data = state.data.unescaped();
        match state.of {
            StateOf::Reasoning(text) => {
                let told = self.writer.reasoning();
                let told = told.map(|_| ToldReasoning::write(&text.unescaped(), &data));
                let signature = self.seal(state.dialect, told.as_deref().unwrap_or(&data));
                self.begin(BlockKind::Thinking);
                self.close(Some(&signature));
            }
            StateOf::Item { id, summary } => {
                let mut item = Vec::new();
                let mut object = Object::open(&mut item);
                if let Some(id) = id {
                    object.value("id", |out| id.write(out));
                }
                object.raw("summary", summary);
                object.text("encrypted_content", &data);
                object.close();
                let item = String::from_utf8(item).unwrap_or_default();
                let signature = self.maker.borrow().seal(state.dialect, &item);
                self.begin(BlockKind::Thinking);
                self.close(Some(&signature));
            }
            StateOf::Redacted => {
                let data = self.seal(state.dialect, &data);
                self.redacted(&data);
            }
            StateOf::Text | StateOf::Image | StateOf::Extra(None) => {
                let data = self.maker.borrow().seal(state.dialect, &data);
                self.redacted(&data);
            }
            StateOf::Details => {
                let list = format!("[{data}]");
                let data = self.maker.borrow().seal(state.dialect, &list);
                self.redacted(&data);
            }
            // It stands before its call.
            StateOf::Call(_) | StateOf::Extra(Some(_)) => {}
        }
    }

    /// Returns a state of the vendor's own dialect as it goes out.
    fn seal(&self, dialect: Dialect, state: &str) -> String {
        match dialect == W::DIALECT && self.maker.speaks_bare(dialect) {
            true => state.to_owned(),
            false => self.maker.borrow().seal(dialect, state),
        }
    }

    fn redacted(&mut self, data: &str) {
        self.close(None);
        self.writer.redacted(self.blocks, data);
        self.blocks += 1;
    }

    /// Returns the sealed state of the call of this key, if a piece is that.
    fn state_of_call(&self, piece: &Piece<'_>, key: u64) -> Option<String> {
        let Piece::State(state) = piece else {
            return None;
        };
        let is_its = matches!(state.of, StateOf::Call(of) | StateOf::Extra(Some(of)) if of == key);
        let maker = self.maker.borrow();
        is_its.then(|| maker.seal(state.dialect, &state.data.unescaped()))
    }

    fn call(
        &mut self,
        key: u64,
        id: Option<Str<'_>>,
        name: Option<Str<'_>>,
        state: Option<String>,
    ) {
        let at = self.place(key);
        let contents = |text: Str<'_>| Box::<str>::from(text.contents());
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        if call.stage != Stage::Waiting {
            return;
        }
        let is_given = |text: &Str<'_>| !text.is_empty();
        call.id = id.filter(is_given).map(contents).or(call.id.take());
        call.name = name.filter(is_given).map(contents).or(call.name.take());
        call.state = state.or(call.state.take());
        let is_busy = self.open == Some(BlockKind::Call);
        if !is_busy && self.is_next(at) {
            self.open_waiting(at);
        }
    }

    /// Returns whether no earlier call waits.
    fn is_next(&self, at: usize) -> bool {
        let mut earlier = self.calls.iter().take(at);
        earlier.all(|call| call.stage == Stage::Closed)
    }

    fn arguments(&mut self, key: u64, json: Str<'_>) {
        if json.is_empty() {
            return;
        }
        let at = self.place(key);
        self.bytes += json.len() as u64;
        let is_open = self.open == Some(BlockKind::Call) && self.open_call == at;
        let index = self.index();
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        if is_open {
            call.has_arguments = true;
            self.writer.part(index, BlockKind::Call, json);
        } else if call.stage == Stage::Waiting {
            call.waiting.push_str(&json.contents());
        }
    }

    fn end_call(&mut self, key: u64) {
        let at = self.place(key);
        if let Some(call) = self.calls.get_mut(at) {
            call.is_ended = true;
        }
        if self.open != Some(BlockKind::Call) || self.open_call != at {
            return;
        }
        self.close(None);
        for next in at + 1..self.calls.len() {
            if self.calls.get(next).is_none_or(|call| call.name.is_none()) {
                return;
            }
            self.open_waiting(next);
            if !self.calls.get(next).is_some_and(|call| call.is_ended) {
                return;
            }
            self.close(None);
        }
    }

    /// Opens a call that waits, if it has a name.
    fn open_waiting(&mut self, at: usize) {
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        let (state, waiting) = (call.state.take(), std::mem::take(&mut call.waiting));
        let Some(name) = call.name.clone().filter(|_| call.stage == Stage::Waiting) else {
            return;
        };
        call.stage = Stage::Open;
        call.has_arguments = !waiting.is_empty();
        let asked = call.id.take();
        if let Some(state) = state {
            self.redacted(&state);
        }
        self.close(None);
        let id = self.unique(asked);
        let index = self.blocks;
        self.writer.open(index, BlockKind::Call, Some((&id, &name)));
        self.blocks += 1;
        self.open = Some(BlockKind::Call);
        self.open_call = at;
        if !waiting.is_empty() {
            self.writer.part(index, BlockKind::Call, Str::Raw(&waiting));
        }
    }

    fn place(&mut self, key: u64) -> usize {
        let (at, is_new) = self.numbers.see(key);
        if is_new {
            self.calls.push(Call::default());
        }
        at
    }

    /// Returns the provider's id, unless it is missing, taken, or of characters that other providers refuse.
    fn unique(&mut self, asked: Option<Box<str>>) -> Box<str> {
        let is_good = |id: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            id.len() <= MAX_ID_CHARS && id.bytes().all(is_plain) && id != "null"
        };
        let asked = asked.filter(|id| is_good(id) && !self.ids.contains(id) && !self.was_said(id));
        let id = asked.unwrap_or_else(|| format!("{}{}", self.own_id, self.blocks).into());
        self.ids.insert(id.clone());
        id
    }
}

/// Returns the letters and digits at the end of an id, as many as an id made of it has room for.
pub(super) fn plain_end(id: &str) -> String {
    let plain: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    let start = plain.len().saturating_sub(MAX_ID_CHARS / 2);
    plain.get(start..).unwrap_or_default().to_owned()
}
