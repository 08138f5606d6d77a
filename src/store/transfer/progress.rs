//! How far a transfer has come.

/// What a transfer does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TransferPhase {
    /// Tables are read. Units: tables.
    Export,
    /// The file is checked. Units: bytes.
    Check,
    /// Rows are written. Units: bytes of the file.
    Write,
    /// What was written is compared with the file. Units: tables.
    Compare,
}

/// How far a transfer has come.
#[derive(Clone, Copy, Debug)]
pub struct TransferProgress<'a> {
    pub phase: TransferPhase,
    /// The table that it is in.
    pub table: &'a str,
    /// The number of rows of that table.
    pub rows: u64,
    /// What is done of `total`.
    pub done: u64,
    pub total: u64,
}

/// Is told how far a transfer has come: often, but not of each row.
pub type OnProgress<'f> = dyn FnMut(TransferProgress<'_>) + 'f;

/// The number of rows between two reports.
pub(super) const ROWS_BETWEEN: u64 = 512;
