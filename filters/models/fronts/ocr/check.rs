//! The 400 rules of a request to read a document, in one pass over its bytes. Source: docs/model-gateway.md 2.13.

use bytes::Bytes;

use super::Ocr;
use super::document::{DOCUMENT, Document, document};
use super::pages::pages;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{nullable_string, object, one_of, required};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, U32, plain_request, read_body};
use crate::models::ocr::OcrFacts;
use crate::models::request::{ModelRequest, Payload, Source};
use crate::spooled_json::SpooledData;

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Option<Box<str>>,
    document: Option<Document>,
    pages: Option<u64>,
    annotates: bool,
}

type Row = Field<Findings>;

const fn ignored_flag(key: &'static str) -> Row {
    Row::flag(key, |_, _| ())
}

pub(super) static FIELDS: [Row; 14] = [
    Row::model(|found, model| found.model = Some(model)),
    Row::own("document", |walk, found| {
        document(walk).map(|it| found.document = Some(it))
    })
    .required(DOCUMENT),
    Row::own("pages", |walk, found| {
        pages(walk).map(|it| found.pages = Some(it))
    }),
    ignored_flag("include_image_base64"),
    Row::integer("image_limit", 0, U32, |_, _| ()),
    Row::integer("image_min_size", 0, U32, |_, _| ()),
    Row::own("bbox_annotation_format", format),
    Row::own("document_annotation_format", format),
    Row::own("document_annotation_prompt", |walk, _| {
        nullable_string(walk).map(|_| ())
    })
    .strict(),
    Row::choice("table_format", &["markdown", "html"], |_, _| ()),
    ignored_flag("extract_header"),
    ignored_flag("extract_footer"),
    ignored_flag("include_blocks"),
    Row::choice(
        "confidence_scores_granularity",
        &["word", "page", "block"],
        |_, _| (),
    ),
];

/// Checks a body, of which some data may not be in memory.
///
/// Cost: one pass; allocates for keys, and for a document with escapes. Errors: 400 naming the field, what came and what
/// is accepted.
pub(super) fn check(body: Bytes, spooled: Vec<SpooledData>) -> Result<ModelRequest, Fault> {
    let (found, members): (Findings, _) = read_body(&[&FIELDS], &body)?;
    let document = found.document.unwrap_or_default();
    let facts = OcrFacts {
        pages: if document.is_image {
            Some(1)
        } else {
            found.pages
        },
    };
    let source = Source {
        spooled,
        ..Source::new(body, members)
    };
    let mut request = plain_request(&Ocr, found.model, source, Payload::Ocr(facts));
    request.needs.media.file_ids = document.is_file;
    let cost_inputs = &mut request.cost_inputs;
    cost_inputs.bytes = cost_inputs.bytes.saturating_sub(document.data_bytes);
    cost_inputs.units = facts.most_units();
    cost_inputs.annotates = found.annotates;
    request.units = facts.expected_units();
    Ok(request)
}

/// The form of annotations: that of `response_format` in chats.
fn format(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    found.annotates = true;
    let (mut kind, mut has_schema) = (None, false);
    object(walk, &["type", "json_schema"], |walk, key| {
        match key {
            "type" => kind = Some(one_of(walk, &["json_schema", "json_object", "text"])?),
            _ => {
                if walk.peek()? != Type::Object {
                    return Err(other(walk, "an object with `schema`"));
                }
                walk.skip()?;
                has_schema = true;
            }
        }
        Ok(())
    })?;
    match required(kind, "type", "`json_schema`, `json_object` or `text`")? {
        "json_schema" => required(
            has_schema.then_some(()),
            "json_schema",
            "an object with `schema`",
        ),
        _ => Ok(()),
    }
}
