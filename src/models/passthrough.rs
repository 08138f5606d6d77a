//! The credential that a caller has of a vendor itself, and brings with a request. It lives as long as the call.

use std::fmt;
use std::sync::Arc;

use filters::accounts::{
    Caller, OwnCredential, OwnCredentialKind, PassthroughError, own_credential,
};
use filters::fault::Fault;
use filters::fault_code::FaultCode;
use filters::models::request::ModelRequest;
use http::HeaderMap;

use super::Models;
use super::providers::{Credential, KeyPool};
use crate::config::Secret;

/// The only credential that a call may use.
///
/// Its `Debug` says what it is, and nothing of it.
pub struct PassedKey {
    /// What it is.
    pub kind: OwnCredentialKind,
    /// A pool of this one credential, in place of the pools of providers.
    pub keys: Arc<KeyPool>,
}

impl fmt::Debug for PassedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PassedKey").field(&self.kind).finish()
    }
}

impl Models {
    /// Returns the credential that a request brings beside its API key; `None`: it brings none.
    ///
    /// Source: docs/decisions.md 75. Errors: 400 for what goes to no vendor, 403 where the key does not allow it. Cost without
    /// one: a look-up of a header.
    pub fn passed_key(
        &self,
        headers: &HeaderMap,
        caller: Option<&Caller>,
    ) -> Result<Option<PassedKey>, Fault> {
        let Some(own) = own_credential(headers, &self.key_header)? else {
            return Ok(None);
        };
        let OwnCredential { kind, header, text } = own;
        if !caller.is_some_and(|caller| caller.may_pass(kind.vendor())) {
            return Err(PassthroughError::NotAllowed(header, kind).into());
        }
        let credential = Credential::passed(Secret::new(text), kind);
        let keys = Arc::new(KeyPool::new(vec![Arc::new(credential)]));
        Ok(Some(PassedKey { kind, keys }))
    }
}

/// Refuses a request that goes on when its client has its answer: the credential is not kept for that.
///
/// Errors: 400.
pub fn check_ends_with_request(
    request: &ModelRequest,
    kind: OwnCredentialKind,
) -> Result<(), Fault> {
    let operation = request.payload.operation();
    let (param, goes_on) = if request.is_background() {
        ("background", "a response in the background")
    } else if operation.begins_job() {
        ("model", "a job such as the making of a video")
    } else {
        return Ok(());
    };
    let what = kind.as_str();
    let message = format!(
        "the request brings {what}, which is not kept, and {goes_on} goes on without its request: leave the credential \
         out, or ask for the answer itself"
    );
    Err(Fault::invalid(param, message).with_code(FaultCode::OwnCredentialUnusable))
}
