#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::tests::{fold, identity, request};
use super::*;
use crate::json::Str;
use crate::models::chat::piece::{Citation, Finish, Piece};
use crate::models::fronts::tests::end;
use crate::models::usage::Usage;

fn text(text: &'static str) -> Piece<'static> {
    Piece::Text(Str::Plain(text))
}

fn page(start: u64, end: u64) -> Piece<'static> {
    Piece::Citation(Citation::Page {
        url: Str::Plain("https://a.example/?q=\"é\""),
        title: Some(Str::Plain("A")),
        start,
        end,
    })
}

fn cited(quote: &str) -> Value {
    json!({"type": "web_search_result_location", "url": "https://a.example/?q=\"é\"", "title": "A", "encrypted_index": "", "cited_text": quote})
}

/// The content of the message, which is the same whole and streamed.
fn content(searches: bool, said: &[&[Piece<'_>]]) -> Value {
    let tools = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    let [streamed, whole] = [true, false].map(|is_stream| {
        let mut more = json!({"stream": is_stream});
        if searches {
            more["tools"] = tools.clone();
        }
        let mut writer = Messages.writer(&request(&more), identity(false));
        for pieces in said {
            writer.pieces(0, pieces);
        }
        writer.pieces(0, &[Piece::Finish(Finish::Stop)]);
        end(&mut *writer, Usage::default());
        String::from_utf8(writer.take().to_vec()).unwrap()
    });
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let streamed = fold(&streamed);
    assert_eq!(streamed["content"], whole["content"]);
    streamed["content"].clone()
}

#[test]
fn a_text_holds_the_pages_that_it_rests_on() {
    let said: [&[Piece<'_>]; 4] = [
        &[text("Le café ")],
        &[text("est là."), page(3, 7)],
        &[page(0, 0), page(8, 999), page(7, 3)],
        &[text(" Oui.")],
    ];
    let expected = json!([{"type": "text", "text": "Le café est là. Oui.", "citations": [cited("café"), cited(""), cited(""), cited("")]}]);
    assert_eq!(content(true, &said), expected);
    // Without a search the text is not kept, so nothing is quoted.
    let unquoted = content(false, &said);
    assert_eq!(unquoted[0]["citations"][0], cited(""));
    assert_eq!(unquoted[0]["citations"].as_array().unwrap().len(), 4);
}

#[test]
fn a_citation_stands_in_the_open_text_or_in_the_next_one() {
    let said: [&[Piece<'_>]; 5] = [
        &[page(0, 0)],
        &[Piece::Reasoning(Str::Plain("hm"))],
        &[text("One.")],
        &[Piece::Reasoning(Str::Plain("hm")), page(0, 4)],
        &[text("Two."), page(4, 8)],
    ];
    let blocks = content(true, &said);
    let of = |at: usize| blocks[at].get("citations");
    assert_eq!(
        [of(0), of(1), of(2), of(3)],
        [
            None,
            Some(&json!([cited("")])),
            None,
            Some(&json!([cited("One."), cited("Two.")]))
        ],
        "{blocks}"
    );
    // No text comes, so there is none that rests on anything.
    assert_eq!(content(true, &[&[page(0, 0)]]), json!([]));
}

#[test]
fn annotations_of_the_chat_convention_become_citations() {
    let annotations = r#"{"type":"url_citation","url_citation":{"url":"https://b.example","title":"B","start_index":0,"end_index":3,"content":"long"}},
        {"type":"url_citation","url_citation":{"url":"https:\/\/c.example","start_index":null}},{"type":"file_citation","file":{}},7"#;
    let said = Piece::Citation(Citation::Said(annotations));
    let blocks = content(true, &[&[text("Yes."), said]]);
    let location = |url: &str, title: Value, quote: &str| json!({"type": "web_search_result_location", "url": url, "title": title, "encrypted_index": "", "cited_text": quote});
    assert_eq!(
        blocks[0]["citations"],
        json!([
            location("https://b.example", "B".into(), "Yes"),
            location("https://c.example", Value::Null, "")
        ])
    );
}
