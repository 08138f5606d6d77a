//! The graph service's rules: operations, tiers, tenants, and which responses may be cached.
//!
//! [`operation`] finds the row a request counts on, [`tiers`] that row's limit for the tenant. [`CacheKey`] and
//! [`may_keep`] say which responses are cached, [`is_upstream_hit`] which admissions are refunded.
//!
//! Not here: windows and their headers (`limits`), the cache itself, sockets.

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
pub use operation::{Operation, OperationMatch, Operations};
pub use tenant::TenantLimits;
pub use tiers::{Allocation, Category, Tiers};
