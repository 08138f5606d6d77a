//! `POST /webhooks/optimizely`: the editor announces a new datafile. Source: docs/facts/decision-engine.md E.

use bytes::Bytes;
use filters::decisions::Compat;
use filters::decisions::members::BorrowedValue;
use filters::decisions::pairs::CaselessObject;
use filters::fault::{Fault, FaultKind};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha1::Sha1;

use super::{Request, media_type};
use crate::decisions::DecisionService;
use crate::proxy::response::Response;

/// What signs an announcement.
const SIGNATURE: &str = "x-hub-signature";

/// 204 once the datafiles have been looked at again; also for projects nobody here knows.
///
/// Errors: 415, 400 for what is no announcement or not signed with the project's secret.
pub async fn answer(flags: &DecisionService, call: &Request<'_>) -> Result<Response, Fault> {
    media_type(call)?;
    let id = match flags.compat {
        Compat::Document => project_id(call.body),
        Compat::Agent => agent_project_id(call.body),
    };
    let id =
        id.ok_or_else(|| Fault::new(FaultKind::Invalid, "Unable to parse webhook message."))?;
    let Some(webhook) = flags
        .webhooks
        .iter()
        .find(|webhook| *webhook.project_id == *id)
    else {
        return Ok(no_content());
    };
    let given = call
        .headers
        .get(SIGNATURE)
        .map_or(&b""[..], |value| value.as_bytes());
    let secret = webhook
        .secret
        .as_ref()
        .map(|secret| secret.expose().as_bytes());
    if !secret.is_some_and(|secret| is_signed(secret, call.body, given)) {
        let message = "Computed signature does not match signature in request. Ignoring message.";
        return Err(Fault::new(FaultKind::Invalid, message));
    }
    if let Some(fetched) = &flags.fetched {
        fetched.refresh(&webhook.sdk_keys).await;
    }
    Ok(no_content())
}

/// The project that a message is of.
fn project_id(body: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(body).ok()?;
    match message.get("project_id")? {
        Value::String(id) => Some(id.clone()),
        id => id.is_u64().then(|| id.to_string()),
    }
}

/// The same to the agent of old, which knows names of whatever case, refuses what it knows of another type, and reads a
/// number, and zero where there is none.
fn agent_project_id(body: &[u8]) -> Option<String> {
    let message: Option<CaselessObject<'_>> = serde_json::from_slice(body).ok()?;
    let message = message.unwrap_or_default();
    let whole = |value: &BorrowedValue<'_>| match value {
        BorrowedValue::Number(number) => number.as_i64(),
        _ => None,
    };
    let is_known = message.all("timestamp").all(|value| whole(value).is_some())
        && message.all("event").all(|value| value.as_str().is_some())
        && message
            .all("data")
            .all(|value| matches!(value, BorrowedValue::Object(_)));
    let ids: Option<Vec<i64>> = message.all("project_id").map(whole).collect();
    let id = ids?.last().copied().unwrap_or_default();
    is_known.then(|| id.to_string())
}

fn no_content() -> Response {
    Response {
        status: 204,
        ..Response::json(Bytes::new())
    }
}

/// Whether `given` is `sha1=` and the body's HMAC in hex; compared in constant time.
fn is_signed(secret: &[u8], body: &[u8], given: &[u8]) -> bool {
    let hex = given.strip_prefix(b"sha1=").unwrap_or_default();
    let (pairs, rest) = hex.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes: Option<Vec<u8>> = pairs
        .iter()
        .map(|[high, low]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok())
        .collect();
    let mac = Hmac::<Sha1>::new_from_slice(secret);
    match (mac, bytes) {
        (Ok(mac), Some(bytes)) if rest.is_empty() => {
            mac.chain_update(body).verify_slice(&bytes).is_ok()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_of_old_reads_names_of_whatever_case_and_known_types_alone() {
        for (body, expected) in [
            (r#"{"PROJECT_ID":77}"#, Some("77")),
            (
                r#"{"project_id":1,"Project_Id":2,"project_id":3,"PROJECT_ID":null}"#,
                Some("3"),
            ),
            (
                r#"{"project_id":77,"timestamp":-1,"event":"","data":{},"more":[]}"#,
                Some("77"),
            ),
            (
                r#"{"project_id":77,"timestamp":null,"event":null,"data":null}"#,
                Some("77"),
            ),
            ("{}", Some("0")),
            ("null", Some("0")),
            ("[]", None),
            (r#"{"project_id":"77"}"#, None),
            (r#"{"project_id":77.0}"#, None),
            (r#"{"project_id":"1","PROJECT_ID":77}"#, None),
            (r#"{"project_id":77,"Timestamp":"now"}"#, None),
            (r#"{"project_id":77,"timestamp":1.5}"#, None),
            (r#"{"project_id":77,"event":1}"#, None),
            (r#"{"project_id":77,"DATA":[]}"#, None),
        ] {
            let id = agent_project_id(body.as_bytes());
            assert_eq!(id.as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn only_the_bodys_own_signature_counts() {
        // RFC 2202, test case 2.
        let body = b"what do ya want for nothing?";
        let good = b"sha1=effcdf6ae5eb2fa2d27416d5f184df9c259a7c79";
        assert!(is_signed(b"Jefe", body, good));
        for bad in [
            &b""[..],
            b"sha1=",
            b"effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
            b"sha1=zz",
            &good[..44],
        ] {
            assert!(!is_signed(b"Jefe", body, bad));
        }
        assert!(!is_signed(b"other", body, good));
    }
}
