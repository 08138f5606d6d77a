//! Replies for a client of the same dialect: what the provider says passes as it came, and is read on the way, for all that the
//! gateway needs to know of it.

use bytes::Bytes;

use super::decoder::{Decoder, EventDecoder, EventStream, Progress, WholeReply};
use super::failure::Failure;
use crate::models::reply::Sink;
use crate::sse::SseEvent;

/// Reads events, and passes them on.
#[derive(Debug, Default)]
struct RelayedEvents<D> {
    events: D,
    has_begun: bool,
}

/// Reads a whole reply.
type ReadWhole = fn(&Bytes, &mut dyn Sink) -> Result<(), Failure>;

/// Returns the decoder of a reply that is events, which a `D` reads, where the client wants events, and whole where it wants that.
pub(super) fn decoder<D: EventDecoder + Default + 'static>(
    is_event_stream: bool,
    read_whole: ReadWhole,
) -> Box<dyn Decoder> {
    if is_event_stream {
        return Box::new(EventStream::new(RelayedEvents::<D>::default()));
    }
    Box::new(WholeReply::new(move |body: &Bytes, sink: &mut dyn Sink| {
        sink.begin_relay();
        read_whole(body, sink)?;
        sink.relay("", body);
        Ok(())
    }))
}

impl<D: EventDecoder> EventDecoder for RelayedEvents<D> {
    fn event(&mut self, event: SseEvent<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
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
