//! How many requests one caller may send: windows, quotas, and what the response says about them.
//!
//! [`window`] admits or refuses under a [`WindowKey`], [`headers`] tell the client. The windows of the graph service and the
//! quotas of the model gateway are the same windows under other keys.
//!
//! Not here: who the caller is (`accounts`, `graph::credentials`), which limit applies (`graph`), the clock, windows
//! shared over Redis.

mod counter;
pub mod headers;
mod key;
mod outage;
pub mod quota;
mod window;

pub use key::{Address, RowId, Subject, WindowKey};
pub use outage::outage_share;
pub use quota::{QuotaGroup, Quotas};
pub use window::{Algorithm, RefundToken, Verdict, Windows};
