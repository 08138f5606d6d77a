//! The console in Chromium. `make test-browser` installs it and runs these tests, which the rest of the suite leaves out.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use filters::audit::PROGRAM;
use filters::money::Usd;
use serde_json::{Value, json};
use weirgate::store::NewKey;

use super::Browser;
use super::live::ask_as;
use super::prompts::put_prompt;
use crate::models::endpoints::prompt::greeting;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::flags::post;
use crate::support::process::{MODELS, Process, serve_in};
use crate::support::program_path;
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

/// Pages that the navigation does not name.
const PATHS: [&str; 14] = [
    "/console?period=month&by=organization",
    "/console/money?period=day&by=key",
    "/console/money/organization?name=acme",
    "/console/live?status=5xx",
    "/console/calls",
    "/console/calls/looked-at",
    "/console/sessions/s1?organization=acme",
    "/console/audit?action=key",
    "/console/models/chat",
    "/console/models/route",
    "/console/flags/b7ad567477c83756aab9a542b2be04f7",
    "/console/flags/b7ad567477c83756aab9a542b2be04f7?user=ada&attributes=%7B%22country%22%3A%22DE%22%7D",
    "/console/flags/b7ad567477c83756aab9a542b2be04f7?flag=checkout&user=ada",
    "/console/nothing",
];
/// A key of a project with the built-in datafile, whose digest is in the paths above.
const SDK_KEY: &str = "sandbox";
/// Looks at the views.
const LOOKS: [&str; 3] = [
    "every_view_pleases_in_both_themes_and_widths",
    "every_view_is_reached_by_keyboard",
    "every_view_answers_in_time",
];

/// Runs checks of the script, which has to pass them all.
fn run(checks: &[&str], address: &str, env: &[(&str, &str)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/browser");
    let output = Command::new("node")
        .current_dir(&folder)
        .arg(root.join("tests/browser/console.mjs"))
        .args(checks)
        .env("CONSOLE", address)
        .env("SLOWNESS", "10")
        .env("CHROMIUM", "/usr/bin/chromium")
        .env("SCREENSHOTS", &folder)
        .envs(env.iter().copied())
        .output()
        .unwrap_or_else(|error| panic!("running console.mjs in {}: {error}", folder.display()));
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    // A script that ran nothing would succeed, too.
    let passed = out.lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!(passed, checks.len(), "{out}");
}

/// The message that a provider does not answer.
const BREAK: &str = "break";

fn breaks(request: &Received) -> Reply {
    match String::from_utf8_lossy(&request.body).contains(BREAK) {
        true => Reply::json(503, "{}").before(Duration::from_millis(20)),
        false => reply(),
    }
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_person_looks_at_every_view() {
    let (first, second) = (Upstream::answering(breaks), Upstream::always(reply()));
    let url = second.url();
    let products = format!(
        "[graph]\nupstream = \"{url}\"\nwindow_s = 3600\n[[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\n\
         limits = {{ \"POST /content/v2\" = 2 }}\n[decisions]\nevent_url = \"{url}/events\"\n\
         [[decisions.projects]]\nsdk_key = \"{SDK_KEY}\"\ndatafile = \"sandbox\"\n\
         [admin]\nwrite = true\n"
    );
    let gateway = Gateway::with(&first.url(), &url, &products);
    for _ in 0..4 {
        assert_eq!(gateway.chat(PLAIN).status(), 200);
    }
    let named = [
        ("x-session-id", "s1"),
        ("x-claude-code-agent-id", "reviewer"),
    ];
    let breaking = PLAIN.replace("Hi", BREAK);
    let answer = ask_as(&gateway, "looked-at", &breaking, &named);
    assert_eq!(answer.status(), 200);
    assert_eq!(gateway.chat("{").status(), 400);
    for status in [200, 200, 429] {
        let query = Ask::post("/content/v2?auth=k1", "{}");
        assert_eq!(ask(gateway.address(), &query).status(), status);
    }
    let user = json!({"userId": "ada", "userAttributes": {"country": "DE"}});
    assert_eq!(post(&gateway, "/v1/decide", &user).status(), 200);
    // The first visit makes the session of this machine.
    Browser::new(&gateway).page("/console");
    let address = format!("http://{}/console", gateway.admin());
    let (own, forms) = of_accounts(&gateway);
    let paths = [&PATHS.map(str::to_owned)[..], &own].concat();
    let forms: Vec<String> = forms.iter().map(Value::to_string).collect();
    let env = [("PATHS", &*paths.join("\n")), ("FORMS", &*forms.join("\n"))];
    run(&LOOKS, &address, &env);
}

/// Makes accounts with prompts. Returns the pages that have ids in their addresses, and forms that are shown again: most of them
/// because they are refused.
fn of_accounts(gateway: &Gateway) -> (Vec<String>, Vec<Value>) {
    let mut first = greeting();
    first["messages"][0]["content"] = json!("Answer {{ name }} in a {{tone}} tone.\nBe brief.");
    let mut second = first.clone();
    second["model"] = json!("auto");
    second["messages"][0]["content"] = json!("Answer {{ name }}.\nBe brief.\nSay so.");
    let prompt = put_prompt(gateway, "support/greeting", &[first, second]);
    let key = gateway.change(async |store| {
        let editor = store.by(&PROGRAM);
        editor.add_member("acme", "ada", 0).await.unwrap();
        let budget = Usd::parse("250").unwrap();
        let limited = editor.set_budget("acme", "ada", Some(budget));
        limited.await.unwrap();
        let terms =
            json!({"limit": "5", "allow_models": ["chat", "typo"], "allow_ips": ["10.0.0.0/8"]});
        let new = NewKey {
            organization: "acme",
            label: "with rules",
            member: Some("ada"),
            terms: &serde_json::from_value(terms).unwrap(),
            ..NewKey::default()
        };
        editor.create_key(&new, 0).await.unwrap().1.id
    });
    let of_key = format!("/console/money/key?id={key}");
    let of_member = "/console/money/member?name=acme&member=ada";
    let of_organization = "/console/money/organization?name=acme";
    let of_prompt = format!("/console/prompts/prompt?id={prompt}");
    let rendering = format!("/console/prompts/render?id={prompt}&version=1");
    let form = |path: &str, action: &str, fields: Value, status: u16| json!({"path": path, "action": action, "fields": fields, "status": status});
    let forms = vec![
        form(
            &of_key,
            "/console/money/key/update",
            json!({"limit": "much", "deny_ips": "here"}),
            422,
        ),
        form(&of_key, "/console/money/key/revoke", json!({}), 422),
        form(
            of_organization,
            "/console/money/organization/create-key",
            json!({"expires": "tomorrow"}),
            422,
        ),
        form(
            of_organization,
            "/console/money/organization/create-key",
            json!({"deny_models": "typo"}),
            200,
        ),
        form(
            of_organization,
            "/console/money/organization/regions",
            json!({"regions": "!"}),
            422,
        ),
        form(
            of_member,
            "/console/money/member/budget",
            json!({"budget": "-1"}),
            422,
        ),
        form(of_member, "/console/money/member/delete", json!({}), 422),
        form(
            &of_prompt,
            "/console/prompts/prompt/label",
            json!({"label": "latest"}),
            422,
        ),
        form(
            &rendering,
            "/console/prompts/render",
            json!({"v-times": "many"}),
            400,
        ),
        form(
            &rendering,
            "/console/prompts/render",
            json!({"v-name": "Ada", "v-tone": "calm", "v-free": "7"}),
            200,
        ),
    ];
    let paths = vec![
        "/console/prompts?search=support".to_owned(),
        format!("/console/prompts/difference?id={prompt}&from=1&to=2"),
        format!("/console/prompts/difference?id={prompt}&from=1&to=1"),
        of_member.to_owned(),
        of_key,
        of_prompt,
        rendering,
    ];
    (paths, forms)
}

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn an_open_page_outlives_the_process() {
    // The next process has to be found at the same address.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = free.local_addr().unwrap();
    drop(free);
    let with_address = |folder: &Path| {
        let path = folder.join("weirgate.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once("[admin]\n").unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        let text = format!("{before}[admin]\naddress = \"{admin}\"\n{rest}");
        std::fs::write(path, text).unwrap();
        serve_in(folder)
    };
    let process = Process::start_by(with_address, "", MODELS);
    let server = json!({
        "pid": process.child.id(),
        "program": program_path().to_string_lossy(),
        "args": ["serve", "-c", "weirgate.toml"],
        "cwd": process.folder.path(),
        "path": "/console/live",
    });
    let address = format!("http://{admin}/console");
    let check = ["an_open_page_outlives_the_process"];
    run(&check, &address, &[("SERVER", &server.to_string())]);
}
