//! `docs/api.md`, written from the document.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::operations;

const HEAD: &str = "# The API\n\n\
    Everything that the listener serves, as `GET /v1/openapi.json` describes it where all parts are on. A test makes this page of\n\
    that document. What the APIs promise beyond shapes is in the contracts: [models](model-gateway.md), [flag\n\
    decisions](decision-agent.md), [graph](graph-limits.md).\n\n\
    Members that no table names are accepted and, where a provider may know them, passed on. A GET is served as HEAD, too.\n\
    Each response has the id of its request in `x-request-id`.\n";

/// Returns the page.
pub fn page(document: &Value) -> String {
    let mut page = HEAD.to_owned();
    let mut last_tag = "";
    for (method, path, operation) in operations(document) {
        let tag = operation["tags"][0].as_str().unwrap();
        if tag == "Graph" {
            continue;
        }
        if tag != last_tag {
            write!(page, "\n## {tag}\n").unwrap();
            last_tag = tag;
        }
        write_operation(document, (&method, path), operation, &mut page);
    }
    write_graph(document, &mut page);
    write_errors(document, &mut page);
    page.push_str("\n## Schemas\n");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        write!(page, "\n### {name}\n").unwrap();
        write_schema(schema, &mut page);
    }
    page
}

fn write_operation(
    document: &Value,
    (method, path): (&str, &str),
    operation: &Value,
    page: &mut String,
) {
    let summary = operation["summary"].as_str().unwrap();
    write!(page, "\n### `{method} {path}`\n\n{summary}.").unwrap();
    if let Some(description) = operation["description"].as_str() {
        write!(page, " {description}").unwrap();
    }
    write!(
        page,
        "\n\nCredentials: {}.",
        credentials(document, operation)
    )
    .unwrap();
    if let Some(group) = operation["x-quota"].as_str() {
        write!(page, " Quota: `{group}`.").unwrap();
    }
    if let Some(bytes) = operation["x-body-bytes"].as_u64() {
        write!(page, " The body has at most {bytes} bytes.").unwrap();
    }
    page.push('\n');
    write_parameters(document, operation, page);
    let content = operation["requestBody"]["content"].as_object();
    for (media_type, body) in content.into_iter().flatten() {
        write!(
            page,
            "\nRequest, `{media_type}`: {}\n",
            type_of(&body["schema"])
        )
        .unwrap();
        write_members(&body["schema"], page);
        if !body["example"].is_null() {
            write!(page, "\n```json\n{}\n```\n", body["example"]).unwrap();
        }
    }
    write_responses(operation, page);
}

fn credentials(document: &Value, operation: &Value) -> String {
    let schemes = operation["security"].as_array().unwrap().iter();
    let names = schemes.flat_map(|scheme| scheme.as_object().unwrap().keys());
    let words: Vec<String> = names
        .map(|name| {
            let scheme = &document["components"]["securitySchemes"][name];
            match scheme["type"].as_str().unwrap() {
                "http" if name == "token" => "`Authorization: Bearer <token>`".to_owned(),
                "http" if name == "accessToken" => {
                    "`Authorization: Bearer <access token>`".to_owned()
                }
                "http" => "`Authorization: Bearer <API key>`".to_owned(),
                _ if scheme["in"] == "query" => format!("`?{}=`", scheme["name"].as_str().unwrap()),
                _ => format!("`{}`", scheme["name"].as_str().unwrap()),
            }
        })
        .collect();
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join(" or ")
    }
}

fn write_parameters(document: &Value, operation: &Value, page: &mut String) {
    let Some(parameters) = operation["parameters"].as_array() else {
        return;
    };
    page.push_str("\n| parameter | in | type | meaning |\n|---|---|---|---|\n");
    for parameter in parameters {
        let parameter = resolve(document, parameter);
        let text = |key: &str| parameter[key].as_str().unwrap_or_default();
        let required = if parameter["required"] == true {
            ", required"
        } else {
            ""
        };
        let row = [
            format!("`{}`", text("name")),
            format!("{}{required}", text("in")),
            type_of(&parameter["schema"]),
            cell(text("description")),
        ];
        writeln!(page, "| {} |", row.join(" | ")).unwrap();
    }
}

fn write_responses(operation: &Value, page: &mut String) {
    let mut errors = Vec::new();
    for (status, response) in operation["responses"].as_object().unwrap() {
        if response["$ref"].is_string() {
            errors.push(format!("`{status}`"));
            continue;
        }
        let description = response["description"].as_str().unwrap();
        write!(page, "\nResponse {status}: {description}").unwrap();
        let content = response["content"].as_object();
        for (media_type, content) in content.into_iter().flatten() {
            let event = &content["x-event"];
            let what = if event.is_null() {
                &content["schema"]
            } else {
                event
            };
            let kind = if event.is_null() { "" } else { "events of " };
            write!(page, " `{media_type}`: {kind}{}.", type_of(what)).unwrap();
        }
        page.push('\n');
        for content in content.into_iter().flatten().map(|(_, content)| content) {
            write_members(&content["schema"], page);
        }
    }
    if !errors.is_empty() {
        write!(page, "\nErrors: {}.\n", errors.join(", ")).unwrap();
    }
}

/// The graph service has one description for all its operations.
fn write_graph(document: &Value, page: &mut String) {
    page.push_str("\n## Graph\n");
    let mut operations = operations(document)
        .filter(|(.., it)| it["tags"][0] == "Graph")
        .peekable();
    let (.., first) = operations.peek().unwrap();
    let description = first["description"].as_str().unwrap();
    write!(
        page,
        "\n{}. {description}\n\n",
        first["summary"].as_str().unwrap()
    )
    .unwrap();
    let mut methods: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (method, path, _) in operations {
        methods.entry(path).or_default().push(method);
    }
    page.push_str("| path | methods |\n|---|---|\n");
    for (path, methods) in methods {
        writeln!(page, "| `{path}` | {} |", methods.join(", ")).unwrap();
    }
}

/// What statuses mean, each once.
fn write_errors(document: &Value, page: &mut String) {
    page.push_str("\n## Errors\n\n| status | meaning |\n|---|---|\n");
    let responses = document["components"]["responses"]
        .as_object()
        .unwrap()
        .iter();
    let meanings: BTreeMap<&str, &str> = responses
        .map(|(name, response)| {
            let status = name.get(name.len() - 3..).unwrap();
            (status, response["description"].as_str().unwrap())
        })
        .collect();
    for (status, meaning) in meanings {
        writeln!(page, "| {status} | {meaning} |").unwrap();
    }
    page.push_str(
        "\nBodies of errors are [Error](#error) for models, [DecisionError](#decisionerror) for flag decisions,\n\
         [EvaluationError](#evaluationerror) for OpenFeature, and [GraphError](#grapherror) for the graph service.\n",
    );
}

fn write_schema(schema: &Value, page: &mut String) {
    if let Some(description) = schema["description"].as_str() {
        write!(page, "\n{description}\n").unwrap();
    }
    let alternatives = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    match alternatives {
        Some(all) if all.iter().any(|one| one["properties"].is_object()) => {
            for (at, one) in all.iter().enumerate() {
                page.push_str(if at > 0 {
                    "\nOr:\n"
                } else {
                    "\nOne of these:\n"
                });
                write_schema(one, page);
            }
        }
        _ if has_members(schema) => write_members(schema, page),
        _ => write!(page, "\n{}\n", type_of(schema)).unwrap(),
    }
}

/// Writes the members of an object, and of objects in it.
fn write_members(schema: &Value, page: &mut String) {
    let mut rows = Vec::new();
    collect_rows("", schema, &mut rows);
    if rows.is_empty() {
        return;
    }
    page.push_str("\n| member | type | meaning |\n|---|---|---|\n");
    for row in rows {
        writeln!(page, "{row}").unwrap();
    }
}

fn has_members(schema: &Value) -> bool {
    schema["properties"].is_object() || schema["items"]["properties"].is_object()
}

fn collect_rows(prefix: &str, schema: &Value, rows: &mut Vec<String>) {
    let items = &schema["items"];
    if items["properties"].is_object() {
        return collect_rows(&format!("{prefix}[]"), items, rows);
    }
    let required = schema["required"].as_array();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        let is_required = required.is_some_and(|all| all.iter().any(|one| one == name.as_str()));
        let required = if is_required { ", required" } else { "" };
        let meaning = cell(member["description"].as_str().unwrap_or_default());
        rows.push(format!(
            "| `{path}` | {}{required} | {meaning} |",
            type_of(member)
        ));
        collect_rows(&path, member, rows);
    }
}

/// The type of a schema in words.
fn type_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if schema["not"].is_object() {
        return "not accepted".to_owned();
    }
    if let Some(constant) = schema.get("const") {
        return format!("`{}`", word(constant));
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|one| format!("`{}`", word(one))).collect();
        return words.join(", ");
    }
    if let Some(all) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let all: Vec<String> = all.iter().map(type_of).collect();
        return all.join(", or ");
    }
    let bounds = bounds(schema);
    let named = |name: &str| match name {
        "array" if !schema["items"].is_null() => {
            format!("array of {}{bounds}", type_of(&schema["items"]))
        }
        "null" => "null".to_owned(),
        name => format!("{name}{bounds}"),
    };
    match &schema["type"] {
        Value::String(name) => named(name),
        Value::Array(names) => {
            let names: Vec<String> = names
                .iter()
                .map(|name| named(name.as_str().unwrap()))
                .collect();
            names.join(" or ")
        }
        _ => "any".to_owned(),
    }
}

fn bounds(schema: &Value) -> String {
    let number = |key: &str| schema[key].as_i64();
    let (least, most, unit) = match schema["type"].as_str() {
        Some("string") => ("minLength", "maxLength", " characters"),
        Some("array") => ("minItems", "maxItems", " items"),
        _ => ("minimum", "maximum", ""),
    };
    let nullable = schema["type"]
        .as_array()
        .and_then(|types| types.first()?.as_str());
    let (least, most, unit) = match nullable {
        Some("string") => ("minLength", "maxLength", " characters"),
        Some("array") => ("minItems", "maxItems", " items"),
        _ => (least, most, unit),
    };
    match (number(least), number(most)) {
        (Some(least), Some(most)) => format!(" ({least} to {most}{unit})"),
        (Some(1), None) if !unit.is_empty() => " (not empty)".to_owned(),
        (Some(least), None) => format!(" (from {least}{unit})"),
        (None, Some(most)) => format!(" (to {most}{unit})"),
        (None, None) => String::new(),
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(
        || value.to_string(),
        |text| {
            if text.is_empty() {
                "\"\"".to_owned()
            } else {
                text.to_owned()
            }
        },
    )
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn resolve<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let pointer = value["$ref"]
        .as_str()
        .and_then(|reference| reference.strip_prefix('#'));
    pointer.map_or(value, |pointer| document.pointer(pointer).unwrap())
}
