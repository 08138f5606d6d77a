//! How many requests one caller may send: operations, levels, windows, and what the answer says about them.
//!
//! A request goes through in this order: [`normalise`] makes the copy of the path that decides, [`operation`] finds the
//! row it counts on, [`level`] that row's limit for the tenant, [`window`] admits or refuses, [`headers`] tell the
//! client. [`HeadKey`] and [`may_keep`] say which answers are kept, [`is_upstream_hit`] which admissions are given
//! back. The windows of the model gateway's quotas are the same windows under other keys.
//!
//! Not here: who the tenant is (`auth`), the clock, windows shared over Redis, the cache itself.

mod cache_key;
mod counter;
mod document;
pub mod headers;
mod kept;
mod key;
pub mod level;
pub mod operation;
mod path;
pub mod quota;
mod table;
pub mod tenant;
mod window;

pub use cache_key::{Asked, Bypass, CacheKey, HeadKey};
pub use headers::is_replaced;
pub use kept::{age_s, fresh_for_s, is_upstream_hit, may_keep};
pub use key::{Address, Key, RowId, Who};
pub use level::{Allocation, Category, Ladder};
pub use operation::{Found, Operation, Operations};
pub use path::{BadPath, normalise};
pub use quota::{Group, Quotas};
pub use tenant::Limits;
pub use window::{Algorithm, Ticket, Verdict, Windows};
