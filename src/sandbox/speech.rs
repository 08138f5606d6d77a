//! Speech of the model sandbox: a tone, as long as the text. The same request gets the same bytes.
#![expect(
    clippy::indexing_slicing,
    reason = "a JSON value read by name gives null"
)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::response::count_tokens;

/// Samples per second.
const SAMPLES_PER_S: u32 = 24_000;
/// Samples per character: 60 ms.
const SAMPLES_PER_CHARACTER: usize = 1440;
/// Samples per wave of the tone.
const WAVE_SAMPLES: usize = 54;
/// The maximum number of spoken characters. The rest is silent.
const MAX_CHARACTERS: usize = 400;
/// The head of a silent frame of MPEG audio, layer 3, of 26 ms. Zeros follow.
const MP3_FRAME_HEAD: [u8; 4] = [0xff, 0xfb, 0x90, 0xc4];
const MP3_FRAME_BYTES: usize = 417;

/// The response to a request for speech.
pub(super) enum Speech {
    File(&'static str, Vec<u8>),
    /// The data of events.
    Events(Vec<String>),
}

/// Speaks the text of a request. Errors: says what is wrong with the request.
pub(super) fn speak(body: &Value) -> Result<Speech, &'static str> {
    let input = body["input"].as_str().unwrap_or_default();
    let characters = input.chars().count().min(MAX_CHARACTERS);
    if characters == 0 {
        return Err("`input` is missing.");
    }
    let samples = characters * SAMPLES_PER_CHARACTER;
    let (media_type, file) = match body["response_format"].as_str().unwrap_or("mp3") {
        "mp3" => ("audio/mpeg", mp3(characters * 60 / 26 + 1)),
        "wav" => (
            "audio/wav",
            [&wav_head(samples)[..], &tone(samples)].concat(),
        ),
        "pcm" => ("audio/pcm", tone(samples)),
        _ => return Err("The sandbox speaks as mp3, wav or pcm."),
    };
    if body["stream_format"] != "sse" {
        return Ok(Speech::File(media_type, file));
    }
    let piece_bytes = file.len().div_ceil(4);
    let deltas = file.chunks(piece_bytes).map(|piece| {
        json!({"type": "speech.audio.delta", "audio": STANDARD.encode(piece)}).to_string()
    });
    let (input, output) = (count_tokens(input), characters * 2);
    let usage = json!({
        "input_tokens": input,
        "output_tokens": output,
        "total_tokens": input + output,
    });
    let done = json!({"type": "speech.audio.done", "usage": usage}).to_string();
    Ok(Speech::Events(deltas.chain([done]).collect()))
}

fn tone(samples: usize) -> Vec<u8> {
    let sample = |at: usize| ((at % WAVE_SAMPLES) as i16 - WAVE_SAMPLES as i16 / 2) * 200;
    (0..samples)
        .flat_map(|at| sample(at).to_le_bytes())
        .collect()
}

fn mp3(frames: usize) -> Vec<u8> {
    let mut frame = vec![0; MP3_FRAME_BYTES];
    frame.splice(..MP3_FRAME_HEAD.len(), MP3_FRAME_HEAD);
    frame.repeat(frames)
}

fn wav_head(samples: usize) -> [u8; 44] {
    let bytes = u32::try_from(samples * 2).unwrap_or(u32::MAX);
    let mut head =
        *b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\x02\0\x10\0data\0\0\0\0";
    let numbers = [
        (4, bytes.saturating_add(36)),
        (24, SAMPLES_PER_S),
        (28, SAMPLES_PER_S * 2),
        (40, bytes),
    ];
    for (at, number) in numbers {
        head[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    head
}
