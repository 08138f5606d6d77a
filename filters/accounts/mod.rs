//! Callers: API keys by hash, the caller behind a key, and what the caller may do.
//!
//! [`admit()`] reads a snapshot in memory: one checksum, one HMAC-SHA256, one map look-up. It sees only the keyed hash
//! of issued keys, reads no clock and keeps no state.
//!
//! Not here: making keys, storing accounts, refreshing the snapshot.

mod access_token;
mod admit;
mod api_key;
mod body_hours;
mod budgets_file;
mod caller;
mod names;
mod passthrough;
mod regions;
pub mod rules;
mod terms;

pub use access_token::AccessToken;
pub use admit::{
    AuthError, admit, admit_hash, admit_key, admit_token, carries_api_key, credential,
    credential_with_query,
};
pub use api_key::{ApiKey, KeyHash, KeyText, MalformedKey, Pepper, ShortPepper, holds_api_key};
pub use body_hours::BodyHours;
pub use budgets_file::{BudgetsFile, normal_limit};
pub use caller::{
    AccountsSnapshot, Caller, FIRST_RUN_LABEL, FIRST_RUN_ORGANIZATION, KeyRow, KeyState, Member,
    Mode, OrganizationStatus, Plan, REVOCATION_KEPT_MS, UnknownValue,
};
pub use names::{check_account_name, check_tag, parse_tags};
pub use passthrough::{OwnCredential, OwnCredentialKind, PassthroughError, Vendor, own_credential};
pub use regions::AllowedRegions;
pub use terms::{InvalidTerm, KeyTerms, TermsFile};
