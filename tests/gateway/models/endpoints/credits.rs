//! `GET /v1/credits`: what an organization has left, to the last digit.

use filters::audit::PROGRAM;
use filters::money::Usd;
use serde_json::{Value, json};

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::until;
use crate::support::upstream::Upstream;

impl Gateway {
    fn credits(&self) -> Answer {
        ask(self.address(), &Ask::get("/v1/credits").key(&self.key))
    }

    /// Asks until the answer is this one.
    fn comes_to(&self, expected: &Value) {
        until(&format!("{expected}"), || {
            self.credits().json() == *expected
        });
    }
}

/// Contract: model-gateway 4 GET /v1/credits
#[test]
fn the_credit_is_what_was_granted_without_what_calls_have_cost() {
    let first = Upstream::always(reply());
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = []\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = []\n",
        first.url()
    );
    let models = crate::support::boot::MODELS;
    let gateway = Gateway::start_with_credit(&toml, models, &[], "1.000000000000000001");
    let answer = gateway.credits();
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(
        answer.json(),
        json!({"balance": "1.000000000000000001", "total_used": "0"})
    );
    for _ in 0..2 {
        assert_eq!(gateway.chat(PLAIN).status(), 200);
    }
    gateway.comes_to(&json!({"balance": "0.994000000000000001", "total_used": "0.006"}));
    gateway.change(async |store| {
        let more = Usd::parse("2").unwrap();
        store
            .by(&PROGRAM)
            .add_credit("acme", more, 1)
            .await
            .unwrap();
    });
    gateway.comes_to(&json!({"balance": "2.994000000000000001", "total_used": "0.006"}));
}

#[test]
fn the_credit_needs_a_key_and_takes_no_other_method() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    assert_eq!(
        ask(gateway.address(), &Ask::get("/v1/credits")).status(),
        401
    );
    let posted = Ask::post("/v1/credits", "{}").key(&gateway.key);
    assert_eq!(ask(gateway.address(), &posted).status(), 405);
}
