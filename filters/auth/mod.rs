//! Signed tokens: JSON Web Tokens and the key sets that verify them.
//!
//! Not here: who a token stands for (`decisions::credentials`, `graph::credentials`), API keys (`accounts`).

pub mod jwks;
pub mod jwt;
