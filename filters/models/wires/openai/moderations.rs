//! Moderations: input and results pass as they are. Some providers leave it to the client whether a result counts as
//! flagged: it does where any of its categories does.

use bytes::Bytes;

use super::usage;
use crate::fault::{Fault, FaultKind};
use crate::json::{Error, Walker};
use crate::models::moderations::ModerationFacts;
use crate::models::reply::Sink;
use crate::models::request::{ModelRequest, RequestMember};
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::WholeReply;
use crate::models::wires::failure::Failure;
use crate::models::wires::scan::{items, object, reply};
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// Members of the convention; a strict provider gets no others.
const KNOWN: [&str; 2] = ["model", "input"];

pub(super) static CODEC: OperationCodec<ModerationFacts> =
    OperationCodec::new("moderations", encode, |_, facts, _, _| {
        let facts = *facts;
        Box::new(WholeReply::new(move |body, sink| read(body, facts, sink)))
    });

fn encode(
    request: &ModelRequest,
    facts: &ModerationFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let source = &request.source;
    let mut splice = Splice::new(&source.body);
    splice.new_bytes(b"{\"model\":");
    splice.new_string(target.model);
    for member in &source.members {
        match &*member.key {
            "model" => {}
            "input" if facts.is_text_parts => {
                let text = joined(&source.body, member).map_err(internal)?;
                splice.new_bytes(b",\"input\":\"");
                splice.new_bytes(&text);
                splice.new_bytes(b"\"");
            }
            key if key == "input" || target.quirks.passes_unknown(key, &KNOWN) => {
                splice.new_bytes(b",");
                splice.slice(member.whole.clone());
            }
            _ => {}
        }
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

/// The inside of the string that the texts of all parts are together, a line for each.
fn joined(body: &Bytes, member: &RequestMember) -> Result<Vec<u8>, Error> {
    let mut joined = Vec::with_capacity(member.value.len());
    let parts = body.get(member.value.clone()).unwrap_or_default();
    Walker::new(parts)?.array(|walk, index| {
        if index > 0 {
            joined.extend_from_slice(b"\\n");
        }
        walk.object(|walk, key| {
            match &*key {
                "text" => walk.string()?.write_contents(&mut joined),
                _ => _ = walk.skip()?,
            }
            Ok(())
        })
    })?;
    Ok(joined)
}

fn internal(error: Error) -> Fault {
    Fault::new(FaultKind::Internal, "the request could not be translated")
        .with_detail(format!("checked parts do not walk: {error}"))
}

fn read(body: &[u8], facts: ModerationFacts, sink: &mut dyn Sink) -> Result<(), Failure> {
    let [results, reported] = reply(body, ["results", "usage"])?;
    let results = items(results).unwrap_or_default().into_iter().map(result);
    let results: Option<Vec<ReadResult<'_>>> = results.collect();
    let results = results.filter(|results| results.len() == facts.results);
    let results = results.ok_or_else(|| {
        Failure::malformed("the provider's reply does not hold one result for each input")
    })?;
    let mut out = Vec::new();
    for result in results {
        out.clear();
        result.write(&mut out);
        sink.item(&out);
    }
    let reported = usage::read(&mut Walker::over(reported), false);
    if let Some(usage) = reported.ok().flatten().filter(|usage| !usage.is_zero()) {
        sink.usage(Usage {
            prompt: usage.prompt,
            ..Usage::default()
        });
    }
    Ok(())
}

/// A result as it stands in the reply.
struct ReadResult<'a> {
    whole: &'a str,
    is_marked: bool,
    is_flagged: bool,
}

impl ReadResult<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        if self.is_marked {
            out.extend_from_slice(self.whole.as_bytes());
            return;
        }
        let mark: &[u8] = match self.is_flagged {
            true => b"{\"flagged\":true,",
            false => b"{\"flagged\":false,",
        };
        out.extend_from_slice(mark);
        let rest = self.whole.strip_prefix('{').unwrap_or_default();
        out.extend_from_slice(rest.as_bytes());
    }
}

/// Reads a result; `None`: it is not one.
fn result(whole: &str) -> Option<ReadResult<'_>> {
    let [flagged, categories, scores] =
        object(whole, ["flagged", "categories", "category_scores"])?;
    let is_good = matches!(flagged, "" | "true" | "false") && scores.starts_with('{');
    let mut is_flagged = false;
    let walked = Walker::over(categories).object(|walk, _| {
        is_flagged |= walk.skip()? == "true";
        Ok::<(), Error>(())
    });
    (is_good && walked.is_ok()).then_some(ReadResult {
        whole,
        is_marked: !flagged.is_empty(),
        is_flagged,
    })
}
