//! `weirgate log-export`: the table for ClickHouse.

use clap::Subcommand;
use serde_json::json;

use super::arguments::FormatArgs;
use super::{Exit, Output, OutputFormat, Source, load};
use crate::config::DestinationConfig;
use crate::log_export::columns::{COLUMNS, create_table};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate log-export schema | clickhouse-client";

/// The commands of `log-export`.
#[derive(Subcommand)]
pub(super) enum LogExportCommand {
    /// Print the statement that makes the table for ClickHouse, under the names of [log_export]
    Schema(FormatArgs),
}

/// Runs a command.
pub(super) fn run(command: &LogExportCommand, source: &Source, out: &mut Output) -> Exit {
    let LogExportCommand::Schema(output) = command;
    let loaded = match load(source, out) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let destination = loaded.config.log_export.map(|export| export.destination);
    let (database, table) = match destination {
        Some(DestinationConfig::ClickHouse(table)) => (table.database, table.table),
        _ => ("default".to_owned(), "weirgate_calls".to_owned()),
    };
    let statement = create_table(&database, &table);
    match output.format {
        OutputFormat::Json => {
            let columns = COLUMNS.iter();
            let columns = columns.map(|it| json!({"name": it.name, "type": it.sql}));
            let columns: Vec<_> = columns.collect();
            out.json(&json!({"statement": statement, "columns": columns}));
        }
        OutputFormat::Table => out.text(&statement),
    }
    Exit::Done
}
