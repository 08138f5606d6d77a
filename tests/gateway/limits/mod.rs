//! Quotas, and the windows that processes share.

mod quotas;
mod shared_leases;
mod shared_quotas;
mod shared_windows;
