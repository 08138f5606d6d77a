//! What a response says of itself beside its items: its id, its state, and the request that it answers.

use std::sync::Arc;

use super::writer::{ResponseEnd, write_usage};
use crate::json::{Object, quoted};
use crate::models::request::{ModelRequest, Source};
use crate::models::stored_responses::{ResponsePromise, public_id};
use crate::models::usage::Usage;
use crate::money::ServiceTier;

/// Members of the request that its response repeats, each with what stands there where the request has none.
const REPEATED: [(&str, &str); 16] = [
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("prompt_cache_key", "null"),
    ("prompt_cache_retention", "null"),
    ("reasoning", r#"{"effort":null,"summary":null}"#),
    ("safety_identifier", "null"),
    ("temperature", "1.0"),
    ("text", r#"{"format":{"type":"text"}}"#),
    ("tool_choice", "\"auto\""),
    ("tools", "[]"),
    ("top_p", "1.0"),
    ("truncation", "\"disabled\""),
    ("user", "null"),
];

/// What a summarized history is called.
pub(super) const COMPACTED: &str = "response.compaction";

/// The head of one response.
#[derive(Debug)]
pub(super) struct ResponseHead {
    id: Box<str>,
    created: u64,
    /// The model as the client calls it.
    model: Box<str>,
    /// What it repeats of the request: members without braces.
    repeated: Box<str>,
    tier: ServiceTier,
    includes_sources: bool,
    promise: Option<Arc<ResponsePromise>>,
}

impl ResponseHead {
    /// Returns the head of a response with this id, unless it is kept under another one. `created` is unix seconds.
    pub(super) fn new(request: &ModelRequest, (id, created): (&str, u64)) -> Self {
        let (source, promise) = (&request.source, &request.promise);
        let kept = promise.as_ref().and_then(|promise| promise.id.as_deref());
        Self {
            id: match kept {
                Some(kept) => public_id(kept).into(),
                None => ["resp_", id].concat().into(),
            },
            created,
            model: request.requested_model().into(),
            repeated: repeated(source),
            tier: request.needs.service_tier,
            includes_sources: value(source, "include")
                .is_some_and(|include| include.contains("web_search_call.action.sources")),
            promise: promise.clone(),
        }
    }

    /// Returns whether the response is kept.
    pub(super) fn is_kept(&self) -> bool {
        let promise = self.promise.as_ref();
        promise.is_some_and(|promise| promise.id.is_some())
    }

    /// Returns what it says of itself where the gateway keeps responses, each with its JSON; without a promise nothing.
    pub(super) fn promised(&self) -> Vec<(&'static str, String)> {
        let Some(promise) = &self.promise else {
            return Vec::new();
        };
        let previous = promise.previous.as_deref();
        let mut told = vec![
            ("store", self.is_kept().to_string()),
            ("background", promise.is_background.to_string()),
            (
                "previous_response_id",
                previous.map_or_else(|| "null".to_owned(), quoted),
            ),
        ];
        if self.is_kept() {
            told.push(("id", quoted(&self.id)));
        }
        told
    }

    /// Returns the model as the client calls it.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// Returns whether searches tell their sources.
    pub(super) fn includes_sources(&self) -> bool {
        self.includes_sources
    }

    /// Takes the id that a provider has told, unless the response is kept under its own.
    pub(super) fn identify(&mut self, id: &str) {
        if !id.is_empty() && !self.is_kept() {
            self.id = id.into();
        }
    }

    /// Writes a response that has begun.
    pub(super) fn write_begun(&self, response: &mut Object<'_>) {
        self.write_open(response, "in_progress");
    }

    /// Writes a response that waits for its beginning.
    pub(super) fn write_queued(&self, response: &mut Object<'_>) {
        self.write_open(response, "queued");
    }

    fn write_open(&self, response: &mut Object<'_>, status: &str) {
        self.write(response, (status, self.is_kept()), ("null", None));
        response.raw("output", "[]");
        response.text("service_tier", self.tier.as_str());
        response.raw("usage", "null");
    }

    /// Writes a response that has ended. `items` is the inside of the array of its items.
    pub(super) fn write_ended(
        &self,
        response: &mut Object<'_>,
        (end, tier): (ResponseEnd, Option<ServiceTier>),
        items: &[u8],
        usage: &Usage,
    ) {
        let (status, reason) = match end {
            ResponseEnd::Completed => ("completed", None),
            ResponseEnd::Incomplete(reason) => ("incomplete", Some(reason)),
        };
        self.write(response, (status, self.is_kept()), ("null", reason));
        write_items(response, items);
        response.text("service_tier", tier.unwrap_or(self.tier).as_str());
        if usage.web_searches > 0 {
            response.object("tool_usage", |used| {
                used.object("web_search", |search| {
                    search.number("num_requests", usage.web_searches);
                });
            });
        }
        response.value("usage", |out| write_usage(usage, out));
    }

    /// Writes a history that was summarized. `items` is the inside of the array of what stands in its place.
    pub(super) fn write_compacted(&self, response: &mut Object<'_>, items: &[u8], usage: &Usage) {
        response.text("id", &self.id);
        response.text("object", COMPACTED);
        response.number("created_at", self.created);
        write_items(response, items);
        response.value("usage", |out| write_usage(usage, out));
    }

    /// Writes a response that broke off, which is not kept. `error` is a JSON object.
    pub(super) fn write_failed(&self, response: &mut Object<'_>, error: &str, items: &[u8]) {
        self.write(response, ("failed", false), (error, None));
        write_items(response, items);
        response.raw("usage", "null");
    }

    fn write(
        &self,
        response: &mut Object<'_>,
        (status, is_kept): (&str, bool),
        (error, reason): (&str, Option<&str>),
    ) {
        response.text("id", &self.id);
        response.text("object", "response");
        response.number("created_at", self.created);
        response.text("status", status);
        let promise = self.promise.as_deref();
        response.bool(
            "background",
            promise.is_some_and(|promise| promise.is_background),
        );
        response.raw("error", error);
        match reason {
            Some(reason) => response.object("incomplete_details", |details| {
                details.text("reason", reason);
            }),
            None => response.raw("incomplete_details", "null"),
        }
        response.text("model", &self.model);
        response.bool("store", is_kept);
        response.text_or_null(
            "previous_response_id",
            promise.and_then(|promise| promise.previous.as_deref()),
        );
        response.members(&self.repeated);
    }
}

fn write_items(response: &mut Object<'_>, items: &[u8]) {
    response.value("output", |out| {
        out.push(b'[');
        out.extend_from_slice(items);
        out.push(b']');
    });
}

/// Returns the value of a member that is not null.
fn value<'a>(source: &'a Source, key: &str) -> Option<&'a str> {
    let value = source.value(source.member(key)?);
    let text = std::str::from_utf8(value).unwrap_or_default();
    (text != "null").then_some(text)
}

fn repeated(source: &Source) -> Box<str> {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    for (key, usual) in REPEATED {
        object.raw(key, value(source, key).unwrap_or(usual));
    }
    object.close();
    let text = String::from_utf8(out).unwrap_or_default();
    let inside = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    inside.unwrap_or_default().into()
}
