//! Addresses and data URLs of pictures and documents.

use crate::fault_code::FaultCode;
use crate::models::chat::data_url::{self, DataUrl};
use crate::models::chat::dimensions::{self, dimensions_of_base64};
use crate::models::chat::inlined::MAX_PIXELS;
use crate::models::chat::sniff::image_type_of_base64;
use crate::models::check::reject::Reject;
use crate::public_address::check_text;
use crate::spooled_json::{KEPT_APPLICATION_CHARS, KEPT_CHARS};

/// Base64 characters of a document that are looked at: the mark of a PDF stands in its first kilobyte.
const HEAD_CHARS: usize = 1400;
const _: () = assert!(
    HEAD_CHARS <= KEPT_APPLICATION_CHARS && dimensions::HEAD_CHARS <= KEPT_CHARS,
    "what is looked at is in memory"
);

/// The addresses that an operation takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Addresses {
    /// `https://…` alone.
    Https,
    /// `http://…` too.
    Http,
}

impl Addresses {
    /// In words.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Https => HTTPS,
            Self::Http => "an http or https address",
        }
    }
}

pub(crate) const HTTPS: &str = "an https address";

/// Checks a picture: an address, or a data URL whose bytes are an image, whatever it says. Returns the bytes of the data.
///
/// All operations ask here but chats, which ask [`picture_of_chat`], and edits of images, which are fetched.
pub(crate) fn picture(url: &str, addresses: Addresses) -> Result<u64, Reject> {
    if is_address(url) {
        return match addresses == Addresses::Https && url.starts_with("http://") {
            true => Err(Reject::rule(format!(
                "is an address of plain http; accepted is {}",
                one_of(addresses, "an image")
            ))),
            false => address(url).map(|()| 0),
        };
    }
    let data = data_url::parse(url).ok_or_else(|| neither(addresses, "an image"))?;
    image(&data)?;
    Ok(data.data.len() as u64)
}

/// Checks a picture of a chat, whose providers take more kinds of pictures and addresses than are known: refused is what is
/// no base64, empty, or a text.
///
/// Cost: looks at each character of a data URL; decodes a few.
pub(crate) fn picture_of_chat(url: &str) -> Result<(), Reject> {
    if !url
        .get(..5)
        .is_some_and(|it| it.eq_ignore_ascii_case("data:"))
    {
        return Ok(());
    }
    let of_image = "accepted is a base64 data URL of an image";
    let Some(parsed) = data_url::parse(url) else {
        return Err(Reject::rule(format!("is no base64; {of_image}")));
    };
    if parsed.data.trim_end_matches('=').is_empty() {
        return Err(Reject::rule(format!("is an empty image; {of_image}")));
    }
    let may_be_text = parsed.media_type == "image/svg+xml";
    match parsed.media_type.starts_with("image/") && (may_be_text || !is_text(&parsed.data)) {
        true => Ok(()),
        false => Err(Reject::rule(format!("holds no image; {of_image}"))),
    }
}

/// Returns whether the first bytes of data are a text, which those of no image are.
fn is_text(data: &str) -> bool {
    /// A multiple of four, so that whole bytes are cut.
    const CHARS: usize = 64;
    let Some(head) = data_url::decode_base64(data.get(..CHARS).unwrap_or(data)) else {
        return false;
    };
    let text = match std::str::from_utf8(&head) {
        Ok(text) => text,
        // The last character may be cut.
        Err(error) if error.error_len().is_none() => {
            let whole = head.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(whole).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let is_binary = |c: char| c.is_control() && !c.is_ascii_whitespace();
    !text.is_empty() && !text.contains(is_binary)
}

fn is_address(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

fn one_of(addresses: Addresses, what: &str) -> String {
    format!("{}, or a base64 data URL of {what}", addresses.as_str())
}

fn neither(addresses: Addresses, what: &str) -> Reject {
    Reject::rule(format!("is none; accepted is {}", one_of(addresses, what)))
}

/// Checks an https address of what a provider is to fetch.
pub(crate) fn https_address(url: &str) -> Result<(), Reject> {
    match url.starts_with("https://") {
        true => address(url),
        false => Err(Reject::rule(format!("is none; accepted is {HTTPS}"))),
    }
}

/// Checks a text that names a document or an image by address, or holds it as a data URL that says what its bytes are.
/// Returns the bytes of the data.
///
/// `is_image`: nothing but an image is accepted.
pub(crate) fn document(url: &str, is_image: bool) -> Result<u64, Reject> {
    let named = data_url::named_type(url).map(|(named, _)| named);
    let is_picture = is_image || named.as_ref().is_some_and(|it| it.starts_with("image/"));
    if is_picture || is_address(url) {
        picture(url, Addresses::Http)?;
    }
    if is_address(url) {
        return Ok(0);
    }
    let Some((named, url)) = named.zip(data_url::parse(url)) else {
        return Err(neither(Addresses::Http, "a document"));
    };
    let is_named_well = match image_type_of_base64(&url.data) {
        Some(told) => is_same_image(told, &named),
        None => holds(&named, &url.data),
    };
    if !is_named_well {
        let shown: String = named.chars().take(80).collect();
        return Err(Reject::rule(format!(
            "says {shown} and holds something else; accepted is the media type of its bytes"
        )));
    }
    Ok(url.data.len() as u64)
}

/// Checks an address. Whoever fetches it is a provider, which may stand in the operator's own network: so what its text
/// shows to be private is refused.
fn address(url: &str) -> Result<(), Reject> {
    check_text(url).map_err(|why| {
        Reject::rule(format!(
            "is not fetched: {why}; accepted is an address of the public Internet without a user name"
        ))
        .with_code(FaultCode::DestinationIpProhibited)
    })
}

/// Checks an image in the body: its bytes have to be one, whatever its name says.
pub(crate) fn image(url: &DataUrl<'_>) -> Result<(), Reject> {
    if !is_base64(&url.data) {
        return Err(Reject::rule(
            "is broken base64; accepted is that of an image",
        ));
    }
    let is_named = url.media_type.starts_with("image/");
    if image_type_of_base64(&url.data).is_none() || !is_named {
        return Err(Reject::rule(
            "holds no image of a known type; accepted is PNG, JPEG, WebP, GIF, HEIC, HEIF or AVIF with its own media type",
        ));
    }
    match dimensions_of_base64(&url.data) {
        Some((width, height)) if u64::from(width) * u64::from(height) > MAX_PIXELS => {
            let said = format!("is an image of {width} x {height} pixels");
            Err(Reject::rule(format!(
                "{said}; accepted are at most {MAX_PIXELS} pixels"
            )))
        }
        _ => Ok(()),
    }
}

/// Returns whether text of the characters of base64 is some: of one alphabet, with padding at its end alone, and of a
/// length that bytes have.
///
/// Cost: looks at each character; decodes none.
fn is_base64(data: &str) -> bool {
    let chars = data.trim_end_matches('=');
    let is_mixed = chars.contains(['+', '/']) && chars.contains(['-', '_']);
    data.len() - chars.len() <= 2 && chars.len() % 4 != 1 && !chars.contains('=') && !is_mixed
}

/// Returns whether a name is that of the image that bytes tell. Those of one family share their first bytes.
fn is_same_image(told: &str, named: &str) -> bool {
    const FAMILY: [&str; 3] = ["image/heif", "image/heic", "image/avif"];
    told == named || FAMILY.contains(&told) && FAMILY.contains(&named)
}

/// Returns whether the first bytes of a document are those of its media type, where that has a mark.
fn holds(media_type: &str, data: &str) -> bool {
    const ZIPS: [&str; 3] = [
        "application/vnd.openxmlformats-officedocument.",
        "application/vnd.oasis.opendocument.",
        "application/epub+zip",
    ];
    let head = data.get(..HEAD_CHARS).unwrap_or(data);
    let Some(head) = data_url::decode_base64(head).filter(|head| !head.is_empty()) else {
        return false;
    };
    let is_zip = ZIPS.iter().any(|zip| media_type.starts_with(zip));
    match media_type {
        "application/pdf" => head.windows(5).any(|bytes| bytes == b"%PDF-"),
        _ if is_zip => head.starts_with(b"PK\x03\x04"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_one_alphabet_a_length_and_its_padding_at_the_end() {
        for text in ["", "QUI=", "QUI", "QUJD", "+/8=", "-_8"] {
            assert!(is_base64(text), "{text}");
        }
        for text in ["Q", "QUJDQ", "QU=D", "QQ===", "=QUJ", "+_8="] {
            assert!(!is_base64(text), "{text}");
        }
    }
}
