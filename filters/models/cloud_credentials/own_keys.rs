//! The pair of AWS keys that an organization brings.

use serde::Deserialize;

use super::secret_text::SecretText;
use super::sigv4::AwsKeys;
use super::source_error::SourceError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenKeys {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
}

/// Reads a pair of keys: a JSON object with `access_key_id`, `secret_access_key` and perhaps `session_token`.
///
/// Errors: it is none.
pub fn read_own_keys(text: &str) -> Result<AwsKeys, SourceError> {
    let error = |came: &str| {
        let cure = "give {\"access_key_id\": \"…\", \"secret_access_key\": \"…\"}";
        SourceError::new("the provider key", came, cure)
    };
    let written: WrittenKeys =
        serde_json::from_str(text).map_err(|_| error("it is no pair of AWS keys in JSON"))?;
    let is_id = |id: &str| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric());
    if !is_id(&written.access_key_id) {
        return Err(error("its access_key_id is none"));
    }
    Ok(AwsKeys {
        access_key_id: written.access_key_id.into(),
        secret_access_key: SecretText::new(written.secret_access_key),
        session_token: written.session_token.map(SecretText::new),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_pair_is_read_and_an_error_shows_nothing_of_it() {
        let pair = r#"{"access_key_id":"AKIA1","secret_access_key":"s"}"#;
        assert_eq!(&*read_own_keys(pair).unwrap().access_key_id, "AKIA1");
        for bad in [
            "",
            r#"{"access_key_id":"AKIA1"}"#,
            r#"{"access_key_id":"a\nb","secret_access_key":"s3cr3t"}"#,
            r#"{"access_key_id":"A","secret_access_key":"s3cr3t","role":1}"#,
        ] {
            let error = read_own_keys(bad).unwrap_err().to_string();
            assert!(
                error.starts_with("the provider key: it") && !error.contains("s3cr3t"),
                "{error}"
            );
        }
    }
}
