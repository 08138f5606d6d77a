//! A reply that is a file: its bytes pass on as they come.

use bytes::Bytes;

use super::decoder::{Decoder, Progress};
use super::failure::Failure;
use crate::models::reply::Sink;
use crate::models::speech::format::AudioFormat;

/// Passes the bytes of a file on, without a copy.
#[derive(Debug)]
pub(super) struct MediaReply {
    format: Option<AudioFormat>,
    is_empty: bool,
}

impl MediaReply {
    /// A file of this format, where it is known.
    pub(super) fn new(format: Option<AudioFormat>) -> Self {
        Self {
            format,
            is_empty: true,
        }
    }
}

impl Decoder for MediaReply {
    fn feed(&mut self, bytes: &Bytes, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        if !bytes.is_empty() {
            self.is_empty = false;
            sink.media(bytes);
        }
        Ok(Progress::Open)
    }

    fn end(&mut self, _: &mut dyn Sink) -> Result<Progress, Failure> {
        match self.is_empty {
            true => Err(Failure::malformed("the provider's reply is an empty file")),
            false => Ok(Progress::Complete),
        }
    }

    fn media_format(&self) -> Option<AudioFormat> {
        self.format
    }
}
