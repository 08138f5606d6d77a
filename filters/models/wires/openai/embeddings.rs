//! Embeddings on the wire that has our shapes: the request passes as slices, and so do the items of the reply.
//!
//! Some servers give numbers where base64 was asked for, or the other way round: such a vector is written anew.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::request::{new_member, quoted};
use super::splice::Splice;
use super::usage;
use crate::fault::Fault;
use crate::json::{Error, Type, Walker};
use crate::models::embeddings::{EmbeddingFacts, Encoding, vector, write_item};
use crate::models::parameter::Parameter;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;
use crate::models::wires::decoder::Decoder;
use crate::models::wires::decoder::WholeReply;
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;
use crate::models::wires::wire::Target;

/// Members of the convention; a strict provider gets no others.
const KNOWN: [&str; 5] = ["model", "input", "encoding_format", "dimensions", "user"];

pub(super) fn encode(
    request: &ModelRequest,
    _: &EmbeddingFacts,
    target: &Target<'_>,
) -> Result<Vec<Bytes>, Fault> {
    let quirks = target.quirks;
    let is_dropped = |key: &str| !KNOWN.contains(&key) && !quirks.passes_unknown(key, &KNOWN);
    let takes_user = target.parameters.supports(Parameter::User);
    let mut splice = Splice::new(&request.source.body);
    splice.new_bytes(b"{");
    new_member(&mut splice, "model", &quoted(target.model));
    for member in &request.source.members {
        if matches!(&*member.key, "model" | "user") || is_dropped(&member.key) {
            continue;
        }
        splice.new_bytes(b",");
        splice.slice(member.whole.clone());
    }
    if let Some(key_id) = target.key_id.filter(|_| takes_user) {
        splice.new_bytes(b",");
        new_member(&mut splice, "user", &quoted(&user(key_id)));
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

/// Returns the opaque identifier of a caller's key. Source: docs/decisions.md 10.
fn user(key_id: &str) -> String {
    let digest = Sha256::digest(key_id);
    digest.iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// Returns the path of embeddings, beside the path of chat.
pub(super) fn path(chat_path: &str) -> String {
    if chat_path.contains("chat/completions") {
        chat_path.replacen("chat/completions", "embeddings", 1)
    } else {
        "/embeddings".to_owned()
    }
}

/// Returns the decoder of a reply.
pub(super) fn decoder(facts: EmbeddingFacts) -> Box<dyn Decoder> {
    Box::new(WholeReply::new(move |body, sink| read(body, facts, sink)))
}

/// One item of a reply.
#[derive(Default)]
struct Item<'a> {
    index: Option<usize>,
    embedding: &'a str,
    /// The whole item, where it has `object` and `index`.
    whole: Option<&'a str>,
}

fn read(body: &[u8], facts: EmbeddingFacts, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut walk = Walker::new(body).map_err(malformed)?;
    let mut items: Vec<Item<'_>> = Vec::with_capacity(facts.inputs);
    let mut usage = None;
    let mut failure = None;
    let walked = walk.object(|walk, key| {
        match &*key {
            "error" if walk.peek()? != Type::Null => failure = Some(classify_error(walk.skip()?)),
            "data" if walk.peek()? == Type::Array => walk.array(|walk, _| {
                items.push(item(walk.skip()?)?);
                Ok::<(), Error>(())
            })?,
            "usage" => usage = read_usage(walk)?,
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    });
    walked.and_then(|()| walk.end()).map_err(malformed)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    // Items without an index come in the order of the inputs.
    for (at, item) in items.iter_mut().enumerate() {
        item.index.get_or_insert(at);
    }
    items.sort_by_key(|item| item.index);
    let is_whole = items.len() == facts.inputs
        && items
            .iter()
            .enumerate()
            .all(|(at, item)| item.index == Some(at));
    if !is_whole {
        return Err(Failure::malformed(
            "the provider's reply does not hold one embedding per input",
        ));
    }
    let mut out = Vec::new();
    for (at, item) in items.iter().enumerate() {
        out.clear();
        match item.whole.filter(|_| is_encoded(item, facts.encoding)) {
            Some(whole) => sink.item(whole.as_bytes()),
            None => {
                write_anew(at, item, facts.encoding, &mut out)?;
                sink.item(&out);
            }
        }
    }
    if let Some(usage) = usage {
        sink.usage(usage);
    }
    Ok(())
}

fn item(text: &str) -> Result<Item<'_>, Error> {
    let mut item = Item::default();
    let mut is_named = false;
    let mut walk = Walker::over(text);
    if walk.peek()? != Type::Object {
        return Ok(item);
    }
    walk.object(|walk, key| {
        match &*key {
            "object" => is_named = walk.skip()? == "\"embedding\"",
            "index" => item.index = walk.skip()?.parse().ok(),
            "embedding" => item.embedding = walk.skip()?,
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    })?;
    item.whole = (is_named && item.index.is_some()).then_some(text);
    Ok(item)
}

/// Whether the vector is said as the client reads it.
fn is_encoded(item: &Item<'_>, encoding: Encoding) -> bool {
    match encoding {
        Encoding::Float => item.embedding.starts_with('['),
        Encoding::Base64 => item.embedding.starts_with('"'),
    }
}

fn write_anew(
    at: usize,
    item: &Item<'_>,
    encoding: Encoding,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    if is_encoded(item, encoding) {
        let embedding = item.embedding.as_bytes();
        write_item(at, out, |out| out.extend_from_slice(embedding));
        return Ok(());
    }
    let floats = match encoding {
        Encoding::Base64 => vector::read_floats(item.embedding),
        Encoding::Float => item
            .embedding
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
            .and_then(vector::read_base64),
    };
    let floats = floats.ok_or_else(|| Failure::malformed("an embedding is no vector"))?;
    write_item(at, out, |out| vector::write(&floats, encoding, out));
    Ok(())
}

/// Reads `usage`; some providers report only a total.
fn read_usage(walk: &mut Walker<'_>) -> Result<Option<Usage>, Error> {
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| None);
    }
    let text = walk.skip()?;
    let mut total = 0;
    Walker::over(text).object(|walk, key| {
        let value = walk.skip()?;
        if key == "total_tokens" {
            total = value.parse().unwrap_or(0);
        }
        Ok::<(), Error>(())
    })?;
    let usage = usage::read(&mut Walker::over(text), false)?.unwrap_or_default();
    let prompt = if usage.prompt == 0 {
        total
    } else {
        usage.prompt
    };
    Ok((prompt > 0).then_some(Usage {
        prompt,
        cached: usage.cached,
        ..Usage::default()
    }))
}

fn malformed(error: Error) -> Failure {
    Failure::malformed(format!("the provider's reply cannot be read: {error}"))
}
