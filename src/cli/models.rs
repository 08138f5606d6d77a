//! `weirgate models`: the catalogue, and importers of price tables.

use std::path::Path;

use filters::models::routing::{WrittenMapping, WrittenModel};
use serde_json::json;

use super::{Exit, ImportFrom, ModelsCommand, Output, OutputFormat, Record, refuse_configuration};
use crate::config::Config;

mod import;

pub(in crate::cli) use import::{CAPABILITIES, decimal, read_entry_prices};

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
pub fn run(command: ModelsCommand, config: &Config, out: &mut Output) -> Exit {
    match command {
        ModelsCommand::List { format } => list(format, config, out),
        ModelsCommand::Import { from, file } => import_table(from, &file, out),
    }
}

fn list(format: OutputFormat, config: &Config, out: &mut Output) -> Exit {
    let catalog = match &config.models.catalog {
        Ok(catalog) => catalog,
        Err(problems) => return refuse_configuration(problems, out),
    };
    let is_on = |provider: &str| config.providers.iter().any(|known| known.name == provider);
    let mappings = catalog
        .models
        .iter()
        .flat_map(|model| model.providers.iter().map(move |at| (model, at)));
    let records: Vec<Record> = mappings
        .map(|(model, mapping)| to_record(model, mapping, is_on(&mapping.provider)))
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
