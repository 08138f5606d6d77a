//! Replies for a client of the same dialect: what the provider says passes as it came, and is read on the way, for all that the
//! gateway needs to know of it.

use bytes::Bytes;

use super::reply::{MessageEvents, read_whole};
use crate::models::reply::Sink;
use crate::models::wires::decoder::{Decoder, EventDecoder, EventStream, Progress, WholeReply};
use crate::models::wires::failure::Failure;
use crate::sse::SseEvent;

/// Reads events, and passes them on.
#[derive(Debug, Default)]
struct RelayedEvents {
    events: MessageEvents,
    has_begun: bool,
}

/// Returns the decoder of a reply that is events where the client wants events, and whole where it wants that.
pub(super) fn decoder(is_event_stream: bool) -> Box<dyn Decoder> {
    if is_event_stream {
        return Box::new(EventStream::new(RelayedEvents::default()));
    }
    Box::new(WholeReply::new(relay_whole))
}

fn relay_whole(body: &Bytes, sink: &mut dyn Sink) -> Result<(), Failure> {
    sink.begin_relay();
    read_whole(body, sink)?;
    sink.relay("", body);
    Ok(())
}

impl EventDecoder for RelayedEvents {
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
