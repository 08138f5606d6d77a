//! Files that a command makes, none of which takes the place of another.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::durable;
use crate::durable::new_file::{NewFile, SHARED};

/// Writes files whole, or none of them. Folders that are missing are made.
///
/// Errors: a file of one of the names is there already, or cannot be written, with its name.
pub(super) fn create(files: &[(PathBuf, &str)]) -> Result<(), String> {
    let mut made: Vec<&Path> = Vec::new();
    for (path, text) in files {
        if let Err(error) = create_one(path, text) {
            for path in made {
                // What is left here is named by the error of the next attempt.
                let _ = fs::remove_file(path);
            }
            return Err(error);
        }
        made.push(path);
    }
    Ok(())
}

/// Returns what is said of a file that is there already.
pub(super) fn is_there(path: &Path) -> String {
    format!(
        "{} is there already, and nothing was written; move it away, or name another place",
        path.display()
    )
}

fn create_one(path: &Path, text: &str) -> Result<(), String> {
    let write = || {
        durable::create_folders(path.parent().unwrap_or(Path::new("")))?;
        let new = NewFile::create(path, SHARED)?;
        new.file().write_all(text.as_bytes())?;
        new.publish()
    };
    let written = write();
    written.map(drop).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists if path.exists() => is_there(path),
        _ => format!(
            "{} cannot be written: {error}; name a place that you may write to",
            path.display()
        ),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn either_all_files_are_made_or_none_and_no_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("deep/one"), folder.path().join("two"));
        fs::write(&two, "kept").unwrap();
        let files = [(one.clone(), "1"), (two.clone(), "2")];
        let error = create(&files).unwrap_err();
        assert_eq!(error, is_there(&two));
        assert!(!one.exists());
        assert_eq!(fs::read_to_string(&two).unwrap(), "kept");
        fs::remove_file(&two).unwrap();
        create(&files).unwrap();
        assert_eq!(fs::read_to_string(&one).unwrap(), "1");
        assert_eq!(fs::read_to_string(&two).unwrap(), "2");
        // Drafts are gone.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 1);
    }
}
