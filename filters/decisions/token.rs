//! Requests for tokens and their responses. Source: docs/decision-agent.md 4 rule 6, docs/facts/decision-engine.md E.

use http::HeaderMap;
use serde_json::{Map, Value};

use crate::fault::{Fault, FaultKind, quoted};
use crate::form;
use crate::json::Object;

/// A request for a token.
#[derive(Default)]
pub struct TokenRequest {
    /// The kind of grant; only `client_credentials` is known.
    pub grant_type: String,
    pub client_id: String,
    pub client_secret: String,
}

/// A refusal in the form of RFC 6749.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenRefusal {
    pub status: u16,
    error: &'static str,
    description: String,
}

impl TokenRefusal {
    pub(super) fn new(status: u16, error: &'static str, description: impl Into<String>) -> Self {
        Self {
            status,
            error,
            description: description.into(),
        }
    }

    /// Returns the refusal of an unknown client or a wrong secret.
    pub fn unknown_client() -> Self {
        Self::new(401, "invalid_client", "invalid client_id or client_secret")
    }

    /// Returns the refusal as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut body = Object::open(&mut out);
        body.text("error", self.error);
        body.optional_text(
            "error_description",
            Some(&*self.description).filter(|text| !text.is_empty()),
        );
        body.close();
        out
    }
}

/// Returns the body of a response with a token.
pub fn token_json(token: &str, ttl_s: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut body = Object::open(&mut out);
    body.text("access_token", token);
    body.text("token_type", "bearer");
    body.number("expires_in", ttl_s);
    body.close();
    out
}

impl TokenRequest {
    /// Reads a form, as in RFC 6749, or JSON, as in docs/decision-agent.md. Returns `None` for another media type.
    ///
    /// Errors: 400 for JSON that is not an object.
    pub fn read(headers: &HeaderMap, body: &[u8]) -> Result<Option<Self>, Fault> {
        let media_type = form::media_type(headers);
        let mut request = Self::default();
        if media_type.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
            let text = String::from_utf8_lossy(body);
            for pair in form::pairs(&text) {
                request.set(&pair.decoded_name(), &pair.decoded_value());
            }
        } else if media_type.eq_ignore_ascii_case(b"application/json") {
            let members: Map<String, Value> = serde_json::from_slice(body).map_err(|error| {
                let message = format!("the body is no JSON object: {}", quoted(&error.to_string()));
                Fault::new(FaultKind::Invalid, message)
            })?;
            for (name, value) in &members {
                request.set(name, value.as_str().unwrap_or_default());
            }
        } else {
            return Ok(None);
        }
        Ok(Some(request))
    }

    fn set(&mut self, name: &str, value: &str) {
        let member = match name {
            "grant_type" => &mut self.grant_type,
            "client_id" => &mut self.client_id,
            "client_secret" => &mut self.client_secret,
            _ => return,
        };
        *member = value.to_owned();
    }

    /// Checks that all members are present, before a secret is hashed.
    ///
    /// Errors: 400 for another grant, 401 for a missing member.
    pub fn check(&self) -> Result<(), TokenRefusal> {
        if self.grant_type.is_empty() {
            let description = "grant_type missing from request body";
            return Err(TokenRefusal::new(400, "invalid_request", description));
        }
        if self.grant_type != "client_credentials" {
            return Err(TokenRefusal::new(400, "unsupported_grant_type", ""));
        }
        for (name, value) in [
            ("client_id", &self.client_id),
            ("client_secret", &self.client_secret),
        ] {
            if value.is_empty() {
                let description = format!("{name} missing from request body");
                return Err(TokenRefusal::new(401, "invalid_client", description));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use http::HeaderValue;
    use http::header::CONTENT_TYPE;

    use super::*;

    const FORM: &str = "application/x-www-form-urlencoded";

    fn read(media_type: &'static str, body: &str) -> Result<Option<TokenRequest>, Fault> {
        let value = HeaderValue::from_static(media_type);
        TokenRequest::read(
            &HeaderMap::from_iter([(CONTENT_TYPE, value)]),
            body.as_bytes(),
        )
    }

    /// Status, error and description of a refusal.
    fn refusal(body: &str) -> (u16, Value, Value) {
        let Err(refusal) = read(FORM, body).unwrap().unwrap().check() else {
            panic!("accepted: {body}")
        };
        let json: Value = serde_json::from_slice(&refusal.to_json()).unwrap();
        let member = |name: &str| json.get(name).cloned().unwrap_or_default();
        (refusal.status, member("error"), member("error_description"))
    }

    /// Contract: decision-agent 4 6
    #[test]
    fn a_request_is_a_form_or_json() {
        let form = "grant_type=client_credentials&client_id=a%20b&client_secret=s%2B1&scope=x";
        let json = r#"{"grant_type":"client_credentials","client_id":"a b","client_secret":"s+1","scope":1}"#;
        for (media_type, body) in [(FORM, form), ("application/json", json)] {
            let request = read(media_type, body).unwrap().unwrap();
            assert_eq!(
                (&*request.client_id, &*request.client_secret),
                ("a b", "s+1")
            );
            assert!(request.check().is_ok());
        }
        assert!(read("text/plain", form).unwrap().is_none());
        assert_eq!(read("application/json", "[]").err().unwrap().status(), 400);
    }

    /// Contract: decision-agent 2.2 token
    #[test]
    fn what_is_missing_is_told() {
        for (body, status, error, description) in [
            (
                "",
                400,
                "invalid_request",
                "grant_type missing from request body".into(),
            ),
            (
                "grant_type=password",
                400,
                "unsupported_grant_type",
                Value::Null,
            ),
            (
                "grant_type=client_credentials",
                401,
                "invalid_client",
                "client_id missing from request body".into(),
            ),
            (
                "grant_type=client_credentials&client_id=a",
                401,
                "invalid_client",
                "client_secret missing from request body".into(),
            ),
        ] {
            assert_eq!(refusal(body), (status, error.into(), description), "{body}");
        }
        let unknown = TokenRefusal::unknown_client();
        assert_eq!(unknown.status, 401);
        assert!(
            String::from_utf8(unknown.to_json())
                .unwrap()
                .contains("invalid_client")
        );
    }

    #[test]
    fn a_token_is_answered_with_its_lifetime() {
        let json: Value = serde_json::from_slice(&token_json("t", 60)).unwrap();
        let expected =
            serde_json::json!({"access_token": "t", "token_type": "bearer", "expires_in": 60});
        assert_eq!(json, expected);
    }
}
