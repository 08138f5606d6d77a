//! `weirgate mcp`: what to paste into MCP clients so that they know this server, and the commands of those that signed in.

use clap::{Args, Subcommand};
use filters::proxy::OwnOrigin;
use serde_json::{Map, Value, json};

use super::listener::ClientAddress;
use super::paste::Paste;
use super::{CheckFormat, Exit, Output, Source, load, mcp_clients};
use crate::config::{API_KEY_VARIABLE, Config};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate mcp                    what to paste into Claude Code, Codex, Cursor and VS Code
  weirgate mcp --format json
  weirgate mcp clients list       who has signed in, or may
  weirgate mcp clients revoke client_0190c3a2-…";

/// The arguments of `mcp`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct McpArgs {
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    format: CheckFormat,
    #[command(subcommand)]
    command: Option<McpCommand>,
}

/// The commands of `mcp`.
#[derive(Subcommand)]
enum McpCommand {
    /// Clients of OAuth: applications that persons let act with their API keys
    #[command(subcommand)]
    Clients(mcp_clients::ClientsCommand),
}

/// The name of the server in clients.
const NAME: &str = "weirgate";

/// How a client authenticates.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Credentials {
    /// A person signs in on the consent page.
    OAuth,
    /// An API key.
    Key,
}

pub(super) fn run(args: &McpArgs, source: &Source, out: &mut Output) -> Exit {
    let done = match &args.command {
        Some(McpCommand::Clients(command)) => mcp_clients::run(command, source, out),
        None => print(args.format, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn print(format: CheckFormat, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let loaded = load(source, out)?;
    let server = find_server(&loaded.config).map_err(|problem| out.fail(problem))?;
    let pastes = pastes(&server);
    match format {
        CheckFormat::Json => {
            let pastes: Vec<_> = pastes.iter().map(to_json).collect();
            out.json(&json!({"url": server.url, "clients": pastes}));
        }
        CheckFormat::Human => out.text(&format_pastes(&server, &pastes)),
    }
    if let Some(note) = server.note {
        out.note(note);
    }
    Ok(())
}

/// The MCP server for clients.
struct McpServer {
    url: String,
    has_oauth: bool,
    /// A note about the address, for people.
    note: Option<&'static str>,
}

/// Errors: there is no server, or its address is not known before it runs.
fn find_server(config: &Config) -> Result<McpServer, &'static str> {
    if config.mcp.is_none() {
        return Err("the MCP server is off: set `enabled = true` in [mcp]");
    }
    let address = ClientAddress::from_config(config)?;
    let (has_oauth, unsigned) = match &address {
        ClientAddress::Public(public) => {
            let own = OwnOrigin {
                public: Some(public.clone()),
                is_encrypted: config.listen.tls.is_some(),
            };
            let why = "Signing in (OAuth) needs an https address in mcp.public_url.";
            (own.for_host(None, None).is_some(), why)
        }
        ClientAddress::Listener(listener) => {
            let why = "Signing in (OAuth) needs mcp.public_url, which is not set.";
            (listener.is_loopback, why)
        }
    };
    Ok(McpServer {
        url: format!("{}/mcp", address.url()),
        has_oauth,
        note: address.note().or((!has_oauth).then_some(unsigned)),
    })
}

/// A client, the place of its text, the text, and the next step.
type Row = (&'static str, &'static str, String, Option<&'static str>);

fn pastes(server: &McpServer) -> Vec<(Credentials, Paste)> {
    let oauth = server.has_oauth.then(|| oauth_rows(&server.url));
    let oauth = oauth.into_iter().flatten();
    let keys = key_rows(&server.url).into_iter();
    oauth
        .map(|row| (Credentials::OAuth, row))
        .chain(keys.map(|row| (Credentials::Key, row)))
        .map(|(credentials, (client, place, text, then))| {
            let paste = Paste {
                client,
                place,
                text,
                then,
            };
            (credentials, paste)
        })
        .collect()
}

fn oauth_rows(url: &str) -> [Row; 4] {
    [
        (
            "Claude Code",
            "a shell",
            format!("claude mcp add --transport http {NAME} {url}"),
            Some("/mcp in Claude Code signs in"),
        ),
        (
            "Codex",
            "~/.codex/config.toml",
            format!("[mcp_servers.{NAME}]\nurl = \"{url}\""),
            Some("`codex mcp login weirgate` signs in"),
        ),
        (
            "Cursor",
            "~/.cursor/mcp.json",
            servers("mcpServers", json!({"url": url})),
            None,
        ),
        (
            "VS Code",
            ".vscode/mcp.json",
            servers("servers", json!({"type": "http", "url": url})),
            None,
        ),
    ]
}

fn key_rows(url: &str) -> [Row; 4] {
    let bearer = |variable: &str| json!({"Authorization": format!("Bearer {variable}")});
    let claude_code = bearer(&format!("${{{API_KEY_VARIABLE}}}"));
    let cursor = bearer(&format!("${{env:{API_KEY_VARIABLE}}}"));
    let vs_code = bearer("${input:weirgate-key}");
    let vs_code = json!({"type": "http", "url": url, "headers": vs_code});
    let input = json!({
        "type": "promptString", "id": "weirgate-key", "description": "API key of Weirgate", "password": true,
    });
    [
        (
            "Claude Code",
            ".mcp.json",
            servers(
                "mcpServers",
                json!({"type": "http", "url": url, "headers": claude_code}),
            ),
            None,
        ),
        (
            "Codex",
            "~/.codex/config.toml",
            format!(
                "[mcp_servers.{NAME}]\nurl = \"{url}\"\nbearer_token_env_var = \"{API_KEY_VARIABLE}\""
            ),
            None,
        ),
        (
            "Cursor",
            "~/.cursor/mcp.json",
            servers("mcpServers", json!({"url": url, "headers": cursor})),
            None,
        ),
        (
            "VS Code",
            ".vscode/mcp.json",
            format!(
                "{:#}",
                json!({"inputs": [input], "servers": {NAME: vs_code}})
            ),
            Some("VS Code asks for the key"),
        ),
    ]
}

/// Returns the JSON of a client's file that contains only this server.
fn servers(member: &str, server: Value) -> String {
    format!("{:#}", json!({member: {NAME: server}}))
}

fn to_json((credentials, paste): &(Credentials, Paste)) -> Map<String, Value> {
    let credentials = match credentials {
        Credentials::OAuth => "oauth",
        Credentials::Key => "key",
    };
    let mut fields = paste.to_json();
    fields.insert("credentials".to_owned(), credentials.into());
    fields
}

fn format_pastes(server: &McpServer, pastes: &[(Credentials, Paste)]) -> String {
    let mut out = format!("MCP server: {}\n", server.url);
    let mut last = None;
    for (credentials, paste) in pastes {
        if last.replace(*credentials) != Some(*credentials) {
            out.push_str(match credentials {
                Credentials::OAuth => {
                    "\nWithout a key: the client opens a page where you sign in with an API key, and gets a token of its own.\n"
                }
                Credentials::Key => {
                    "\nWith an API key, which the client takes from the environment: export WEIRGATE_API_KEY=wg_…\n"
                }
            });
        }
        paste.write(&mut out);
    }
    out
}

#[cfg(test)]
mod tests;
