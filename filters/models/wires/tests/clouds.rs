//! What clouds serve otherwise than the vendors: predictions, models that are invoked, and how tiers are asked for.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use bytes::Bytes;
use serde_json::{Value, json};

use super::item::{Got, encoded, read, target};
use super::{
    BodyForm, Failure, FailureKind, Quirks, ReplyHead, Target, WireKind, decode_reply, embeddings,
};
use crate::fault::Fault;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::fronts::contents::GENERATE;
use crate::models::fronts::rerank::RERANK;
use crate::models::hosts::ProviderKind;
use crate::models::request::ModelRequest;
use crate::models::routing::MappingWire;
use crate::models::videos::progress::{Expiry, VideoReport};

const EMBEDDING: [WireKind; 4] = [
    WireKind::CloudContents,
    WireKind::Predictions,
    WireKind::Titan,
    WireKind::InvokedCohere,
];

fn with(mut body: Value, more: &Value) -> Bytes {
    let members = body.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    body.to_string().into()
}

fn sent(wire: WireKind, request: &ModelRequest) -> Result<(String, Value), Fault> {
    encoded(wire.wire(), request, &Quirks::default())
}

fn whole(wire: WireKind, request: &ModelRequest, reply: &Value) -> Result<Got, Failure> {
    read(wire.wire(), request, 200, reply.to_string().as_bytes())
}

/// The most that goes out at once is one input, unless the wire takes several.
#[test]
fn embeddings_have_the_words_of_each_wire_of_a_cloud() {
    let one = json!({"input": "\u{e9}\"\n", "dimensions": 8});
    let word = json!({"input": ["a", "b"], "input_type": "query"});
    for (wire, more, path, expected) in [
        (
            WireKind::CloudContents,
            &one,
            "/models/up%20x:embedContent",
            json!({"content": {"parts": [{"text": "\u{e9}\"\n"}]}, "embedContentConfig": {"autoTruncate": false, "outputDimensionality": 8}}),
        ),
        (
            WireKind::CloudContents,
            &word,
            "/models/up%20x:embedContent",
            json!({"content": {"parts": [{"text": "a"}]}, "embedContentConfig": {"autoTruncate": false, "taskType": "RETRIEVAL_QUERY"}}),
        ),
        (
            WireKind::Predictions,
            &one,
            "/models/up%20x:predict",
            json!({"instances": [{"content": "\u{e9}\"\n"}], "parameters": {"autoTruncate": false, "outputDimensionality": 8}}),
        ),
        (
            WireKind::Predictions,
            &word,
            "/models/up%20x:predict",
            json!({"instances": [{"content": "a", "task_type": "RETRIEVAL_QUERY"}, {"content": "b", "task_type": "RETRIEVAL_QUERY"}],
                "parameters": {"autoTruncate": false}}),
        ),
        (
            WireKind::Titan,
            &one,
            "/model/up%20x/invoke",
            json!({"inputText": "\u{e9}\"\n", "dimensions": 8, "normalize": true}),
        ),
        (
            WireKind::Titan,
            &json!({"input": ["a", "b"], "input_type": null}),
            "/model/up%20x/invoke",
            json!({"inputText": "a"}),
        ),
        (
            WireKind::InvokedCohere,
            &one,
            "/model/up%20x/invoke",
            json!({"texts": ["\u{e9}\"\n"], "input_type": "search_document", "embedding_types": ["float"], "truncate": "NONE",
                "output_dimension": 8}),
        ),
        (
            WireKind::InvokedCohere,
            &word,
            "/model/up%20x/invoke",
            json!({"texts": ["a", "b"], "input_type": "search_query", "embedding_types": ["float"], "truncate": "NONE"}),
        ),
    ] {
        let (place, body) = sent(wire, &embeddings::request(more)).unwrap();
        assert!(place.ends_with(path), "{place}");
        assert_eq!(body, expected, "{wire:?}");
    }
    let fault = sent(WireKind::Titan, &embeddings::request(&word)).unwrap_err();
    assert_eq!(
        (fault.status(), fault.param.as_deref()),
        (400, Some("input_type"))
    );
}

#[test]
fn embeddings_are_asked_for_in_the_parts_of_each_wire_of_a_cloud() {
    let texts: Vec<String> = (0..300).map(|at| at.to_string()).collect();
    let request = embeddings::request(&json!({ "input": texts }));
    let quirks = Quirks::default();
    for (wire, count, last) in [
        (WireKind::CloudContents, 300, "/content/parts/0/text"),
        (WireKind::Predictions, 2, "/instances/49/content"),
        (WireKind::Titan, 300, "/inputText"),
        (WireKind::InvokedCohere, 4, "/texts/11"),
    ] {
        let codec = wire.wire().codec_of(&request);
        let target = Target {
            part: count - 1,
            ..target(&quirks)
        };
        assert_eq!(codec.parts(&request, &target).count, count, "{wire:?}");
        let body = wire.wire().encode(&request, &target).unwrap().concat();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body.pointer(last), Some(&json!("299")), "{wire:?}: {body}");
        let narrow = Target {
            batch: BatchLimits {
                inputs: 1,
                tokens: u64::MAX,
            },
            ..target
        };
        assert_eq!(codec.parts(&request, &narrow).count, 300);
    }
}

/// A reply with a vector for one input, by the wire, and the tokens that its body tells.
fn vector_of(wire: WireKind) -> (Value, Option<u64>) {
    match wire {
        WireKind::CloudContents => (
            json!({"embedding": {"values": [3, 4]}, "usageMetadata": {"promptTokenCount": 6}, "truncated": false}),
            Some(6),
        ),
        WireKind::Predictions => (
            json!({"predictions": [{"embeddings": {"values": [3, 4], "statistics": {"token_count": 6.0, "truncated": false}}}],
                "metadata": {"billableCharacterCount": 4}}),
            Some(6),
        ),
        WireKind::Titan => (
            json!({"embedding": [3, 4], "inputTextTokenCount": 6, "embeddingsByType": {"float": [3, 4]}}),
            Some(6),
        ),
        _ => (
            json!({"id": "1", "embeddings": {"float": [[3, 4]]}, "response_type": "embeddings_by_type"}),
            None,
        ),
    }
}

#[test]
fn vectors_of_the_wires_of_clouds_become_items_with_their_tokens() {
    let request = embeddings::request(&json!({"input": "a"}));
    let packed = embeddings::request(&json!({"input": "a", "encoding_format": "base64"}));
    for wire in EMBEDDING {
        let (reply, tokens) = vector_of(wire);
        let got = whole(wire, &request, &reply).unwrap();
        assert_eq!(got.items, [embeddings::openai_item(0, json!([3, 4]))]);
        assert_eq!(got.usage.map(|it| it.prompt), tokens, "{wire:?}");
        let got = whole(wire, &packed, &reply).unwrap();
        assert_eq!(got.items[0]["embedding"], "AABAQAAAgEA=", "{wire:?}");
    }
    // What was shortened is scaled, where the provider does not.
    let short = embeddings::request(&json!({"input": "a", "dimensions": 2}));
    for wire in [WireKind::CloudContents, WireKind::Predictions] {
        let got = whole(wire, &short, &vector_of(wire).0).unwrap();
        assert_eq!(got.items[0]["embedding"], json!([0.6, 0.8]), "{wire:?}");
    }
    let bare = json!({"embeddings": [[3, 4]], "response_type": "embeddings_floats"});
    let got = whole(WireKind::InvokedCohere, &request, &bare).unwrap();
    assert_eq!(got.items, [embeddings::openai_item(0, json!([3, 4]))]);
    let two = json!({"predictions": [{"embeddings": {"values": [1], "statistics": {"token_count": 2}}},
        {"embeddings": {"values": [2], "statistics": {"token_count": 3}}}]});
    let got = whole(
        WireKind::Predictions,
        &embeddings::request(&json!({})),
        &two,
    )
    .unwrap();
    assert_eq!((got.items.len(), got.usage.unwrap().prompt), (2, 5));
}

#[test]
fn tokens_in_the_head_count_where_the_body_tells_none() {
    let quirks = Quirks::default();
    let request = embeddings::request(&json!({"input": "a"}));
    let head = ReplyHead {
        prompt_tokens: Some(9),
        ..ReplyHead::new(200, b"application/json")
    };
    for (wire, reply, tokens) in [
        (
            WireKind::InvokedCohere,
            vector_of(WireKind::InvokedCohere).0,
            9,
        ),
        (
            WireKind::InvokedCohere,
            json!({"embeddings": [[1]], "meta": {"billed_units": {"input_tokens": 4}}}),
            4,
        ),
        (WireKind::Titan, json!({"embedding": [1]}), 9),
        (WireKind::Titan, vector_of(WireKind::Titan).0, 6),
    ] {
        let decoder = decode_reply(wire.wire(), &request, &target(&quirks), &head);
        let (mut decoder, mut got) = (decoder.unwrap(), Got::default());
        decoder.feed(&reply.to_string().into(), &mut got).unwrap();
        decoder.end(&mut got).unwrap();
        assert_eq!(got.usage.map(|it| it.prompt), Some(tokens), "{wire:?}");
    }
}

#[test]
fn replies_without_a_vector_for_each_input_are_malformed() {
    let request = embeddings::request(&json!({"input": "a", "encoding_format": "base64"}));
    for wire in EMBEDDING {
        for bad in [
            json!({}),
            json!([]),
            json!(7),
            json!({"embedding": 7, "embeddings": 7, "predictions": 7}),
            json!({"embedding": [], "embeddings": [], "predictions": []}),
            json!({"embedding": ["a"], "embeddings": [["a"]], "predictions": [{"embeddings": {"values": ["a"]}}]}),
            json!({"embeddings": {"float": [[1], [2]]}, "predictions": [{"embeddings": {"values": [1]}}, 7], "embedding": {"values": 1}}),
        ] {
            let failure = whole(wire, &request, &bad).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Malformed, "{wire:?}: {bad}");
            assert!(failure.is_retryable);
        }
        // Numbers that pass as they came are read all the same.
        let floats = embeddings::request(&json!({"input": "a"}));
        let words = json!({"embedding": ["a"], "embeddings": [["a"]], "predictions": [{"embeddings": {"values": ["a"]}}]});
        assert!(whole(wire, &floats, &words).is_err(), "{wire:?}");
        let text = vector_of(wire).0.to_string();
        for end in 0..text.len() {
            let cut = read(wire.wire(), &request, 200, &text.as_bytes()[..end]);
            assert!(cut.is_err(), "{wire:?} {end}");
        }
    }
}

#[test]
fn errors_are_those_of_the_cloud() {
    let request = embeddings::request(&json!({"input": "a"}));
    let google =
        json!([{"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}]);
    for wire in [WireKind::CloudContents, WireKind::Predictions] {
        for status in [200, 429] {
            let body = google.to_string();
            let failure = read(wire.wire(), &request, status, body.as_bytes()).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Status(429), "{wire:?} {status}");
        }
    }
    let unknown = json!({"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}, "Version": "1.0"});
    let throttled = json!({"message": "Too many requests"}).to_string();
    for wire in [WireKind::Titan, WireKind::InvokedCohere] {
        let failure = whole(wire, &request, &unknown).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Status(404), "{wire:?}");
        let failure = read(wire.wire(), &request, 429, throttled.as_bytes()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Status(429));
    }
    let ranking = RERANK.parse(
        json!({"model": "m", "query": "q", "documents": ["a"]})
            .to_string()
            .into(),
    );
    let failure = whole(WireKind::InvokedCohere, &ranking.unwrap(), &unknown).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Status(404));
}

#[test]
fn an_invoked_ranking_names_the_version_of_the_api_in_place_of_the_model() {
    let body = json!({"model": "m", "query": "q", "documents": [{"text": "a"}, "b"], "top_n": 2, "priority": 1});
    let request = RERANK.parse(body.to_string().into()).unwrap();
    let (path, body) = sent(WireKind::InvokedCohere, &request).unwrap();
    assert_eq!(path, "/model/up%20x/invoke");
    let expected = json!({"api_version": 2, "query": "q", "documents": ["a", "b"], "top_n": 2});
    assert_eq!(body, expected);
    let reply = json!({"results": [{"index": 1, "relevance_score": 0.25}, {"index": 0, "relevance_score": 0.5}]});
    let got = whole(WireKind::InvokedCohere, &request, &reply).unwrap();
    assert_eq!(got.items[0], json!({"index": 0, "relevance_score": 0.5}));
    let bound = json!({"model": "m", "query": "q", "documents": ["a"], "max_tokens_per_doc": 9});
    let request = RERANK.parse(bound.to_string().into()).unwrap();
    let fault = sent(WireKind::InvokedCohere, &request).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("max_tokens_per_doc"));
}

/// Google's models on their cloud.
fn cloud_body() -> BodyForm {
    ProviderKind::Vertex
        .host()
        .served(Some(MappingWire::Gemini))
        .body
}

#[test]
fn a_tier_is_asked_for_in_headers_where_the_host_wants_that() {
    let quirks = Quirks::default();
    let contents = json!([{"role": "user", "parts": [{"text": "Hi"}]}]);
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    for (tier, word) in [
        ("flex", Some("flex")),
        ("priority", Some("priority")),
        ("default", None),
    ] {
        let said = match tier {
            "default" => "standard",
            tier => tier,
        };
        let requests = [
            ChatCompletions.parse(with(chat.clone(), &json!({"service_tier": tier}))),
            GENERATE.parse(with(
                json!({"model": "m"}),
                &json!({"contents": contents, "serviceTier": said}),
            )),
            GENERATE.parse(with(
                json!({"model": "m"}),
                &json!({"contents": contents, "service_tier": said}),
            )),
        ];
        for request in requests.map(Result::unwrap) {
            for (body, is_cloud) in [(cloud_body(), true), (BodyForm::OF_WIRE, false)] {
                let target = Target {
                    body,
                    ..target(&quirks)
                };
                let codec = WireKind::CloudContents.wire().codec_of(&request);
                let headers = codec.headers(&request, &target);
                let named = |wanted: &str| {
                    let found = headers.iter().find(|(name, _)| name.as_str() == wanted);
                    found.map(|(_, value)| value.to_str().unwrap())
                };
                let kind = named("x-vertex-ai-llm-request-type");
                assert_eq!(kind, word.filter(|_| is_cloud).map(|_| "shared"));
                let shared = named("x-vertex-ai-llm-shared-request-type");
                assert_eq!(shared, word.filter(|_| is_cloud));
                let body = WireKind::CloudContents
                    .wire()
                    .encode(&request, &target)
                    .unwrap();
                let body: Value = serde_json::from_slice(&body.concat()).unwrap();
                let names = ["serviceTier", "service_tier"];
                let said = names.iter().find_map(|name| body.get(name));
                assert!(!(said.is_some() && is_cloud), "{body}");
                assert!(is_cloud || word.is_none() || said.is_some(), "{body}");
            }
        }
    }
}

#[test]
fn the_cloud_counts_what_it_knows_of_a_request() {
    let counting = WireKind::CloudContents.wire().counting.unwrap();
    let body = json!({"contents": [1], "system_instruction": {"parts": []}, "safetySettings": [], "tools": [], "toolConfig": {},
        "generationConfig": {}});
    let counted = (counting.body)(body.to_string().into_bytes(), "m");
    let counted: Value = serde_json::from_slice(&counted).unwrap();
    let expected = json!({"contents": [1], "systemInstruction": {"parts": []}, "tools": [], "generationConfig": {}});
    assert_eq!(counted, expected);
    assert_eq!(
        (counting.path)("/models/m:generateContent"),
        "/models/m:countTokens"
    );
    for odd in ["", "[]", "{\"contents\":"] {
        assert_eq!((counting.body)(odd.into(), "m"), odd.as_bytes());
    }
}

#[test]
fn a_job_of_the_cloud_is_asked_for_by_its_model_and_holds_its_video() {
    let operations = WireKind::CloudContents.wire().videos.unwrap();
    let job = "projects/p/locations/global/publishers/google/models/veo-3.1/operations/a-1";
    let path = operations.status_endpoint(job).unwrap();
    assert_eq!(path, "/models/{model}:fetchPredictOperation");
    let body = operations.status_body(job).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body, json!({ "operationName": job }));
    for odd in ["", "../a", "a b", "a\"b"] {
        assert_eq!(operations.status_endpoint(odd), None);
        assert_eq!(operations.status_body(odd), None);
    }
    let told = |reply: &Value| operations.read_status(reply.to_string().as_bytes()).ok();
    let held = |reply: &Value| operations.held_video(reply.to_string().as_bytes());
    let video = json!({"bytesBase64Encoded": "AAEC", "mimeType": "video/mp4"});
    let done = json!({"name": job, "done": true, "response": {"videos": [video]}});
    let completed = VideoReport::Completed {
        output_ms: None,
        link: None,
        expires: Expiry::Unknown,
    };
    assert_eq!(told(&done), Some(completed));
    assert_eq!(held(&done), Some(vec![0, 1, 2]));
    assert!(matches!(
        told(&json!({ "name": job })),
        Some(VideoReport::Running { .. })
    ));
    let filtered = json!({"done": true, "response": {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": ["no"]}});
    let empty = json!({"done": true, "response": {"videos": [{"bytesBase64Encoded": ""}]}});
    let odd = json!({"done": true, "response": {"videos": [{"bytesBase64Encoded": "*"}]}});
    for reply in [&filtered, &empty] {
        assert!(
            matches!(told(reply), Some(VideoReport::Failed(_))),
            "{reply}"
        );
    }
    assert_eq!(held(&odd), None);
    for bad in [&b""[..], b"[]", b"{", b"{\"response\":7}", b"\xff"] {
        assert_eq!(operations.held_video(bad), None);
    }
    // The vendor's own API has links.
    let own = WireKind::Contents.wire().videos.unwrap();
    assert!(!own.holds_videos() && own.status_body(job).is_none());
}

#[test]
fn a_model_chooses_its_wire_by_what_the_mapping_says_it_is() {
    let vertex = ProviderKind::Vertex.host();
    let bedrock = ProviderKind::Bedrock.host();
    let arn = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/a1";
    for (host, base, name, word) in [
        (
            vertex,
            None,
            "text-embedding-005",
            Some(MappingWire::Predict),
        ),
        (
            vertex,
            None,
            "text-multilingual-embedding-002",
            Some(MappingWire::Predict),
        ),
        (
            vertex,
            None,
            "imagen-4.0-generate-001",
            Some(MappingWire::Predict),
        ),
        (vertex, None, "gemini-embedding-001", None),
        (vertex, None, "veo-3.1", None),
        (vertex, Some("gemini-3"), "text-embedding-005", None),
        (bedrock, None, "amazon.titan-embed-text-v2:0", None),
        (
            bedrock,
            Some("amazon.titan-embed-text-v2:0"),
            arn,
            Some(MappingWire::Titan),
        ),
        (
            bedrock,
            Some("cohere.embed-v4:0"),
            arn,
            Some(MappingWire::Cohere),
        ),
        (
            bedrock,
            Some("cohere.rerank-v3-5:0"),
            arn,
            Some(MappingWire::Cohere),
        ),
        (bedrock, Some("anthropic.claude"), arn, None),
        (
            ProviderKind::OpenAi.host(),
            Some("text-embedding-005"),
            "text-embedding-005",
            None,
        ),
    ] {
        assert_eq!(host.word_for(base, name), word, "{base:?} {name}");
    }
}
