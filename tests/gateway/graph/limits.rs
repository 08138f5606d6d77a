//! `GET /v1/graph/limits`: a tenant's limits, and what is left of them.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

const PATH: &str = "/v1/graph/limits";
/// The application with its secret.
const BASIC: &str = "Basic YXBwOmMyVmpjbVYw";

/// A gateway in front of a service, whose windows outlast every test.
pub fn before(service: &Upstream, more: &str) -> Gateway {
    let toml = format!(
        "[graph]\nupstream = \"{}\"\nwindow_s = 3600\n{more}\n\
         [[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\n\
         app_keys = [{{ key = \"app\", secret = {{ env = \"APP_SECRET\" }} }}]\nlimits = {{ \"POST /content/v2\" = 5 }}\n\
         [[graph.tenants]]\nid = \"t2\"\nsingle_keys = [\"k2\"]\n",
        service.url()
    );
    // `secret` in base64, as applications write it.
    Gateway::start_with_env(&toml, "", &[("APP_SECRET", "c2VjcmV0")])
}

pub fn service() -> Upstream {
    Upstream::always(Reply::json(200, r#"{"data":{"a":1}}"#))
}

fn limits(gateway: &Gateway, query: &str, authorization: &str) -> Answer {
    let request = Ask::get(&format!("{PATH}{query}"));
    let request = match authorization {
        "" => request,
        value => request.header("Authorization", value),
    };
    ask(gateway.address(), &request)
}

/// The entry of an operation.
pub fn of(told: &Value, operation: &str) -> Option<Value> {
    let mut data = told["data"].as_array().unwrap().iter();
    data.find(|entry| entry["operation"] == operation).cloned()
}

fn queries(gateway: &Gateway, key: &str, count: usize) {
    for _ in 0..count {
        let query = Ask::post(&format!("/content/v2?auth={key}"), r#"{"query":"{ a }"}"#);
        assert_eq!(ask(gateway.address(), &query).status(), 200);
    }
}

/// Contract: graph-limits 1 Limits hold for
#[test]
fn a_tenant_learns_what_is_left_and_asking_counts_nowhere() {
    let service = service();
    for algorithm in ["fixed", "sliding"] {
        let gateway = before(&service, &format!("algorithm = \"{algorithm}\""));
        let left = || {
            let told = limits(&gateway, "?auth=k1", "").json();
            assert_eq!(
                (&told["tenant"], &told["window_s"]),
                (&json!("t1"), &json!(3600))
            );
            of(&told, "POST /content/v2").unwrap()
        };
        for _ in 0..3 {
            assert_eq!(left()["remaining"], 5);
        }
        queries(&gateway, "k1", 2);
        assert_eq!(
            left(),
            json!({"operation": "POST /content/v2", "limit": 5, "remaining": 3})
        );
        queries(&gateway, "k1", 3);
        assert_eq!(left()["remaining"], 0);
        let other = limits(&gateway, "", "epi-single k2").json();
        let other = of(&other, "POST /content/v2").unwrap();
        assert_eq!(other["limit"], other["remaining"]);
    }
}

/// Contract: graph-limits 4 POST /api/content/v3/types
#[test]
fn a_public_key_tells_of_what_it_may_call() {
    let service = service();
    let gateway = before(&service, "");
    let public = limits(&gateway, "?auth=k1", "").json();
    assert!(of(&public, "GET /content/v2").is_some());
    assert_eq!(of(&public, "POST /api/content/v3/types"), None);
    let private = limits(&gateway, "", BASIC).json();
    let types = of(&private, "POST /api/content/v3/types").unwrap();
    assert_eq!(types["remaining"], 10);
    let one = limits(&gateway, "?operation=POST%20/content/v2", BASIC).json();
    assert_eq!(one["data"].as_array().unwrap().len(), 1);
    for name in ["?operation=nothing", "?operation="] {
        let answer = limits(&gateway, name, BASIC);
        assert_eq!(answer.status(), 400, "{name}");
    }
    let forbidden = limits(
        &gateway,
        "?auth=k1&operation=POST%20/api/content/v3/types",
        "",
    );
    assert_eq!(forbidden.status(), 400);
}

#[test]
fn without_the_credential_of_a_tenant_nothing_is_told() {
    let service = service();
    let gateway = before(&service, "");
    for (query, authorization, status) in [
        ("", "", 401),
        ("?auth=other", "", 401),
        ("", "epi-single other", 401),
        ("", "Basic YXBwOndyb25n", 401),
        ("", "Bearer abc", 401),
        ("", "nonsense", 401),
        ("?auth=k1", "epi-single k2", 400),
    ] {
        let answer = limits(&gateway, query, authorization);
        assert_eq!(answer.status(), status, "{query} {authorization}");
        assert!(answer.json()["message"].is_string());
    }
    let without = Gateway::start("", "");
    assert_eq!(limits(&without, "?auth=k1", "").status(), 404);
}
