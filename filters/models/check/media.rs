//! Addresses and data URLs of pictures and documents.

use crate::models::chat::data_url::{self, DataUrl};
use crate::models::chat::dimensions::{self, dimensions_of_base64};
use crate::models::chat::inlined::MAX_PIXELS;
use crate::models::chat::sniff::image_type_of_base64;
use crate::models::check::reject::Reject;
use crate::public_address::may_be_public;
use crate::spooled_json::{KEPT_APPLICATION_CHARS, KEPT_CHARS};

/// Base64 characters of a document that are looked at: the mark of a PDF stands in its first kilobyte.
const HEAD_CHARS: usize = 1400;
const _: () = assert!(
    HEAD_CHARS <= KEPT_APPLICATION_CHARS && dimensions::HEAD_CHARS <= KEPT_CHARS,
    "what is looked at is in memory"
);

/// Checks an image in the body: its bytes have to be one, whatever its name says.
pub(crate) fn image(url: &DataUrl<'_>) -> Result<(), Reject> {
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

/// Checks a text that names a document or an image by address, or holds it as a data URL. Returns the bytes of the data.
///
/// Whoever fetches an address is a provider, which may stand in the operator's own network: so what its text shows to be
/// private is refused. `is_image`: nothing but an image is accepted.
pub(crate) fn document(url: &str, is_image: bool) -> Result<u64, Reject> {
    if url.starts_with("https://") || url.starts_with("http://") {
        return match may_be_public(url) {
            true => Ok(0),
            false => Err(Reject::rule(
                "is an address that is not public; accepted is one of the public Internet without a user name",
            )
            .with_code("destination_ip_prohibited")),
        };
    }
    let named = data_url::named_type(url).map(|(named, _)| named);
    let Some((named, url)) = named.zip(data_url::parse(url)) else {
        let what = if is_image { "an image" } else { "a document" };
        return Err(Reject::rule(format!(
            "is none; accepted is an http or https address, or a base64 data URL of {what}"
        )));
    };
    let told = image_type_of_base64(&url.data);
    if is_image || named.starts_with("image/") {
        image(&url)?;
    }
    let is_named_well = match told {
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
