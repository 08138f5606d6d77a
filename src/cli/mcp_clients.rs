//! `weirgate mcp clients`: the clients of OAuth.

use clap::Subcommand;
use filters::mcp::oauth::client::{ClientMetadata, is_document_id};
use serde_json::json;

use super::accounts::{change_accounts, format_time, now_ms, on_store, write_deletion};
use super::arguments::{DeleteArgs, FormatArgs, IdArgs};
use super::{Exit, Output, Record, Source};
use crate::store::{OAuthClientRow, StoreError};

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
    List(FormatArgs),
    /// Show a client
    Show(IdArgs),
    /// Revoke a client: its tokens stop to count within a second, and it gets no other
    Revoke(IdArgs),
    /// Delete a revoked client. Its tokens stay ended; one that is named by a document may sign in again
    Delete(DeleteArgs<IdArgs>),
}

pub(super) fn run(command: &ClientsCommand, source: &Source, out: &mut Output) -> Result<(), Exit> {
    match command {
        ClientsCommand::List(output) => {
            let clients = on_store(source, out, async |store| store.oauth_clients().await)?;
            let records: Vec<Record> = clients.iter().map(to_record).collect();
            out.records(output.format, &COLUMNS, &records);
        }
        ClientsCommand::Show(args) => {
            let client = on_store(source, out, async |store| {
                let client = store.oauth_client(&args.id).await?;
                client.ok_or_else(|| StoreError::not_found("client", &args.id))
            })?;
            out.record(args.output.format, &COLUMNS, to_record(&client));
        }
        ClientsCommand::Revoke(args) => {
            let id = &args.id;
            change_accounts(source, out, async |store| {
                store.revoke_oauth_client(id, now_ms()).await
            })?;
            let done = json!({"done": "revoked", "id": id});
            out.done(args.output.format, &format!("revoked {id}"), None, &done);
        }
        ClientsCommand::Delete(args) => {
            let id = &args.of.id;
            let deletion = change_accounts(source, out, async |store| {
                store.delete_oauth_client(id, args.yes).await
            })?;
            let how = (args.yes, args.of.output.format);
            write_deletion(("client", id), &deletion, how, out)?;
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
