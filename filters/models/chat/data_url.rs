//! Data URLs: `data:image/png;base64,…`.

use std::borrow::Cow;

/// A base64 data URL taken apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DataUrl<'a> {
    /// The media type in lower case without parameters; `image/jpg` is `image/jpeg`.
    pub media_type: Cow<'a, str>,
    /// Base64, without white space.
    pub data: Cow<'a, str>,
}

/// Returns the media type of a base64 data URL, in lower case without parameters; `image/jpg` is `image/jpeg`. `None`: the
/// text is no such URL.
///
/// Cost: reads up to the comma.
pub fn media_type(url: &str) -> Option<Cow<'_, str>> {
    let scheme = url.get(..5)?;
    let (head, _) = url.get(5..)?.split_once(',')?;
    let mut parts = head.split(';');
    let media_type = parts.next().unwrap_or_default().trim();
    if !scheme.eq_ignore_ascii_case("data:")
        || !parts.any(|part| part.trim().eq_ignore_ascii_case("base64"))
    {
        return None;
    }
    Some(match media_type {
        jpg if jpg.eq_ignore_ascii_case("image/jpg") => Cow::Borrowed("image/jpeg"),
        "" => Cow::Borrowed("text/plain"),
        lower if !lower.bytes().any(|b| b.is_ascii_uppercase()) => Cow::Borrowed(lower),
        upper => Cow::Owned(upper.to_ascii_lowercase()),
    })
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
