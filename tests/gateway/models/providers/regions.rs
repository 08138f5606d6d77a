//! The region that a model string names: its address, its key, its price, and what the answer says of it.

use filters::accounts::Mode;
use serde_json::{Value, json};

use crate::ledger::used;
use crate::models::fronts::chat_completions::{reply, stream};
use crate::support::boot::Gateway;
use crate::support::client::Answer;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// A call costs 0.003 at home and in `key`, 0.0033 in `eu`, 0.01 in `us` and what nobody knows in `dark`.
const MODELS: &str = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
input_price = "2.5"
cached_input_price = "1.25"
output_price = "10"
regions = ["eu", "us", "key", "dark"]
region_prices = { eu = { multiplier = "1.1" }, us = { input_price = "5", output_price = "50" }, key = { multiplier = "1" } }
capabilities = ["streaming", "cancellation"]
"#;

fn gateway(home: &Upstream, eu: &Upstream, us: &Upstream) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = [{{ env = \"HOME_KEY\" }}]\n\
         [providers.first.regions.eu]\nbase_url = \"{}/eu/v1/\"\n\
         [providers.first.regions.us]\nbase_url = \"{}/v1\"\nkeys = [{{ env = \"US_KEY\" }}]\n\
         [providers.first.regions.key]\nkeys = [{{ env = \"OTHER_KEY\" }}]\n\
         [providers.first.regions.dark]\nkeys = [{{ env = \"OTHER_KEY\" }}]\n",
        home.url(),
        eu.url(),
        us.url()
    );
    let env = [
        ("HOME_KEY", "sk-home"),
        ("US_KEY", "sk-us"),
        ("OTHER_KEY", "sk-other"),
    ];
    Gateway::start_with_credit(&toml, MODELS, &env, "1")
}

fn ask(gateway: &Gateway, model: &str, is_stream: bool) -> Answer {
    let body = json!({"model": model, "stream": is_stream, "messages": [{"role": "user", "content": "Hi"}]});
    gateway.chat(body.to_string())
}

#[test]
fn a_region_selects_address_key_and_price_and_the_answer_names_what_was_called() {
    let [home, eu, us] = [(); 3].map(|()| Upstream::always(reply()));
    let gateway = gateway(&home, &eu, &us);
    // The region named, who is called at which path with which key, and the cost.
    let cases = [
        (
            "",
            &home,
            "/v1/chat/completions",
            "Bearer sk-home",
            json!(0.003),
        ),
        (
            "eu",
            &eu,
            "/eu/v1/chat/completions",
            "Bearer sk-home",
            json!(0.0033),
        ),
        (
            "us",
            &us,
            "/v1/chat/completions",
            "Bearer sk-us",
            json!(0.01),
        ),
        (
            "key",
            &home,
            "/v1/chat/completions",
            "Bearer sk-other",
            json!(0.003),
        ),
    ];
    let mut calls = 0;
    for (region, upstream, path, key, cost) in cases {
        let (model, used_model) = match region {
            "" => ("first/chat".to_owned(), "first/chat".to_owned()),
            region => (
                format!("first/chat:{region}"),
                format!("first/chat:{region}"),
            ),
        };
        let answer = ask(&gateway, &model, false);
        let body = answer.json();
        assert_eq!(answer.status(), 200, "{body}");
        calls += 1;
        let total: usize = [&home, &eu, &us]
            .map(|upstream| upstream.requests().len())
            .iter()
            .sum();
        assert_eq!(total, calls, "{region}");
        let sent = upstream.requests().last().unwrap().clone();
        assert_eq!(
            (&*sent.path, sent.header("authorization")),
            (path, Some(key)),
            "{region}"
        );
        assert_eq!(body["usage"]["cost"], cost, "{region}");
        let metadata = &body["metadata"];
        let claimed = Some(region).filter(|region| !region.is_empty());
        assert_eq!(metadata["used_model"], used_model, "{region}");
        assert_eq!(metadata["used_region"].as_str(), claimed);
        assert_eq!(metadata["routing"][0]["region"].as_str(), claimed);
    }
    used(&gateway, "0.0193");
}

#[test]
fn a_stream_is_called_in_its_region_too() {
    let [home, eu, us] = [(); 3].map(|()| Upstream::always(stream()));
    let gateway = gateway(&home, &eu, &us);
    let answer = ask(&gateway, "first/chat:eu", true);
    let last: Value = answer.events().json().last().unwrap().clone();
    assert_eq!(last["metadata"]["used_region"], "eu", "{}", answer.text());
    assert_eq!((home.requests().len(), eu.requests().len()), (0, 1));
}

#[test]
fn a_request_without_a_region_is_never_called_in_one() {
    let [home, eu, us] = [(); 3].map(|()| Upstream::always(reply()));
    let gateway = gateway(&home, &eu, &us);
    for _ in 0..3 {
        assert_eq!(ask(&gateway, "chat", false).status(), 200);
    }
    assert_eq!(
        (
            home.requests().len(),
            eu.requests().len(),
            us.requests().len()
        ),
        (3, 0, 0)
    );
    let unknown = ask(&gateway, "first/chat:mars", false);
    assert_eq!(
        (unknown.status(), &unknown.json()["error"]["code"]),
        (404, &"model_not_found".into())
    );
}

#[test]
fn a_provider_that_takes_the_region_in_the_request_is_told_it() {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "end_turn",
                         "content": [{"type": "text", "text": "hello"}],
                         "usage": {"input_tokens": 1000, "output_tokens": 100}});
    let upstream = Upstream::always(Reply::json(200, message.to_string()));
    let toml = format!(
        "[providers.first]\nkind = \"anthropic\"\nbase_url = \"{}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n",
        upstream.url()
    );
    let models = MODELS.replace(", \"key\", \"dark\"", "");
    let gateway =
        Gateway::start_with_credit(&toml, &models, &[("FIRST_KEY", "sk-platform-1")], "1");
    for (model, geo) in [("first/chat:us", Some("us")), ("chat", None)] {
        let body = ask(&gateway, model, false).json();
        let sent = upstream.requests().last().unwrap().json();
        assert_eq!(
            sent.get("inference_geo").and_then(Value::as_str),
            geo,
            "{sent}"
        );
        assert_eq!(body["metadata"]["used_region"].as_str(), geo, "{body}");
    }
}

#[test]
fn a_region_without_prices_is_for_callers_with_a_key_of_their_own() {
    let home = Upstream::always(reply());
    let gateway = gateway(&home, &home, &home);
    let refused = ask(&gateway, "first/chat:dark", false);
    let error = refused.json()["error"].clone();
    assert_eq!(refused.status(), 400, "{error}");
    assert_eq!(error["param"], "model", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("has no prices for the region `dark`"),
        "{message}"
    );
    assert!(home.requests().is_empty());
    gateway.set_mode(Mode::Hybrid);
    assert_eq!(ask(&gateway, "first/chat:dark", false).status(), 400);
    gateway.own("first", "sk-own");
    let answer = ask(&gateway, "first/chat:dark", false);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(
        home.requests()[0].header("authorization"),
        Some("Bearer sk-own")
    );
    // The caller's key fails, and the platform's is no way out.
    let failing = Upstream::always(Reply::json(401, r#"{"error": {"message": "no"}}"#));
    let toml_gateway = self::gateway(&failing, &failing, &failing);
    toml_gateway.set_mode(Mode::Hybrid);
    toml_gateway.own("first", "sk-own");
    assert_ne!(ask(&toml_gateway, "first/chat:dark", false).status(), 200);
    for request in failing.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer sk-own"));
    }
}

#[test]
fn a_provider_with_keys_in_a_region_alone_serves_that_region() {
    let home = Upstream::always(reply());
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = [{{ env = \"HOME_KEY\" }}]\n\
         [providers.first.regions.eu]\nbase_url = \"{0}/eu/v1\"\nkeys = [{{ env = \"EU_KEY\" }}]\n",
        home.url()
    );
    let gateway = Gateway::start_with_credit(&toml, MODELS, &[("EU_KEY", "sk-eu")], "1");
    let answer = ask(&gateway, "first/chat:eu", false);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(
        home.requests()[0].header("authorization"),
        Some("Bearer sk-eu")
    );
    for model in ["chat", "first/chat"] {
        let refused = ask(&gateway, model, false);
        let error = refused.json()["error"].clone();
        assert_eq!(
            (refused.status(), &error["code"]),
            (404, &"model_not_found".into())
        );
        assert!(
            error["message"].as_str().unwrap().contains("regions alone"),
            "{error}"
        );
    }
    // What the configuration has no table for is unknown, whatever the catalogue lists.
    let unknown = ask(&gateway, "first/chat:us", false);
    assert_eq!(unknown.status(), 404);
    let message = unknown.json()["error"]["message"].clone();
    assert!(
        message.as_str().unwrap().contains("in the region `us`"),
        "{message}"
    );
    assert_eq!(home.requests().len(), 1);
}
