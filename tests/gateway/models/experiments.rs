//! Experiments on models: a flag chooses model, prompt and parameters. Source: docs/prompts.md, Experiments.

use filters::accounts::TermsFile;
use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::store::ProjectChange;

use crate::models::fronts::chat_completions::{PLAIN, reply, stream};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// An experiment with two variations of these values: `ada` gets the first, `bob` the second.
fn experiment(id: &str, key: &str, variables: &[&str], values: [&[&str]; 2]) -> Value {
    let variation = |at: usize, key: &str| {
        let values = variables
            .iter()
            .zip(values[at])
            .map(|(name, value)| json!({"id": format!("{id}-{name}"), "value": value}));
        json!({"id": format!("{id}-{key}"), "key": key, "featureEnabled": true, "variables": values.collect::<Vec<_>>()})
    };
    json!({"id": format!("{id}-e"), "key": format!("{key}_test"), "layerId": format!("{id}-l"), "status": "Running", "audienceIds": [],
        "forcedVariations": {"ada": "a", "bob": "b"}, "trafficAllocation": [{"entityId": format!("{id}-a"), "endOfRange": 10000}],
        "variations": [variation(0, "a"), variation(1, "b")]})
}

fn flag(id: &str, key: &str, variables: &[(&str, &str, &str)], is_tested: bool) -> Value {
    let variables = variables.iter().map(|(name, kind, default)| json!({"id": format!("{id}-{name}"), "key": name, "type": kind, "defaultValue": default}));
    let experiments: Vec<String> = is_tested.then(|| format!("{id}-e")).into_iter().collect();
    json!({"id": id, "key": key, "rolloutId": "", "experimentIds": experiments, "variables": variables.collect::<Vec<_>>()})
}

/// A holdout keeps everyone out, if there is one.
pub fn datafile(has_holdout: bool) -> Value {
    let holdout = json!({"id": "h", "key": "kept_out", "status": "Running", "layerId": "h-l", "audienceIds": [],
        "trafficAllocation": [{"entityId": "h-v", "endOfRange": 10000}],
        "variations": [{"id": "h-v", "key": "holdout", "featureEnabled": false, "variables": []}]});
    let holdouts: Vec<Value> = has_holdout.then_some(holdout).into_iter().collect();
    json!({"version": "4", "accountId": "a", "projectId": "experiments", "revision": "1", "sdkKey": "exp", "sendFlagDecisions": true,
    "attributes": [], "events": [], "typedAudiences": [], "audiences": [], "groups": [], "rollouts": [], "integrations": [], "variables": [],
    "holdouts": holdouts,
    "featureFlags": [
        flag("models", "models", &[("model", "string", "chat"), ("temperature", "double", "1"), ("prompt", "string", ""), ("tone", "string", "")], true),
        flag("bad", "bad", &[("model", "string", "chat"), ("temperature", "string", "")], true),
        flag("wrong", "wrong", &[("model", "integer", "1")], true),
        flag("odd", "odd", &[("model", "string", "chat"), ("color", "string", "red")], true),
        flag("off", "off", &[("model", "string", "chat")], false),
        flag("held", "held", &[("model", "string", "only-first")], true),
    ],
    "experiments": [
        experiment("models", "models", &["model", "temperature", "prompt", "tone"], [&["chat", "0.25", "hi@1", "kind"], &["only-first", "0.75", "hi", "dry"]]),
        experiment("bad", "bad", &["temperature"], [&["hot"], &["hot"]]),
        experiment("wrong", "wrong", &["model"], [&["5"], &["5"]]),
        experiment("odd", "odd", &["color"], [&["red"], &["red"]]),
        experiment("held", "held", &["model"], [&["chat"], &["chat"]]),
    ]})
}

/// A gateway whose project `default` takes the flags of [`datafile`], with the folder of the datafile.
pub fn gateway(
    first: &Upstream,
    second: &Upstream,
    events: &Upstream,
) -> (Gateway, tempfile::TempDir) {
    gateway_of(&datafile(false), first, second, events)
}

fn gateway_of(
    datafile: &Value,
    first: &Upstream,
    second: &Upstream,
    events: &Upstream,
) -> (Gateway, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flags.json");
    std::fs::write(&path, datafile.to_string()).unwrap();
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n\
         [decisions]\nevent_url = \"{}/events\"\nevent_flush_interval_s = 1\nevent_batch = 1\n\
         [[decisions.projects]]\nsdk_key = \"exp\"\ndatafile = \"{}\"\n",
        first.url(),
        second.url(),
        events.url(),
        path.display()
    );
    let gateway = Gateway::start(&toml, MODELS);
    gateway.experiment_with(Some("exp"));
    let system = json!([{"role": "system", "content": "Be {{tone}}"}]);
    gateway.put("hi", &[], &json!({"messages": system, "parameters": {"temperature": 0.5, "top_p": 0.5}, "variables": {"tone": "plain"}}));
    (gateway, folder)
}

impl Gateway {
    fn experiment_with(&self, sdk_key: Option<&str>) {
        self.change(async |store| {
            let change = ProjectChange {
                experiments: Some(sdk_key),
                ..ProjectChange::default()
            };
            store
                .by(&PROGRAM)
                .update_project("acme", "default", &change)
                .await
                .unwrap();
        });
    }
}

pub fn asked(flag: &str, members: Value) -> String {
    let mut body =
        json!({"model": format!("@flag/{flag}"), "messages": [{"role": "user", "content": "Hi"}]});
    body.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    body.to_string()
}

pub fn no_events() -> Upstream {
    Upstream::always(Reply::whole(204, &[], ""))
}

#[test]
fn each_user_gets_the_model_the_prompt_and_the_parameters_of_its_variation() {
    let (first, events) = (
        Upstream::answering(|request| match request.json()["stream"] == true {
            true => stream(),
            false => reply(),
        }),
        no_events(),
    );
    let (gateway, _folder) = gateway(&first, &first, &events);
    for (index, (user, variation, model, temperature, tone)) in [
        ("ada", "a", "chat", 0.25, "Be kind"),
        ("bob", "b", "only-first", 0.75, "Be dry"),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = gateway.chat(asked("models", json!({"user": user})));
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let sent = first.request(2 * index).json();
        assert_eq!(
            (&sent["temperature"], &sent["top_p"]),
            (&json!(temperature), &json!(0.5))
        );
        assert_eq!(
            (
                &sent["messages"][0]["content"],
                &sent["messages"][1]["content"]
            ),
            (&json!(tone), &json!("Hi"))
        );
        let metadata = &answer.json()["metadata"];
        let experiment = json!({"flag": "models", "rule": "models_test", "variation": variation});
        assert_eq!(
            (&metadata["experiment"], &metadata["requested_model"]),
            (&experiment, &json!("@flag/models"))
        );
        assert_eq!(metadata["used_model"], format!("first/{model}"));
        assert_eq!(
            (&metadata["prompt"]["id"], &metadata["prompt"]["version"]),
            (&json!("hi"), &json!(1))
        );
        let line = gateway.log_line(answer.header("x-request-id").unwrap());
        assert_eq!(
            (&line["experiment"], &line["model"]),
            (&experiment, &json!("@flag/models"))
        );
        let streamed = gateway.chat(asked(
            "models",
            json!({"user": user, "stream": true, "temperature": 0}),
        ));
        let events = streamed.events();
        let chunks = events.data();
        let last: Value = serde_json::from_str(chunks[chunks.len() - 2]).unwrap();
        assert_eq!(last["metadata"]["experiment"], experiment);
        assert_eq!(
            first.request(2 * index + 1).json()["temperature"],
            0,
            "the caller's counts first"
        );
    }
    assert_eq!(
        gateway.chat(PLAIN).json()["metadata"].get("experiment"),
        None
    );
    let told = events.wait_requests(4);
    let impressions: Vec<Value> = told
        .iter()
        .map(|request| request.json()["visitors"][0].clone())
        .collect();
    let users: Vec<_> = impressions
        .iter()
        .map(|it| it["visitor_id"].as_str().unwrap())
        .collect();
    assert_eq!(users, ["ada", "ada", "bob", "bob"], "one impression a call");
    let decision = &impressions[2]["snapshots"][0]["decisions"][0];
    assert_eq!(
        (&decision["variation_id"], &decision["metadata"]["flag_key"]),
        (&json!("models-b"), &json!("models"))
    );
}

#[test]
fn the_user_is_the_requests_else_the_session_else_the_key() {
    let (first, events) = (Upstream::always(reply()), no_events());
    let (gateway, _folder) = gateway(&first, &first, &events);
    let session = gateway
        .chat_ask(asked("models", json!({})))
        .header("x-session-id", "bob");
    assert_eq!(
        ask(gateway.address(), &session).json()["metadata"]["used_model"],
        "first/only-first"
    );
    let key = gateway.chat(asked("models", json!({"prompt_cache_key": "bob"})));
    assert_eq!(key.json()["metadata"]["used_model"], "first/only-first");
    let user = gateway
        .chat_ask(asked("models", json!({"user": "ada"})))
        .header("x-session-id", "bob");
    assert_eq!(
        ask(gateway.address(), &user).json()["metadata"]["used_model"],
        "first/chat"
    );
    gateway.chat(asked("models", json!({})));
    let told = events.wait_requests(4);
    let users: Vec<Value> = told
        .iter()
        .map(|request| request.json()["visitors"][0]["visitor_id"].clone())
        .collect();
    assert_eq!(users[..3], ["bob", "bob", "ada"]);
    assert!(users[3].as_str().unwrap().starts_with("key_"), "{users:?}");
}

#[test]
fn a_user_whom_a_holdout_keeps_out_gets_the_flags_own_values() {
    let (first, events) = (Upstream::always(reply()), no_events());
    let (gateway, _folder) = gateway_of(&datafile(true), &first, &first, &events);
    let answer = gateway.chat(asked("held", json!({"user": "ada"})));
    let metadata = answer.json()["metadata"].clone();
    assert_eq!(
        metadata["used_model"],
        "first/only-first",
        "{}",
        answer.text()
    );
    assert_eq!(
        metadata["experiment"],
        json!({"flag": "held", "rule": "kept_out", "variation": "holdout"})
    );
    let decision =
        events.wait_requests(1)[0].json()["visitors"][0]["snapshots"][0]["decisions"][0].clone();
    assert_eq!(decision["metadata"]["rule_type"], "holdout");
}

fn refused(answer: &Answer, status: u16, param: &str, code: &str, said: &str) {
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status(), &error["param"], &error["code"]),
        (status, &json!(param), &json!(code)),
        "{error}"
    );
    assert!(
        error["message"].as_str().unwrap().contains(said),
        "{said}: {error}"
    );
}

#[test]
fn a_flag_that_decides_nothing_and_a_variable_that_does_not_fit_are_refused_by_name() {
    let (first, events) = (Upstream::always(reply()), no_events());
    let (gateway, _folder) = gateway(&first, &first, &events);
    for (flag, status, param, code, said) in [
        (
            "none",
            404,
            "model",
            "flag_not_found",
            "the flag \"none\" is not in the datafile",
        ),
        (
            "off",
            404,
            "model",
            "flag_not_found",
            "the flag \"off\" is off for this user",
        ),
        (
            "wrong",
            400,
            "model",
            "invalid_experiment",
            "the variable `model` of the variation `a` of the flag `wrong` is a number",
        ),
        (
            "bad",
            400,
            "temperature",
            "invalid_parameters",
            "(written by the variation `a` of the flag `bad`)",
        ),
        (
            "",
            400,
            "model",
            "invalid_parameters",
            "accepted is `@flag/KEY`",
        ),
    ] {
        refused(
            &gateway.chat(asked(flag, json!({"user": "ada"}))),
            status,
            param,
            code,
            said,
        );
    }
    gateway.change(async |store| {
        let owner = weirgate::store::PromptOwner {
            organization: "acme",
            project: None,
        };
        store
            .by(&PROGRAM)
            .remove_prompt(owner, "hi", None)
            .await
            .unwrap();
    });
    let answer = gateway.chat(asked("models", json!({"user": "ada"})));
    refused(
        &answer,
        404,
        "model",
        "prompt_not_found",
        "(named by the variation `a` of the flag `models`)",
    );
    let vectors =
        Ask::post("/v1/embeddings", r#"{"model":"@flag/models","input":"a"}"#).key(&gateway.key);
    refused(
        &ask(gateway.address(), &vectors),
        400,
        "model",
        "invalid_parameters",
        "only chats",
    );
    gateway.experiment_with(Some("unknown"));
    refused(
        &gateway.chat(asked("models", json!({}))),
        404,
        "model",
        "flag_not_found",
        "no project has the SDK key",
    );
    gateway.experiment_with(None);
    refused(
        &gateway.chat(asked("models", json!({}))),
        404,
        "model",
        "flag_not_found",
        "the project has no experiments",
    );
    assert!(first.requests().is_empty());
}

#[test]
fn the_fallback_of_a_variation_stays_inside_its_model_and_the_rules_of_a_key_hold() {
    let broken = Upstream::always(Reply::json(500, r#"{"error":{"message":"no"}}"#));
    let (second, events) = (Upstream::always(reply()), no_events());
    let (gateway, _folder) = gateway(&broken, &second, &events);
    let answer = gateway.chat(asked("models", json!({"user": "ada"})));
    let metadata = answer.json()["metadata"].clone();
    assert_eq!(metadata["used_model"], "second/chat", "{}", answer.text());
    assert_eq!(metadata["experiment"]["variation"], "a");
    // A variable that no prompt of the request has is left out.
    assert_eq!(
        gateway.chat(asked("odd", json!({"user": "ada"}))).status(),
        200
    );
    // The model of this variation has one provider.
    assert_eq!(
        gateway
            .chat(asked("models", json!({"user": "bob"})))
            .status(),
        502
    );
    let terms: TermsFile = serde_json::from_str(r#"{"deny_models":["chat"]}"#).unwrap();
    let key = gateway.key_with(&serde_json::to_string(&terms).unwrap());
    let request = Ask::post(
        "/v1/chat/completions",
        asked("models", json!({"user": "ada"})),
    )
    .key(&key);
    assert_eq!(ask(gateway.address(), &request).status(), 403);
}
