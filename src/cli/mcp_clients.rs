//! `weirgate mcp clients`: the clients of OAuth.

use clap::Subcommand;
use filters::mcp::oauth::client::{ClientMetadata, is_document_id};
use serde_json::json;

use super::accounts::{format_time, now_ms, on_store};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::OAuthClientRow;

/// The columns of `mcp clients list`, which are also the fields of its JSON.
const COLUMNS: [&str; 7] = [
    "id",
    "name",
    "kind",
    "status",
    "grants",
    "created_at",
    "used_at",
];

/// The commands of `mcp clients`.
#[derive(Subcommand)]
pub(super) enum ClientsCommand {
    /// List the clients, revoked ones too
    List {
        /// For people or for programs
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
    /// Revoke a client: its tokens stop to count within a second, and it gets no other
    Revoke {
        /// The client's id, as `mcp clients list` shows it
        id: String,
    },
}

pub(super) fn run(command: &ClientsCommand, source: &Source, out: &mut Output) -> Result<(), Exit> {
    match command {
        ClientsCommand::List { format } => {
            let clients = on_store(source, out, async |store| store.oauth_clients().await)?;
            let records: Vec<Record> = clients.iter().map(to_record).collect();
            out.records(*format, &COLUMNS, &records);
        }
        ClientsCommand::Revoke { id } => {
            on_store(source, out, async |store| {
                store.revoke_oauth_client(id, now_ms()).await
            })?;
            out.note(&format!("revoked {id}"));
        }
    }
    Ok(())
}

fn to_record(client: &OAuthClientRow) -> Record {
    let metadata = ClientMetadata::read(client.metadata.as_bytes()).ok();
    let kind = match is_document_id(&client.id) {
        true => "document",
        false => "registered",
    };
    let status = match client.revoked_at_ms {
        Some(_) => "revoked",
        None => "active",
    };
    let used_at_ms = Some(client.used_at_ms).filter(|at_ms| *at_ms > 0);
    let values = [
        json!(client.id),
        json!(metadata.and_then(|metadata| metadata.name)),
        json!(kind),
        json!(status),
        json!(client.grants),
        format_time(Some(client.created_at_ms)),
        format_time(used_at_ms),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
