//! Tenants never see each other's errors, also when they ask at the same time.

use serde_json::json;

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS, create_organization};
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

/// Two tenants, and a word that only the errors of one have.
const CANARIES: [&str; 2] = ["canary-of-ada", "canary-of-bob"];
const TURNS: usize = 60;

/// Asks for both tenants at the same time, and checks that every answer has the own word and never
/// the other's.
fn assert_apart(gateway: &Gateway, asks: &[Ask; 2], check: fn(&Answer)) {
    std::thread::scope(|scope| {
        for _ in 0..2 {
            for tenant in [0, 1] {
                scope.spawn(move || {
                    for _ in 0..TURNS {
                        let answer = ask(gateway.address(), &asks[tenant]);
                        check(&answer);
                        let text = answer.text();
                        assert!(text.contains(CANARIES[tenant]), "{text}");
                        assert!(!text.contains(CANARIES[1 - tenant]), "{text}");
                    }
                });
            }
        }
    });
}

/// The word of the tenant that sent a request.
fn canary(request: &Received) -> &'static str {
    let body = String::from_utf8_lossy(&request.body);
    let is_of = |canary: &&&str| body.contains(**canary);
    CANARIES
        .iter()
        .find(is_of)
        .expect("a canary in the request")
}

#[test]
fn two_organizations_get_their_own_errors_of_one_provider() {
    // Each call is refused in the words of its own prompt.
    let first = Upstream::answering(|request| {
        let error = json!({"error": {"message": canary(request), "type": "invalid_request_error"}});
        Reply::json(400, error.to_string())
    });
    let gateway = Gateway::start(
        &format!(
            "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = []\n\
             [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = []\n",
            first.url()
        ),
        MODELS,
    );
    let other = gateway.change(async |store| create_organization("other", store).await);
    let chat = |index: usize, key: &str| {
        let body =
            json!({"model": "chat", "messages": [{"role": "user", "content": CANARIES[index]}]});
        Ask::post("/v1/chat/completions", body.to_string()).key(key)
    };
    let asks = [chat(0, &gateway.key), chat(1, &other)];
    assert_apart(&gateway, &asks, |answer| assert_eq!(answer.status(), 400));
    assert_eq!(first.requests().len(), 4 * TURNS);
}

/// The errors of a query come with a 200, which the response cache may store.
#[test]
fn two_tenants_get_their_own_errors_of_one_query() {
    for status in [200, 400, 503] {
        let service = Upstream::answering(move |request| {
            let tenant = usize::from(request.path.contains("auth=k2"));
            let error = json!({"errors": [{"message": CANARIES[tenant]}]});
            Reply::json(status, error.to_string())
        });
        let tenant = |id: &str, key: &str| {
            format!("[[graph.tenants]]\nid = \"{id}\"\nsingle_keys = [\"{key}\"]\n")
        };
        let toml = format!(
            "[graph]\nupstream = \"{}\"\ncache = {{ ttl_s = 3600 }}\n{}{}",
            service.url(),
            tenant("t1", "k1"),
            tenant("t2", "k2")
        );
        let gateway = Gateway::start(&toml, "");
        let query =
            |key: &str| Ask::post(&format!("/content/v2?auth={key}"), r#"{"query":"{ a }"}"#);
        let check: fn(&Answer) = |answer| assert_ne!(answer.status(), 429);
        assert_apart(&gateway, &[query("k1"), query("k2")], check);
    }
}
