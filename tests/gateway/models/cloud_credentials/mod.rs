//! Clouds' own sign-in: sources of credentials, and what requests to providers carry.

mod failures;
mod refresh;
mod signatures;
mod sources;

use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client;
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

/// Names a managed identity at this server.
fn machine(server: &Upstream) -> [(&'static str, String); 1] {
    [("AZURE_POD_IDENTITY_AUTHORITY_HOST", server.url())]
}

/// A gateway whose first provider signs in with these lines of its table.
fn gateway(
    [first, second]: [&Upstream; 2],
    table: &str,
    env: &[(&'static str, String)],
) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\n{table}\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        first.url(),
        second.url()
    );
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, &**value)).collect();
    Gateway::start_with_env(&toml, MODELS, &env)
}

/// A provider that answers every call.
fn answering() -> Upstream {
    Upstream::answering(|_: &Received| reply())
}

/// The reply with a token.
fn token(text: &str, lives_s: u64) -> Reply {
    let body = format!("{{\"access_token\":\"{text}\",\"expires_in\":\"{lives_s}\"}}");
    Reply::json(200, body)
}

/// The text of `/readyz?verbose`.
fn readiness(gateway: &Gateway) -> String {
    client::ask(gateway.admin(), &Ask::get("/readyz?verbose"))
        .text()
        .to_owned()
}
