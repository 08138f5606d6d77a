//! Images that requests name by address, and what was fetched of them for providers that take no addresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::sniff::image_type;

/// The most pixels of an image that is edited. Our choice: more than any provider takes; one of 50,000 by 50,000 is a few
/// bytes that become gigabytes where it is decoded.
pub const MAX_PIXELS: u64 = 100_000_000;

/// An image that a request names by address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RemoteImage {
    /// Where it stands in the request, such as `messages[3].content[1].image_url.url`.
    pub param: Box<str>,
    /// The address: `https://…` or `http://…`.
    pub url: Box<str>,
}

impl RemoteImage {
    /// Returns whether the address is plain http.
    pub fn is_http(&self) -> bool {
        !self.url.starts_with("https://")
    }
}

/// An image that has to be fetched, and how often the request names its address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WantedImage {
    /// Where the address stands first.
    pub image: RemoteImage,
    /// The number of parts with this address, at least 1.
    pub count: usize,
}

/// An image as a data URL.
#[derive(Debug, Eq, PartialEq)]
pub struct InlinedImage {
    /// The media type that its bytes tell.
    pub media_type: &'static str,
    /// The whole data URL.
    pub url: Box<str>,
}

impl InlinedImage {
    /// Reads the bytes of an image; `None`: they are not an image of a known type, whatever its server calls them.
    ///
    /// Cost: one copy, a third longer than the bytes.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let media_type = image_type(bytes)?;
        let mut url = String::with_capacity(40 + bytes.len().div_ceil(3) * 4);
        url.push_str("data:");
        url.push_str(media_type);
        url.push_str(";base64,");
        STANDARD.encode_string(bytes, &mut url);
        Some(Self {
            media_type,
            url: url.into(),
        })
    }

    /// Returns its base64.
    pub fn data(&self) -> &str {
        self.url.split_once(',').map_or("", |(_, data)| data)
    }
}

/// The fetched images of one request, by their addresses.
#[derive(Clone, Debug, Default)]
pub struct InlinedImages {
    /// Ordered, because an empty map of hashes is not a constant.
    images: BTreeMap<Box<str>, Arc<InlinedImage>>,
    bytes: usize,
}

impl InlinedImages {
    /// No images.
    pub const NONE: &'static Self = &Self {
        images: BTreeMap::new(),
        bytes: 0,
    };

    /// Adds the image of an address, in place of an earlier one.
    pub fn add(&mut self, url: &str, image: Arc<InlinedImage>) {
        let bytes = image.url.len();
        let replaced = self.images.insert(url.into(), image);
        let replaced = replaced.map_or(0, |image| image.url.len());
        self.bytes = self.bytes - replaced + bytes;
    }

    /// Returns the image of an address.
    pub fn find(&self, url: &str) -> Option<&InlinedImage> {
        self.images.get(url).map(|image| &**image)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// Returns the number of addresses.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Returns the bytes of all data URLs, each once.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_was_fetched_becomes_a_data_url_of_the_type_that_its_bytes_tell() {
        let image = InlinedImage::read(b"GIF89a\x01\x00").unwrap();
        assert_eq!(&*image.url, "data:image/gif;base64,R0lGODlhAQA=");
        assert_eq!(
            (image.media_type, image.data()),
            ("image/gif", "R0lGODlhAQA=")
        );
        assert_eq!(InlinedImage::read(b"<html>"), None);
        let mut images = InlinedImages::default();
        let image = Arc::new(image);
        images.add("https://a.test/a", Arc::clone(&image));
        images.add("https://a.test/a", image);
        assert!(images.find("https://a.test/a").is_some());
        assert!(images.find("https://a.test/b").is_none());
        assert_eq!((images.len(), images.bytes()), (1, 34));
    }
}
