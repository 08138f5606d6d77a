#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fault::FaultKind;
use crate::json::Str;
use crate::models::chat::conversation::{Block, BlockKind, MediaSource, Role};
use crate::models::chat::piece::{Citation, Finish, Image, Piece, Search, StateOf, StatePiece};
use crate::models::chat::tools::ToolChoice;
use crate::models::dialects::state::{Maker, OwnedMaker, States, sealed_dialect};
use crate::models::dialects::told_reasoning::ToldReasoning;
use crate::models::fronts::tests::end;
use crate::models::fronts::tests::grammars::contents::{StreamEnd, add, chunks, fold};
use crate::models::reply::ResponseKind;
use crate::models::usage::Usage;

/// What a provider says together.
#[derive(Clone, Debug)]
enum Said {
    Text(&'static str),
    Refusal(&'static str),
    Reasoning(&'static str),
    /// The state of the reasoning that has said this.
    Signature(&'static str, &'static str),
    Redacted(&'static str),
    Call(u64, &'static str, &'static str),
    /// A call with the state that belongs to it.
    Signed(u64, &'static str),
    Arguments(u64, &'static str),
    CallEnd(u64),
    Cited(u64, u64),
    Drawn,
    Searched,
    Finish(Finish<'static>),
}

fn state(of: StateOf<'static>, dialect: Dialect, data: &'static str) -> Piece<'static> {
    Piece::State(StatePiece {
        of,
        dialect,
        number: 0,
        data: Str::Plain(data),
    })
}

impl Said {
    fn pieces(&self) -> Vec<Piece<'static>> {
        let text = Str::Plain;
        match *self {
            Self::Text(said) => vec![Piece::Text(text(said))],
            Self::Refusal(said) => vec![Piece::Refusal(text(said))],
            Self::Reasoning(said) => vec![Piece::Reasoning(text(said))],
            Self::Signature(said, data) => {
                vec![state(
                    StateOf::Reasoning(text(said)),
                    Dialect::Messages,
                    data,
                )]
            }
            Self::Redacted(data) => vec![state(StateOf::Redacted, Dialect::Messages, data)],
            Self::Call(key, id, name) => vec![Piece::Call {
                key,
                id: Some(text(id)),
                name: Some(text(name)),
            }],
            Self::Signed(key, data) => vec![
                Piece::Call {
                    key,
                    id: None,
                    name: Some(text("signed")),
                },
                state(StateOf::Call(key), Dialect::Contents, data),
                Piece::CallEnd { key },
            ],
            Self::Arguments(key, json) => vec![Piece::Arguments {
                key,
                json: text(json),
            }],
            Self::CallEnd(key) => vec![Piece::CallEnd { key }],
            Self::Cited(start, end) => vec![Piece::Citation(Citation::Page {
                url: text("https://a.example/"),
                title: None,
                start,
                end,
            })],
            Self::Drawn => vec![Piece::Image(Image::Data {
                media_type: "image/webp",
                data: text("AAE="),
            })],
            Self::Searched => vec![Piece::Search(Search {
                query: "cats",
                number: 0,
                found: Ok(r#"[{"title":"Cats","url":"https://cats.test","snippet":"s"}]"#),
            })],
            Self::Finish(finish) => vec![Piece::Finish(finish)],
        }
    }
}

fn body(more: &Value) -> String {
    let mut body = json!({"model": "m", "stream": null, "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body.to_string()
}

pub(super) fn request(more: &Value) -> ModelRequest {
    GENERATE.parse(body(more).into()).unwrap()
}

pub(super) fn identity(dialect: Dialect, is_vendor: bool) -> ReplyIdentity {
    let mut maker: OwnedMaker = "here/m".into();
    maker.dialect = Some(dialect);
    maker.is_vendor = is_vendor;
    ReplyIdentity {
        id: "0123abcd".into(),
        created: 7,
        model: "here/m".into(),
        maker,
    }
}

const USAGE: Usage = Usage {
    prompt: 20,
    completion: 7,
    cached: 4,
    reasoning: Some(3),
    cache_write: 0,
    cache_write_5m: None,
    cache_write_1h: None,
    audio_prompt: 0,
    image_prompt: 0,
    video_prompt: 0,
    audio_completion: 0,
    image_completion: 0,
    images: 0,
    web_searches: 0,
    units: crate::money::UnitCounts::ZERO,
    estimated: false,
    is_api_equivalent: false,
    unread: crate::models::usage::Unread {
        prompt: false,
        completion: false,
    },
    set_aside: 0,
    billed_prompt: None,
    billed_completion: None,
};

fn written(more: &Value, said: &[Said]) -> String {
    let request = request(more);
    let mut writer = GENERATE.writer(&request, identity(Dialect::Messages, true));
    for said in said {
        writer.pieces(0, &said.pieces());
    }
    end(&mut *writer, USAGE);
    String::from_utf8(writer.take().to_vec()).unwrap()
}

fn whole(more: &Value, said: &[Said]) -> Value {
    serde_json::from_str(&written(more, said)).unwrap()
}

fn streamed(more: &Value, said: &[Said]) -> Value {
    let mut more = more.clone();
    more["stream"] = "sse".into();
    let stream = written(&more, said);
    match fold(chunks(&stream).unwrap()) {
        Ok(Some(StreamEnd::Response(response))) => response,
        other => panic!("{other:?} of {stream}"),
    }
}

/// The parts of an answer, whole and streamed.
fn parts(more: &Value, said: &[Said]) -> Vec<Value> {
    let answer = whole(more, said);
    assert_eq!(streamed(more, said)["candidates"], answer["candidates"]);
    let parts = answer["candidates"][0]["content"]["parts"].as_array();
    parts.unwrap().clone()
}

fn thoughts() -> Value {
    json!({"generationConfig": {"thinking_config": {"includeThoughts": true}}})
}

#[test]
fn an_answer_has_its_parts_and_the_tokens() {
    let said = [
        Said::Text("Hel"),
        Said::Text("lo"),
        Said::Finish(Finish::Stop),
    ];
    let mut answer = whole(&json!({}), &said);
    assert!(answer["weirgate"]["metadata"]["routing"].is_array());
    answer.as_object_mut().unwrap().remove("weirgate");
    let expected = json!({
        "candidates": [{"content": {"parts": [{"text": "Hello"}], "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 20, "cachedContentTokenCount": 4, "candidatesTokenCount": 4,
            "thoughtsTokenCount": 3, "totalTokenCount": 27},
        "modelVersion": "m", "responseId": "0123abcd"});
    assert_eq!(answer, expected);
    let mut stream = streamed(&json!({}), &said);
    stream.as_object_mut().unwrap().remove("weirgate");
    assert_eq!(stream, expected);
}

#[test]
fn thoughts_are_told_to_those_that_ask_for_them_and_come_back_in_the_state_behind_them() {
    let said = [
        Said::Reasoning("hm"),
        Said::Signature("hm", "EqQB"),
        Said::Text("Yes."),
        Said::Call(1, "c1", "f"),
    ];
    let shown = parts(&thoughts(), &said);
    let hidden = parts(&json!({}), &said);
    assert_eq!(shown[0], json!({"text": "hm", "thought": true}));
    assert_eq!(shown[1..], hidden[..]);
    let sealed = hidden[0]["thoughtSignature"].as_str().unwrap();
    assert_eq!(sealed_dialect(sealed), Some(Dialect::Messages));
    let maker = Maker::from_name(States::NONE, "here/m");
    let told = maker.open(Dialect::Messages, sealed).unwrap();
    let expected = ToldReasoning {
        reasoning: "hm".to_owned(),
        signature: "EqQB".to_owned(),
    };
    assert_eq!(ToldReasoning::read(&told), Some(expected));
    assert_eq!(
        hidden[1],
        json!({"functionCall": {"id": "c1", "name": "f", "args": {}}})
    );
}

#[test]
fn state_without_a_part_behind_it_is_a_part_of_its_own() {
    let told = parts(
        &json!({}),
        &[Said::Redacted("cmVk"), Said::Redacted("b3Ro")],
    );
    assert_eq!(told.len(), 2);
    assert!(
        told.iter()
            .all(|part| part["text"] == "" && part["thoughtSignature"].is_string())
    );
}

#[test]
fn calls_are_whole_and_none_is_lost_however_they_come() {
    let said = [
        Said::Text("a"),
        Said::Call(7, "c1", "f"),
        Said::Call(8, "", "g"),
        Said::Arguments(8, "{\"b\":"),
        Said::Arguments(7, "{\"a\":1}"),
        Said::CallEnd(7),
        Said::Arguments(8, "2}"),
        Said::Signed(9, "c2ln"),
        Said::Finish(Finish::ToolCalls),
    ];
    let told = parts(&json!({}), &said);
    assert_eq!(
        told[1],
        json!({"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}})
    );
    assert_eq!(told[2]["functionCall"]["args"], json!({"b": 2}));
    assert_eq!(told[2]["functionCall"]["id"], "call_0123abcd_2");
    assert!(told[3]["thoughtSignature"].is_string());
    assert_eq!(told[3]["functionCall"]["args"], json!({}));
}

#[test]
fn ids_of_calls_are_not_those_of_the_history() {
    let history = json!({"contents": [{"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {}}}]}]});
    let told = parts(&history, &[Said::Call(1, "c1", "f")]);
    assert_ne!(told[0]["functionCall"]["id"], "c1");
}

#[test]
fn the_end_has_the_word_of_the_vendor() {
    for (finish, word) in [
        (Finish::Stop, "STOP"),
        (Finish::ToolCalls, "STOP"),
        (Finish::Paused, "STOP"),
        (Finish::Length, "MAX_TOKENS"),
        (Finish::ContextFull, "MAX_TOKENS"),
        (Finish::Filtered, "SAFETY"),
    ] {
        let answer = whole(&json!({}), &[Said::Text("a"), Said::Finish(finish)]);
        assert_eq!(answer["candidates"][0]["finishReason"], word);
        assert!(answer.get("promptFeedback").is_none());
    }
    let blocked = whole(&json!({}), &[Said::Finish(Finish::Filtered)]);
    assert_eq!(blocked["promptFeedback"]["blockReason"], "SAFETY");
}

#[test]
fn a_stop_sequence_ends_the_text_whatever_the_provider_does() {
    let stops = json!({"generation_config": {"stop_sequences": ["END"]}});
    let said = [Said::Text("one EN"), Said::Text("D two"), Said::Text("x")];
    assert_eq!(parts(&stops, &said), [json!({"text": "one "})]);
}

#[test]
fn citations_and_searches_are_grounds_by_bytes() {
    let said = [
        Said::Searched,
        Said::Text("Größe"),
        Said::Text(" gut"),
        Said::Cited(6, 9),
        Said::Finish(Finish::Stop),
    ];
    let more = json!({"tools": [{"googleSearch": {}}]});
    let answer = whole(&more, &said);
    let expected = json!({
        "webSearchQueries": ["cats"],
        "groundingChunks": [{"web": {"uri": "https://cats.test", "title": "Cats"}},
            {"web": {"uri": "https://a.example/", "title": "https://a.example/"}}],
        "groundingSupports": [{"segment": {"startIndex": 8, "endIndex": 11, "text": "gut"}, "groundingChunkIndices": [1]}]});
    assert_eq!(answer["candidates"][0]["groundingMetadata"], expected);
    let stream = streamed(&more, &said);
    assert_eq!(stream["candidates"][0]["groundingMetadata"], expected);
}

#[test]
fn an_array_is_one_json_text_also_where_it_breaks() {
    let more = json!({"stream": "array"});
    let text = written(
        &more,
        &[Said::Text("a"), Said::Text("b"), Said::Finish(Finish::Stop)],
    );
    let list: Vec<Value> = serde_json::from_str(&text).unwrap();
    let list: Vec<String> = list.iter().map(Value::to_string).collect();
    let folded = fold(list.iter().map(String::as_str)).unwrap();
    assert!(matches!(folded, Some(StreamEnd::Response(_))), "{folded:?}");
    let request = request(&more);
    for said in [&[][..], &[Said::Text("a")]] {
        let mut writer = GENERATE.writer(&request, identity(Dialect::Messages, true));
        assert_eq!(writer.kind(), ResponseKind::Media("application/json"));
        said.iter()
            .for_each(|said| writer.pieces(0, &said.pieces()));
        writer.fail(&Fault::new(FaultKind::StreamTruncated, "it broke"), None);
        let text = String::from_utf8(writer.take().to_vec()).unwrap();
        let list: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(list.len(), said.len() + 1, "{text}");
        assert_eq!(list.last().unwrap()["error"]["code"], 502);
    }
}

#[test]
fn a_stream_that_breaks_ends_with_an_error() {
    let request =
        request(&json!({"stream": "sse", "generationConfig": {"stopSequences": ["END"]}}));
    let mut writer = GENERATE.writer(&request, identity(Dialect::Messages, true));
    assert!(!writer.has_content());
    writer.pieces(0, &Said::Text("one E").pieces());
    assert!(writer.has_content());
    writer.fail(&Fault::new(FaultKind::StreamTruncated, "it broke"), None);
    let stream = String::from_utf8(writer.take().to_vec()).unwrap();
    let Ok(Some(StreamEnd::Error(error, said))) = fold(chunks(&stream).unwrap()) else {
        panic!("{stream}");
    };
    assert_eq!(error["status"], "UNAVAILABLE");
    assert_eq!(
        said["candidates"][0]["content"]["parts"][0]["text"],
        "one E"
    );
}

#[test]
fn several_candidates_are_told_by_their_numbers() {
    let more = json!({"generationConfig": {"candidateCount": 2}});
    for stream in [Value::Null, "sse".into()] {
        let mut more = more.clone();
        more["stream"] = stream.clone();
        let request = request(&more);
        let mut writer = GENERATE.writer(&request, identity(Dialect::Chat, false));
        for (choice, text) in [(1, "b"), (0, "a"), (2, "never"), (1, "c")] {
            writer.pieces(choice, &Said::Text(text).pieces());
        }
        end(&mut *writer, USAGE);
        let text = String::from_utf8(writer.take().to_vec()).unwrap();
        let answer = match stream.is_null() {
            true => serde_json::from_str(&text).unwrap(),
            false => match fold(chunks(&text).unwrap()) {
                Ok(Some(StreamEnd::Response(response))) => response,
                other => panic!("{other:?} of {text}"),
            },
        };
        let list = answer["candidates"].as_array().unwrap();
        let texts: Vec<&Value> = list
            .iter()
            .map(|it| &it["content"]["parts"][0]["text"])
            .collect();
        assert_eq!(texts, ["a", "bc"], "{text}");
    }
}

/// What a conversation says, in short.
fn told(conversation: &Conversation<'_>) -> Value {
    let block = |block: &Block<'_>| {
        let mut said = match &block.kind {
            BlockKind::Text(text) => json!(&**text),
            BlockKind::Media(media) => match &media.source {
                MediaSource::Url(url) => json!({"url": &**url}),
                MediaSource::Id(id) => json!({"id": &**id}),
                MediaSource::Data { data, format } => json!({"data": &**data, "format": &**format}),
            },
            BlockKind::Call { id, name, input } => json!({"call": [&**id, &**name, &**input]}),
            BlockKind::Result {
                call,
                content,
                is_error,
            } => {
                let texts = content.iter().map(|block| match &block.kind {
                    BlockKind::Text(text) => json!(&**text),
                    _ => json!("media"),
                });
                json!({"result": [call.as_deref(), texts.collect::<Value>(), is_error]})
            }
            BlockKind::Redacted => json!({"redacted": true}),
            other => panic!("{other:?}"),
        };
        for state in &block.states {
            said = json!({"said": said, "state": &*state.text});
        }
        said
    };
    let turns = conversation.turns.iter().map(|turn| {
        let role = match turn.role {
            Role::System | Role::Developer => "system",
            Role::User => "user",
            Role::Assistant => "model",
        };
        json!([role, turn.blocks.iter().map(block).collect::<Value>()])
    });
    turns.collect()
}

#[test]
fn contents_are_turns_and_responses_answer_calls_by_id_by_name_or_in_order() {
    let more = json!({
    "system_instruction": {"role": "user", "parts": [{"text": "Be kind."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "a"}]},
        {"parts": [{"text": "b"}, {"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo="}}]},
        {"role": "model", "parts": [{"text": "thinking", "thought": true}, {"text": "Look."}]},
        {"role": "model", "parts": [
            {"functionCall": {"id": "x", "name": "f", "args": {"n": 1}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "g"}, "thoughtSignature": "skip_thought_signature_validator"},
            {"functionCall": {"name": "g", "args": {}}}]},
        {"role": "user", "parts": [{"text": "and"}, {"functionResponse": {"name": "g", "response": {"output": "G1"}}}]},
        {"role": "function", "parts": [
            {"functionResponse": {"name": "h", "response": {"error": "no"}}},
            {"functionResponse": {"id": "x", "name": "f", "response": {"output": "F", "more": 1}}}]},
    ]});
    let request = request(&more);
    let conversation = GENERATE.conversation(&request).unwrap();
    let image = json!({"url": "data:image/png;base64,iVBORw0KGgo="});
    let expected = json!([
        ["system", ["Be kind."]],
        ["user", ["a"]],
        ["user", ["b", image]],
        ["model", ["Look.", {"said": {"call": ["x", "f", "{\"n\":1}"]}, "state": "c2ln"},
            {"call": ["call_wg_1", "g", "{}"]}, {"call": ["call_wg_2", "g", "{}"]}]],
        ["user", [{"result": ["call_wg_1", ["G1"], false]}, {"result": ["x", ["no"], true]},
            {"result": ["call_wg_2", ["{\"output\":\"F\",\"more\":1}"], false]}]],
        ["user", ["and"]],
    ]);
    assert_eq!(told(&conversation), expected);
}

#[test]
fn sealed_state_of_others_stands_before_its_part_and_files_by_name_are_ids() {
    let maker = Maker::from_name(States::NONE, "here/m");
    let sealed = maker.seal(Dialect::Messages, &ToldReasoning::write("hm", "EqQB"));
    let more = json!({"contents": [
        {"role": "user", "parts": [{"fileData": {"fileUri": "files/abc", "mimeType": "application/pdf"}},
            {"inlineData": {"mimeType": "audio/x-wav", "data": "AAAA"}}]},
        {"role": "model", "parts": [{"functionCall": {"id": "x", "name": "f", "args": {}}, "thoughtSignature": sealed}, {"text": "", "thoughtSignature": "c2ln"}]}]});
    let request = request(&more);
    assert!(request.needs.media.file_ids && request.needs.audio == ["wav".into()]);
    let conversation = GENERATE.conversation(&request).unwrap();
    let expected = json!([
        ["user", [{"id": "files/abc"}, {"data": "AAAA", "format": "wav"}]],
        ["model", [{"said": {"redacted": true}, "state": sealed}, {"call": ["x", "f", "{}"]}]],
    ]);
    assert_eq!(told(&conversation), expected);
}

#[test]
fn tools_choice_and_form_are_those_of_all_dialects() {
    let more = json!({
        "tools": [{"functionDeclarations": [
            {"name": "f", "description": "d", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}},
            {"name": "g", "parametersJsonSchema": {"type": "object"}}, {"name": "h"}]}, {"google_search": {"exclude_domains": ["a.example"]}}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "generationConfig": {"temperature": 0.5, "topP": 0.9, "stopSequences": ["x"], "responseMimeType": "application/json",
            "responseSchema": {"type": "OBJECT"}, "maxOutputTokens": 7}});
    let request = request(&more);
    let conversation = GENERATE.conversation(&request).unwrap();
    let functions: Vec<_> = conversation.functions().collect();
    assert_eq!(functions.len(), 1);
    let schema = functions[0].parameters.as_deref().unwrap();
    assert_eq!(
        schema,
        r#"{"properties":{"a":{"type":"string"}},"type":"object"}"#
    );
    assert!(conversation.web_search().unwrap().blocked_domains.is_some());
    assert!(matches!(&conversation.choice, Some(ToolChoice::Function(name)) if &**name == "f"));
    let options: Vec<_> = conversation
        .options
        .iter()
        .map(|(it, raw)| (*it, raw.get()))
        .collect();
    use crate::models::parameter::Parameter;
    assert_eq!(
        options,
        [(Parameter::Temperature, "0.5"), (Parameter::TopP, "0.9")]
    );
    assert_eq!(conversation.stop.len(), 1);
    assert_eq!(request.needs.max_tokens, Some(7));
    assert!(request.needs.forced_tools && request.needs.json_schema);
}

fn said() -> impl Strategy<Value = Said> {
    let data = prop_oneof![Just("c2ln"), Just(""), Just("x")];
    prop_oneof![
        4 => prop_oneof![Just("a"), Just("END"), Just(""), Just("é\n\"")].prop_map(Said::Text),
        1 => Just(Said::Refusal("no")),
        2 => prop_oneof![Just("hm"), Just("")].prop_map(Said::Reasoning),
        1 => data.clone().prop_map(|data| Said::Signature("hm", data)),
        1 => data.clone().prop_map(Said::Redacted),
        2 => (0_u64..3, prop_oneof![Just("c1"), Just(""), Just("c 1")]).prop_map(|(key, id)| Said::Call(key, id, "f")),
        1 => (0_u64..3, data).prop_map(|(key, data)| Said::Signed(key, data)),
        2 => (0_u64..3, prop_oneof![Just("{\"a\":1}"), Just("{"), Just("[]"), Just("")]).prop_map(|(key, json)| Said::Arguments(key, json)),
        1 => (0_u64..3).prop_map(Said::CallEnd),
        1 => (0_u64..3, 0_u64..5).prop_map(|(start, end)| Said::Cited(start, end)),
        1 => Just(Said::Drawn),
        1 => Just(Said::Searched),
        1 => prop_oneof![Just(Finish::Stop), Just(Finish::Length), Just(Finish::Filtered)].prop_map(Said::Finish),
    ]
}

proptest! {
    #[test]
    fn the_folded_stream_is_the_whole_answer(said in prop::collection::vec(said(), 0..12), shows: bool, stops: bool) {
        let mut more = json!({"generationConfig": {"thinkingConfig": {"includeThoughts": shows}}, "tools": [{"googleSearch": {}}]});
        if stops {
            more["generationConfig"]["stopSequences"] = json!(["END"]);
        }
        let (answer, stream) = (whole(&more, &said), streamed(&more, &said));
        let mut candidates = answer["candidates"].clone();
        let parts = &mut candidates[0]["content"]["parts"];
        let mut told = Vec::new();
        let said = parts.as_array().unwrap().iter();
        said.for_each(|part| add(&mut told, part));
        *parts = told.into();
        prop_assert_eq!(&stream["candidates"], &candidates, "{}", answer);
        prop_assert_eq!(&stream["usageMetadata"], &answer["usageMetadata"]);
    }
}
