//! `weirgate prompt`: managed prompts.

use std::path::Path;
use std::time::Duration;

use filters::models::prompts::MAX_PROMPT_BYTES;
use filters::models::prompts::reference::{
    PromptReference, VersionReference, check_movable_label, check_prompt_name,
};
use serde_json::{Value, json};

use super::accounts::{change_accounts, format_time, now_ms, on_store};
use super::arguments::FormatArgs;
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::config::{self, ReadPrompt};
use crate::models::prompt_lines::{PromptLines, compare};
use crate::store::{StoreError, StoredPrompt, StoredVersion};

mod arguments;
#[cfg(test)]
mod tests;

pub(super) use self::arguments::{EXAMPLES, PromptCommand};
use self::arguments::{OwnerArgs, PutArgs};

/// How long two versions are compared.
const MAX_COMPARE_TIME: Duration = Duration::from_secs(10);

/// The columns of `prompt list`, which are also the fields of its JSON.
const COLUMNS: [&str; 6] = [
    "name",
    "project",
    "latest",
    "versions",
    "labels",
    "created_at",
];
/// The columns of `prompt show`.
const SHOWN: [&str; 9] = [
    "name",
    "project",
    "version",
    "labels",
    "created_at",
    "model",
    "parameters",
    "variables",
    "messages",
];

pub(super) fn run(command: &PromptCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        PromptCommand::Put(args) => store_version(args, source, out),
        PromptCommand::List { owner, output } => list(owner, output.format, source, out),
        PromptCommand::Show {
            owner,
            name,
            output,
        } => show(owner, name, output.format, source, out),
        PromptCommand::Label {
            owner,
            name,
            version,
            label,
            output,
        } => label_version((owner, name), (version, label), *output, (source, out)),
        PromptCommand::Rename {
            owner,
            name,
            new_name,
            output,
        } => rename((owner, name), new_name, *output, (source, out)),
        PromptCommand::Diff {
            owner,
            name,
            from,
            to,
            output,
        } => diff((owner, name), (from, to), *output, (source, out)),
        PromptCommand::Remove {
            owner,
            name,
            label,
            output,
        } => remove((owner, name), label.as_deref(), *output, (source, out)),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn store_version(args: &PutArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    check_prompt_name(&args.name).map_err(|said| refuse_usage("NAME", &said, out))?;
    for label in &args.label {
        check_movable(label, "--label", out)?;
    }
    let file = read_file(&args.file, out)?;
    let version = change_accounts(source, out, async |store| {
        let (owner, labels) = (args.owner.as_owner(), &args.label);
        store
            .put_prompt(owner, &args.name, &file.json, labels, now_ms())
            .await
    })?;
    let labels = match args.label.as_slice() {
        [] => String::new(),
        labels => format!(", labelled {}", labels.join(", ")),
    };
    let note = format!(
        "stored version {version} of `{}` of {}{labels}",
        args.name,
        args.owner.describe()
    );
    let done = json!({
        "done": "stored", "name": args.name, "version": version, "labels": args.label,
    });
    let line = version.to_string();
    out.done(args.output.format, &note, Some(&line), &done);
    Ok(())
}

/// Reads and checks a file. Every problem is written to stderr with its place.
fn read_file(path: &Path, out: &mut Output) -> Result<ReadPrompt, Exit> {
    let name = path.display().to_string();
    let failed = |error: std::io::Error, out: &mut Output| out.fail(&format!("{name}: {error}"));
    let length = std::fs::metadata(path)
        .map_err(|error| failed(error, out))?
        .len();
    if length > MAX_PROMPT_BYTES as u64 {
        let said = format!("{name} has {length} bytes; accepted are at most {MAX_PROMPT_BYTES}");
        return Err(out.fail(&said));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error, out))?;
    match config::read_prompt(&name, &text) {
        Ok(read) => {
            for warning in &read.warnings {
                out.warn(warning.to_string().trim_end());
            }
            Ok(read)
        }
        Err(problems) => {
            for problem in &problems {
                out.fail(problem.to_string().trim_end());
            }
            Err(Exit::Failed)
        }
    }
}

fn list(
    owner: &OwnerArgs,
    format: OutputFormat,
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    let all = on_store(source, out, async |store| {
        store.prompts(owner.as_owner()).await
    })?;
    let records: Vec<Record> = all.iter().map(to_record).collect();
    out.records(format, &COLUMNS, &records);
    Ok(())
}

fn to_record(prompt: &StoredPrompt) -> Record {
    let latest = prompt.versions.last();
    let values = [
        json!(prompt.name),
        json!(prompt.project),
        json!(latest.map(|(number, _)| number)),
        json!(prompt.versions.len()),
        find_labels(
            prompt,
            |_| true,
            |(label, number)| format!("{label}={number}"),
        ),
        format_time(latest.map(|(_, created_at_ms)| *created_at_ms)),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}

fn find_labels(
    prompt: &StoredPrompt,
    is_wanted: impl Fn(u64) -> bool,
    format: impl Fn(&(String, u64)) -> String,
) -> Value {
    let labels = prompt
        .labels
        .iter()
        .filter(|(_, number)| is_wanted(*number));
    labels.map(format).collect()
}

fn show(
    owner: &OwnerArgs,
    name: &str,
    format: OutputFormat,
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    let Some(reference) = PromptReference::parse(name) else {
        return Err(refuse_usage(
            "NAME",
            "accepted is NAME, NAME@LABEL or NAME@VERSION",
            out,
        ));
    };
    let (prompt, version) = on_store(source, out, async |store| {
        let prompt = store.prompt(owner.as_owner(), &reference.name).await?;
        let version = store.prompt_version(&prompt, &reference.version).await?;
        Ok((prompt, version))
    })?;
    let content = parse_content(&version, out)?;
    let member = |key: &str| content.get(key).cloned().unwrap_or_default();
    let values = [
        json!(prompt.name),
        json!(prompt.project),
        json!(version.number),
        find_labels(
            &prompt,
            |number| number == version.number,
            |(label, _)| label.clone(),
        ),
        format_time(Some(version.created_at_ms)),
        member("model"),
        member("parameters"),
        member("variables"),
        member("messages"),
    ];
    let record = SHOWN.map(str::to_owned).into_iter().zip(values).collect();
    out.record(format, &SHOWN, record);
    Ok(())
}

fn parse_content(version: &StoredVersion, out: &mut Output) -> Result<Value, Exit> {
    serde_json::from_str(&version.content)
        .map_err(|_| out.fail(&StoreError::Damaged("content").to_string()))
}

fn label_version(
    (owner, name): (&OwnerArgs, &str),
    (version, label): (&str, &str),
    output: FormatArgs,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    check_movable(label, "LABEL", out)?;
    let version = VersionReference::new(version);
    let number = change_accounts(source, out, async |store| {
        store
            .label_prompt(owner.as_owner(), name, &version, label)
            .await
    })?;
    let note = format!(
        "version {number} of `{name}` of {} is `{label}`",
        owner.describe()
    );
    let done = json!({"done": "labelled", "name": name, "version": number, "label": label});
    out.done(output.format, &note, None, &done);
    Ok(())
}

fn rename(
    (owner, name): (&OwnerArgs, &str),
    new_name: &str,
    output: FormatArgs,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    check_prompt_name(new_name).map_err(|said| refuse_usage("NEW_NAME", &said, out))?;
    let renamed = change_accounts(source, out, async |store| {
        let owner = owner.as_owner();
        store.rename_prompt(owner, name, new_name).await?;
        store.prompt(owner, new_name).await
    })?;
    let note = format!(
        "renamed the prompt `{name}` of {} to `{new_name}`",
        owner.describe()
    );
    let done = json!({"done": "renamed", "id": renamed.id, "name": new_name});
    out.done(output.format, &note, None, &done);
    Ok(())
}

fn diff(
    (owner, name): (&OwnerArgs, &str),
    (from, to): (&str, &str),
    output: FormatArgs,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    let (from, to) = (VersionReference::new(from), VersionReference::new(to));
    let (before, after) = on_store(source, out, async |store| {
        let prompt = store.prompt(owner.as_owner(), name).await?;
        let before = store.prompt_version(&prompt, &from).await?;
        Ok((before, store.prompt_version(&prompt, &to).await?))
    })?;
    let texts = (parse_content(&before, out)?, parse_content(&after, out)?);
    let (old, new) = (PromptLines::new(&texts.0), PromptLines::new(&texts.1));
    let difference = compare(&old, &new, MAX_COMPARE_TIME);
    if difference.is_cut {
        out.warn("a prompt has too many lines: the last ones are not compared");
    }
    if difference.is_rough {
        out.warn("the comparison took too long: lines that are the same may be shown as changed");
    }
    let changes = difference.lines.iter().map(ToString::to_string);
    let changes: Vec<String> = changes.collect();
    if output.format == OutputFormat::Json {
        out.json(&json!({
            "name": name, "from": before.number, "to": after.number, "changes": changes,
        }));
        return Ok(());
    }
    if changes.is_empty() {
        out.note(&format!(
            "versions {} and {} of `{name}` say the same",
            before.number, after.number
        ));
        return Ok(());
    }
    out.line(&format!("--- {name}@{}", before.number));
    out.line(&format!("+++ {name}@{}", after.number));
    for change in changes {
        out.line(&change);
    }
    Ok(())
}

fn remove(
    (owner, name): (&OwnerArgs, &str),
    label: Option<&str>,
    output: FormatArgs,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    change_accounts(source, out, async |store| {
        store.remove_prompt(owner.as_owner(), name, label).await
    })?;
    let of = owner.describe();
    let note = match label {
        Some(label) => format!("removed the label `{label}` of the prompt `{name}` of {of}"),
        None => format!("removed the prompt `{name}` of {of}"),
    };
    let done = json!({"done": "removed", "name": name, "label": label});
    out.done(output.format, &note, None, &done);
    Ok(())
}

/// Refuses an invalid label, and one that cannot be moved.
fn check_movable(label: &str, argument: &str, out: &mut Output) -> Result<(), Exit> {
    check_movable_label(label).map_err(|said| refuse_usage(argument, &said, out))
}

fn refuse_usage(argument: &str, said: &str, out: &mut Output) -> Exit {
    out.fail(&format!("{argument}: {said}"));
    Exit::Usage
}
