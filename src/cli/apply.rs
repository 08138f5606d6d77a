//! `weirgate apply`: accounts as a file declares them.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use filters::manifest::{Action, FieldChange, MAX_THINGS, ManifestFault, PlannedChange};
use filters::models::cloud_credentials::own_keys::check_own_key;
use serde_json::{Value, json};

use super::accounts::{change_accounts, load_named, now_ms, on_store};
use super::arguments::FormatArgs;
use super::provider_key::find_own_key_form;
use super::{Exit, Output, OutputFormat, Source, new_files};
use crate::config::{self, AccountsFile, Config, Secret};
use crate::store::{AppliedAccounts, WantedAccounts};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate apply -f accounts.toml --plan      what would change
  weirgate apply -f accounts.toml             change it, all of it or nothing
  weirgate apply -f accounts.toml --prune     and take out of use what the file does not name
  weirgate export --apply accounts.toml       such a file of what there is

A second run changes nothing. The texts of new keys are printed once.";

/// The beginning of an exported file.
const HEADING: &str = "\
# Accounts for `weirgate apply -f`. The texts of keys and of provider keys are not in it: applied to another store, a key gets
# a new text unless it has a `secret`, and a provider key needs one.

";

/// The maximum size of a file. Our choice: long prompts have files of their own.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Arguments of `apply`.
#[derive(Args)]
pub(super) struct ApplyArgs {
    /// The file; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Say what would change, and change nothing
    #[arg(long)]
    plan: bool,
    /// Take out of use what the file does not name: organizations are disabled, projects archived, keys revoked; members, provider
    /// keys, prompts and labels are deleted
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    output: FormatArgs,
}

pub(super) fn run(args: &ApplyArgs, source: &Source, out: &mut Output) -> Exit {
    apply(args, source, out).map_or_else(|exit| exit, |()| Exit::Done)
}

fn apply(args: &ApplyArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let config = load_named(source, out)?.config;
    let mut file = read(&args.file, out)?;
    for warning in &file.warnings {
        out.warn(warning.to_string().trim_end());
    }
    let faults = check_provider_keys(&mut file, &config);
    if !faults.is_empty() {
        return Err(refuse(&file, faults, out));
    }
    let wanted = WantedAccounts {
        manifest: &file.manifest,
        secrets: &file.secrets,
        is_pruning: args.prune,
        is_plan: args.plan,
    };
    let applied = change_accounts(source, out, async |store| {
        store.apply(&wanted, now_ms()).await
    })?;
    match applied {
        Ok(applied) => {
            print(&applied, args, out);
            Ok(())
        }
        Err(faults) => Err(refuse(&file, faults, out)),
    }
}

/// Reads the file of accounts. Every problem is written to stderr with its place.
fn read(path: &Path, out: &mut Output) -> Result<AccountsFile, Exit> {
    let is_stdin = path == Path::new("-");
    let name = match is_stdin {
        true => "stdin".to_owned(),
        false => path.display().to_string(),
    };
    let mut text = String::new();
    let read = match is_stdin {
        true => std::io::stdin()
            .take(MAX_FILE_BYTES + 1)
            .read_to_string(&mut text),
        false => std::fs::File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)),
    };
    read.map_err(|error| out.fail(&format!("{name} cannot be read: {error}")))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let said =
            format!("{name} has more than {MAX_FILE_BYTES} bytes: split it into several files");
        return Err(out.fail(&said));
    }
    let env: BTreeMap<String, String> = config::environment().collect();
    let folder = path.parent().unwrap_or(Path::new(""));
    config::read_accounts(&name, &text, folder, &env).map_err(|problems| {
        for problem in &problems {
            out.fail(problem.to_string().trim_end());
        }
        out.fail("nothing was changed")
    })
}

fn refuse(file: &AccountsFile, faults: Vec<ManifestFault>, out: &mut Output) -> Exit {
    for problem in file.to_problems(faults) {
        out.fail(problem.to_string().trim_end());
    }
    out.fail("nothing was changed")
}

/// Checks that the providers would use their keys, and brings the keys of clouds into the form in which they are stored.
fn check_provider_keys(file: &mut AccountsFile, config: &Config) -> Vec<ManifestFault> {
    let mut faults = Vec::new();
    for (index, organization) in file.manifest.organizations.iter().enumerate() {
        for (key_index, key) in organization.provider_keys.iter().enumerate() {
            let Some(reference) = &key.secret else {
                continue;
            };
            let Some(secret) = file.secrets.get(reference) else {
                continue;
            };
            let at = format!("organizations[{index}].provider_keys[{key_index}]");
            let mut refuse = |field: &str, message: String, cure: &str| {
                let (path, cure) = (format!("{at}.{field}"), cure.to_owned());
                faults.push(ManifestFault {
                    path,
                    message,
                    cure,
                });
            };
            match find_own_key_form(config, &key.provider) {
                Err(message) => refuse(
                    "provider",
                    message,
                    "name one of them, or add it to the configuration",
                ),
                Ok(form) => match check_own_key(form, secret.expose()) {
                    Ok(text) => {
                        file.secrets.insert(reference.clone(), Secret::new(text));
                    }
                    Err(error) => refuse("secret", error.to_string(), "provide another text"),
                },
            }
        }
    }
    faults
}

/// Prints the changes, and the texts of new keys behind them.
fn print(applied: &AppliedAccounts, args: &ApplyArgs, out: &mut Output) {
    let is_applied = !args.plan;
    match args.output.format {
        OutputFormat::Json => {
            let changes: Vec<Value> = applied.changes.iter().map(to_json).collect();
            let keys = applied.new_keys.iter();
            let keys: Vec<Value> = keys
                .map(|(id, text)| json!({"id": id, "key": text.reveal()}))
                .collect();
            out.json(&json!({"applied": is_applied, "changes": changes, "keys": keys}));
        }
        OutputFormat::Table => {
            for change in &applied.changes {
                out.line(&describe(change));
            }
            out.note(&summary(&applied.changes, is_applied));
            for (id, text) in &applied.new_keys {
                out.line(&format!("{id} {}", text.reveal()));
            }
        }
    }
    if !applied.new_keys.is_empty() {
        out.note("the texts of the new keys are shown this once");
    }
}

/// Writes all accounts, or those of one organization, as a file that `apply` takes; `-` is stdout.
pub(super) fn export(
    organization: Option<&str>,
    (file, format): (&Path, OutputFormat),
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    let manifest = on_store(source, out, async |store| {
        store.declared_accounts(organization).await
    })?;
    let text = toml::to_string_pretty(&manifest)
        .map_err(|error| out.fail(&format!("the accounts cannot be written: {error}")))?;
    let text = format!("{HEADING}{text}");
    if file == Path::new("-") {
        out.text(&text);
        return Ok(());
    }
    new_files::create(&[(file.to_owned(), &text)]).map_err(|error| out.fail(&error))?;
    let count = manifest.organizations.len();
    let note = format!("wrote {count} organizations to {}", file.display());
    let done =
        json!({"done": "exported", "file": file.display().to_string(), "organizations": count});
    out.done(format, &note, None, &done);
    if manifest.count() > MAX_THINGS {
        let hint = "write one file for each organization: --org";
        out.warn(&format!(
            "`weirgate apply` takes up to {MAX_THINGS} things at once: {hint}"
        ));
    }
    Ok(())
}

fn to_json(change: &PlannedChange) -> Value {
    json!({
        "action": change.action.as_str(),
        "kind": change.kind,
        "id": change.id,
        "name": change.name,
        "fields": change.fields,
    })
}

/// Describes a change in one line: `~ key acme/ci: limit 50 → 100`.
fn describe(change: &PlannedChange) -> String {
    let sign = match change.action {
        Action::Create => '+',
        Action::Update => '~',
        Action::Remove => '-',
    };
    let field = |field: &FieldChange| {
        let name = field.name.as_str();
        match change.action {
            Action::Create => format!("{name} {}", shown(&field.after)),
            _ => format!("{name} {} → {}", shown(&field.before), shown(&field.after)),
        }
    };
    let said = change
        .fields
        .iter()
        .filter(|it| it.name != "name" || change.action == Action::Update);
    let said: Vec<String> = said.map(field).collect();
    let separator = if said.is_empty() { "" } else { ": " };
    let fields = said.join(", ");
    // Names are a caller's: none of them ends the line or moves the cursor.
    let line = format!("{sign} {} {}{separator}{fields}", change.kind, change.name);
    line.chars()
        .map(|it| if it.is_control() { ' ' } else { it })
        .collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn summary(changes: &[PlannedChange], is_applied: bool) -> String {
    if changes.is_empty() {
        return "nothing to change".to_owned();
    }
    let count = |action| changes.iter().filter(|it| it.action == action).count();
    let (created, updated) = (count(Action::Create), count(Action::Update));
    let removed = count(Action::Remove);
    match is_applied {
        true => format!("created {created}, changed {updated}, removed {removed}"),
        false => format!("would create {created}, change {updated}, remove {removed}"),
    }
}
