//! The arguments of `weirgate prompt`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use filters::models::prompts::reference::{LATEST, PRODUCTION};

use crate::cli::arguments::FormatArgs;
use crate::store::PromptOwner;

pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  weirgate prompt put --org acme greeting greeting.toml
  weirgate prompt put --org acme --project app greeting greeting.json --label staging
  weirgate prompt label --org acme greeting latest production
  weirgate prompt diff --org acme greeting production latest
  weirgate prompt show --org acme greeting@3 --format json
  weirgate prompt rename --org acme greeting hello
  weirgate prompt remove --org acme hello

A file has `messages`, and may have `model`, `parameters` and `variables`:
  model = \"gpt-5-mini\"
  parameters = { temperature = 0.2 }
  variables.tone = { type = \"string\", default = \"friendly\" }
  [[messages]]
  role = \"system\"
  content = \"Answer {{name}} in a {{tone}} tone.\"";

/// The commands of `prompt`.
#[derive(Subcommand)]
pub(in crate::cli) enum PromptCommand {
    /// Store a file as the next version of a prompt; prints the version's number
    Put(PutArgs),
    /// List prompts with their versions and labels
    List {
        #[command(flatten)]
        owner: OwnerArgs,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Show a version of a prompt
    Show {
        #[command(flatten)]
        owner: OwnerArgs,
        /// Its name, and the version if not that of `production`
        #[arg(value_name = "NAME[@LABEL|@VERSION]")]
        name: String,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Move a label to a version
    Label {
        #[command(flatten)]
        owner: OwnerArgs,
        /// Its name
        name: String,
        /// The version: its number, or a label that it has
        version: String,
        /// The label: `production` is what requests get that name none
        label: String,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Give a prompt another name: a later prompt of the name before goes on counting its versions
    Rename {
        #[command(flatten)]
        owner: OwnerArgs,
        /// Its name
        name: String,
        /// What it is called from now on
        new_name: String,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Show what has changed between two versions
    Diff {
        #[command(flatten)]
        owner: OwnerArgs,
        /// Its name
        name: String,
        /// The version before: its number or a label
        #[arg(default_value = PRODUCTION)]
        from: String,
        /// The version after: its number or a label
        #[arg(default_value = LATEST)]
        to: String,
        #[command(flatten)]
        output: FormatArgs,
    },
    /// Remove a prompt, or a label of it
    #[command(visible_alias = "delete")]
    Remove {
        #[command(flatten)]
        owner: OwnerArgs,
        /// Its name
        name: String,
        /// Remove only this label
        #[arg(long)]
        label: Option<String>,
        #[command(flatten)]
        output: FormatArgs,
    },
}

/// Whose prompt it is.
#[derive(Args)]
pub(in crate::cli) struct OwnerArgs {
    /// The organization's name
    #[arg(long)]
    pub(super) org: String,
    /// The project's name; without it the prompt serves all projects that have none of the same name
    #[arg(long)]
    pub(super) project: Option<String>,
}

/// Arguments of `prompt put`.
#[derive(Args)]
pub(in crate::cli) struct PutArgs {
    #[command(flatten)]
    pub(super) owner: OwnerArgs,
    /// Its name, which requests give as `@prompt/NAME`
    pub(super) name: String,
    /// TOML or JSON
    pub(super) file: PathBuf,
    /// Move this label to the new version; without one, the first version becomes `production`
    #[arg(long)]
    pub(super) label: Vec<String>,
    #[command(flatten)]
    pub(super) output: FormatArgs,
}

impl OwnerArgs {
    pub(super) fn as_owner(&self) -> PromptOwner<'_> {
        PromptOwner {
            organization: &self.org,
            project: self.project.as_deref(),
        }
    }

    pub(super) fn describe(&self) -> String {
        match &self.project {
            Some(project) => format!("`{}` / `{project}`", self.org),
            None => format!("`{}`", self.org),
        }
    }
}
