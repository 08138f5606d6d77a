//! `GET /v1/openapi.json`: what it says is what is served.

mod fields;
mod page;

use std::collections::BTreeSet;

use boon::{Compiler, Schemas};
use serde_json::Value;
use weirgate::app::openapi::curl;

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::described::{MODELS, everything, operations};
use crate::support::sdk::{self, Script};

fn fetch(gateway: &Gateway) -> Answer {
    ask(gateway.address(), &Ask::get("/v1/openapi.json"))
}

/// Contract: model-gateway 4 GET /v1/openapi.json
#[test]
fn every_row_of_the_router_is_described_by_its_name() {
    let gateway = everything();
    let document = fetch(&gateway).json();
    let described = operations(&document).map(|(method, path, operation)| {
        let path = path.split('{').next().unwrap().to_owned();
        (
            operation["operationId"].as_str().unwrap().to_owned(),
            method,
            path,
        )
    });
    let described: BTreeSet<_> = described
        .filter(|(id, _, path)| !id.starts_with("graph_") || path.starts_with("/v1/"))
        .collect();
    let routes = gateway.running.app.proxy.router.routes().iter();
    // A route that answers at several paths is described at the first.
    let mut told = BTreeSet::new();
    let served: BTreeSet<_> = routes
        .filter(|route| told.insert((route.name, route.method.to_string())))
        .map(|route| {
            let path = route.path.split('*').next().unwrap().to_owned();
            (route.name.to_owned(), route.method.to_string(), path)
        })
        .collect();
    assert_eq!(described, served);
}

/// Contract: model-gateway 9 2
#[test]
fn no_route_of_the_first_version_has_an_end() {
    let gateway = everything();
    let routes = gateway.running.app.proxy.router.routes().iter();
    let ends: Vec<_> = routes
        .filter(|route| route.path.starts_with("/v1/"))
        .filter(|route| {
            route
                .deprecation
                .is_some_and(|told| told.sunset_s.is_some())
        })
        .map(|route| route.path)
        .collect();
    assert_eq!(ends, [""; 0]);
    assert_eq!(fetch(&gateway).header("sunset"), None);
}

#[test]
fn the_page_for_people_is_made_of_the_document() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/api.md");
    let made = page::page(&fetch(&everything()).json());
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let shown = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == shown,
        "docs/api.md is not what the listener serves; after a wanted change: \
         WRITE_GOLDEN=1 cargo test --test gateway openapi::the_page"
    );
}

#[test]
fn every_reference_leads_to_a_schema_that_is_one() {
    let document = fetch(&everything()).json();
    let mut references = BTreeSet::new();
    collect_references(&document, &mut references);
    for reference in &references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let mut compiler = Compiler::new();
    compiler.add_resource("api.json", document.clone()).unwrap();
    let mut schemas = Schemas::new();
    for name in document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        let place = format!("api.json#/components/schemas/{name}");
        let compiled = compiler.compile(&place, &mut schemas);
        assert!(compiled.is_ok(), "{name}: {:?}", compiled.err());
    }
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(
                members
                    .get("$ref")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            members
                .values()
                .for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

/// Contract: model-gateway 4 GET /v1/openapi.json
#[test]
fn the_document_is_for_everyone_and_is_sent_once() {
    let gateway = everything();
    let answer = fetch(&gateway);
    assert_eq!(answer.status(), 200);
    assert!(
        answer.json()["openapi"]
            .as_str()
            .unwrap()
            .starts_with("3.1.")
    );
    let etag = answer.header("etag").unwrap();
    let again = Ask::get("/v1/openapi.json").header("If-None-Match", etag);
    let again = ask(gateway.address(), &again);
    assert_eq!((again.status(), again.text()), (304, ""));
    let other = Ask::get("/v1/openapi.json").header("If-None-Match", "\"other\"");
    assert_eq!(ask(gateway.address(), &other).status(), 200);
}

#[test]
fn what_is_off_is_not_described() {
    let gateway = Gateway::start("[providers.sandbox]\nkind = \"sandbox\"\n", &MODELS);
    let document = fetch(&gateway).json();
    let tags = operations(&document).map(|(.., operation)| operation["tags"][0].clone());
    let tags: BTreeSet<String> = tags.map(|tag| tag.as_str().unwrap().to_owned()).collect();
    assert_eq!(
        tags.into_iter().collect::<Vec<_>>(),
        ["Gateway", "MCP", "Models"]
    );
    assert!(document["components"]["securitySchemes"]["sdkKey"].is_null());
}

#[test]
fn every_operation_of_models_has_an_example_that_is_printed_as_a_command() {
    let gateway = everything();
    let document = fetch(&gateway);
    let keys = curl::Keys {
        api: Some(curl::ApiKey::Text("K".to_owned())),
        sdk: Some("S".to_owned()),
        graph: Some("G".to_owned()),
    };
    let commands = curl::commands(&document.body, "http://a", &keys, |_| true);
    for (method, path, operation) in operations(&document.json()) {
        let parameters = operation["parameters"].as_array();
        // What only another command makes has no example: the id of a video.
        let is_made = parameters
            .into_iter()
            .flatten()
            .any(|parameter| parameter["in"] == "path" && parameter["example"].is_null());
        let is_shown = matches!(operation["tags"][0].as_str(), Some("Gateway" | "Models"));
        let is_shown = is_shown && !is_made;
        let start = format!("curl 'http://a{}", path.split('{').next().unwrap());
        let is_printed = commands.iter().any(|it| it.line.starts_with(&start));
        assert!(is_printed || !is_shown, "{method} {path}: {commands:#?}");
    }
}

/// `WEIRGATE_API_CALLS` are the calls, over all operations; `WEIRGATE_API_SEED` makes others of them, and `WEIRGATE_API_ONLY`
/// keeps those of operations whose ids begin so.
#[test]
fn random_requests_are_answered_as_described() {
    let gateway = everything();
    let variable =
        |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let variables = [
        ("BASE_URL", format!("http://{}", gateway.address())),
        ("API_KEY", gateway.key.clone()),
        ("SDK_KEY", "sandbox".to_owned()),
        ("CALLS", variable("WEIRGATE_API_CALLS", "600")),
        ("SEED", variable("WEIRGATE_API_SEED", "1")),
        ("ONLY", variable("WEIRGATE_API_ONLY", "")),
    ];
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    sdk::run(Script::SchemathesisApi, &variables, &[]);
}
