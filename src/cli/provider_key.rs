//! `weirgate provider-key`: the callers' BYOK keys.

use std::io::Read;

use clap::{Args, Subcommand};
use filters::models::cloud_credentials::Cloud;
use filters::models::cloud_credentials::own_keys::check_own_key;
use serde_json::json;

use super::accounts::{change_accounts, format_time, now_ms, on_store};
use super::arguments::{FormatArgs, IdArgs, RenameArgs};
use super::{Exit, Output, OutputFormat, Record, Source, load};
use crate::config::Config;
use crate::store::{ProviderKey, StoreError};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate provider-key add --org acme --provider openai --label team < key.txt
  weirgate provider-key add --org acme --provider vertex < service-account.json
  weirgate provider-key list --org acme
  weirgate provider-key rename pk_0190c3a2-… staging
  weirgate provider-key remove pk_0190c3a2-…
  weirgate project create --org acme own --mode byok     serves its calls with them alone";

/// The columns of `provider-key list`, which are also the fields of its JSON.
const COLUMNS: [&str; 5] = ["id", "provider", "label", "last_four", "created_at"];
/// Maximum number of bytes read from stdin.
const MAX_INPUT_BYTES: u64 = 64 << 10;

/// The commands of `provider-key`.
#[derive(Subcommand)]
pub(super) enum ProviderKeyCommand {
    /// Store a key, encrypted; its text is read from stdin. Prints its id
    Add(AddArgs),
    /// List the keys of an organization
    List {
        /// The organization's name
        #[arg(long)]
        org: String,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Show a key, without its text
    Show(IdArgs),
    /// Give a key another label
    Rename(RenameArgs<IdArgs>),
    /// Remove a key for good
    #[command(visible_alias = "delete")]
    Remove(RemoveArgs),
}

/// Arguments of `provider-key add`.
#[derive(Args)]
pub(super) struct AddArgs {
    /// The organization's name
    #[arg(long)]
    pub(super) org: String,
    /// The provider's name in the configuration
    #[arg(long)]
    pub(super) provider: String,
    /// What you call it, unlike any other key for this provider
    #[arg(long, default_value = "default")]
    pub(super) label: String,
    #[command(flatten)]
    pub(super) output: FormatArgs,
}

/// Arguments of `provider-key remove`.
#[derive(Args)]
pub(super) struct RemoveArgs {
    /// The key's id, as `provider-key list` shows it
    #[arg(required_unless_present = "label")]
    id: Option<String>,
    /// The organization's name
    #[arg(long, requires = "label", conflicts_with = "id")]
    org: Option<String>,
    /// The provider's name
    #[arg(long, requires = "label", conflicts_with = "id")]
    provider: Option<String>,
    /// What you call it
    #[arg(long, requires = "org", requires = "provider", conflicts_with = "id")]
    label: Option<String>,
    #[command(flatten)]
    output: FormatArgs,
}

pub(super) fn run(command: &ProviderKeyCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        ProviderKeyCommand::Add(args) => add(args, &mut std::io::stdin(), source, out),
        ProviderKeyCommand::List { org, output } => list(org, output.format, source, out),
        ProviderKeyCommand::Show(args) => show(args, source, out),
        ProviderKeyCommand::Rename(args) => rename(args, source, out),
        ProviderKeyCommand::Remove(args) => remove(args, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

/// Stores the key read from `input`, without white space around it.
pub(super) fn add(
    args: &AddArgs,
    input: &mut dyn Read,
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    let form = check_provider(&args.provider, source, out)?;
    let mut text = String::new();
    if let Err(error) = input.take(MAX_INPUT_BYTES).read_to_string(&mut text) {
        // The error says where reading failed, and never contains the text.
        return Err(out.fail(&format!("the key could not be read from stdin: {error}")));
    }
    let text = check_own_key(form, &text).map_err(|error| {
        out.fail(&error.to_string());
        Exit::Usage
    })?;
    let created = change_accounts(source, out, async |store| {
        let (provider, label) = (&args.provider, &args.label);
        store
            .add_provider_key(&args.org, provider, label, &text, now_ms())
            .await
    })?;
    let note = format!(
        "stored the key `{}` of `{}` for {}, encrypted",
        args.label, args.org, args.provider
    );
    let done = json!({
        "done": "stored", "id": created.id, "provider": args.provider, "label": args.label,
    });
    out.done(args.output.format, &note, Some(&created.id), &done);
    Ok(())
}

/// Refuses a key for a provider that would never use it, and returns the cloud whose JSON may be its key.
fn check_provider(name: &str, source: &Source, out: &mut Output) -> Result<Option<Cloud>, Exit> {
    let config = load(source, out)?.config;
    find_own_key_form(&config, name).map_err(|message| {
        out.fail(&format!("--provider: {message}"));
        Exit::Usage
    })
}

/// Returns the cloud whose JSON may be the key of a provider, if it is one of a cloud.
///
/// Errors: the provider is unknown, or a cloud without a place, so no key of it would ever be used.
pub(super) fn find_own_key_form(config: &Config, name: &str) -> Result<Option<Cloud>, String> {
    let serving = config.providers.iter().chain(&config.byok_only_providers);
    let known: Vec<_> = serving.collect();
    if let Some(provider) = known.iter().find(|provider| provider.name == name) {
        return Ok(provider.own_key_form());
    }
    if let Some(off) = config.off_providers.iter().find(|off| off.name == name) {
        return Err(format!(
            "`{name}` has no address: {}; {}",
            off.why, off.cure
        ));
    }
    let known: Vec<&str> = known.iter().map(|provider| &*provider.name).collect();
    let known = match known.as_slice() {
        [] => "none".to_owned(),
        known => known.join(", "),
    };
    Err(format!(
        "the configuration has no provider `{name}`; it has {known}"
    ))
}

fn list(org: &str, format: OutputFormat, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let all = on_store(source, out, async |store| store.provider_keys(org).await)?;
    let records: Vec<Record> = all.iter().map(to_record).collect();
    out.records(format, &COLUMNS, &records);
    Ok(())
}

fn show(args: &IdArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let (organization, key) = on_store(source, out, async |store| {
        store.provider_key(&args.id).await
    })?;
    let columns: Vec<&str> = ["organization"].into_iter().chain(COLUMNS).collect();
    let organization = ("organization".to_owned(), json!(organization));
    let record = [organization].into_iter().chain(to_record(&key));
    out.record(args.output.format, &columns, record.collect());
    Ok(())
}

fn rename(args: &RenameArgs<IdArgs>, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let (id, label) = (&args.of.id, &args.new_name);
    change_accounts(source, out, async |store| {
        store.rename_provider_key(id, label).await
    })?;
    let done = json!({"done": "renamed", "id": id, "label": label});
    let note = format!("the label of {id} is `{label}`");
    out.done(args.of.output.format, &note, None, &done);
    Ok(())
}

fn remove(args: &RemoveArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let id = change_accounts(source, out, async |store| {
        let id = match (&args.id, &args.org) {
            (Some(id), _) => id.clone(),
            (None, org) => {
                let keys = store
                    .provider_keys(org.as_deref().unwrap_or_default())
                    .await?;
                let is_match = |key: &&ProviderKey| {
                    Some(&key.provider) == args.provider.as_ref()
                        && Some(&key.label) == args.label.as_ref()
                };
                let found = keys.iter().find(is_match).map(|key| key.id.clone());
                found.ok_or_else(|| {
                    let label = args.label.as_deref().unwrap_or_default();
                    StoreError::not_found("provider key", label)
                })?
            }
        };
        store.remove_provider_key(&id).await?;
        Ok(id)
    })?;
    let done = json!({"done": "removed", "id": id});
    out.done(args.output.format, &format!("removed {id}"), None, &done);
    Ok(())
}

fn to_record(key: &ProviderKey) -> Record {
    let values = [
        json!(key.id),
        json!(key.provider),
        json!(key.label),
        json!(key.last_four),
        format_time(Some(key.created_at_ms)),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
