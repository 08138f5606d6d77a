//! New files, and new names of files, that survive a loss of power.
//!
//! A file that is synced may still be lost with its name: that is in its folder, which has to be synced, too. Other ways
//! to rename or to link a file are refused by clippy.

pub mod new_file;

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Makes the names in a folder durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes the name of a file durable, whose bytes are synced.
pub fn sync_name(file: &Path) -> io::Result<()> {
    let folder = file.parent();
    sync_folder(
        folder
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new(".")),
    )
}

/// Creates a folder and those above it, with durable names.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    let mut missing = Vec::new();
    for above in folder.ancestors() {
        if above.as_os_str().is_empty() || above.exists() {
            break;
        }
        missing.push(above);
    }
    fs::create_dir_all(folder)?;
    missing.into_iter().try_for_each(sync_name)
}

/// Gives a file, whose bytes are synced, another name. It replaces the file of that name.
#[expect(clippy::disallowed_methods, reason = "the name is synced here")]
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_name(to)
}

/// Gives a file, whose bytes are synced, a second name.
///
/// Errors: [`io::ErrorKind::AlreadyExists`], and others of the file system.
#[expect(clippy::disallowed_methods, reason = "the name is synced here")]
pub fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    sync_name(to)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn names_change_and_a_link_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        create_folders(&deep).unwrap();
        create_folders(&deep).unwrap();
        let name = |name: &str| deep.join(name);
        fs::write(name("draft"), "1").unwrap();
        link(&name("draft"), &name("copy")).unwrap();
        let again = link(&name("draft"), &name("copy")).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        fs::write(name("other"), "2").unwrap();
        rename(&name("other"), &name("copy")).unwrap();
        assert_eq!(fs::read(name("copy")).unwrap(), b"2");
        assert!(!name("other").exists());
        assert!(sync_name(Path::new("a name without a folder")).is_ok());
        assert!(rename(&name("absent"), &name("copy")).is_err());
    }
}
