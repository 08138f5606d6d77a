//! The forms of a transcript.

/// The form of a response. Source: docs/model-gateway.md 2.16.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TranscriptFormat {
    /// An object with the text.
    #[default]
    Json,
    Text,
    /// Subtitles of SubRip.
    Srt,
    /// An object with the text and the times of its segments or words.
    VerboseJson,
    /// Subtitles of WebVTT.
    Vtt,
    /// An object with the text and who has spoken its segments.
    DiarizedJson,
}

/// The words of [`TranscriptFormat`] for a transcription. A translation has all but the last.
pub const FORMAT_WORDS: [&str; 6] = [
    "json",
    "text",
    "srt",
    "verbose_json",
    "vtt",
    "diarized_json",
];

impl TranscriptFormat {
    /// Returns the format of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "json" => Self::Json,
            "text" => Self::Text,
            "srt" => Self::Srt,
            "verbose_json" => Self::VerboseJson,
            "vtt" => Self::Vtt,
            "diarized_json" => Self::DiarizedJson,
            _ => return None,
        })
    }

    /// Returns the format that a provider is asked for: texts and subtitles are made here, because only objects tell how
    /// long the audio was, and few providers make them all.
    #[must_use]
    pub fn upstream(self) -> Self {
        match self {
            Self::Text => Self::Json,
            Self::Srt | Self::Vtt => Self::VerboseJson,
            other => other,
        }
    }

    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
            Self::Srt => "srt",
            Self::VerboseJson => "verbose_json",
            Self::Vtt => "vtt",
            Self::DiarizedJson => "diarized_json",
        }
    }

    /// Returns whether the provider has to tell the times of segments.
    pub fn needs_timestamps(self) -> bool {
        self.upstream() == Self::VerboseJson
    }

    /// Returns whether the provider has to tell speakers apart.
    pub fn needs_diarization(self) -> bool {
        self == Self::DiarizedJson
    }

    /// Returns the media type of the response; `None`: JSON.
    pub fn media_type(self) -> Option<&'static str> {
        match self {
            Self::Text | Self::Srt => Some("text/plain; charset=utf-8"),
            Self::Vtt => Some("text/vtt; charset=utf-8"),
            Self::Json | Self::VerboseJson | Self::DiarizedJson => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_that_of_its_format() {
        for word in FORMAT_WORDS {
            let format = TranscriptFormat::from_word(word);
            assert_eq!(format.map(TranscriptFormat::as_str), Some(word));
        }
        assert_eq!(TranscriptFormat::from_word("JSON"), None);
    }
}
