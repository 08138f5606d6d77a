//! `:embedContent` and `:batchEmbedContents`. Source: docs/facts/contents.md 4.

use serde_json::{Value, json};

use super::contents::send;
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

fn embeds() -> Upstream {
    Upstream::answering(|request| {
        let body = request.json();
        let vector = |at: usize| json!([at as f64 + 0.5, 1.0]);
        match request.path.contains("batchEmbedContents") {
            true => {
                let count = body["requests"].as_array().unwrap().len();
                let all = (0..count).map(|at| json!({"values": vector(at)}));
                Reply::json(
                    200,
                    json!({"embeddings": all.collect::<Value>()}).to_string(),
                )
            }
            false => {
                let count = body["input"].as_array().unwrap().len();
                let all = (0..count)
                    .map(|at| json!({"object": "embedding", "index": at, "embedding": vector(at)}));
                let reply = json!({"object": "list", "model": "up", "data": all.collect::<Value>(), "usage": {"prompt_tokens": 5, "total_tokens": 5}});
                Reply::json(200, reply.to_string())
            }
        }
    })
}

fn gateway(provider: &Upstream) -> Gateway {
    let url = provider.url();
    let toml = format!(
        "[providers.first]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n\
         [providers.third]\nkind = \"google\"\nbase_url = \"{url}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n"
    );
    let models = ["first", "third"].map(|provider| {
        format!(
            "[[models]]\nid = \"vectors-{provider}\"\ntype = \"embedding\"\n[[models.providers]]\nprovider = \"{provider}\"\n\
             name = \"up\"\ncapabilities = [\"dimensions\"]\ninput_price = \"1\"\n"
        )
    });
    Gateway::start_with_credit(&toml, &models.concat(), &[("FIRST_KEY", "sk-first")], "10")
}

#[test]
fn vectors_come_from_any_provider_of_them() {
    let provider = embeds();
    let gateway = gateway(&provider);
    let content = |text: &str| json!({"parts": [{"text": text}]});
    for model in ["vectors-first", "vectors-third"] {
        let one = json!({"content": content("a"), "taskType": "RETRIEVAL_QUERY"});
        let answer = send(&gateway, model, "embedContent", &one);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(
            answer.json()["embedding"],
            json!({"values": [0.5, 1.0]}),
            "{model}"
        );
        let name = format!("models/{model}");
        let batch = json!({"requests": [{"model": name, "content": content("a")}, {"model": name, "content": content("b")}]});
        let answer = send(&gateway, model, "batchEmbedContents", &batch);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let expected = json!([{"values": [0.5, 1.0]}, {"values": [1.5, 1.0]}]);
        assert_eq!(answer.json()["embeddings"], expected, "{model}");
        assert!(answer.json()["usageMetadata"]["promptTokenCount"].as_u64() > Some(0));
    }
    let bad = send(
        &gateway,
        "vectors-first",
        "embedContent",
        &json!({"content": content("a"), "title": "t"}),
    );
    assert_eq!(bad.status(), 400);
    assert_eq!(bad.json()["error"]["status"], "INVALID_ARGUMENT");
    let chat = send(
        &gateway,
        "vectors-first",
        "generateContent",
        &json!({"contents": [content("a")]}),
    );
    assert_eq!(chat.status(), 400, "{}", chat.text());
}
