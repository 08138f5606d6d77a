//! Transcripts of the model sandbox, which say how many bytes the audio has. The same request gets the same
//! transcript.

use filters::multipart::{self, Part};
use serde_json::{Value, json};

use super::response::count_tokens;

/// Bytes that count as a second of audio.
const BYTES_PER_S: usize = 16_000;

/// The response to a request for a transcript.
pub(super) enum Transcript {
    /// An object.
    Whole(Value),
    /// The data of events.
    Events(Vec<String>),
}

/// Returns the transcript for a form. Errors: says what is wrong with the request.
pub(super) fn transcribe(body: &[u8], boundary: &str) -> Result<Transcript, &'static str> {
    let parts = multipart::parts(body, boundary).map_err(|_| "The request body is no form.")?;
    let field = |name: &str| {
        let mut parts = parts.iter();
        let part = parts.find(|part: &&Part<'_>| part.name == name);
        part.map_or("", |part| std::str::from_utf8(part.content).unwrap_or(""))
    };
    if field("model") != "sandbox-transcription" {
        return Err("The sandbox has no such model.");
    }
    let file = parts
        .iter()
        .find(|part| part.is_file && part.name == "file");
    let bytes = file.ok_or("`file` is missing.")?.content.len();
    let text = format!("The recording has {bytes} bytes.");
    let seconds = bytes.div_ceil(BYTES_PER_S);
    let usage = json!({"type": "duration", "seconds": seconds});
    if field("stream") == "true" {
        return Ok(Transcript::Events(events(&text, &usage)));
    }
    let segment = json!({"id": 0, "start": 0, "end": seconds, "text": text, "speaker": "A",
        "tokens": [count_tokens(&text)]});
    Ok(Transcript::Whole(match field("response_format") {
        "verbose_json" | "diarized_json" => json!({"task": "transcribe", "language": "english",
            "duration": seconds, "text": text, "segments": [segment], "usage": usage}),
        _ => json!({"text": text, "usage": usage}),
    }))
}

/// Returns an event per word, and one at the end.
fn events(text: &str, usage: &Value) -> Vec<String> {
    let delta = |word| json!({"type": "transcript.text.delta", "delta": word});
    let done = json!({"type": "transcript.text.done", "text": text, "usage": usage});
    let words = text.split_inclusive(' ').map(delta);
    words.chain([done]).map(|event| event.to_string()).collect()
}
