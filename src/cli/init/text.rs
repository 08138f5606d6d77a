//! Makes the text of a configuration of the shipped one: table by table, and line by line.

use toml::Value;

use super::discovery::{DiscoveredProvider, Discovery, ProviderState, provider_of};
use crate::cli::shipped;

/// Returns the configuration. `catalog` is the path of the catalogue.
pub(super) fn configure(found: &Discovery, catalog: &str) -> String {
    let has_provider = found.on().next().is_some();
    let tables = split_tables(shipped::CONFIG);
    let tables = tables.into_iter().map(|table| {
        let header = table.first().copied().unwrap_or_default();
        let lines = match header {
            "[store]" => configure_store(&table, found),
            "[shared]" => match &found.redis {
                Some(url) => with_option(&table, "redis", Some(&Value::from(url.as_str()))),
                None => to_owned(&table),
            },
            "[models]" => with_option(&table, "file", Some(&Value::from(catalog))),
            _ => match provider_of(header) {
                Some(name) => {
                    let mut providers = found.providers.iter();
                    let provider = providers.find(|provider| provider.name == name);
                    provider.map_or_else(|| to_owned(&table), |it| configure_provider(&table, it))
                }
                None => to_owned(&table),
            },
        };
        match has_provider && uses_sandbox(&table) {
            true => comment_out(&lines),
            false => lines,
        }
    });
    let lines: Vec<String> = tables.flatten().collect();
    lines.join("\n") + "\n"
}

/// Returns the lines of the file before its first table, and those of each table.
fn split_tables(text: &str) -> Vec<Vec<&str>> {
    let mut tables: Vec<Vec<&str>> = vec![Vec::new()];
    for line in text.lines() {
        if line.starts_with('[') {
            tables.push(Vec::new());
        }
        if let Some(table) = tables.last_mut() {
            table.push(line);
        }
    }
    tables
}

fn to_owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Returns whether a table is of the first run alone.
fn uses_sandbox(table: &[&str]) -> bool {
    let mut lines = table.iter().filter(|line| !line.starts_with('#'));
    lines.any(|line| {
        line.starts_with('[') && line.contains("sandbox") || line.contains("\"sandbox\"")
    })
}

fn comment_out(lines: &[String]) -> Vec<String> {
    let line = |line: &String| match line.is_empty() || line.starts_with('#') {
        true => line.clone(),
        false => format!("#{line}"),
    };
    lines.iter().map(line).collect()
}

/// Sets an option of a table, in the place of its line, also of one that is commented out; `None` comments it out.
fn with_option(table: &[&str], key: &str, value: Option<&Value>) -> Vec<String> {
    set_option(to_owned(table), key, value)
}

fn set_option(mut lines: Vec<String>, key: &str, value: Option<&Value>) -> Vec<String> {
    let begins = |line: &String| {
        let line = line.strip_prefix('#').unwrap_or(line);
        line.strip_prefix(key)
            .is_some_and(|rest| rest.starts_with(" = "))
    };
    let at = lines.iter().position(begins);
    let text = value.map(|value| format!("{key} = {value}"));
    match (at.and_then(|at| lines.get_mut(at)), text) {
        (Some(line), Some(text)) => *line = text,
        (Some(line), None) if !line.starts_with('#') => line.insert(0, '#'),
        (None, Some(text)) => lines.insert(lines.len().min(2), text),
        (_, None) => {}
    }
    lines
}

fn configure_store(table: &[&str], found: &Discovery) -> Vec<String> {
    let mut lines = match &found.store {
        Some(url) => with_option(table, "url", Some(&Value::from(url.as_str()))),
        None => to_owned(table),
    };
    if let Some(variable) = found.database {
        let from = match variable {
            "DATABASE_URL" => "the value of DATABASE_URL, in WEIRGATE_STORE__URL",
            _ => "postgres://USER@HOST/DATABASE, in WEIRGATE_STORE__URL",
        };
        let hint = [
            format!(
                "# {variable} is set. For accounts in PostgreSQL, which several processes can share, it is {from},"
            ),
            "# and `secret` below is needed.".to_owned(),
        ];
        drop(lines.splice(1..1, hint));
    }
    lines
}

fn configure_provider(table: &[&str], provider: &DiscoveredProvider) -> Vec<String> {
    let mut lines = to_owned(table);
    for (key, value) in &provider.options {
        lines = set_option(lines, key, value.as_ref());
    }
    let state = match &provider.state {
        ProviderState::On => format!("# On: {} is set.", provider.variables.join(", ")),
        ProviderState::Refused { why, cure } => format!("# Off: {why}; {cure}."),
    };
    lines.insert(1, state);
    lines
}
