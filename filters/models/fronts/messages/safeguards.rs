//! Auto mode: what a client that asks whether calls are dangerous is told of the calls of an answer. The vendor's own hosts judge
//! them, and no other host does, so there the answer says that nobody judges: the client then judges by itself, and stops asking.
//! A verdict is never made up. Source: docs/decisions.md 67, docs/facts/messages.md 5.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::models::chat::piece::Piece;
use crate::models::chat::text::Text;
use crate::models::dialects::Dialect;
use crate::models::dialects::state::OwnedMaker;
use crate::models::request::ModelRequest;

/// The member of a message, or of the delta that ends one, that holds the results.
pub(super) const RESULTS: &str = "safeguard_results";

/// The safeguard that judges calls.
pub(super) const KIND: &str = "dangerous_tool_use";

/// The results where nobody judges.
const UNSUPPORTED: &str = r#"[{"type":"dangerous_tool_use","status":{"type":"unsupported"}}]"#;

/// A safeguard that a request asks for.
#[derive(Deserialize)]
struct AskedSafeguard<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    classifier_context: Option<&'a RawValue>,
}

/// The results of an answer.
#[derive(Debug)]
pub(super) struct Safeguards {
    /// Whether the request asks whether calls are dangerous, of a host that does not judge.
    is_unjudged: bool,
    /// What the host has found.
    found: Option<Box<str>>,
    /// What the operator's judge has found.
    judged: Option<Box<str>>,
    has_calls: bool,
}

impl Safeguards {
    /// Returns those of an answer of which nothing was said.
    pub(super) fn new(request: &ModelRequest, maker: &OwnedMaker) -> Self {
        Self {
            is_unjudged: !maker.speaks_bare(Dialect::Messages) && is_asked(request),
            found: None,
            judged: None,
            has_calls: false,
        }
    }

    /// Takes note of a piece.
    pub(super) fn note(&mut self, piece: &Piece<'_>) {
        match piece {
            Piece::Safeguards(json) => self.found = Some((*json).into()),
            Piece::Verdicts(json) => self.judged = Some((*json).into()),
            Piece::Call { .. } => self.has_calls = true,
            _ => {}
        }
    }

    /// Returns the results that the gateway says in place of a host that does not judge.
    pub(super) fn own(&self) -> Option<&str> {
        let judged = self.judged.as_deref();
        judged.or_else(|| (self.is_unjudged && self.has_calls).then_some(UNSUPPORTED))
    }

    /// Returns the results.
    pub(super) fn results(&self) -> Option<&str> {
        match self.is_unjudged {
            true => self.own(),
            false => self.found.as_deref(),
        }
    }
}

/// Returns whether a request asks whether calls are dangerous.
pub(super) fn is_asked(request: &ModelRequest) -> bool {
    find(request).is_some()
}

/// Returns what such a request says of the user's rules and of the environment, as JSON.
pub(super) fn context(request: &ModelRequest) -> Option<&RawValue> {
    find(request)?.classifier_context
}

fn find(request: &ModelRequest) -> Option<AskedSafeguard<'_>> {
    let member = request.source.member("safeguards")?;
    let asked = serde_json::from_slice::<Vec<AskedSafeguard<'_>>>(request.source.value(member));
    let mut asked = asked.ok()?.into_iter();
    asked.find(|asked| &*asked.kind == KIND)
}
