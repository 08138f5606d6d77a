//! The width and height of an image, read from its head. Nothing is decoded.

use super::data_url::decode_base64;

/// Base64 characters that are read: in front of the size may stand a preview and a colour profile.
pub(crate) const HEAD_CHARS: usize = 1 << 20;

/// Returns width and height in pixels; `None`: the image is of another type than PNG, JPEG, GIF and WebP, or its head does
/// not tell.
pub fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some((big(bytes, 16)?, big(bytes, 20)?)),
        [b'G', b'I', b'F', ..] => Some((little(bytes, 6, 2)?, little(bytes, 8, 2)?)),
        [b'R', b'I', b'F', b'F', ..] => of_webp(bytes),
        [0xff, 0xd8, ..] => of_jpeg(bytes),
        _ => None,
    }
}

/// Returns the same of an image in base64.
///
/// Cost: decodes the head alone.
pub fn dimensions_of_base64(data: &str) -> Option<(u32, u32)> {
    // All but a JPEG tell it in their first bytes.
    [64, HEAD_CHARS].into_iter().find_map(|chars| {
        let head = data.get(..chars).unwrap_or(data);
        dimensions(&decode_base64(head)?)
    })
}

/// Reads four bytes, the highest first.
fn big(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

/// Reads some bytes, the lowest first.
fn little(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let some = bytes.get(at..at + count)?.iter().rev();
    Some(some.fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

fn of_webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        b"VP8L" => {
            let bits = little(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => {
            let side = |at| Some(little(bytes, at, 2)? & 0x3fff);
            Some((side(26)?, side(28)?))
        }
        _ => None,
    }
}

/// The size stands in the first segment that starts a frame.
fn of_jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = *bytes.get(at + 1)?;
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            let side = |at: usize| {
                let two = bytes.get(at..at + 2)?;
                Some(u32::from(u16::from_be_bytes(two.try_into().ok()?)))
            };
            return Some((side(at + 7)?, side(at + 5)?));
        }
        at += match marker {
            // Fill bytes, and markers without a segment.
            0xff => 1,
            0x01 | 0xd0..=0xd8 => 2,
            _ => {
                let two = bytes.get(at + 2..at + 4)?;
                2 + usize::from(u16::from_be_bytes(two.try_into().ok()?))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_head_tells_the_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xc3\x50\0\0\x00\x02\x08\x06\0\0\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08\x01\x00\x02\x00\x03";
        for (bytes, expected) in [
            (&png[..], Some((50_000, 2))),
            (jpeg, Some((512, 256))),
            (b"GIF89a\x02\x01\x03\0", Some((258, 3))),
            (
                b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x01\0\0\x02\0\0",
                Some((2, 3)),
            ),
            (
                b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x01\x80\0\0",
                Some((2, 3)),
            ),
            (
                b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x02\x40\x03\0",
                Some((2, 3)),
            ),
            (b"RIFF\0\0\0\0WEBP", None),
            (b"\x89PNG", None),
            (b"\xff\xd8\xff", None),
            (b"<svg>", None),
            (b"", None),
        ] {
            assert_eq!(dimensions(bytes), expected, "{bytes:?}");
            assert_eq!(dimensions_of_base64(&STANDARD.encode(bytes)), expected);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(start in 0..3_usize, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let heads: [&[u8]; 3] = [b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBPVP8", b""];
            let bytes = [heads.get(start).unwrap(), &bytes[..]].concat();
            _ = dimensions(&bytes);
            _ = dimensions_of_base64(&String::from_utf8_lossy(&bytes));
        }
    }
}
