//! Arguments that the commands of several kinds of things share.

use clap::Args;

use super::output::OutputFormat;

/// How the result of a command is written.
#[derive(Args, Clone, Copy)]
pub(super) struct FormatArgs {
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// A thing that is named by itself.
#[derive(Args)]
pub(super) struct NameArgs {
    /// Its name
    pub(super) name: String,
    #[command(flatten)]
    pub(super) output: FormatArgs,
}

/// A thing that is named within an organization.
#[derive(Args)]
pub(super) struct OwnedArgs {
    /// The organization's name
    #[arg(long)]
    pub(super) org: String,
    /// Its name
    pub(super) name: String,
    #[command(flatten)]
    pub(super) output: FormatArgs,
}

/// A thing that has an id.
#[derive(Args)]
pub(super) struct IdArgs {
    /// Its id, as `list` shows it
    pub(super) id: String,
    #[command(flatten)]
    pub(super) output: FormatArgs,
}

/// A thing and its new name.
#[derive(Args)]
pub(super) struct RenameArgs<T: Args> {
    #[command(flatten)]
    pub(super) of: T,
    /// What it is called from now on
    pub(super) new_name: String,
}

/// A thing to delete.
#[derive(Args)]
pub(super) struct DeleteArgs<T: Args> {
    #[command(flatten)]
    pub(super) of: T,
    /// Do it; without this option it only says what is given up
    #[arg(long)]
    pub(super) yes: bool,
}
