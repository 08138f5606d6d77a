//! What a token says of itself, read without believing it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// Who issued a token, for whom.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TenantClaims {
    /// `iss`.
    pub issuer: String,
    /// `aud`, which may be one or several.
    pub audiences: Vec<String>,
    /// Whether a key set of the issuer verified signature and times. [`TenantClaims::read`] says no; only who did verify
    /// may say yes.
    pub is_verified: bool,
}

impl TenantClaims {
    /// The claims of a JWT, unverified; none where it is not one, or names no issuer.
    ///
    /// Cost: parses the payload. A payload as deep as `serde_json` refuses is none.
    pub fn read(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let payload: Value = serde_json::from_slice(&payload).ok()?;
        let audiences = match payload.get("aud") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(several)) => texts(several),
            _ => Vec::new(),
        };
        Some(Self {
            issuer: payload.get("iss")?.as_str()?.to_owned(),
            audiences,
            is_verified: false,
        })
    }
}

fn texts(values: &[Value]) -> Vec<String> {
    let texts = values.iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    fn read(payload: &str) -> Option<TenantClaims> {
        TenantClaims::read(&format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload)))
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
            assert_eq!(TenantClaims::read(token), None, "{token}");
        }
        assert_eq!(read(r#"{"iss":1}"#), None);
        assert_eq!(read(&"[".repeat(100_000)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(token: String) {
            let _ = TenantClaims::read(&token);
        }
    }
}
