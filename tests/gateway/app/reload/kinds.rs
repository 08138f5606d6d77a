//! Each kind of setting that a reload puts in force, under load and beside a stream that runs all the time.

use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::app::Reloaded;

use super::{Load, rest_of};
use crate::models::fronts::chat_completions::{chunk, reply};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::{Answer, Client, ask};
use crate::support::flags::call;
use crate::support::script::{Gate, Reply};
use crate::support::upstream::Upstream;

const CHAT: &str = r#"{"model":"chat","messages":[{"role":"user","content":"Hi"}]}"#;
const STREAM: &str =
    r#"{"model":"only-first","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;

/// The configuration of these tests, with replacements of its parts.
struct Settings {
    toml: String,
}

impl Settings {
    fn new(first: &Upstream, service: &Upstream) -> Settings {
        let toml = format!(
            "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n\
             [limits.requests_per_minute]\nchat = 100000\n\
             [routing]\nauto = [\"chat\"]\nstream_total_timeout_s = 900\n\
             [decisions]\n[[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"sandbox\"\n\
             [graph]\nupstream = \"{}\"\n[[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\nlimits = {{ \"POST /content/v2\" = 100000 }}\n\
             [log]\nlevel = \"warn\"\n",
            first.url(),
            service.url()
        );
        Settings { toml }
    }

    /// Replaces a part, and puts the whole in force.
    fn change(&mut self, gateway: &Gateway, from: &str, to: &str) {
        assert!(self.toml.contains(from), "{from}");
        self.toml = self.toml.replacen(from, to, 1);
        let reloaded = gateway.reload(&self.toml);
        assert!(
            matches!(&reloaded, Ok(Reloaded::Changed(changes)) if !changes.is_empty()),
            "{from} → {to}: {reloaded:?}"
        );
    }
}

fn service() -> Upstream {
    Upstream::always(Reply::json(200, r#"{"data":{"a":1}}"#))
}

fn query(key: &str) -> Ask {
    Ask::post(&format!("/content/v2?auth={key}"), r#"{"query":"{ a }"}"#)
}

fn decide(sdk_key: &str) -> Ask {
    let body = json!({"userId": "u", "userAttributes": {}});
    let ask = call("/v1/decide?keys=dark_mode", &body);
    ask.without("X-Platform-SDK-Key")
        .header("X-Platform-SDK-Key", sdk_key)
}

impl Gateway {
    fn get(&self, path: &str) -> Answer {
        ask(self.address(), &Ask::get(path).key(&self.key))
    }

    /// Replaces the catalogue, and puts it in force.
    fn reload_catalogue(&self, settings: &Settings, models: &str) {
        std::fs::write(self.folder.path().join("models.toml"), models).unwrap();
        let reloaded = self.reload(&settings.toml);
        assert!(matches!(reloaded, Ok(Reloaded::Changed(_))), "{reloaded:?}");
    }
}

/// A gateway under load, whose first provider streams until the gate opens.
struct Running {
    gateway: Gateway,
    settings: Settings,
    load: Load,
    stream: Client,
    gate: Gate,
    _upstreams: [Upstream; 2],
}

impl Running {
    fn start() -> Running {
        let gate = Gate::default();
        let held = gate.clone();
        let first =
            Upstream::answering(
                move |request| match request.json()["stream"] == json!(true) {
                    true => Reply::stream()
                        .event(&chunk(json!({"content": "begun"}), None))
                        .wait(&held)
                        .event(&chunk(json!({"content": " and ended"}), Some("stop")))
                        .event("[DONE]")
                        .end(),
                    false => reply(),
                },
            );
        let service = service();
        let settings = Settings::new(&first, &service);
        let env = [("RELOADED_KEY", "key-of-the-reload")];
        let gateway = Gateway::start_with_env(&settings.toml, MODELS, &env);
        let mut stream = Client::connect(gateway.address());
        stream.send(&gateway.chat_ask(STREAM));
        assert_eq!(stream.head().status, 200);
        stream.chunk().unwrap();
        let asks = [gateway.chat_ask(CHAT), decide("sandbox"), query("k1")];
        let load = Load::start(gateway.address(), asks);
        Running {
            gateway,
            settings,
            load,
            stream,
            gate,
            _upstreams: [first, service],
        }
    }

    /// Ends the stream and the load: nothing was cut, and nothing was refused.
    fn end(mut self) {
        self.gate.open();
        let rest = rest_of(&mut self.stream);
        assert!(
            rest.contains(" and ended") && rest.contains("[DONE]"),
            "{rest}"
        );
        let answers = self.load.end();
        assert!(answers.iter().all(|count| *count > 0), "{answers:?}");
    }
}

fn content(answer: &Answer) -> Value {
    answer.json()["choices"][0]["message"]["content"].clone()
}

#[test]
fn providers_keys_models_prices_and_routing_are_reloaded_under_load() {
    let mut running = Running::start();
    let (gateway, settings) = (&running.gateway, &mut running.settings);
    // Providers: calls go to the new address.
    let other = Upstream::always(reply());
    let old = format!("base_url = \"{}/v1\"", running._upstreams[0].url());
    let new = format!("base_url = \"{}/v1\"", other.url());
    settings.change(gateway, &old, &new);
    assert_eq!(gateway.chat(CHAT).status(), 200);
    let asked = other.requests().len();
    assert!(asked > 0);
    // Keys: the next call has the new one.
    settings.change(gateway, "keys = []", "keys = [{ env = \"RELOADED_KEY\" }]");
    assert_eq!(gateway.chat(CHAT).status(), 200);
    let last = other.requests().pop().unwrap();
    assert_eq!(
        last.header("authorization"),
        Some("Bearer key-of-the-reload")
    );
    // Models: the new one is listed and answers.
    let more = "[[models]]\nid = \"brought\"\n[[models.providers]]\nprovider = \"first\"\nname = \"b\"\ninput_price = \"1\"\noutput_price = \"1\"\n";
    gateway.reload_catalogue(settings, &format!("{MODELS}{more}"));
    assert!(gateway.get("/v1/models").text().contains("\"brought\""));
    let brought = gateway.chat(CHAT.replace("\"chat\"", "\"brought\""));
    assert_eq!(brought.status(), 200, "{}", brought.text());
    // Prices: the same usage costs what the new price says.
    let cost = |answer: &Answer| answer.json()["usage"]["cost"].as_f64().unwrap();
    let before = cost(&gateway.chat(CHAT));
    let doubled = MODELS.replace("input_price = \"2.5\"", "input_price = \"5\"");
    let doubled = doubled.replace(
        "cached_input_price = \"1.25\"",
        "cached_input_price = \"2.5\"",
    );
    let doubled = doubled.replace("output_price = \"10\"", "output_price = \"20\"");
    gateway.reload_catalogue(settings, &doubled);
    let after = cost(&gateway.chat(CHAT));
    assert!(
        (after - 2.0 * before).abs() < 1e-9 && before > 0.0,
        "{before} {after}"
    );
    // Routing: `auto` means another model.
    let auto = CHAT.replace("\"chat\"", "\"auto\"");
    let used = |answer: &Answer| answer.json()["metadata"]["used_model"].clone();
    let before = used(&gateway.chat(&auto));
    settings.change(gateway, "auto = [\"chat\"]", "auto = [\"only-first\"]");
    let after = used(&gateway.chat(&auto));
    assert_ne!(before, after);
    assert!(after.as_str().unwrap().contains("only"), "{after}");
    running.end();
}

#[test]
fn limits_tenants_datafiles_plans_prompts_log_and_mcp_are_reloaded_under_load() {
    let mut running = Running::start();
    let (gateway, settings) = (&running.gateway, &mut running.settings);
    let header = |answer: &Answer, name: &str| -> u64 {
        let value = answer.header(name).unwrap_or_else(|| panic!("{name}"));
        value.split(',').next().unwrap().trim().parse().unwrap()
    };
    // Limits: the new one is in force, and what was counted stays counted.
    let used = gateway.chat(CHAT);
    let counted = 100_000 - header(&used, "ratelimit-remaining");
    settings.change(gateway, "chat = 100000", "chat = 200000");
    let answer = gateway.chat(CHAT);
    let left = header(&answer, "ratelimit-remaining");
    assert_eq!(header(&answer, "ratelimit-limit"), 200_000);
    assert!(left < 200_000 - counted, "{counted} {left}");
    // Tenants: the new one is admitted, and its window goes on over the next reload.
    let tenants = "[[graph.tenants]]\nid = \"t2\"\nsingle_keys = [\"k2\"]\n\
                   limits = { \"POST /content/v2\" = 2 }\n[log]";
    settings.change(gateway, "[log]", tenants);
    let status = || ask(gateway.address(), &query("k2")).status();
    let goes_on = |more: u32| {
        let answers = [status(), status()];
        let from = format!("stream_total_timeout_s = {}", 900 + more - 1);
        settings.change(
            gateway,
            &from,
            &format!("stream_total_timeout_s = {}", 900 + more),
        );
        // A window may have ended in between.
        answers == [200, 200] && status() == 429
    };
    assert!((1..=5).any(goes_on), "the window began anew");
    // Datafiles: the new project decides.
    assert_ne!(ask(gateway.address(), &decide("brought")).status(), 200);
    let project = "[[decisions.projects]]\nsdk_key = \"brought\"\ndatafile = \"sandbox\"\n[graph]";
    settings.change(gateway, "[graph]", project);
    assert_eq!(ask(gateway.address(), &decide("brought")).status(), 200);
    // Plans: the allowance of the organization's plan is the new one.
    let plan = "[plans.lite]\ncycle_usd = 10\nweekly_premium_pct = 20\ndaily_pct = 50\n[log]";
    settings.change(gateway, "[log]", plan);
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .set_plan("acme", filters::accounts::Plan::Lite, 0)
            .await
            .unwrap()
    });
    let limit =
        |gateway: &Gateway| gateway.get("/v1/key").json()["data"]["devPlanCreditsLimit"].clone();
    assert_eq!(limit(gateway), json!("10"));
    settings.change(gateway, "cycle_usd = 10", "cycle_usd = 20");
    assert_eq!(limit(gateway), json!("20"));
    // Prompts: they are off.
    settings.change(gateway, "[log]", "[prompts]\nenabled = false\n[log]");
    let refused = gateway.chat(r#"{"model":"@prompt/hi"}"#);
    assert!(
        refused.text().contains("prompts.enabled"),
        "{}",
        refused.text()
    );
    // The log: its level.
    settings.change(gateway, "level = \"warn\"", "level = \"info\"");
    assert_eq!(log::max_level(), log::LevelFilter::Info);
    // MCP: it is off.
    let info = Ask::get("/mcp").key(&gateway.key);
    assert_ne!(ask(gateway.address(), &info).status(), 404);
    settings.change(gateway, "[log]", "[mcp]\nenabled = false\n[log]");
    // The path is no longer described, so the answer is not compared with a description.
    let mut client = Client::connect(gateway.address());
    client.send(&info);
    assert_eq!(client.answer().status(), 404);
    running.end();
}

#[test]
fn a_bad_configuration_changes_nothing_and_names_its_problems() {
    let running = Running::start();
    let (gateway, settings) = (&running.gateway, &running.settings);
    let bad = settings
        .toml
        .replace("auto = [\"chat\"]", "auot = [\"chat\"]\nattempts = 0");
    let refused = gateway.reload(&bad).unwrap_err();
    let said = refused.problems.join("\n");
    for part in ["routing.auot", "routing.attempts", "weirgate.toml:"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(gateway.chat(CHAT).status(), 200);
    // A setting that needs a restart is named, with what to do, and nothing else of the file is put in force.
    let restart = settings
        .toml
        .replace("[log]", "[server]\nthreads = 7\n[log]");
    let restart = restart.replace("chat = 100000", "chat = 5");
    let refused = gateway.reload(&restart).unwrap_err();
    let said = refused.problems.join("\n");
    assert!(
        said.contains("server.threads") && said.contains("weirgate upgrade"),
        "{said}"
    );
    let answer = gateway.chat(CHAT);
    assert_eq!(answer.header("ratelimit-limit"), Some("100000"));
    assert_eq!(content(&answer), content(&gateway.chat(CHAT)));
    running.end();
}

#[test]
fn the_same_configuration_again_changes_nothing() {
    let running = Running::start();
    let toml = format!("# A comment.\n{}", running.settings.toml);
    assert_eq!(running.gateway.reload(&toml), Ok(Reloaded::Unchanged));
    running.end();
}
