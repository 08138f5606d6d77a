//! Command lines for the operations of a description, with its own examples.

use serde_json::Value;

use crate::config::{Config, Datafile, GraphUpstream};

/// The API key in command lines.
#[derive(Clone, Debug)]
pub enum ApiKey {
    Text(String),
    /// The shell variable with the key.
    Variable(&'static str),
}

/// The credentials in command lines. Commands whose credential is missing are left out.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    pub api: Option<ApiKey>,
    pub sdk: Option<String>,
    /// The query parameter that identifies a tenant of the graph service.
    pub graph: Option<String>,
}

impl Keys {
    /// Returns the public keys of the sandboxes in a configuration.
    pub fn from_sandboxes(config: &Config) -> Self {
        let decisions = config.decisions.iter();
        let mut projects = decisions.flat_map(|decisions| &decisions.projects);
        let sdk = projects.find(|(_, datafile)| *datafile == Datafile::Sandbox);
        let graph = config.graph.iter();
        let graph = graph.filter(|graph| graph.upstream == GraphUpstream::Sandbox);
        let tenants = graph.flat_map(|graph| &graph.tenants);
        Self {
            api: None,
            sdk: sdk.map(|(key, _)| key.to_string()),
            graph: tenants
                .flat_map(|tenant| &tenant.single_keys)
                .next()
                .cloned(),
        }
    }
}

/// A command line that calls an operation.
#[derive(Debug)]
pub struct CurlCommand {
    /// The operation's id in the description.
    pub operation: String,
    /// The command line, which begins with `curl `.
    pub line: String,
}

/// Returns a command for each operation of a description that has examples of all required parts, for the listener at
/// `base`. Examples with a model that is not served are left out, and operations that never succeed or never end.
pub fn commands(
    document: &[u8],
    base: &str,
    keys: &Keys,
    serves: impl Fn(&str) -> bool,
) -> Vec<CurlCommand> {
    let document: Value = serde_json::from_slice(document).unwrap_or_default();
    let schemes = document.pointer("/components/securitySchemes");
    let paths = document.get("paths").and_then(Value::as_object);
    let operations = paths.into_iter().flatten().flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    });
    operations
        .filter_map(|(path, method, operation)| {
            if !matches!(method, "get" | "head" | "post") || !may_succeed(operation) {
                return None;
            }
            if method == "get" && is_stream(operation) {
                return None;
            }
            let key = header(operation, schemes, keys)?;
            let body = match body(operation) {
                Some(None) => return None,
                Some(example) => example,
                None if method == "post" => return None,
                None => None,
            };
            let model = body.and_then(|(_, body)| body.get("model")?.as_str());
            let model = model.or_else(|| model_in_path(operation));
            if !model.is_none_or(&serves) {
                return None;
            }
            let mut line = line(operation, (base, path), (&key, body), keys)?;
            if method == "head" {
                line.push_str(" --head");
            }
            Some(CurlCommand {
                operation: operation.get("operationId")?.as_str()?.to_owned(),
                line,
            })
        })
        .collect()
}

/// Returns the model in the example of an operation's path.
fn model_in_path(operation: &Value) -> Option<&str> {
    let mut parameters = operation.get("parameters")?.as_array()?.iter();
    let is_model = |parameter: &&Value| {
        let is = |key: &str, value: &str| parameter.get(key) == Some(&value.into());
        is("in", "path") && is("name", "model")
    };
    parameters.find(is_model)?.get("example")?.as_str()
}

/// Returns whether not all responses of an operation are refusals.
fn may_succeed(operation: &Value) -> bool {
    let responses = operation.get("responses").and_then(Value::as_object);
    let mut statuses = responses.into_iter().flatten().map(|(status, _)| status);
    !statuses.all(|status| status.starts_with('4') || status.starts_with('5'))
}

/// Returns whether the response of an operation is an event stream: of one that is asked for with `GET` no end comes.
fn is_stream(operation: &Value) -> bool {
    let content = operation.pointer("/responses/200/content");
    let content = content.and_then(Value::as_object);
    content.is_some_and(|content| content.keys().eq(["text/event-stream"]))
}

/// Returns the option with the credential that an operation accepts first, or an empty text if it needs none. Returns
/// `None` if `keys` have no such credential.
fn header(operation: &Value, schemes: Option<&Value>, keys: &Keys) -> Option<String> {
    let first = operation
        .get("security")
        .and_then(|all| all.get(0)?.as_object()?.keys().next());
    let Some(scheme) = first else {
        return Some(String::new());
    };
    match scheme.as_str() {
        "apiKey" => keys.api.as_ref().map(|key| match key {
            ApiKey::Text(key) => format!(" -H 'Authorization: Bearer {key}'"),
            ApiKey::Variable(name) => format!(" -H \"Authorization: Bearer ${name}\""),
        }),
        "sdkKey" => {
            let name = schemes?.pointer("/sdkKey/name")?.as_str()?;
            let key = keys.sdk.as_ref();
            key.map(|key| format!(" -H '{name}: {key}'"))
        }
        _ => None,
    }
}

/// Returns the example of an operation's body with its media type. `Some(None)` means a body without an example.
fn body(operation: &Value) -> Option<Option<(&str, &Value)>> {
    let content = operation.get("requestBody")?.get("content")?.as_object()?;
    let mut examples = content
        .iter()
        .filter_map(|(media_type, content)| Some((media_type.as_str(), content.get("example")?)));
    Some(examples.next())
}

/// Returns the options for an example body: one for JSON, or one for each field of a form.
fn data((media_type, example): (&str, &Value)) -> String {
    let quoted = |text: &str| text.replace('\'', "'\\''");
    match example.as_object() {
        Some(fields) if media_type == "multipart/form-data" => fields
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_str()?)))
            .map(|(name, value)| format!(" -F '{name}={}'", quoted(value)))
            .collect(),
        _ => {
            let text = quoted(&example.to_string());
            format!(" -H 'Content-Type: application/json' -d '{text}'")
        }
    }
}

/// Returns whether the response is a file and not text.
fn is_file(operation: &Value) -> bool {
    let content = operation.pointer("/responses/200/content");
    let mut types = content.and_then(Value::as_object).into_iter().flatten();
    types
        .any(|(media_type, _)| media_type.starts_with("audio/") || media_type.starts_with("video/"))
}

/// Returns whether a parameter is required and has no example.
fn is_left_open(parameter: &Value) -> bool {
    parameter.get("required") == Some(&Value::Bool(true)) && parameter.get("example").is_none()
}

fn line(
    operation: &Value,
    (base, path): (&str, &str),
    (key, body): (&str, Option<(&str, &Value)>),
    keys: &Keys,
) -> Option<String> {
    let body = body.map_or(String::new(), data);
    let is_graph = operation.get("tags")?.get(0)? == "Graph";
    let tenant = match is_graph {
        true if body.is_empty() => return None,
        true => Some(("auth".to_owned(), keys.graph.clone()?)),
        false => None,
    };
    let parameters = operation.get("parameters").and_then(Value::as_array);
    let parameters = parameters.into_iter().flatten();
    if parameters.clone().any(is_left_open) {
        return None;
    }
    let examples = parameters.filter_map(|parameter| {
        let text = |key: &str| parameter.get(key)?.as_str().map(str::to_owned);
        Some((text("in")?, text("name")?, text("example")?))
    });
    let mut path = path.to_owned();
    let mut query: Vec<(String, String)> = tenant.into_iter().collect();
    for (place, name, value) in examples {
        match place.as_str() {
            "path" => path = path.replace(&format!("{{{name}}}"), &value),
            "query" => query.push((name, value)),
            _ => {}
        }
    }
    let query: Vec<String> = query
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let query = match query.is_empty() {
        true => String::new(),
        false => format!("?{}", query.join("&")),
    };
    let file = if is_file(operation) {
        format!(" -o {}", operation.get("operationId")?.as_str()?)
    } else {
        String::new()
    };
    Some(format!("curl '{base}{path}{query}'{key}{body}{file}"))
}
