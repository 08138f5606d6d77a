//! The tier that served a request, as each wire's replies name it.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::{Quirks, Target, Wire, WireKind, replay};
use crate::models::fronts::chat_completions::whole::WholeWriter;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::money::ServiceTier;

const FLEX: Option<ServiceTier> = Some(ServiceTier::Flex);
const PRIORITY: Option<ServiceTier> = Some(ServiceTier::Priority);
const STANDARD: Option<ServiceTier> = Some(ServiceTier::Standard);

/// The tier that a whole reply or the events of a stream report.
fn served(wire: &Wire, body: &Value, is_stream: bool) -> Option<ServiceTier> {
    let quirks = Quirks::default();
    let target = Target::plain("p", "m", &quirks);
    let mut answer = WholeWriter::new(ReplyIdentity {
        id: "i".into(),
        created: 1,
        model: "p/m".into(),
        maker: "p/m".into(),
    });
    let events = body.as_array().into_iter().flatten();
    let text: String = events.map(|event| format!("data: {event}\n\n")).collect();
    let (head, text) = match is_stream {
        true => (replay::EVENTS, text),
        false => (replay::WHOLE, body.to_string()),
    };
    replay::feed(wire, &target, &head, [text.as_bytes()], &mut answer).unwrap();
    answer.reported().service_tier
}

#[test]
fn replies_and_streams_name_the_tier_that_served_them() {
    let openai = WireKind::Compatible.wire();
    let choice = json!({"index": 0, "message": {"content": "a"}, "finish_reason": "stop"});
    let delta = json!({"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"});
    for (word, tier) in [
        (json!("flex"), FLEX),
        (json!("priority"), PRIORITY),
        (json!("fast"), PRIORITY),
        (json!("default"), STANDARD),
        (json!("on_demand"), STANDARD),
        (json!("auto"), None),
        (json!("scale"), None),
        (json!(null), None),
        (json!(7), None),
    ] {
        let body = json!({"service_tier": word, "choices": [choice]});
        assert_eq!(served(openai, &body, false), tier, "{body}");
        let events = json!([{"service_tier": word, "choices": [delta]}]);
        assert_eq!(served(openai, &events, true), tier, "{events}");
    }
    let responses = WireKind::Responses.wire();
    let output = json!([{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]);
    let body = json!({"status": "completed", "service_tier": "priority", "output": output});
    assert_eq!(served(responses, &body, false), PRIORITY);
    let begun = json!({"type": "response.created", "response": {"service_tier": "auto"}});
    let ended = json!({"type": "response.completed", "response": body});
    assert_eq!(served(responses, &json!([begun, ended]), true), PRIORITY);
    let anthropic = WireKind::Messages.wire();
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "service_tier": "standard"});
    let body = json!({"type": "message", "content": [], "stop_reason": "end_turn", "usage": usage});
    assert_eq!(served(anthropic, &body, false), STANDARD);
    let events = json!([
        {"type": "message_start", "message": {"id": "1", "usage": {"input_tokens": 1, "service_tier": "priority"}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]);
    assert_eq!(served(anthropic, &events, true), PRIORITY);
    let google = WireKind::Contents.wire();
    let candidates = json!([{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]);
    for (member, word, tier) in [
        ("serviceTier", "flex", FLEX),
        ("serviceTier", "standard", STANDARD),
        ("trafficType", "ON_DEMAND", STANDARD),
        ("trafficType", "ON_DEMAND_PRIORITY", PRIORITY),
        ("trafficType", "PROVISIONED_THROUGHPUT", None),
        ("trafficType", "A_NEW_ONE", None),
    ] {
        let usage = json!({"promptTokenCount": 1, member: word});
        let body = json!({"candidates": candidates, "usageMetadata": usage});
        assert_eq!(served(google, &body, false), tier, "{word}");
        let events = json!([{"usageMetadata": {member: word}}, {"candidates": candidates, "usageMetadata": {"promptTokenCount": 1}}]);
        assert_eq!(served(google, &events, true), tier, "{word}");
    }
    for word in [
        json!(7),
        json!({"name": "flex"}),
        json!(["flex"]),
        json!(true),
        json!(null),
        json!("odd\n\u{e9}"),
    ] {
        let usage = json!({"input_tokens": 1, "output_tokens": 1, "service_tier": word});
        let body =
            json!({"type": "message", "content": [], "stop_reason": "end_turn", "usage": usage});
        assert_eq!(served(anthropic, &body, false), None, "{word}");
        for member in ["serviceTier", "trafficType"] {
            let usage = json!({"promptTokenCount": 1, member: word});
            let body = json!({"candidates": candidates, "usageMetadata": usage});
            assert_eq!(served(google, &body, false), None, "{member} {word}");
        }
    }
    assert!(google.tier_header.is_some() && openai.tier_header.is_none());
}
