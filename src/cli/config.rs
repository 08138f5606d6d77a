//! `weirgate config`: the effective configuration, its schema, and what a reload would change.

use serde_json::{Value, json};

use super::{ConfigCommand, Exit, Output, OutputFormat, control, load};
use crate::config::{self, Origins, Source};
use crate::control::ControlCommand;

/// Shows the effective configuration of `source`, the schema of every configuration, or what a reload would change.
pub fn run(command: &ConfigCommand, source: &Source, out: &mut Output) -> Exit {
    match command {
        ConfigCommand::Schema => out.json(&config::schema()),
        ConfigCommand::Diff(args) => {
            return control::run(ControlCommand::Diff, args.format, source, out);
        }
        ConfigCommand::Show { origin, format } => match load(source, out) {
            Err(exit) => return exit,
            Ok(loaded) => show(&loaded.origins, *origin, *format, out),
        },
    }
    Exit::Done
}

/// Shape: `key = value  # origin` in lines, or an array of `{key, value, origin}`.
fn show(origins: &Origins, with_origin: bool, format: OutputFormat, out: &mut Output) {
    match format {
        OutputFormat::Json => {
            let rows = origins.iter().map(|(key, value, origin)| {
                let mut row = json!({ "key": key, "value": value });
                if let (true, Some(row)) = (with_origin, row.as_object_mut()) {
                    row.insert("origin".to_owned(), origin.to_string().into());
                }
                row
            });
            out.json(&Value::Array(rows.collect()));
        }
        OutputFormat::Table => {
            for (key, value, origin) in origins.iter() {
                let line = format!("{key} = {}", config::as_toml(value));
                out.line(&if with_origin {
                    format!("{line}  # {origin}")
                } else {
                    line
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn shown(format: OutputFormat) -> String {
        let env = [("WEIRGATE_ROUTING__ATTEMPTS".to_owned(), "5".to_owned())];
        let loaded = config::from_str("[listen]\nhttp2 = false\n", env)
            .ok()
            .unwrap();
        let (mut out, captured) = Output::captured();
        show(&loaded.origins, true, format, &mut out);
        captured.out()
    }

    #[test]
    fn each_value_says_where_it_came_from() {
        let shown = shown(OutputFormat::Table);
        for line in [
            "listen.http2 = false  # weirgate.toml:2",
            "routing.attempts = 5  # env WEIRGATE_ROUTING__ATTEMPTS",
            "listen.address = \"127.0.0.1:8080\"  # default",
        ] {
            assert!(
                shown.lines().any(|shown| shown == line),
                "{line} in:\n{shown}"
            );
        }
    }

    #[test]
    fn json_says_the_same() {
        let rows: Vec<Value> = serde_json::from_str(&shown(OutputFormat::Json)).unwrap();
        let row = json!({ "key": "listen.http2", "value": false, "origin": "weirgate.toml:2" });
        assert!(rows.contains(&row));
    }
}
