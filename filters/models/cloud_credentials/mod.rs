//! How clouds let callers sign in: signatures of requests, and the sources of short-lived credentials.
//!
//! [`sigv4`] signs a request with AWS keys. [`aws`], [`entra`] and [`google`] choose the source that the environment
//! names, in the order of the vendor's own SDKs, write its requests and read its replies. [`vendor_hosts`] tells which
//! addresses a source may have, [`granted`] how long what it gives is used, [`clock_skew`] whether the clock is wrong.
//!
//! Nothing here asks a server or reads a file: requests and replies are values, and `src` moves them.

pub mod aws;
pub mod clock_skew;
pub mod entra;
pub mod federated_token;
pub mod google;
pub mod granted;
pub mod own_keys;
mod private_key;
pub mod secret_text;
pub mod sigv4;
pub mod source_error;
pub mod source_request;
pub mod vendor_hosts;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cloud whose own sign-in a provider may have in place of keys: requests to AWS are signed, those to others have a token.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Cloud {
    Aws,
    Entra,
    Google,
}

impl Cloud {
    /// Returns the usual scope of its tokens; AWS has none.
    pub fn usual_scope(self) -> &'static str {
        match self {
            Self::Aws => "",
            Self::Entra => entra::USUAL_SCOPE,
            Self::Google => google::USUAL_SCOPE,
        }
    }
}
