//! Identifies callers of the graph service: the credential that a request presents, and the tenant it counts for.
//!
//! [`PresentedCredential::from_request`] reads the one credential of a request and refuses two. [`Tenants::identify`]
//! returns its tenant. An unknown credential is not refused: the request counts for the client's address and is
//! forwarded, because only the service itself knows all of its keys.
//!
//! Not here: fetching key sets and verifying tokens with them, the MD5 of bodies.

mod claims;
mod nonces;
mod presented;
mod tenants;

pub use claims::TenantClaims;
pub use nonces::Nonces;
pub use presented::{Basic, ConflictingCredentials, PresentedCredential, Signed};
pub use tenants::{CredentialKind, Identity, Tenants, VerificationInputs};

/// The `tenantId` in the body of a 429 if the request counts for an address. Source: docs/decisions.md 27.
pub const UNIDENTIFIED: &str = "unidentified";
