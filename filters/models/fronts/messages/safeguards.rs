//! Auto mode: what a client that asks whether calls are dangerous is told of the calls of an answer. The vendor's own hosts judge
//! them, and no other host does, so there the answer says that nobody judges: the client then judges by itself, and stops asking.
//! A verdict is never made up. Source: docs/decisions.md 67, docs/facts/messages.md 5.

use serde::Deserialize;

use crate::models::chat::piece::Piece;
use crate::models::chat::text::Text;
use crate::models::dialects::Dialect;
use crate::models::dialects::state::OwnedMaker;
use crate::models::request::ModelRequest;

/// The member of a message, or of the delta that ends one, that holds the results.
pub(super) const RESULTS: &str = "safeguard_results";

/// The safeguard that judges calls.
const KIND: &str = "dangerous_tool_use";

/// The results where nobody judges.
const UNSUPPORTED: &str = r#"[{"type":"dangerous_tool_use","status":{"type":"unsupported"}}]"#;

/// A safeguard that a request asks for.
#[derive(Deserialize)]
struct AskedSafeguard<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Text<'a>,
}

/// The results of an answer.
#[derive(Debug)]
pub(super) struct Safeguards {
    /// Whether the request asks whether calls are dangerous, of a host that does not judge.
    is_unjudged: bool,
    /// What the host has found.
    found: Option<Box<str>>,
    has_calls: bool,
}

impl Safeguards {
    /// Returns those of an answer of which nothing was said.
    pub(super) fn new(request: &ModelRequest, maker: &OwnedMaker) -> Self {
        Self {
            is_unjudged: !maker.speaks_bare(Dialect::Messages) && is_asked(request),
            found: None,
            has_calls: false,
        }
    }

    /// Takes note of a piece.
    pub(super) fn note(&mut self, piece: &Piece<'_>) {
        match piece {
            Piece::Safeguards(json) => self.found = Some((*json).into()),
            Piece::Call { .. } => self.has_calls = true,
            _ => {}
        }
    }

    /// Returns the results that the gateway says in place of a host that does not judge.
    pub(super) fn own(&self) -> Option<&str> {
        (self.is_unjudged && self.has_calls).then_some(UNSUPPORTED)
    }

    /// Returns the results.
    pub(super) fn results(&self) -> Option<&str> {
        match self.is_unjudged {
            true => self.own(),
            false => self.found.as_deref(),
        }
    }
}

fn is_asked(request: &ModelRequest) -> bool {
    let Some(member) = request.source.member("safeguards") else {
        return false;
    };
    let asked = serde_json::from_slice::<Vec<AskedSafeguard<'_>>>(request.source.value(member));
    asked.is_ok_and(|asked| asked.iter().any(|asked| &*asked.kind == KIND))
}
