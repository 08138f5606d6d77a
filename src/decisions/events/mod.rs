//! Events on their way to the backend: queued in memory, spooled to disk, sent in batches; and the events of ODP.

pub mod odp;
pub mod queue;
pub mod recent;
pub mod spool;
