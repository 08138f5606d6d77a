//! From one cloud to the next within one call.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{SaidByModel, ask_model, fronts, is_stream};
use crate::models::fronts::promises::{Api, events};
use crate::support::boot::Gateway;
use crate::support::client::Answer;
use crate::support::clouds::{CLOUDS, CloudHosts, Vendor, cloud, model_of, strict};
use crate::support::frames;
use crate::support::script::Reply;
use crate::support::scripted::{Said, Turn};
use crate::support::upstream::Upstream;

/// Azure, Bedrock and Vertex, each over a wire of its own.
const ORDER: [&str; 3] = ["azure-chat", "bedrock-converse", "vertex-messages"];

/// A reply that a cloud gives in place of an answer; `None`: it answers.
type Failing = Arc<Mutex<[Option<Reply>; 2]>>;

/// Hosts of which the first two fail as a test says, and the third answers.
fn hosts() -> (CloudHosts, Failing) {
    let failing = Failing::default();
    let told = failing.clone();
    let hosts = CloudHosts::start(move |cloud, _| {
        let at = ORDER.iter().position(|id| *id == cloud.id);
        let reply = at.and_then(|at| told.lock().unwrap().get(at).cloned().flatten());
        match reply {
            Some(reply) => Said::Reply(reply),
            None => Turn::text(format!("said by {}", cloud.id)).into(),
        }
    });
    (hosts, failing)
}

/// The models of so many calls: one that has failed too often is tried last.
fn models(count: usize) -> String {
    let ids = (0..count).map(|at| model_of(&format!("three-{at}"), &ORDER));
    ids.collect()
}

/// What an answer says of its attempts: provider, status and type of the error of each.
fn attempts(api: &Api, answer: &Answer) -> Vec<(String, u64, String)> {
    let told = match is_stream(answer) {
        false => answer.json(),
        true => {
            let events = events(answer);
            let with_routing = events.iter().rev().find(|it| it.contains("\"routing\""));
            serde_json::from_str(with_routing.unwrap()).unwrap()
        }
    };
    let routing = api.own(&told, "metadata")["routing"]
        .as_array()
        .unwrap()
        .clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let attempt = |it: &Value| {
        let status = it["status_code"].as_u64().unwrap();
        (text(&it["provider"]), status, text(&it["error_type"]))
    };
    routing.iter().map(attempt).collect()
}

/// How clouds say that they do not serve now: what Azure says, with the status and the type of the error that a client is told,
/// and the same of Bedrock.
fn outages() -> Vec<[(Reply, u64, &'static str); 2]> {
    let azure = |status, code: &str| {
        let error = json!({"error": {"code": code, "message": "not now"}});
        let headers = [
            ("content-type", "application/json"),
            ("retry-after-ms", "9"),
        ];
        Reply::whole(status, &headers, error.to_string())
    };
    let bedrock = |status, kind: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("x-amzn-errortype", kind),
        ];
        Reply::whole(status, &headers, json!({"message": "not now"}).to_string())
    };
    let unknown = json!({"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}, "Version": "1.0"});
    let unknown = Reply::json(200, unknown.to_string());
    let quota = json!({"__type": "ServiceQuotaExceededException", "message": "no more"});
    let quota = Reply::json(400, quota.to_string());
    vec![
        [
            (azure(429, "429"), 429, "rate_limited"),
            (bedrock(429, "ThrottlingException"), 429, "rate_limited"),
        ],
        [
            (azure(500, "InternalServerError"), 500, "upstream_error"),
            (bedrock(424, "ModelErrorException"), 424, "upstream_error"),
        ],
        [
            (azure(503, "ServiceUnavailable"), 503, "upstream_error"),
            (unknown, 404, "upstream_error"),
        ],
        [
            (azure(404, "DeploymentNotFound"), 404, "upstream_error"),
            (
                bedrock(503, "ServiceUnavailableException"),
                503,
                "upstream_error",
            ),
        ],
        [
            (azure(401, "401"), 401, "gateway_error"),
            (bedrock(403, "AccessDeniedException"), 403, "gateway_error"),
        ],
        [
            (azure(408, "Timeout"), 408, "upstream_error"),
            (quota, 400, "upstream_error"),
        ],
        [
            (azure(429, "429"), 429, "rate_limited"),
            // The body does not name the exception, as AWS's own replies do not.
            (
                bedrock(400, "ServiceQuotaExceededException:http://a.example/"),
                400,
                "upstream_error",
            ),
        ],
    ]
}

#[test]
fn azure_bedrock_and_vertex_follow_each_other_in_one_call() {
    let (hosts, failing) = hosts();
    let outages = outages();
    let gateway = hosts.gateway("", &models(outages.len() * 6));
    let mut number = 0;
    for [first, second] in outages {
        for (api, is_stream) in fronts().iter().flat_map(|api| [(api, false), (api, true)]) {
            *failing.lock().unwrap() = [Some(first.0.clone()), Some(second.0.clone())];
            let model = format!("three-{number}");
            number += 1;
            let answer = ask_model(&gateway, api, &model, api.body(is_stream));
            assert_eq!(answer.status(), 200, "{}: {}", api.path, answer.text());
            let refused = hosts.refusals();
            assert!(refused.is_empty(), "{refused:?}");
            let said = SaidByModel::read(&answer).text;
            assert_eq!(said, "said by vertex-messages", "{}", api.path);
            let expected = [
                (ORDER[0].to_owned(), first.1, first.2.to_owned()),
                (ORDER[1].to_owned(), second.1, second.2.to_owned()),
                (ORDER[2].to_owned(), 200, "none".to_owned()),
            ];
            let mut told = attempts(api, &answer);
            // Credentials that are refused are fetched anew, and the call tries again, once a minute.
            told.dedup();
            assert_eq!(told, expected, "{}", api.path);
        }
    }
}

/// A path that Bedrock does not know is a success with an exception, whatever the wire.
#[test]
fn a_success_that_is_an_exception_of_aws_is_no_answer_on_any_wire() {
    let unknown = |cloud| strict::refusal(cloud, 404, "");
    let hosts = CloudHosts::start(move |cloud, _| Said::Reply(unknown(cloud)));
    let clouds = CLOUDS
        .iter()
        .filter(|cloud| cloud.vendor == Vendor::Bedrock);
    let gateway = hosts.gateway("", "");
    let mut count = 0;
    for cloud in clouds {
        for is_stream in [false, true] {
            let api = &fronts()[count % 3];
            count += 1;
            let model = format!("{}-or-behind", cloud.id);
            let answer = ask_model(&gateway, api, &model, api.body(is_stream));
            assert_eq!(answer.status(), 200, "{model}: {}", answer.text());
            let said = SaidByModel::read(&answer).text;
            assert_eq!(said, "said by the one behind", "{model}");
            let told = attempts(api, &answer);
            assert_eq!(
                (told.len(), &*told[0].2),
                (2, "upstream_error"),
                "{model}: {told:?}"
            );
        }
    }
    assert_eq!(count, 8);
}

/// Bedrock's throttling within a stream, as an exception in place of its first event.
#[test]
fn an_exception_in_place_of_a_first_event_is_a_refusal() {
    let (hosts, failing) = hosts();
    let gateway = hosts.gateway("", &models(3));
    let frame = frames::exception("throttlingException", b"{\"message\":\"slow\"}");
    let head = [("content-type", "application/vnd.amazon.eventstream")];
    let thrown = Reply::chunked(200, &head).chunk(frame).end();
    for (number, api) in fronts().iter().enumerate() {
        *failing.lock().unwrap() = [Some(Reply::json(500, "{}")), Some(thrown.clone())];
        let answer = ask_model(&gateway, api, &format!("three-{number}"), api.body(true));
        let told = attempts(api, &answer);
        assert_eq!((told.len(), told[1].1), (3, 429), "{}: {told:?}", api.path);
        assert_eq!(told[1].2, "rate_limited", "{}", api.path);
    }
}

#[test]
fn what_the_filter_of_azure_refuses_is_the_requests_own_fault() {
    let (hosts, failing) = hosts();
    let gateway = hosts.gateway("", &models(1));
    let inner = json!({"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"violence": {"filtered": true, "severity": "high"}}});
    let error = json!({"error": {"message": "The response was filtered.", "type": null, "param": "prompt", "code": "content_filter",
        "status": 400, "innererror": inner}});
    *failing.lock().unwrap() = [Some(Reply::json(400, error.to_string())), None];
    for (api, is_stream) in fronts().iter().flat_map(|api| [(api, false), (api, true)]) {
        let answer = ask_model(&gateway, api, "three-0", api.body(is_stream));
        assert_eq!(answer.status(), 400, "{}: {}", api.path, answer.text());
        let error = &answer.json()["error"];
        let said = error["message"].as_str().unwrap();
        assert!(said.contains("The response was filtered."), "{error}");
        // The API of Messages has no codes.
        if api.path != "/v1/messages" {
            assert_eq!(error["code"], "content_filter", "{}", api.path);
        }
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    assert_eq!(hosts.host(ORDER[0]).requests().len(), 6);
    assert!(hosts.host(ORDER[1]).requests().is_empty());
    assert!(hosts.host(ORDER[2]).requests().is_empty());
}

/// What Bedrock and Vertex say of a request that is wrong itself ends the call too.
#[test]
fn a_request_that_is_wrong_itself_is_tried_at_one_cloud() {
    let (hosts, failing) = hosts();
    let gateway = hosts.gateway("", &models(1));
    let refusal = strict::refusal(cloud(ORDER[1]), 400, "Input is too strange");
    *failing.lock().unwrap() = [Some(Reply::json(500, "{}")), Some(refusal)];
    let answer = ask_model(&gateway, &fronts()[0], "three-0", fronts()[0].body(false));
    let body = answer.json();
    assert_eq!(answer.status(), 400, "{body}");
    assert_eq!(
        body["error"]["message"]
            .as_str()
            .map(|it| it.contains("too strange")),
        Some(true)
    );
    assert!(hosts.host(ORDER[2]).requests().is_empty());
}

/// Bedrock takes no body over 25,000,000 bytes, so none is sent there.
#[test]
fn a_body_that_is_too_large_for_a_cloud_goes_to_the_next_or_is_a_413() {
    let (hosts, _) = hosts();
    let models = model_of("large", &["bedrock-converse", "vertex-messages"]);
    let alone = model_of("alone", &["bedrock-converse"]);
    let limits = "[limits.body_bytes]\nchat = 40000000\n";
    let gateway = hosts.gateway(limits, &[models, alone].concat());
    let text = "a b ".repeat(6_500_000);
    let body = |model: &str| {
        json!({"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": text}]})
            .to_string()
    };
    let answer = gateway.chat(body("large"));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(SaidByModel::read(&answer).text, "said by vertex-messages");
    let refused = gateway.chat(body("alone"));
    assert_eq!(refused.status(), 413, "{}", refused.text());
    let message = refused.json()["error"]["message"].clone();
    assert!(
        message.as_str().unwrap().contains("which takes 25000000"),
        "{message}"
    );
    assert!(hosts.host("bedrock-converse").requests().is_empty());
}

/// Claude on Vertex wraps the error of the model in one of its own.
#[test]
fn an_error_within_an_error_is_told_in_its_inner_words() {
    let hosts = CloudHosts::start(|cloud, _| {
        Said::Reply(strict::refusal(
            cloud,
            400,
            "max_tokens: 99 > 9, which is too much",
        ))
    });
    let gateway = hosts.gateway("", "");
    let answer = ask_model(
        &gateway,
        &fronts()[0],
        "vertex-messages",
        fronts()[0].body(false),
    );
    let body = answer.json();
    assert_eq!(answer.status(), 400, "{body}");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("max_tokens: 99 > 9"), "{message}");
    assert!(!message.contains("{\""), "{message}");
}

#[test]
fn where_a_source_of_credentials_fails_the_next_cloud_answers() {
    let (hosts, _) = hosts();
    let dead = Upstream::always(Reply::json(500, "{}"));
    let (identity, metadata) = (dead.url(), dead.address().to_string());
    let order = ["azure-messages", "vertex-gemini", "bedrock-converse"];
    let models = (0..6).map(|at| model_of(&format!("other-{at}"), &order));
    let models: String = models.collect();
    let variables = [
        ("AZURE_POD_IDENTITY_AUTHORITY_HOST", &*identity),
        ("GCE_METADATA_HOST", &metadata),
    ];
    let gateway: Gateway = hosts.gateway_with("", &models, &variables);
    let asked = fronts().iter().flat_map(|api| [(api, false), (api, true)]);
    for (at, (api, is_stream)) in asked.enumerate() {
        let answer = ask_model(&gateway, api, &format!("other-{at}"), api.body(is_stream));
        assert_eq!(answer.status(), 200, "{}: {}", api.path, answer.text());
        let unavailable = |id: &str| (id.to_owned(), 0, "credential_unavailable".to_owned());
        let expected = [
            unavailable(order[0]),
            unavailable(order[1]),
            (order[2].to_owned(), 200, "none".to_owned()),
        ];
        assert_eq!(attempts(api, &answer), expected, "{}", api.path);
    }
    assert!(hosts.host("azure-messages").requests().is_empty());
    assert!(hosts.host("vertex-gemini").requests().is_empty());
    assert_eq!(hosts.host("bedrock-converse").requests().len(), 6);
}
