//! Webhooks that tell the end of a job: their body, their signature, and when they are sent again. Source: Standard
//! Webhooks, docs/decisions.md 57.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::job::write_job;
use super::order::{JobState, JobStatus, VideoOrder};
use crate::json::Object;

/// How often a webhook is sent at most: over about a day.
const MAX_TRIES: u32 = 12;
/// The first pause and the longest.
const PAUSE_MS: [u64; 2] = [1_000, 4 * 3_600_000];
/// The prefix of secrets that are base64.
const SECRET_PREFIX: &str = "whsec_";

/// A webhook as it is sent. Each try has the same id and body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Webhook {
    pub id: String,
    /// `webhook-timestamp`, in unix seconds.
    pub timestamp: String,
    pub signature: String,
    pub body: Vec<u8>,
}

impl Webhook {
    /// Makes the webhook of a job that has ended.
    pub fn new(id: &str, order: &VideoOrder, state: &JobState, secret: &str, now_s: u64) -> Self {
        let mut body = Vec::new();
        let mut event = Object::open(&mut body);
        let kind = match state.status {
            JobStatus::Completed => "video.completed",
            _ => "video.failed",
        };
        event.text("type", kind);
        event.number("created_at", state.ended_ms.unwrap_or_default() / 1000);
        event.value("data", |out| write_job(id, order, state, out));
        event.close();
        let (id, timestamp) = (format!("msg_{id}"), now_s.to_string());
        Self {
            signature: sign(secret, &id, &timestamp, &body),
            id,
            timestamp,
            body,
        }
    }
}

/// Returns `v1,` and the base64 of the HMAC-SHA256 over id, timestamp and body, joined by dots.
fn sign(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> String {
    // HMAC takes a key of any length.
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(&key(secret)) else {
        return String::new();
    };
    let mac = mac.chain_update(id).chain_update(".");
    let mac = mac.chain_update(timestamp).chain_update(".");
    let digest = mac.chain_update(body).finalize().into_bytes();
    format!("v1,{}", STANDARD.encode(digest))
}

/// Returns the key that a secret stands for: what follows `whsec_`, decoded, or the bytes of the secret.
fn key(secret: &str) -> Vec<u8> {
    let encoded = secret.strip_prefix(SECRET_PREFIX);
    let decoded = encoded.and_then(|text| {
        let text = text.trim_end_matches('=');
        STANDARD_NO_PAD.decode(text).ok()
    });
    decoded.unwrap_or_else(|| secret.as_bytes().to_vec())
}

/// Returns the pause after so many tries, in milliseconds; `None`: it is sent no more.
pub fn pause_ms(tries: u32) -> Option<u64> {
    let [first, most] = PAUSE_MS;
    let pause = (1..tries).fold(first, |pause, _| most.min(pause * 4));
    (tries < MAX_TRIES).then_some(pause)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::Value;

    use super::*;

    /// The example of the Standard Webhooks specification.
    /// Contract: model-gateway 6 3
    #[test]
    fn a_signature_is_that_of_the_standard() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let body = br#"{"test": 2432232314}"#;
        let signature = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(key("whsec_not base64"), b"whsec_not base64");
        assert_eq!(key("plain"), b"plain");
    }

    #[test]
    fn it_tells_the_job_and_its_id_stays() {
        let state = JobState {
            status: JobStatus::Expired,
            ended_ms: Some(7_000),
            ..JobState::default()
        };
        let order = VideoOrder::default();
        let one = Webhook::new("01", &order, &state, "secret", 10);
        let two = Webhook::new("01", &order, &state, "secret", 11);
        assert_eq!((&one.id, &one.body), (&two.id, &two.body));
        assert_ne!(one.signature, two.signature);
        let body: Value = serde_json::from_slice(&one.body).unwrap();
        assert_eq!(
            (&body["type"], &body["created_at"]),
            (&"video.failed".into(), &7.into())
        );
        assert_eq!(body["data"]["id"], "v_01");
    }

    #[test]
    fn tries_end() {
        let pauses: Vec<u64> = (1..).map_while(pause_ms).collect();
        assert_eq!(pauses.len(), 11);
        assert_eq!(pauses[..3], [1_000, 4_000, 16_000]);
        assert_eq!(pauses.last(), Some(&14_400_000));
    }
}
