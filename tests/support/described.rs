//! Every reply that a test reads is held against the description of the API: its status is named there, and its body fits.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::ask::Ask;
use super::boot::Gateway;
use super::client::{Answer, Client, End};
use super::grammars::messages::{self, StreamEnd};
use super::sse::Item;

/// Everything on that can be without other servers.
const EVERYTHING: &str = r#"
[providers.sandbox]
kind = "sandbox"
[responses]
store = true
[decisions]
notifications = true
user_profiles = "memory"
token_keys = [{ env = "TOKEN_KEY" }]
[[decisions.projects]]
sdk_key = "sandbox"
datafile = "sandbox"
[[decisions.clients]]
id = "shop"
secret_hash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$e8CLYbSqGRYfmqNNO9LjaJrjIQkXDfYXm1sMyrZcQbk"
sdk_keys = ["sandbox"]
[[decisions.webhooks]]
project_id = 1
secret = { env = "WEBHOOK_SECRET" }
sdk_keys = ["sandbox"]
[graph]
upstream = "sandbox"
[[graph.tenants]]
id = "sandbox"
single_keys = ["sandbox"]
"#;

/// The models of the shipped catalogue that the built-in sandbox serves.
pub static MODELS: LazyLock<String> = LazyLock::new(|| {
    let shipped = include_str!("../../conf/models.toml");
    let of_sandbox = |part: &&str| part.contains("\nprovider = \"sandbox\"\n");
    let parts = shipped.split("[[models]]").skip(1).filter(of_sandbox);
    parts.map(|part| format!("[[models]]{part}")).collect()
});

/// A gateway with all parts on.
pub fn everything() -> Gateway {
    let key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let env = [("TOKEN_KEY", key), ("WEBHOOK_SECRET", "hook-secret")];
    Gateway::start_with_env(EVERYTHING, &MODELS, &env)
}

/// The operations of a document: method, path and operation.
pub fn operations(document: &Value) -> impl Iterator<Item = (String, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (method.to_uppercase(), path.as_str(), operation))
    })
}

/// Servers whose replies are not held against the description.
static LEFT_OUT: LazyLock<Mutex<HashSet<SocketAddr>>> = LazyLock::new(Mutex::default);

/// Leaves the replies of a server out of the checks: those of the agent's protocol are not described.
pub fn leave_out(server: SocketAddr) {
    LEFT_OUT.lock().unwrap().insert(server);
}

/// The description, and its schemas by their places in it.
struct Described {
    document: Value,
    schemas: Schemas,
    indexes: HashMap<String, SchemaIndex>,
}

// The thread of the first test to ask may be inside a runtime, where no gateway can be started.
static DESCRIBED: LazyLock<Described> =
    LazyLock::new(|| std::thread::spawn(describe).join().unwrap());

fn describe() -> Described {
    let gateway = everything();
    let mut client = Client::connect(gateway.address());
    client.send(&Ask::get("/v1/openapi.json"));
    let document = client.answer().json();
    let mut compiler = Compiler::new();
    compiler.add_resource("api.json", document.clone()).unwrap();
    let (mut schemas, mut indexes) = (Schemas::new(), HashMap::new());
    let mut places = Vec::new();
    collect_places(&document, "", &mut places);
    for place in places {
        let index = compiler.compile(&format!("api.json#{place}"), &mut schemas);
        indexes.insert(place, index.unwrap());
    }
    Described {
        document,
        schemas,
        indexes,
    }
}

/// The places of schemas of responses and events, as pointers.
fn collect_places(value: &Value, place: &str, found: &mut Vec<String>) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        let below = format!("{place}/{}", escape(key));
        if matches!(key.as_str(), "schema" | "x-event") && place.contains("/responses/") {
            found.push(below);
        } else {
            collect_places(inner, &below, found);
        }
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Fails the test if a reply of the gateway is not what the description says, or if a stream breaks the grammar of its API.
///
/// Replies of other servers are left out, those of the graph service, and those in the agent's protocol, which are not
/// described.
pub fn check(server: SocketAddr, ask: &Ask, answer: &Answer) {
    let is_left_out = LEFT_OUT.lock().unwrap().contains(&server);
    if answer.header("x-request-id").is_none() || ask.is_head() || is_left_out {
        return;
    }
    let Some((path, operation)) = DESCRIBED.find(ask) else {
        return;
    };
    let (responses, status) = (&operation["responses"], answer.status().to_string());
    let class = format!("{}XX", &status[..1]);
    let known = [status.as_str(), &class]
        .into_iter()
        .find(|key| responses[key].is_object());
    let shown = || format!("{path}: {status} {}", String::from_utf8_lossy(&answer.body));
    let key = known.unwrap_or_else(|| panic!("a status that is not described: {}", shown()));
    let mut place = format!("{path}/responses/{key}");
    if let Some(reference) = responses[key]["$ref"].as_str() {
        place = reference.trim_start_matches('#').to_owned();
    }
    let content = &DESCRIBED.document.pointer(&place).unwrap()["content"];
    let media_type = answer.header("content-type").unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default();
    if path == "/paths/~1v1~1messages/post" && media_type == "text/event-stream" {
        check_grammar(answer);
    }
    if answer.body.is_empty() || answer.end != End::Complete {
        return;
    }
    let range = media_type.split('/').next().unwrap_or_default();
    let range = format!("{range}/*");
    let known = [media_type, &range]
        .into_iter()
        .find(|it| content[it].is_object());
    assert!(
        known.is_some(),
        "a type that is not described: {media_type}: {}",
        shown()
    );
    let place = format!("{place}/content/{}", escape(media_type));
    if media_type == "text/event-stream" {
        check_events(&place, answer);
    } else if media_type == "application/json" {
        DESCRIBED.hold(&format!("{place}/schema"), &answer.json());
    }
}

/// A stream of Messages keeps its grammar, and one that the client read to its end is whole or ends in an error.
fn check_grammar(answer: &Answer) {
    let items = answer.events().items;
    let events = items.iter().filter_map(|item| match item {
        Item::Event { name, data } => Some((name.as_deref().unwrap_or_default(), &**data)),
        Item::Comment(_) => None,
    });
    let input = |text: &str| serde_json::from_str(text).unwrap_or_default();
    let shown = || String::from_utf8_lossy(&answer.body);
    match messages::fold(events, input) {
        Ok(folded) if answer.end == End::Complete => {
            assert_ne!(folded.end, StreamEnd::Open, "{}", shown());
        }
        Ok(_) => {}
        Err(why) => panic!("{why}\n{}", shown()),
    }
}

/// Events hold JSON of one schema, but for the end, an error that ends them, and those that have an id alone.
fn check_events(place: &str, answer: &Answer) {
    for item in answer.events().items {
        let Item::Event { name, data } = item else {
            continue;
        };
        if !data.is_empty() && data != "[DONE]" && name.as_deref() != Some("error") {
            let place = format!("{place}/x-event");
            DESCRIBED.hold(&place, &serde_json::from_str(&data).unwrap());
        }
    }
}

impl Described {
    /// The operation of a request, and its place.
    fn find(&self, ask: &Ask) -> Option<(String, &Value)> {
        let (method, path) = ask.target();
        let path = path.split('?').next().unwrap_or_default();
        let paths = self.document["paths"].as_object().unwrap().iter();
        let fits = |template: &str| match template.split_once('{') {
            None => template == path,
            Some((prefix, rest)) => {
                let (_, suffix) = rest.split_once('}').unwrap_or_default();
                let inner = path
                    .strip_prefix(prefix)
                    .and_then(|it| it.strip_suffix(suffix));
                inner.is_some_and(|it| !it.is_empty())
            }
        };
        // `/v1/videos/{id}` fits the path of a content, too.
        let found = paths.filter(|(template, _)| fits(template));
        let (template, methods) =
            found.max_by_key(|(template, _)| (!template.contains('{'), template.len()))?;
        let method = method.to_ascii_lowercase();
        let operation = methods.get(&method).filter(|it| it["tags"][0] != "Graph")?;
        Some((format!("/paths/{}/{method}", escape(template)), operation))
    }

    fn hold(&self, place: &str, value: &Value) {
        let Some(index) = self.indexes.get(place) else {
            return;
        };
        if let Err(error) = self.schemas.validate(value, *index) {
            panic!("a body that is not as described: {error:#}\n{value}");
        }
    }
}
