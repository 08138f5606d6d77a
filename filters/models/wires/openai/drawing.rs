//! Images out in this convention: `modalities` that name images, and `image_config` beside them.

use std::borrow::Cow;

use crate::json::{Error, Str, Walker};
use crate::models::dialects::chat::find_image_parameter;
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::Treatment;
use crate::models::wires::wire::Target;

/// Returns what goes out of `image_config`; `None`: nothing does.
pub(super) fn image_config(
    value: &[u8],
    request: &ModelRequest,
    target: &Target<'_>,
) -> Option<Vec<u8>> {
    if !target.draws(request) {
        return None;
    }
    // Of images that are asked for one after the other each request has its own number.
    let of_part = target.images_of_part(request);
    let mut out = b"{".to_vec();
    let mut walk = Walker::over(std::str::from_utf8(value).ok()?);
    let walked = walk.object(|walk, key| {
        let member = walk.skip()?;
        if let Some(parameter) = find_image_parameter(&key)
            && target.parameters.supports(parameter)
        {
            let member = match target.treat(parameter, request) {
                Treatment::Drop => return Ok(()),
                _ if parameter == Parameter::ImageCount => Cow::Owned(of_part.to_string()),
                Treatment::Pass => Cow::Borrowed(member),
                Treatment::Number(number) => Cow::Owned(number.to_string()),
            };
            Str::Plain(&key).write(&mut out);
            out.push(b':');
            out.extend_from_slice(member.as_bytes());
            out.push(b',');
        }
        Ok::<(), Error>(())
    });
    walked.ok()?;
    let last = out.last_mut().filter(|last| **last == b',')?;
    *last = b'}';
    Some(out)
}

/// Returns whether the provider has to be told that images are wanted: the request does not say it itself.
pub(super) fn must_say_modalities(request: &ModelRequest, target: &Target<'_>) -> bool {
    let given = request.source.member("modalities");
    let is_given = given.is_some_and(|given| !request.source.is_null(given));
    !is_given && target.draws(request) && target.parameters.supports(Parameter::Modalities)
}
