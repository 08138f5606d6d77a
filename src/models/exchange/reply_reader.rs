//! Reads a reply piece by piece, and makes the response of it.

use std::borrow::Cow;

use bytes::Bytes;
use filters::models::chat::piece::{Finish, Piece};
use filters::models::exported_content::{CopyingText, CutText};
use filters::models::reply::{Reported, ResponseKind, Sink, StructuredAnswer, Writer};
use filters::models::reply_cache::recorder::{Recording, ReplyRecorder};
use filters::models::search_loop::turn::{SearchTurn, TurnSink};
use filters::models::usage::Usage;
use filters::models::wires::{Decoder, Failure, Progress};
use filters::money::{ServiceTier, UnitCounts};

use super::finish_reasons::{FinishReasons, NotingSink};

/// The reader of a reply.
#[derive(Default)]
pub(super) struct ReplyReader {
    writer: Option<Box<dyn Writer>>,
    /// The decoder, once the head of the reply has arrived.
    decoder: Option<Box<dyn Decoder>>,
    /// The failure of a status after which the next provider may be tried, unless the body says otherwise.
    refusal: Option<Failure>,
    is_complete: bool,
    /// Records the reply if the cache stores it.
    recorder: Option<ReplyRecorder>,
    /// The turn that is read, if the answer has several.
    turn: Option<Box<SearchTurn>>,
    /// The text of the answer, if the export of logs gets it.
    answer: Option<Box<CutText>>,
    /// Why choices have ended, if the call is traced.
    finishes: Option<FinishReasons>,
}

impl ReplyReader {
    /// Makes a reader that writes to this writer. `turn` is the first of several.
    pub(super) fn new(
        writer: Box<dyn Writer>,
        recorder: Option<ReplyRecorder>,
        turn: Option<Box<SearchTurn>>,
    ) -> Self {
        Self {
            writer: Some(writer),
            decoder: None,
            refusal: None,
            is_complete: false,
            recorder,
            turn,
            answer: None,
            finishes: None,
        }
    }

    /// Keeps the text of the answer from here on; `answer` is what has come of it.
    #[must_use]
    pub(super) fn keeping_text(mut self, answer: Option<CutText>) -> Self {
        self.answer = answer.map(Box::new);
        self
    }

    /// Returns the text of the answer, as it went out where it was repaired; empty if it is not kept.
    pub(super) fn answer_text(&self) -> Cow<'_, CutText> {
        match (&self.answer, self.structured()) {
            (None, _) => Cow::Owned(CutText::default()),
            (Some(_), Some(repaired)) => Cow::Owned(CutText::from_text(repaired.text)),
            (Some(answer), None) => Cow::Borrowed(answer),
        }
    }

    /// Lets it note why choices end.
    pub(super) fn noting_finishes(mut self) -> Self {
        self.finishes = Some(FinishReasons::default());
        self
    }

    /// Returns why the choices have ended, in their order, as far as that was noted.
    pub(super) fn finish_reasons(&self) -> Vec<&'static str> {
        let noted = self.finishes.as_ref();
        noted.map(FinishReasons::in_order).unwrap_or_default()
    }

    /// Reads the body of the reply with this decoder. `tier` is the tier in the head.
    pub(super) fn open(&mut self, decoder: Box<dyn Decoder>, tier: Option<ServiceTier>) {
        if let Some(writer) = &mut self.writer {
            if let Some(format) = decoder.media_format() {
                writer.media_format(format);
            }
            if let Some(tier) = tier {
                writer.service_tier(tier);
            }
        }
        self.decoder = Some(decoder);
    }

    /// Stores the failure of a status after which the next provider may be tried.
    pub(super) fn refuse(&mut self, refusal: Failure) {
        self.refusal = Some(refusal);
    }

    /// Records that the whole response has been made.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Returns the form in which the response is sent.
    pub(super) fn kind(&self) -> Option<ResponseKind> {
        self.writer.as_ref().map(|writer| writer.kind())
    }

    /// Ends a part of the reply; the next one follows.
    pub(super) fn end_part(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.end_part();
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.end_part();
        }
    }

    /// Begins the reply to another part than the first one, or to the same part again.
    pub(super) fn begin_part(&mut self) {
        self.decoder = None;
        self.refusal = None;
        if let Some(writer) = &mut self.writer {
            writer.begin_part();
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.begin_part();
        }
    }

    /// Begins a later turn, or the same one again.
    pub(super) fn begin_turn(&mut self, turn: Option<Box<SearchTurn>>) {
        self.decoder = None;
        self.refusal = None;
        self.turn = turn;
    }

    /// Returns whether the turn has ended with nothing but searches left to do.
    pub(super) fn wants_search(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.wants_search())
    }

    /// Returns whether the turn calls tools of the client's.
    pub(super) fn has_calls(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.has_others())
    }

    /// Gives the writer what was held for the end of the turn.
    pub(super) fn release_turn(&mut self) {
        if let (Some(turn), Some(writer)) = (&mut self.turn, &mut self.writer) {
            turn.release(writer.as_mut());
        }
    }

    /// Returns whether a turn is read.
    pub(super) fn is_in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// Takes the turn that has ended.
    pub(super) fn take_turn(&mut self) -> Option<Box<SearchTurn>> {
        self.turn.take()
    }

    /// Tells the writer that the answer pauses here.
    pub(super) fn pause(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.pieces(0, &[Piece::Finish(Finish::Paused)]);
        }
    }

    /// Records that more of the response follows.
    pub(super) fn reopen(&mut self) {
        self.is_complete = false;
    }

    /// Takes the record of the reply.
    pub(super) fn take_recorder(&mut self) -> Option<ReplyRecorder> {
        self.recorder.take()
    }

    /// Returns whether the head of the reply has arrived.
    pub(super) fn is_open(&self) -> bool {
        self.decoder.is_some()
    }

    /// Reads a piece of a reply before the client gets any of it. Returns whether content has come, held back or not.
    pub(super) fn read_ahead(&mut self, chunk: &Bytes, is_end: bool) -> Result<bool, Failure> {
        let progress = self.read(chunk, is_end)?;
        let has_content = self.writer.as_ref().is_some_and(|it| it.has_content());
        Ok(has_content || self.holds_text() || progress == Progress::Complete)
    }

    /// Returns whether the whole response has been made.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the failure of a status after which the next provider may be tried, once.
    pub(super) fn take_refusal(&mut self) -> Option<Failure> {
        self.refusal.take()
    }

    /// Returns the writer of the response.
    pub(super) fn writer_mut(&mut self) -> Option<&mut (dyn Writer + 'static)> {
        self.writer.as_deref_mut()
    }

    /// Returns whether the writer holds back text.
    pub(super) fn holds_text(&self) -> bool {
        self.writer
            .as_ref()
            .is_some_and(|writer| writer.holds_text())
    }

    /// Ends the text that the writer holds back. `is_whole` tells that it did not break off.
    pub(super) fn end_text(&mut self, is_whole: bool) {
        if let Some(writer) = &mut self.writer {
            writer.end_text(is_whole);
        }
    }

    /// Returns the answer if it was held back for repair.
    pub(super) fn structured(&self) -> Option<StructuredAnswer<'_>> {
        self.writer.as_ref()?.structured()
    }

    /// Returns the usage of the current reply, as reported, or otherwise as estimated from the request. `is_whole`
    /// tells that the reply has ended, and `asked` are the units that the request asks for.
    pub(super) fn usage(&self, prompt_bytes: u64, asked: UnitCounts, is_whole: bool) -> Usage {
        let reported = self.reported();
        let usage = reported.to_usage(prompt_bytes, is_whole);
        match reported.usage {
            Some(_) => usage,
            None => Usage {
                units: asked,
                ..usage
            },
        }
    }

    /// Returns the provider's report so far.
    pub(super) fn reported(&self) -> Reported {
        if let Some(turn) = &self.turn {
            return turn.reported();
        }
        let writer = self.writer.as_ref();
        writer.map(|writer| writer.reported()).unwrap_or_default()
    }

    /// Returns the tier that the provider reports.
    pub(super) fn service_tier(&self) -> Option<ServiceTier> {
        self.reported().service_tier
    }

    /// Reads a piece of the reply into the response. Errors: those of the wire, and a reply that has ended without an
    /// answer.
    pub(super) fn read_whole(&mut self, chunk: &Bytes, is_end: bool) -> Result<Progress, Failure> {
        let progress = self.read(chunk, is_end)?;
        let lack = match &self.turn {
            Some(turn) => turn.lack(),
            None => self.writer.as_ref().and_then(|writer| writer.lack()),
        };
        match lack {
            Some(lack) if progress == Progress::Complete => Err(Failure::malformed(lack)),
            _ => Ok(progress),
        }
    }

    fn read(&mut self, chunk: &Bytes, is_end: bool) -> Result<Progress, Failure> {
        let (Some(writer), Some(decoder)) = (&mut self.writer, &mut self.decoder) else {
            return Err(Failure::malformed("a body came before its head"));
        };
        let (mut copying, mut noting);
        let mut sink: &mut dyn Sink = writer.as_mut();
        if let Some(answer) = &mut self.answer {
            copying = CopyingText { sink, answer };
            sink = &mut copying;
        }
        if let Some(reasons) = &mut self.finishes {
            noting = NotingSink { sink, reasons };
            sink = &mut noting;
        }
        if let Some(turn) = &mut self.turn {
            let mut sink = TurnSink { turn, client: sink };
            return decode(decoder.as_mut(), chunk, is_end, &mut sink);
        }
        match &mut self.recorder {
            None => decode(decoder.as_mut(), chunk, is_end, sink),
            Some(recorder) => {
                let mut recording = Recording { sink, recorder };
                decode(decoder.as_mut(), chunk, is_end, &mut recording)
            }
        }
    }
}

fn decode(
    decoder: &mut dyn Decoder,
    chunk: &Bytes,
    is_end: bool,
    sink: &mut dyn Sink,
) -> Result<Progress, Failure> {
    let progress = decoder.feed(chunk, sink)?;
    if is_end && progress == Progress::Open {
        return decoder.end(sink);
    }
    Ok(progress)
}
