//! A job as clients see it. Source: docs/facts/model-gateway.md 1.10; where it is silent, the OpenAI convention.

use super::order::{JobState, JobStatus, VideoOrder};
use crate::json::Object;

/// Writes a job in the public shape. `id` is without its prefix.
pub fn write_job(id: &str, order: &VideoOrder, state: &JobState, out: &mut Vec<u8>) {
    let mut job = Object::open(out);
    job.text("id", &public_id(id));
    job.text("object", "video");
    job.text("model", &order.used_model);
    job.text("status", state.status.as_str());
    job.number("progress", state.progress.into());
    job.number("created_at", order.created_ms / 1000);
    let time = |job: &mut Object<'_>, key: &'static str, ms: Option<u64>| match ms {
        Some(ms) => job.number(key, ms / 1000),
        None => job.raw(key, "null"),
    };
    let completed_ms = (state.status == JobStatus::Completed).then_some(state.ended_ms);
    time(&mut job, "completed_at", completed_ms.flatten());
    time(&mut job, "expires_at", state.expires_ms);
    // The convention has it as a text.
    job.text("seconds", &order.seconds.to_string());
    job.text("size", &order.size.to_string());
    match &state.error {
        None => job.raw("error", "null"),
        Some(error) => job.object("error", |it| {
            it.text("code", &error.code);
            it.text("message", &error.message);
        }),
    }
    if let Some(cost) = &state.cost {
        job.object("usage", |usage| {
            usage.raw("cost", cost);
            usage.object("cost_details", |details| {
                details.raw("video_output_cost", cost);
                details.raw("image_input_cost", "0");
            });
        });
    }
    job.close();
}

/// Returns the id of a job as clients see it.
pub fn public_id(id: &str) -> String {
    format!("{PREFIX}{id}")
}

const PREFIX: &str = "v_";

/// Returns the id of a job without its prefix; `None`: no job can have it.
pub fn stored_id(public: &str) -> Option<&str> {
    let id = public.strip_prefix(PREFIX)?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (id.len() == 32 && id.bytes().all(is_hex)).then_some(id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::super::order::JobError;
    use super::*;

    const ID: &str = "0102030405060708090a0b0c0d0e0f10";

    fn written(state: &JobState) -> Value {
        let order = VideoOrder {
            used_model: "first/film".into(),
            seconds: 8,
            created_ms: 5_999,
            ..VideoOrder::default()
        };
        let mut out = Vec::new();
        write_job(ID, &order, state, &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_new_job_is_queued() {
        let expected = json!({
            "id": format!("v_{ID}"), "object": "video", "model": "first/film", "status": "queued", "progress": 0,
            "created_at": 5, "completed_at": null, "expires_at": null, "seconds": "8", "size": "1280x720",
            "error": null,
        });
        assert_eq!(written(&JobState::default()), expected);
    }

    #[test]
    fn one_that_has_ended_says_what_it_cost_or_why_it_failed() {
        let job = written(&JobState {
            status: JobStatus::Completed,
            progress: 100,
            ended_ms: Some(9_000),
            expires_ms: Some(20_000),
            cost: Some("0.8".into()),
            ..JobState::default()
        });
        assert_eq!(
            (&job["completed_at"], &job["expires_at"]),
            (&json!(9), &json!(20))
        );
        let details = json!({"video_output_cost": 0.8, "image_input_cost": 0});
        assert_eq!(job["usage"], json!({"cost": 0.8, "cost_details": details}));
        let job = written(&JobState {
            status: JobStatus::Failed,
            ended_ms: Some(9_000),
            error: Some(JobError {
                code: "video_filtered".into(),
                message: "no".into(),
            }),
            ..JobState::default()
        });
        assert_eq!(
            job["error"],
            json!({"code": "video_filtered", "message": "no"})
        );
        assert_eq!(
            (&job["completed_at"], &job["usage"]),
            (&Value::Null, &Value::Null)
        );
    }

    #[test]
    fn ids_have_a_prefix_and_hex_digits() {
        assert_eq!(stored_id(&public_id(ID)), Some(ID));
        for bad in [
            ID,
            "v_",
            "v_0102",
            "v_0102030405060708090A0B0C0D0E0F10",
            "v_..030405060708090a0b0c0d0e0f10",
        ] {
            assert_eq!(stored_id(bad), None, "{bad}");
        }
    }
}
