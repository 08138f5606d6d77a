//! OCR in Mistral's form: the request passes as it is, and so do pages.

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::ocr::OcrFacts;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::WholeReply;
use crate::models::wires::failure::Failure;
use crate::models::wires::scan::{items, number, object, reply, string};
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
        if target.quirks.passes(&member.key, &KNOWN) {
            splice.new_bytes(b",");
            splice.slice(member.whole.clone());
        }
    }
    splice.new_bytes(b"}");
    Ok(splice.finish_with(&source.spooled))
}

fn read(body: &Bytes, sink: &mut dyn Sink) -> Result<(), Failure> {
    let [pages, annotation, usage] = reply(body, ["pages", "document_annotation", "usage_info"])?;
    let pages = items(pages).filter(|pages| pages.iter().all(|page| is_page(page)));
    let pages = pages.ok_or_else(|| {
        Failure::malformed("the provider's reply does not hold the pages of a document")
    })?;
    for page in &pages {
        sink.item(page.as_bytes());
    }
    if string(annotation).is_some() {
        sink.member("document_annotation", annotation);
    }
    let usage = object(usage, ["pages_processed", "doc_size_bytes"]);
    let [processed, size] = usage.unwrap_or_default();
    if let Some(size) = number(size) {
        sink.member("doc_size_bytes", size);
    }
    sink.usage(Usage {
        units: OcrFacts::units(processed.parse().unwrap_or(pages.len() as u64)),
        ..Usage::default()
    });
    Ok(())
}

/// Returns whether it has a number and a text.
fn is_page(page: &str) -> bool {
    let members = object(page, ["index", "markdown"]);
    members.is_some_and(|[index, text]| number(index).is_some() && string(text).is_some())
}
