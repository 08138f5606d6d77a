//! Requests: every front alone, and what the wires make of what it accepts.

use bytes::Bytes;
use filters::accounts::Mode;
use filters::models::embeddings::tokenizer::Tokenizer;
use filters::models::front::{ClientHead, Front, Received};
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::completions::Completions;
use filters::models::fronts::contents::GENERATE;
use filters::models::fronts::embeddings::EMBEDDINGS;
use filters::models::fronts::images::{ImageEdits, ImageGenerations};
use filters::models::fronts::messages::{Messages, count_tokens};
use filters::models::fronts::responses::Responses;
use filters::models::fronts::speech::SPEECH;
use filters::models::fronts::transcriptions::Transcriptions;
use filters::models::reply_cache::key::{KeyScope, ReplyKeys};
use filters::models::request::Payload;
use filters::models::stored_responses::expand::{History, expand};
use filters::models::stored_responses::items::{ItemIndex, ItemPage, StoredTurn, write_page};
use filters::models::wires::{Quirks, WireKind};
use filters::multipart::{self, FormReader};
use filters::spooled_json::SpooledJsonReader;
use serde_json::{Value, json};

use super::{Reader, attacks, contents_attacks};
use crate::choices::Choices;
use crate::completions;
use crate::contents;
use crate::lists::{self, Operation};
use crate::messages::request_grammar;
use crate::models::{WIRES, chat_grammar, target};
use crate::{grammar, responses, uploads};

/// Pieces in which bodies arrive.
const PIECE_BYTES: usize = 16 << 10;

pub fn of_grammar(grammar: Value) -> impl Fn(&mut Choices<'_>) -> Vec<u8> {
    move |choices| grammar::compose(choices, &grammar).to_string().into_bytes()
}

/// What changes a chat most.
fn strict() -> Quirks {
    Quirks {
        strict_messages: true,
        drop_unknown_fields: true,
        tool_call_ids_of_nine: true,
        null_content_is_empty: true,
        strict_schema: true,
        developer_is_system: true,
        late_instructions: false,
        ..Quirks::default()
    }
}

/// A request that goes on with itself, and refers to all that it can.
fn expand_itself(body: &Bytes) {
    let Ok(Received::Stateful(request)) = Responses.read(&ClientHead::silent(), body.clone())
    else {
        return;
    };
    let member = request.source.member("input");
    let input = member.map_or(&b"[]"[..], |member| request.source.value(member));
    let input = std::str::from_utf8(input).unwrap_or_default();
    let turns = [StoredTurn {
        id: "0102030405060708090a0b0c0d0e0f10",
        input,
        response: "{}",
    }];
    let mut index = ItemIndex::new(request.references.iter().map(|it| &*it.id));
    if index.add(&turns[0]).is_ok() {
        let history = History {
            turns: &turns,
            has_previous: true,
            index: &index,
        };
        let _ = expand(&request, history, 2 * body.len());
    }
}

/// Lists the items of a request.
fn list_items(body: &Bytes) {
    let page = ItemPage {
        after: None,
        limit: 100,
        is_ascending: false,
    };
    let text = std::str::from_utf8(body).unwrap_or_default();
    let turn = StoredTurn {
        id: "0102030405060708090a0b0c0d0e0f10",
        input: text
            .split_once("\"input\":")
            .map_or("[]", |(_, rest)| rest.trim_end_matches('}')),
        response: "{}",
    };
    let _ = write_page(&turn, &page);
}

fn encode(front: &dyn Front, wires: &[WireKind], quirks: &Quirks, body: &Bytes) {
    let Ok(request) = front.parse(body.clone()) else {
        return;
    };
    for wire in wires {
        if let Some(codec) = wire.wire().codec(request.payload.operation()) {
            let _ = codec.encode(&request, &target(quirks));
        }
    }
}

/// Returns the readers of chats.
pub fn chats() -> Vec<Reader> {
    let chat = || of_grammar(chat_grammar());
    let mut readers = vec![
        Reader::new("chats", chat(), |body| {
            let _ = ChatCompletions.parse(body.clone());
        }),
        Reader::new("chats: key of the response cache", chat(), |body| {
            let scope = KeyScope {
                organization_id: "o",
                project_id: "p",
                mode: Mode::Platform,
                candidates: [1; 32],
            };
            if let Ok(request) = ChatCompletions.parse(body.clone()) {
                let _ = ReplyKeys::new(&[9; 32]).unwrap().key(&scope, &request);
            }
        }),
    ];
    for wire in WIRES {
        for (quirks, what) in [(Quirks::default(), ""), (strict(), ", strict")] {
            let name = format!("chats: {wire:?}{what}");
            readers.push(Reader::new(name, chat(), move |body| {
                encode(&ChatCompletions, &[wire], &quirks, body);
            }));
        }
    }
    let attacked = readers.into_iter();
    attacked.map(|it| it.with(&attacks::CHATS)).collect()
}

/// Returns the readers of requests of Messages.
pub fn messages() -> Vec<Reader> {
    let asked = || of_grammar(request_grammar());
    let mut readers = vec![Reader::new("messages: counted", asked(), |body| {
        let _ = count_tokens(body.clone());
    })];
    for wire in WIRES {
        let name = format!("messages: {wire:?}");
        readers.push(Reader::new(name, asked(), move |body| {
            encode(&Messages, &[wire], &strict(), body);
        }));
    }
    let attacked = readers.into_iter();
    attacked.map(|it| it.with(&attacks::OF_MESSAGES)).collect()
}

/// Returns the readers of requests of Responses.
pub fn responses() -> Vec<Reader> {
    let readers = WIRES.into_iter().map(|wire| {
        let asked = of_grammar(responses::request_grammar());
        let reader = Reader::new(format!("responses: {wire:?}"), asked, move |body| {
            encode(&Responses, &[wire], &strict(), body);
        });
        reader.with(&attacks::OF_RESPONSES)
    });
    let asked = || of_grammar(responses::kept_grammar());
    let kept = [
        Reader::new("responses: kept responses", asked(), expand_itself),
        Reader::new("responses: kept items", asked(), list_items),
    ];
    let kept = kept.map(|reader| reader.with(&attacks::OF_KEPT_RESPONSES));
    readers.chain(kept).collect()
}

/// Returns the readers of requests of Contents.
pub fn contents() -> Vec<Reader> {
    let readers = WIRES.into_iter().map(|wire| {
        let asked = of_grammar(contents::request_grammar());
        let reader = Reader::new(format!("contents: {wire:?}"), asked, move |body| {
            encode(&GENERATE, &[wire], &strict(), body);
        });
        reader.with(&contents_attacks::OF_CONTENTS)
    });
    readers.collect()
}

fn simple(name: &str, front: &'static dyn Front, grammar: Value) -> Reader {
    const ALL: [WireKind; 11] = [
        WireKind::Compatible,
        WireKind::Completions,
        WireKind::Responses,
        WireKind::Messages,
        WireKind::Contents,
        WireKind::Cohere,
        WireKind::Voyage,
        WireKind::Tavily,
        WireKind::Exa,
        WireKind::Images,
        WireKind::ImagesByRatio,
    ];
    let quirks = strict();
    Reader::new(name, of_grammar(grammar), move |body| {
        encode(front, &ALL, &quirks, body);
    })
}

/// Returns the reader that judges how long the texts of embeddings are.
fn lengths(grammar: Value) -> Reader {
    let find = |body: &Bytes| {
        let request = EMBEDDINGS.parse(body.clone()).ok()?;
        let Payload::Embeddings(facts) = &request.payload else {
            return None;
        };
        facts.find_long_text(body, Tokenizer::Cl100kBase, 8192)
    };
    // The vocabulary is read once.
    let first = json!({"model": "m", "input": "one two ".repeat(8192)});
    assert_eq!(find(&first.to_string().into()), Some(0));
    Reader::new(
        "embeddings: lengths of texts",
        of_grammar(grammar),
        move |body| {
            let _ = find(body);
        },
    )
}

/// Returns the readers of other requests.
pub fn others() -> Vec<Reader> {
    let image = json!({"image_url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"});
    let drawn =
        json!({"model": "m", "prompt": "A cat", "n": 2, "size?": "1024x1024", "unknown?": "$any"});
    let edited = json!({"model": "m", "prompt": "A cat", "images": [image, image]});
    let texts = json!({"model": "m", "input": {"$one": ["Hi", ["a", "b"], [1, 2], [[1], [2, 3]]]}, "dimensions?": 8, "unknown?": "$any"});
    let spoken = json!({"model": "m", "input": {"$one": ["Hi", "$text"]}, "voice": "alloy", "speed?": 1.5, "response_format?": "wav"});
    let of = |name: &str, operation: Operation| simple(name, operation.front, operation.requests);
    vec![
        simple("completions", &Completions, completions::request_grammar())
            .with(&attacks::OF_COMPLETIONS),
        simple("images", &ImageGenerations, drawn),
        simple("edits of images", &ImageEdits, edited),
        simple("embeddings", &EMBEDDINGS, texts.clone()),
        lengths(texts).with(&attacks::RUNS),
        simple("speech", &SPEECH, spoken),
        of("rerank", lists::rerank()),
        of("moderations", lists::moderations()),
        of("ocr", lists::ocr()).with(&attacks::OCR),
        of("search", lists::search()),
        of("decisions of models", lists::decisions()),
        of("videos", lists::videos()),
        Reader::new("spooled JSON", of_grammar(chat_grammar()), |body| {
            let (mut reader, mut data) = (SpooledJsonReader::new(), Vec::new());
            for piece in body.chunks(PIECE_BYTES) {
                reader.feed(piece, &mut data);
                data.clear();
            }
            let json = reader.finish();
            let _ = ChatCompletions.read_spooled(json);
        }),
    ]
}

/// Returns the readers of forms.
pub fn forms() -> Vec<Reader> {
    let upload = |body: &Bytes| {
        let mut reader = FormReader::new("b").unwrap();
        let mut file = Vec::new();
        for piece in body.chunks(PIECE_BYTES) {
            if reader.feed(piece, &mut file).is_err() {
                return;
            }
            file.clear();
        }
        let Ok(form) = reader.finish() else { return };
        if let Ok(request) = Transcriptions.read_upload(form) {
            let wire = WireKind::Compatible.wire();
            let codec = wire.codec(request.payload.operation()).unwrap();
            let _ = codec.encode(&request, &target(&Quirks::default()));
        }
    };
    let form = |body: &Bytes| {
        let _ = multipart::parts(body, "b");
        if let Ok(received) = ImageEdits.read_form(body, "b") {
            drop(received);
        }
    };
    vec![
        Reader::new("uploads", uploads::compose, upload).with(&attacks::FORMS),
        Reader::new("forms", uploads::compose, form).with(&attacks::FORMS),
    ]
}
