//! Credentials that callers have of a vendor themselves, and bring beside their API key: where they go, and where they never do.

use filters::accounts::{Mode, TermsFile};
use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::store::KeyChange;

use crate::ledger::used;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::scripted::{Turn, saying};
use crate::support::upstream::{ClosedPort, Received, Upstream};

const LOGIN: &str = "sk-ant-oat01-canary-of-a-login-0123456789";
const CLAUDE_KEY: &str = "sk-ant-api03-canary-of-a-key-0123456789";
const OPENAI_KEY: &str = "sk-proj-canary-of-a-key-0123456789";

/// `claude` is cheaper at the reseller, so that one would be asked first.
const MODELS: &str = r#"
[[models]]
id = "claude"
[[models.providers]]
provider = "anthropic"
name = "up-claude"
max_output = 4000
input_price = "300"
output_price = "1500"
capabilities = ["streaming", "tools", "reasoning", "cancellation"]
[[models.providers]]
provider = "reseller"
name = "resold-claude"
max_output = 4000
input_price = "1"
output_price = "1"
capabilities = ["streaming", "tools", "reasoning", "cancellation"]
[[models]]
id = "resold"
[[models.providers]]
provider = "reseller"
name = "resold"
max_output = 4000
input_price = "1"
output_price = "1"
capabilities = ["streaming", "tools", "cancellation"]
[[models]]
id = "gpt"
[[models.providers]]
provider = "openai"
name = "up-gpt"
wire = "responses"
max_output = 4000
input_price = "2"
output_price = "8"
capabilities = ["streaming", "tools", "reasoning", "cancellation"]
[[models.providers]]
provider = "reseller"
name = "resold-gpt"
max_output = 4000
input_price = "1"
output_price = "1"
capabilities = ["streaming", "tools", "cancellation"]
[[models]]
id = "film"
type = "video"
[[models.providers]]
provider = "openai"
name = "up-film"
output_second_price = "0.1"
"#;

/// The providers: two vendors at their own addresses, and a reseller.
struct Providers {
    anthropic: Upstream,
    openai: Upstream,
    reseller: Upstream,
}

impl Providers {
    /// Each says its name.
    fn new() -> Providers {
        Self::with(says("anthropic"))
    }

    fn with(anthropic: Upstream) -> Providers {
        Providers {
            anthropic,
            openai: says("openai"),
            reseller: says("reseller"),
        }
    }

    /// A gateway in front of them whose organization has no credit, and whose key may bring credentials of both vendors.
    fn gateway(&self, more: &str) -> Gateway {
        gateway_at(&self.anthropic.url(), self, more)
    }

    /// The requests that any of them has got.
    fn count(&self) -> usize {
        let all = [&self.anthropic, &self.openai, &self.reseller];
        all.map(|it| it.requests().len()).iter().sum()
    }
}

fn says(name: &'static str) -> Upstream {
    saying(move |_| Turn::text(format!("from {name}")).into())
}

fn gateway_at(anthropic: &str, providers: &Providers, more: &str) -> Gateway {
    let (openai, reseller) = (providers.openai.url(), providers.reseller.url());
    let toml = format!(
        "[providers.anthropic]\nkind = \"anthropic\"\nbase_url = \"{anthropic}\"\nvendor = \"anthropic\"\nkeys = [{{ env = \"A_KEY\" }}]\n\
         [providers.openai]\nkind = \"openai\"\nbase_url = \"{openai}/v1\"\nvendor = \"openai\"\nkeys = [{{ env = \"A_KEY\" }}]\n\
         [providers.reseller]\nkind = \"anthropic\"\nbase_url = \"{reseller}\"\nkeys = [{{ env = \"A_KEY\" }}]\n{more}\n"
    );
    let gateway =
        Gateway::start_with_credit(&toml, MODELS, &[("A_KEY", "sk-of-the-platform")], "0");
    gateway.allow(r#"{"allow_passthrough":["anthropic","openai"]}"#);
    gateway
}

impl Gateway {
    /// Gives the key these terms.
    fn allow(&self, terms: &str) {
        let terms: TermsFile = serde_json::from_str(terms).unwrap();
        self.change(async |store| {
            let id = store.keys("acme").await.unwrap().remove(0).id;
            let wanted = KeyChange {
                terms: Some(terms),
                ..KeyChange::default()
            };
            store.by(&PROGRAM).update_key(&id, &wanted).await.unwrap();
        });
    }

    /// A request of the Messages API with the API key in its own header, and these others.
    fn bring(&self, body: &Value, headers: &[(&str, &str)]) -> Answer {
        self.bring_to("/v1/messages", body, headers)
    }

    fn bring_to(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let asked = Ask::post(path, body.to_string()).header("x-weirgate-key", &self.key);
        let asked = headers
            .iter()
            .fold(asked, |asked, (name, value)| asked.header(name, value));
        ask(self.address(), &asked)
    }
}

fn bearer(text: &str) -> String {
    format!("Bearer {text}")
}

fn message(model: &str) -> Value {
    json!({"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]})
}

/// What the events of a stream say together.
fn said(answer: &Answer) -> String {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let lines = answer.text().lines().map(str::to_owned);
    let events =
        lines.filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let pieces = events.filter_map(|event| {
        let chunk = &event["choices"][0]["delta"]["content"];
        let piece = chunk.as_str().or_else(|| event["delta"].as_str());
        piece.map(str::to_owned)
    });
    pieces.collect()
}

/// Whether a request holds one of the credentials, or the API key, anywhere but in the header that is meant for it.
fn holds_else(request: &Received, header: &str, gateway: &Gateway) -> bool {
    let held = |text: &str| text.contains("canary-of") || text.contains(&*gateway.key);
    let elsewhere = |(name, value): &(String, String)| {
        !name.eq_ignore_ascii_case(header) && (held(value) || name == "x-weirgate-key")
    };
    request.headers.iter().any(elsewhere)
        || held(&String::from_utf8_lossy(&request.body))
        || held(&request.path)
}

#[test]
fn a_claude_login_goes_to_its_vendor_byte_for_byte_and_is_not_charged() {
    let providers = Providers::new();
    let gateway = providers.gateway("");
    let login = bearer(LOGIN);
    let headers = [
        ("authorization", &*login),
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "claude-code-20250219,oauth-2025-04-20"),
    ];
    let answer = gateway.bring(&message("claude"), &headers);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let sent = providers.anthropic.request(0);
    assert_eq!(sent.header("authorization"), Some(&*login));
    assert_eq!(sent.header("x-api-key"), None);
    let beta = Some("claude-code-20250219,oauth-2025-04-20");
    assert_eq!(sent.header("anthropic-beta"), beta);
    assert!(!holds_else(&sent, "authorization", &gateway));
    assert_eq!(providers.count(), 1);
    let body = answer.json();
    assert_eq!(body["content"][0]["text"], "from anthropic");
    let metadata = &body["weirgate"]["metadata"];
    assert_eq!(metadata["cost_basis"], "api_equivalent", "{body}");
    let attempt = &metadata["routing"][0];
    assert_eq!(attempt["credentialSource"], "byok");
    for absent in ["apiKeyHash", "providerKeyId", "providerKeyLabel"] {
        assert!(attempt.get(absent).is_none(), "{attempt}");
    }
    let line = gateway.log_line(answer.header("x-request-id").unwrap());
    assert_eq!(line["cost_basis"], "api_equivalent", "{line}");
    assert!(!line["cost"].is_null(), "{line}");
    assert!(!line.to_string().contains("canary-of"), "{line}");
    assert!(!gateway.metrics().contains("canary-of"));
    // Without the login it would have been the organization that pays, which has nothing.
    let plain = gateway.bring(&message("claude"), &[]);
    assert_eq!(plain.status(), 429, "{}", plain.text());
    assert!(plain.text().contains("insufficient_credits"));
}

#[test]
fn a_stream_and_other_apis_say_that_the_cost_is_not_charged() {
    let providers = Providers::new();
    let gateway = providers.gateway("");
    let login = bearer(LOGIN);
    let chat =
        json!({"model": "claude", "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let answer = gateway.bring_to("/v1/chat/completions", &chat, &[("authorization", &login)]);
    let text = answer.text();
    assert_eq!(said(&answer), "from anthropic", "{text}");
    assert!(text.contains(r#""cost_basis":"api_equivalent""#), "{text}");
    // This client knows nothing of the beta that the vendor demands for logins.
    let sent = providers.anthropic.request(0);
    assert_eq!(sent.header("anthropic-beta"), Some("oauth-2025-04-20"));
    assert_eq!(sent.header("authorization"), Some(&*login));
    let own = [("authorization", &*bearer(OPENAI_KEY))];
    let whole = json!({"model": "gpt", "messages": [{"role": "user", "content": "Hi"}]});
    let answer = gateway.bring_to("/v1/chat/completions", &whole, &own);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let usage = &answer.json()["usage"];
    assert_eq!(usage["cost_basis"], "api_equivalent");
    assert!(usage["cost"].as_f64() > Some(0.0), "{usage}");
    let items = json!({"model": "gpt", "input": "Hi", "stream": true});
    let answer = gateway.bring_to("/v1/responses", &items, &own);
    assert_eq!(said(&answer), "from openai", "{}", answer.text());
    for sent in providers.openai.requests() {
        assert_eq!(sent.header("authorization"), Some(&*bearer(OPENAI_KEY)));
        assert!(!holds_else(&sent, "authorization", &gateway));
    }
    assert_eq!(providers.openai.requests().len(), 2);
    assert!(providers.reseller.requests().is_empty());
}

#[test]
fn an_api_key_of_the_vendor_stands_where_the_vendor_has_its_keys() {
    let providers = Providers::new();
    let gateway = providers.gateway("");
    let as_bearer = bearer(CLAUDE_KEY);
    for header in [("x-api-key", CLAUDE_KEY), ("authorization", &as_bearer)] {
        let answer = gateway.bring(&message("claude"), &[header]);
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }
    for sent in providers.anthropic.requests() {
        assert_eq!(sent.header("x-api-key"), Some(CLAUDE_KEY));
        assert_eq!(sent.header("authorization"), None);
        assert_eq!(sent.header("anthropic-beta"), None);
    }
    assert_eq!(providers.count(), 2);
}

#[test]
fn no_other_provider_sees_the_credential_when_its_vendor_fails() {
    let failing = [
        Some(Reply::json(500, "{}")),
        Some(Reply::json(529, "{}")),
        Some(Reply::json(403, "{}")),
        Some(Reply::json(200, "no JSON")),
        None,
    ];
    for reply in failing {
        let closed = ClosedPort::take();
        let providers = Providers::with(match &reply {
            Some(reply) => Upstream::always(reply.clone()),
            None => says("nobody"),
        });
        let address = match &reply {
            Some(_) => providers.anthropic.url(),
            None => closed.url(),
        };
        let hedged = "[routing]\nhedge_after_ms = 50";
        let gateway = gateway_at(&address, &providers, hedged);
        for stream in [false, true] {
            let mut asked = message("claude");
            asked["stream"] = json!(stream);
            let answer = gateway.bring(&asked, &[("authorization", &bearer(LOGIN))]);
            let text = answer.text();
            assert!(answer.status() >= 400, "{text}");
            assert!(!text.contains("canary-of"), "{text}");
        }
        assert!(providers.reseller.requests().is_empty(), "{reply:?}");
        assert!(providers.openai.requests().is_empty());
    }
}

#[test]
fn a_refused_credential_and_a_used_up_limit_are_told_from_the_gateway_s_own() {
    let providers = Providers::with(Upstream::answering(|request| {
        let own = request.header("authorization").unwrap_or_default();
        let said = |text: &str| {
            json!({"type": "error", "error": {"type": "a", "message": format!("{text} {own}")}})
                .to_string()
        };
        match request.json()["max_tokens"].as_u64() {
            Some(1) => Reply::json(401, said("no such token")),
            Some(2) => Reply::whole(
                429,
                &[("retry-after", "7"), ("content-type", "application/json")],
                said("too many"),
            ),
            _ => Reply::json(
                200,
                json!({"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn",
                       "content": [{"type": "text", "text": "yes"}], "usage": {"input_tokens": 1, "output_tokens": 1}})
                .to_string(),
            ),
        }
    }));
    let gateway = providers.gateway("");
    let login = bearer(LOGIN);
    let asked = |limit: u64| {
        let mut asked = message("claude");
        asked["max_tokens"] = json!(limit);
        gateway.bring(&asked, &[("authorization", &login)])
    };
    for _ in 0..4 {
        let refused = asked(1);
        assert_eq!(refused.status(), 401, "{}", refused.text());
        let text = refused.text();
        assert!(text.contains("Anthropic refuses the credential"), "{text}");
        assert!(!text.contains("canary-of"), "{text}");
    }
    let limited = asked(2);
    assert_eq!(limited.status(), 429, "{}", limited.text());
    assert_eq!(limited.header("retry-after"), Some("7"));
    assert!(!limited.text().contains("canary-of"));
    // Neither rests the vendor for others, or for the same caller.
    assert_eq!(asked(100).status(), 200);
    let wrong = Ask::post("/v1/messages", message("claude").to_string())
        .header("x-weirgate-key", "wg_wrong")
        .header("authorization", &login);
    let wrong = ask(gateway.address(), &wrong);
    assert_eq!(wrong.status(), 401);
    assert!(wrong.text().contains("mistyped"), "{}", wrong.text());
    let alone =
        Ask::post("/v1/messages", message("claude").to_string()).header("authorization", &login);
    let alone = ask(gateway.address(), &alone);
    assert_eq!(alone.status(), 401);
    assert!(alone.text().contains("x-weirgate-key"), "{}", alone.text());
    assert!(providers.reseller.requests().is_empty());
}

#[test]
fn what_is_unclear_or_forbidden_reaches_nobody() {
    let providers = Providers::new();
    let gateway = providers.gateway("[responses]\nstore = true");
    let other_key = format!("Bearer wg_{}", "a".repeat(43));
    let (login, openai) = (bearer(LOGIN), bearer(OPENAI_KEY));
    let background = json!({"model": "claude", "input": "Hi", "background": true});
    let film = json!({"model": "film", "prompt": "cats", "seconds": 4});
    let chats = "/v1/messages";
    for (path, body, headers, status, told) in [
        (
            chats,
            message("claude"),
            vec![("authorization", "Bearer sk-0123456789canary-of")],
            400,
            "several vendors share",
        ),
        (
            chats,
            message("claude"),
            vec![("authorization", "Basic YTpi")],
            400,
            "another scheme",
        ),
        (
            chats,
            message("claude"),
            vec![("authorization", &*login), ("x-api-key", CLAUDE_KEY)],
            400,
            "different credentials",
        ),
        (
            chats,
            message("claude"),
            vec![("authorization", &*other_key)],
            400,
            "name different keys",
        ),
        (
            chats,
            message("gpt"),
            vec![("authorization", &*login)],
            400,
            "openai, reseller",
        ),
        (
            chats,
            message("resold"),
            vec![("authorization", &*login)],
            400,
            "served by reseller here",
        ),
        (
            chats,
            message("reseller/claude"),
            vec![("authorization", &*login)],
            400,
            "served by reseller here",
        ),
        (
            chats,
            message("claude"),
            vec![("authorization", &*openai)],
            400,
            "OpenAI's own address",
        ),
        (
            "/v1/responses",
            background,
            vec![("authorization", &*login)],
            400,
            "in the background",
        ),
        (
            "/v1/videos",
            film,
            vec![("authorization", &*openai)],
            400,
            "making of a video",
        ),
    ] {
        let answer = gateway.bring_to(path, &body, &headers);
        let text = answer.text();
        assert_eq!(answer.status(), status, "{told}: {text}");
        assert!(text.contains(told), "{told}: {text}");
        assert!(!text.contains("canary-of"), "{text}");
    }
    assert_eq!(providers.count(), 0);
    gateway.allow(r#"{"allow_passthrough":["openai"]}"#);
    let forbidden = gateway.bring(&message("claude"), &[("authorization", &login)]);
    assert_eq!(forbidden.status(), 403, "{}", forbidden.text());
    let hint = "--allow-passthrough anthropic";
    assert!(forbidden.text().contains(hint), "{}", forbidden.text());
    gateway.allow("{}");
    let forbidden = gateway.bring_to(
        "/v1/chat/completions",
        &json!({"model": "gpt", "messages": [{"role": "user", "content": "Hi"}]}),
        &[("authorization", &openai)],
    );
    assert_eq!(forbidden.status(), 403, "{}", forbidden.text());
    let error = &forbidden.json()["error"];
    assert_eq!(error["code"], "passthrough_not_allowed");
    assert_eq!(providers.count(), 0);
}

#[test]
fn no_other_key_stands_in_for_the_credential_whatever_the_project_s_mode() {
    for mode in [Mode::Platform, Mode::Byok, Mode::Hybrid] {
        let providers = Providers::with(Upstream::answering(|request| {
            match request.header("authorization") {
                Some(_) => Reply::json(401, r#"{"error":{"message":"no"}}"#),
                None => Reply::json(500, "{}"),
            }
        }));
        let gateway = providers.gateway("");
        gateway.set_mode(mode);
        gateway.own("anthropic", "sk-of-the-organization");
        let answer = gateway.bring(&message("claude"), &[("authorization", &bearer(LOGIN))]);
        assert_eq!(answer.status(), 401, "{}", answer.text());
        let sent = providers.anthropic.requests();
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].header("authorization"), Some(&*bearer(LOGIN)));
        assert_eq!(providers.count(), 1);
    }
}

#[test]
fn the_answer_is_neither_taken_from_the_cache_nor_put_there() {
    let providers = Providers::new();
    let gateway = providers.gateway("");
    gateway.cache_for(3600);
    for _ in 0..2 {
        let answer = gateway.bring(&message("claude"), &[("authorization", &bearer(LOGIN))]);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(answer.header("x-weirgate-cache"), None);
    }
    assert_eq!(providers.anthropic.requests().len(), 2);
    // Another call of the same words is answered by who is paid for it, and not from what the login has got.
    gateway.own("reseller", "sk-own");
    gateway.set_mode(Mode::Byok);
    for hit in [None, Some("HIT")] {
        let answer = gateway.bring(&message("claude"), &[]);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(answer.header("x-weirgate-cache"), hit);
        assert!(answer.text().contains("from reseller"));
    }
    let answer = gateway.bring(&message("claude"), &[("authorization", &bearer(LOGIN))]);
    assert!(answer.text().contains("from anthropic"));
}

#[test]
fn limits_of_the_key_count_what_the_calls_would_cost() {
    let long = Turn {
        prompt_tokens: 900,
        ..Turn::text("yes")
    };
    let providers = Providers::with(saying(move |_| long.clone().into()));
    let gateway = providers.gateway("");
    // The first call costs 0.2775.
    gateway.allow(r#"{"allow_passthrough":["anthropic"],"limit":"0.2"}"#);
    let asked = || gateway.bring(&message("claude"), &[("authorization", &bearer(LOGIN))]);
    assert_eq!(asked().status(), 200);
    let refused = asked();
    assert_eq!(refused.status(), 429, "{}", refused.text());
    assert!(refused.text().contains("key_limit_reached"));
    assert_eq!(providers.anthropic.requests().len(), 1);
    let shown = Ask::get("/v1/key").header("x-weirgate-key", &gateway.key);
    let shown = ask(gateway.address(), &shown).json();
    assert_eq!(shown["data"]["usage"], "0.2775", "{shown}");
    used(&gateway, "0");
}

#[test]
fn tokens_are_counted_with_the_credential_and_its_refusal_is_nothing_to_others() {
    let providers = Providers::with(Upstream::answering(|request| {
        match request.header("authorization") {
            Some(own) if own.ends_with("bad") => Reply::json(401, "{}"),
            _ => Reply::json(200, r#"{"input_tokens": 4321}"#),
        }
    }));
    let gateway = providers.gateway("");
    let count = |login: &str| {
        let headers = [
            ("authorization", login),
            ("anthropic-version", "2023-06-01"),
        ];
        gateway.bring_to("/v1/messages/count_tokens", &message("claude"), &headers)
    };
    let estimate = count(&format!("{}bad", bearer(LOGIN)));
    assert_eq!(estimate.status(), 200, "{}", estimate.text());
    assert_ne!(estimate.json()["input_tokens"], 4321);
    let counted = count(&bearer(LOGIN));
    assert_eq!(counted.json()["input_tokens"], 4321);
    let sent = providers.anthropic.request(1);
    assert_eq!(sent.header("authorization"), Some(&*bearer(LOGIN)));
    assert_eq!(sent.header("x-api-key"), None);
    assert_eq!(providers.count(), 2);
    let refused = count("Bearer sk-0123456789canary-of");
    assert_eq!(refused.status(), 400, "{}", refused.text());
}

#[test]
fn the_header_has_the_name_that_the_operator_gives_it_and_serves_all_paths() {
    let providers = Providers::new();
    let gateway = providers.gateway("[listen]\nkey_header = \"x-team-key\"");
    let login = bearer(LOGIN);
    let asked = |name: &str, request: Ask| {
        let request = request.header(name, &gateway.key);
        ask(gateway.address(), &request.header("authorization", &login))
    };
    let call = || Ask::post("/v1/messages", message("claude").to_string());
    assert_eq!(asked("x-team-key", call()).status(), 200);
    assert_eq!(asked("x-weirgate-key", call()).status(), 401);
    for path in ["/v1/models", "/v1/key", "/v1/credits"] {
        let answer = asked("x-team-key", Ask::get(path));
        assert_eq!(answer.status(), 200, "{path}: {}", answer.text());
    }
    assert_eq!(providers.count(), 1);
}
