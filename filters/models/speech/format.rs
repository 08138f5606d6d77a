//! The formats of audio that speech comes in: the only table of them.

use super::TOKENS_PER_SECOND;

/// A format.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(missing_docs, reason = "the words say it")]
pub enum AudioFormat {
    #[default]
    Mp3,
    Opus,
    Aac,
    Flac,
    Wav,
    /// Samples of 16 bits without a head, little-endian, one channel, 24,000 a second.
    Pcm,
    Ogg,
    Mulaw,
}

/// A row of the table.
struct FormatRow {
    word: &'static str,
    media_type: &'static str,
    /// Other media types that providers send.
    others: &'static [&'static str],
    /// Bytes of a second, for estimates: exact without compression, else what providers usually send.
    bytes_per_s: u64,
}

/// The words of `response_format`, in the order of [`AudioFormat`].
pub const FORMAT_WORDS: [&str; 8] = ["mp3", "opus", "aac", "flac", "wav", "pcm", "ogg", "mulaw"];

impl AudioFormat {
    /// All formats.
    pub const ALL: [Self; 8] = [
        Self::Mp3,
        Self::Opus,
        Self::Aac,
        Self::Flac,
        Self::Wav,
        Self::Pcm,
        Self::Ogg,
        Self::Mulaw,
    ];

    const fn row(self) -> FormatRow {
        let (word, media_type, others, bytes_per_s): (_, _, &[&str], _) = match self {
            Self::Mp3 => ("mp3", "audio/mpeg", &["audio/mp3"], 16_000),
            Self::Opus => ("opus", "audio/opus", &[], 6_000),
            Self::Aac => ("aac", "audio/aac", &["audio/x-aac"], 12_000),
            Self::Flac => ("flac", "audio/flac", &["audio/x-flac"], 24_000),
            Self::Wav => (
                "wav",
                "audio/wav",
                &["audio/x-wav", "audio/wave", "audio/vnd.wave"],
                48_000,
            ),
            Self::Pcm => ("pcm", "audio/pcm", &["audio/l16", "audio/x-pcm"], 48_000),
            Self::Ogg => ("ogg", "audio/ogg", &["application/ogg"], 8_000),
            Self::Mulaw => (
                "mulaw",
                "audio/basic",
                &["audio/mulaw", "audio/pcmu"],
                8_000,
            ),
        };
        FormatRow {
            word,
            media_type,
            others,
            bytes_per_s,
        }
    }

    /// Returns the word of `response_format`.
    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    /// Returns the format of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == word)
    }

    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        self.row().media_type
    }

    /// Returns the format of a value of `Content-Type`; parameters do not count.
    pub fn from_media_type(value: &[u8]) -> Option<Self> {
        let name = value.split(|byte| *byte == b';').next().unwrap_or_default();
        let name = name.trim_ascii();
        let mut all = Self::ALL.into_iter();
        all.find(|format| {
            let row = format.row();
            let mut names = std::iter::once(&row.media_type).chain(row.others);
            names.any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
        })
    }

    /// Returns how many tokens so many bytes of speech are, about.
    pub fn estimate_tokens(self, bytes: u64) -> u64 {
        bytes
            .saturating_mul(TOKENS_PER_SECOND)
            .div_ceil(self.row().bytes_per_s)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// Contract: model-gateway 2.12 response_format
    #[test]
    fn a_word_and_a_media_type_name_one_format() {
        for (at, format) in AudioFormat::ALL.into_iter().enumerate() {
            assert_eq!(AudioFormat::from_word(format.as_str()), Some(format));
            assert_eq!(FORMAT_WORDS.get(at), Some(&format.as_str()));
            let media_type = format.media_type().to_uppercase();
            let found = AudioFormat::from_media_type(media_type.as_bytes());
            assert_eq!(found, Some(format));
        }
        let pcm = AudioFormat::from_media_type(b"audio/L16;codec=pcm;rate=24000");
        assert_eq!(pcm, Some(AudioFormat::Pcm));
        for other in [&b""[..], b"application/json", b"audio/", b"audio/mpeg4"] {
            assert_eq!(AudioFormat::from_media_type(other), None);
        }
    }

    #[test]
    fn a_second_of_samples_is_25_tokens() {
        assert_eq!(AudioFormat::Pcm.estimate_tokens(48_000), 25);
        assert_eq!(AudioFormat::Mp3.estimate_tokens(1), 1);
        assert_eq!(AudioFormat::Mp3.estimate_tokens(0), 0);
    }
}
