//! The token of another issuer in a file, which a cloud trades for its own.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::secret_text::SecretText;
use super::source_error::SourceError;

/// The claims that are read.
#[derive(Deserialize)]
struct FederatedClaims {
    exp: Option<f64>,
}

/// Reads the token in the file that a setting names. A JWT whose end has passed is refused here, because the cloud's own
/// refusal does not name the file.
///
/// Errors: it is empty, or has expired.
pub fn read(setting: &'static str, text: &str, now_s: u64) -> Result<SecretText, SourceError> {
    let token = text.trim();
    if token.is_empty() || token.bytes().any(|byte| byte.is_ascii_control()) {
        let cure = "let the issuer write its token there";
        return Err(SourceError::new(setting, "the file holds no token", cure));
    }
    if let Some(end) = expiry(token)
        && end <= now_s
    {
        let minutes = (now_s - end).div_ceil(60);
        let came = format!("the token in the file has expired {minutes} minutes ago");
        let cure = "let the issuer renew the file, or correct this machine's clock";
        return Err(SourceError::new(setting, came, cure));
    }
    Ok(SecretText::new(token))
}

/// Returns the end of a JWT; `None`: it is none, or does not tell.
fn expiry(token: &str) -> Option<u64> {
    let payload = token.split('.').nth(1)?;
    let payload = BASE64_URL_SAFE_NO_PAD
        .decode(payload.trim_end_matches('='))
        .ok()?;
    let claims: FederatedClaims = serde_json::from_slice(&payload).ok()?;
    claims.exp.map(|end| end as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn jwt(claims: &str) -> String {
        format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn an_expired_file_is_refused_and_named() {
        let token = jwt(r#"{"exp":1000}"#);
        assert_eq!(read("A_FILE", &token, 999).unwrap().expose(), token);
        let error = read("A_FILE", &token, 1060).unwrap_err().to_string();
        let expected = "A_FILE: the token in the file has expired 1 minutes ago; \
                        let the issuer renew the file, or correct this machine's clock";
        assert_eq!(error, expected);
        for opaque in ["opaque", "a.b.c", &jwt("{}")] {
            assert!(read("A_FILE", opaque, 1060).is_ok(), "{opaque}");
        }
        for bad in ["", " \n", "a\nb"] {
            let error = read("A_FILE", bad, 0).unwrap_err();
            assert_eq!(error.came, "the file holds no token");
        }
    }
}
