//! OCR in Mistral's form: the request passes as it is, and so do pages.

use bytes::Bytes;

use crate::fault::Fault;
use crate::json::{Error, Type, Walker};
use crate::models::ocr::OcrFacts;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::WholeReply;
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;
use crate::models::wires::scan::malformed;
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// Members of the form; a strict provider gets no others.
const KNOWN: [&str; 14] = [
    "model",
    "document",
    "pages",
    "include_image_base64",
    "image_limit",
    "image_min_size",
    "bbox_annotation_format",
    "document_annotation_format",
    "document_annotation_prompt",
    "table_format",
    "extract_header",
    "extract_footer",
    "include_blocks",
    "confidence_scores_granularity",
];

pub(super) static CODEC: OperationCodec<OcrFacts> =
    OperationCodec::new("ocr", encode, |_, _, _, _| Box::new(WholeReply::new(read)));

fn encode(
    request: &ModelRequest,
    _: &OcrFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let source = &request.source;
    let mut splice = Splice::new(&source.body);
    splice.new_bytes(b"{\"model\":");
    splice.new_string(target.model);
    let others = source
        .members
        .iter()
        .filter(|member| &*member.key != "model");
    for member in others {
        if KNOWN.contains(&&*member.key) || target.quirks.passes_unknown(&member.key, &KNOWN) {
            splice.new_bytes(b",");
            splice.slice(member.whole.clone());
        }
    }
    splice.new_bytes(b"}");
    Ok(splice.finish_with(&source.spooled))
}

/// What a reply holds.
#[derive(Default)]
struct OcrReply<'a> {
    pages: Option<Vec<&'a str>>,
    annotation: Option<&'a str>,
    pages_processed: Option<u64>,
    size: Option<&'a str>,
    failure: Option<Failure>,
}

fn read(body: &Bytes, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut found = OcrReply::default();
    let mut walk = Walker::new(body).map_err(malformed)?;
    let walked = walk.object(|walk, key| {
        match (&*key, walk.peek()?) {
            ("error", kind) if kind != Type::Null => {
                found.failure = Some(classify_error(walk.skip()?));
            }
            ("pages", Type::Array) => {
                let mut pages = Vec::new();
                walk.array(|walk, _| {
                    pages.push(walk.skip()?);
                    Ok::<(), Error>(())
                })?;
                found.pages = Some(pages);
            }
            ("document_annotation", Type::String) => found.annotation = Some(walk.skip()?),
            ("usage_info", Type::Object) => usage_info(walk, &mut found)?,
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    });
    walked.and_then(|()| walk.end()).map_err(malformed)?;
    if let Some(failure) = found.failure {
        return Err(failure);
    }
    let bad = || Failure::malformed("the provider's reply does not hold the pages of a document");
    let pages = found.pages.ok_or_else(bad)?;
    for page in &pages {
        if !is_page(page).map_err(malformed)? {
            return Err(bad());
        }
    }
    for page in &pages {
        sink.item(page.as_bytes());
    }
    if let Some(annotation) = found.annotation {
        sink.member("document_annotation", annotation);
    }
    if let Some(size) = found.size {
        sink.member("doc_size_bytes", size);
    }
    let processed = found.pages_processed.unwrap_or(pages.len() as u64);
    sink.usage(Usage {
        units: OcrFacts::units(processed),
        ..Usage::default()
    });
    Ok(())
}

fn usage_info<'a>(walk: &mut Walker<'a>, found: &mut OcrReply<'a>) -> Result<(), Error> {
    walk.object(|walk, key| {
        match (&*key, walk.peek()?) {
            ("pages_processed", Type::Number) => {
                found.pages_processed = walk.number()?.parse().ok()
            }
            ("doc_size_bytes", Type::Number) => found.size = Some(walk.number()?),
            _ => _ = walk.skip()?,
        }
        Ok(())
    })
}

/// Returns whether it has a number and a text.
fn is_page(page: &str) -> Result<bool, Error> {
    let mut walk = Walker::over(page);
    if walk.peek()? != Type::Object {
        return Ok(false);
    }
    let (mut has_index, mut has_text) = (false, false);
    walk.object(|walk, key| {
        let kind = walk.peek()?;
        match &*key {
            "index" => has_index = kind == Type::Number,
            "markdown" => has_text = kind == Type::String,
            _ => {}
        }
        walk.skip()?;
        Ok::<(), Error>(())
    })?;
    Ok(has_index && has_text)
}
