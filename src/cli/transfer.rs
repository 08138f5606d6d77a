//! `weirgate export` and `weirgate import`: the whole store as a file, and back.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::accounts::{load_named, now_ms, run_on_store, write_on_store};
use super::arguments::FormatArgs;
use super::progress::WorkProgress;
use super::{Exit, Output, OutputFormat, Record, Source, apply, litellm};
use crate::ledger::recovery::recover_journals;
use crate::store::{
    ExportedStore, StoreSettings, TransferPhase, TransferProgress, TransferTotals, export,
    export_to_file, import,
};

pub(super) const EXPORT_EXAMPLES: &str = "\
Examples:
  weirgate export /backup/weirgate-2026-11-28.jsonl
  weirgate export - | zstd > weirgate.jsonl.zst
  weirgate export --apply accounts.toml      the accounts alone, for `weirgate apply`

The file holds all tables of SQLite or PostgreSQL, for `weirgate import` into either. Stop the server first, so that nothing is
missing. The file holds no secret: keep secret.key (or the file of store.secret) with it, without which no API key counts.";

pub(super) const IMPORT_EXAMPLES: &str = "\
Examples:
  weirgate import weirgate.jsonl -c /etc/weirgate/weirgate.toml
  WEIRGATE_STORE__URL=postgres://db/weirgate weirgate import weirgate.jsonl
  weirgate import --from litellm config.yaml
  weirgate import --from litellm --into /etc/weirgate config.yaml

The store that the configuration names has to be empty, and to have the secret of the one that was exported. If the import is
cut, run it again with the same file: it goes on where it was. Until it is done no server starts on that store.

Run --from in the environment of the other gateway: addresses in variables are read then, secrets are not.";

/// The columns of the sums, which are also the fields of their JSON.
const COLUMNS: [&str; 7] = [
    "file",
    "organizations",
    "keys",
    "calls",
    "granted",
    "used",
    "cost",
];

/// The name of stdout.
const STDOUT: &str = "-";

/// Arguments of `export`.
#[derive(Args)]
pub(super) struct ExportArgs {
    /// The file, which must not exist yet; `-`: stdout
    file: PathBuf,
    /// Write the accounts alone, as a file that `weirgate apply` takes, whether or not a server runs
    #[arg(long, conflicts_with = "while_running")]
    apply: bool,
    /// With --apply: of this organization alone
    #[arg(long, requires = "apply")]
    org: Option<String>,
    /// Export although a server works on the store: what it has not stored yet is missing
    #[arg(long)]
    while_running: bool,
    #[command(flatten)]
    output: FormatArgs,
}

/// The other gateways whose configurations are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum ForeignGateway {
    /// The proxy of LiteLLM
    Litellm,
}

/// Arguments of `import`.
#[derive(Args)]
pub(super) struct ImportArgs {
    /// A file of `weirgate export`, or with --from another gateway's configuration
    file: PathBuf,
    /// Whose configuration it is: it becomes a configuration, a catalogue and a file of accounts, and no store is touched
    #[arg(long)]
    from: Option<ForeignGateway>,
    /// With --from: the folder for what is written
    #[arg(long, value_name = "FOLDER", requires = "from")]
    into: Option<PathBuf>,
    #[command(flatten)]
    output: FormatArgs,
}

/// Runs `export`.
pub(super) fn run_export(args: &ExportArgs, source: &Source, out: &mut Output) -> Exit {
    let done = match args.apply {
        true => apply::export(
            args.org.as_deref(),
            (&args.file, args.output.format),
            source,
            out,
        ),
        false => export_store(args, source, out),
    };
    done.map_or_else(|exit| exit, |()| Exit::Done)
}

/// Runs `import`.
pub(super) fn run_import(args: &ImportArgs, source: &Source, out: &mut Output) -> Exit {
    match args.from {
        Some(ForeignGateway::Litellm) => {
            let into = args.into.as_deref();
            let into = into.unwrap_or(Path::new(litellm::USUAL_FOLDER));
            litellm::run(&args.file, into, args.output.format, out)
        }
        None => import_store(args, source, out).map_or_else(|exit| exit, |()| Exit::Done),
    }
}

fn export_store(args: &ExportArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let loaded = load_named(source, out)?;
    let is_stdout = args.file == Path::new(STDOUT);
    warn_of_journals(&loaded.config.store.state_dir, out);
    let progress = out.progress();
    let exported = write_on_store(out, async |out| {
        let settings = StoreSettings::from_config(&loaded.config.store)?;
        let mut on_progress = |step: TransferProgress<'_>| show(&progress, &step);
        let (while_running, file) = (args.while_running, &args.file);
        let exported = match is_stdout {
            true => {
                let mut lines = ResultWriter(out);
                let to = (file.as_path(), &mut lines as &mut dyn Write);
                export(&settings, while_running, to, &mut on_progress).await
            }
            false => export_to_file(&settings, while_running, file, &mut on_progress).await,
        };
        progress.end();
        exported
    })?;
    warn_of_missing(&exported, out);
    out.note(
        "keep secret.key (or the file of store.secret) with the file: without it no API key counts",
    );
    if is_stdout {
        let sums = to_record(&args.file, &exported.totals).into_iter().skip(1);
        let sums = sums.map(|(name, sum)| format!("{name} {}", sum.to_string().trim_matches('"')));
        out.note(&sums.collect::<Vec<_>>().join(", "));
    } else {
        print_totals(args.output.format, (&args.file, &exported.totals), out);
    }
    Ok(())
}

fn import_store(args: &ImportArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let loaded = load_named(source, out)?;
    let progress = out.progress();
    let imported = run_on_store(out, async {
        let settings = StoreSettings::from_config(&loaded.config.store)?;
        let mut on_progress = |step: TransferProgress<'_>| show(&progress, &step);
        let imported = import(&settings, &args.file, now_ms(), &mut on_progress).await;
        progress.end();
        imported
    })?;
    if let Some(place) = imported.resumed_at {
        out.note(&format!("the import went on where it was cut: {place}"));
    }
    print_totals(args.output.format, (&args.file, &imported.totals), out);
    Ok(())
}

/// Writes to stdout as a part of the result.
struct ResultWriter<'o>(&'o mut Output);

impl Write for ResultWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(std::io::Error::other)?;
        self.0.text(text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Warns of calls that processes have left in the state folder when they were killed.
fn warn_of_journals(state_dir: &Path, out: &mut Output) {
    match recover_journals(state_dir) {
        Ok(journals) => {
            let calls: usize = journals.iter().map(|journal| journal.entries.len()).sum();
            if calls > 0 {
                out.warn(&format!(
                    "{} holds {calls} calls of processes that were killed, and the store may lack some: to have them in the file, \
                     start the server once, stop it, and export again",
                    state_dir.display()
                ));
            }
        }
        Err(error) => out.warn(&format!(
            "the journal of calls cannot be read, and the store may lack some: {error}"
        )),
    }
}

fn warn_of_missing(exported: &ExportedStore, out: &mut Output) {
    if exported.has_server {
        out.warn(
            "a server works on the store: calls that it has not stored yet are missing in the file, and what it holds of credit is \
             in the file as reserved, until another server needs it",
        );
    }
    if exported.left_journals > 0 {
        out.warn(&format!(
            "{} processes are gone whose journal may hold calls that the store lacks: `weirgate journal list` names them. A start \
             with their store.state_dir brings the calls",
            exported.left_journals
        ));
    }
}

fn show(progress: &WorkProgress, step: &TransferProgress<'_>) {
    let doing = match step.phase {
        TransferPhase::Export => "exporting",
        TransferPhase::Check => "checking the file:",
        TransferPhase::Write => "importing",
        TransferPhase::Compare => "comparing",
    };
    let (table, rows) = (step.table, step.rows);
    progress.show(
        format_args!("{doing} {table}, row {rows}"),
        step.done,
        step.total,
    );
}

fn print_totals(format: OutputFormat, (file, totals): (&Path, &TransferTotals), out: &mut Output) {
    out.record(format, &COLUMNS, to_record(file, totals));
}

fn to_record(file: &Path, totals: &TransferTotals) -> Record {
    let values = [
        json!(file.display().to_string()),
        json!(totals.organizations),
        json!(totals.keys),
        json!(totals.calls),
        json!(totals.granted.to_string()),
        json!(totals.settled.to_string()),
        json!(totals.cost.to_string()),
    ];
    COLUMNS.map(str::to_owned).into_iter().zip(values).collect()
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
