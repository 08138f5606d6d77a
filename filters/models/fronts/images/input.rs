//! The images that a request edits. Source: docs/model-gateway.md 2.7.

use std::ops::Range;

use crate::json::Walker;
use crate::models::chat::data_url;
use crate::models::chat::inlined::RemoteImage;
use crate::models::check::media;
use crate::models::check::read::{array, object, required, string};
use crate::models::check::reject::Reject;
use crate::models::images::MAX_INPUTS;
use crate::models::request::MediaNeeds;

pub(super) const IMAGES: &str = "an array of 1 to 16 objects with `image_url`";
const URL: &str = "an https address or a base64 data URL";

/// The images of a request.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Where the strings stand that name or hold them.
    pub(super) places: Vec<Range<usize>>,
    pub(super) needs: MediaNeeds,
    pub(super) remote: Vec<RemoteImage>,
    /// The bytes of those strings.
    pub(super) bytes: u64,
}

/// `images`.
pub(super) fn images(walk: &mut Walker<'_>, inputs: &mut Inputs) -> Result<(), Reject> {
    let count = array(walk, |walk, index| {
        if index >= MAX_INPUTS {
            let said = format!("is one of more than {MAX_INPUTS} images");
            return Err(Reject::rule(said));
        }
        let mut has_url = false;
        object(walk, &["image_url", "file_id"], |walk, key| {
            if key == "file_id" {
                let said = "means something to one provider alone; accepted is `image_url`";
                return Err(Reject::rule(said));
            }
            has_url = true;
            image(walk, index, inputs)
        })?;
        required(has_url.then_some(()), "image_url", URL)
    })?;
    match count {
        0 => Err(Reject::rule("is empty; accepted is at least one image")),
        _ => Ok(()),
    }
}

fn image(walk: &mut Walker<'_>, index: usize, inputs: &mut Inputs) -> Result<(), Reject> {
    walk.peek()?;
    let start = walk.at();
    let text = string(walk)?;
    inputs.places.push(start..walk.at());
    inputs.bytes += text.len() as u64;
    let url = text.unescaped();
    let remote = inputs
        .needs
        .note_image(&url, || format!("images[{index}].image_url").into());
    match remote {
        Some(remote) if !remote.is_http() => {
            inputs.remote.push(remote);
            Ok(())
        }
        Some(_) => Err(Reject::rule(format!(
            "is an address of plain http; accepted is {URL}"
        ))),
        None => data(&url),
    }
}

/// An image in the body: its bytes have to be one, whatever its name says.
fn data(url: &str) -> Result<(), Reject> {
    let Some(url) = data_url::parse(url) else {
        return Err(Reject::rule(format!(
            "is neither of both; accepted is {URL}"
        )));
    };
    media::image(&url)
}
