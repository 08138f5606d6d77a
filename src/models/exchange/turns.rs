//! What a call knows of the turns of its answer, between which the gateway searches the web.

use bytes::Bytes;
use filters::models::reply::ReplyIdentity;
use filters::models::request::{ModelRequest, Payload};
use filters::models::search_loop::SearchFunction;
use filters::models::search_loop::turn::SearchTurn;
use filters::models::search_words::SearchWords;

use crate::ledger::Receipt;

/// The turns of a call whose model searches by a function.
pub struct SearchTurns {
    pub(super) words: &'static dyn SearchWords,
    pub(super) function: SearchFunction,
    /// Whether the client refuses a fallback.
    pub(super) no_fallback: bool,
    /// The turns that have ended.
    pub(super) ended: u32,
    /// The searches that have begun.
    pub(super) searches: u64,
    /// The turn that has ended, until the next one is planned.
    pub(super) last: Option<EndedTurn>,
}

/// A turn that has ended with calls of the function.
pub(super) struct EndedTurn {
    /// The whole answer, as the front's clients get it.
    pub(super) answer: Bytes,
    /// For its charge.
    pub(super) receipt: Receipt,
    /// The index of the deployment that has answered.
    pub(super) deployment: usize,
}

impl SearchTurns {
    /// Returns the turns of a call before the first one.
    pub fn new(
        words: &'static dyn SearchWords,
        function: SearchFunction,
        no_fallback: bool,
    ) -> Box<Self> {
        Box::new(Self {
            words,
            function,
            no_fallback,
            ended: 0,
            searches: 0,
            last: None,
        })
    }

    /// Returns whether an attempt belongs to a later turn than the first.
    pub(super) fn is_later(&self) -> bool {
        self.ended > 0
    }

    /// Returns whether a turn has ended and the next one has not begun.
    pub(super) fn is_between(&self) -> bool {
        self.last.is_some()
    }

    /// Returns the turn that an attempt of this maker begins.
    pub(super) fn begin(&self, request: &ModelRequest, identity: ReplyIdentity) -> SearchTurn {
        let mut folded = request.clone();
        folded.is_stream = false;
        if let Payload::Chat(chat) = &mut folded.payload {
            chat.includes_usage = false;
        }
        let separator = if self.is_later() {
            self.words.separator()
        } else {
            ""
        };
        let fold = folded.front.writer(&folded, identity);
        SearchTurn::new(fold, &self.function.name, separator, !request.is_stream)
    }

    /// Returns which of so many further calls of the function are beyond the limit.
    pub(super) fn is_beyond_limit(&self, at: usize) -> bool {
        self.searches.saturating_add(at as u64) >= self.function.limit
    }
}
