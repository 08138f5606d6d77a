//! The records of the journal.
//!
//! The entry of an experiment's call stands behind the names of the experiment, in records of their own kinds. So the bytes
//! of all other calls are the same with and without experiments, and journals of earlier versions are read.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::entry::{ExperimentNames, LedgerEntry};

/// One record.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(from = "ReadRecord")]
pub enum Record {
    /// A part of a running call's response was delivered. If the process dies now, this is the call's entry.
    Delivered(Box<LedgerEntry>),
    /// The call has ended with this charge.
    Ended(Box<LedgerEntry>),
}

/// A borrowed record for writing. [`Record`] is read from its bytes.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(into = "WrittenRecord<'a>")]
pub enum RecordRef<'a> {
    /// A part of a running call's response was delivered. If the process dies now, this is the call's entry.
    Delivered(&'a LedgerEntry),
    /// The call has ended with this charge.
    Ended(&'a LedgerEntry),
}

/// A record as its bytes are written. New kinds come last.
#[derive(Serialize)]
enum WrittenRecord<'a> {
    Delivered(&'a LedgerEntry),
    Ended(&'a LedgerEntry),
    DeliveredVariation(&'a ExperimentNames, &'a LedgerEntry),
    EndedVariation(&'a ExperimentNames, &'a LedgerEntry),
}

/// A record as its bytes are read: the kinds of [`WrittenRecord`].
#[derive(Deserialize)]
enum ReadRecord {
    Delivered(Box<LedgerEntry>),
    Ended(Box<LedgerEntry>),
    DeliveredVariation(Arc<ExperimentNames>, Box<LedgerEntry>),
    EndedVariation(Arc<ExperimentNames>, Box<LedgerEntry>),
}

impl<'a> From<RecordRef<'a>> for WrittenRecord<'a> {
    fn from(record: RecordRef<'a>) -> Self {
        let (RecordRef::Delivered(entry) | RecordRef::Ended(entry)) = record;
        match (record, &entry.experiment) {
            (RecordRef::Delivered(_), None) => Self::Delivered(entry),
            (RecordRef::Ended(_), None) => Self::Ended(entry),
            (RecordRef::Delivered(_), Some(names)) => Self::DeliveredVariation(names, entry),
            (RecordRef::Ended(_), Some(names)) => Self::EndedVariation(names, entry),
        }
    }
}

impl From<ReadRecord> for Record {
    fn from(record: ReadRecord) -> Self {
        let of_experiment = |names, mut entry: Box<LedgerEntry>| {
            entry.experiment = Some(names);
            entry
        };
        match record {
            ReadRecord::Delivered(entry) => Self::Delivered(entry),
            ReadRecord::Ended(entry) => Self::Ended(entry),
            ReadRecord::DeliveredVariation(names, entry) => {
                Self::Delivered(of_experiment(names, entry))
            }
            ReadRecord::EndedVariation(names, entry) => Self::Ended(of_experiment(names, entry)),
        }
    }
}

impl<'a> From<&'a Record> for RecordRef<'a> {
    fn from(record: &'a Record) -> Self {
        match record {
            Record::Delivered(entry) => Self::Delivered(entry),
            Record::Ended(entry) => Self::Ended(entry),
        }
    }
}
