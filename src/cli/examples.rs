//! `weirgate examples`: a command line for each endpoint of the running server.

use std::time::Duration;

use clap::Args;

use super::arguments::FormatArgs;
use super::listener::Listener;
use super::{Exit, Output, OutputFormat, Source, load};
use crate::app::openapi::curl::{self, ApiKey, Keys};
use crate::config::{API_KEY_VARIABLE, Config};
use crate::models::planner;
use crate::outbound::{Outbound, describe, read_success};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate examples               the key is taken from $WEIRGATE_API_KEY by the shell that runs a line
  weirgate examples --key wg_…
  weirgate examples --url https://gateway.example.com";

/// The time limit for fetching the whole description.
const DESCRIPTION_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of the description.
const MAX_DESCRIPTION_BYTES: usize = 16 << 20;

/// The arguments of `examples`.
#[derive(Args)]
pub(super) struct ExamplesArgs {
    /// The API key in the lines; without it they name the variable WEIRGATE_API_KEY
    #[arg(long)]
    key: Option<String>,
    /// The server's address [default: that of listen.address]
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    output: FormatArgs,
}

pub(super) fn run(args: &ExamplesArgs, source: &Source, out: &mut Output) -> Exit {
    match print(args, source, out) {
        Ok(()) => Exit::Done,
        Err(exit) => exit,
    }
}

fn print(args: &ExamplesArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let config = load(source, out)?.config;
    let url = match &args.url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            let listener = Listener::from_config(&config);
            let listener = listener.map_err(|why| out.fail(&format!("{why}: give --url")))?;
            listener.url
        }
    };
    let document = fetch(&url).map_err(|why| {
        let cure = "start it with `weirgate serve`, or name another with --url";
        out.fail(&format!("{url}: no description came: {why}: {cure}"))
    })?;
    let lines = lines(&config, &document, &url, args.key.as_ref());
    match args.output.format {
        OutputFormat::Json => out.json(&lines.into()),
        OutputFormat::Table => lines.iter().for_each(|line| out.line(line)),
    }
    Ok(())
}

/// Returns the description of a running server.
fn fetch(url: &str) -> Result<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    // All clients share one crypto provider, which may already be installed.
    _ = rustls::crypto::ring::default_provider().install_default();
    runtime.block_on(async {
        let client = Outbound::new(DESCRIPTION_TIMEOUT, [url]).map_err(describe)?;
        let request = client.get(&format!("{url}/v1/openapi.json"))?;
        let reply = request.send().await.map_err(describe)?;
        let body = read_success(reply, MAX_DESCRIPTION_BYTES).await?;
        Ok(body.to_vec())
    })
}

fn lines(config: &Config, document: &[u8], url: &str, key: Option<&String>) -> Vec<String> {
    let api = match key {
        Some(key) => ApiKey::Text(key.clone()),
        None => ApiKey::Variable(API_KEY_VARIABLE),
    };
    let keys = Keys {
        api: Some(api),
        ..Keys::from_sandboxes(config)
    };
    let catalog = planner::load_catalog(config);
    let serves = |model: &str| {
        let catalog = catalog.as_ref().ok();
        catalog.is_some_and(|catalog| catalog.find(model).is_some())
    };
    let commands = curl::commands(document, url, &keys, serves);
    commands.into_iter().map(|command| command.line).collect()
}
