//! Embeddings in the words of this wire. Vectors are asked for as numbers; their base64 is made here.

use bytes::Bytes;

use crate::fault::Fault;
use crate::json::{Error, Type, Walker};
use crate::models::embeddings::EmbeddingFacts;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::embeddings::input_type::InputType;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::{Decoder, ReplyHead, WholeReply};
use crate::models::wires::embedding_list::{self, ExpectedVectors, count};
use crate::models::wires::exception;
use crate::models::wires::failure::Failure;
use crate::models::wires::scan::malformed;
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// What is asked for at once.
const AT_ONCE: BatchLimits = BatchLimits {
    inputs: 96,
    tokens: u64::MAX,
};

pub(super) static CODEC: OperationCodec<EmbeddingFacts> = OperationCodec {
    limits: LIMITS,
    parts: |_, facts, target| embedding_list::parts(facts, target, AT_ONCE),
    ..OperationCodec::new(
        "/embed",
        |request, facts, target| encode(request, facts, target, Some(target.model)),
        |_, facts, target, head| decoder(facts, target, head),
    )
};

/// How a cloud invokes it: the path names the model.
pub(super) static INVOKED_CODEC: OperationCodec<EmbeddingFacts> = OperationCodec {
    limits: LIMITS,
    parts: |_, facts, target| embedding_list::parts(facts, target, AT_ONCE),
    ..OperationCodec::new(
        "/model/{model}/invoke",
        |request, facts, target| encode(request, facts, target, None),
        |_, facts, target, head| decoder(facts, target, head),
    )
};

const LIMITS: WireLimits = WireLimits {
    token_inputs: false,
    ..WireLimits::WIDEST
};

/// Encodes the inputs of the part at hand; `model` stands in the body.
fn encode(
    request: &ModelRequest,
    facts: &EmbeddingFacts,
    target: &Target<'_>,
    model: Option<&str>,
) -> Result<Vec<BodySlice>, Fault> {
    let asked = request.source.member("input_type");
    let asked = InputType::read(asked.map(|member| request.source.value(member)))?;
    let mut splice = Splice::new(&request.source.body);
    splice.new_bytes(b"{");
    if let Some(model) = model {
        splice.new_bytes(b"\"model\":");
        splice.new_string(model);
        splice.new_bytes(b",");
    }
    splice.new_bytes(b"\"texts\":[");
    splice.slice(facts.place(&embedding_list::batch(facts, target, AT_ONCE)));
    splice.new_bytes(b"],\"input_type\":");
    splice.new_string(input_type_word(asked));
    // A text that is too long is an error in the convention; without this it would be cut off.
    splice.new_bytes(b",\"embedding_types\":[\"float\"],\"truncate\":\"NONE\"");
    if let Some(dimensions) = facts.dimensions {
        splice.new_bytes(format!(",\"output_dimension\":{dimensions}").as_bytes());
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

/// Returns the wire's word for a use, which it demands. Our choice: what is embedded without a word will be searched.
fn input_type_word(asked: Option<InputType>) -> &'static str {
    match asked {
        Some(InputType::Query) => "search_query",
        None | Some(InputType::Document) => "search_document",
        Some(InputType::Classification) => "classification",
        Some(InputType::Clustering) => "clustering",
    }
}

/// Returns the decoder of a reply.
fn decoder(facts: &EmbeddingFacts, target: &Target<'_>, head: &ReplyHead) -> Box<dyn Decoder> {
    let batch = embedding_list::batch(facts, target, AT_ONCE);
    let expected = ExpectedVectors::for_batch(facts, &batch);
    let told = head.prompt_tokens;
    let read = move |body: &Bytes, sink: &mut dyn Sink| {
        let read = read(body, told, &expected, sink);
        // A cloud may say in a 200 that it has no such path.
        read.map_err(|failure| exception::in_success(body).unwrap_or(failure))
    };
    Box::new(WholeReply::new(read).with_max(expected.max_bytes()))
}

/// Reads a reply; `told` are the tokens of the prompt that its head tells.
fn read(
    body: &[u8],
    told: Option<u64>,
    expected: &ExpectedVectors,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let mut walk = Walker::new(body).map_err(malformed)?;
    let mut vectors: Vec<&str> = Vec::with_capacity(expected.count);
    let mut prompt = 0;
    let walked = walk.object(|walk, key| match &*key {
        // Some models of a cloud give the vectors without their type.
        "embeddings" if walk.peek()? == Type::Array => read_vectors(walk, &mut vectors),
        "embeddings" => member(walk, "float", |walk| read_vectors(walk, &mut vectors)),
        "meta" => member(walk, "billed_units", |walk| {
            member(walk, "input_tokens", |walk| {
                prompt = count(walk.skip()?);
                Ok(())
            })
        }),
        _ => walk.skip().map(|_| ()),
    });
    walked.and_then(|()| walk.end()).map_err(malformed)?;
    expected.write_items(&vectors, sink)?;
    let prompt = Some(prompt).filter(|billed| *billed > 0).or(told);
    if let Some(prompt) = prompt {
        sink.usage(Usage {
            prompt,
            ..Usage::default()
        });
    }
    Ok(())
}

/// Reads the list of vectors that comes next, if it is one.
fn read_vectors<'a>(walk: &mut Walker<'a>, vectors: &mut Vec<&'a str>) -> Result<(), Error> {
    if walk.peek()? != Type::Array {
        return walk.skip().map(|_| ());
    }
    walk.array(|walk, _| {
        vectors.push(walk.numbers()?);
        Ok::<(), Error>(())
    })
}

/// Walks the object that comes next, if it is one; `read` reads the value of the member that is wanted.
fn member<'a>(
    walk: &mut Walker<'a>,
    wanted: &str,
    mut read: impl FnMut(&mut Walker<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| ());
    }
    walk.object(|walk, key| match key == wanted {
        true => read(walk),
        false => walk.skip().map(|_| ()),
    })
}
