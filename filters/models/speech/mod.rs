//! Speech: what wires need to know of a request, the formats of audio ([`mod@format`]), and the head of a WAV file ([`wav`]).

pub mod format;
pub mod wav;

use self::format::AudioFormat;

/// Completion tokens of a second of speech, for estimates. Our choice: as Gemini counts.
pub const TOKENS_PER_SECOND: u64 = 25;
/// The most completion tokens of a character that are reserved, at the usual speed. Our choice: digits are spoken as words,
/// of which none takes half as many.
const MAX_TOKENS_PER_CHARACTER: u64 = 8;
/// Completion tokens that are reserved beside those of the characters, for pauses.
const SPARE_TOKENS: u64 = 256;

/// What a front found in a request for speech.
#[derive(Clone, Copy, Debug)]
pub struct SpeechFacts {
    /// The format, where the client asked for one.
    pub format: Option<AudioFormat>,
    pub characters: u64,
    /// How fast, where the client asked for it; 1 is the usual speed.
    pub speed: Option<f64>,
}

impl SpeechFacts {
    /// Returns the most completion tokens that the speech takes.
    pub fn max_tokens(&self) -> u64 {
        let tokens = self.characters.saturating_mul(MAX_TOKENS_PER_CHARACTER);
        let slowness = self
            .speed
            .map_or(1.0, |speed| (1.0 / speed).clamp(1.0, 4.0));
        let tokens = (tokens as f64 * slowness) as u64;
        tokens.saturating_add(SPARE_TOKENS)
    }
}
