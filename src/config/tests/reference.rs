//! `docs/configuration.md`: each key with its type, default and effect, made from the table of keys.
//!
//! After a change of the keys: `WRITE_GOLDEN=1 cargo test --lib the_reference_is_of_these_keys`, and read the difference.

use std::fmt::Write as _;
use std::path::Path;

use filters::models::parameter::Parameter;
use filters::models::routing::CatalogFile;

use super::*;
use crate::config::restart::{Effect, effect};
use crate::config::schema::make_schema;
use crate::config::walk::{schema_format, schema_type};

const HEAD: &str = "\
# Configuration

<!-- Made from the code: WRITE_GOLDEN=1 cargo test --lib the_reference_is_of_these_keys -->

All keys of the configuration and of the catalogue of models. [../conf/weirgate.toml](../conf/weirgate.toml) has each of them with
an example, `weirgate check` finds mistakes in a file, `weirgate config show --origin` says which value is in force and why, and
`weirgate config schema` prints this page for programs. What needs more words than a row has them in
[interface.md](interface.md#configuration).

- **Format.** TOML. A key that is not known is an error. Without `-c FILE` the file is `./conf/weirgate.toml`, else
  `/etc/weirgate/weirgate.toml`, else there is none, and all keys have their defaults.
- **Environment.** Each key is also a variable, whose value wins over the file: `WEIRGATE_`, then the names of sections and key in
  capitals with `__` between them. `listen.address` is `WEIRGATE_LISTEN__ADDRESS`; a list or a table is written as in TOML.
- **A secret** is `{ env = \"NAME\" }`, a variable, or `{ file = \"PATH\" }`, a file; a bare name of a file is also looked for in
  `$CREDENTIALS_DIRECTORY`. Never the secret itself.
- **Paths** that are relative start at the working directory.
- **Default.** `required`: the key has to be set. `–`: without the key the row says what holds.
- **In force.** For what a change is in force once a [reload](reload.md) has taken it in. **restart**: a reload refuses the change, and
  only a new process has it; [reload.md](reload.md#what-needs-a-restart) says why.

";

const CATALOGUE: &str = "\
# The catalogue

The file that `models.file` names: models with their prices, and the providers that have them. A reload reads it again. Prices are
decimals in quotes.

";

/// A table of the page, or of the file.
struct Section<'s> {
    /// Its name in TOML, such as `providers.NAME` or `[decisions.projects]`.
    name: String,
    /// The key as [`effect`] knows it, without places of lists and free names.
    key: String,
    schema: &'s Json,
    /// `#` signs of its heading.
    depth: usize,
}

/// Returns the page.
fn page() -> String {
    let mut page = HEAD.to_owned();
    let schema = schema();
    for (name, inner) in schema["properties"].as_object().unwrap() {
        sections(&mut page, name, inner, 2, &|key| {
            Some(effect(key).expect(key))
        });
    }
    page.push_str(CATALOGUE);
    let catalogue = make_schema::<CatalogFile>();
    for (name, inner) in catalogue["properties"].as_object().unwrap() {
        sections(&mut page, name, inner, 2, &|_| None);
    }
    page.trim_end().to_owned() + "\n"
}

/// Writes a table of the file, and those inside of it.
fn sections(
    page: &mut String,
    name: &str,
    schema: &Json,
    depth: usize,
    effect: &dyn Fn(&str) -> Option<Effect>,
) {
    let mut left = vec![Section {
        name: name.to_owned(),
        key: name.to_owned(),
        schema,
        depth,
    }];
    while let Some(section) = left.pop() {
        let (name, known) = table_of(&section);
        let heading = "#".repeat(section.depth);
        writeln!(page, "{heading} `[{name}]`\n").unwrap();
        let described = description(section.schema);
        if !described.is_empty() {
            writeln!(page, "{described}\n").unwrap();
        }
        let has_effect = effect(&section_key(&section, known)).is_some();
        let head = if has_effect { " in force |" } else { "" };
        let line = if has_effect { "---|" } else { "" };
        writeln!(
            page,
            "| key | accepted | default | what it does |{head}\n|---|---|---|---|{line}"
        )
        .unwrap();
        let mut inner = Vec::new();
        for (key, schema) in known["properties"].as_object().unwrap() {
            let full = format!("{}.{key}", section.key);
            if is_table(schema) {
                inner.push(Section {
                    name: format!("{}.{key}", name.trim_matches(['[', ']'])),
                    key: full,
                    schema,
                    depth: (section.depth + 1).min(4),
                });
                continue;
            }
            row(page, key, schema, is_required(known, key), effect(&full));
        }
        page.push('\n');
        left.extend(inner.into_iter().rev());
    }
}

/// The key of the first row, for which the table has a column or not.
fn section_key(section: &Section, known: &Json) -> String {
    let first = known["properties"].as_object().unwrap().keys().next();
    format!("{}.{}", section.key, first.unwrap())
}

/// Returns the heading of a table, and the schema of its keys.
fn table_of<'s>(section: &Section<'s>) -> (String, &'s Json) {
    let schema = section.schema;
    let name = &section.name;
    if schema["additionalProperties"]["properties"].is_object() {
        return (format!("{name}.NAME"), &schema["additionalProperties"]);
    }
    if schema["items"]["properties"].is_object() {
        return (format!("[{name}]"), &schema["items"]);
    }
    (name.clone(), schema)
}

/// Returns whether a value is a table with keys of its own, a list of such, or one with free names.
fn is_table(schema: &Json) -> bool {
    let parts = [schema, &schema["items"], &schema["additionalProperties"]];
    parts.iter().any(|part| part["properties"].is_object())
}

fn is_required(schema: &Json, key: &str) -> bool {
    let required = schema["required"].as_array();
    required.is_some_and(|keys| keys.iter().any(|name| name == key))
}

fn row(page: &mut String, key: &str, schema: &Json, required: bool, effect: Option<Effect>) {
    let default = match &schema["default"] {
        _ if required => "required".to_owned(),
        Json::Null => "–".to_owned(),
        value => code(&toml_of(value)),
    };
    let effect = match effect {
        None => String::new(),
        Some(Effect::Reload(what)) => format!(" {what} |"),
        Some(Effect::Restart(_)) => " **restart** |".to_owned(),
    };
    let (accepted, does) = (accepted(schema), description(schema));
    assert!(!does.is_empty(), "{key} has no line of documentation");
    writeln!(
        page,
        "| `{key}` | {accepted} | {default} | {} |{effect}",
        does.replace('|', "\\|")
    )
    .unwrap();
}

/// Returns the documentation of a key on one line.
fn description(schema: &Json) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

fn toml_of(value: &Json) -> String {
    as_toml(value)
}

/// Returns what a key takes.
fn accepted(schema: &Json) -> String {
    if let Some(choices) = choices(schema) {
        // The long list stands once, in the page of fields.
        if choices.len() == Parameter::ALL.len() {
            return "a field of requests ([chat-fields.md](chat-fields.md))".to_owned();
        }
        return choices
            .iter()
            .map(|it| code(it))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match schema_format(schema) {
        "secret" => return "a secret".to_owned(),
        "usd" => return "USD, a decimal".to_owned(),
        "id" => return "a number or a text".to_owned(),
        _ => {}
    }
    match schema_type(schema) {
        "boolean" => "`true`, `false`".to_owned(),
        "integer" => format!("a whole number{}", bounds(schema)),
        "number" => format!("a number{}", bounds(schema)),
        "array" => format!("a list: {}", accepted(&schema["items"])),
        "object" => format!("a table: {}", accepted(&schema["additionalProperties"])),
        "string" => text(schema_format(schema)).to_owned(),
        other => panic!("the type `{other}` of {schema} has no words"),
    }
}

/// Returns the words that a text may be.
fn choices(schema: &Json) -> Option<Vec<String>> {
    let quoted = |value: &Json| value.as_str().map(|text| format!("\"{text}\""));
    if let Some(choices) = schema["enum"].as_array() {
        return choices.iter().map(quoted).collect();
    }
    let choices = schema["oneOf"].as_array()?;
    choices
        .iter()
        .map(|choice| quoted(&choice["const"]))
        .collect()
}

fn bounds(schema: &Json) -> String {
    let number = |name: &str| schema[name].as_f64().filter(|bound| bound.abs() < 1e18);
    match (number("minimum"), number("maximum")) {
        (Some(min), Some(max)) => format!(", {min} to {max}"),
        (Some(min), None) => format!(", {min} or more"),
        (None, Some(max)) => format!(", at most {max}"),
        (None, None) => String::new(),
    }
}

/// Returns the words for a format of texts.
fn text(format: &str) -> &'static str {
    match format {
        "" => "a text",
        "address" => "an address with a port",
        "cidr" => "a block of addresses, or one",
        "date" => "a day, such as 2026-11-01",
        "header" => "a header's name",
        "header-or-empty" => "a header's name, or empty",
        "hours" => "hours of a day in UTC, such as `16:30-00:30`",
        "method" => "a method in capitals",
        "origin-or-sandbox" => "scheme, host and port, or `sandbox`, or empty",
        "path" => "a path that begins with `/`",
        "price-factor" => "a factor, such as `0.5`",
        "price-per-call" => "USD for one, a decimal",
        "price-per-million" => "USD per million, a decimal",
        "price-per-thousand" => "USD per thousand, a decimal",
        "price-share" => "a share from `0` to `1`",
        "redis-url-or-empty" => "`redis://…` or `rediss://…`, or empty",
        "sdk-key" => "an SDK key",
        "socket-path" | "socket-path-or-empty" => "a path of at most 107 bytes, or empty",
        "store-url" => "`sqlite:PATH` or `postgres://user@host/db`",
        "time" => "a time with its zone, such as 2031-01-01T00:00:00Z",
        "url" => "a URL",
        "url-or-empty" => "a URL, or empty",
        "url-pattern-or-empty" => "a URL with one `%s`, or empty",
        other => panic!("the format `{other}` has no words"),
    }
}

#[test]
fn the_reference_is_of_these_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let expected = page();
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == expected,
        "docs/configuration.md is of other keys: WRITE_GOLDEN=1 cargo test --lib the_reference_is_of_these_keys"
    );
}

#[test]
fn each_variable_of_the_reference_is_named_as_it_says() {
    let pairs = [
        ("WEIRGATE_LISTEN__ADDRESS", "127.0.0.1:9"),
        ("WEIRGATE_LISTEN__TRUSTED_PROXIES", "[\"10.0.0.0/8\"]"),
    ];
    let loaded = good_with("", &pairs);
    assert_eq!(loaded.config.listen.address.to_string(), "127.0.0.1:9");
    assert_eq!(loaded.config.listen.trusted_proxies.len(), 1);
}
