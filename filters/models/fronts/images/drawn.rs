//! What both forms of a response take of a reply: images, the members beside them, and whether a filter stopped it.

use crate::json::{Error, Str, Type, Walker};
use crate::models::chat::piece::{Finish, Image, Piece};
use crate::models::chat::sniff::image_type_of_base64;
use crate::models::reply::Reported;
use crate::models::usage::Usage;
use crate::money::ServiceTier;

/// Members of a reply that a response may have. Source: docs/model-gateway.md 2.7.
const MEMBERS: [&str; 4] = ["background", "output_format", "quality", "size"];

/// What has come of a reply.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    /// Images, in all parts.
    pub(super) count: u64,
    /// Those of the parts that have ended.
    ended_count: u64,
    /// Keys and JSON values beside them.
    members: Vec<(&'static str, Box<str>)>,
    pub(super) is_filtered: bool,
    has_address: bool,
    usage: Option<Usage>,
    service_tier: Option<ServiceTier>,
    text_bytes: u64,
}

impl Drawn {
    /// Takes pieces of the answer of a chat; `image` gets the base64 of each image.
    pub(super) fn pieces(&mut self, pieces: &[Piece<'_>], mut image: impl FnMut(Str<'_>)) {
        for piece in pieces {
            match piece {
                Piece::Text(text) | Piece::Reasoning(text) => self.text_bytes += text.len() as u64,
                Piece::Refusal(text) => {
                    self.text_bytes += text.len() as u64;
                    self.is_filtered |= !text.is_empty();
                }
                Piece::Finish(Finish::Filtered) => self.is_filtered = true,
                Piece::Image(Image::Data { data, .. }) => self.data(&data.unescaped(), &mut image),
                Piece::Image(Image::Said { items, .. }) => {
                    let list = ["[", items, "]"].concat();
                    // What cannot be read is not an image.
                    _ = Walker::over(&list).array(|walk, _| {
                        if let Some(url) = url_of_item(walk)? {
                            self.url(url, &mut image);
                        }
                        Ok::<(), Error>(())
                    });
                }
                _ => {}
            }
        }
    }

    fn url(&mut self, url: Str<'_>, image: &mut impl FnMut(Str<'_>)) {
        let url = url.unescaped();
        match url.split_once(";base64,") {
            Some((head, data)) if head.starts_with("data:") => self.data(data, image),
            _ => self.has_address = true,
        }
    }

    fn data(&mut self, data: &str, image: &mut impl FnMut(Str<'_>)) {
        self.count += 1;
        self.sniff(data);
        image(Str::Plain(data));
    }

    /// Notes the format of an image as its bytes tell it.
    fn sniff(&mut self, data: &str) {
        let format = match image_type_of_base64(data) {
            Some("image/png") => "\"png\"",
            Some("image/jpeg") => "\"jpeg\"",
            Some("image/webp") => "\"webp\"",
            _ => return,
        };
        self.member("output_format", format);
    }

    /// Takes a member of the reply; the last one of a key counts.
    pub(super) fn member(&mut self, key: &str, value: &str) {
        let Some(key) = MEMBERS.into_iter().find(|known| *known == key) else {
            return;
        };
        // `auto` is not an answer, and neither is anything but a text.
        if value.starts_with('"') && value != "\"auto\"" {
            self.members.retain(|(known, _)| *known != key);
            self.members.push((key, value.into()));
        }
    }

    /// Writes the members, each behind a comma.
    pub(super) fn write_members(&self, out: &mut Vec<u8>) {
        for (key, value) in &self.members {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(b"\":");
            out.extend_from_slice(value.as_bytes());
        }
    }

    pub(super) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    pub(super) fn service_tier(&mut self, tier: ServiceTier) {
        self.service_tier = Some(tier);
    }

    /// Ends a part: what is reported from now on is of the next one.
    pub(super) fn end_part(&mut self) {
        self.ended_count = self.count;
        self.begin_part();
    }

    /// Drops what came since the last part ended.
    pub(super) fn begin_part(&mut self) {
        *self = Self {
            count: self.ended_count,
            ended_count: self.ended_count,
            members: std::mem::take(&mut self.members),
            service_tier: self.service_tier,
            ..Self::default()
        };
    }

    pub(super) fn reported(&self) -> Reported {
        Reported {
            usage: self.usage,
            service_tier: self.service_tier,
            output_bytes: self.text_bytes,
            images: self.count - self.ended_count,
            ..Reported::default()
        }
    }

    /// Why a reply that has come to its end is not an answer.
    pub(super) fn lack(&self) -> Option<&'static str> {
        let count = self.count - self.ended_count;
        match (count, self.is_filtered, self.has_address) {
            (0, false, true) => Some("the provider answered with an address in place of an image"),
            (0, false, false) => Some("the provider drew no image"),
            _ => None,
        }
    }
}

/// The address or data URL of an item of `images`.
fn url_of_item<'a>(walk: &mut Walker<'a>) -> Result<Option<Str<'a>>, Error> {
    let mut url = None;
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| None);
    }
    walk.object(|walk, key| {
        if key != "image_url" || walk.peek()? != Type::Object {
            return walk.skip().map(|_| ());
        }
        walk.object(|walk, key| {
            if key == "url" && walk.peek()? == Type::String {
                url = Some(walk.string()?);
                return Ok(());
            }
            walk.skip().map(|_| ())
        })
    })?;
    Ok(url)
}
