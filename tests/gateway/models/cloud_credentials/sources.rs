//! Each source of credentials, as its vendor serves it: what it is asked, and what the provider then gets.

mod aws;
mod google;

use crate::models::cloud_credentials::{answering, gateway};
use crate::models::fronts::chat_completions::PLAIN;
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

/// The variables of a process.
type Variables = Vec<(&'static str, String)>;

/// A gateway whose provider signs in by a source, with what it gets.
struct SignedIn {
    gateway: Gateway,
    provider: Upstream,
    /// Where a call goes that the provider cannot have.
    second: Upstream,
}

impl SignedIn {
    fn start(table: &str, variables: &[(&'static str, String)]) -> SignedIn {
        let [provider, second] = [answering(), answering()];
        let gateway = gateway([&provider, &second], table, variables);
        SignedIn {
            gateway,
            provider,
            second,
        }
    }

    /// Calls, and returns what the provider gets.
    fn request(&self) -> Received {
        let answer = self.gateway.chat(PLAIN);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let body = answer.json();
        let routing = &body["metadata"]["routing"];
        assert_eq!(routing[0]["provider"], "first", "{routing}");
        assert_eq!(routing.as_array().unwrap().len(), 1, "{routing}");
        self.provider.requests().pop().unwrap()
    }

    /// Calls, and checks that the source gives nothing for this reason.
    fn fails(&self, expected: &str) {
        super::failures::assert_unavailable(&self.gateway, &self.provider, expected);
        assert_eq!(self.second.requests().len(), 1);
    }
}

/// A server of a source that answers these paths, each as it says; others are a 404.
fn serving(answer: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static) -> Upstream {
    Upstream::answering(move |request| answer(request).unwrap_or_else(|| Reply::json(404, "{}")))
}

/// The members of a form; `None`: it is none.
fn form(request: &Received) -> Option<Vec<(String, String)>> {
    let kind = request.header("content-type")?;
    let is_form = kind == "application/x-www-form-urlencoded" && request.method == "POST";
    is_form.then(|| form_urlencoded::parse(&request.body).into_owned().collect())
}

/// What is no answer of a source: a reply, and what operators read of it.
fn bad_replies() -> [(Reply, &'static str); 4] {
    let elsewhere = [("location", "http://127.0.0.1:9/")];
    let html = [("content-type", "text/html")];
    [
        (
            Reply::whole(302, &elsewhere, ""),
            "it answered with a redirect (302), which is not followed; ",
        ),
        (
            Reply::whole(200, &html, "<!doctype html><p>Sign in"),
            "it answered with a page of HTML; ",
        ),
        (Reply::json(500, "{}"), "it answered 500; "),
        (
            Reply::json(200, "a".repeat(300 << 10)),
            "it has more than 262144 bytes; ",
        ),
    ]
}
