//! The pieces of a chat's answer, as every provider's decoder hands them out.
//!
//! Decoders turn a provider's events, and its whole replies alike, into [`Piece`]s; the writers of a front make its shape of
//! them. So the folded stream equals the whole reply by construction, and each front has one place for its rules about roles,
//! numbers of calls and words for the end.

use serde::{Deserialize, Serialize};

use crate::json::Str;
use crate::models::dialects::Dialect;

/// A piece of a choice. Decoders borrow from the event. JSON texts come as the provider wrote them.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub enum Piece<'a> {
    /// A part of the answer's text.
    Text(#[serde(borrow)] Str<'a>),
    /// A part of the reasoning's text.
    Reasoning(#[serde(borrow)] Str<'a>),
    /// A part of a refusal's text.
    Refusal(#[serde(borrow)] Str<'a>),
    /// A message begins, of which the texts that follow are parts. Only wires whose answers have several messages say it.
    Message {
        #[serde(borrow)]
        phase: Option<Str<'a>>,
    },
    /// State that only the maker of the answer can read.
    State(#[serde(borrow)] StatePiece<'a>),
    /// Items of reasoning that never go back, of a provider of the chat convention: the inside of an array.
    Details(&'a str),
    /// A tool call, or what comes later of its id and name. An empty one counts as absent.
    ///
    /// `key` identifies a call within its choice, in the provider's own numbering.
    Call {
        key: u64,
        #[serde(borrow)]
        id: Option<Str<'a>>,
        #[serde(borrow)]
        name: Option<Str<'a>>,
    },
    /// A part of a call's arguments.
    Arguments {
        key: u64,
        #[serde(borrow)]
        json: Str<'a>,
    },
    /// The end of a call, where the provider reports it; the other calls end with the choice.
    CallEnd { key: u64 },
    /// What the text rests on.
    Citation(#[serde(borrow)] Citation<'a>),
    /// A search of the web that the gateway has run for the model.
    Search(#[serde(borrow)] Search<'a>),
    /// A whole image.
    Image(#[serde(borrow)] Image<'a>),
    /// A block of a tool that the provider ran, which goes back to it as it is; `dialect` and `number` are those of
    /// [`StatePiece`].
    Native {
        dialect: Dialect,
        number: u64,
        json: &'a str,
    },
    /// What safeguards of the provider found in the answer.
    Safeguards(&'a str),
    /// What the operator's own model says of the answer's calls, as the client reads it.
    Verdicts(&'a str),
    /// The probabilities of the tokens.
    Logprobs(&'a str),
    /// An unknown member of a message of the chat convention.
    Other { key: &'a str, json: &'a str },
    /// The end of the choice. It is the last of the pieces that are said together.
    Finish(#[serde(borrow)] Finish<'a>),
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Finish<'a> {
    /// A natural end. Providers that do not name their stop sequences say it for these, too.
    Stop,
    /// The stop sequence that the model was about to say.
    Sequence(#[serde(borrow)] Str<'a>),
    /// The limit of tokens.
    Length,
    /// The model's context is full.
    ContextFull,
    ToolCalls,
    /// The provider's own limit: the turn goes on where the client sends it back.
    Paused,
    /// A filter or a refusal.
    Filtered,
}

/// State, which ends what it belongs to.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct StatePiece<'a> {
    #[serde(borrow)]
    pub of: StateOf<'a>,
    /// The dialect of its maker's wire.
    pub dialect: Dialect,
    /// The place of its block in the turn, as its wire counts places.
    pub number: u64,
    #[serde(borrow)]
    pub data: Str<'a>,
}

/// What a state belongs to.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum StateOf<'a> {
    /// The block of reasoning that has said this text.
    Reasoning(#[serde(borrow)] Str<'a>),
    /// A block of reasoning that is not shown.
    Redacted,
    /// An item of reasoning, with its id and its summary, which is JSON.
    Item {
        #[serde(borrow)]
        id: Option<Str<'a>>,
        summary: &'a str,
    },
    /// The text.
    Text,
    /// The last image.
    Image,
    /// The call of this key.
    Call(u64),
    /// Items of reasoning of the chat convention: `data` is the inside of an array.
    Details,
    /// A call of the chat convention, or its message: `data` is the object that stands beside it.
    Extra(Option<u64>),
}

/// What the answer's text rests on.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub enum Citation<'a> {
    /// A page. The characters of the text from `start` to `end` rest on it; both are 0 where the whole answer does.
    Page {
        #[serde(borrow)]
        url: Str<'a>,
        #[serde(borrow)]
        title: Option<Str<'a>>,
        start: u64,
        end: u64,
    },
    /// Annotations as a provider of the chat convention says them: the inside of an array.
    Said(&'a str),
}

/// A search of the web that the gateway has run.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Search<'a> {
    pub query: &'a str,
    /// The number of the search in its answer, from 0.
    pub number: u64,
    /// The pages: a JSON array in the shape of `POST /v1/search`; the word for the failure where there are none.
    #[serde(borrow)]
    pub found: Result<&'a str, &'a str>,
}

/// A whole image.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub enum Image<'a> {
    /// As base64.
    Data {
        media_type: &'a str,
        #[serde(borrow)]
        data: Str<'a>,
    },
    /// So many images as a provider of the chat convention says them: the inside of an array.
    Said { items: &'a str, count: u64 },
}

impl Image<'_> {
    /// Returns how many images it is.
    pub fn count(&self) -> u64 {
        match self {
            Self::Data { .. } => 1,
            Self::Said { count, .. } => *count,
        }
    }
}

/// Returns the pieces without the end, and the end.
pub fn split_finish<'p, 'a>(pieces: &'p [Piece<'a>]) -> (&'p [Piece<'a>], Option<Finish<'a>>) {
    match pieces.split_last() {
        Some((Piece::Finish(finish), rest)) => (rest, Some(*finish)),
        _ => (pieces, None),
    }
}
