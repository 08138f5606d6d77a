//! Videos of the model sandbox. It stores nothing: the id of a job contains the time of the order, the length and the
//! result. So jobs survive a restart, like those of a real provider.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The duration of a usual and of a slow job, in milliseconds.
const TAKES_MS: [u64; 2] = [500, 60_000];
/// Bytes per second of video.
const BYTES_PER_S: usize = 32 << 10;
/// The first box of an MP4 file.
const HEAD: [u8; 24] = *b"\0\0\0\x18ftypisom\0\0\x02\0isommp42";

/// A job, as described by its id.
struct Job<'a> {
    ordered_ms: u64,
    seconds: u64,
    size: &'a str,
    /// `f`: the job fails, `x`: a filter refuses it, `s`: it is slow, `o`: none of these.
    fate: &'a str,
}

impl<'a> Job<'a> {
    /// Parses an id. Returns `None` if it is not the id of a job.
    fn parse(id: &'a str) -> Option<Self> {
        let mut parts = id.strip_prefix("video_")?.split('_');
        let job = Self {
            ordered_ms: parts.next()?.parse().ok()?,
            seconds: parts
                .next()?
                .parse()
                .ok()
                .filter(|seconds| *seconds <= 600)?,
            size: parts.next()?,
            fate: parts.next()?,
        };
        parts.next().is_none().then_some(job)
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// Returns the reply to an order in the convention's shape, or `None` if a member is missing.
pub(super) fn order(request: &Value) -> Option<Value> {
    let text = |key: &str| request.get(key).and_then(Value::as_str);
    let prompt = text("prompt")?;
    let seconds: u64 = text("seconds")?.parse().ok()?;
    let fates = [("fail", "f"), ("filter", "x"), ("slow", "s")];
    let fate = fates.iter().find(|(word, _)| prompt.contains(word));
    let fate = fate.map_or("o", |(_, fate)| fate);
    let id = format!("video_{}_{seconds}_{}_{fate}", now_ms(), text("size")?);
    status(&id)
}

/// Returns the status of a job, or `None` if the job does not exist.
pub(super) fn status(id: &str) -> Option<Value> {
    let job = Job::parse(id)?;
    let [usual_ms, slow_ms] = TAKES_MS;
    let takes_ms = if job.fate == "s" { slow_ms } else { usual_ms };
    let taken_ms = now_ms().saturating_sub(job.ordered_ms);
    let progress = (taken_ms * 100 / takes_ms).min(100);
    let (status, error) = match (progress, job.fate) {
        (0, _) => ("queued", Value::Null),
        (1..=99, _) => ("in_progress", Value::Null),
        (_, "f") => (
            "failed",
            json!({"code": "server_error", "message": "The sandbox failed on demand."}),
        ),
        (_, "x") => {
            let message = "The sandbox filters on demand.";
            (
                "failed",
                json!({"code": "moderation_blocked", "message": message}),
            )
        }
        _ => ("completed", Value::Null),
    };
    Some(json!({
        "id": id,
        "object": "video",
        "model": "sandbox-video",
        "status": status,
        "progress": progress,
        "created_at": job.ordered_ms / 1000,
        "seconds": job.seconds.to_string(),
        "size": job.size,
        "error": error,
    }))
}

/// Returns the bytes of a finished video: the head of a file, and numbers.
pub(super) fn content(id: &str) -> Option<Vec<u8>> {
    let job = Job::parse(id)?;
    status(id).filter(|status| status.get("status") == Some(&"completed".into()))?;
    let bytes = usize::try_from(job.seconds).ok()? * BYTES_PER_S;
    let numbers = (HEAD.len()..bytes).map(|at| (at % 251) as u8);
    Some(HEAD.into_iter().chain(numbers).collect())
}
