//! The container of an audio file, as its bytes tell it.

/// A container. Source: docs/model-gateway.md 2.16.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Container {
    /// RIFF of audio.
    Wav,
    /// MPEG audio, or an MPEG program stream.
    Mpeg,
    Flac,
    Ogg,
    /// MPEG-4.
    Mp4,
    /// Matroska.
    Webm,
}

/// The formats that are accepted, for messages.
pub const ACCEPTED: &str = "flac, mp3, mp4, mpeg, mpga, m4a, ogg, wav or webm";

/// Endings of names, and the containers they stand for.
const ENDINGS: [(&str, Container); 15] = [
    ("wav", Container::Wav),
    ("wave", Container::Wav),
    ("mp3", Container::Mpeg),
    ("mpga", Container::Mpeg),
    ("mpeg", Container::Mpeg),
    ("mpg", Container::Mpeg),
    ("flac", Container::Flac),
    ("ogg", Container::Ogg),
    ("oga", Container::Ogg),
    ("opus", Container::Ogg),
    ("mp4", Container::Mp4),
    ("m4a", Container::Mp4),
    ("m4v", Container::Mp4),
    ("mov", Container::Mp4),
    ("webm", Container::Webm),
];

/// What stands behind `audio/` or `video/` in media types, and the containers it stands for.
const SUBTYPES: [(&str, Container); 19] = [
    ("wav", Container::Wav),
    ("wave", Container::Wav),
    ("x-wav", Container::Wav),
    ("vnd.wave", Container::Wav),
    ("mpeg", Container::Mpeg),
    ("mp3", Container::Mpeg),
    ("mpga", Container::Mpeg),
    ("x-mp3", Container::Mpeg),
    ("x-mpeg", Container::Mpeg),
    ("flac", Container::Flac),
    ("x-flac", Container::Flac),
    ("ogg", Container::Ogg),
    ("opus", Container::Ogg),
    ("mp4", Container::Mp4),
    ("m4a", Container::Mp4),
    ("x-m4a", Container::Mp4),
    ("quicktime", Container::Mp4),
    ("webm", Container::Webm),
    ("x-matroska", Container::Webm),
];

impl Container {
    /// Returns the container of a file that begins with these bytes; `None`: it is not a known one.
    pub fn sniff(head: &[u8]) -> Option<Self> {
        Some(match head {
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'A',
                b'V',
                b'E',
                ..,
            ]
            | [
                b'R',
                b'F',
                b'6',
                b'4',
                _,
                _,
                _,
                _,
                b'W',
                b'A',
                b'V',
                b'E',
                ..,
            ] => Self::Wav,
            [b'f', b'L', b'a', b'C', ..] => Self::Flac,
            [b'O', b'g', b'g', b'S', ..] => Self::Ogg,
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => Self::Mp4,
            [0x1a, 0x45, 0xdf, 0xa3, ..] => Self::Webm,
            [b'I', b'D', b'3', ..] | [0, 0, 1, 0xb3 | 0xba, ..] => Self::Mpeg,
            // A frame: eleven bits, then a version and a layer that exist.
            [0xff, second, third, ..]
                if second & 0xe0 == 0xe0
                    && second & 0x18 != 0x08
                    && second & 0x06 != 0
                    && third & 0xf0 != 0xf0
                    && third & 0x0c != 0x0c =>
            {
                Self::Mpeg
            }
            _ => return None,
        })
    }

    /// Returns the container that a media type stands for; `None`: it says nothing of a container.
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let (kind, subtype) = essence.split_once('/')?;
        let is_media = kind.eq_ignore_ascii_case("audio") || kind.eq_ignore_ascii_case("video");
        let mut known = SUBTYPES.into_iter().filter(|_| is_media);
        known
            .find_map(|(known, container)| known.eq_ignore_ascii_case(subtype).then_some(container))
    }

    /// Returns the container that the ending of a name stands for; `None`: it says nothing of a container.
    pub fn from_name(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        let mut known = ENDINGS.into_iter();
        known.find_map(|(known, container)| known.eq_ignore_ascii_case(ending).then_some(container))
    }

    /// Returns the usual ending of its files.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Wav => "wav",
            Self::Mpeg => "mp3",
            Self::Flac => "flac",
            Self::Ogg => "ogg",
            Self::Mp4 => "mp4",
            Self::Webm => "webm",
        }
    }

    /// Returns the media type of its audio.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Wav => "audio/wav",
            Self::Mpeg => "audio/mpeg",
            Self::Flac => "audio/flac",
            Self::Ogg => "audio/ogg",
            Self::Mp4 => "audio/mp4",
            Self::Webm => "audio/webm",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_tell_the_container() {
        for (head, expected) in [
            (&b"RIFF\x24\0\0\0WAVEfmt "[..], Some(Container::Wav)),
            (b"RIFF\x24\0\0\0AVI LIST", None),
            (b"fLaC\0\0\0\x22", Some(Container::Flac)),
            (b"OggS\0\x02", Some(Container::Ogg)),
            (b"\0\0\0\x20ftypM4A ", Some(Container::Mp4)),
            (b"\x1a\x45\xdf\xa3\x01", Some(Container::Webm)),
            (b"ID3\x04\0", Some(Container::Mpeg)),
            (b"\xff\xfb\x90\x64", Some(Container::Mpeg)),
            (b"\xff\xf1\x50\x80", None),
            (b"\xff\xff\xff\xff", None),
            (b"<html>", None),
            (b"", None),
        ] {
            assert_eq!(Container::sniff(head), expected, "{head:?}");
        }
    }

    /// Contract: model-gateway 2.16 file
    #[test]
    fn names_and_media_types_tell_it_too() {
        for (media_type, expected) in [
            ("audio/x-wav", Some(Container::Wav)),
            ("Video/MP4; codecs=opus", Some(Container::Mp4)),
            ("application/octet-stream", None),
            ("text/wav", None),
        ] {
            let found = Container::from_media_type(media_type);
            assert_eq!(found, expected, "{media_type}");
        }
        assert_eq!(Container::from_name("a.b.MP3"), Some(Container::Mpeg));
        assert_eq!(Container::from_name("blob"), None);
        for (ending, container) in ENDINGS {
            let name = format!("a.{ending}");
            assert_eq!(Container::from_name(&name), Some(container));
            let media_type = container.media_type();
            assert_eq!(Container::from_media_type(media_type), Some(container));
        }
    }
}
