//! Vectors of a reply on their way to the client: the list of OpenAI's convention, which several wires have, and vectors
//! of any provider as items of it.
//!
//! A list that already says what the client asked for passes as one slice of the reply. Some servers give numbers where
//! base64 was asked for, or the other way round: such a vector is written anew.

use std::ops::Range;

use bytes::Bytes;

use super::codec::Parts;
use super::decoder::{Decoder, WholeReply};
use super::error_body::classify_error;
use super::failure::Failure;
use super::scan::malformed;
use super::wire::Target;
use crate::json::{Error, Type, Walker};
use crate::models::embeddings::batch::BatchLimits;
use crate::models::embeddings::{EmbeddingFacts, Encoding, vector, write_item};
use crate::models::reply::Sink;
use crate::models::usage::Usage;

/// How many bytes a vector may have in JSON: some 6,000 numbers of all their digits.
const MAX_VECTOR_BYTES: usize = 128 << 10;
/// How many bytes a reply may have beside its vectors.
const MAX_REST_BYTES: usize = 1 << 20;

/// The vectors that a reply has to hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedVectors {
    /// The number of the first input that it answers.
    pub first: usize,
    /// How many inputs it answers.
    pub count: usize,
    pub encoding: Encoding,
    /// Whether the provider cuts vectors off, so that they have no longer the length 1, which clients of the convention
    /// rely on.
    pub is_cut: bool,
}

impl ExpectedVectors {
    /// Returns what the reply to a batch has to hold, of a provider that cuts no vectors off.
    pub(super) fn for_batch(facts: &EmbeddingFacts, batch: &Range<usize>) -> Self {
        Self {
            first: batch.start,
            count: batch.len(),
            encoding: facts.encoding,
            is_cut: false,
        }
    }

    /// Returns how many bytes a reply may have, so that it does not take more memory than its vectors need.
    pub(super) fn max_bytes(&self) -> usize {
        MAX_REST_BYTES + self.count * MAX_VECTOR_BYTES
    }

    /// Puts the vectors of a reply into a sink: JSON arrays of numbers, or strings of base64.
    ///
    /// Errors: there is not one for each input, or one is not a vector.
    pub(super) fn write_items(&self, vectors: &[&str], sink: &mut dyn Sink) -> Result<(), Failure> {
        if vectors.len() != self.count {
            return Err(not_one_for_each());
        }
        let mut out = Vec::new();
        for (index, vector) in (self.first..).zip(vectors) {
            out.clear();
            self.write(index, vector, &mut out)?;
            sink.item(&out);
        }
        Ok(())
    }

    fn write(&self, index: usize, vector: &str, out: &mut Vec<u8>) -> Result<(), Failure> {
        if self.is_said(vector) && !self.is_cut {
            write_item(index, out, |out| out.extend_from_slice(vector.as_bytes()));
            return Ok(());
        }
        let quoted = vector
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let floats = match quoted {
            Some(text) => vector::read_base64(&text.replace("\\/", "/")),
            None => vector::read_floats(vector),
        };
        let mut floats = floats.ok_or_else(|| Failure::malformed("an embedding is no vector"))?;
        if self.is_cut {
            vector::normalise(&mut floats);
        }
        write_item(index, out, |out| vector::write(&floats, self.encoding, out));
        Ok(())
    }

    /// Returns whether a vector is said as the client reads it.
    fn is_said(&self, vector: &str) -> bool {
        match self.encoding {
            Encoding::Float => vector.starts_with('['),
            Encoding::Base64 => vector.starts_with('"'),
        }
    }
}

/// Returns the inputs of the part at hand, for a kind of provider with these limits.
pub(super) fn batch(
    facts: &EmbeddingFacts,
    target: &Target<'_>,
    limits: BatchLimits,
) -> Range<usize> {
    let mut batches = limits.within(target.batch).split(&facts.inputs);
    batches.nth(target.part as usize).unwrap_or_default()
}

/// Returns how many batches there are, for a kind of provider with these limits.
pub(super) fn parts(facts: &EmbeddingFacts, target: &Target<'_>, limits: BatchLimits) -> Parts {
    let batches = limits.within(target.batch).split(&facts.inputs);
    let inputs = facts.inputs.get(batch(facts, target, limits));
    let bytes = inputs.unwrap_or_default().iter().map(|input| input.bytes);
    Parts {
        count: u32::try_from(batches.count()).unwrap_or(u32::MAX).max(1),
        text_bytes: bytes.fold(0, u64::saturating_add),
    }
}

fn not_one_for_each() -> Failure {
    Failure::malformed("the provider's reply does not hold one embedding per input")
}

/// Returns the decoder of a reply that is a list of OpenAI's convention.
pub(super) fn decoder(expected: ExpectedVectors) -> Box<dyn Decoder> {
    let read = move |body: &Bytes, sink: &mut dyn Sink| read(body, &expected, sink);
    Box::new(WholeReply::new(read).with_max(expected.max_bytes()))
}

/// One item of a list.
#[derive(Default)]
struct Item<'a> {
    index: Option<usize>,
    embedding: &'a str,
    /// Whether it has `object` and `index`, as our own items have.
    is_whole: bool,
    place: Range<usize>,
}

/// Reads a whole reply. Cost: one pass, in which numbers are not parsed.
fn read(body: &Bytes, expected: &ExpectedVectors, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut walk = Walker::new(body).map_err(malformed)?;
    let mut items: Vec<Item<'_>> = Vec::with_capacity(expected.count);
    let mut usage = None;
    let mut failure = None;
    let walked = walk.object(|walk, key| {
        match &*key {
            "error" if walk.peek()? != Type::Null => failure = Some(classify_error(walk.skip()?)),
            "data" if walk.peek()? == Type::Array => walk.array(|walk, _| {
                items.push(item(walk)?);
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
    let passes = |(at, item): (usize, &Item<'_>)| {
        item.is_whole && item.index == Some(at) && expected.is_said(item.embedding)
    };
    let is_ours = expected.first == 0 && !expected.is_cut && items.len() == expected.count;
    let ends = items.first().zip(items.last());
    match ends.filter(|_| is_ours && items.iter().enumerate().all(passes)) {
        Some((first, last)) => sink.items(body, first.place.start..last.place.end),
        None => expected.write_items(&in_order(items)?, sink)?,
    }
    if let Some(usage) = usage {
        sink.usage(usage);
    }
    Ok(())
}

/// Returns the vectors by the index of their items, which stands for the place in the list where it is absent.
fn in_order<'a>(mut items: Vec<Item<'a>>) -> Result<Vec<&'a str>, Failure> {
    for (at, item) in items.iter_mut().enumerate() {
        item.index.get_or_insert(at);
    }
    items.sort_by_key(|item| item.index);
    let mut numbered = items.iter().enumerate();
    if !numbered.all(|(at, item)| item.index == Some(at)) {
        return Err(not_one_for_each());
    }
    Ok(items.iter().map(|item| item.embedding).collect())
}

fn item<'a>(walk: &mut Walker<'a>) -> Result<Item<'a>, Error> {
    let mut item = Item::default();
    let mut is_named = false;
    let is_object = walk.peek()? == Type::Object;
    let start = walk.at();
    if !is_object {
        walk.skip()?;
        return Ok(item);
    }
    walk.object(|walk, key| {
        match &*key {
            "object" => is_named = walk.skip()? == "\"embedding\"",
            "index" => item.index = walk.skip()?.parse().ok(),
            "embedding" if walk.peek()? == Type::Array => item.embedding = walk.numbers()?,
            "embedding" => item.embedding = walk.skip()?,
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    })?;
    item.is_whole = is_named && item.index.is_some();
    item.place = start..walk.at();
    Ok(item)
}

/// Reads `usage`; some providers report only a total.
fn read_usage(walk: &mut Walker<'_>) -> Result<Option<Usage>, Error> {
    let (mut prompt, mut total, mut cached) = (0, 0, 0);
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| None);
    }
    walk.object(|walk, key| {
        match &*key {
            "prompt_tokens" => prompt = count(walk.skip()?),
            "total_tokens" => total = count(walk.skip()?),
            "prompt_tokens_details" if walk.peek()? == Type::Object => {
                walk.object(|walk, key| {
                    let value = walk.skip()?;
                    if key == "cached_tokens" {
                        cached = count(value);
                    }
                    Ok::<(), Error>(())
                })?
            }
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    })?;
    let prompt = if prompt == 0 { total } else { prompt };
    Ok((prompt > 0).then(|| Usage {
        prompt,
        cached: cached.min(prompt),
        ..Usage::default()
    }))
}

/// Reads a count, which some hosts write with a fraction; 0 if it is none.
pub(super) fn count(written: &str) -> u64 {
    let whole = written.split_once('.').map_or(written, |(whole, _)| whole);
    whole.parse().unwrap_or(0)
}
