//! Who calls: API keys by hash, and the caller that stands behind one.
//!
//! [`admit()`] answers from a snapshot in memory: one checksum, one HMAC-SHA256, one map look-up. It never learns
//! the text of a key that was issued (only its keyed hash), reads no clock and keeps no state. Making keys,
//! storing accounts and refreshing the snapshot are not its business. The decision endpoints have credentials of their
//! own, [`sdk`] keys and [`token`]s; [`jwks`] are the keys of foreign tokens; [`graph`] tells the tenants of the graph service.
//! [`client_address`] tells where a call came from.

mod address;
mod admit;
mod caller;
pub mod graph;
pub mod jwks;
mod key;
pub mod rules;
pub mod sdk;
mod terms;
pub mod token;

pub use address::client_address;
pub use admit::{AuthError, admit};
pub use caller::{Accounts, Caller, KeyRow, Member, Mode, Plan, UnknownWord};
pub use key::{Key, KeyHash, KeyText, MalformedKey, Pepper, ShortPepper};
pub use terms::{BadTerm, Terms, WrittenTerms};
