//! The calls in memory: those that run, those that have ended, and what is kept of them.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use weirgate::telemetry::calls::{CallFilter, KeptCall, RecentCalls, Viewer};

use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply, stream};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::until;
use crate::support::upstream::Upstream;

fn calls(gateway: &Gateway) -> Arc<RecentCalls> {
    Arc::clone(&gateway.running.app.proxy.calls)
}

fn follow(gateway: &Gateway) -> Viewer {
    let calls = calls(gateway);
    calls.follow(calls.ended()).unwrap()
}

/// All kept calls, newest first, once there are so many. A call is kept after its answer.
fn kept(gateway: &Gateway, count: usize) -> Vec<KeptCall> {
    let calls = calls(gateway);
    let all = || calls.find(&CallFilter::default(), None, usize::MAX);
    until("the calls are kept", || all().len() >= count);
    let all = all();
    assert_eq!(all.len(), count);
    all
}

#[test]
fn a_call_that_fell_back_is_kept_with_both_attempts_and_their_times() {
    let (first, second) = (
        Upstream::always(Reply::json(503, "{}")),
        Upstream::always(reply()),
    );
    let gateway = Gateway::between(&first.url(), &second.url());
    let request = gateway
        .chat_ask(PLAIN)
        .header("x-request-id", "fell-back")
        .header("x-claude-code-session-id", "s1")
        .header("user-agent", "<script>alert(1)</script>");
    assert_eq!(ask(gateway.address(), &request).status(), 200);
    let call = kept(&gateway, 1).remove(0);
    assert_eq!(
        (&*call.request_id, call.status, &*call.outcome),
        ("fell-back", 200, "ok")
    );
    assert_eq!((&*call.organization, &*call.key_label), ("acme", "test"));
    assert_eq!(
        (&*call.model, &*call.provider, &*call.session_id),
        ("chat", "second", "s1")
    );
    assert_eq!(call.user_agent, "<script>alert(1)</script>");
    let [one, two] = &call.attempts[..] else {
        panic!("{}", call.line)
    };
    assert_eq!(
        (&*one.provider, one.status_code, &*one.cause),
        ("first", 503, "status 503")
    );
    assert!(two.succeeded);
    let times = |it: &weirgate::telemetry::calls::KeptAttempt| {
        [it.begun_ms, it.answered_ms, it.ended_ms].map(Option::unwrap)
    };
    let ordered = [times(one), times(two), [call.duration_ms; 3]].concat();
    assert!(ordered.is_sorted(), "{ordered:?}");
    let usage = call.usage.as_ref().unwrap();
    let total = usage.cost_details.get("total_cost").unwrap();
    assert_eq!(
        (
            Some(*total),
            usage.prompt_tokens_details["cached_tokens"].as_u64()
        ),
        (call.cost, Some(400))
    );
}

/// What is beside the line goes to nobody else.
#[test]
fn the_line_of_the_log_is_the_same_but_for_what_is_kept_beside_it() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let request = gateway.chat_ask(PLAIN).header("x-request-id", "same");
    ask(gateway.address(), &request);
    let logged = gateway.log_line("same");
    let mut line: Value = serde_json::from_str(&kept(&gateway, 1)[0].line).unwrap();
    let members = line.as_object_mut().unwrap();
    for beside in ["key_label", "usage"] {
        assert!(
            logged.get(beside).is_none() && members.remove(beside).is_some(),
            "{beside}"
        );
    }
    members.remove("quota");
    assert_eq!(line, logged);
}

#[test]
fn calls_are_kept_without_the_log_also_refused_ones_and_no_other_requests() {
    let first = Upstream::always(reply());
    let gateway = Gateway::with(&first.url(), &first.url(), "[log]\naccess = false\n");
    let address = gateway.address();
    assert_eq!(
        ask(address, &Ask::get("/v1/models").key(&gateway.key)).status(),
        200
    );
    assert_eq!(gateway.chat("{").status(), 400);
    assert_eq!(
        ask(address, &Ask::post("/v1/chat/completions", PLAIN)).status(),
        401
    );
    let secret = "what was asked";
    assert_eq!(gateway.chat(PLAIN.replace("Hi", secret)).status(), 200);
    let all = kept(&gateway, 3);
    let outcomes: Vec<_> = all
        .iter()
        .map(|call| (call.status, &*call.outcome))
        .collect();
    assert_eq!(outcomes, [(200, "ok"), (401, "refused"), (400, "refused")]);
    assert!(all[1].error.is_some() && all[1].organization.is_empty());
    for call in &all {
        assert!(
            !call.line.contains(secret) && !call.line.contains("hello"),
            "{}",
            call.line
        );
        assert!(!call.line.contains(&gateway.key));
    }
}

#[test]
fn a_stream_is_listed_while_it_runs_and_kept_once_it_has_ended() {
    let gate = Gate::default();
    let begun = Reply::stream().event(&chunk(json!({"content": "hel"}), None));
    let end = chunk(json!({"content": "lo"}), Some("stop"));
    let first = Upstream::always(begun.wait(&gate).event(&end).event("[DONE]").end());
    let gateway = Gateway::between(&first.url(), &first.url());
    let mut viewer = follow(&gateway);
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM).header("x-request-id", "runs"));
    client.head();
    client.chunk().unwrap();
    let running = calls(&gateway).running();
    let [call] = &running[..] else {
        panic!("{running:?}")
    };
    assert_eq!(
        (call.request_id.to_str().unwrap(), call.route),
        ("runs", "chat_completions")
    );
    assert_eq!(call.caller.as_ref().unwrap().organization.as_ref(), "acme");
    assert_eq!(
        (call.model.as_deref(), call.provider.as_deref()),
        (Some("chat"), Some("first"))
    );
    assert_eq!((call.attempts, call.has_content), (1, true));
    let all = CallFilter::default();
    assert!(
        viewer
            .ask(&all, 9, Instant::now())
            .unwrap()
            .calls
            .is_empty()
    );
    gate.open();
    while client.chunk().is_some() {}
    kept(&gateway, 1);
    let ended = viewer.ask(&all, 9, Instant::now()).unwrap();
    assert_eq!(ended.calls[0].request_id, "runs");
    assert!(ended.calls[0].first_event_ms.is_some());
    assert!(calls(&gateway).running().is_empty());
}

#[test]
fn calls_survive_a_reload_which_changes_how_many_there_are() {
    let first = Upstream::always(reply());
    let gateway = Gateway::with(&first.url(), &first.url(), "[console]\nkeep_calls = 3\n");
    for id in ["1", "2", "3", "4"] {
        ask(
            gateway.address(),
            &gateway.chat_ask(PLAIN).header("x-request-id", id),
        );
        let seen = calls(&gateway);
        until("it is kept", || {
            seen.find(&CallFilter::default(), None, 1)
                .iter()
                .any(|it| it.request_id == id)
        });
    }
    let ids = |count| {
        let all = kept(&gateway, count);
        all.into_iter()
            .map(|call| call.request_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(3), ["4", "3", "2"]);
    let of = |keep: usize| {
        gateway
            .toml()
            .replace("keep_calls = 3", &format!("keep_calls = {keep}"))
    };
    gateway.reload(&of(2)).unwrap();
    assert_eq!(ids(2), ["4", "3"]);
    gateway.reload(&of(0)).unwrap();
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    assert!(!calls(&gateway).is_on() && ids(0).is_empty());
    gateway.reload(&of(2)).unwrap();
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    kept(&gateway, 1);
}

/// The client sees no difference, also where its call cannot be planned.
#[test]
fn why_providers_were_chosen_is_noted_while_somebody_follows_and_the_client_is_not_told() {
    let first = Upstream::answering(|request| match request.json()["stream"] == true {
        true => stream(),
        false => reply(),
    });
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.chat(PLAIN);
    assert!(kept(&gateway, 1)[0].plan.is_none());
    let viewer = follow(&gateway);
    let answers = [
        gateway.chat(PLAIN),
        gateway.chat(STREAM),
        gateway.chat(PLAIN.replace("\"chat\"", "\"none\"")),
        gateway.chat(
            PLAIN
                .replace("\"chat\"", "\"first/chat\"")
                .replace("{\"model", "{\"routing\":\"price\",\"model"),
        ),
    ];
    for answer in &answers {
        assert!(
            !answer.text().contains("\"route\"") && !answer.text().contains("left_out"),
            "{}",
            answer.text()
        );
    }
    let all = kept(&gateway, 5);
    let planned = all.iter().filter(|call| call.plan.is_some()).count();
    assert_eq!(planned, 2);
    let plan = all.iter().find_map(|call| call.plan.as_ref()).unwrap();
    let plan: Value = serde_json::from_str(plan.get()).unwrap();
    assert_eq!(plan["candidates"].as_array().unwrap().len(), 2, "{plan}");
    drop(viewer);
    gateway.chat(PLAIN);
    assert!(kept(&gateway, 6)[0].plan.is_none());
}

/// A line that is longer than there is room for leaves the members of the core.
#[test]
fn a_call_with_a_long_line_is_kept_in_short() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let long = format!("first/{}", "x".repeat(20_000));
    gateway.chat(PLAIN.replace("chat", &long));
    let call = kept(&gateway, 1).remove(0);
    assert!(call.line.len() <= weirgate::telemetry::calls::MAX_LINE_BYTES);
    assert_eq!(
        (&*call.organization, call.route.is_empty()),
        ("acme", false)
    );
}
