//! Images, audio and files of messages, where a provider of this convention does not take them as they came.

use std::borrow::Cow;
use std::ops::Range;

use super::messages::without_member;
use crate::json::{Error, Walker};
use crate::models::chat::data_url;
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// Returns whether media of any message have to change.
pub(super) fn must_rewrite(request: &ModelRequest, target: &Target<'_>) -> bool {
    let needs = &request.needs;
    let mut formats = needs.audio.iter();
    !target.inlined.is_empty()
        || needs.media.unnamed_files
        || needs.media.misnamed_images
        || formats.any(|format| data_url::audio_format(format) != &**format)
}

/// Writes `image_url` of a part: with what was fetched in place of its address, with the media type that its bytes tell, and
/// without a `detail` that is dropped.
pub(super) fn write_image(
    splice: &mut Splice<'_>,
    range: Range<usize>,
    target: &Target<'_>,
) -> Result<(), Error> {
    let keeps_detail = target.parameters.supports(Parameter::ImageDetail);
    let url = member(splice, &range, "url")?.unwrap_or_default();
    let fetched = target.inlined.find(&url).map(|image| &*image.url);
    let fetched = fetched.map(Cow::Borrowed);
    let Some(other) = fetched.or_else(|| data_url::retyped(&url).map(Cow::Owned)) else {
        if keeps_detail {
            splice.slice(range);
            return Ok(());
        }
        return without_member(splice, range, "detail");
    };
    splice.new_bytes(b"{\"url\":");
    splice.new_string(&other);
    for (key, value) in splice.members(range)? {
        if key != "url" && (keeps_detail || key != "detail") {
            splice.write_name(&key, &mut false);
            splice.slice(value);
        }
    }
    splice.new_bytes(b"}");
    Ok(())
}

/// Writes `input_audio` of a part, its format under the name that providers know.
pub(super) fn write_audio(splice: &mut Splice<'_>, range: Range<usize>) -> Result<(), Error> {
    let format = member(splice, &range, "format")?.unwrap_or_default();
    let name = data_url::audio_format(&format);
    if name == format {
        splice.slice(range);
        return Ok(());
    }
    splice.new_bytes(b"{\"format\":");
    splice.new_string(name);
    write_others(splice, range, "format")
}

/// Writes `file` of a part. A file in the body needs a name.
pub(super) fn write_file(splice: &mut Splice<'_>, range: Range<usize>) -> Result<(), Error> {
    let name = member(splice, &range, "filename")?;
    let data = member(splice, &range, "file_data")?;
    let kind = data.as_deref().and_then(data_url::media_type);
    let Some(kind) = kind.filter(|_| name.is_none_or(|name| name.is_empty())) else {
        splice.slice(range);
        return Ok(());
    };
    splice.new_bytes(b"{\"filename\":");
    splice.new_string(data_url::file_name(&kind));
    write_others(splice, range, "filename")
}

/// Writes the members of an object but one, behind a first one, and ends the object.
fn write_others(splice: &mut Splice<'_>, range: Range<usize>, but: &str) -> Result<(), Error> {
    for (key, value) in splice.members(range)? {
        if key != but {
            splice.write_name(&key, &mut false);
            splice.slice(value);
        }
    }
    splice.new_bytes(b"}");
    Ok(())
}

/// The text of a member of an object.
fn member<'a>(
    splice: &Splice<'a>,
    range: &Range<usize>,
    wanted: &str,
) -> Result<Option<Cow<'a, str>>, Error> {
    let members = splice.members(range.clone())?;
    let found = members.into_iter().find(|(key, _)| key == wanted);
    let Some((_, value)) = found else {
        return Ok(None);
    };
    let mut walk = Walker::over(splice.text(value));
    if walk.null()? {
        return Ok(None);
    }
    Ok(Some(walk.string()?.unescaped()))
}
