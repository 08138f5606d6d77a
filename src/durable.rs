//! New files, and new names of files, that survive a loss of power.
//!
//! A file that is synced may still be lost with its name: that is in its folder, which has to be synced, too. Other ways
//! to rename or to link a file are refused by clippy.

pub mod new_file;

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, fchown};
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

/// Gives a new file to the owner of its folder if root has made it. A command that root runs would otherwise leave a file
/// that the server, which has a user of its own, cannot read.
///
/// Errors: the file system's. That root may not do it, as in a container without capabilities, is none: this is the
/// server's own user then.
pub fn give_to_owner_of(folder: &Path, file: &File) -> io::Result<()> {
    let (made, folder) = (file.metadata()?, fs::metadata(folder)?);
    if made.uid() != 0 || folder.uid() == 0 {
        return Ok(());
    }
    match fchown(file, Some(folder.uid()), Some(folder.gid())) {
        Err(error) if error.kind() != ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

/// Gives a file, whose bytes are synced, another name. It replaces the file of that name.
#[expect(clippy::disallowed_methods, reason = "the name is synced here")]
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_name(to)
}

/// Gives a file, whose bytes are synced, a second name.
///
/// Errors: [`ErrorKind::AlreadyExists`], and others of the file system.
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
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        fs::write(name("other"), "2").unwrap();
        rename(&name("other"), &name("copy")).unwrap();
        assert_eq!(fs::read(name("copy")).unwrap(), b"2");
        assert!(!name("other").exists());
        assert!(sync_name(Path::new("a name without a folder")).is_ok());
        assert!(rename(&name("absent"), &name("copy")).is_err());
    }

    #[test]
    fn what_root_makes_belongs_to_the_owner_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let owner = |path: &Path| fs::metadata(path).unwrap().uid();
        // Only root may give the folder away; for anybody else the owner is the same before and after.
        if owner(folder.path()) == 0 {
            std::os::unix::fs::chown(folder.path(), Some(4321), Some(4321)).unwrap();
        }
        let path = folder.path().join("secret.key");
        let file = File::create(&path).unwrap();
        give_to_owner_of(folder.path(), &file).unwrap();
        assert_eq!(owner(&path), owner(folder.path()));
    }
}
