//! Measures what the model gateway computes for one call, without sockets: the checks of a request, the plan of its
//! attempts, the upstream's body, a whole reply, and an event of a stream.
//!
//! `cargo bench --bench plan` prints nanoseconds. With `WEIRGATE_BENCH_ONLY` and `WEIRGATE_BENCH_COUNT` it runs one of them
//! that often, for `valgrind --tool=callgrind`: the difference of two counts leaves out the start.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot run has to stop"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use filters::json::Str;
use filters::models::dialects::state::OwnedMaker;
use filters::models::front::{ClientHead, Front, Received};
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::messages::Messages;
use filters::models::fronts::responses::Responses;
use filters::models::healing::heal;
use filters::models::managed::expand::Filling;
use filters::models::metadata::{AnswerMembers, Metadata, UsedNames};
use filters::models::operation::Operation;
use filters::models::prompts::library::FoundPrompt;
use filters::models::prompts::prompt::Prompt;
use filters::models::prompts::template::PromptValue;
use filters::models::prompts::tree::Node;
use filters::models::reply::ReplyIdentity;
use filters::models::request::ModelRequest;
use filters::models::routing::catalog::{Catalog, Mapping};
use filters::models::routing::health::Health;
use filters::models::routing::plan::{PlanInputs, WhatExplains, plan};
use filters::models::routing::providers::{ProviderNames, ProviderSet};
use filters::models::routing::resolve::resolve;
use filters::models::routing::score::Weights;
use filters::models::usage::Settlement;
use filters::models::wires::openai::OPENAI;
use filters::models::wires::{Codec, Quirks, ReplyHead, Target, Wire, WireKind, decode_reply};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Machines are noisy, so the best round counts.
const ROUNDS: usize = 400;
const EVENTS: usize = 200;

fn main() {
    // The catalogue has the names of a deployment, so no call makes them.
    let used = UsedNames::new("model", "provider", None, "up");
    for (size, bytes) in [("1 KB", 900), ("50 KB", 50_000)] {
        let body = request_body(bytes, "");
        measure(&format!("parse {size}"), 1, || {
            ChatCompletions.parse(body.clone()).unwrap()
        });
        let request = ChatCompletions.parse(body.clone()).unwrap();
        let quirks = Quirks::default();
        measure(&format!("encode {size}"), 1, || {
            let codec = OPENAI.codec(Operation::Chat).unwrap();
            codec.encode(&request, &target(&quirks)).unwrap()
        });
        let reply = [whole_reply(bytes)];
        measure(&format!("whole reply {size}"), 1, || {
            answer(&request, &used, &reply, b"application/json")
        });
    }
    let streamed = ChatCompletions.parse(request_body(900, r#""stream":true,"#));
    let (streamed, pieces) = (streamed.unwrap(), event_pieces());
    measure("event", EVENTS, || {
        answer(&streamed, &used, &pieces, b"text/event-stream")
    });
    for mappings in [1, 8, 40] {
        plans(mappings);
    }
    prompts();
    heals();
    let fronts: [(&str, &dyn Front, Bytes); 3] = [
        ("", &ChatCompletions, conversation(50_000)),
        (" of Messages", &Messages, messages(50_000)),
        (" of Responses", &Responses, items(50_000)),
    ];
    for (name, kind) in WIRES {
        let quirks = Quirks::default();
        for (of, front, body) in &fronts {
            measure(&format!("check and translate 50 KB{of}, {name}"), 1, || {
                let request = front.parse(body.clone()).unwrap();
                let codec = kind.wire().codec(request.payload.operation()).unwrap();
                codec.encode(&request, &target(&quirks)).unwrap()
            });
        }
        let pieces = stream_pieces(kind);
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        let read = || answer_on(kind.wire(), &streamed, &used, &pieces, b"text/event-stream");
        if let Some(ns) = measure(&format!("event, {name}"), EVENTS, read) {
            let rate = bytes as f64 * 1e3 / (ns * EVENTS as f64);
            println!("stream, {name}: {rate:.0} MB/s");
        }
    }
}

/// Measures the rendering of a prompt of 4 KB with eight places of variables, and how a request is completed with it.
fn prompts() {
    let text = "The quick brown fox greets {{name}} in a {{tone}} tone. ".repeat(4);
    let content = text + &"Answer in plain words, and cite what you know. ".repeat(80);
    let file = serde_json::json!({"model": "model-7", "messages": [{"role": "system", "content": content}], "parameters": {"temperature": 0.2}});
    let root = Node::parse_json(&file.to_string()).unwrap();
    let prompt = Arc::new(Prompt::compile(&root).unwrap());
    let values = [Str::Raw("Ada"), Str::Raw("friendly")].map(PromptValue::Text);
    measure("render a prompt of 4 KB", 1, || {
        let mut out = Vec::with_capacity(prompt.rendered_bytes(&values));
        prompt.render(&values, &mut out);
        out
    });
    let found = FoundPrompt {
        prompt,
        name: "greeting".into(),
        version: 1,
        label: None,
    };
    let filling = Filling {
        variation: None,
        prompt: Some(&found),
    };
    let body = r#"{"prompt":{"id":"greeting","variables":{"name":"Ada","tone":"kind"}},"messages":[{"role":"user","content":"Hi"}]}"#;
    measure("read and complete a request of a prompt of 4 KB", 1, || {
        let Received::Managed(request) = ChatCompletions
            .read(&ClientHead::silent(), Bytes::from_static(body.as_bytes()))
            .unwrap()
        else {
            return None;
        };
        let expansion = request.expand(filling, 1 << 20).unwrap();
        Some(ChatCompletions.parse(expansion.body).unwrap())
    });
}

const WIRES: [(&str, WireKind); 4] = [
    ("OpenAI", WireKind::Compatible),
    ("Responses", WireKind::Responses),
    ("Anthropic", WireKind::Messages),
    ("Gemini", WireKind::Contents),
];

/// Measures answers of 100 KB in JSON: a valid one, and one in a fenced block whose syntax is wrong.
fn heals() {
    let row = |at: usize| {
        format!(
            r#"{{"id": {at}, "name": "row {at}", "tags": ["a", "b"], "note": "The quick brown fox jumps.", "open": true}}"#
        )
    };
    let rows: Vec<String> = (0..1000).map(row).collect();
    let valid = format!("{{\"rows\": [{}]}}", rows.join(",\n"));
    let broken = format!("```json\n{}\n```", valid.replace("true}", "True,}"));
    for (name, text) in [("valid", valid), ("broken", broken)] {
        if let Some(ns) = measure(&format!("heal {name}"), 1, || heal(&text, true)) {
            println!("heal, {name}: {:.0} MB/s", text.len() as f64 * 1e3 / ns);
        }
    }
}

/// Returns a request whose history has calls, results and texts of this many bytes together.
fn conversation(bytes: usize) -> Bytes {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(11);
    let mut messages = String::from(r#"{"role":"system","content":"Be brief."}"#);
    let mut round = 0;
    while messages.len() < bytes {
        round += 1;
        messages.push_str(&format!(
            r#",{{"role":"user","content":"{text}"}},{{"role":"assistant","content":"{text}","tool_calls":[{{"id":"call_{round}","type":"function","function":{{"name":"look_up","arguments":"{{\"topic\":\"{round}\"}}"}}}}]}},{{"role":"tool","tool_call_id":"call_{round}","content":"{text}"}}"#
        ));
    }
    let tool = r#"{"type":"function","function":{"name":"look_up","parameters":{"type":"object","properties":{"topic":{"type":"string"}},"required":["topic"]}}}"#;
    format!(r#"{{"model":"model-7","tools":[{tool}],"messages":[{messages}]}}"#).into()
}

/// The same conversation in the words of Messages.
fn messages(bytes: usize) -> Bytes {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(11);
    let (mut messages, mut round) = (String::new(), 0);
    while messages.len() < bytes {
        round += 1;
        messages.push_str(if round > 1 { "," } else { "" });
        messages.push_str(&format!(
            r#"{{"role":"user","content":"{text}"}},{{"role":"assistant","content":[{{"type":"text","text":"{text}"}},{{"type":"tool_use","id":"call_{round}","name":"look_up","input":{{"topic":"{round}"}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"call_{round}","content":"{text}"}}]}}"#
        ));
    }
    let tool = r#"{"name":"look_up","input_schema":{"type":"object","properties":{"topic":{"type":"string"}},"required":["topic"]}}"#;
    format!(r#"{{"model":"model-7","max_tokens":1000,"system":"Be brief.","tools":[{tool}],"messages":[{messages}]}}"#).into()
}

/// The same conversation in the words of Responses.
fn items(bytes: usize) -> Bytes {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(11);
    let (mut items, mut round) = (String::new(), 0);
    while items.len() < bytes {
        round += 1;
        items.push_str(if round > 1 { "," } else { "" });
        items.push_str(&format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}},{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}},{{"type":"function_call","call_id":"call_{round}","name":"look_up","arguments":"{{\"topic\":\"{round}\"}}"}},{{"type":"function_call_output","call_id":"call_{round}","output":"{text}"}}"#
        ));
    }
    let tool = r#"{"type":"function","name":"look_up","parameters":{"type":"object","properties":{"topic":{"type":"string"}},"required":["topic"]}}"#;
    format!(
        r#"{{"model":"model-7","instructions":"Be brief.","tools":[{tool}],"input":[{items}]}}"#
    )
    .into()
}

/// Returns a stream of [`EVENTS`] events of text on a wire, ten to a piece.
fn stream_pieces(kind: WireKind) -> Vec<Bytes> {
    let (begin, end): (&str, &str) = match kind {
        WireKind::Compatible => return event_pieces(),
        // Its streams are frames, and those of Cohere are not measured.
        WireKind::Converse
        | WireKind::Cohere
        | WireKind::InvokedCohere
        | WireKind::Titan
        | WireKind::CloudContents
        | WireKind::Predictions
        | WireKind::Voyage
        | WireKind::Tavily
        | WireKind::Exa
        | WireKind::Images
        | WireKind::ImagesByRatio
        | WireKind::Completions => unreachable!("is not measured"),
        WireKind::Responses => (
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\"}}\n\nevent: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"content\":[]}}\n\n",
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"usage\":{\"input_tokens\":9,\"output_tokens\":100}}}\n\n",
        ),
        WireKind::Messages => (
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":100}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        WireKind::Contents => (
            "",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":100,\"totalTokenCount\":109}}\n\n",
        ),
    };
    let event = |at: usize| match kind {
        WireKind::Responses => format!(
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{at},\"item_id\":\"msg_0123456789abcdef\",\"output_index\":0,\"content_index\":0,\"delta\":\"token number {at} \",\"logprobs\":[],\"obfuscation\":\"0123456789\"}}\n\n"
        ),
        WireKind::Messages => format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"token number {at} \"}}}}\n\n"
        ),
        _ => format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"token number {at} \"}}],\"role\":\"model\"}},\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":9,\"candidatesTokenCount\":{at},\"totalTokenCount\":109}},\"modelVersion\":\"gemini\",\"responseId\":\"r1\"}}\n\n"
        ),
    };
    let mut pieces = vec![Bytes::from_static(begin.as_bytes())];
    pieces.extend((0..EVENTS / 10).map(|piece| {
        let events: String = (piece * 10..piece * 10 + 10).map(event).collect();
        Bytes::from(events)
    }));
    pieces.push(Bytes::from_static(end.as_bytes()));
    pieces
}

/// Measures the plan for a model of the shipped catalogue's size and this many providers.
fn plans(mappings: usize) {
    let names: Vec<String> = (0..mappings).map(|at| format!("provider-{at}")).collect();
    let names: ProviderNames = names.iter().map(String::as_str).collect();
    let mapping = |at: usize| {
        format!(
            "[[models.providers]]\nprovider = \"provider-{at}\"\nname = \"up-{at}\"\ninput_price = \"{at}.5\"\noutput_price = \"10\"\n\
             context_size = 400000\nmax_output = 128000\ndeactivated_at = 2100-01-01\n\
             capabilities = [\"streaming\", \"tools\", \"json_object\", \"json_schema\", \"vision\", \"cancellation\"]\n"
        )
    };
    let models = (0..50).map(|model| {
        let mappings: String = (0..mappings).map(mapping).collect();
        format!("[[models]]\nid = \"model-{model}\"\n{mappings}")
    });
    let file = toml::from_str(&models.collect::<String>()).unwrap();
    let catalog = Catalog::check(file, names).unwrap();
    let mut on = ProviderSet::default();
    (0..mappings).for_each(|number| on.insert(number));
    let health = Health::new(catalog.candidates().len());
    for candidate in 0..catalog.candidates().len() {
        let attempt = health.begin(candidate, true, 1000);
        attempt.record_answer(Some(50.0 + candidate as f64), 1010);
    }
    let request = ChatCompletions.parse(request_body(900, "")).unwrap();
    measure(&format!("plan of {mappings}"), 1, || {
        let inputs = PlanInputs {
            attempts: 3,
            weights: Weights {
                price: 0.6,
                uptime: 0.5,
                throughput: 0.05,
                latency: 0.025,
            },
            exploration: 0.01,
            random: (0.5, 0.5),
            spread: 0,
            health: &health,
            now_ms: 1000,
            now_s: 0,
            preferred: None,
            cached_tokens: 0,
            has_session: false,
            no_fallback: false,
            is_billed: true,
            keyed: ProviderSet::EMPTY,
            explains: WhatExplains::Nothing,
        };
        let resolved = resolve(
            "model-7",
            Operation::Chat,
            &catalog,
            &on,
            &[],
            1_800_000_000,
        );
        let limits = |_: &Mapping| OPENAI.codec(Operation::Chat).map(Codec::limits);
        plan(&request, resolved.unwrap(), &inputs, limits, |_| 1.0).unwrap()
    });
}

/// Reads a reply into the client's response; returns its bytes.
fn answer(request: &ModelRequest, used: &UsedNames, pieces: &[Bytes], media_type: &[u8]) -> usize {
    answer_on(&OPENAI, request, used, pieces, media_type)
}

/// Reads a reply of a wire into the client's response; returns its bytes.
fn answer_on(
    wire: &Wire,
    request: &ModelRequest,
    used: &UsedNames,
    pieces: &[Bytes],
    media_type: &[u8],
) -> usize {
    let quirks = Quirks::default();
    let head = ReplyHead::new(200, media_type);
    let mut decoder = decode_reply(wire, request, &target(&quirks), &head).unwrap();
    let identity = ReplyIdentity {
        id: "0190c3a2000070008000000000000000".into(),
        created: 1,
        model: "provider/model".into(),
        maker: OwnedMaker {
            dialect: wire.dialect,
            ..OwnedMaker::from("provider/model")
        },
    };
    let mut writer = request.front.writer(request, identity);
    let mut bytes = 0;
    for piece in pieces {
        decoder.feed(piece, writer.as_mut()).unwrap();
        if writer.has_content() {
            bytes += writer.take().len();
        }
    }
    decoder.end(writer.as_mut()).unwrap();
    let settlement = Settlement {
        usage: writer.reported().to_usage(10, true),
        cost: Some(filters::money::Cost::default()),
    };
    let metadata = Metadata {
        route: None,
        request_id: "0190c3a2000070008000000000000000",
        requested_model: "model",
        managed: None,
        requested_provider: None,
        organization_id: "org_0190c3a2-0000-7000-8000-000000000000",
        project_id: "proj_0190c3a2-0000-7000-8000-000000000000",
        log_id: None,
        answer: AnswerMembers::Fresh {
            used,
            price: Default::default(),
            routing: &[],
        },
    };
    writer.complete(&settlement, &metadata);
    bytes + writer.take().len()
}

fn target(quirks: &Quirks) -> Target<'_> {
    Target::plain("provider", "up", quirks)
}

fn request_body(bytes: usize, more: &str) -> Bytes {
    let text = "b".repeat(bytes);
    format!(r#"{{"model":"model-7",{more}"messages":[{{"role":"user","content":"{text}"}}]}}"#)
        .into()
}

fn whole_reply(bytes: usize) -> Bytes {
    let text = "a".repeat(bytes);
    let reply = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":9,"completion_tokens":100,"total_tokens":109}}}}"#
    );
    reply.into()
}

/// Returns a stream of [`EVENTS`] events, ten to a piece.
fn event_pieces() -> Vec<Bytes> {
    let head = r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_1234567890","choices":[{"index":0,"delta":{"#;
    let event = |at: usize| {
        let (text, finish) = if at + 1 == EVENTS {
            (String::new(), r#""stop""#)
        } else {
            (format!(r#""content":"token number {at} ""#), "null")
        };
        format!("data: {head}{text}}},\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n")
    };
    let mut pieces: Vec<Bytes> = (0..EVENTS / 10)
        .map(|piece| (piece * 10..piece * 10 + 10).map(event).collect::<String>())
        .map(Bytes::from)
        .collect();
    pieces.push(Bytes::from_static(b"data: [DONE]\n\n"));
    pieces
}

/// Prints the time of one of the `parts` that a run has, and returns it in nanoseconds.
fn measure<T>(name: &str, parts: usize, mut run: impl FnMut() -> T) -> Option<f64> {
    if let Ok(only) = std::env::var("WEIRGATE_BENCH_ONLY") {
        let count = std::env::var("WEIRGATE_BENCH_COUNT").unwrap();
        let count = count.parse().unwrap();
        (0..if only == name { count } else { 0 }).for_each(|_| drop(black_box(run())));
        return None;
    }
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        (0..10).for_each(|_| drop(black_box(run())));
        best = best.min(started.elapsed());
    }
    let each_ns = best.as_nanos() as f64 / (10 * parts) as f64;
    println!("{name}: {each_ns:.0} ns");
    Some(each_ns)
}
