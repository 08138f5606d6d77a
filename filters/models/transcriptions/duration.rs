//! How long an audio file is, as far as its beginning and its length tell.
//!
//! Nothing here decodes audio. WAV and FLAC say how long they are, MPEG audio how many bytes a second takes; of other
//! containers only the length of the file is known.

use super::container::Container;

/// Bytes of a second of speech, where nothing tells. Our choice: 32 kbit/s.
const USUAL_BYTES_PER_S: u64 = 4_000;
/// The fewest bytes of a second of speech that codecs usually make: 6 kbit/s.
const MIN_BYTES_PER_S: u64 = 750;
/// Tokens of a second of audio, for estimates. Our choice: providers that bill tokens count ten.
const TOKENS_PER_S: u64 = 10;

/// How long an audio file is, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AudioTime {
    /// As the file tells, else an estimate; rounded up.
    pub expected_ms: u64,
    /// The most that a provider is expected to find.
    pub max_ms: u64,
}

impl AudioTime {
    /// Reads the beginning of a file of `bytes` bytes.
    pub fn read(container: Container, head: &[u8], bytes: u64) -> Self {
        let told_ms = match container {
            Container::Wav => wav_ms(head, bytes),
            Container::Flac => flac_ms(head),
            Container::Mpeg => mpeg_ms(head, bytes),
            Container::Ogg | Container::Mp4 | Container::Webm => None,
        };
        let least = ms(bytes, MIN_BYTES_PER_S);
        match (told_ms, container) {
            // Samples of the same size: nothing is compressed.
            (Some(told), Container::Wav) => Self {
                expected_ms: told,
                max_ms: told,
            },
            (told, _) => Self {
                expected_ms: told.unwrap_or(ms(bytes, USUAL_BYTES_PER_S)),
                max_ms: told.unwrap_or(0).max(least),
            },
        }
    }

    /// Returns the tokens of this time, for estimates.
    pub fn tokens(milliseconds: u64) -> u64 {
        milliseconds.saturating_mul(TOKENS_PER_S).div_ceil(1000)
    }
}

/// Returns the time that bytes take, rounded up.
fn ms(bytes: u64, bytes_per_s: u64) -> u64 {
    bytes.saturating_mul(1000).div_ceil(bytes_per_s.max(1))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

/// Formats of a WAV whose samples all have the same size: PCM, floats, A-law, µ-law, and those of the extended header.
const PLAIN_FORMATS: [u16; 5] = [1, 3, 6, 7, 0xfffe];

/// A WAV tells its samples a second and the bytes of each. The length that its header has may be a lie or unknown, as of a
/// recording that was streamed, so the whole file counts.
fn wav_ms(head: &[u8], bytes: u64) -> Option<u64> {
    let mut at = 12;
    loop {
        let id: [u8; 4] = number(head, at)?;
        let length = u32::from_le_bytes(number(head, at + 4)?);
        if &id == b"fmt " {
            let format = u16::from_le_bytes(number(head, at + 8)?);
            let samples = u32::from_le_bytes(number(head, at + 12)?);
            let block = u16::from_le_bytes(number(head, at + 20)?);
            let per_s = u64::from(samples) * u64::from(block);
            let is_plain = PLAIN_FORMATS.contains(&format);
            return (per_s > 0 && is_plain).then(|| ms(bytes.saturating_sub(44), per_s));
        }
        // Chunks are of even length.
        let length = usize::try_from(length).ok()?;
        at = at
            .checked_add(8)?
            .checked_add(length)?
            .checked_add(length % 2)?;
    }
}

/// The first block of a FLAC tells samples a second and how many there are.
fn flac_ms(head: &[u8]) -> Option<u64> {
    let packed = u64::from_be_bytes(number(head, 18)?);
    let (per_s, samples) = (packed >> 44, packed & 0xf_ffff_ffff);
    (per_s > 0 && samples > 0).then(|| (samples * 1000).div_ceil(per_s))
}

/// Kilobits a second of layer III, of version 1 and of the others.
const KBITS: [[u64; 16]; 2] = [
    [
        0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0,
    ],
    [
        0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0,
    ],
];

/// The first frame of MPEG audio tells its bits a second; those of the others are assumed to be the same.
fn mpeg_ms(head: &[u8], bytes: u64) -> Option<u64> {
    let tag = match head {
        [b'I', b'D', b'3', _, _, _, a, b, c, d, ..] => {
            let size = [*a, *b, *c, *d].into_iter();
            10 + size.fold(0, |size, part| size << 7 | usize::from(part & 0x7f))
        }
        _ => 0,
    };
    let [first, second, third]: [u8; 3] = number(head, tag)?;
    let is_layer_3 = first == 0xff && second & 0xe6 == 0xe2;
    let rates = KBITS.get(usize::from(second & 0x18 != 0x18))?;
    let kbits = rates.get(usize::from(third >> 4))?;
    let per_s = (is_layer_3 && *kbits > 0).then(|| kbits * 125)?;
    Some(ms(bytes.saturating_sub(tag as u64), per_s))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    /// The head of a WAV of 16-bit samples, behind a chunk of odd length.
    fn wav(per_s: u32) -> Vec<u8> {
        let mut head =
            b"RIFF\xff\xff\xff\xffWAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0\x01\0\x01\0".to_vec();
        head.extend(per_s.to_le_bytes());
        head.extend((per_s * 2).to_le_bytes());
        head.extend([2, 0, 16, 0]);
        head.extend(b"data\xff\xff\xff\xff");
        head
    }

    fn time(container: Container, head: &[u8], bytes: u64) -> (u64, u64) {
        let time = AudioTime::read(container, head, bytes);
        (time.expected_ms, time.max_ms)
    }

    #[test]
    fn a_file_tells_how_long_it_is() {
        let second = time(Container::Wav, &wav(8000), 16_044);
        assert_eq!(second, (1000, 1000));
        assert_eq!(time(Container::Wav, &wav(1), 2_000_044).0, 1_000_000_000);
        let mut flac = b"fLaC\0\0\0\x22".to_vec();
        flac.extend([0; 10]);
        flac.extend((16_000_u64 << 44 | 32_000).to_be_bytes());
        assert_eq!(time(Container::Flac, &flac, 1500), (2000, 2000));
        let mpeg = [0xff, 0xfb, 0x90, 0x64];
        assert_eq!(time(Container::Mpeg, &mpeg, 16_000), (1000, 21_334));
        let mut tagged = b"ID3\x04\0\0\0\0\0\x02xx".to_vec();
        tagged.extend(mpeg);
        assert_eq!(time(Container::Mpeg, &tagged, 16_012).0, 1000);
    }

    #[test]
    fn what_tells_nothing_is_estimated_by_its_length() {
        let estimate = (1000, 5334);
        for (container, head) in [
            (Container::Ogg, &b"OggS"[..]),
            (Container::Webm, b"\x1a\x45\xdf\xa3"),
            (Container::Mp4, b""),
            (Container::Mpeg, b"ID3\x04\0\0\x7f\x7f\x7f\x7f"),
            (Container::Wav, b"RIFF____WAVEfmt "),
            (Container::Wav, &wav(0)),
            (Container::Flac, b"fLaC"),
        ] {
            assert_eq!(time(container, head, 4000), estimate, "{container:?}");
        }
        assert_eq!(AudioTime::tokens(1001), 11);
    }

    proptest! {
        #[test]
        fn anything_is_read(head in prop::collection::vec(any::<u8>(), 0..200), bytes in any::<u64>(), at in 0..12_usize) {
            let mut with_chunks = b"RIFF____WAVE".to_vec();
            with_chunks.extend(&head);
            with_chunks.drain(at..12.min(at + 1));
            for container in [Container::Wav, Container::Flac, Container::Mpeg, Container::Ogg] {
                for head in [&head, &with_chunks] {
                    let time = AudioTime::read(container, head, bytes);
                    prop_assert!(time.expected_ms <= time.max_ms);
                }
            }
        }
    }
}
