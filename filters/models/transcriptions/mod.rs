//! What a transcription or a translation asks for: audio in, text out.

use std::ops::Range;

use bytes::Bytes;

pub mod container;
mod duration;
pub mod format;

pub use duration::AudioTime;
use format::TranscriptFormat;

/// The facts of a request for a transcription or a translation.
#[derive(Clone, Debug)]
pub struct TranscriptionFacts {
    /// Whether the text shall be English, whatever is spoken.
    pub is_translation: bool,
    /// The form of the response.
    pub format: TranscriptFormat,
    /// All texts of the form but the model, the format and `stream`, by name and in order.
    pub fields: Vec<(Box<str>, Bytes)>,
    pub audio: AudioFile,
    /// Divides the parts of a form that goes to a provider; no content holds it.
    pub boundary: Box<str>,
}

/// A file of audio, whose bytes are not in memory.
#[derive(Clone, Debug)]
pub struct AudioFile {
    /// Its name, with the ending of its format.
    pub name: Box<str>,
    pub media_type: Box<str>,
    /// Where its bytes stand in what the client has uploaded.
    pub range: Range<u64>,
    pub time: AudioTime,
}
