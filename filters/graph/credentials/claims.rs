//! The issuer and audiences of a token, read without verifying it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// The issuer of a token and its audiences.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TenantClaims {
    /// `iss`.
    pub issuer: String,
    /// `aud`, which may be one string or a list.
    pub audiences: Vec<String>,
    /// Whether a key set of the issuer verified signature and times. [`TenantClaims::from_unverified_token`] sets
    /// false; only the code that verified the token may set true.
    pub is_verified: bool,
}

impl TenantClaims {
    /// Reads the claims of a JWT without verifying it. Returns `None` if `token` is not a JWT or names no issuer.
    ///
    /// Cost: parses the payload. `serde_json` limits its depth; a deeper payload is not a JWT.
    pub fn from_unverified_token(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let payload: Value = serde_json::from_slice(&payload).ok()?;
        let audiences = match payload.get("aud") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(several)) => collect_strings(several),
            _ => Vec::new(),
        };
        Some(Self {
            issuer: payload.get("iss")?.as_str()?.to_owned(),
            audiences,
            is_verified: false,
        })
    }
}

fn collect_strings(values: &[Value]) -> Vec<String> {
    let texts = values.iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    fn read(payload: &str) -> Option<TenantClaims> {
        TenantClaims::from_unverified_token(&format!(
            "e30.{}.c2ln",
            URL_SAFE_NO_PAD.encode(payload)
        ))
    }

    #[test]
    fn a_token_may_have_one_audience_or_several() {
        let one = read(r#"{"iss":"https://id","aud":"graph"}"#).unwrap();
        assert_eq!(
            (one.issuer.as_str(), one.audiences.len()),
            ("https://id", 1)
        );
        let several = read(r#"{"iss":"https://id","aud":["a",1,"b"]}"#).unwrap();
        assert_eq!(several.audiences, ["a", "b"]);
        assert!(!several.is_verified);
    }

    #[test]
    fn what_is_no_token_has_no_claims() {
        for token in [
            "",
            "a",
            "a.b",
            "e30.e30",
            "e30.e30.e30.e30",
            "e30.%.e30",
            "e30.e30.e30",
        ] {
            assert_eq!(TenantClaims::from_unverified_token(token), None, "{token}");
        }
        assert_eq!(read(r#"{"iss":1}"#), None);
        assert_eq!(read(&"[".repeat(100_000)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(token: String) {
            let _ = TenantClaims::from_unverified_token(&token);
        }
    }
}
