//! `weirgate key`: API keys.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::accounts::{change_accounts, format_time, now_ms, on_store, write_deletion};
use super::arguments::{DeleteArgs, FormatArgs, IdArgs, RenameArgs};
use super::terms::{TermArgs, TermPart};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::{
    AccountEditor, DEFAULT_PROJECT, IssuedKey, KeyChange, NewKey, StoreError, check_expiry,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate key create --org acme --label laptop --expires 2031-01-01T00:00:00Z
  KEY=$(weirgate key create --org acme --project app | tail -n 1)
  weirgate key create --org acme --limit 50 --limit-per day=5 --allow-model gpt-5-mini
  weirgate key update key_0190c3a2-… --limit 100 --deny-provider first --clear expires
  weirgate key create --org acme --label agents --session-limit 5 --session-limit 2/hour --grace-calls 3
  weirgate key update key_0190c3a2-… --allow-passthrough anthropic    its requests may bring a Claude login
  weirgate key create --org acme --label why --debug    answers can say why a provider was chosen
  weirgate key list --org acme --format json
  weirgate key disable key_0190c3a2-…    it answers 401 until `weirgate key enable`
  weirgate key revoke key_0190c3a2-…     for good";

/// The columns of `key list`, which are also the fields of its JSON.
const COLUMNS: [&str; 14] = [
    "id",
    "label",
    "project",
    "member",
    "last_four",
    "status",
    "limit",
    "limit_per",
    "budgets",
    "rules",
    "debug",
    "created_at",
    "expires_at",
    "revoked_at",
];

/// The commands of `key`.
#[derive(Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key; its text is printed this once, alone on the last line
    Create(CreateArgs),
    /// Change a key; what is not named stays as it is
    Update(UpdateArgs),
    /// List the keys of an organization, revoked ones too
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
    /// Disable a key: it stops to count within a second, until it is enabled
    Disable(IdArgs),
    /// Enable a key that is disabled
    Enable(IdArgs),
    /// Revoke a key: it stops to count within a second, for good
    Revoke(IdArgs),
    /// Delete a key that is disabled or revoked; what it has used stays under its id
    Delete(DeleteArgs<IdArgs>),
}

/// Arguments of `key create`.
#[derive(Args)]
pub(super) struct CreateArgs {
    /// The organization's name
    #[arg(long)]
    org: String,
    /// The project's name
    #[arg(long, default_value = DEFAULT_PROJECT)]
    project: String,
    /// What you call it
    #[arg(long, default_value = "")]
    label: String,
    /// When it stops to count
    #[arg(long, value_name = "RFC3339")]
    expires: Option<Timestamp>,
    /// Who owns it
    #[arg(long, value_name = "NAME")]
    member: Option<String>,
    /// Let its requests ask why their providers were chosen (header `x-weirgate-debug: route`)
    #[arg(long)]
    debug: bool,
    #[command(flatten)]
    terms: TermArgs,
    #[command(flatten)]
    output: FormatArgs,
}

/// Arguments of `key update`.
#[derive(Args)]
pub(super) struct UpdateArgs {
    /// The key's id, as `key list` shows it
    id: String,
    /// What you call it
    #[arg(long)]
    label: Option<String>,
    /// When it stops to count
    #[arg(long, value_name = "RFC3339")]
    expires: Option<Timestamp>,
    /// Who owns it
    #[arg(long, value_name = "NAME")]
    member: Option<String>,
    /// Let its requests ask why their providers were chosen (header `x-weirgate-debug: route`)
    #[arg(long)]
    debug: bool,
    #[command(flatten)]
    terms: TermArgs,
    /// Take a bound away
    #[arg(long, value_enum, value_name = "PART")]
    clear: Vec<TermPart>,
    #[command(flatten)]
    output: FormatArgs,
}

pub(super) fn run(command: &KeyCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        KeyCommand::Create(args) => create(args, source, out),
        KeyCommand::Update(args) => update(args, source, out),
        KeyCommand::List { org, output } => list(org, output.format, source, out),
        KeyCommand::Show(args) => show(args, source, out),
        KeyCommand::Rename(args) => rename(args, source, out),
        KeyCommand::Disable(args) => set_state("disabled", args, (source, out), async |store| {
            store.disable_key(&args.id, Some(now_ms())).await
        }),
        KeyCommand::Enable(args) => set_state("enabled", args, (source, out), async |store| {
            store.disable_key(&args.id, None).await
        }),
        KeyCommand::Revoke(args) => set_state("revoked", args, (source, out), async |store| {
            store.revoke_key(&args.id, now_ms()).await
        }),
        KeyCommand::Delete(args) => delete(args, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn create(args: &CreateArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let now_ms = now_ms();
    let terms = args.terms.parse(out)?;
    let new = NewKey {
        organization: &args.org,
        project: &args.project,
        label: &args.label,
        expires_at_ms: check_future(args.expires, now_ms, out)?,
        member: args.member.as_deref(),
        terms: &terms,
        is_debug: args.debug,
    };
    args.terms.warn_unknown(source, out)?;
    let (text, issued) = change_accounts(source, out, async |store| {
        store.create_key(&new, now_ms).await
    })?;
    let note = format!(
        "created {} of `{}` / `{}`; its text is shown this once:",
        issued.id, args.org, args.project
    );
    let done = json!({"done": "created", "id": issued.id, "key": text.reveal()});
    out.done(args.output.format, &note, Some(text.reveal()), &done);
    Ok(())
}

fn update(args: &UpdateArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let clears = |part: TermPart| args.clear.contains(&part);
    let expires = check_future(args.expires, now_ms(), out)?;
    let mut change = KeyChange {
        label: args.label.clone(),
        expires_at_ms: expires
            .map(Some)
            .or(clears(TermPart::Expires).then_some(None)),
        member: match &args.member {
            Some(name) => Some(Some(name.clone())),
            None => clears(TermPart::Member).then_some(None),
        },
        terms: None,
        is_debug: args
            .debug
            .then_some(true)
            .or(clears(TermPart::Debug).then_some(false)),
    };
    let changes_terms = args.terms.is_given() || args.clear.iter().any(TermPart::is_term);
    if changes_terms {
        // Invalid values are refused before the store is opened.
        args.terms.parse(out)?;
    }
    args.terms.warn_unknown(source, out)?;
    change_accounts(source, out, async |store| {
        if changes_terms {
            let mut terms = store.key_terms(&args.id).await?;
            args.clear.iter().for_each(|part| part.clear(&mut terms));
            args.terms.apply(&mut terms);
            change.terms = Some(terms);
        }
        store.update_key(&args.id, &change).await
    })?;
    let done = json!({"done": "updated", "id": args.id});
    let note = format!("updated {}", args.id);
    out.done(args.output.format, &note, None, &done);
    Ok(())
}

fn check_future(at: Option<Timestamp>, now_ms: i64, out: &mut Output) -> Result<Option<i64>, Exit> {
    let at_ms = at.map(Timestamp::as_millisecond);
    match check_expiry(at_ms, now_ms) {
        Ok(()) => Ok(at_ms),
        Err(error) => {
            out.fail(&format!("--{error}"));
            Err(Exit::Usage)
        }
    }
}

fn list(org: &str, format: OutputFormat, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let keys = on_store(source, out, async |store| store.keys(org).await)?;
    let now_ms = now_ms();
    let records: Vec<Record> = keys.iter().map(|key| to_record(key, now_ms)).collect();
    out.records(format, &COLUMNS, &records);
    Ok(())
}

fn show(args: &IdArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let (organization, key) = on_store(source, out, async |store| store.key(&args.id).await)?;
    let columns: Vec<&str> = ["organization"].into_iter().chain(COLUMNS).collect();
    let organization = ("organization".to_owned(), json!(organization));
    let record = [organization].into_iter().chain(to_record(&key, now_ms()));
    out.record(args.output.format, &columns, record.collect());
    Ok(())
}

fn rename(args: &RenameArgs<IdArgs>, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let (id, label) = (&args.of.id, &args.new_name);
    let change = KeyChange {
        label: Some(label.clone()),
        ..KeyChange::default()
    };
    change_accounts(source, out, async |store| {
        store.update_key(id, &change).await
    })?;
    let done = json!({"done": "renamed", "id": id, "label": label});
    let note = format!("the label of {id} is `{label}`");
    out.done(args.of.output.format, &note, None, &done);
    Ok(())
}

/// Changes the state of a key. `state` is the word for what is done.
fn set_state(
    state: &str,
    args: &IdArgs,
    (source, out): (&Source, &mut Output),
    change: impl AsyncFnOnce(AccountEditor<'_>) -> Result<(), StoreError>,
) -> Result<(), Exit> {
    change_accounts(source, out, change)?;
    let done = json!({"done": state, "id": args.id});
    let note = format!("{state} {}", args.id);
    out.done(args.output.format, &note, None, &done);
    Ok(())
}

fn delete(args: &DeleteArgs<IdArgs>, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let id = &args.of.id;
    let deletion = change_accounts(source, out, async |store| {
        store.delete_key(id, args.yes, now_ms()).await
    })?;
    let how = (args.yes, args.of.output.format);
    write_deletion(("key", id), &deletion, how, out)
}

fn to_record(key: &IssuedKey, now_ms: i64) -> Record {
    let terms = super::terms::format_terms(&key.terms);
    let values = [
        json!(key.id),
        json!(key.label),
        json!(key.project),
        json!(key.member),
        json!(key.last_four),
        json!(key.status(now_ms)),
        json!(key.terms.limit),
        terms.periods,
        terms.budgets,
        terms.rules,
        json!(key.is_debug),
        format_time(Some(key.created_at_ms)),
        format_time(key.expires_at_ms),
        format_time(key.revoked_at_ms),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}
