//! The graph service's rules: operations, tiers, tenants, and the responses that may be cached.
//!
//! [`operation`] finds the row that a request counts on, and [`tiers`] that row's limit for the tenant. [`CacheKey`]
//! and [`is_cacheable`] decide which responses are cached, [`is_upstream_hit`] which admissions are refunded.
//!
//! Not here: windows (`limits`), the cache itself, sockets.

mod cache_key;
mod cacheability;
pub mod credentials;
mod document;
pub mod headers;
pub mod operation;
mod table;
pub mod tenant;
pub mod tiers;

pub use cache_key::{Bypass, CacheKey, CacheRequest, HeadKey};
pub use cacheability::{age_s, fresh_for_s, is_cacheable, is_upstream_hit};
pub use operation::{GraphOperation, OperationMatch, Operations};
pub use tenant::TenantLimits;
pub use tiers::{Allocation, Category, Tiers};
