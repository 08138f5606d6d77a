//! The catalogue, names of models, amounts, requests that name a prompt, and what follows a connection's bytes.

use std::sync::Arc;

use filters::cidr::Cidr;
use filters::mcp::session::SessionIds;
use filters::models::front::{ClientHead, Front, Received};
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::managed::expand::Filling;
use filters::models::operation::Operation;
use filters::models::prompts::library::FoundPrompt;
use filters::models::prompts::prompt::Prompt;
use filters::models::prompts::reference::PromptReference;
use filters::models::prompts::tree::Node;
use filters::models::routing::CatalogFile;
use filters::models::routing::catalog::Catalog;
use filters::money::{Price, Usd};
use filters::proxy::RequestFollower;
use serde_json::json;

use super::Reader;
use super::fronts::of_grammar;
use crate::{models, requests};

/// What a request may become. Source: `limits.body_bytes.chat`.
const MAX_EXPANDED_BYTES: usize = 20 << 20;

/// Returns the readers.
pub fn catalogue() -> Vec<Reader> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let find = models::names();
    let prompt = prompt();
    let ids = SessionIds::new(&[7; 32]).unwrap();
    let managed = json!({"model": "@prompt/hi", "messages": [{"role": "user", "content": "Hi"}],
        "prompt": {"id": "hi", "variables": {"name": "$text", "more?": "$any"}}, "temperature?": 1, "x?": "$any"});
    vec![
        Reader::new("catalogue", of_grammar(models::catalog_grammar()), |file| {
            if let Ok(file) = serde_json::from_slice::<CatalogFile>(file) {
                let _ = Catalog::check(file, ["a", "b"].into_iter().collect());
            }
        }),
        Reader::new(
            "names of models",
            |_| b"a/m:eu".to_vec(),
            move |name| {
                let name = text(name);
                let _ = find(&name, Operation::Chat).is_ok();
                let _ = PromptReference::parse(&name).is_some();
            },
        ),
        Reader::new(
            "amounts",
            |_| b"-12.000000001".to_vec(),
            move |amount| {
                let amount = text(amount);
                let _ = (
                    Usd::parse(&amount).is_ok(),
                    Usd::parse_signed(&amount).is_ok(),
                );
                let _ = Price::per_million(&amount).is_ok();
            },
        ),
        Reader::new(
            "blocks of addresses",
            |_| b"2001:db8::/32".to_vec(),
            move |block| {
                let _ = text(block).parse::<Cidr>().is_ok();
            },
        ),
        Reader::new(
            "ids of sessions",
            |_| b"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_vec(),
            move |id| {
                let _ = ids.read(id, "key_1", 1).is_some();
            },
        ),
        Reader::new(
            "chats that name a prompt",
            of_grammar(managed),
            move |body| {
                let Ok(Received::Managed(request)) =
                    ChatCompletions.read(&ClientHead::silent(), body.clone())
                else {
                    return;
                };
                let filling = Filling {
                    variation: None,
                    prompt: Some(&prompt),
                };
                let _ = request.expand(filling, MAX_EXPANDED_BYTES).is_ok();
            },
        ),
        Reader::new("requests of a connection", requests::request, |bytes| {
            let mut follower = RequestFollower::new(32 << 10);
            let mut left: &[u8] = bytes;
            while let Ok(count @ 1..) = follower.follow(left) {
                left = left.get(count..).unwrap_or_default();
                if follower.is_whole() {
                    follower.begin_next();
                }
            }
        }),
    ]
}

/// Returns a prompt with a variable that it repeats.
fn prompt() -> FoundPrompt {
    let file = json!({"messages": [{"role": "system", "content": "{{name}} and {{ name }}"}], "model": "m"});
    let root = Node::parse_json(&file.to_string()).unwrap();
    FoundPrompt {
        prompt: Arc::new(Prompt::compile(&root).ok().unwrap()),
        name: "hi".into(),
        version: 1,
        label: None,
    }
}
