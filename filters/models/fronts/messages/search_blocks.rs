//! The blocks of a search that the gateway has run: the call, which a client shows while the search runs, and what was found.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::json::{Object, Str};
use crate::models::chat::piece::Search;
use crate::models::search_loop::function::NAME;
use crate::models::search_loop::pages::Page;

/// Writes the call. `input` is its input, or an empty object where that follows.
pub(super) fn write_call(id: &str, input: &str, out: &mut Vec<u8>) {
    let mut block = Object::open(out);
    block.text("type", "server_tool_use");
    block.text("id", id);
    block.text("name", NAME);
    block.raw("input", input);
    block.close();
}

/// Returns the input of the call: a JSON object.
pub(super) fn input(search: &Search<'_>) -> String {
    ["{\"query\":", &crate::json::quoted(search.query), "}"].concat()
}

/// Writes what was found.
pub(super) fn write_result(id: &str, search: &Search<'_>, out: &mut Vec<u8>) {
    let mut block = Object::open(out);
    block.text("type", "web_search_tool_result");
    block.text("tool_use_id", id);
    match search.found {
        Ok(pages) => {
            let pages: Vec<Page> = serde_json::from_str(pages).unwrap_or_default();
            block.array("content", &pages, write_page);
        }
        Err(word) => block.object("content", |error| {
            error.text("type", "web_search_tool_result_error");
            error.text("error_code", word);
        }),
    }
    block.close();
}

fn write_page(page: &Page, out: &mut Vec<u8>) {
    let mut found = Object::open(out);
    found.text("type", "web_search_result");
    found.text("url", &page.url);
    found.text("title", &page.title);
    // Clients do not read it; the vendor's own is encrypted.
    found.value("encrypted_content", |out| {
        Str::Plain(&STANDARD.encode(&page.snippet)).write(out);
    });
    found.text_or_null("page_age", page.date.as_deref());
    found.close();
}
