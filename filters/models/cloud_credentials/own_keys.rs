//! The keys that organizations bring in the JSON of a cloud.

use serde_json::{Map, Value};

use super::Cloud;
use super::google::account::of_organization;
use super::secret_text::SecretText;
use super::sigv4::AwsKeys;
use super::source_error::SourceError;

/// The key of an organization, in errors.
const KEY: &str = "the provider key";
/// The members of a pair of AWS keys, of which the last is optional.
const MEMBERS: [&str; 3] = ["access_key_id", "secret_access_key", "session_token"];
const PAIR: &str = "give {\"access_key_id\": \"…\", \"secret_access_key\": \"…\"}, with \"session_token\" if the keys are temporary";

/// Returns whether a key is JSON, not a text that goes as it is. No cloud's key begins with a brace.
pub fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Checks the key of an organization for a provider that takes the JSON of a cloud, or texts alone. Returns the text to keep:
/// JSON in one line.
///
/// Errors: the member at fault, what came, and what is accepted, without anything of the key.
pub fn check_own_key(form: Option<Cloud>, text: &str) -> Result<String, SourceError> {
    let text = text.trim();
    if !is_json(text) {
        return Ok(text.to_owned());
    }
    match form {
        Some(Cloud::Aws) => read_own_keys(text).map(drop)?,
        Some(Cloud::Google) => of_organization(text).map(drop)?,
        Some(Cloud::Entra) | None => {
            let came = "it is JSON, but this provider takes a text";
            return Err(SourceError::new(KEY, came, "give the bare key"));
        }
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|_| SourceError::new(KEY, "it is no JSON object", "give it whole"))?;
    Ok(value.to_string())
}

/// Reads a pair of keys: a JSON object with `access_key_id`, `secret_access_key` and perhaps `session_token`.
///
/// Errors: it is none.
pub fn read_own_keys(text: &str) -> Result<AwsKeys, SourceError> {
    let error = |came: String| SourceError::new(KEY, came, PAIR);
    let written: Option<Map<String, Value>> = serde_json::from_str(text).ok();
    let written = written.ok_or_else(|| error("it is no JSON object".to_owned()))?;
    if let Some(name) = written
        .keys()
        .find(|name| !MEMBERS.contains(&name.as_str()))
    {
        let accepted = MEMBERS.join(", ");
        return Err(error(match is_word(name) {
            true => format!("its {name} is not known; accepted are {accepted}"),
            false => format!("it has a member that is not known; accepted are {accepted}"),
        }));
    }
    let [id, secret, token] = MEMBERS.map(|name| read_member(&written, name));
    let missing = |name: &str| error(format!("its {name} is missing"));
    let id = id?.ok_or_else(|| missing("access_key_id"))?;
    if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        let came = "its access_key_id has other characters than letters and digits";
        return Err(error(came.to_owned()));
    }
    let secret = secret?.ok_or_else(|| missing("secret_access_key"))?;
    Ok(AwsKeys {
        access_key_id: id.into(),
        secret_access_key: SecretText::new(secret),
        session_token: token?.map(SecretText::new),
    })
}

/// Returns a member that is a text, which can stand in a header. Errors: what it is instead.
fn read_member<'w>(
    written: &'w Map<String, Value>,
    name: &str,
) -> Result<Option<&'w str>, SourceError> {
    let came = match written.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.is_empty() => "an empty text",
        Some(Value::String(text)) if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            "a text with a blank, a line end or another character that no key has"
        }
        Some(Value::String(text)) => return Ok(Some(text)),
        Some(Value::Bool(_)) => "true or false",
        Some(Value::Number(_)) => "a number",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    };
    Err(SourceError::new(KEY, format!("its {name} is {came}"), PAIR))
}

/// Returns whether a member's name is a word that may be shown: somebody may have put a secret there.
fn is_word(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    name.len() <= 32 && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_pair_is_read_and_an_error_names_the_member_and_shows_nothing_of_it() {
        let pair = r#"{"access_key_id":"AKIA1","secret_access_key":"s"}"#;
        assert_eq!(&*read_own_keys(pair).unwrap().access_key_id, "AKIA1");
        let temporary = r#"{"access_key_id":"A","secret_access_key":"s","session_token":"t"}"#;
        assert!(read_own_keys(temporary).unwrap().session_token.is_some());
        for (bad, said) in [
            ("", "it is no JSON object"),
            ("{\"s3cr3t\"", "it is no JSON object"),
            (
                r#"{"access_key_id":"AKIA1"}"#,
                "its secret_access_key is missing",
            ),
            (
                r#"{"secret_access_key":"s3cr3t"}"#,
                "its access_key_id is missing",
            ),
            (
                r#"{"access_key_id":"a\nb","secret_access_key":"s3cr3t"}"#,
                "its access_key_id is a text with a blank",
            ),
            (
                r#"{"access_key_id":7,"secret_access_key":"s3cr3t"}"#,
                "its access_key_id is a number",
            ),
            (
                r#"{"access_key_id":"A","secret_access_key":"s3cr3t","role":1}"#,
                "its role is not known; accepted are access_key_id, secret_access_key, session_token",
            ),
            (
                r#"{"access_key_id":"A","S3cr3t/s3cr3t":"x"}"#,
                "it has a member that is not known",
            ),
        ] {
            let error = read_own_keys(bad).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("the provider key: {said}")),
                "{error}"
            );
            assert!(!error.to_ascii_lowercase().contains("s3cr3t"), "{error}");
        }
    }

    #[test]
    fn a_key_is_a_text_or_the_json_of_its_provider_in_one_line() {
        assert_eq!(check_own_key(None, " sk-1\n").unwrap(), "sk-1");
        assert_eq!(check_own_key(Some(Cloud::Aws), "key").unwrap(), "key");
        let pair = "{\n  \"access_key_id\": \"AKIA1\",\n  \"secret_access_key\": \"s\"\n}\n";
        assert_eq!(
            check_own_key(Some(Cloud::Aws), pair).unwrap(),
            r#"{"access_key_id":"AKIA1","secret_access_key":"s"}"#
        );
        for (form, said) in [
            (None, "it is JSON, but this provider takes a text"),
            (
                Some(Cloud::Entra),
                "it is JSON, but this provider takes a text",
            ),
            (Some(Cloud::Google), "its JSON has no type"),
        ] {
            let error = check_own_key(form, pair).unwrap_err();
            assert_eq!(error.came, said);
        }
    }
}
