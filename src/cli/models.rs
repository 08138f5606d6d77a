//! `weirgate models`: the catalogue, and importers of price tables.

use std::path::Path;

use filters::models::routing::{CatalogFile, WrittenMapping, WrittenModel};
use serde_json::{Value, json};

use super::accounts::format_time;
use super::{
    Exit, ImportFrom, ModelsCommand, Output, OutputFormat, Record, Source, load, move_alias,
    refuse_configuration, retiring,
};
use crate::config::Config;

mod import;

pub(in crate::cli) use import::{CAPABILITIES, decimal, read_entry_prices};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate models list --format json
  weirgate models retiring
  weirgate models retiring --within 30d     exits 1 if a model that is called ends within 30 days
  weirgate models move-alias fast --to small-model-2 --dry-run";

/// Usage is kept by the hour.
pub(super) const HOUR_MS: i64 = 3_600_000;
/// The columns of `models list`, which are also the fields of its JSON.
const COLUMNS: [&str; 8] = [
    "model",
    "provider",
    "name",
    "input_price",
    "output_price",
    "context_size",
    "max_output",
    "is_on",
];

/// Runs a command on the catalogue.
pub fn run(command: ModelsCommand, source: &Source, out: &mut Output) -> Exit {
    let loaded = match load(source, out) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let config = &loaded.config;
    match command {
        ModelsCommand::List { format } => list(format, config, out),
        ModelsCommand::Import { from, file } => import_table(from, &file, out),
        ModelsCommand::Retiring(args) => retiring::run(&args, (source, config), out),
        ModelsCommand::MoveAlias(args) => move_alias::run(&args, (source, config), out),
    }
}

/// Returns the catalogue, or prints all its problems.
pub(super) fn read_catalog<'c>(
    config: &'c Config,
    out: &mut Output,
) -> Result<&'c CatalogFile, Exit> {
    let catalog = config.models.catalog.as_ref();
    catalog.map_err(|problems| refuse_configuration(problems, out))
}

/// Returns whether a provider serves calls.
pub(super) fn is_on(config: &Config, provider: &str) -> bool {
    config.providers.iter().any(|known| known.name == provider)
}

/// Returns when the last hour began in which a model was called.
pub(super) fn last_call(hour: i64) -> Value {
    format_time(hour.checked_mul(HOUR_MS))
}

fn list(format: OutputFormat, config: &Config, out: &mut Output) -> Exit {
    let catalog = match read_catalog(config, out) {
        Ok(catalog) => catalog,
        Err(exit) => return exit,
    };
    let mappings = catalog
        .models
        .iter()
        .flat_map(|model| model.providers.iter().map(move |at| (model, at)));
    let records: Vec<Record> = mappings
        .map(|(model, mapping)| to_record(model, mapping, is_on(config, &mapping.provider)))
        .collect();
    out.records(format, &COLUMNS, &records);
    out.finish(Exit::Done)
}

fn to_record(model: &WrittenModel, mapping: &WrittenMapping, is_on: bool) -> Record {
    let fields = [
        json!(model.id),
        json!(mapping.provider),
        json!(mapping.name),
        json!(mapping.input_price),
        json!(mapping.output_price),
        json!(mapping.context_size),
        json!(mapping.max_output),
        json!(is_on),
    ];
    COLUMNS
        .iter()
        .map(|column| (*column).to_owned())
        .zip(fields)
        .collect()
}

fn import_table(from: ImportFrom, file: &Path, out: &mut Output) -> Exit {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return out.fail(&format!("{}: {error}", file.display())),
    };
    let imported = match from {
        ImportFrom::Litellm => import::from_litellm(&text),
        ImportFrom::ModelsDev => import::from_models_dev(&text),
    };
    match imported {
        Ok(imported) => {
            out.text(&imported.toml);
            for line in imported.summary.lines() {
                out.warn(&line);
            }
            out.finish(Exit::Done)
        }
        Err(problem) => out.fail(&format!("{}: {problem}", file.display())),
    }
}
