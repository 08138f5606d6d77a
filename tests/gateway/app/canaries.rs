//! Canaries in every place that holds a secret: none of them may leave.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use argon2::password_hash::{PasswordHasher, SaltString};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::json;

use crate::models::exchange::secrets::quoted;
use crate::models::fronts::chat_completions::{chunk, reply, stream};
use crate::support::ask::Ask;
use crate::support::client::{Client, ask};
use crate::support::loopback::own_address;
use crate::support::oauth;
use crate::support::script::Reply;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::{ClosedPort, Upstream};

/// A canary: what it stands for, and its text.
struct Canary(&'static str, String);

/// The server of the canary test: its folder holds the configuration and nothing secret.
struct Cage {
    folder: tempfile::TempDir,
    env: Vec<(&'static str, String)>,
}

impl Cage {
    fn run(&self, arguments: &[&str], stdin: &str) -> String {
        self.run_with(&[], arguments, stdin)
    }

    /// The same with more variables in its environment.
    fn run_with(&self, env: &[(&str, String)], arguments: &[&str], stdin: &str) -> String {
        let mut child = crate::support::program()
            .args(arguments)
            .args(["-c", "weirgate.toml"])
            .current_dir(self.folder.path())
            .envs(self.env.iter().map(|(name, value)| (*name, value)))
            .envs(env.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(stdin.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&output.stdout) + &text(&output.stderr)
    }

    fn env(&self) -> Vec<(&str, &str)> {
        self.env
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect()
    }

    /// All files below its folder.
    fn files(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.folder.path().to_owned()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push(path);
                }
            }
        }
        files
    }
}

/// Provider keys, in the order of the providers.
const PROVIDER_KEYS: [(&str, &str); 3] = [
    ("FIRST_KEY", "sh0rt-k1"),
    (
        "SECOND_KEY",
        "l0ng-provider-key.canary.0123456789abcdefghijklmnop",
    ),
    ("THIRD_KEY", "third, with space"),
];
/// A credential that a caller has of a vendor itself.
const OWN_KEY: &str = "sk-proj-0wn-canary-of-a-caller-0123456789";
const BYOK_KEY: &str = "0wn-byok/canary+7";
const PEPPER: &str = "pepper-canary-pepper-canary-0123";
const ADMIN_TOKEN: &str = "admin-token-canary-0123456789abcdef";
const TOKEN_KEY: &str = "token-key-canary-0123456789abcdef";
const APP_SECRET: &str = "app-secret-canary-0123456789";
const CLIENT_SECRET: &str = "client-secret-canary";
const HOOK_SECRET: &str = "hook-secret-canary";
const REDIS_PASSWORD: &str = "redis-password-canary";
const POSTGRES_PASSWORD: &str = "postgres-password-canary";
const CALLBACK_SECRET: &str = "callback-secret-canary";
const PROMPT: &str = "prompt-canary-of-a-user";
const PUBLIC_KEY: &str = "query-key-canary";

/// A provider that quotes the key and the address of the request, in a way that the prompt chooses.
fn parrot() -> Upstream {
    Upstream::answering(|request| {
        if request.path.starts_with("/v1/videos") {
            return Reply::json(
                200,
                json!({"id": "up_1", "status": "completed"}).to_string(),
            );
        }
        let (key, host) = quoted(request);
        let how = request.json()["seed"].as_u64().unwrap_or_default();
        let said = format!("bad key {key} for {host}: \"{key}\", ({key})");
        let error =
            json!({"error": {"message": said, "code": key, "param": key, "type": key}}).to_string();
        match how {
            0 => Reply::json(400, error),
            1 => Reply::json(401, error),
            2 => Reply::json(500, error),
            3 => Reply::json(200, error),
            4 => Reply::stream().event(&error).end(),
            5 => Reply::stream()
                .event(&chunk(json!({"role": "assistant", "content": "a"}), None))
                .event(&error)
                .end(),
            6 => Reply::whole(200, &[("x-key", &key)], "no JSON"),
            7 => Reply::raw(format!("HTTP/1.1 {key}\r\n\r\n")),
            8 => Reply::json(422, json!({"detail": said}).to_string()),
            9 => stream(),
            _ => reply(),
        }
    })
}

fn cage(parrot: &Upstream, service: &Upstream, redis: &str) -> Cage {
    let folder = tempfile::tempdir().unwrap();
    let salt = SaltString::from_b64("c2FsdHNhbHQ").unwrap();
    let hash = argon2::Argon2::default()
        .hash_password(CLIENT_SECRET.as_bytes(), &salt)
        .unwrap();
    let listener = format!("{}:0", own_address());
    let mut toml = format!(
        "[listen]\naddress = \"{listener}\"\n[admin]\naddress = \"{listener}\"\ntoken = {{ env = \"ADMIN_TOKEN\" }}\n\
         [log]\nlevel = \"trace\"\n[store]\nurl = \"sqlite:weirgate.db\"\nsecret = {{ env = \"PEPPER\" }}\n\
         [shared]\nredis = \"redis://:{REDIS_PASSWORD}@{redis}/\"\n[models]\nfile = \"models.toml\"\n"
    );
    for (at, (name, _)) in PROVIDER_KEYS.iter().enumerate() {
        toml += &format!(
            "[providers.p{at}]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = [{{ env = \"{name}\" }}]\n",
            parrot.url()
        );
        if at == 0 {
            toml += "vendor = \"openai\"\n";
        }
    }
    toml += &format!(
        "[decisions]\ntoken_keys = [{{ env = \"TOKEN_KEY\" }}]\n\
         [[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"flags.json\"\n\
         [[decisions.clients]]\nid = \"shop\"\nsecret_hash = \"{hash}\"\nsdk_keys = [\"sandbox\"]\n\
         [[decisions.webhooks]]\nproject_id = 77\nsecret = {{ env = \"HOOK\" }}\nsdk_keys = [\"sandbox\"]\n\
         [videos]\ncallback_origins = [\"{}\"]\n[graph]\nupstream = \"{}\"\n[[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"{PUBLIC_KEY}\"]\n\
         app_keys = [{{ key = \"app\", secret = {{ env = \"APP_SECRET\" }} }}]\n",
        service.url(),
        service.url()
    );
    let models: String = (0..PROVIDER_KEYS.len())
        .map(|at| {
            format!(
                "[[models]]\nid = \"m{at}\"\n[[models.providers]]\nprovider = \"p{at}\"\nname = \"m{at}\"\ninput_price = \"1\"\noutput_price = \"1\"\n"
            )
        })
        .collect();
    let film = "[[models]]\nid = \"film\"\ntype = \"video\"\n[[models.providers]]\nprovider = \"p2\"\n\
                name = \"film\"\noutput_second_price = \"0.1\"\n";
    let models = models + film;
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("weirgate.toml"), toml).unwrap();
    std::fs::write(path("models.toml"), models).unwrap();
    std::fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/flags.json"),
        path("flags.json"),
    )
    .unwrap();
    let mut env = vec![
        ("ADMIN_TOKEN", ADMIN_TOKEN.to_owned()),
        ("PEPPER", PEPPER.to_owned()),
        ("TOKEN_KEY", BASE64.encode(TOKEN_KEY)),
        ("HOOK", HOOK_SECRET.to_owned()),
        ("APP_SECRET", APP_SECRET.to_owned()),
    ];
    env.extend(PROVIDER_KEYS.map(|(name, key)| (name, key.to_owned())));
    Cage { folder, env }
}

/// Sends raw bytes and returns what comes back until the end.
fn raw(address: SocketAddr, bytes: &str) -> String {
    let mut client = Client::connect(address);
    client.send_bytes(bytes);
    client.half_close();
    String::from_utf8_lossy(&client.rest().0).into_owned()
}

/// Requests with secrets in every place that may hold one; returns all that comes back.
fn provoke(server: &Server, key: &str, hook: &str) -> String {
    let mut back = String::new();
    let mut send = |address: SocketAddr, request: &Ask| {
        let answer = ask(address, request);
        back += &format!("{} {:?} {}\n", answer.status(), answer.head, answer.text());
    };
    let (public, admin) = (server.address, server.admin);
    for model in ["m0", "m1", "m2"] {
        for seed in 0..11 {
            let body = json!({"model": model, "stream": seed % 2 == 0 && seed != 0, "seed": seed,
                "messages": [{"role": "user", "content": PROMPT}]});
            send(
                public,
                &Ask::post("/v1/chat/completions", body.to_string()).key(key),
            );
        }
    }
    for secret in [json!(CALLBACK_SECRET), json!([CALLBACK_SECRET])] {
        for seconds in [4, 0] {
            let body = json!({"model": "film", "prompt": PROMPT, "seconds": seconds,
                              "callback_url": hook, "callback_secret": secret});
            send(public, &Ask::post("/v1/videos", body.to_string()).key(key));
        }
    }
    send(public, &Ask::get("/v1/videos").key(key));
    let chat = || {
        Ask::post(
            "/v1/chat/completions",
            format!("{{\"model\":\"m0\",\"messages\":[{{\"{PROMPT}\""),
        )
        .key(key)
    };
    send(public, &chat());
    send(public, &Ask::get("/v1/key").key(key));
    send(public, &Ask::get("/v1/models").header("x-api-key", key));
    send(
        public,
        &Ask::get(&format!("/v1/{key}"))
            .header("user-agent", key)
            .header("x-request-id", key),
    );
    send(public, &Ask::get(&format!("/v1/models?key={key}")).key(key));
    send(public, &Ask::get("/v1/models").key(&format!("{key}x")));
    let basic = BASE64.encode(format!("{key}:{CLIENT_SECRET}"));
    send(
        public,
        &Ask::post("/graph", "{}").header("authorization", &format!("Basic {basic}")),
    );
    send(
        public,
        &Ask::post(
            &format!("/content/v2?auth={PUBLIC_KEY}"),
            r#"{"query":"{ a }"}"#,
        ),
    );
    send(
        public,
        &Ask::post(
            &format!("/content/v2?auth={APP_SECRET}"),
            r#"{"query":"{ a }"}"#,
        ),
    );
    let basic = BASE64.encode(format!("app:{APP_SECRET}"));
    send(
        public,
        &Ask::post("/content/v2", r#"{"query":"{ a }"}"#)
            .header("authorization", &format!("Basic {basic}")),
    );
    for secret in [CLIENT_SECRET, "wrong"] {
        let body = json!({"grant_type": "client_credentials", "client_id": "shop", "client_secret": secret});
        let answer = ask(public, &Ask::post("/oauth/token", body.to_string()));
        let token = answer.json()["access_token"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        send(
            public,
            &Ask::post("/v1/decide?keys=dark_mode", r#"{"userId":"u"}"#).key(&token),
        );
    }
    send(
        public,
        &Ask::post("/webhooks/optimizely", "{}").header("x-hub-signature", HOOK_SECRET),
    );
    for path in ["/metrics", "/livez", "/readyz", "/unknown"] {
        send(admin, &Ask::get(path).key(ADMIN_TOKEN));
    }
    send(public, &Ask::get("/"));
    // Heads that Pingora refuses, with keys in front of what is wrong.
    for (address, secret) in [(public, key), (admin, ADMIN_TOKEN), (public, ADMIN_TOKEN)] {
        let head = format!(
            "GET /v1/models?a={secret} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {secret}\r\n"
        );
        for wrong in [
            "bad header\r\n\r\n",
            "a\u{1}b: c\r\n\r\n",
            "Content-Length: 5, 6\r\n\r\nabc",
            "Transfer-Encoding: x\r\n\r\n",
            "Content-Length: -1\r\n\r\n",
        ] {
            back += &raw(address, &format!("{head}{wrong}"));
        }
        back += &raw(
            address,
            &format!("GET /{secret} HTTP/9.9\r\nAuthorization: {secret}\r\n\r\n"),
        );
        back += &raw(
            address,
            &format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{secret}"),
        );
        back += &raw(address, &head);
    }
    back
}

/// Requests that bring the caller's own credential beside the key, where it serves them and where it is refused; returns all that
/// comes back.
fn bring(server: &Server, key: &str) -> String {
    let mut back = String::new();
    let mut send = |request: &Ask| {
        let answer = ask(server.address, request);
        back += &format!("{} {:?} {}\n", answer.status(), answer.head, answer.text());
    };
    for (model, header, scheme) in [
        ("m0", "authorization", "Bearer "),
        ("m0", "x-api-key", ""),
        ("m1", "authorization", "Bearer "),
        ("m0", "authorization", "Basic "),
        ("m0", "authorization", "Bearer x-"),
    ] {
        for seed in 0..11 {
            let body = json!({"model": model, "stream": seed % 2 == 0 && seed != 0, "seed": seed,
                "messages": [{"role": "user", "content": PROMPT}]});
            let call = Ask::post("/v1/chat/completions", body.to_string())
                .header("x-weirgate-key", key)
                .header(header, &format!("{scheme}{OWN_KEY}"));
            send(&call);
        }
    }
    send(&Ask::get("/v1/models").key(OWN_KEY));
    send(&Ask::get("/v1/models").header("x-weirgate-key", OWN_KEY));
    back
}

/// Asserts that the parrot was asked with each key that it may be asked with.
fn assert_used(parrot: &Upstream) {
    let held = parrot.requests();
    let used: Vec<String> = held.iter().map(|request| quoted(request).0).collect();
    let stored = PROVIDER_KEYS.map(|(_, key)| key);
    for key in stored.into_iter().chain([BYOK_KEY, OWN_KEY]) {
        let is_used = used.iter().any(|used| used == key);
        assert!(is_used, "{key} was not used: {used:?}");
    }
}

fn wait_for_callback(service: &Upstream) {
    until("the callback is told", || {
        let told = service.requests();
        told.iter()
            .any(|it| it.path == "/hook" && it.header("webhook-signature").is_some())
    });
}

/// Makes an organization with credit, and a key of it.
fn make_key(cage: &Cage) -> String {
    cage.run(&["org", "create", "acme"], "");
    cage.run(&["credit", "add", "--org", "acme", "10"], "");
    let made = ["key", "create", "--org=acme", "--allow-passthrough=openai"];
    let made = cage.run(&made, "");
    let mut lines = made.lines();
    let key = lines.find(|line| line.starts_with("wg_"));
    key.expect("a key").to_owned()
}

/// What OAuth issues to a client and to the browser of a person who signs in with a key, a wrong one first.
fn issue(server: &Server, key: &str) -> Vec<Canary> {
    let public = server.address;
    let with_secret = json!({"redirect_uris": [oauth::REDIRECT_URI]});
    let registered = ask(public, &oauth::registration(&with_secret)).json();
    let secret = registered["client_secret"].as_str().unwrap().to_owned();
    let client = oauth::client(public);
    let page = oauth::page(public, &oauth::authorization(&client, "account:read", &[]));
    ask(public, &oauth::form(&page, &format!("{key}x"), "allow"));
    let answer = ask(public, &oauth::form(&page, key, "allow"));
    let code = oauth::brought(&answer).remove(0).1;
    let request = oauth::exchange(&client, &code, &[]);
    let tokens = oauth::tokens(&client, &ask(public, &request));
    let next = ask(public, &oauth::refresh(&client, &tokens.refresh));
    let next = oauth::tokens(&client, &next);
    let (_, cookie) = page.cookie.split_once('=').unwrap();
    vec![
        Canary("secret of a client of OAuth", secret),
        Canary("code", code),
        Canary("cookie of a page", cookie.to_owned()),
        Canary("access token", tokens.access),
        Canary("refresh token", tokens.refresh),
        Canary("next access token", next.access),
        Canary("next refresh token", next.refresh),
    ]
}

/// Requests with each of these secrets in places that are not theirs; returns all that comes back.
fn misuse(server: &Server, issued: &[Canary]) -> String {
    let mut back = String::new();
    for Canary(_, secret) in issued {
        let mut requests = vec![
            oauth::call(secret, "get-account"),
            Ask::get("/v1/models").key(secret),
            oauth::exchange("client_0", secret, &[("client_secret", secret)]),
            oauth::refresh("client_0", secret),
            oauth::post(
                "/mcp/oauth/revoke",
                &[("client_id", "client_0"), ("token", secret)],
            ),
            oauth::post(
                "/mcp/oauth/authorize",
                &[("request", secret), ("key", secret)],
            ),
            Ask::get(&format!(
                "/mcp/oauth/authorize?client_id={secret}&redirect_uri=a"
            )),
        ];
        // A cookie has no form of its own by which it could be known in a path.
        if secret.starts_with("wg") {
            let named = Ask::get(&format!("/v1/{secret}")).header("user-agent", secret);
            requests.push(named.header("x-request-id", secret));
            requests.push(Ask::get(&format!("/content/{secret}")));
        }
        for request in requests {
            let answer = ask(server.address, &request);
            back += &format!("{} {:?} {}\n", answer.status(), answer.head, answer.text());
        }
    }
    back
}

#[test]
fn no_secret_that_is_held_leaves_by_an_answer_a_log_a_metric_or_a_file() {
    let parrot = parrot();
    let service = Upstream::always(Reply::json(200, r#"{"data":{"a":1}}"#));
    let closed = ClosedPort::take();
    let redis = closed.url().trim_start_matches("http://").to_owned();
    let cage = cage(&parrot, &service, &redis);
    let key = make_key(&cage);
    let mut said = cage.run(
        &["provider-key", "add", "--org", "acme", "--provider", "p0"],
        BYOK_KEY,
    );
    said += &cage.run(
        &[
            "project", "update", "--org", "acme", "default", "--mode", "hybrid",
        ],
        "",
    );
    for arguments in [
        ["config", "show", "--origin"],
        ["check", "--format", "json"],
        ["provider-key", "list", "--org=acme"],
        ["key", "list", "--org=acme"],
    ] {
        said += &cage.run(&arguments, "");
    }
    let postgres = format!("postgres://weirgate:{POSTGRES_PASSWORD}@127.0.0.1:1/weirgate");
    let elsewhere = [("WEIRGATE_STORE__URL", postgres)];
    said += &cage.run_with(&elsewhere, &["config", "show"], "");
    assert!(
        said.contains("redis://") && said.contains("postgres://"),
        "{said}"
    );
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("log");
    let server = Server::start_logging(cage.folder.path(), &cage.env(), &log);
    let hook = format!("{}/hook", service.url());
    let mut back = provoke(&server, &key, &hook);
    back += &bring(&server, &key);
    let issued = issue(&server, &key);
    back += &misuse(&server, &issued);
    wait_for_callback(&service);
    assert!(
        back.contains("[removed]"),
        "the provider quotes its key: {back}"
    );
    assert_used(&parrot);
    server.stop();
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(
        log.contains("\"path\":\"/v1/models\""),
        "the log is read: {log}"
    );
    let mut canaries = vec![
        Canary("API key", key.clone()),
        Canary("start of the API key", key[..20].to_owned()),
        Canary("BYOK key", BYOK_KEY.to_owned()),
        Canary("caller's own credential", OWN_KEY.to_owned()),
        Canary("pepper", PEPPER.to_owned()),
        Canary("admin token", ADMIN_TOKEN.to_owned()),
        Canary("token key", TOKEN_KEY.to_owned()),
        Canary("token key", BASE64.encode(TOKEN_KEY)),
        Canary("application's secret", APP_SECRET.to_owned()),
        Canary("client's secret", CLIENT_SECRET.to_owned()),
        Canary("secret of the webhook", HOOK_SECRET.to_owned()),
        Canary("secret of a callback", CALLBACK_SECRET.to_owned()),
        Canary("password of Redis", REDIS_PASSWORD.to_owned()),
        Canary("password of PostgreSQL", POSTGRES_PASSWORD.to_owned()),
        Canary("prompt", PROMPT.to_owned()),
        Canary("key in a query", PUBLIC_KEY.to_owned()),
        Canary("address of the provider", parrot.address().to_string()),
    ];
    canaries.extend(PROVIDER_KEYS.map(|(name, key)| Canary(name, key.to_owned())));
    canaries.extend(issued);
    for Canary(name, secret) in &canaries {
        // The operator's own view names the servers that he configured and the public keys of tenants.
        let is_configured = matches!(*name, "address of the provider" | "key in a query");
        for (place, text) in [
            ("an answer", &back),
            ("the log", &log),
            ("the command line", &said),
        ] {
            let is_shown = place == "the command line" && is_configured;
            let line = text.lines().find(|line| line.contains(&**secret));
            assert!(
                is_shown || line.is_none(),
                "{name} in {place}: {}",
                line.unwrap()
            );
        }
    }
    for path in cage.files() {
        let bytes = std::fs::read(&path).unwrap();
        // The operator wrote the configuration.
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            continue;
        }
        for Canary(name, secret) in &canaries {
            let is_there = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!is_there, "{name} in {}", path.display());
        }
    }
}
