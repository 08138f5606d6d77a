//! Callers: API keys by hash, the caller behind a key, and what the caller may do.
//!
//! [`admit()`] reads a snapshot in memory: one checksum, one HMAC-SHA256, one map look-up. It sees only the keyed hash
//! of issued keys, reads no clock and keeps no state.
//!
//! Not here: making keys, storing accounts, refreshing the snapshot.

mod admit;
mod api_key;
mod caller;
pub mod rules;
mod terms;

pub use admit::{AuthError, admit, carries_api_key};
pub use api_key::{ApiKey, KeyHash, KeyText, MalformedKey, Pepper, ShortPepper, holds_api_key};
pub use caller::{
    AccountsSnapshot, Caller, KeyRow, Member, Mode, OrganizationStatus, Plan, UnknownValue,
};
pub use terms::{InvalidTerm, KeyTerms, TermsFile};
