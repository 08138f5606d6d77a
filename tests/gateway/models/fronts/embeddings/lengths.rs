//! Inputs that are longer than a model takes, where its tokenizer is known. Source: docs/model-gateway.md 2.6.

use serde_json::{Value, json};

use super::vectors;
use crate::support::boot::Gateway;
use crate::support::client::Answer;
use crate::support::upstream::Upstream;

/// Vectors at a provider whose tokenizer is known, and at one whose is not.
const MODELS: &str = r#"
[[models]]
id = "vectors"
type = "embedding"
[[models.providers]]
provider = "first"
name = "vectors-at-first"
input_price = "2"
context_size = 8192
tokenizer = "cl100k_base"
[[models.providers]]
provider = "second"
name = "vectors-at-second"
input_price = "4"
context_size = 8192
"#;

fn gateway(first: &Upstream, second: &Upstream) -> Gateway {
    let (first, second) = (first.url(), second.url());
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{first}/v1\"\nkeys = []\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{second}/v1\"\nkeys = []\n"
    );
    Gateway::start_with_credit(&toml, MODELS, &[], "100")
}

fn embed(gateway: &Gateway, model: &str, input: &Value) -> Answer {
    gateway.embed(json!({"model": model, "input": input}).to_string())
}

/// Source: model-gateway 2.6
/// Contract: model-gateway 2.6 input
/// Contract: model-gateway 8 6
#[test]
fn an_input_beyond_the_models_maximum_is_refused_by_its_tokens() {
    let upstream = Upstream::always(vectors());
    let gateway = gateway(&upstream, &upstream);
    let fits = " the".repeat(8192);
    let long = " the".repeat(8193);
    // Tokens count as they are, and so does what escapes stand for.
    let cases = [
        (json!(["one", long]), "input[1]"),
        (json!(long), "input"),
        (json!(["一".repeat(8193), "two"]), "input[0]"),
        (json!([[1, 2], vec![7; 8193]]), "input[1]"),
        // Too long whatever its tokens are.
        (json!(["one", " ".repeat(128 * 8192 + 1)]), "input[1]"),
    ];
    for (input, param) in cases {
        let answer = embed(&gateway, "first/vectors", &input);
        let error = &answer.json()["error"];
        assert_eq!((answer.status(), &error["param"]), (400, &json!(param)));
        let said = error["message"].as_str().unwrap();
        assert!(
            said.contains("takes at most 8192 tokens in an input"),
            "{said}"
        );
    }
    assert!(upstream.requests().is_empty());
    // Many bytes are not many tokens.
    for input in [json!([fits, "two"]), json!(["one", " ".repeat(500_000)])] {
        assert_eq!(embed(&gateway, "first/vectors", &input).status(), 200);
    }
    let escaped = format!(
        r#"{{"model":"first/vectors","input":["{}","two"]}}"#,
        r"\u0020the".repeat(8192)
    );
    assert_eq!(gateway.embed(escaped).status(), 200);
}

/// Source: model-gateway 2.6
/// Contract: model-gateway 2.6 input
#[test]
fn a_provider_judges_a_text_whose_tokenizer_is_unknown() {
    let (first, second) = (Upstream::always(vectors()), Upstream::always(vectors()));
    let gateway = gateway(&first, &second);
    let long = json!([" the".repeat(8193), "two"]);
    let answer = embed(&gateway, "vectors", &long);
    assert_eq!(
        answer.json()["model"],
        "second/vectors",
        "{}",
        answer.text()
    );
    assert!(first.requests().is_empty());
    let huge = json!([" ".repeat(3_000_000), "two"]);
    assert_eq!(embed(&gateway, "second/vectors", &huge).status(), 200);
}
