//! Signed tokens: JSON Web Tokens and the key sets that verify them.
//!
//! Not here: the identity behind a token (`decisions::credentials`, `graph::credentials`), API keys (`accounts`).

pub mod claims;
pub mod jwks;
pub mod jwt;
