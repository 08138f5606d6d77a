//! The 400 rules of a request to read a document, in one pass over its bytes. Source: docs/model-gateway.md 2.13.

use bytes::Bytes;

use super::Ocr;
use super::document::{DOCUMENT, Document, document};
use super::pages::pages;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{
    boolean, integer, nullable_one_of, nullable_string, object, one_of, required,
};
use crate::models::check::reject::{Reject, other};
use crate::models::check::top::{MODEL, members, model};
use crate::models::ocr::OcrFacts;
use crate::models::parameter::AskedParameters;
use crate::models::request::{MediaNeeds, ModelRequest, Needs, Payload, RequestMember, Source};
use crate::money::CostInputs;
use crate::spooled_json::SpooledData;

/// The findings of the pass.
#[derive(Debug, Default)]
struct Findings {
    model: Option<Box<str>>,
    document: Option<Document>,
    pages: Option<u64>,
    annotates: bool,
}

/// Checks a body, of which some data may not be in memory.
///
/// Cost: one pass; allocates for keys, and for a document with escapes. Errors: 400 naming the field, what came and what
/// is accepted.
pub(super) fn check(body: Bytes, spooled: Vec<SpooledData>) -> Result<ModelRequest, Fault> {
    let mut found = Findings::default();
    let members = pass(&body, &mut found).map_err(Reject::into_fault)?;
    let document = found.document.unwrap_or_default();
    let facts = OcrFacts {
        pages: if document.is_image {
            Some(1)
        } else {
            found.pages
        },
    };
    Ok(ModelRequest {
        front: &Ocr,
        model: found.model.unwrap_or_default(),
        is_stream: false,
        strategy: None,
        session: None,
        needs: Needs {
            choices: 1,
            media: MediaNeeds {
                file_ids: document.is_file,
                ..MediaNeeds::default()
            },
            ..Needs::default()
        },
        cost_inputs: CostInputs {
            bytes: (body.len() as u64).saturating_sub(document.data_bytes),
            choices: 1,
            draws: Some(false),
            units: facts.most_units(),
            annotates: found.annotates,
            ..CostInputs::default()
        },
        text_bytes: 0,
        units: facts.expected_units(),
        asked: AskedParameters::default(),
        source: Source {
            spooled,
            ..Source::new(body, members)
        },
        managed: None,
        payload: Payload::Ocr(facts),
    })
}

fn pass(body: &Bytes, found: &mut Findings) -> Result<Vec<RequestMember>, Reject> {
    let mut walk = Walker::new(body)?;
    let members = members(&mut walk, |walk, key| member(walk, key, found))?;
    walk.end()?;
    required(found.model.as_ref(), "model", MODEL)?;
    required(found.document.as_ref(), "document", DOCUMENT)?;
    Ok(members)
}

fn member(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    match key {
        "model" => found.model = Some(model(walk)?),
        "document" => found.document = Some(document(walk)?),
        "pages" if walk.null()? => {}
        "pages" => found.pages = Some(pages(walk)?),
        "include_image_base64" | "extract_header" | "extract_footer" | "include_blocks"
            if !walk.null()? =>
        {
            boolean(walk)?;
        }
        "image_limit" | "image_min_size" if !walk.null()? => {
            integer(walk, 0, u32::MAX.into())?;
        }
        "bbox_annotation_format" | "document_annotation_format" if !walk.null()? => {
            format(walk)?;
            found.annotates = true;
        }
        "document_annotation_prompt" => _ = nullable_string(walk)?,
        "table_format" => _ = nullable_one_of(walk, &["markdown", "html"])?,
        "confidence_scores_granularity" => {
            nullable_one_of(walk, &["word", "page", "block"])?;
        }
        "include_image_base64"
        | "extract_header"
        | "extract_footer"
        | "include_blocks"
        | "image_limit"
        | "image_min_size"
        | "bbox_annotation_format"
        | "document_annotation_format" => {}
        _ => _ = walk.skip()?,
    }
    Ok(())
}

/// The form of annotations: that of `response_format` in chats.
fn format(walk: &mut Walker<'_>) -> Result<(), Reject> {
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
