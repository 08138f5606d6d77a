//! Datafiles: from files, from a source by URL, cached in memory and on disk.

pub mod announcer;
pub mod cache;
pub mod deferred_drop;
pub mod disk_cache;
pub mod loaded;
pub mod local;
pub mod negative_cache;
pub mod remote;
pub mod state;
