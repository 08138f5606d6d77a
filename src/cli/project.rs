//! `weirgate project`: parts of an organization.

use clap::Subcommand;
use filters::auth::Mode;

use super::accounts::{now_ms, on_store};
use super::{Exit, Output, Source};
use crate::store::NewProject;

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate project create --org acme app --cache-ttl 300
  weirgate project archive --org acme app        its keys answer 410 from then on";

/// What `project` can do.
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
        /// How long its answers may be replayed, in seconds
        #[arg(long, value_name = "S")]
        cache_ttl: Option<u32>,
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
        } => {
            let project = NewProject {
                name,
                mode: *mode,
                cache_ttl_s: *cache_ttl,
            };
            create(org, &project, source, out)
        }
        ProjectCommand::Archive { org, name } => archive(org, name, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

fn create(
    org: &str,
    project: &NewProject<'_>,
    source: &Source,
    out: &mut Output,
) -> Result<(), Exit> {
    let made = on_store(source, out, async |store| {
        store.create_project(org, project, now_ms()).await
    })?;
    if project.mode != Mode::Platform {
        out.warn("the mode is kept, but own provider keys are not in force yet");
    }
    if project.cache_ttl_s.is_some() {
        out.warn("--cache-ttl is kept, but answers are not replayed yet");
    }
    out.note(&format!(
        "created the project `{}` of `{org}`",
        project.name
    ));
    out.line(&made.id);
    Ok(())
}

fn archive(org: &str, name: &str, source: &Source, out: &mut Output) -> Result<(), Exit> {
    on_store(source, out, async |store| {
        store.archive_project(org, name).await
    })?;
    out.note(&format!("archived the project `{name}` of `{org}`"));
    Ok(())
}
