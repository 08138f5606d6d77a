//! What a call costs: by the tier that served it, at the hour it starts, with its discount.

use serde_json::{Value, json};

use crate::ledger::{gateway, used};
use crate::models::fronts::chat_completions::{chunk, reply};
use crate::support::boot::Gateway;
use crate::support::client::Answer;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// A call of 1000 tokens of prompt, 400 of them cached, and 100 of completion costs 0.003; flex is half, priority double.
fn models(more: &str) -> String {
    format!(
        r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
input_price = "2.5"
cached_input_price = "1.25"
output_price = "10"
max_output = 4096
capabilities = ["streaming", "cancellation"]
service_tiers = ["flex", "priority"]
tier_prices = {{ flex = {{ multiplier = "0.5" }}, priority = {{ input_price = "5", cached_input_price = "2.5", output_price = "20" }} }}
{more}
"#
    )
}

/// A provider that says which tier served a request, in a reply or on a stream.
fn serving(tier: &'static str) -> Upstream {
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100,
                       "prompt_tokens_details": {"cached_tokens": 400}});
    Upstream::answering(move |request| {
        let told = |body: &str| -> String {
            let mut body: Value = serde_json::from_str(body).unwrap();
            if !tier.is_empty() {
                body["service_tier"] = tier.into();
            }
            body.to_string()
        };
        if request.json()["stream"] == true {
            let last = json!({"id": "c", "choices": [], "usage": usage}).to_string();
            return Reply::sse([
                &*told(&chunk(json!({"content": "hello"}), None)),
                &chunk(json!({}), Some("stop")),
                &last,
                "[DONE]",
            ]);
        }
        let choices = json!([{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]);
        let body = json!({"id": "c", "choices": choices, "usage": usage}).to_string();
        Reply::json(200, told(&body))
    })
}

fn ask(gateway: &Gateway, tier: &str, is_stream: bool, id: &str) -> Answer {
    let mut body = json!({"model": "chat", "stream": is_stream, "messages": [{"role": "user", "content": "Hi"}]});
    if !tier.is_empty() {
        body["service_tier"] = tier.into();
    }
    let ask = gateway
        .chat_ask(body.to_string())
        .header("x-request-id", id);
    let answer = crate::support::client::ask(gateway.address(), &ask);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer
}

/// The object that holds usage and metadata.
fn last(answer: &Answer, is_stream: bool) -> Value {
    match is_stream {
        true => answer.events().json().last().unwrap().clone(),
        false => answer.json(),
    }
}

/// Contract: model-gateway 2.1 service_tier
/// Contract: model-gateway 2.1 service_tier 1
#[test]
fn a_call_costs_what_the_tier_that_served_it_costs() {
    // Asked for, served by, cost, and the words told of both.
    let cases = [
        ("flex", "flex", 0.0015, Some(("flex", "flex"))),
        (
            "priority",
            "priority",
            0.006,
            Some(("priority", "priority")),
        ),
        ("priority", "default", 0.003, Some(("priority", "default"))),
        ("flex", "default", 0.003, Some(("flex", "default"))),
        ("priority", "", 0.006, Some(("priority", "priority"))),
        ("flex", "scale", 0.0015, Some(("flex", "flex"))),
        // Nobody asked for priority, so nothing was reserved for it.
        ("", "priority", 0.003, Some(("default", "priority"))),
        ("auto", "priority", 0.003, Some(("default", "priority"))),
        ("flex", "priority", 0.0015, Some(("flex", "priority"))),
        ("", "flex", 0.003, Some(("default", "flex"))),
        ("auto", "default", 0.003, None),
        ("default", "", 0.003, None),
        ("", "", 0.003, None),
    ];
    for (asked, served, cost, told) in cases {
        let cost: f64 = cost;
        let upstream = serving(served);
        let gateway = gateway(&upstream, &models(""), "1");
        for is_stream in [false, true] {
            let case = format!("{asked} served as {served}, stream {is_stream}");
            let id = if is_stream { "stream" } else { "whole" };
            let body = last(&ask(&gateway, asked, is_stream, id), is_stream);
            assert_eq!(body["usage"]["cost"], cost, "{case}");
            let line = gateway.log_line(id);
            for object in [&body["metadata"], &line] {
                let found =
                    ["requested_service_tier", "used_service_tier"].map(|key| object.get(key));
                let expected = told.map(|(asked, used)| [asked, used]);
                match expected {
                    Some(words) => assert_eq!(
                        found.map(|word| word.unwrap().clone()),
                        words.map(Value::from),
                        "{case}"
                    ),
                    None => assert_eq!(found, [None, None], "{case}"),
                }
            }
            let sent = upstream.requests().last().unwrap().json();
            let forwarded = ["flex", "priority"].contains(&asked).then(|| asked.into());
            assert_eq!(sent.get("service_tier").cloned(), forwarded, "{case}");
        }
        used(&gateway, &(2.0 * cost).to_string());
    }
}

#[test]
fn a_reservation_covers_the_tier_that_was_asked_for_and_the_usual_one() {
    // A byte is at most a token: priority may cost 20e-6 × 100 and 5e-6 a byte, so a credit of 0.0022 covers only the others.
    let reply = serving("default");
    let status = |tier: &str, credit: &str| {
        let gateway = gateway(&reply, &models(""), credit);
        let body = json!({"model": "chat", "max_tokens": 100, "service_tier": tier,
                          "messages": [{"role": "user", "content": "Hi"}]});
        gateway.chat(body.to_string()).status()
    };
    assert_eq!(status("default", "0.002"), 200);
    assert_eq!(status("flex", "0.001"), 402);
    assert_eq!(status("flex", "0.002"), 200);
    assert_eq!(status("priority", "0.002"), 402);
    assert_eq!(status("priority", "0.004"), 200);
}

#[test]
fn the_hours_and_the_discount_of_a_mapping_change_its_prices_and_are_told() {
    let upstream = Upstream::always(reply());
    let always =
        r#"off_peak = { windows = [{ hours_utc = ["00:00-00:00"] }], multiplier = "0.5" }"#;
    let never = r#"off_peak = { windows = [{ hours_utc = ["00:00-00:00"], weekdays = [] }], multiplier = "0.5" }"#;
    let discount = "discount = \"0.1\"\nrequest_price = \"0.01\"";
    for (more, cost, period, told) in [
        (always.to_owned(), 0.0015, Some("off_peak"), json!(null)),
        (never.to_owned(), 0.0015, Some("off_peak"), json!(null)),
        (discount.to_owned(), 0.0117, None, json!(0.1)),
        (String::new(), 0.003, None, json!(null)),
    ] {
        let gateway = gateway(&upstream, &models(&more), "1");
        let body = ask(&gateway, "", false, "one").json();
        assert_eq!(body["usage"]["cost"], cost, "{more}");
        assert_eq!(body["metadata"]["discount"], told, "{more}");
        assert_eq!(body["metadata"]["price_period"].as_str(), period, "{more}");
        assert_eq!(
            gateway.log_line("one")["price_period"].as_str(),
            period,
            "{more}"
        );
        used(&gateway, &cost.to_string());
    }
}

#[test]
fn the_list_of_models_tells_all_prices() {
    let upstream = Upstream::always(reply());
    let more = r#"
discount = "0.2"
long_context = [{ above_tokens = 200000, input_price = "5", output_price = "15" }, { above_tokens = 500000, input_price = "10" }]
off_peak = { windows = [{ hours_utc = ["16:30-00:30"], weekdays = [1, 2] }], input_price = "0.5" }
"#;
    let gateway = gateway(&upstream, &models(more), "1");
    let ask = crate::support::ask::Ask::get("/v1/models").key(&gateway.key);
    let listed = crate::support::client::ask(gateway.address(), &ask).json();
    let model = listed["data"][0].clone();
    let pricing = &model["providers"][0]["pricing"];
    assert_eq!(pricing, &model["pricing"]);
    assert_eq!(
        (&pricing["prompt"], &pricing["discount"]),
        (&json!("0.000002"), &json!("0.2"))
    );
    let steps = json!([
        {"above_tokens": 200_000, "prompt": "0.000004", "completion": "0.000012"},
        {"above_tokens": 500_000, "prompt": "0.000008"},
    ]);
    assert_eq!(pricing["long_context"], steps);
    let flex = &pricing["service_tiers"]["flex"];
    assert_eq!(flex["completion"], "0.000004");
    let priority = &pricing["service_tiers"]["priority"];
    assert_eq!(
        (&priority["prompt"], &priority["input_cache_read"]),
        (&json!("0.000004"), &json!("0.000002"))
    );
    let peak = &pricing["peak_pricing"];
    assert_eq!(
        peak["off_peak_windows"],
        json!([{"hours_utc": "16:30-00:30", "weekdays": [1, 2]}])
    );
    assert_eq!(
        (
            &peak["peak"]["prompt"],
            &peak["off_peak"]["prompt"],
            &peak["off_peak"]["completion"]
        ),
        (&json!("0.000002"), &json!("0.0000004"), &json!("0.000008"))
    );
}

/// Contract: model-gateway 2.1 service_tier 1
/// Contract: model-gateway 2.1 service_tier 2
#[test]
fn a_tier_goes_to_who_offers_it() {
    let (first, second) = (serving("default"), serving("flex"));
    let provider = |name: &str, url: &str| {
        format!(
            "[providers.{name}]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\n"
        )
    };
    let toml = provider("first", &first.url()) + &provider("second", &second.url());
    let models = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
input_price = "1"
output_price = "1"
[[models.providers]]
provider = "second"
name = "chat-at-second"
input_price = "2"
output_price = "2"
service_tiers = ["flex"]
tier_prices = { flex = { multiplier = "0.5" } }
"#;
    let gateway = Gateway::start_with_credit(&toml, models, &[], "1");
    for (tier, provider) in [("default", "first"), ("auto", "first"), ("flex", "second")] {
        let answer = gateway.asked(&gateway.key, "chat", json!({ "service_tier": tier }));
        let body = answer.json();
        assert_eq!(body["metadata"]["used_provider"], provider, "{tier} {body}");
        assert_eq!(body["metadata"]["routing"].as_array().unwrap().len(), 1);
    }
    let nobody = gateway.asked(&gateway.key, "chat", json!({"service_tier": "priority"}));
    let error = nobody.json()["error"].clone();
    assert_eq!(
        (nobody.status(), &error["code"]),
        (400, &json!("unsupported_service_tier"))
    );
}
