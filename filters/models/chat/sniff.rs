//! The media type of an image, told from its first bytes and not from what its server or sender calls it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// Base64 characters that hold as many bytes as tell a type.
const HEAD_CHARS: usize = 16;

/// Returns the media type of an image; `None`: it is not of a known type.
pub fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let brand = bytes.get(8..12);
    Some(match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', ..] if brand == Some(b"WEBP") => "image/webp",
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => match brand? {
            b"heic" | b"heix" => "image/heic",
            b"mif1" | b"msf1" => "image/heif",
            b"avif" => "image/avif",
            _ => return None,
        },
        _ => return None,
    })
}

/// Returns the media type of an image in base64; `None`: as [`image_type`].
pub fn image_type_of_base64(data: &str) -> Option<&'static str> {
    let head = data.get(..HEAD_CHARS)?;
    let mut bytes = [0_u8; HEAD_CHARS];
    let count = STANDARD_NO_PAD.decode_slice(head, &mut bytes).ok()?;
    image_type(bytes.get(..count)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_first_bytes() {
        for (bytes, media_type) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF87a", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"\0\0\0\x18ftypheic", Some("image/heic")),
            (b"\0\0\0\x18ftypmif1", Some("image/heif")),
            (b"\0\0\0\x18ftypavif", Some("image/avif")),
            (b"\0\0\0\x18ftypisom", None),
            (b"RIFF\0\0\0\0WAVEfmt ", None),
            (b"<svg xmlns=", None),
            (b"", None),
        ] {
            assert_eq!(image_type(bytes), media_type, "{bytes:?}");
        }
        assert_eq!(
            image_type_of_base64("iVBORw0KGgoAAAANSUhEUg"),
            Some("image/png")
        );
        assert_eq!(image_type_of_base64("aGk="), None);
    }
}
