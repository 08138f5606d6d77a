//! How many requests one caller may send: operations, levels, windows, and what the answer says about them.
//!
//! A request goes through in this order: [`normalise`] makes the copy of the path that decides, [`operation`] finds the
//! row it counts on, [`level`] that row's limit for the tenant, [`window`] admits or refuses, [`headers`] tell the
//! client. [`cache_key`] says which answers may be kept, and [`upstream_hit`] which admissions are given back.
//! The windows of the model gateway's quotas are the same windows under other keys.
//!
//! Not here: who the tenant is (`auth`), the clock, windows shared over Redis, the cache itself.

mod counter;
pub mod headers;
mod key;
pub mod level;
pub mod operation;
mod path;
mod table;
pub mod tenant;
mod window;

pub use key::{Address, Key, RowId, Who};
pub use level::{Allocation, Category, Ladder};
pub use operation::{Found, Operation, Operations};
pub use path::{BadPath, normalise};
pub use tenant::Limits;
pub use window::{Algorithm, Ticket, Verdict, Windows};
