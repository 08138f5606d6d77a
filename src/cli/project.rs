//! `weirgate project`: parts of an organization.

use clap::Subcommand;
use filters::accounts::{AllowedRegions, Mode};
use filters::decisions::credentials::is_sdk_key;
use serde_json::json;

use super::accounts::{RegionsChange, format_time, now_ms, on_store, parse_regions};
use super::{Exit, Output, OutputFormat, Record, Source};
use crate::store::{NewProject, Project, ProjectChange};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate project create --org acme app --cache-ttl 300
  weirgate project update --org acme app --mode hybrid --cache-ttl 0
  weirgate project update --org acme app --experiments SDK_KEY    requests may name @flag/KEY as a model
  weirgate project list --org acme
  weirgate project archive --org acme app        its keys answer 410 from then on";

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
    },
    /// List the projects of an organization, archived ones too
    List {
        /// The organization's name
        #[arg(long)]
        org: String,
        /// For people or for programs
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
    /// Archive a project: its keys stop to count
    Archive {
        /// The organization's name
        #[arg(long)]
        org: String,
        /// Its name
        name: String,
    },
}

pub(super) fn run(command: &ProjectCommand, source: &Source, out: &mut Output) -> Exit {
    let done = match command {
        ProjectCommand::Create {
            org,
            name,
            mode,
            cache_ttl,
            regions,
        } => {
            let project = NewProject {
                name,
                mode: *mode,
                cache_ttl_s: cache_ttl.filter(|ttl| *ttl > 0),
            };
            create(org, &project, regions.as_ref(), (source, out))
        }
        ProjectCommand::Update {
            org,
            name,
            mode,
            cache_ttl,
            experiments,
            regions,
        } => {
            let change = ProjectChange {
                mode: *mode,
                cache_ttl_s: cache_ttl.map(|ttl| (ttl > 0).then_some(ttl)),
                experiments: experiments
                    .as_deref()
                    .map(|key| (!key.is_empty()).then_some(key)),
            };
            update((org, name), &change, regions.as_ref(), (source, out))
        }
        ProjectCommand::List { org, format } => list(org, *format, source, out),
        ProjectCommand::Archive { org, name } => archive(org, name, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn create(
    org: &str,
    project: &NewProject<'_>,
    regions: Option<&AllowedRegions>,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    let created = on_store(source, out, async |store| {
        let created = store.create_project(org, project, now_ms()).await?;
        if regions.is_some() {
            let name = Some(project.name);
            store.set_regions(org, name, regions).await?;
        }
        Ok(created)
    })?;
    out.note(&format!(
        "created the project `{}` of `{org}`",
        project.name
    ));
    out.line(&created.id);
    Ok(())
}

fn update(
    (org, name): (&str, &str),
    change: &ProjectChange<'_>,
    regions: Option<&RegionsChange>,
    (source, out): (&Source, &mut Output),
) -> Result<(), Exit> {
    if let Some(Some(key)) = change.experiments
        && !is_sdk_key(key)
    {
        out.fail("--experiments: accepted is an SDK key: 1 to 128 of A-Z, a-z, 0-9, +, /, =, _ and -, and a token behind `:`");
        return Err(Exit::Usage);
    }
    on_store(source, out, async |store| {
        if let Some(RegionsChange(regions)) = regions {
            store.set_regions(org, Some(name), regions.as_ref()).await?;
        }
        store.update_project(org, name, change).await
    })?;
    out.note(&format!("updated the project `{name}` of `{org}`"));
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

fn archive(org: &str, name: &str, source: &Source, out: &mut Output) -> Result<(), Exit> {
    on_store(source, out, async |store| {
        store.archive_project(org, name).await
    })?;
    out.note(&format!("archived the project `{name}` of `{org}`"));
    Ok(())
}
