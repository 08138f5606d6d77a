//! The command line: its arguments, and the modules that run each command.
//!
//! Commands work on the configured store, whether or not a server runs; a running server notices changes by itself.
//! Everything is written through [`Output`].

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::app::handover::predecessor::is_offered;
use crate::config;
use crate::config::{LoadedConfig, Problem, Source};
use crate::control::ControlCommand;

mod accounts;
mod actor;
mod alias_file;
mod apply;
mod arguments;
mod audit;
mod backup;
pub mod check;
mod clients;
mod codex;
#[path = "config.rs"]
pub mod configuration;
mod console;
mod control;
mod credit;
mod decisions;
mod examples;
mod explain;
mod init;
mod journal;
mod key;
mod listener;
mod litellm;
mod log_export;
mod mcp;
mod mcp_clients;
mod member;
pub mod models;
mod move_alias;
mod new_files;
mod org;
pub mod output;
mod pages;
mod paste;
pub mod progress;
mod project;
mod prompt;
mod provider_key;
mod reconcile;
mod retiring;
mod session;
mod shipped;
mod status;
mod terms;
mod transfer;
mod usage;

pub use output::{Exit, Output, OutputFormat, Record};

const EXAMPLES: &str = "\
Examples:
  weirgate                                   serve with ./conf/weirgate.toml
  weirgate check -c /etc/weirgate/weirgate.toml
  weirgate org create acme
  weirgate key create --org acme --label ci  prints the key, this once
  weirgate key revoke key_0190c3a2-…

Exit codes: 0 done, 1 failed, 2 wrong usage, 78 bad configuration.";

/// One edge proxy: a model gateway, flag decisions and graph limits on one listener.
#[derive(Parser)]
#[command(name = "weirgate", version, after_help = EXAMPLES)]
pub struct Cli {
    /// The configuration [default: ./conf/weirgate.toml, else /etc/weirgate/weirgate.toml, else built in]
    #[arg(short, long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Take the place of the server that has started this process
    #[arg(long, hide = true)]
    upgrade: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server; the same as no command
    Serve,
    /// Write a configuration with what the environment has, and the catalogue beside it
    #[command(after_help = init::EXAMPLES)]
    Init(init::InitArgs),
    /// Name every problem of the configuration, each with its place and its cure
    Check(CheckArgs),
    /// Show the configuration in force, its schema, or what a reload would change
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Let the running server read its configuration again, without cutting anything
    #[command(after_help = control::RELOAD_EXAMPLES)]
    Reload(ControlArgs),
    /// Replace the running server by the program that is installed now, without cutting anything
    #[command(after_help = control::UPGRADE_EXAMPLES)]
    Upgrade(ControlArgs),
    /// What the running server is doing
    #[command(after_help = status::EXAMPLES)]
    Status(status::StatusArgs),
    /// The address of the console in a browser; with admin.token a link that signs in once
    #[command(after_help = console::EXAMPLES)]
    Console(ControlArgs),
    /// Make organizations, projects, members, keys, provider keys and prompts as a file declares them
    #[command(after_help = apply::EXAMPLES)]
    Apply(apply::ApplyArgs),
    /// Organizations: who pays
    #[command(subcommand, after_help = org::EXAMPLES)]
    Org(org::OrgCommand),
    /// Projects: parts of an organization
    #[command(subcommand, after_help = project::EXAMPLES)]
    Project(project::ProjectCommand),
    /// API keys
    #[command(subcommand, after_help = key::EXAMPLES)]
    Key(key::KeyCommand),
    /// Members: who owns keys
    #[command(subcommand, after_help = member::EXAMPLES)]
    Member(member::MemberCommand),
    /// Platform credit
    #[command(subcommand, after_help = credit::EXAMPLES)]
    Credit(credit::CreditCommand),
    /// Sessions of clients: what they spend under their budget, and what people say of them
    #[command(subcommand, after_help = session::EXAMPLES)]
    Session(session::SessionCommand),
    /// What calls took and cost
    #[command(after_help = usage::EXAMPLES)]
    Usage(usage::UsageArgs),
    /// Whether the ledger and a provider's bill say the same, by model and day
    #[command(after_help = reconcile::EXAMPLES)]
    Reconcile(reconcile::ReconcileArgs),
    /// Who has changed accounts, and whether the log of that is whole
    #[command(after_help = audit::EXAMPLES)]
    Audit(audit::AuditArgs),
    /// The callers' own upstream keys, encrypted at rest
    #[command(subcommand, after_help = provider_key::EXAMPLES)]
    ProviderKey(provider_key::ProviderKeyCommand),
    /// Managed prompts: messages, a model and parameters that requests name
    #[command(subcommand, after_help = prompt::EXAMPLES)]
    Prompt(prompt::PromptCommand),
    /// How a request would be routed, and why
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainArgs),
    /// Copy the store while servers use it
    #[command(after_help = backup::EXAMPLES)]
    Backup(backup::BackupArgs),
    /// Write the whole store to a file, for `weirgate import`, or its accounts, for `weirgate apply`
    #[command(after_help = transfer::EXPORT_EXAMPLES)]
    Export(transfer::ExportArgs),
    /// Fill an empty store from a file of `weirgate export`, or take over another gateway's configuration
    #[command(after_help = transfer::IMPORT_EXAMPLES)]
    Import(transfer::ImportArgs),
    /// Processes whose calls may not all be in the store
    #[command(subcommand, after_help = journal::EXAMPLES)]
    Journal(journal::JournalCommand),
    /// The catalogue of models: what it has, what ends, and who calls that
    #[command(subcommand, after_help = models::EXAMPLES)]
    Models(ModelsCommand),
    /// A command line for each endpoint of the running server
    #[command(after_help = examples::EXAMPLES)]
    Examples(examples::ExamplesArgs),
    /// What to paste into clients of the model gateway so that they ask here
    #[command(subcommand, after_help = clients::EXAMPLES)]
    Clients(clients::ClientsCommand),
    /// What to paste into MCP clients so that they know this server
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(mcp::McpArgs),
    /// The decision endpoints
    #[command(subcommand, after_help = decisions::EXAMPLES)]
    Decisions(decisions::DecisionsCommand),
    /// The export of a line of each call
    #[command(subcommand, after_help = log_export::EXAMPLES)]
    LogExport(log_export::LogExportCommand),
    /// Print the manual page, or write one for each command into a folder
    #[command(hide = true)]
    Man {
        /// Where to write them
        folder: Option<PathBuf>,
    },
    /// Print the completions of a shell
    #[command(hide = true)]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// Arguments of `check`.
#[derive(Args)]
pub struct CheckArgs {
    /// Also ask whether the providers and the destination of the log export answer
    #[arg(long)]
    pub online: bool,
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    pub format: CheckFormat,
}

/// Arguments of commands that the running server does.
#[derive(Args)]
pub struct ControlArgs {
    /// For people or for programs
    #[arg(long, value_enum, default_value_t)]
    pub format: OutputFormat,
}

/// The output formats of `check`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum CheckFormat {
    /// With the line of the file and a mark under it.
    #[default]
    Human,
    /// One JSON array.
    Json,
}

/// The commands of `config`.
#[derive(Subcommand)]
pub enum ConfigCommand {
    /// The effective configuration, secrets hidden
    Show {
        /// With where each value came from
        #[arg(long)]
        origin: bool,
        /// For people or for programs
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
    /// The JSON Schema of the configuration file
    Schema,
    /// What a reload of the running server would change
    Diff(ControlArgs),
}

/// The commands of `models`.
#[derive(Subcommand)]
pub enum ModelsCommand {
    /// List the catalogue
    List {
        /// For people or for programs
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
    /// Read a price table and print it as a catalogue
    Import {
        /// Whose table it is
        #[arg(long)]
        from: ImportFrom,
        /// The table
        file: PathBuf,
    },
    /// What providers end, when, and who calls it
    Retiring(retiring::RetiringArgs),
    /// Give an alias to another model, and say whom that concerns and what it changes
    MoveAlias(move_alias::MoveAliasArgs),
}

/// The format of an imported price table.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ImportFrom {
    /// The JSON table of LiteLLM
    Litellm,
    /// The JSON of models.dev
    #[value(name = "models.dev")]
    ModelsDev,
}

/// Runs the program with the process's arguments and returns its exit code.
pub fn main() -> ExitCode {
    run(std::env::args_os(), &mut Output::from_process())
}

/// Runs the program with these arguments, the first of which is its name.
pub fn run(args: impl IntoIterator<Item = OsString>, out: &mut Output) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, out).into(),
    };
    let source = Source::find(cli.config.as_deref());
    let exit = match cli.command {
        None | Some(Command::Serve) => return serve(&source, cli.upgrade, out),
        Some(Command::Init(args)) => init::run(&args, out),
        Some(Command::Check(args)) => check::run(&args, &source, out),
        Some(Command::Reload(args)) => {
            control::run(ControlCommand::Reload, args.format, &source, out)
        }
        Some(Command::Upgrade(args)) => {
            control::run(ControlCommand::Upgrade, args.format, &source, out)
        }
        Some(Command::Status(args)) => status::run(&args, &source, out),
        Some(Command::Console(args)) => console::run(args.format, &source, out),
        Some(Command::Apply(args)) => apply::run(&args, &source, out),
        Some(Command::Config(command)) => configuration::run(&command, &source, out),
        Some(Command::Org(command)) => org::run(&command, &source, out),
        Some(Command::Project(command)) => project::run(&command, &source, out),
        Some(Command::Key(command)) => key::run(&command, &source, out),
        Some(Command::Member(command)) => member::run(&command, &source, out),
        Some(Command::Credit(command)) => credit::run(&command, &source, out),
        Some(Command::Session(command)) => session::run(&command, &source, out),
        Some(Command::Usage(args)) => usage::run(&args, &source, out),
        Some(Command::Reconcile(args)) => reconcile::run(&args, &source, out),
        Some(Command::Audit(args)) => audit::run(&args, &source, out),
        Some(Command::ProviderKey(command)) => provider_key::run(&command, &source, out),
        Some(Command::Prompt(command)) => prompt::run(&command, &source, out),
        Some(Command::Explain(args)) => explain::run(&args, &source, out),
        Some(Command::Backup(args)) => backup::run(&args, &source, out),
        Some(Command::Export(args)) => transfer::run_export(&args, &source, out),
        Some(Command::Import(args)) => transfer::run_import(&args, &source, out),
        Some(Command::Journal(command)) => journal::run(&command, &source, out),
        Some(Command::Models(command)) => models::run(command, &source, out),
        Some(Command::Examples(args)) => examples::run(&args, &source, out),
        Some(Command::Clients(command)) => clients::run(&command, &source, out),
        Some(Command::Mcp(args)) => mcp::run(&args, &source, out),
        Some(Command::Decisions(command)) => decisions::run(&command, out),
        Some(Command::LogExport(command)) => log_export::run(&command, &source, out),
        Some(Command::Man { folder }) => pages::man(Cli::command(), folder.as_deref(), out),
        Some(Command::Completions { shell }) => pages::completions(Cli::command(), shell, out),
    };
    out.finish(exit).into()
}

fn serve(source: &Source, is_successor: bool, out: &mut Output) -> ExitCode {
    if is_successor && !is_offered() {
        out.fail("--upgrade is for a running server alone: see `weirgate upgrade`");
        return Exit::Usage.into();
    }
    match load(source, out) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                out.warn(warning.to_string().trim_end());
            }
            if let Err(problems) = &loaded.config.models.catalog {
                return refuse_configuration(problems, out).into();
            }
            crate::app::serve::serve(loaded, is_successor)
        }
        Err(exit) => exit.into(),
    }
}

/// Loads the configuration, or prints all its problems to stderr.
fn load(source: &Source, out: &mut Output) -> Result<LoadedConfig, Exit> {
    let loaded = config::load(source, config::environment());
    loaded.map_err(|problems| refuse_configuration(&problems, out))
}

/// Prints problems of a configuration or a catalogue to stderr.
fn refuse_configuration(problems: &[Problem], out: &mut Output) -> Exit {
    for problem in problems {
        out.fail(problem.to_string().trim_end());
    }
    Exit::Configuration
}

/// Prints help and version to stdout as a success; any other parser error is wrong usage.
fn refuse(error: &clap::Error, out: &mut Output) -> Exit {
    let text = error.render();
    if error.use_stderr() {
        out.styled_note(&text);
        return Exit::Usage;
    }
    out.styled_text(&text);
    out.finish(Exit::Done)
}

#[cfg(test)]
mod tests;
