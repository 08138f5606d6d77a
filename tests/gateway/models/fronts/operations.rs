//! What holds for every operation of JSON or a form in and JSON out, checked for each in its own file: fallback between two
//! providers, limits, and money. Source: docs/promises-tests.md.

use filters::accounts::TermsFile;
use filters::audit::PROGRAM;
use weirgate::store::KeyChange;

use crate::ledger::used;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::script::{Cut, Reply};
use crate::support::upstream::Upstream;

/// The catalogue of a model of a type at two providers, whose mappings have these lines, and of a chat at the second.
macro_rules! two_providers {
    ($id:literal, $type:literal, $first:literal, $second:literal) => {
        concat!(
            "[[models]]\nid = \"", $id, "\"\ntype = \"", $type, "\"\n",
            "[[models.providers]]\nprovider = \"first\"\n", $first, "\n",
            "[[models.providers]]\nprovider = \"second\"\n", $second, "\n",
            "[[models]]\nid = \"chat\"\n[[models.providers]]\nprovider = \"second\"\nname = \"chat\"\n",
        )
    };
}
pub(crate) use two_providers;

/// An operation at two providers, `first` and `second`.
pub struct Operation {
    pub path: &'static str,
    /// The kinds of the providers.
    pub kinds: [&'static str; 2],
    /// The catalogue; the model of `body` is at both providers, cheaper at the first.
    pub models: &'static str,
    pub body: &'static str,
    /// A good reply of each provider.
    pub replies: [fn() -> Reply; 2],
    /// What these cost.
    pub costs: [&'static str; 2],
    /// What a client pays that leaves while the first provider works.
    pub left: &'static str,
}

impl Operation {
    /// A gateway in front of the providers, with more configuration and this credit.
    pub fn gateway(&self, providers: [&Upstream; 2], more: &str, credit: &str) -> Gateway {
        let provider = |name: &str, kind: &str, upstream: &Upstream| {
            let version = match kind {
                "cohere" | "google" => "",
                _ => "/v1",
            };
            let url = upstream.url();
            format!(
                "[providers.{name}]\nkind = \"{kind}\"\nbase_url = \"{url}{version}\"\nkeys = [{{ env = \"SECRET\" }}]\n"
            )
        };
        let [first, second] = providers;
        let first = provider("first", self.kinds[0], first);
        let second = provider("second", self.kinds[1], second);
        let toml = format!("{first}{second}{more}\n");
        Gateway::start_with_credit(&toml, self.models, &[("SECRET", "sk-platform")], credit)
    }

    pub fn request(&self, gateway: &Gateway) -> Ask {
        let ask = Ask::post(self.path, self.body).key(&gateway.key);
        // A form begins with its boundary.
        match self.body.strip_prefix("--") {
            None => ask,
            Some(form) => {
                let boundary = form.lines().next().unwrap();
                let media_type = format!("multipart/form-data; boundary={boundary}");
                ask.without("content-type")
                    .header("content-type", &media_type)
            }
        }
    }

    pub fn ask(&self, gateway: &Gateway) -> Answer {
        ask(gateway.address(), &self.request(gateway))
    }

    fn good(&self, provider: usize) -> Upstream {
        Upstream::always(self.replies[provider]())
    }

    /// Each failure of the first provider is followed by the second, which alone is paid.
    pub fn falls_back(&self) {
        let cut = self.replies[0]().cut(150, Cut::Close);
        let failures = [
            (Reply::json(500, "{}"), 500),
            (Reply::json(429, "{}"), 429),
            (Reply::json(401, "{}"), 401),
            (Reply::json(200, "<html>"), 200),
            (Reply::json(200, "{}"), 200),
            (
                Reply::json(200, r#"{"error":{"message":"overloaded","code":503}}"#),
                503,
            ),
            (cut, 0),
            (Reply::hang(), 0),
        ];
        for (failure, status) in failures {
            let (first, second) = (Upstream::always(failure), self.good(1));
            let more = "[routing]\ntotal_timeout_s = 1";
            let gateway = self.gateway([&first, &second], more, "1");
            let answer = self.ask(&gateway);
            assert_eq!(answer.status(), 200, "{status}: {}", answer.text());
            assert!(!first.requests().is_empty(), "{status}: it was not asked");
            used(&gateway, self.costs[1]);
        }
    }

    /// A reply of each provider costs what it says, and is in the ledger.
    pub fn costs(&self) {
        for (provider, cost) in self.costs.into_iter().enumerate() {
            let answers = self.good(provider);
            let fails = Upstream::always(Reply::json(500, "{}"));
            let providers = match provider {
                0 => [&answers, &fails],
                _ => [&fails, &answers],
            };
            let gateway = self.gateway(providers, "", "1");
            assert_eq!(self.ask(&gateway).status(), 200);
            used(&gateway, cost);
            let usage = gateway.beside(async |store| store.usage("acme", 0, None).await.unwrap());
            let sums = (usage[0].requests, usage[0].cost.to_string());
            assert_eq!(sums, (1, cost.to_owned()));
        }
    }

    /// Without credit, and over the limit of its key, a call reaches nobody.
    pub fn is_paid_for(&self) {
        let first = self.good(0);
        let gateway = self.gateway([&first, &first], "", "0");
        let answer = self.ask(&gateway);
        assert_eq!(answer.status(), 402, "{}", answer.text());
        assert_eq!(answer.json()["error"]["code"], "insufficient_credits");
        let gateway = self.gateway([&first, &first], "", "1");
        gateway.change(async |store| {
            let id = store.keys("acme").await.unwrap().remove(0).id;
            let terms = TermsFile {
                limit_per: [("month".to_owned(), "0".to_owned())].into(),
                ..TermsFile::default()
            };
            let wanted = KeyChange {
                terms: Some(terms),
                ..KeyChange::default()
            };
            store.by(&PROGRAM).update_key(&id, &wanted).await.unwrap();
        });
        let answer = self.ask(&gateway);
        assert_eq!(answer.status(), 402, "{}", answer.text());
        assert_eq!(answer.json()["error"]["code"], "key_limit_reached");
        assert!(first.requests().is_empty());
    }

    /// It has a quota of its own.
    pub fn has_a_quota(&self, group: &str) {
        let first = self.good(0);
        let more = format!("[limits]\nrequests_per_minute = {{ {group} = 1, chat = 5 }}");
        let gateway = self.gateway([&first, &first], &more, "1");
        let answers = [0, 1].map(|_| self.ask(&gateway));
        assert_eq!(answers.each_ref().map(Answer::status), [200, 429]);
        assert_eq!(answers[1].header("ratelimit-limit"), Some("1"));
        assert!(answers[1].header("retry-after").is_some());
        assert_ne!(gateway.chat("{").status(), 429);
    }

    /// A client that leaves pays for what was sent, a failed call nothing.
    pub fn is_left(&self) {
        let first = Upstream::always(Reply::hang());
        let gateway = self.gateway([&first, &first], "", "1");
        let mut client = Client::connect(gateway.address());
        client.send(&self.request(&gateway).header("x-request-id", "left"));
        first.request(0);
        drop(client);
        used(&gateway, self.left);
        assert_eq!(gateway.log_line("left")["outcome"], "client_gone");
        let first = Upstream::always(Reply::json(500, "{}"));
        let gateway = self.gateway([&first, &first], "", "1");
        let answer = self.ask(&gateway);
        assert_eq!(answer.status(), 502, "{}", answer.text());
        assert_eq!(answer.json()["error"]["code"], "all_providers_failed");
        used(&gateway, "0");
    }

    /// Each bad body is a 400 that names its field, and reaches nobody.
    pub fn refuses(&self, bodies: &[(&str, Option<&str>)]) {
        let first = self.good(0);
        let gateway = self.gateway([&first, &first], "", "1");
        for (body, param) in bodies {
            let request = self.request(&gateway).body(body);
            let answer = ask(gateway.address(), &request);
            let error = &answer.json()["error"];
            let named = (answer.status(), error["param"].as_str());
            assert_eq!(named, (400, *param), "{body}: {error}");
            assert_eq!(error["type"], "invalid_request_error");
        }
        let text = self.request(&gateway).without("content-type");
        let text = text.header("content-type", "text/plain");
        assert_eq!(ask(gateway.address(), &text).status(), 415);
        let put = Ask::new("PUT", self.path).key(&gateway.key);
        assert_eq!(ask(gateway.address(), &put).status(), 405);
        let keyless = Ask::post(self.path, self.body);
        assert_eq!(ask(gateway.address(), &keyless).status(), 401);
        let elsewhere = gateway.chat(self.body);
        assert_eq!(elsewhere.status(), 400, "{}", elsewhere.text());
        assert!(first.requests().is_empty());
        used(&gateway, "0");
    }
}
