//! BYOK keys: which key is sent upstream, how the response names it, and where it must never appear.

use filters::accounts::Mode;
use filters::audit::PROGRAM;
use weirgate::store::{NewKey, NewProject, ProjectChange};

use crate::models::endpoints::key::with_plan;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

const PLATFORM: [(&str, &str); 2] = [
    ("FIRST_KEY", "sk-platform-1"),
    ("SECOND_KEY", "sk-platform-2"),
];
const REFUSED: &str =
    r#"{"error":{"message":"Incorrect API key provided: sk-own-bad","code":"invalid_api_key"}}"#;

/// A gateway whose providers have a platform key each; the project `default` has this mode.
fn gateway(first: &Upstream, second: &Upstream, mode: Mode) -> Gateway {
    gateway_with(&PLATFORM, first, second, mode)
}

/// The same with these platform keys alone.
fn gateway_with(
    platform: &[(&str, &str)],
    first: &Upstream,
    second: &Upstream,
    mode: Mode,
) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = [{{ env = \"SECOND_KEY\" }}]\n",
        first.url(),
        second.url()
    );
    let gateway = Gateway::start_with_env(&toml, MODELS, platform);
    gateway.set_mode(mode);
    gateway
}

impl Gateway {
    pub fn set_mode(&self, mode: Mode) {
        self.change(async |store| {
            let wanted = ProjectChange {
                mode: Some(mode),
                ..ProjectChange::default()
            };
            let updated = store
                .by(&PROGRAM)
                .update_project("acme", "default", &wanted)
                .await;
            updated.unwrap();
        });
    }

    /// Stores a BYOK key under a label that is its text.
    pub fn own(&self, provider: &str, text: &str) -> String {
        self.change(async |store| {
            let made = store
                .by(&PROGRAM)
                .add_provider_key("acme", provider, text, text, 1)
                .await;
            made.unwrap().id
        })
    }
}

/// An upstream that refuses every key that ends with `bad` and accepts all others.
fn picky() -> Upstream {
    Upstream::answering(|request: &Received| {
        if bearer(request).ends_with("bad") {
            Reply::json(401, REFUSED)
        } else {
            reply()
        }
    })
}

fn bearer(request: &Received) -> String {
    let header = request.header("authorization").unwrap_or_default();
    header.trim_start_matches("Bearer ").to_owned()
}

fn bearers(upstream: &Upstream) -> Vec<String> {
    upstream.requests().iter().map(bearer).collect()
}

/// `provider`, `credentialSource` and `providerKeyLabel` of each attempt.
fn attempts(answer: &Answer) -> Vec<(String, String, Option<String>)> {
    let body = answer.json();
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let routing = body["metadata"]["routing"].as_array().unwrap().iter();
    routing
        .map(|attempt| {
            let hash = attempt["apiKeyHash"].as_str().unwrap();
            assert!(hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
            let label = text(&attempt["providerKeyLabel"]);
            assert_eq!(label.is_some(), attempt["providerKeyId"].is_string());
            (
                text(&attempt["provider"]).unwrap(),
                text(&attempt["credentialSource"]).unwrap(),
                label,
            )
        })
        .collect()
}

fn attempt(provider: &str, own: Option<&str>) -> (String, String, Option<String>) {
    let source = if own.is_some() { "byok" } else { "platform" };
    (
        provider.to_owned(),
        source.to_owned(),
        own.map(str::to_owned),
    )
}

/// Contract: model-gateway 1 Credentials
/// Contract: model-gateway 2.5 metadata.routing[]
#[test]
fn a_byok_project_uses_its_key_and_says_which() {
    let (first, second) = (picky(), picky());
    let gateway = gateway(&first, &second, Mode::Byok);
    let id = gateway.own("second", "sk-own");
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(attempts(&answer), [attempt("second", Some("sk-own"))]);
    assert_eq!(answer.json()["metadata"]["routing"][0]["providerKeyId"], id);
    assert_eq!(bearers(&second), ["sk-own"]);
    assert!(first.requests().is_empty());
}

#[test]
fn a_byok_project_without_a_key_for_the_model_learns_that() {
    let (first, second) = (picky(), picky());
    let gateway = gateway(&first, &second, Mode::Byok);
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.status(), 400, "{}", answer.text());
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], "no_provider_key");
    assert!(error["message"].as_str().unwrap().contains("first, second"));
    assert!(first.requests().is_empty() && second.requests().is_empty());
}

#[test]
fn a_refused_byok_key_is_never_replaced_by_the_platform_s_in_a_byok_project() {
    let (first, second) = (picky(), picky());
    let gateway = gateway(&first, &second, Mode::Byok);
    gateway.own("first", "sk-own-bad");
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.status(), 502, "{}", answer.text());
    assert_eq!(bearers(&first), ["sk-own-bad"]);
    assert!(second.requests().is_empty());
    // The label of these tests is the key's text; the owner of a key sees its label.
    let text = answer.text();
    let text = text.replace(r#""providerKeyLabel":"sk-own-bad""#, "");
    assert!(!text.contains("sk-own"), "{text}");
}

/// Contract: model-gateway 1 Credentials
/// Contract: model-gateway 2.5 metadata.routing[]
#[test]
fn a_hybrid_project_falls_back_to_the_platform_and_shows_both() {
    let (first, second) = (picky(), picky());
    let gateway = gateway(&first, &second, Mode::Hybrid);
    gateway.own("second", "sk-own-bad");
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let second_own = attempt("second", Some("sk-own-bad"));
    // The provider with a BYOK key comes first, with that key and then with the platform key.
    assert_eq!(attempts(&answer), [second_own, attempt("second", None)]);
    assert_eq!(bearers(&second), ["sk-own-bad", "sk-platform-2"]);
    assert!(first.requests().is_empty());
}

#[test]
fn a_hybrid_project_without_byok_keys_is_served_by_the_platform() {
    let (first, second) = (picky(), picky());
    let gateway = gateway(&first, &second, Mode::Hybrid);
    let answer = gateway.chat(PLAIN);
    assert_eq!(attempts(&answer), [attempt("first", None)]);
}

#[test]
fn a_hybrid_project_whose_plan_is_used_goes_on_with_its_byok_keys() {
    // A call costs 0.003: the first call uses up the cycle, or the day.
    for plan in [
        "cycle_usd = \"0.003\"\nweekly_premium_pct = 100\ndaily_pct = 100",
        "cycle_usd = \"0.03\"\nweekly_premium_pct = 100\ndaily_pct = 10",
    ] {
        let upstream = Upstream::always(reply());
        let gateway = with_plan(&upstream, plan);
        gateway.set_mode(Mode::Hybrid);
        assert_eq!(gateway.chat(PLAIN).status(), 200);
        assert_eq!(gateway.chat(PLAIN).status(), 402);
        gateway.own("first", "sk-own");
        let answer = gateway.chat(PLAIN);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(attempts(&answer), [attempt("first", Some("sk-own"))]);
    }
}

#[test]
fn a_platform_project_never_uses_byok_keys() {
    let (first, second) = (picky(), picky());
    let gateway = gateway(&first, &second, Mode::Platform);
    gateway.own("first", "sk-own");
    assert_eq!(attempts(&gateway.chat(PLAIN)), [attempt("first", None)]);
    assert_eq!(bearers(&first), ["sk-platform-1"]);
}

#[test]
fn a_byok_key_refused_with_a_400_gives_way_to_the_next_and_cools_down() {
    const INVALID: &str = r#"{"error":{"message":"API key not valid. Please pass a valid one."}}"#;
    let first = Upstream::answering(|request: &Received| {
        if bearer(request).ends_with("bad") {
            Reply::json(400, INVALID)
        } else {
            reply()
        }
    });
    let gateway = gateway(&first, &picky(), Mode::Byok);
    gateway.own("first", "sk-own-bad");
    gateway.own("first", "sk-own-a");
    for _ in 0..4 {
        let answer = gateway.chat(PLAIN);
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }
    let seen = bearers(&first);
    let refused = seen.iter().filter(|seen| seen.ends_with("bad")).count();
    assert_eq!(refused, 1, "{seen:?}");
}

#[test]
fn byok_keys_take_turns_and_a_refused_one_cools_down() {
    let (first, second) = (picky(), picky());
    let gateway = gateway(&first, &second, Mode::Byok);
    gateway.own("first", "sk-own-bad");
    gateway.own("first", "sk-own-a");
    gateway.own("first", "sk-own-b");
    for _ in 0..6 {
        let answer = gateway.chat(PLAIN);
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }
    let seen = bearers(&first);
    let count = |key: &str| seen.iter().filter(|seen| *seen == key).count();
    assert_eq!(count("sk-own-bad"), 1, "{seen:?}");
    assert!(count("sk-own-a") >= 2 && count("sk-own-b") >= 2, "{seen:?}");
}

#[test]
fn a_caller_s_refused_key_does_not_rest_the_provider_for_others() {
    let (first, second) = (picky(), picky());
    let gateway = gateway(&first, &second, Mode::Byok);
    gateway.own("first", "sk-own-bad");
    for _ in 0..4 {
        assert_eq!(gateway.chat(PLAIN).status(), 502);
    }
    let other = gateway.change(async |store| {
        let plan = filters::accounts::Plan::None;
        store
            .by(&PROGRAM)
            .create_organization("other", plan, 0)
            .await
            .unwrap();
        let credit = filters::money::Usd::parse("1000").unwrap();
        store
            .by(&PROGRAM)
            .add_credit("other", credit, 0)
            .await
            .unwrap();
        let new = NewKey {
            organization: "other",
            ..NewKey::default()
        };
        store.by(&PROGRAM).create_key(&new, 0).await.unwrap().0
    });
    let request = Ask::post("/v1/chat/completions", PLAIN).key(other.reveal());
    let answer = ask(gateway.address(), &request);
    assert_eq!(attempts(&answer), [attempt("first", None)]);
}

#[test]
fn another_organization_s_keys_are_out_of_reach_and_a_removed_one_is_not_used() {
    let (first, second) = (picky(), picky());
    let gateway = gateway(&first, &second, Mode::Byok);
    let id = gateway.own("first", "sk-own");
    let other = gateway.change(async |store| {
        let plan = filters::accounts::Plan::None;
        store
            .by(&PROGRAM)
            .create_organization("other", plan, 0)
            .await
            .unwrap();
        let project = NewProject {
            name: "own",
            mode: Mode::Byok,
            cache_ttl_s: None,
        };
        store
            .by(&PROGRAM)
            .create_project("other", &project, 0)
            .await
            .unwrap();
        let new = NewKey {
            organization: "other",
            project: "own",
            ..NewKey::default()
        };
        store.by(&PROGRAM).create_key(&new, 0).await.unwrap().0
    });
    let request = Ask::post("/v1/chat/completions", PLAIN).key(other.reveal());
    assert_eq!(ask(gateway.address(), &request).status(), 400);
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    gateway.change(async |store| store.by(&PROGRAM).remove_provider_key(&id).await.unwrap());
    assert_eq!(gateway.chat(PLAIN).status(), 400);
    assert_eq!(bearers(&first), ["sk-own"]);
}

#[test]
fn a_provider_without_a_platform_key_serves_byok_keys_in_byok_and_hybrid_projects() {
    for mode in [Mode::Byok, Mode::Hybrid] {
        let (first, second) = (picky(), picky());
        let gateway = gateway_with(&PLATFORM[..1], &first, &second, mode);
        gateway.own("second", "sk-own");
        let pinned = PLAIN.replace("\"chat\"", "\"second/chat\"");
        for body in [PLAIN, &pinned] {
            let answer = gateway.chat(body);
            assert_eq!(answer.status(), 200, "{}", answer.text());
            assert_eq!(attempts(&answer), [attempt("second", Some("sk-own"))]);
        }
        assert_eq!(bearers(&second), ["sk-own", "sk-own"]);
        assert!(first.requests().is_empty());
    }
}

#[test]
fn a_hybrid_project_falls_back_past_a_provider_without_a_platform_key() {
    let (first, second) = (picky(), picky());
    let gateway = gateway_with(&PLATFORM[..1], &first, &second, Mode::Hybrid);
    gateway.own("second", "sk-own-bad");
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let own = attempt("second", Some("sk-own-bad"));
    assert_eq!(attempts(&answer), [own, attempt("first", None)]);
    // It is never called without a key, nor with another provider's platform key.
    assert_eq!(bearers(&second), ["sk-own-bad"]);
}

#[test]
fn a_provider_without_a_platform_key_stays_off_for_all_others() {
    let (first, second) = (picky(), picky());
    let gateway = gateway_with(&PLATFORM[..1], &first, &second, Mode::Platform);
    gateway.own("second", "sk-own");
    assert_eq!(attempts(&gateway.chat(PLAIN)), [attempt("first", None)]);
    let pinned = PLAIN.replace("\"chat\"", "\"second/chat\"");
    assert_eq!(gateway.chat(pinned).status(), 404);
    let models = Ask::get("/v1/models").key(&gateway.key);
    let models = ask(gateway.address(), &models).text().to_owned();
    assert!(
        models.contains("first") && !models.contains("second"),
        "{models}"
    );
    assert!(second.requests().is_empty());
}

#[test]
fn a_byok_project_learns_that_a_key_is_missing_where_there_is_none() {
    let (first, second) = (picky(), picky());
    let gateway = gateway_with(&[], &first, &second, Mode::Byok);
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.status(), 400, "{}", answer.text());
    assert_eq!(answer.json()["error"]["code"], "no_provider_key");
}
