//! Moves a whole store: [`export`] writes its tables to a file, [`import`] writes such a file to an empty store, which may be of
//! the other database.
//!
//! The file has no secret: keys are hashed and other secrets encrypted under that of the store, which does not come with it. Equal
//! stores have equal files, byte for byte, so that an import is compared with its file. Nothing here asks people or programs.

mod batch;
mod check;
mod export;
mod format;
mod import;
mod import_record;
mod lines;
mod progress;
mod shape;
mod table_rows;
pub(super) mod tables;
mod totals;

pub use export::{ExportedStore, export, export_to_file};
pub use import::{ImportedStore, import};
pub(super) use import_record::check_finished;
pub use progress::{OnProgress, TransferPhase, TransferProgress};
pub use totals::TransferTotals;
