//! Notes why the choices of an answer have ended, for its trace.

use std::ops::Range;

use bytes::Bytes;
use filters::json::Str;
use filters::models::chat::piece::{Finish, Piece};
use filters::models::reply::Sink;

/// The maximum number of choices whose ends are noted.
const MAX_CHOICES: usize = 64;

/// Why choices have ended, by their number.
#[derive(Default)]
pub(super) struct FinishReasons(Vec<(u32, &'static str)>);

impl FinishReasons {
    /// Returns the reasons, in the order of the choices.
    pub(super) fn in_order(&self) -> Vec<&'static str> {
        let mut noted = self.0.clone();
        noted.sort_by_key(|(choice, _)| *choice);
        noted.into_iter().map(|(_, reason)| reason).collect()
    }

    fn note(&mut self, choice: u32, finish: &Finish<'_>) {
        let reason = reason(finish);
        if let Some((_, last)) = self.0.iter_mut().find(|(noted, _)| *noted == choice) {
            *last = reason;
        } else if self.0.len() < MAX_CHOICES {
            self.0.push((choice, reason));
        }
    }
}

/// Returns a reason in the words of the conventions for generative AI.
fn reason(finish: &Finish<'_>) -> &'static str {
    match finish {
        Finish::Stop | Finish::Sequence(_) => "stop",
        Finish::Length | Finish::ContextFull => "length",
        Finish::ToolCalls => "tool_call",
        Finish::Paused => "pause",
        Finish::Filtered => "content_filter",
    }
}

/// A sink that notes reasons and passes all on.
pub(super) struct NotingSink<'s> {
    pub(super) sink: &'s mut dyn Sink,
    pub(super) reasons: &'s mut FinishReasons,
}

impl Sink for NotingSink<'_> {
    fn inner(&mut self) -> Option<&mut dyn Sink> {
        Some(self.sink)
    }

    fn pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
        for piece in pieces {
            if let Piece::Finish(finish) = piece {
                self.reasons.note(choice, finish);
            }
        }
        self.sink.pieces(choice, pieces);
    }

    fn text(&mut self, choice: u32, text: Str<'_>) {
        self.sink.text(choice, text);
    }

    fn items(&mut self, body: &Bytes, place: Range<usize>) {
        self.sink.items(body, place);
    }
}
