//! The records of the journal.
//!
//! What the first entries had not stands before the entry, in records of their own kinds: tags and budgets, the session, the
//! experiment, the units and what they cost. So the bytes of all other calls are what they ever were, and journals of earlier versions are read.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::entry::{CallMarks, ExperimentNames, LedgerEntry, SessionNames, units};
use crate::money::{UnitCounts, Usd};

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
    DeliveredWith(Additions<&'a ExperimentNames>, &'a LedgerEntry),
    EndedWith(Additions<&'a ExperimentNames>, &'a LedgerEntry),
    DeliveredIn(
        InSession<&'a SessionNames, &'a ExperimentNames>,
        &'a LedgerEntry,
    ),
    EndedIn(
        InSession<&'a SessionNames, &'a ExperimentNames>,
        &'a LedgerEntry,
    ),
    DeliveredOf(
        Marked<&'a CallMarks, &'a SessionNames, &'a ExperimentNames>,
        &'a LedgerEntry,
    ),
    EndedOf(
        Marked<&'a CallMarks, &'a SessionNames, &'a ExperimentNames>,
        &'a LedgerEntry,
    ),
}

/// A record as its bytes are read: the kinds of [`WrittenRecord`].
#[derive(Deserialize)]
enum ReadRecord {
    Delivered(Box<LedgerEntry>),
    Ended(Box<LedgerEntry>),
    DeliveredWith(Additions<Arc<ExperimentNames>>, Box<LedgerEntry>),
    EndedWith(Additions<Arc<ExperimentNames>>, Box<LedgerEntry>),
    DeliveredIn(
        InSession<Arc<SessionNames>, Arc<ExperimentNames>>,
        Box<LedgerEntry>,
    ),
    EndedIn(
        InSession<Arc<SessionNames>, Arc<ExperimentNames>>,
        Box<LedgerEntry>,
    ),
    DeliveredOf(ReadMarked, Box<LedgerEntry>),
    EndedOf(ReadMarked, Box<LedgerEntry>),
}

/// The marks `M` of an entry, its session `S` if it has one, and its other additions.
type Marked<M, S, E> = (M, Option<S>, Option<Additions<E>>);
type ReadMarked = Marked<Arc<CallMarks>, Arc<SessionNames>, Arc<ExperimentNames>>;

/// The session `S` of an entry, and its other additions.
type InSession<S, E> = (S, Option<Additions<E>>);

/// What the first entries had not, with the names of an experiment as `E`.
#[derive(Clone, Copy, Deserialize, Serialize)]
struct Additions<E> {
    experiment: Option<E>,
    units: UnitCounts,
    #[serde(with = "units")]
    unit_cost: Usd,
}

impl<'a> Additions<&'a ExperimentNames> {
    /// Returns those of an entry; `None`: it has none.
    fn of_entry(entry: &'a LedgerEntry) -> Option<Self> {
        let additions = Self {
            experiment: entry.experiment.as_deref(),
            units: entry.usage.units,
            unit_cost: entry.usage.cost.map_or(Usd::ZERO, |cost| cost.units),
        };
        let has_units = !additions.units.is_zero() || !additions.unit_cost.is_zero();
        (additions.experiment.is_some() || has_units).then_some(additions)
    }
}

impl Additions<Arc<ExperimentNames>> {
    fn add_to(self, mut entry: Box<LedgerEntry>) -> Box<LedgerEntry> {
        entry.experiment = self.experiment;
        entry.usage.units = self.units;
        if let Some(cost) = &mut entry.usage.cost {
            cost.units = self.unit_cost;
        }
        entry
    }
}

impl<'a> From<RecordRef<'a>> for WrittenRecord<'a> {
    fn from(record: RecordRef<'a>) -> Self {
        let (entry, has_ended) = match record {
            RecordRef::Delivered(entry) => (entry, false),
            RecordRef::Ended(entry) => (entry, true),
        };
        let additions = Additions::of_entry(entry);
        if let Some(marks) = entry.marks.as_deref() {
            let marked = (marks, entry.session.as_deref(), additions);
            return match has_ended {
                false => Self::DeliveredOf(marked, entry),
                true => Self::EndedOf(marked, entry),
            };
        }
        match (entry.session.as_deref(), additions, has_ended) {
            (None, None, false) => Self::Delivered(entry),
            (None, None, true) => Self::Ended(entry),
            (None, Some(additions), false) => Self::DeliveredWith(additions, entry),
            (None, Some(additions), true) => Self::EndedWith(additions, entry),
            (Some(session), additions, false) => Self::DeliveredIn((session, additions), entry),
            (Some(session), additions, true) => Self::EndedIn((session, additions), entry),
        }
    }
}

impl From<ReadRecord> for Record {
    fn from(record: ReadRecord) -> Self {
        match record {
            ReadRecord::Delivered(entry) => Self::Delivered(entry),
            ReadRecord::Ended(entry) => Self::Ended(entry),
            ReadRecord::DeliveredWith(additions, entry) => Self::Delivered(additions.add_to(entry)),
            ReadRecord::EndedWith(additions, entry) => Self::Ended(additions.add_to(entry)),
            ReadRecord::DeliveredIn(session, entry) => Self::Delivered(put_in(session, entry)),
            ReadRecord::EndedIn(session, entry) => Self::Ended(put_in(session, entry)),
            ReadRecord::DeliveredOf(marked, entry) => Self::Delivered(mark(marked, entry)),
            ReadRecord::EndedOf(marked, entry) => Self::Ended(mark(marked, entry)),
        }
    }
}

fn put_in(
    (session, additions): InSession<Arc<SessionNames>, Arc<ExperimentNames>>,
    entry: Box<LedgerEntry>,
) -> Box<LedgerEntry> {
    let mut entry = match additions {
        Some(additions) => additions.add_to(entry),
        None => entry,
    };
    entry.session = Some(session);
    entry
}

fn mark((marks, session, additions): ReadMarked, entry: Box<LedgerEntry>) -> Box<LedgerEntry> {
    let mut entry = match additions {
        Some(additions) => additions.add_to(entry),
        None => entry,
    };
    (entry.session, entry.marks) = (session, Some(marks));
    entry
}

impl<'a> From<&'a Record> for RecordRef<'a> {
    fn from(record: &'a Record) -> Self {
        match record {
            Record::Delivered(entry) => Self::Delivered(entry),
            Record::Ended(entry) => Self::Ended(entry),
        }
    }
}
