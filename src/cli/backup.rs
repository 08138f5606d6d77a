//! `weirgate backup`: a copy of the store.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::accounts::{load_named, run_on_store};
use super::arguments::FormatArgs;
use super::{Exit, Output, Source};
use crate::store::{StoreUrl, back_up};

pub(super) const EXAMPLES: &str = "\
Examples:
  weirgate backup /backup/weirgate-2026-11-22.db

The copy is one moment of the SQLite file, whether or not a server runs. Keep secret.key (store.state_dir) with it: without
that file no API key counts. To restore, stop the server and put both files back.";

/// Arguments of `backup`.
#[derive(Args)]
pub(super) struct BackupArgs {
    /// The copy, which must not exist yet
    file: PathBuf,
    #[command(flatten)]
    output: FormatArgs,
}

pub(super) fn run(args: &BackupArgs, source: &Source, out: &mut Output) -> Exit {
    copy_store(args, source, out).map_or_else(|exit| exit, |()| Exit::Done)
}

fn copy_store(args: &BackupArgs, source: &Source, out: &mut Output) -> Result<(), Exit> {
    let loaded = load_named(source, out)?;
    let progress = out.progress();
    let bytes = run_on_store(out, async {
        let store = StoreUrl::parse(&loaded.config.store.url)?;
        let on_bytes = |done, total| progress.show(format_args!("copying the store"), done, total);
        let copied = back_up(&store, &args.file, on_bytes).await;
        progress.end();
        copied
    })?;
    let note =
        format!("wrote {bytes} bytes; keep secret.key with the copy: without it no API key counts");
    let file = args.file.display().to_string();
    let done = json!({"done": "copied", "file": file, "bytes": bytes});
    out.done(args.output.format, &note, Some(&file), &done);
    Ok(())
}
