//! For the tests of families: replies replayed into one whole answer.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;

use super::{Failure, Progress, Target, Wire};
use crate::models::fronts::chat_completions::fold::WholeWriter;
use crate::models::metadata::write_usage;
use crate::models::reply::ReplyIdentity;
use crate::models::reply::Writer;
use crate::models::usage::Settlement;
use crate::sse;

/// An answer without a word yet.
pub(super) fn answer() -> WholeWriter {
    WholeWriter::new(ReplyIdentity {
        id: "chatcmpl-made".into(),
        created: 7,
        model: "provider/model".into(),
    })
}

/// The answer as the client would get it, without metadata.
pub(super) fn render(mut answer: WholeWriter) -> Value {
    let usage = answer.reported().usage.map_or(b"null".to_vec(), |usage| {
        write_usage(&Settlement { usage, cost: None })
    });
    serde_json::from_slice(&answer.render(&usage, b"{}")).unwrap()
}

/// Folds a stream cut into pieces of this many bytes.
pub(super) fn fold(
    provider: &dyn Wire,
    target: &Target<'_>,
    text: &str,
    piece: usize,
) -> Result<Value, Failure> {
    let mut sink = answer();
    let mut decoder = provider.stream(target);
    let mut reader = sse::EventReader::default();
    let mut progress = Ok(Progress::Open);
    let mut take = |event: sse::SseEvent<'_>| {
        if matches!(progress, Ok(Progress::Open)) {
            progress = decoder.event(event, &mut sink);
        }
        Ok::<(), sse::TooLong>(())
    };
    for chunk in text.as_bytes().chunks(piece) {
        reader.feed(chunk, &mut take).unwrap();
    }
    if progress? == Progress::Open {
        assert_eq!(decoder.ended(&mut sink)?, Progress::Complete);
    }
    Ok(render(sink))
}

/// A whole reply.
pub(super) fn whole(
    provider: &dyn Wire,
    target: &Target<'_>,
    body: &Value,
) -> Result<Value, Failure> {
    let mut sink = answer();
    provider.decode(body.to_string().as_bytes(), target, &mut sink)?;
    Ok(render(sink))
}
