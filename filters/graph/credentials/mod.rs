//! Who calls the graph service: the credential a request presents, and the tenant it counts for.
//!
//! [`PresentedCredential::read`] takes the one credential from a request or refuses two; [`Tenants::identify`] says whose it is.
//! Nobody is turned away here: an unknown credential counts for the client's address and is forwarded, since only the
//! service itself knows all of its keys. Not here: fetching key sets and verifying tokens with them, the body's MD5.

mod claims;
mod nonces;
mod presented;
mod tenants;

pub use claims::TenantClaims;
pub use nonces::Nonces;
pub use presented::{Basic, ConflictingCredentials, PresentedCredential, Signed};
pub use tenants::{CredentialKind, Identity, Tenants, VerificationInputs};

/// What a 429 says for `tenantId` where a request counts for an address. Source: docs/decisions.md 27.
pub const UNIDENTIFIED: &str = "unidentified";
