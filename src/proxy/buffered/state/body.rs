//! The body of an attempt, as far as it is not sent.

use std::io;

use bytes::Bytes;

use crate::proxy::upload::BodyPiece;

/// A body in pieces, of which the first is in memory.
#[derive(Default)]
pub(super) struct UnsentBody {
    pieces: Vec<BodyPiece>,
    /// The index of the piece that is read, without the first.
    next_piece: usize,
    /// The bytes of that piece that were read.
    read_bytes: u64,
    is_sent: bool,
    /// Whether the session is calling the exchange with an empty piece of the body.
    is_calling: bool,
}

impl UnsentBody {
    pub(super) fn new(pieces: Vec<BodyPiece>) -> Self {
        Self {
            pieces,
            ..Self::default()
        }
    }

    /// Returns the body of an attempt whose request was sent.
    pub(super) fn sent() -> Self {
        Self {
            is_sent: true,
            ..Self::default()
        }
    }

    /// Lets the body count as unfinished until [`record_sent`](Self::record_sent).
    pub(super) fn call_exchange(&mut self) {
        self.is_calling = true;
    }

    /// Records that the pieces read so far are sent. Returns false if this was the session's call and nothing is
    /// sent.
    pub(super) fn record_sent(&mut self) -> bool {
        if std::mem::take(&mut self.is_calling) {
            return false;
        }
        self.is_sent = self.is_read();
        true
    }

    /// Records that the attempt has failed, so that nothing counts as sent.
    pub(super) fn record_failure(&mut self) {
        self.is_sent = false;
    }

    pub(super) fn is_sent(&self) -> bool {
        self.is_sent
    }

    pub(super) fn first_piece(&self) -> Option<Bytes> {
        self.pieces.first()?.in_memory().cloned()
    }

    /// Returns whether all pieces after the first were read, and the session is not calling.
    pub(super) fn is_done(&self) -> bool {
        self.is_read() && !self.is_calling
    }

    fn is_read(&self) -> bool {
        self.next_piece + 1 >= self.pieces.len()
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(BodyPiece::len).sum()
    }

    /// Returns the next bytes after the first piece, or `None` if there are none.
    ///
    /// Errors: an upload cannot be read.
    pub(super) fn next_bytes(&mut self) -> io::Result<Option<Bytes>> {
        let Some(piece) = self.pieces.get(self.next_piece + 1) else {
            return Ok(None);
        };
        let bytes = piece.read(self.read_bytes)?;
        self.read_bytes += bytes.len() as u64;
        if self.read_bytes >= piece.len() as u64 {
            self.next_piece += 1;
            self.read_bytes = 0;
        }
        Ok(Some(bytes))
    }
}
