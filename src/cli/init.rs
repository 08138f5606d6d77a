//! `weirgate init`: a configuration with what the environment has, and the catalogue beside it.
//!
//! The text is that of the shipped configuration, with each option and its explanation. What is switched on is tried first, so
//! that the file loads. No secret is written: variables are named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::{Exit, Output, OutputFormat, new_files, shipped};
use crate::config;

mod discovery;
#[cfg(test)]
mod tests;
mod text;

use discovery::{Discovery, ProviderState};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate init && weirgate
  weirgate init /etc/weirgate/weirgate.toml
  weirgate init --print | less

Without FILE it is conf/weirgate.toml, or /etc/weirgate/weirgate.toml for root where there is no folder conf. A file that is
there already stays as it is.";

/// Where a configuration is looked for, from low to high.
const LOCAL: &str = "conf/weirgate.toml";
const OF_SYSTEM: &str = "/etc/weirgate/weirgate.toml";
/// The store of an installed server.
const STORE_OF_SYSTEM: &str = "/var/lib/weirgate";
/// The catalogue, beside the configuration.
const CATALOG: &str = "models.toml";

/// Arguments of `init`.
#[derive(Args)]
pub(super) struct InitArgs {
    /// The configuration to write
    file: Option<PathBuf>,
    /// Print it instead, and write nothing
    #[arg(long)]
    print: bool,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Writes a configuration and a catalogue.
pub(super) fn run(args: &InitArgs, out: &mut Output) -> Exit {
    let environment: BTreeMap<String, String> = config::environment().collect();
    let is_root = rustix::process::geteuid().is_root();
    let usual = usual_file(is_root, Path::new("conf").is_dir());
    let file = args.file.clone().unwrap_or(usual);
    init(&file, args, &environment, out)
}

/// Returns where the configuration is written if nothing names a place.
fn usual_file(is_root: bool, has_folder: bool) -> PathBuf {
    PathBuf::from(match is_root && !has_folder {
        true => OF_SYSTEM,
        false => LOCAL,
    })
}

fn init(
    file: &Path,
    args: &InitArgs,
    environment: &BTreeMap<String, String>,
    out: &mut Output,
) -> Exit {
    if !args.print && file.exists() {
        let text = new_files::is_there(file);
        return out.fail(&format!(
            "{text}; `weirgate init --print` shows what would be written"
        ));
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    let catalog = folder.join(CATALOG);
    let folder_of_store = (file == Path::new(OF_SYSTEM)).then_some(STORE_OF_SYSTEM);
    let found = Discovery::new(environment, folder_of_store);
    let text = text::configure(&found, &name_catalog(file, &catalog));
    if args.print {
        out.text(&text);
        tell(&found, out);
        return Exit::Done;
    }
    let has_catalog = catalog.exists();
    let mut files = vec![(file.to_owned(), &*text)];
    if !has_catalog {
        files.insert(0, (catalog.clone(), shipped::CATALOG));
    }
    if let Err(error) = new_files::create(&files) {
        return out.fail(&error);
    }
    match args.format {
        OutputFormat::Json => out.json(&to_json(file, &catalog, has_catalog, &found)),
        OutputFormat::Table => {
            tell(&found, out);
            if has_catalog {
                out.note(&format!("kept the catalogue {}", catalog.display()));
            }
            out.note(&next_commands(file, &found));
            for (path, _) in &files {
                out.line(&path.display().to_string());
            }
        }
    }
    Exit::Done
}

/// Returns the path of the catalogue as the configuration names it. Relative paths start at the working directory, which is
/// known for the usual place alone.
fn name_catalog(file: &Path, catalog: &Path) -> String {
    let absolute = std::path::absolute(catalog).unwrap_or_else(|_| catalog.to_owned());
    let named = match file == Path::new(LOCAL) {
        true => catalog,
        false => &absolute,
    };
    named.to_string_lossy().into_owned()
}

/// Tells people what was found.
fn tell(found: &Discovery, out: &mut Output) {
    let on = found
        .on()
        .map(|provider| format!("{} ({})", provider.name, provider.variables.join(", ")));
    let on: Vec<String> = on.collect();
    out.note(&match on.is_empty() {
        true => "found no key of a provider, so the built-in sandbox is on".to_owned(),
        false => format!("found {}", on.join(", ")),
    });
    for provider in &found.providers {
        if let (ProviderState::Refused { why, cure }, false) =
            (&provider.state, provider.variables.is_empty())
        {
            let variables = provider.variables.join(", ");
            out.warn(&format!(
                "{} stays off, although {variables} is set: {why}\n  = cure: {cure}",
                provider.name
            ));
        }
    }
    for note in &found.notes {
        out.note(note);
    }
}

fn next_commands(file: &Path, found: &Discovery) -> String {
    let is_found = [LOCAL, OF_SYSTEM]
        .iter()
        .any(|usual| Path::new(usual) == file);
    let option = match is_found {
        true => String::new(),
        false => format!(" -c {}", file.display()),
    };
    let online = match found.on().next() {
        Some(_) => " --online",
        None => "",
    };
    format!("next:\n  weirgate check{option}{online}\n  weirgate{option}")
}

fn to_json(file: &Path, catalog: &Path, has_catalog: bool, found: &Discovery) -> Value {
    let providers: Vec<Value> = found
        .providers
        .iter()
        .map(|provider| {
            let mut row = json!({
                "name": provider.name,
                "variables": provider.variables,
                "is_on": provider.state == ProviderState::On,
            });
            if let (ProviderState::Refused { why, cure }, Some(row)) =
                (&provider.state, row.as_object_mut())
            {
                row.insert("why".to_owned(), json!(why));
                row.insert("cure".to_owned(), json!(cure));
            }
            row
        })
        .collect();
    json!({
        "file": file.display().to_string(),
        "catalog": catalog.display().to_string(),
        "is_catalog_new": !has_catalog,
        "is_sandbox_on": found.on().next().is_none(),
        "providers": providers,
        "notes": found.notes,
    })
}
