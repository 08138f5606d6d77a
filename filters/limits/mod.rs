//! Request limits: windows, quotas and the headers that state them.
//!
//! [`window`] admits or refuses a request under a [`WindowKey`]; [`headers`] state a quota. The graph service and the
//! quotas of the model gateway use the same windows under different keys.
//!
//! The caller (`accounts`, `graph::credentials`), the limit that applies (`graph`), the clock and windows shared over
//! Redis are elsewhere.

mod counter;
pub mod headers;
mod key;
mod lease;
mod nearest;
mod occupancy;
mod outage;
mod passing;
pub mod quota;
mod refusals;
mod shards;
mod share;
mod window;

pub use key::{Address, RowId, Subject, WindowKey};
pub use lease::{LeaseStep, Leases, Leftover, SharedCount, lease_ms, lease_parts};
pub use nearest::{NearestWindows, WindowUse};
pub use occupancy::Occupancy;
pub use outage::outage_share;
pub use quota::{Payer, QuotaGroup, QuotaLimit, Quotas};
pub use refusals::{Refusals, RefusedCount};
pub use share::Share;
pub use window::{Algorithm, RefundToken, Verdict, Windows};
