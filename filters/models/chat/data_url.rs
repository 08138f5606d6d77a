//! Data URLs: `data:image/png;base64,…`.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::{self, Alphabet};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::sniff::image_type_of_base64;

/// A base64 data URL taken apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DataUrl<'a> {
    /// The media type in lower case without parameters; `image/jpg` is `image/jpeg`.
    pub media_type: Cow<'a, str>,
    /// Base64, without white space.
    pub data: Cow<'a, str>,
}

/// Returns the media type of a base64 data URL, in lower case without parameters; `image/jpg` is `image/jpeg`. The bytes of
/// an image count more than its name. `None`: the text is not such a URL.
///
/// Cost: reads up to the comma and a few characters more.
pub fn media_type(url: &str) -> Option<Cow<'_, str>> {
    let (named, data) = named_type(url)?;
    let is_image = named.starts_with("image/") || named == "text/plain";
    let told = is_image.then(|| image_type_of_base64(data)).flatten();
    Some(told.map_or(named, Cow::Borrowed))
}

/// Returns the media type that a base64 data URL names, and its data; `None`: the text is not such a URL.
pub fn named_type(url: &str) -> Option<(Cow<'_, str>, &str)> {
    let scheme = url.get(..5)?;
    let (head, data) = url.get(5..)?.split_once(',')?;
    let mut parts = head.split(';');
    let media_type = parts.next().unwrap_or_default().trim();
    if !scheme.eq_ignore_ascii_case("data:")
        || !parts.any(|part| part.trim().eq_ignore_ascii_case("base64"))
    {
        return None;
    }
    let named = match media_type {
        jpg if jpg.eq_ignore_ascii_case("image/jpg") => Cow::Borrowed("image/jpeg"),
        "" => Cow::Borrowed("text/plain"),
        lower if !lower.bytes().any(|b| b.is_ascii_uppercase()) => Cow::Borrowed(lower),
        upper => Cow::Owned(upper.to_ascii_lowercase()),
    };
    Some((named, data))
}

/// Returns a base64 data URL with the media type that the bytes of its image tell, where it names another; `None`: it
/// names the right one, or is not such a URL.
///
/// Cost: one copy, where it names another.
pub fn retyped(url: &str) -> Option<String> {
    let (told, data) = retyping(url)?;
    Some(format!("data:{told};base64,{data}"))
}

/// Returns the media type that the bytes of an image tell where its data URL names another, and its data.
///
/// Cost: as [`media_type`].
pub fn retyping(url: &str) -> Option<(&'static str, &str)> {
    let (named, data) = named_type(url)?;
    let told = image_type_of_base64(data)?;
    (told != named).then_some((told, data))
}

/// Returns a name for a file that has none.
pub fn file_name(media_type: &str) -> &'static str {
    match media_type {
        "application/pdf" => "document.pdf",
        "application/json" => "document.json",
        "text/csv" => "document.csv",
        "text/html" => "document.html",
        "text/markdown" => "document.md",
        _ => "document.txt",
    }
}

/// Returns the name of a format of audio: that of MPEG audio is `mp3` to most providers.
pub fn audio_format(format: &str) -> &str {
    match format {
        "mpeg" | "mpga" => "mp3",
        same => same,
    }
}

/// Decodes base64 of either alphabet, with padding or without; `None`: it is not one.
pub fn decode_base64(data: &str) -> Option<Vec<u8>> {
    const USUAL: GeneralPurpose = tolerant(&alphabet::STANDARD);
    const OF_URLS: GeneralPurpose = tolerant(&alphabet::URL_SAFE);
    let is_of_urls = data.bytes().any(|b| matches!(b, b'-' | b'_'));
    let engine = if is_of_urls { OF_URLS } else { USUAL };
    engine.decode(data).ok()
}

const fn tolerant(alphabet: &Alphabet) -> GeneralPurpose {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(alphabet, config)
}

/// Takes a data URL apart; `None` where the text is none, or not base64.
pub fn parse(url: &str) -> Option<DataUrl<'_>> {
    let media_type = media_type(url)?;
    let (_, data) = url.split_once(',')?;
    let is_base64 =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_');
    let data = if data.bytes().all(is_base64) {
        Cow::Borrowed(data)
    } else {
        let kept: String = data.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        if !kept.bytes().all(is_base64) {
            return None;
        }
        Cow::Owned(kept)
    };
    Some(DataUrl { media_type, data })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn case_parameters_and_white_space_do_not_matter() {
        let url = parse("DATA:Image/JPG;charset=utf-8;BASE64,QU\nJD").unwrap();
        assert_eq!((&*url.media_type, &*url.data), ("image/jpeg", "QUJD"));
    }

    #[test]
    fn the_bytes_of_an_image_count_more_than_its_name() {
        let png = "iVBORw0KGgoAAAANSUhEUg==";
        for name in ["image/jpeg", "image/png", ""] {
            let url = format!("data:{name};base64,{png}");
            assert_eq!(media_type(&url).as_deref(), Some("image/png"), "{name}");
        }
        let file = format!("data:application/pdf;base64,{png}");
        assert_eq!(media_type(&file).as_deref(), Some("application/pdf"));
    }

    #[test]
    fn base64_is_decoded_in_either_alphabet_and_with_any_padding() {
        for text in ["+/8=", "+/8", "-_8=", "-_8"] {
            assert_eq!(
                decode_base64(text).as_deref(),
                Some(&b"\xfb\xff"[..]),
                "{text}"
            );
        }
        assert_eq!(decode_base64("+_8"), None);
        assert_eq!(decode_base64("a"), None);
    }

    #[test]
    fn what_is_no_base64_data_url_is_none() {
        for url in [
            "https://a/b",
            "data:image/png,abc",
            "data:image/png;base64,%%%",
            "data:",
            "",
        ] {
            assert_eq!(parse(url), None, "{url}");
        }
    }
}
