//! Replies for a client of the same dialect: what the provider says passes as it came, and is read on the way, for all that the
//! gateway needs to know of it.

use bytes::Bytes;

use super::decoder::{
    Decoder, EventDecoder, EventFraming, EventStream, Frame, Progress, WholeReply,
};
use super::failure::Failure;
use crate::models::reply::Sink;

/// Reads events, and passes them on.
#[derive(Debug)]
struct RelayedEvents<D> {
    events: D,
    has_begun: bool,
}

/// Returns the decoder of a stream for a client that wants one; `events` reads it.
pub(super) fn events<D: EventDecoder + 'static>(
    events: D,
    framing: EventFraming,
) -> Box<dyn Decoder> {
    let relayed = RelayedEvents {
        events,
        has_begun: false,
    };
    Box::new(EventStream::new(relayed, framing))
}

/// Returns the decoder of a whole reply for a client that wants that; `read_whole` reads it.
pub(super) fn whole<F>(read_whole: F) -> Box<dyn Decoder>
where
    F: Fn(&Bytes, &mut dyn Sink) -> Result<(), Failure> + Send + Sync + 'static,
{
    Box::new(WholeReply::new(move |body: &Bytes, sink: &mut dyn Sink| {
        sink.begin_relay();
        read_whole(body, sink)?;
        sink.relay("", body);
        Ok(())
    }))
}

impl<D: EventDecoder> EventDecoder for RelayedEvents<D> {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        if !std::mem::replace(&mut self.has_begun, true) {
            sink.begin_relay();
        }
        let progress = self.events.event(event, sink)?;
        if !event.data.trim_ascii().is_empty() {
            sink.relay(event.name, event.data);
        }
        Ok(progress)
    }

    fn end(&mut self, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        self.events.end(sink)
    }
}
