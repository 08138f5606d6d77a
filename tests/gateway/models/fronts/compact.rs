//! Histories that a model summarizes, and that go on with any other. Source: docs/decisions.md 71.

use serde_json::{Value, json};

use super::responses::{response, send, tools};
use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::scripted::{Asked, MODELS, Turn, gateway, gateway_with, saying};

/// By the last item, streamed and whole, and by the path: the summary of one model is the history of all.
#[test]
fn a_summary_of_any_model_goes_on_with_any_other() {
    let provider = saying(
        |asked| match asked.last_text().contains("replaced by a summary") {
            true => Turn::text("The user likes PEAR.").into(),
            false => Turn::text(match asked.holds("The user likes PEAR.") {
                true => "It was PEAR.",
                false => "I do not know.",
            })
            .into(),
        },
    );
    let gateway = gateway(&provider);
    let history = json!([{"role": "user", "content": "I like PEAR"}, {"role": "assistant", "content": "Noted."}]);
    for model in MODELS {
        let body = |is_stream: bool| {
            let mut items = history.clone();
            let items_list = items.as_array_mut().unwrap();
            items_list.push(json!({"type": "compaction_trigger"}));
            json!({"model": model, "input": items, "stream": is_stream, "tools": tools()})
        };
        let mut summaries: Vec<Value> = [false, true]
            .map(|is_stream| {
                let answer = response(&send(&gateway, &body(is_stream)));
                assert_eq!(answer["status"], "completed", "{model}");
                assert!(
                    answer["weirgate"]["usage"]["cost"].as_f64() > Some(0.0),
                    "{answer}"
                );
                answer["output"].clone()
            })
            .into();
        let asked = json!({"model": model, "input": history, "tools": tools()});
        let asked = Ask::post("/v1/responses/compact", asked.to_string()).key(&gateway.key);
        let answer = ask(gateway.address(), &asked);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(answer.json()["object"], "response.compaction");
        summaries.push(answer.json()["output"].clone());
        for summary in summaries {
            let items = summary.as_array().unwrap();
            assert_eq!(
                (items.len(), &items[0]["type"]),
                (1, &json!("compaction")),
                "{model}"
            );
            for other in MODELS {
                let input = json!([items[0], {"role": "user", "content": "What was it?"}]);
                let answer = response(&send(&gateway, &json!({"model": other, "input": input})));
                let said = &answer["output"][0]["content"][0]["text"];
                assert_eq!(said, "It was PEAR.", "{model} to {other}");
            }
        }
    }
}

#[test]
fn a_model_that_writes_no_summary_has_failed_and_the_next_one_is_asked() {
    let refuses = |asked: &Asked| asked.body.to_string().contains("up-first");
    let provider = saying(move |asked| match refuses(asked) {
        true => Turn::call("read", json!({"path": "a"})).into(),
        false => Turn::text("So far.").into(),
    });
    let mapping = |name: &str| {
        format!(
            "[[models.providers]]\nprovider = \"first\"\nname = \"{name}\"\nwire = \"chat\"\ncapabilities = [\"streaming\", \"tools\"]\n\
             max_output = 32000\ninput_price = \"1\"\noutput_price = \"2\"\n"
        )
    };
    let one = format!("[[models]]\nid = \"one\"\n{}", mapping("up-first"));
    let two = format!(
        "[[models]]\nid = \"two\"\n{}{}",
        mapping("up-first"),
        mapping("up-second")
    );
    let gateway = gateway_with(&provider, "", &[one, two].concat(), "1000");
    let input = json!([{"role": "user", "content": "Hi"}, {"type": "compaction_trigger"}]);
    let body = |model: &str| json!({"model": model, "input": input, "tools": tools()});
    let failed = send(&gateway, &body("one"));
    assert_eq!(failed.status(), 502, "{}", failed.text());
    let answer = response(&send(&gateway, &body("two")));
    assert_eq!(answer["output"][0]["type"], "compaction");
}
