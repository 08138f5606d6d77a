//! For the tests of wires: replies replayed into one whole answer.
#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;
use serde_json::{Value, json};

use super::{EventFraming, Failure, Progress, ReplyHead, Target, Wire};
use crate::models::dialects::Dialect;
use crate::models::dialects::state::{Maker, States};
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::fronts::chat_completions::whole::WholeWriter;
use crate::models::metadata::write_usage;
use crate::models::reply::{ReplyIdentity, Sink, Writer};
use crate::models::request::{Effort, ModelRequest};
use crate::models::routing::parameters::Parameters;
use crate::models::routing::thinking::{Thinking, ThinkingControl, WrittenThinking};
use crate::models::usage::Settlement;

/// The head of an event stream.
pub(in crate::models::wires) const EVENTS: ReplyHead = ReplyHead {
    is_by_quota: false,
    status: 200,
    events: Some(EventFraming::Sse),
    file: None,
    prompt_tokens: None,
};
/// The head of a whole reply.
pub(in crate::models::wires) const WHOLE: ReplyHead = ReplyHead {
    is_by_quota: false,
    status: 200,
    events: None,
    file: None,
    prompt_tokens: None,
};

/// A plain request.
pub(in crate::models::wires) fn request() -> ModelRequest {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    ChatCompletions.parse(body.to_string().into()).unwrap()
}

/// State that a maker has made in a dialect, under its seal.
pub(in crate::models::wires) fn seal(dialect: Dialect, maker: &str, state: &str) -> String {
    Maker::from_name(States::NONE, maker).seal(dialect, state)
}

/// Feeds pieces of a reply to the wire's decoder.
pub(in crate::models::wires) fn feed<'p>(
    wire: &Wire,
    target: &Target<'_>,
    head: &ReplyHead,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let mut decoder = wire.decoder(&request(), target, head);
    let mut progress = Progress::Open;
    for piece in pieces {
        if progress == Progress::Open {
            progress = decoder.feed(&Bytes::copy_from_slice(piece), sink)?;
        }
    }
    if progress == Progress::Open {
        assert_eq!(decoder.end(sink)?, Progress::Complete);
    }
    Ok(())
}

/// An answer without a word yet.
fn answer(target: &Target<'_>) -> WholeWriter {
    WholeWriter::new(ReplyIdentity {
        id: "chatcmpl-made".into(),
        created: 7,
        model: "provider/model".into(),
        maker: (&*target.maker.name()).into(),
    })
}

/// The answer as the client would get it, without metadata.
fn render(mut answer: WholeWriter) -> Value {
    let usage = answer.reported().usage;
    let write_reported = |out: &mut Vec<u8>| match usage {
        Some(usage) => write_usage(&Settlement { usage, cost: None }, out),
        None => out.extend_from_slice(b"null"),
    };
    let response = answer.render(0, write_reported, |out| out.extend_from_slice(b"{}"));
    serde_json::from_slice(&response).unwrap()
}

/// Folds a stream cut into pieces of this many bytes.
pub(in crate::models::wires) fn fold(
    wire: &Wire,
    target: &Target<'_>,
    text: &str,
    piece: usize,
) -> Result<Value, Failure> {
    fold_pieces(wire, target, text.as_bytes().chunks(piece))
}

/// Folds a stream that comes in these pieces.
pub(in crate::models::wires) fn fold_pieces<'p>(
    wire: &Wire,
    target: &Target<'_>,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Result<Value, Failure> {
    fold_under(wire, target, &EVENTS, pieces)
}

/// Folds a stream with this head.
pub(in crate::models::wires) fn fold_under<'p>(
    wire: &Wire,
    target: &Target<'_>,
    head: &ReplyHead,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Result<Value, Failure> {
    let mut sink = answer(target);
    feed(wire, target, head, pieces, &mut sink)?;
    Ok(render(sink))
}

/// A whole reply.
pub(in crate::models::wires) fn whole(
    wire: &Wire,
    target: &Target<'_>,
    body: &Value,
) -> Result<Value, Failure> {
    whole_bytes(wire, target, body.to_string().as_bytes())
}

/// A whole reply of these bytes.
pub(in crate::models::wires) fn whole_bytes(
    wire: &Wire,
    target: &Target<'_>,
    body: &[u8],
) -> Result<Value, Failure> {
    let mut sink = answer(target);
    feed(wire, target, &WHOLE, [body], &mut sink)?;
    Ok(render(sink))
}

/// What a mapping of a wire does with parameters, and how it is told to reason.
pub(in crate::models::wires) struct Told {
    pub(in crate::models::wires) parameters: Parameters,
    pub(in crate::models::wires) thinking: Thinking,
}

/// A mapping that reasons, of this control and these efforts; the rest is what the wire says.
pub(in crate::models::wires) fn told(
    wire: &Wire,
    control: Option<ThinkingControl>,
    efforts: &[&str],
) -> &'static Told {
    let efforts: Vec<Effort> = Effort::ALL
        .into_iter()
        .filter(|effort| efforts.contains(&effort.as_str()))
        .collect();
    let written = WrittenThinking {
        control,
        efforts: &efforts,
        reasons: Some(true),
        ..WrittenThinking::default()
    };
    let defaults = wire.defaults();
    Box::leak(Box::new(Told {
        thinking: Thinking::new(&written, &defaults.thinking).unwrap(),
        parameters: defaults.parameters,
    }))
}
