//! Operations whose replies are lists: their requests, and replies of every wire that offers them.

use filters::models::front::Front;
use filters::models::fronts::moderations::MODERATIONS;
use filters::models::fronts::ocr::Ocr;
use filters::models::fronts::rerank::RERANK;
use filters::models::fronts::search::SEARCH;
use filters::models::fronts::systemone::SYSTEM_ONE;
use filters::models::fronts::videos::Videos;
use filters::models::request::ModelRequest;
use filters::models::wires::{Quirks, ReplyHead, WireKind};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::models::{in_memory, target};
use crate::run::run;
use crate::wires::answer;
use crate::{damage, grammar};

/// An operation: how it is asked for, a request, and what providers answer to it.
pub struct Operation {
    pub front: &'static dyn Front,
    pub requests: Value,
    pub request: Value,
    pub replies: Value,
}

const WIRES: [WireKind; 8] = [
    WireKind::Contents,
    WireKind::CloudContents,
    WireKind::InvokedCohere,
    WireKind::Compatible,
    WireKind::Cohere,
    WireKind::Voyage,
    WireKind::Tavily,
    WireKind::Exa,
];
const WHOLE: ReplyHead = ReplyHead {
    status: 200,
    events: None,
    file: None,
    prompt_tokens: None,
    is_by_quota: false,
};

pub fn rerank() -> Operation {
    let document = json!({"$one": ["a", "$text", {"text": "$text", "id?": "$any"}, "$any"]});
    let result = json!({"index": {"$one": [0, 1, 2, "$int"]}, "relevance_score": {"$one": [0.5, 1e-7, "$number"]}, "document?": "$any"});
    let usage = json!({"total_tokens?": "$int", "prompt_tokens?": "$int"});
    Operation {
        front: &RERANK,
        requests: json!({
            "model": {"$one": ["m", "$text"]}, "query": {"$one": ["q", "$text"]}, "documents": {"$many": document},
            "top_n?": {"$one": [1, null, "$int"]}, "return_documents?": {"$one": [true, false, null]},
            "max_tokens_per_doc?": "$int", "unknown?": "$any",
        }),
        request: json!({"model": "m", "query": "q", "documents": ["a", {"text": "b"}, "c"], "top_n": 2, "return_documents": true}),
        replies: json!({"$one": [
            {"results": {"$many": result}, "meta?": {"billed_units": {"search_units": {"$one": [1, 1.0, "$int"]}}}, "usage?": usage},
            {"data": {"$many": result}, "usage?": usage},
            {"results": [{"index": 1, "score": 0.5}, {"index": 0, "score": 0.25}], "error?": {"$one": [null, "$any"]}},
        ]}),
    }
}

pub fn moderations() -> Operation {
    let part = json!({"$one": [{"type": "text", "text": "$text"},
        {"type": "image_url", "image_url": {"url": {"$one": ["https://a.example/x.png", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==", "$text"]}}}]});
    let flags = json!({"$one": [{"hate": true}, {"hate": false, "pii": "$any"}, "$any"]});
    let result = json!({"flagged?": {"$one": [true, false, "$any"]}, "categories": flags, "category_scores": {"hate": "$number"}});
    Operation {
        front: &MODERATIONS,
        requests: json!({
            "model?": {"$one": ["m", null, "$text"]}, "unknown?": "$any",
            "input": {"$one": ["a", "$text", {"$many": "$text"}, {"$many": part}, [{"type": "text", "text": "a"}]]},
        }),
        request: json!({"model": "m", "input": ["a", "b"]}),
        replies: json!({"results": {"$one": [{"$many": result}, [result, result]]}, "usage?": {"prompt_tokens": "$int"}, "error?": {"$one": [null, "$any"]}}),
    }
}

pub fn ocr() -> Operation {
    let url = json!({"$one": ["https://a.example/x.pdf", "https://127.1/", "data:application/pdf;base64,JVBERi0xLjc=", "$text"]});
    let document = json!({"$one": [
        {"type?": {"$one": ["document_url", "$text"]}, "document_url": url},
        {"type": "image_url", "image_url": {"$one": ["data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==", {"url": url}]}},
        {"type": "file", "file_id": "$text"}, "$any"]});
    let page = json!({"index": {"$one": [0, "$any"]}, "markdown": "$text", "images?": "$any"});
    Operation {
        front: &Ocr,
        requests: json!({
            "model": {"$one": ["m", "$text"]}, "document": document, "unknown?": "$any",
            "pages?": {"$one": ["0-4", "1,3", [0, 1], null, "$text", {"$many": "$int"}]},
            "image_limit?": {"$one": [1, null, "$int"]}, "include_blocks?": {"$one": [true, null, "$any"]},
            "bbox_annotation_format?": {"$one": [{"type": "json_schema", "json_schema": {"schema": {}}}, "$any"]},
        }),
        request: json!({"model": "m", "document": {"document_url": "https://a.example/x.pdf"}}),
        replies: json!({"pages": {"$one": [{"$many": page}, "$any"]}, "document_annotation?": {"$one": ["{}", "$any"]},
            "usage_info?": {"pages_processed?": {"$one": [1, "$any"]}, "doc_size_bytes?": "$any"}, "error?": {"$one": [null, "$any"]}}),
    }
}

pub fn search() -> Operation {
    let day = json!({"$one": ["1/2/2026", "02/30/2026", "$text"]});
    let page = json!({"title?": {"$one": ["a", "$any"]}, "url": {"$one": ["https://a.example", "$any"]}, "content?": "$text",
        "highlights?": {"$one": [{"$many": "$text"}, "$any"]}, "publishedDate?": "$any", "snippet?": "$text"});
    Operation {
        front: &SEARCH,
        requests: json!({
            "model?": {"$one": ["m", null, "$text"]}, "query": {"$one": ["a", "$text", ["a"], {"$many": "$text"}]},
            "max_results?": {"$one": [1, null, "$int"]}, "search_type?": {"$one": ["web", "fast", "$text"]},
            "country?": {"$one": ["us", "$text"]}, "search_domain_filter?": {"$many": {"$one": ["a.example", "-b.example", "$text"]}},
            "search_recency_filter?": {"$one": ["day", "$text"]}, "search_after_date_filter?": day, "unknown?": "$any",
        }),
        request: json!({"model": "m", "query": "a", "max_results": 2}),
        replies: json!({"results": {"$one": [{"$many": page}, [{"$many": page}], "$any"]}, "server_time?": "$any",
            "error?": {"$one": [null, "$any"]}}),
    }
}

pub fn decisions() -> Operation {
    let criteria =
        json!({"$one": [["low", "high"], {"a": "b", "c": null}, {"$many": "$text"}, "$any"]});
    let question = json!({"type": {"$one": ["noul", "choice", "score", "$text"]}, "instructions": {"$one": ["a", "$text"]}, "criteria?": criteria});
    let number = json!({"$one": [0.5, 1e-7, "$number", "$any"]});
    let chance = json!({"value": {"$one": [1, "a", "$any"]}, "label?": {"$one": ["low", "$text"]}, "probability": number});
    let listed = json!({"type": {"$one": ["score", "choice", "predicate", "refusal"]}, "probability?": number, "choice?": {"$one": ["a", "$any"]},
        "score?": number, "confidence?": number, "probabilities?": {"$many": chance}});
    let named = json!({"noul?": number, "choice?": {"$one": ["a", "$any"]}, "score?": number, "confidence?": number,
        "probabilities?": {"a": number, "c?": number}, "legend?": {"$one": [{"0": "low"}, ["low"], "$any"]}});
    Operation {
        front: &SYSTEM_ONE,
        requests: json!({
            "model": {"$one": ["m", "$text"]}, "state": {"$one": ["a", "$text", {"a": "$any"}, ["$any"]]},
            "questions": {"q": question, "r?": question}, "prompt_cache_key?": "$any", "unknown?": "$any",
        }),
        request: json!({"model": "m", "state": "a", "questions": {
            "c": {"type": "choice", "instructions": "a", "criteria": {"a": null, "c": null}},
            "s": {"type": "score", "instructions": "a", "criteria": ["low", "high"]}}}),
        replies: json!({"$one": [
            {"answers": [listed, listed], "usage?": {"input_tokens?": "$int", "output_tokens?": "$int"}},
            {"answers": {"c": named, "s": named}, "usage?": {"total_input_tokens?": "$int", "total_output_tokens?": "$int"}},
            {"error?": {"$one": [null, "$any"]}, "answers": "$any", "prompt_feedback?": {"block_reason": "$text"}},
        ]}),
    }
}

pub fn videos() -> Operation {
    let image = json!({"$one": ["https://a.example/x.png", {"image_url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="}, "$any"]});
    let media = json!({"$many": {"$one": ["https://a.example/x", {"video_url": "https://a.example/x"}, "$any"]}});
    Operation {
        front: &Videos,
        requests: json!({
            "model": {"$one": ["m", "$text"]}, "prompt": {"$one": ["a", "$text"]}, "unknown?": "$any",
            "seconds": {"$one": [4, "8", "$int", "$text"]}, "size?": {"$one": ["1280x720", "1080x1920", null, "$text"]},
            "audio?": {"$one": [true, false, null]}, "image?": image, "reference_images?": {"$many": image},
            "reference_videos?": media, "callback_url?": {"$one": ["https://a.example/x", "$text"]}, "callback_secret?": "$text",
        }),
        request: json!({"model": "m", "prompt": "a", "seconds": 4}),
        replies: json!({"id?": {"$one": ["video_1", "$any"]}, "status?": {"$one": ["queued", "$any"]},
            "name?": {"$one": ["models/m/operations/o", "$any"]}, "error?": {"$one": [null, "$any"]}}),
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok() && std::str::from_utf8(bytes).is_ok()
}

fn requests(name: &str, operation: &Operation) {
    run(name, |choices| {
        let body = grammar::compose(choices, &operation.requests);
        let body = damage::tree(choices, body);
        let body = grammar::write(choices, &body);
        let body = damage::bytes(choices, body);
        let request = match operation.front.parse(body.into()) {
            Ok(request) => request,
            Err(fault) => return assert!((400..500).contains(&fault.status()), "{fault:?}"),
        };
        let quirks = Quirks {
            drop_unknown_fields: choices.once_in(2),
            ..Quirks::default()
        };
        for wire in offering(&request) {
            let codec = wire.wire().codec(request.payload.operation()).unwrap();
            match codec.encode(&request, &target(&quirks)) {
                Ok(slices) => assert!(is_json(&in_memory(slices)), "{wire:?}"),
                Err(fault) => assert_eq!(fault.status(), 400, "{fault:?}"),
            }
        }
    });
}

/// The wires that offer the operation of a request.
pub fn offering(request: &ModelRequest) -> impl Iterator<Item = WireKind> {
    let operation = request.payload.operation();
    let wires = WIRES.into_iter();
    wires.filter(move |wire| wire.wire().codec(operation).is_some())
}

fn replies(name: &str, operation: &Operation) {
    let body = operation.request.to_string();
    let request = operation.front.parse(body.into()).unwrap();
    let quirks = Quirks::default();
    run(name, |choices| {
        let body = grammar::compose(choices, &operation.replies);
        let body = damage::tree(choices, body);
        let body = grammar::write(choices, &body);
        let body = if choices.once_in(2) {
            damage::bytes(choices, body)
        } else {
            body
        };
        for wire in offering(&request) {
            let (out, ended) = answer(wire, &request, &quirks, &WHOLE, &[&body]);
            assert_eq!(ended.is_ok(), !out.is_empty(), "{wire:?}");
            assert!(ended.is_err() || is_json(&out), "{wire:?}");
            let pieces = choices.cut(&body);
            let again = answer(wire, &request, &quirks, &WHOLE, &pieces);
            let shown = String::from_utf8_lossy(&body);
            assert_eq!((out, ended), again, "{wire:?}: {shown}");
        }
    });
}

#[test]
fn accepted_requests_to_rank_are_json_on_every_wire() {
    requests("models: rerank requests", &rerank());
}

#[test]
fn accepted_requests_for_moderation_are_json_on_every_wire() {
    requests("models: moderation requests", &moderations());
}

#[test]
fn accepted_orders_of_videos_are_json_on_every_wire() {
    requests("models: orders of videos", &videos());
}

#[test]
fn jobs_of_videos_are_the_same_however_they_are_cut() {
    replies("wires: jobs of videos", &videos());
}

#[test]
fn accepted_requests_for_ocr_are_json_on_every_wire() {
    requests("models: ocr requests", &ocr());
}

#[test]
fn pages_are_the_same_however_they_are_cut() {
    replies("wires: pages", &ocr());
}

#[test]
fn accepted_requests_to_search_are_json_on_every_wire() {
    requests("models: search requests", &search());
}

#[test]
fn found_pages_are_the_same_however_they_are_cut() {
    replies("wires: found pages", &search());
}

#[test]
fn accepted_requests_for_decisions_are_json_on_every_wire() {
    requests("models: decision requests", &decisions());
}

#[test]
fn decisions_are_the_same_however_they_are_cut() {
    replies("wires: decisions", &decisions());
}

#[test]
fn rankings_are_the_same_however_they_are_cut() {
    replies("wires: rankings", &rerank());
}

#[test]
fn moderations_are_the_same_however_they_are_cut() {
    replies("wires: moderations", &moderations());
}
