//! What a call knows of the turns of its answer, between which the gateway searches the web, and of the judge of its calls.

use std::sync::Arc;

use bytes::Bytes;
use filters::models::dialects::Dialect;
use filters::models::judge_words::JudgeWords;
use filters::models::reply::ReplyIdentity;
use filters::models::request::{ModelRequest, Payload};
use filters::models::search_loop::SearchFunction;
use filters::models::search_loop::turn::SearchTurn;
use filters::models::search_words::SearchWords;

use crate::ledger::Receipt;

/// The turns of an answer. Without a search there is one.
#[derive(Default)]
pub struct AnswerTurns {
    pub(super) search: Option<TurnSearch>,
    pub(super) judge: Option<Judge>,
    /// Whether the client refuses a fallback.
    pub(super) no_fallback: bool,
    /// The turns that have ended.
    pub(super) ended: u32,
    /// The maker of the first turn, whose state the response has.
    pub(super) maker: Option<Arc<str>>,
    /// The searches that have begun.
    pub(super) searches: u64,
    /// The turn that has ended, until the next one is planned or the judge was asked.
    pub(super) last: Option<EndedTurn>,
    /// Whether the judge was asked, so that nothing but the end of the response is left.
    pub(super) is_judged: bool,
}

/// The search of a model that has none.
pub(super) struct TurnSearch {
    pub(super) words: &'static dyn SearchWords,
    pub(super) function: SearchFunction,
}

/// A model that judges the calls of another one.
#[derive(Clone)]
pub struct Judge {
    pub words: &'static dyn JudgeWords,
    /// The model as requests name it.
    pub model: Arc<str>,
}

/// A turn that has ended, but is not the end of the response.
pub(super) struct EndedTurn {
    /// The whole answer, as the front's clients get it.
    pub(super) answer: Bytes,
    /// For its charge.
    pub(super) receipt: Receipt,
    /// The index of the deployment that has answered.
    pub(super) deployment: usize,
    /// Whether the model wants to search. Else its calls are to be judged.
    pub(super) wants_search: bool,
}

impl AnswerTurns {
    /// Returns the turns of an answer whose calls a judge may judge.
    pub fn new(judge: Option<Judge>) -> Self {
        Self {
            judge,
            ..Self::default()
        }
    }

    /// The same of a model that searches by a function.
    #[must_use]
    pub fn searching(
        self,
        words: &'static dyn SearchWords,
        function: SearchFunction,
        no_fallback: bool,
    ) -> Self {
        Self {
            search: Some(TurnSearch { words, function }),
            no_fallback,
            ..self
        }
    }

    /// Returns whether they change anything of a call.
    pub fn are_needed(&self) -> bool {
        self.search.is_some() || self.judge.is_some()
    }

    /// Returns whether an attempt belongs to a later turn than the first.
    pub(super) fn is_later(&self) -> bool {
        self.ended > 0
    }

    /// Returns whether a turn has ended and the next one has not begun.
    pub(super) fn is_between(&self) -> bool {
        self.last.is_some()
    }

    /// Returns the turn that an attempt of this maker begins; `None`: its host judges calls itself, and its answer passes as it
    /// comes.
    pub(super) fn begin(
        &self,
        request: &ModelRequest,
        identity: ReplyIdentity,
    ) -> Option<SearchTurn> {
        if self.search.is_none() && identity.maker.speaks_bare(Dialect::Messages) {
            return None;
        }
        let mut folded = request.clone();
        folded.is_stream = false;
        if let Payload::Chat(chat) = &mut folded.payload {
            chat.includes_usage = false;
        }
        let search = self.search.as_ref();
        let separator = search.filter(|_| self.is_later());
        let separator = separator.map_or("", |search| search.words.separator());
        let function = search.map_or("", |search| &search.function.name);
        let is_makers = self
            .maker
            .as_ref()
            .is_none_or(|maker| *maker == identity.maker.name);
        let fold = folded.front.writer(&folded, identity);
        let turn = SearchTurn::new(fold, function, separator, !request.is_stream);
        Some(turn.telling_state(is_makers))
    }

    /// Returns whether the next but so many calls of the function are beyond the limit.
    pub(super) fn is_beyond_limit(&self, at: usize) -> bool {
        let limit = self
            .search
            .as_ref()
            .map_or(0, |search| search.function.limit);
        self.searches.saturating_add(at as u64) >= limit
    }
}
