//! `weirgate clients`: what to paste into clients of the model gateway so that their requests come here.

use std::sync::Arc;

use clap::{Args, Subcommand};
use filters::accounts::{Mode, Plan};
use filters::fault::Fault;
use filters::models::front::Front;
use filters::models::fronts::messages::Messages;
use filters::models::hosts::ProviderKind;
use filters::models::request::ModelRequest;
use filters::models::routing::resolve::Candidate;
use serde_json::{Map, json};

use super::codex::{self, CodexArgs};
use super::explain;
use super::listener::ClientAddress;
use super::paste::Paste;
use super::{CheckFormat, Exit, Output, Source, load};
use crate::config::{API_KEY_VARIABLE, Config};
use crate::models::explain::{Asker, caller, plan};
use crate::models::planner::{Planner, enabled_providers};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate clients claude-code                       its own models
  weirgate clients claude-code --model gpt-5-mini    another model for all that it asks
  weirgate clients claude-code --model claude-opus --small-model gpt-5-mini --format json
  weirgate clients codex --model claude-sonnet --model glm-5";

/// The clients.
#[derive(Subcommand)]
pub(super) enum ClientsCommand {
    /// Claude Code: a shell's variables, and its settings
    ClaudeCode(ClaudeCodeArgs),
    /// Codex: its configuration, and a list of models
    Codex(CodexArgs),
}

pub(super) fn run(command: &ClientsCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        ClientsCommand::ClaudeCode(args) => claude_code(args, source, out),
        ClientsCommand::Codex(args) => codex::run(args, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

/// Prints what to paste.
pub(super) fn show(
    address: &ClientAddress,
    pastes: &[Paste],
    format: CheckFormat,
    out: &mut Output,
) {
    match format {
        CheckFormat::Json => {
            let pastes: Vec<_> = pastes.iter().map(Paste::to_json).collect();
            out.json(&json!({"url": address.url(), "clients": pastes}));
        }
        CheckFormat::Human => {
            let mut text = format!("Gateway: {}\n", address.url());
            for paste in pastes {
                paste.write(&mut text);
            }
            out.text(&text);
        }
    }
    if let Some(note) = address.note() {
        out.note(note);
    }
}

/// Returns a caller who may use all providers, whosever keys pay.
pub(super) fn asker(config: &Config) -> Asker {
    let providers = enabled_providers(config).map(|provider| provider.name.clone());
    Asker {
        caller: Some(caller(
            Default::default(),
            "",
            (Mode::Hybrid, Plan::Max),
            None,
        )),
        byok_providers: providers.collect(),
    }
}

/// Returns the candidates for a request as the clients make it.
///
/// Errors: a model that the gateway would refuse to a client with tools.
pub(super) fn considered(
    planner: &Planner,
    model: &str,
    asker: &Asker,
) -> Result<Vec<Arc<Candidate>>, String> {
    let explain =
        |fault: Fault| format!("{}; `weirgate models list` has the models", fault.message);
    let request = request(model).map_err(explain)?;
    let planned = plan(planner, &request, asker, (true, 0)).map_err(explain)?;
    let considered = planned.explanation.iter().flat_map(|it| &it.considered);
    Ok(considered.map(|it| Arc::clone(&it.candidate)).collect())
}

fn request(model: &str) -> Result<ModelRequest, Fault> {
    let body = json!({
        "model": model,
        "max_tokens": 1,
        "stream": true,
        "messages": [{"role": "user", "content": "Hello"}],
        "tools": [{"name": "read", "input_schema": {"type": "object"}}],
    });
    Messages.parse(body.to_string().into_bytes().into())
}

/// The arguments of `clients claude-code`.
#[derive(Args)]
pub(super) struct ClaudeCodeArgs {
    /// The model, as requests name it [default: the models that Claude Code names by itself]
    #[arg(long)]
    model: Option<String>,
    /// The model for small tasks, such as titles [default: that of --model]
    #[arg(long, requires = "model")]
    small_model: Option<String>,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: CheckFormat,
}

fn claude_code(args: &ClaudeCodeArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let config = load(source, out)?.config;
    let address = ClientAddress::from_config(&config).map_err(|problem| out.fail(problem))?;
    let models = Models::find(args, config).map_err(|problem| out.fail(&problem))?;
    show(&address, &pastes(address.url(), &models), args.format, out);
    if models.lacks_own {
        out.note(LACKS_OWN);
    }
    Ok(())
}

/// The models that the client is told to ask for.
#[derive(Default)]
struct Models {
    main: Option<String>,
    small: Option<String>,
    /// The fewest tokens that a provider of these models takes, where that is known.
    context_size: Option<u64>,
    /// Whether a provider of another API answers and no model judges for it, so that no verdicts of auto mode come.
    is_unjudged: bool,
    /// Whether nothing serves the models that the client asks for by itself.
    lacks_own: bool,
}

impl Models {
    /// Errors: a model that the gateway would refuse to a client with tools, whosever keys pay.
    fn find(args: &ClaudeCodeArgs, config: Config) -> Result<Self, String> {
        let asker = asker(&config);
        let vendors = enabled_providers(&config);
        let vendors = vendors.filter(|provider| provider.kind == ProviderKind::Anthropic);
        let vendors: Vec<String> = vendors.map(|provider| provider.name.clone()).collect();
        let has_judge = config.judge_model.is_some();
        let planner = explain::planner(config)?;
        let Some(model) = &args.model else {
            return Ok(Self {
                lacks_own: considered(&planner, OWN_MODEL, &asker).is_err(),
                ..Self::default()
            });
        };
        let small = args.small_model.as_ref().unwrap_or(model);
        let (mut context_size, mut is_foreign) = (None, false);
        for model in [model, small] {
            let candidates = considered(&planner, model, &asker)?;
            let mappings = || candidates.iter().map(|candidate| &candidate.mapping);
            is_foreign |= mappings()
                .any(|mapping| !vendors.iter().any(|vendor| **vendor == *mapping.provider));
            let sizes = mappings().filter_map(|mapping| mapping.context_size);
            context_size = sizes.chain(context_size).min();
        }
        Ok(Self {
            main: Some(model.clone()),
            small: Some(small.clone()),
            context_size,
            is_unjudged: is_foreign && !has_judge,
            lacks_own: false,
        })
    }

    /// Returns the variables that name the models.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let main = self
            .main
            .iter()
            .flat_map(|model| MAIN_MODEL_VARIABLES.map(|variable| (variable, model.clone())));
        let small = self
            .small
            .iter()
            .map(|model| (SMALL_MODEL_VARIABLE, model.clone()));
        let window = self.context_size;
        let window = window.map(|tokens| (WINDOW_VARIABLE, tokens.to_string()));
        let judges = self.is_unjudged.then(|| (JUDGES_VARIABLE, "0".to_owned()));
        main.chain(small).chain(window).chain(judges).collect()
    }
}

const LACKS_OWN: &str = "No provider that is on serves the models that Claude Code names by itself: name one with --model.";
/// A model that the client asks for by itself.
const OWN_MODEL: &str = "claude-haiku-4-5";
const MAIN_MODEL_VARIABLES: [&str; 3] = [
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
];
const SMALL_MODEL_VARIABLE: &str = "ANTHROPIC_DEFAULT_HAIKU_MODEL";
/// Whether the provider judges the calls of tools in auto mode. Otherwise the client asks a model to.
const JUDGES_VARIABLE: &str = "CLAUDE_CODE_AUTO_MODE_SERVER";
/// The most tokens that models take whose names the client does not know.
const WINDOW_VARIABLE: &str = "CLAUDE_CODE_MAX_CONTEXT_TOKENS";

fn pastes(url: &str, models: &Models) -> [Paste; 2] {
    let address = ("ANTHROPIC_BASE_URL", url.to_owned());
    let variables: Vec<_> = std::iter::once(address).chain(models.variables()).collect();
    let mut lines: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("export {name}={}", quote(value)))
        .collect();
    lines.insert(1, "export ANTHROPIC_AUTH_TOKEN=wg_…".to_owned());
    let variables = variables.into_iter();
    let environment: Map<_, _> = variables
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let key_helper = format!("printenv {API_KEY_VARIABLE}");
    let settings = json!({"apiKeyHelper": key_helper, "env": environment});
    [
        Paste {
            client: "Claude Code",
            place: "a shell",
            text: lines.join("\n"),
            then: Some("the key is yours"),
        },
        Paste {
            client: "Claude Code",
            place: "~/.claude/settings.json",
            text: format!("{settings:#}"),
            then: Some("apiKeyHelper is any program that prints the key"),
        },
    ]
}

/// Quotes a value for a shell, where it needs that.
fn quote(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+%".contains(c);
    match value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests;
