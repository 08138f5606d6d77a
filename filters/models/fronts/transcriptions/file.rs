//! The file of a form: one, named, of a format that its bytes, its name and its media type agree on.

use super::check::wrong_file;
use crate::fault::{Fault, quoted};
use crate::models::transcriptions::container::{ACCEPTED, Container};
use crate::models::transcriptions::{AudioFile, AudioTime};
use crate::multipart::FormFile;

/// The field of the file.
const FILE: &str = "file";
/// The longest name of a file. Our choice: that of usual file systems.
const MAX_NAME_BYTES: usize = 255;

/// Reads the one file of a form.
///
/// Errors: 400 naming the field.
pub(super) fn read_audio(files: Vec<FormFile>) -> Result<AudioFile, Fault> {
    let mut audio = None;
    for file in files {
        if &*file.name != FILE {
            let said = "is a file; accepted is one file, in `file`";
            return Err(wrong_file(&file.name, said));
        }
        if audio.replace(file).is_some() {
            return Err(wrong_file(FILE, "stands twice; accepted is one file"));
        }
    }
    let accepted = |said: &str| wrong_file(FILE, &format!("{said}; accepted is {ACCEPTED}"));
    let file = audio.ok_or_else(|| accepted("is missing"))?;
    check_name(&file.file_name)?;
    if file.range.is_empty() {
        return Err(accepted("has 0 bytes"));
    }
    let container = Container::sniff(&file.head)
        .ok_or_else(|| accepted("holds no audio of a format that is known"))?;
    let media_type = file.media_type.as_deref().unwrap_or_default();
    let by_name = Container::from_name(&file.file_name);
    let by_type = Container::from_media_type(media_type);
    for (by, word) in [(by_name, &*file.file_name), (by_type, media_type)] {
        if by.is_some_and(|by| by != container) {
            let (word, found) = (quoted(word), container.ending());
            let said = format!("calls itself {word}, and its bytes are {found}");
            return Err(accepted(&said));
        }
    }
    let bytes = file.range.end - file.range.start;
    let ending = container.ending();
    let is_plain = |b: u8| (b' '..=b'~').contains(&b);
    Ok(AudioFile {
        name: match by_name {
            Some(_) => file.file_name.clone(),
            None if file.file_name.is_empty() => format!("audio.{ending}").into(),
            None => format!("{}.{ending}", file.file_name).into(),
        },
        media_type: match by_type {
            Some(_) if media_type.bytes().all(is_plain) => media_type.into(),
            _ => container.media_type().into(),
        },
        time: AudioTime::read(container, &file.head, bytes),
        range: file.range,
    })
}

/// Checks the name of a file, which goes on to providers.
fn check_name(name: &str) -> Result<(), Fault> {
    let is_path = name.contains(['/', '\\']) || matches!(name, "." | "..");
    let said = if is_path {
        "has a name that is a path; accepted is the name of a file"
    } else if name.chars().any(char::is_control) {
        "has a name with control characters; accepted is the name of a file"
    } else if name.len() > MAX_NAME_BYTES {
        "has a name of more than 255 bytes; accepted is the name of a file"
    } else {
        return Ok(());
    };
    Err(wrong_file(FILE, said))
}
