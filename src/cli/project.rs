//! `weirgate project`: parts of an organization.

use clap::Subcommand;
use filters::accounts::{AllowedRegions, Mode};
use filters::decisions::credentials::is_sdk_key;
use serde_json::json;

use super::accounts::{
    RegionsChange, change_accounts, format_time, now_ms, on_store, parse_regions, write_deletion,
};
use super::arguments::{DeleteArgs, FormatArgs, OwnedArgs, RenameArgs};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::{AccountEditor, NewProject, Project, ProjectChange, StoreError};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate project create --org acme app --cache-ttl 300
  weirgate project update --org acme app --mode hybrid --cache-ttl 0
  weirgate project update --org acme app --experiments SDK_KEY    requests may name @flag/KEY as a model
  weirgate project list --org acme
  weirgate project rename --org acme app web
  weirgate project archive --org acme app        its keys answer 410 until `weirgate project enable`
  weirgate project delete --org acme app         says what that gives up; --yes does it, once it is archived";

/// The longest lifetime of cached responses. Our choice: a year.
const MAX_CACHE_TTL_S: i64 = 31_536_000;

/// The columns of `project list`, which are also the fields of its JSON.
const COLUMNS: [&str; 8] = [
    "id",
    "name",
    "mode",
    "cache_ttl_s",
    "experiments",
    "status",
    "created_at",
    "regions",
];

/// The commands of `project`.
#[derive(Subcommand)]
pub(super) enum ProjectCommand {
    /// Make a project; prints its id
    Create {
        /// The organization's name
        #[arg(long)]
        org: String,
        /// Its name, which no other of the organization has
        name: String,
        /// Whose credentials serve it: platform, byok or hybrid
        #[arg(long, default_value = "platform")]
        mode: Mode,
        /// How long its answers may be replayed, in seconds; 0: never
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(..=MAX_CACHE_TTL_S))]
        cache_ttl: Option<u32>,
        /// Where its calls may be computed: names of regions, or their beginnings, with commas between them
        #[arg(long, value_name = "REGIONS")]
        regions: Option<AllowedRegions>,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Change a project; what is not named stays as it is
    Update {
        /// The organization's name
        #[arg(long)]
        org: String,
        /// Its name
        name: String,
        /// Whose credentials serve it: platform, byok or hybrid
        #[arg(long)]
        mode: Option<Mode>,
        /// How long its answers may be replayed, in seconds; 0: never
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(..=MAX_CACHE_TTL_S))]
        cache_ttl: Option<u32>,
        /// Let requests name flags of this datafile as models: `@flag/KEY`; empty: none
        #[arg(long, value_name = "SDK_KEY")]
        experiments: Option<String>,
        /// Where its calls may be computed, of the regions of its organization; empty: in all of them
        #[arg(long, value_name = "REGIONS", value_parser = parse_regions)]
        regions: Option<RegionsChange>,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// List the projects of an organization, archived ones too
    List {
        /// The organization's name
        #[arg(long)]
        org: String,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Show a project
    Show(OwnedArgs),
    /// Give a project another name
    Rename(RenameArgs<OwnedArgs>),
    /// Archive a project: its keys stop to count
    Archive(OwnedArgs),
    /// Take an archived project back: its keys count again
    Enable(OwnedArgs),
    /// Delete an archived project with its keys and prompts
    Delete(DeleteArgs<OwnedArgs>),
}

pub(super) fn run(command: &ProjectCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        ProjectCommand::Create {
            org,
            name,
            mode,
            cache_ttl,
            regions,
            output,
        } => {
            let project = NewProject {
                name,
                mode: *mode,
                cache_ttl_s: cache_ttl.filter(|ttl| *ttl > 0),
            };
            let regions = regions.as_ref();
            create((org, &project, regions), output.format, (source, out))
        }
        ProjectCommand::Update {
            org,
            name,
            mode,
            cache_ttl,
            experiments,
            regions,
            output,
        } => {
            let change = ProjectChange {
                mode: *mode,
                cache_ttl_s: cache_ttl.map(|ttl| (ttl > 0).then_some(ttl)),
                experiments: experiments
                    .as_deref()
                    .map(|key| (!key.is_empty()).then_some(key)),
            };
            let change = (&change, regions.as_ref());
            update((org, name), change, output.format, (source, out))
        }
        ProjectCommand::List { org, output } => list(org, output.format, source, out),
        ProjectCommand::Show(args) => show(args, source, out),
        ProjectCommand::Rename(args) => rename(args, source, out),
        ProjectCommand::Archive(args) => {
            set_state("archived", args, (source, out), async |store| {
                store.archive_project(&args.org, &args.name).await
            })
        }
        ProjectCommand::Enable(args) => set_state("enabled", args, (source, out), async |store| {
            store.enable_project(&args.org, &args.name).await
        }),
        ProjectCommand::Delete(args) => delete(args, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn create(
    (org, project, regions): (&str, &NewProject<'_>, Option<&AllowedRegions>),
    format: OutputFormat,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    let created = change_accounts(source, out, async |store| {
        let created = store.create_project(org, project, now_ms()).await?;
        if regions.is_some() {
            let name = Some(project.name);
            store.set_regions(org, name, regions).await?;
        }
        Ok(created)
    })?;
    let note = format!("created the project `{}` of `{org}`", project.name);
    let done = json!({"done": "created", "id": created.id, "name": project.name});
    out.done(format, &note, Some(&created.id), &done);
    Ok(())
}

fn update(
    (org, name): (&str, &str),
    (change, regions): (&ProjectChange<'_>, Option<&RegionsChange>),
    format: OutputFormat,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    if let Some(Some(key)) = change.experiments
        && !is_sdk_key(key)
    {
        out.fail("--experiments: accepted is an SDK key: 1 to 128 of A-Z, a-z, 0-9, +, /, =, _ and -, and a token behind `:`");
        return Err(Exit::Usage);
    }
    let updated = change_accounts(source, out, async |store| {
        if let Some(RegionsChange(regions)) = regions {
            store.set_regions(org, Some(name), regions.as_ref()).await?;
        }
        store.update_project(org, name, change).await?;
        store.project(org, name).await
    })?;
    let note = format!("updated the project `{name}` of `{org}`");
    let done = json!({"done": "updated", "id": updated.id, "name": name});
    out.done(format, &note, None, &done);
    Ok(())
}

fn show(args: &OwnedArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let found = on_store(source, out, async |store| {
        store.project(&args.org, &args.name).await
    })?;
    out.record(args.output.format, &COLUMNS, to_record(&found));
    Ok(())
}

fn rename(args: &RenameArgs<OwnedArgs>, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let (org, name, new_name) = (&args.of.org, &args.of.name, &args.new_name);
    let renamed = change_accounts(source, out, async |store| {
        store.rename_project((org, name), new_name).await?;
        store.project(org, new_name).await
    })?;
    let note = format!("renamed the project `{name}` of `{org}` to `{new_name}`");
    let done = json!({"done": "renamed", "id": renamed.id, "name": new_name});
    out.done(args.of.output.format, &note, None, &done);
    Ok(())
}

fn list(org: &str, format: OutputFormat, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let all = on_store(source, out, async |store| store.projects(org).await)?;
    let records: Vec<Record> = all.iter().map(to_record).collect();
    out.records(format, &COLUMNS, &records);
    Ok(())
}

fn to_record(project: &Project) -> Record {
    let status = if project.is_archived {
        "archived"
    } else {
        "active"
    };
    let values = [
        json!(project.id),
        json!(project.name),
        json!(project.mode.as_str()),
        json!(project.cache_ttl_s),
        json!(project.experiments),
        json!(status),
        format_time(Some(project.created_at_ms)),
        json!(project.regions.as_ref().map(ToString::to_string)),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}

/// Changes the state of a project. `state` is the word for what is done.
fn set_state(
    state: &str,
    args: &OwnedArgs,
    (source, out): (&Source, &mut Output),
    change: impl AsyncFnOnce(AccountEditor<'_>) -> Result<(), StoreError>,
) -> Result<(), Exit> {
    let (org, name) = (&args.org, &args.name);
    let id = change_accounts(source, out, async |store| {
        change(store).await?;
        Ok(store.project(org, name).await?.id)
    })?;
    let note = format!("{state} the project `{name}` of `{org}`");
    let done = json!({"done": state, "id": id, "name": name});
    out.done(args.output.format, &note, None, &done);
    Ok(())
}

fn delete(args: &DeleteArgs<OwnedArgs>, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let (org, name) = (&args.of.org, &args.of.name);
    let deletion = change_accounts(source, out, async |store| {
        store.delete_project((org, name), args.yes, now_ms()).await
    })?;
    let how = (args.yes, args.of.output.format);
    write_deletion(("project", name), &deletion, how, out)
}
