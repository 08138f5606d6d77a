//! Schemas of tools and answers that grow where a wire cannot say them as they came.

use serde_json::json;

use crate::models::fronts::chat_completions::reply;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::upstream::Upstream;

/// A schema that refers to itself three times has 3^32 values without references.
#[test]
fn a_schema_that_grows_without_bound_is_passed_over_by_who_knows_no_references() {
    let (first, second) = (Upstream::always(reply()), Upstream::always(reply()));
    let toml = format!(
        "[providers.first]\nkind = \"google\"\nbase_url = \"{}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        first.url(),
        second.url()
    );
    let models = "[[models]]\nid = \"chat\"\n\
        [[models.providers]]\nprovider = \"first\"\nname = \"first-up\"\ninput_price = \"0.1\"\noutput_price = \"0.1\"\n\
        [[models.providers]]\nprovider = \"second\"\nname = \"second-up\"\ninput_price = \"1\"\noutput_price = \"1\"\n";
    let gateway = Gateway::start_with_env(&toml, models, &[("FIRST_KEY", "sk-platform-1")]);
    let node = json!({"$ref": "#/$defs/n"});
    let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [node, node, node]}}});
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": schema}}]);
    let form = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    for (member, value, param) in [
        ("tools", tools, "tools[0].function.parameters"),
        (
            "response_format",
            form,
            "response_format.json_schema.schema",
        ),
    ] {
        let mut body = json!({"model": "chat", "messages": [{"role": "user", "content": "Hi"}]});
        body[member] = value;
        let request = gateway.chat_ask(body.to_string());
        let answer = ask(gateway.address(), &request.header("x-request-id", member));
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let left_out = gateway.log_line(member)["left_out"][0].clone();
        assert_eq!(
            [&left_out["provider"], &left_out["param"]],
            ["first", param]
        );
        body["model"] = "first/chat".into();
        let pinned = gateway.chat(body.to_string());
        let error = pinned.json()["error"].clone();
        assert_eq!(
            (pinned.status(), &error["param"]),
            (400, &param.into()),
            "{error}"
        );
    }
    assert!(first.requests().is_empty());
    assert_eq!(second.requests().len(), 2);
}
