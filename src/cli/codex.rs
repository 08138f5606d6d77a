//! `weirgate clients codex`. Source: docs/clients/codex.md.

use clap::Args;
use filters::json::quoted;
use filters::models::request::Effort;
use serde_json::{Value, json};

use super::clients::{asker, considered, show};
use super::explain;
use super::listener::ClientAddress;
use super::paste::Paste;
use super::{CheckFormat, Exit, Output, Source, load};
use crate::config::{API_KEY_VARIABLE, Config};
use crate::models::endpoints::codex;

/// The file of models beside the configuration, which names it without a folder.
const LIST: &str = "weirgate-models.json";

/// The arguments of `clients codex`.
#[derive(Args)]
pub(super) struct CodexArgs {
    /// A model, as requests name it; the first one is asked at the start [default: the models that Codex knows itself]
    #[arg(long)]
    model: Vec<String>,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: CheckFormat,
}

pub(super) fn run(args: &CodexArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let config = load(source, out)?.config;
    let address = ClientAddress::from_config(&config).map_err(|problem| out.fail(problem))?;
    let models = list(&args.model, config).map_err(|problem| out.fail(&problem))?;
    let first = args.model.first().map(String::as_str);
    show(
        &address,
        &pastes(address.url(), first, models),
        args.format,
        out,
    );
    Ok(())
}

/// Returns the list of these models; `None`: Codex may know all of them itself, and would take ours for all there are.
///
/// Errors: a model that the gateway would refuse.
fn list(names: &[String], config: Config) -> Result<Option<Value>, String> {
    let asker = asker(&config);
    let planner = explain::planner(config)?;
    let mut list = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let candidates = considered(&planner, name, &asker)?;
        let Some(first) = candidates.first() else {
            continue;
        };
        let mappings: Vec<_> = candidates.iter().map(|it| &*it.mapping).collect();
        let entry = codex::entry(name, (&first.model, place), &mappings, Effort::Max);
        list.push(entry);
    }
    let is_needed = names.iter().any(|name| !codex::is_known(name));
    Ok(is_needed.then(|| json!({ "models": list })))
}

fn pastes(url: &str, model: Option<&str>, list: Option<Value>) -> Vec<Paste> {
    let mut lines = Vec::new();
    if let Some(model) = model {
        lines.push(format!("model = {}", quoted(model)));
    }
    lines.push("model_provider = \"weirgate\"".to_owned());
    if list.is_some() {
        lines.push(format!("model_catalog_json = \"{LIST}\""));
    }
    lines.push(String::new());
    lines.push("[model_providers.weirgate]".to_owned());
    lines.push("name = \"Weirgate\"".to_owned());
    lines.push(format!("base_url = {}", quoted(&format!("{url}/v1"))));
    lines.push(format!("env_key = \"{API_KEY_VARIABLE}\""));
    lines.push("wire_api = \"responses\"".to_owned());
    let mut pastes = vec![Paste {
        client: "Codex",
        place: "~/.codex/config.toml",
        text: lines.join("\n"),
        then: Some("the first lines go above all tables; the key is in the variable of env_key"),
    }];
    pastes.extend(list.map(|list| Paste {
        client: "Codex",
        place: "~/.codex/weirgate-models.json",
        text: format!("{list:#}"),
        then: Some("Codex takes these for all models that there are"),
    }));
    pastes
}
