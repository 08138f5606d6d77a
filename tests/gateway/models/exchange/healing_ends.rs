//! Answers that are repaired: when a stored one is replayed, and when the client does not wait for them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::ledger::used;
use crate::models::exchange::healing::{HEALED, SAID, asked, begun, streamed, text, whole};
use crate::models::fronts::chat_completions::chunk;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::{Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::stays;
use crate::support::upstream::Upstream;

#[test]
fn a_replay_is_repaired_and_told_as_a_fresh_answer() {
    let schema =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let said = SAID.concat();
    for (reply, is_stream) in [(whole(&said), false), (streamed(&SAID, "stop"), true)] {
        let first = Upstream::always(reply);
        let gateway = Gateway::between(&first.url(), &first.url());
        gateway.cache_for(3600);
        let told = |id: &str, is_stream: bool| -> Value {
            let body = asked(&json!({"stream": is_stream, "response_format": format}));
            let answer = ask(
                gateway.address(),
                &gateway.chat_ask(body).header("x-request-id", id),
            );
            assert_eq!(text(&answer), (HEALED.to_owned(), 1), "{id}");
            gateway.log_line(id)
        };
        let fresh = told("fresh", is_stream);
        assert_eq!(fresh["healed"], "combined_strategies");
        assert_eq!(fresh["fits_schema"], false);
        for (id, is_stream) in [("same", is_stream), ("other", !is_stream)] {
            let replayed = told(id, is_stream);
            assert_eq!(replayed["cached"], true, "{replayed}");
            for member in ["healed", "fits_schema", "completion_tokens"] {
                assert_eq!(replayed[member], fresh[member], "{member}");
            }
        }
        assert_eq!(first.requests().len(), 1);
    }
}

/// A stream that says a text, which is held, and reasons then; it ends without usage once the gate is open.
fn held(gate: &Gate) -> Reply {
    let thought = chunk(json!({"reasoning_content": "Hm."}), None);
    begun(&[])
        .event(&chunk(json!({"content": "{a: 1"}), None))
        .event(&thought)
        .wait(gate)
        .event(&chunk(json!({}), Some("stop")))
        .event("[DONE]")
        .end()
}

#[test]
fn a_client_that_leaves_pays_for_no_text_that_was_held_unless_its_provider_bills_it() {
    // A token of the prompt at 2.5 USD per million, of the answer at 10: reasoning of six bytes is two tokens, and with the
    // text of five bytes, as it came, three.
    for (models, cost, is_billed) in [
        (MODELS.to_owned(), "0.0000225", false),
        (
            MODELS.replacen(", \"cancellation\"", "", 1),
            "0.0000325",
            true,
        ),
    ] {
        let gate = Gate::default();
        let first = Upstream::always(held(&gate));
        let toml = format!(
            "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
            first.url()
        );
        let gateway = Gateway::start(
            &toml,
            &models.replace("provider = \"second\"", "provider = \"absent\""),
        );
        let mut client = Client::connect(gateway.address());
        let request = gateway.chat_ask(asked(&json!({"stream": true})));
        client.send(&request.header("x-request-id", "gone"));
        client.head();
        // The reasoning behind the text has come, and so has the text.
        let mut thoughts = 0;
        while thoughts < 2 {
            let piece = client.chunk().unwrap();
            thoughts += String::from_utf8_lossy(&piece.bytes).matches("Hm.").count();
        }
        drop(client);
        if is_billed {
            let is_read_on = || !first.is_closed(0);
            stays("it is read on", Duration::from_millis(300), is_read_on);
        } else {
            first.wait_closed(0);
        }
        gate.open();
        used(&gateway, cost);
        assert_eq!(gateway.log_line("gone")["outcome"], "client_gone");
    }
}
