//! Bytes of a reply on their way into a sink: as events, as one whole body, or as the reason of a refusal.

use bytes::Bytes;

use super::exception;
use super::failure::{Failure, FailureKind};
use super::wire::{Target, Wire};
use crate::event_frames::{self, EventFrame, FrameError, FrameKind, FrameReader};
use crate::models::chat::piece::{Finish, Piece};
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::speech::format::AudioFormat;
use crate::models::usage::Usage;
use crate::sse::{EventReader, SseEvent, TooLong};

/// How many bytes one whole reply may have.
const MAX_REPLY_BYTES: usize = 64 << 20;
/// How many bytes of a refusal are read.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// Reads one reply, however its bytes are cut.
pub trait Decoder: Send + Sync {
    /// Reads a piece of the body into `sink`.
    ///
    /// Errors: the reply is an error, or not what this wire says.
    fn feed(&mut self, bytes: &Bytes, sink: &mut dyn Sink) -> Result<Progress, Failure>;

    /// Ends a body whose reply was not complete yet, and reads the rest.
    ///
    /// Errors: as [`Decoder::feed`], and where the reply did not come to its proper end.
    fn end(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure>;

    /// Tells how many bytes the body has, where its head says so, before the first of them.
    fn expect(&mut self, _bytes: usize) {}

    /// Returns how many bytes a body may have that becomes one JSON text.
    fn max_bytes(&self) -> usize {
        MAX_REPLY_BYTES
    }

    /// Returns the format of the media that it passes on, where the head of the reply tells it.
    fn media_format(&self) -> Option<AudioFormat> {
        None
    }
}

/// How far a reply has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Progress {
    /// More is to come.
    Open,
    /// The reply is complete.
    Complete,
}

/// What the head of a provider's reply says.
#[derive(Clone, Copy, Debug)]
pub struct ReplyHead {
    /// The status.
    pub status: u16,
    /// How the body is divided into events; `None`: it is no event stream.
    pub events: Option<EventFraming>,
    /// Which file the body is, if it is one.
    pub file: Option<FileKind>,
    /// The tokens of the prompt, where the head tells them.
    pub prompt_tokens: Option<u64>,
    /// Whether the head of a refusal says that the account has used up what it may.
    pub is_by_quota: bool,
}

/// How an event stream is divided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventFraming {
    /// By blank lines: server-sent events.
    Sse,
    /// By lengths with checksums: frames of AWS.
    Frames,
}

impl EventFraming {
    /// Reads the value of `content-type`; `None`: it is no event stream.
    fn new(media_type: &[u8]) -> Option<Self> {
        let frames = event_frames::MEDIA_TYPE.as_bytes();
        let is_sse = media_type.starts_with(b"text/event-stream");
        let of_frames = || media_type.starts_with(frames).then_some(Self::Frames);
        is_sse.then_some(Self::Sse).or_else(of_frames)
    }
}

/// A body that is a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FileKind {
    /// Audio of a known format.
    Audio(AudioFormat),
    /// Bytes of which nothing is told.
    Other,
}

impl FileKind {
    /// Reads the value of `content-type`; `None`: it is a text.
    fn new(media_type: &[u8]) -> Option<Self> {
        if let Some(format) = AudioFormat::from_media_type(media_type) {
            return Some(Self::Audio(format));
        }
        let kinds: [&[u8]; 3] = [b"audio/", b"application/octet-stream", b"binary/"];
        let is_file = kinds.iter().any(|kind| {
            let start = media_type.get(..kind.len()).unwrap_or_default();
            start.eq_ignore_ascii_case(kind)
        });
        is_file.then_some(Self::Other)
    }
}

impl ReplyHead {
    /// Reads the status and the value of `content-type`.
    pub fn new(status: u16, media_type: &[u8]) -> Self {
        Self {
            status,
            events: EventFraming::new(media_type),
            file: FileKind::new(media_type),
            prompt_tokens: None,
            is_by_quota: false,
        }
    }
}

/// Returns the decoder of a reply; that of another status than 200 reads why, and always fails. `None`: the wire does not
/// offer the operation.
pub fn decode_reply(
    wire: &Wire,
    request: &ModelRequest,
    target: &Target<'_>,
    head: &ReplyHead,
) -> Option<Box<dyn Decoder>> {
    let codec = wire.codec(request.payload.operation())?;
    let decoder: Box<dyn Decoder> = match (head.status, request.is_stream) {
        (200, true) => codec.decoder(request, target, head),
        (200, false) => {
            let decoder = codec.decoder(request, target, head);
            Box::new(Folded {
                free_bytes: decoder.max_bytes(),
                decoder,
            })
        }
        (status, _) => Box::new(Refusal {
            classify: wire.classify,
            status,
            is_by_quota: head.is_by_quota,
            body: Vec::new(),
        }),
    };
    Some(match request.payload.images() {
        Some(_) => Box::new(FilteredImages(decoder)),
        None => decoder,
    })
}

/// A reply to a request for images: where a filter has refused it, it is an answer without images, and nothing is billed
/// that is not reported. Source: docs/facts/model-gateway.md 1.7, 8.2.
struct FilteredImages(Box<dyn Decoder>);

fn without_images(
    read: Result<Progress, Failure>,
    sink: &mut dyn Sink,
) -> Result<Progress, Failure> {
    read.or_else(|failure| {
        if !failure.is_by_filter() {
            return Err(failure);
        }
        sink.usage(Usage::default());
        sink.pieces(0, &[Piece::Finish(Finish::Filtered)]);
        Ok(Progress::Complete)
    })
}

impl Decoder for FilteredImages {
    fn feed(&mut self, bytes: &Bytes, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let read = self.0.feed(bytes, sink);
        without_images(read, sink)
    }

    fn end(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let read = self.0.end(sink);
        without_images(read, sink)
    }

    fn expect(&mut self, bytes: usize) {
        self.0.expect(bytes);
    }
}

/// A reply that is not a stream, so it has a bound, also if the provider sends a stream: one JSON text, all of which is in
/// memory, or a file.
struct Folded {
    decoder: Box<dyn Decoder>,
    free_bytes: usize,
}

impl Decoder for Folded {
    fn feed(&mut self, bytes: &Bytes, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let free = self.free_bytes.checked_sub(bytes.len());
        self.free_bytes = free.ok_or_else(too_long)?;
        self.decoder.feed(bytes, sink)
    }

    fn end(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        self.decoder.end(sink)
    }

    fn expect(&mut self, bytes: usize) {
        self.decoder.expect(bytes);
    }

    fn media_format(&self) -> Option<AudioFormat> {
        self.decoder.media_format()
    }
}

fn too_long() -> Failure {
    Failure::malformed("the provider's reply is too long")
}

/// One event of a stream, however the stream is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// The type of the event, or empty.
    pub(super) name: &'a str,
    pub(super) data: &'a [u8],
}

/// Reads the events of one stream.
pub(super) trait EventDecoder: Send + Sync {
    /// Reads one event into `sink`.
    ///
    /// Errors: the event is an error, or not what this wire says.
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure>;

    /// The stream has ended.
    ///
    /// Errors: it did not come to its proper end.
    fn end(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure>;
}

/// A reply that is an event stream. What follows the terminal event is not read.
pub(super) struct EventStream<D> {
    reader: Reader,
    events: D,
    progress: Progress,
}

/// Finds the events of a stream.
enum Reader {
    Sse(EventReader),
    Frames(FrameReader),
}

impl<D: EventDecoder> EventStream<D> {
    pub(super) fn new(events: D, framing: EventFraming) -> Self {
        Self {
            reader: match framing {
                EventFraming::Sse => Reader::Sse(EventReader::default()),
                EventFraming::Frames => Reader::Frames(FrameReader::default()),
            },
            events,
            progress: Progress::Open,
        }
    }
}

impl<D: EventDecoder> Decoder for EventStream<D> {
    fn feed(&mut self, bytes: &Bytes, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let Self {
            reader,
            events,
            progress,
        } = self;
        if *progress == Progress::Complete {
            return Ok(Progress::Complete);
        }
        match reader {
            Reader::Sse(reader) => reader.feed(bytes, |event| {
                read_event(events, progress, event.into(), sink)
            })?,
            Reader::Frames(reader) => {
                let read = reader.feed(bytes, |frame| read_frame(events, progress, &frame, sink));
                match read {
                    Err(ReadError::Complete) => {}
                    read => read?,
                }
            }
        }
        Ok(self.progress)
    }

    fn end(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let Self {
            reader,
            events,
            progress,
        } = self;
        match reader {
            Reader::Sse(reader) => {
                reader.finish(|event| read_event(events, progress, event.into(), sink))?;
            }
            Reader::Frames(reader) if *progress == Progress::Open => {
                reader.finish().map_err(ReadError::from)?;
            }
            Reader::Frames(_) => {}
        }
        if self.progress == Progress::Open {
            self.progress = self.events.end(sink)?;
        }
        Ok(self.progress)
    }
}

impl<'a> From<SseEvent<'a>> for Frame<'a> {
    fn from(event: SseEvent<'a>) -> Self {
        Self {
            name: event.name,
            data: event.data,
        }
    }
}

fn read_event<D: EventDecoder>(
    events: &mut D,
    progress: &mut Progress,
    event: Frame<'_>,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    if *progress == Progress::Open {
        *progress = events.event(event, sink)?;
    }
    Ok(())
}

fn read_frame<D: EventDecoder>(
    events: &mut D,
    progress: &mut Progress,
    frame: &EventFrame<'_>,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let (name, data) = (frame.name, frame.payload);
    match frame.kind {
        FrameKind::Event => read_event(events, progress, Frame { name, data }, sink)?,
        FrameKind::Exception => return Err(exception::classify_exception(name, data).into()),
        FrameKind::Error => return Err(exception::classify_error(name, data).into()),
    }
    match progress {
        Progress::Open => Ok(()),
        Progress::Complete => Err(ReadError::Complete),
    }
}

/// Why reading events stopped.
enum ReadError {
    /// The reply is complete, so what follows is not read.
    Complete,
    TooLong,
    Broken(FrameError),
    Failed(Failure),
}

impl From<TooLong> for ReadError {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}

impl From<FrameError> for ReadError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLong => Self::TooLong,
            error => Self::Broken(error),
        }
    }
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::TooLong => Self::malformed("an event of the provider is longer than 16 MiB"),
            ReadError::Broken(FrameError::Cut) => truncated(),
            ReadError::Broken(FrameError::Checksum) => {
                Self::malformed("a frame of the provider has a wrong checksum")
            }
            ReadError::Complete | ReadError::Broken(_) => {
                Self::malformed("a frame of the provider cannot be read")
            }
            ReadError::Failed(failure) => failure,
        }
    }
}

/// A reply that is read when its whole body has come.
pub(super) struct WholeReply<R> {
    body: WholeBody,
    max_bytes: usize,
    read: R,
}

/// A body in the making: the only piece as it came, or several pieces joined.
#[derive(Default)]
struct WholeBody {
    only: Bytes,
    joined: Vec<u8>,
    /// How many bytes it will have, where that is known.
    expected: usize,
}

/// Room behind a joined body, so that the end of a response fits there.
const ROOM_BYTES: usize = 1024;

impl WholeBody {
    fn len(&self) -> usize {
        self.only.len() + self.joined.len()
    }

    fn push(&mut self, piece: &Bytes) {
        if self.len() == 0 {
            self.only = piece.clone();
            return;
        }
        if self.joined.is_empty() {
            let come = 2 * (self.only.len() + piece.len());
            self.joined.reserve(come.max(self.expected + ROOM_BYTES));
            self.joined
                .extend_from_slice(&std::mem::take(&mut self.only));
        }
        self.joined.extend_from_slice(piece);
    }

    fn take(&mut self) -> Bytes {
        if self.joined.is_empty() {
            std::mem::take(&mut self.only)
        } else {
            std::mem::take(&mut self.joined).into()
        }
    }
}

impl<R> WholeReply<R>
where
    R: Fn(&Bytes, &mut dyn Sink) -> Result<(), Failure> + Send + Sync,
{
    pub(super) fn new(read: R) -> Self {
        Self {
            body: WholeBody::default(),
            max_bytes: MAX_REPLY_BYTES,
            read,
        }
    }

    /// Sets how many bytes the body may have.
    pub(super) fn with_max(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }
}

impl<R> Decoder for WholeReply<R>
where
    R: Fn(&Bytes, &mut dyn Sink) -> Result<(), Failure> + Send + Sync,
{
    fn feed(&mut self, bytes: &Bytes, _: &mut dyn Sink) -> Result<Progress, Failure> {
        if self.body.len() + bytes.len() > self.max_bytes {
            return Err(too_long());
        }
        self.body.push(bytes);
        Ok(Progress::Open)
    }

    fn end(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        (self.read)(&self.body.take(), sink)?;
        Ok(Progress::Complete)
    }

    fn expect(&mut self, bytes: usize) {
        self.body.expected = bytes.min(self.max_bytes);
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes
    }
}

/// A refusal, of which only the beginning counts.
struct Refusal {
    classify: fn(u16, &[u8]) -> Failure,
    status: u16,
    is_by_quota: bool,
    body: Vec<u8>,
}

impl Refusal {
    /// Returns what the body says. A status that the next provider may mend counts, whatever the body says.
    fn failure(&self) -> Failure {
        let by_body = (self.classify)(self.status, &self.body);
        let by_status = Failure::refused(self.status, "");
        match by_status.is_retryable {
            true => Failure {
                kind: by_status.kind,
                is_retryable: true,
                ..by_body
            },
            false => Failure {
                is_retryable: by_body.is_retryable || self.is_by_quota,
                ..by_body
            },
        }
    }
}

impl Decoder for Refusal {
    fn feed(&mut self, bytes: &Bytes, _: &mut dyn Sink) -> Result<Progress, Failure> {
        if self.body.len() + bytes.len() > MAX_REFUSAL_BYTES {
            return Err(self.failure());
        }
        self.body.extend_from_slice(bytes);
        Ok(Progress::Open)
    }

    fn end(&mut self, _: &mut dyn Sink) -> Result<Progress, Failure> {
        Err(self.failure())
    }
}

/// The failure of a stream that ended before its end.
pub(super) fn truncated() -> Failure {
    Failure::new(FailureKind::Truncated)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    struct Nobody;

    impl Sink for Nobody {}

    /// A stream whose end never comes.
    struct Endless;

    impl Decoder for Endless {
        fn feed(&mut self, _: &Bytes, _: &mut dyn Sink) -> Result<Progress, Failure> {
            Ok(Progress::Open)
        }

        fn end(&mut self, _: &mut dyn Sink) -> Result<Progress, Failure> {
            Ok(Progress::Complete)
        }
    }

    #[test]
    fn a_stream_that_becomes_one_text_has_a_bound() {
        let mut folded = Folded {
            decoder: Box::new(Endless),
            free_bytes: 10,
        };
        let piece = Bytes::from_static(b"12345");
        for _ in 0..2 {
            assert!(folded.feed(&piece, &mut Nobody).is_ok());
        }
        let failure = folded.feed(&piece, &mut Nobody).unwrap_err();
        assert!(failure.message.contains("too long"), "{failure:?}");
    }
}
