//! Hands a running gateway over to a new process: an upgrade in place, after which nothing that ran was cut.
//!
//! The [`successor`] is a child of the running process, its [`predecessor`]. Its standard input is a socket pair, the
//! [`channel`], over which it gets the listeners, the lock of the store and the state in memory. Only once it has all of
//! it does it accept connections, and only then does the predecessor stop. If anything fails before, the child ends and
//! the running process serves on as if nothing had happened. The other way to inherit listeners is the service manager:
//! [`inherited`].

pub mod channel;
pub mod inherited;
pub mod peer;
pub mod predecessor;
pub mod program;
pub mod successor;
