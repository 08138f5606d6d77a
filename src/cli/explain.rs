//! `weirgate explain`: shows how a request would be routed. The function that plans requests decides, without a
//! server.
//!
//! A new process has no measurements, so prices, capabilities and rules decide, and no request explores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use filters::accounts::AuthError;
use filters::fault::Fault;
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::hosts::ProviderKind;
use filters::models::routing::explanation::Considered;
use filters::models::routing::plan::{LeftOut, RoutePlan};
use serde_json::{Value, json};

use super::accounts::{now_ms, on_store};
use super::{Exit, Output, OutputFormat, Record, Source, load};
use crate::config::Config;
use crate::models::explain::{Asker, AskerNames, find_asker, plan};
use crate::models::planner::{self, Planner};
use crate::models::providers::providers;
use crate::store::DEFAULT_PROJECT;
use crate::telemetry::metrics::Metrics;

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate explain request.json
  weirgate explain request.json --org acme --key key_0190c3a2-… --session --format json";

/// The columns of the candidates.
const COLUMNS: [&str; 7] = [
    "provider", "model", "region", "name", "is_tried", "price", "score",
];
/// The columns of the providers that are left out.
const LEFT_OUT_COLUMNS: [&str; 4] = ["left_out", "model", "param", "reason"];

/// Arguments of `explain`.
#[derive(Args)]
pub(super) struct ExplainArgs {
    /// The body of a request for a chat completion, as JSON
    file: PathBuf,
    /// Plan for a caller of this organization; without it, for one on the platform's keys without rules
    #[arg(long)]
    org: Option<String>,
    /// The caller's project
    #[arg(long, default_value = DEFAULT_PROJECT, requires = "org")]
    project: String,
    /// The id of the caller's API key, whose rules hold
    #[arg(long, value_name = "ID", requires = "org")]
    key: Option<String>,
    /// Plan as for a request of a session
    #[arg(long)]
    session: bool,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(args: &ExplainArgs, source: &Source, out: &mut Output) -> Exit {
    explain(args, source, out).unwrap_or_else(|exit| exit)
}

fn explain(args: &ExplainArgs, source: &Source, out: &mut Output) -> Result<Exit, Exit> {
    let request = read(&args.file, out)?;
    let request = match ChatCompletions.parse(request.into()) {
        Ok(request) => request,
        Err(fault) => return Ok(refuse(&fault, args.format, out)),
    };
    let mut config = load(source, out)?.config;
    config.routing.exploration = 0.0;
    let planner = planner(config).map_err(|problem| {
        out.fail(&problem);
        Exit::Configuration
    })?;
    let asker = match &args.org {
        Some(org) => match find(org, args, source, out)? {
            Ok(asker) => asker,
            Err(error) => return Ok(refuse(&error.into(), args.format, out)),
        },
        None => Asker::default(),
    };
    Ok(match plan(&planner, &request, &asker, (args.session, 0)) {
        Ok(plan) => {
            print(&plan, args.format, out);
            Exit::Done
        }
        Err(fault) => refuse(&fault, args.format, out),
    })
}

fn read(file: &Path, out: &mut Output) -> Result<Vec<u8>, Exit> {
    let read = std::fs::read(file);
    read.map_err(|error| out.fail(&format!("{}: {error}", file.display())))
}

/// Returns the planner of a server with this configuration.
pub(super) fn planner(mut config: Config) -> Result<Planner, String> {
    for provider in &mut config.providers {
        if provider.kind == ProviderKind::Sandbox {
            // A server sets the port when it starts.
            provider.base_urls = vec!["http://127.0.0.1".to_owned()];
        }
    }
    let catalog = planner::load_catalog(&config)?;
    let metrics = Metrics::new().map_err(|error| error.to_string())?;
    let configured = planner::enabled_providers(&config);
    let settings = (&config.routing, config.media.fetch);
    let providers = providers(configured, settings, (&b"explain"[..], &metrics), &[])?;
    Ok(Planner::new(
        &config,
        &providers,
        catalog,
        &Arc::new(metrics),
        None,
    ))
}

/// Finds the organization, the project and the key in the store, or why the key would be refused.
fn find(
    organization: &str,
    args: &ExplainArgs,
    source: &Source,
    out: &mut Output,
) -> Result<Result<Asker, AuthError>, Exit> {
    on_store(source, out, async |store| {
        let names = AskerNames {
            organization,
            project: &args.project,
            key: args.key.as_deref(),
        };
        find_asker(store, names, now_ms()).await
    })
}

/// Writes the reason for which the request would be refused.
fn refuse(fault: &Fault, format: OutputFormat, out: &mut Output) -> Exit {
    if format == OutputFormat::Json {
        let error =
            json!({"status": fault.status(), "param": fault.param, "message": fault.message});
        out.json(&json!({ "error": error }));
        return Exit::Failed;
    }
    out.fail(&format!("{}: {}", fault.status(), fault.message))
}

fn print(plan: &RoutePlan, format: OutputFormat, out: &mut Output) {
    let Some(explanation) = &plan.explanation else {
        return;
    };
    if format == OutputFormat::Json {
        let mut text = Vec::new();
        explanation.write(&plan.left_out, &mut text);
        out.json(&serde_json::from_slice(&text).unwrap_or(Value::Null));
        return;
    }
    let candidates: Vec<Record> = explanation.considered.iter().map(to_record).collect();
    out.records(format, &COLUMNS, &candidates);
    let left_out = explanation.barred.iter().chain(&plan.left_out);
    let left_out: Vec<Record> = left_out.map(left_out_record).collect();
    if !left_out.is_empty() {
        out.line("");
        out.records(format, &LEFT_OUT_COLUMNS, &left_out);
    }
}

fn to_record(considered: &Considered) -> Record {
    let candidate = &considered.candidate;
    let values = [
        json!(candidate.mapping.provider),
        json!(candidate.model.id),
        json!(candidate.region),
        json!(candidate.mapping.name),
        json!(considered.is_tried),
        json!(considered.price_per_million()),
        json!(format!("{:.3}", considered.score)),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}

fn left_out_record(left_out: &LeftOut) -> Record {
    let values = [
        json!(left_out.provider),
        json!(left_out.model),
        json!(left_out.lack.param),
        json!(left_out.lack.reason),
    ];
    let columns = LEFT_OUT_COLUMNS.map(str::to_owned);
    columns.into_iter().zip(values).collect()
}
