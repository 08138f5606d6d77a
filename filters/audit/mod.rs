//! The audit log: what an entry says of a change of accounts, and the chain of hashes that holds entries together.
//!
//! Who writes entries decides nothing: the form of an entry, the fields that it may have and its hash are here. The hash of an
//! entry covers the hash of the entry before, so an entry cannot be changed, taken out or put in without changing all hashes
//! behind it. What a chain proves, and what not: docs/audit.md.

mod actor;
mod chain;
mod fields;

pub use actor::{Actor, PROGRAM};
pub use chain::{AuditHead, BrokenChain, ChainBreak, ChainWalk, EntryHash};
pub use fields::{AuditKind, EntryFields, Verb};

/// An entry without its hash.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuditEntry {
    /// Its place in the log, counted from 1.
    pub number: i64,
    /// When it was written. Units: unix milliseconds.
    pub at_ms: i64,
    /// Who made the change, as they say of themselves.
    pub actor: String,
    /// From where: `command line at HOST`, `console from ADDRESS`.
    pub origin: String,
    /// What was done: the kind of the thing and a verb, as `key.create`.
    pub action: String,
    /// The kind of the thing: `key`.
    pub kind: String,
    /// The id of the thing.
    pub subject_id: String,
    /// What the thing is called; empty: nothing.
    pub name: String,
    /// The id of the organization that it belongs to, or that it is; empty: none.
    pub organization_id: String,
    /// What that organization is called.
    pub organization: String,
    /// The fields that change as they were: a JSON object; `None`: the thing is new.
    pub before: Option<String>,
    /// The fields that change as they are from then on; `None`: the thing is gone.
    pub after: Option<String>,
}

#[cfg(test)]
mod tests;
