//! Puts a credential into a request.

use filters::models::cloud_credentials::granted::GrantedSecret;
use filters::models::cloud_credentials::sigv4::{BodyHash, SignedParts, SigningScope, sign};
use http::request::Parts;
use http::{HeaderMap, header};

use super::HeldCredential;

/// The beginning of the names of AWS's own headers.
const AWS_PREFIX: &str = "x-amz";

/// Puts a credential into the head of a request: a token as `Bearer`, or the signature of the request. Of the headers, those
/// are signed that nothing on the way changes: the host, the type of the body, AWS's own.
///
/// Errors: the request cannot be signed, because it has no scope or its keys cannot stand in a header.
pub fn authorize(
    parts: &mut Parts,
    held: &HeldCredential,
    scope: Option<&SigningScope>,
    (body_hash, now_s): (&BodyHash, u64),
) -> Option<()> {
    let keys = match &held.granted.secret {
        GrantedSecret::Token(_) => {
            parts
                .headers
                .insert(header::AUTHORIZATION, held.bearer.clone()?);
            return Some(());
        }
        GrantedSecret::Keys(keys) => keys,
    };
    let is_signed =
        |name: &str| matches!(name, "host" | "content-type") || name.starts_with(AWS_PREFIX);
    let signed = parts
        .headers
        .iter()
        .filter(|(name, _)| is_signed(name.as_str()));
    let mut signed: HeaderMap = signed
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let request = SignedParts {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query(),
        body_hash,
    };
    sign(&mut signed, request, (keys, scope?), now_s)?;
    for (name, value) in &signed {
        parts.headers.insert(name, value.clone());
    }
    Some(())
}
