//! Moves an alias in the file of the catalogue. All else stays as it is written, with its comments.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use filters::models::routing::CatalogFile;
use filters::models::routing::alias_move::AliasMove;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::durable;

/// The alias, the id of the model that has it, and that of the one that gets it.
type Names<'a> = (&'a str, &'a str, &'a str);

/// Moves an alias. The file is replaced whole, or stays.
///
/// Errors: the file cannot be read, understood or written, with its name.
pub(super) fn move_alias(path: &Path, names: Names<'_>) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    let edited = edit(&text, names).map_err(|error| failed(&error))?;
    let replaced = replace(path, edited.as_bytes());
    replaced.map_err(|error| failed(&format!("it cannot be written, and is as it was: {error}")))
}

/// Returns the text of the catalogue in which the alias has moved.
fn edit(text: &str, (alias, from, to): Names<'_>) -> Result<String, String> {
    let by_hand = "move the alias by hand";
    let document = text.parse::<DocumentMut>();
    let mut document = document.map_err(|error| error.to_string())?;
    let models = document.get_mut("models");
    let models = models.and_then(Item::as_array_of_tables_mut);
    let models = models.ok_or_else(|| format!("its models are no tables [[models]]; {by_hand}"))?;
    for table in models.iter_mut() {
        match table.get("id").and_then(Item::as_str) {
            Some(id) if id == from => take(table, alias),
            Some(id) if id == to => give(table, alias),
            _ => {}
        }
    }
    let edited = document.to_string();
    match is_of(text, alias, from, to) && is_of(&edited, alias, to, from) {
        true => Ok(edited),
        false => Err(format!(
            "{alias:?} could not be moved in it: it has changed, or is written in an unusual way; {by_hand}"
        )),
    }
}

/// Returns whether a catalogue has both models, and gives the alias to the first one.
fn is_of(text: &str, alias: &str, owner: &str, other: &str) -> bool {
    let catalog: Result<CatalogFile, _> = toml::from_str(text);
    catalog.is_ok_and(|catalog| {
        let found = AliasMove::find(&catalog, alias, other);
        found.is_ok_and(|found| found.from.id == owner && found.to.id == other)
    })
}

fn take(model: &mut Table, alias: &str) {
    let Some(aliases) = model.get_mut("aliases").and_then(Item::as_array_mut) else {
        return;
    };
    aliases.retain(|own| own.as_str() != Some(alias));
    if aliases.is_empty() {
        model.remove("aliases");
    }
}

fn give(model: &mut Table, alias: &str) {
    match model.get_mut("aliases").and_then(Item::as_array_mut) {
        Some(aliases) => aliases.push(alias),
        None => {
            let aliases = Array::from_iter([alias]);
            model.insert("aliases", value(aliases));
        }
    }
}

/// Replaces a file by one with the same permissions. A link goes on to lead to it.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", uuid::Uuid::now_v7()));
    let draft = PathBuf::from(draft);
    let write = || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).open(&draft)?;
        file.set_permissions(fs::metadata(&path)?.permissions())?;
        if let Some(folder) = path.parent() {
            durable::give_to_owner_of(folder, &file)?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        durable::rename(&draft, &path)
    };
    let written = write();
    if written.is_err() {
        // What is left here has the bytes of a catalogue, and another name.
        _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const TEXT: &str = "# Prices of May.\n\n[[models]] # the old one\nid = \"old\"\naliases = [\"nick\", \"other\"] # two\n\n\
        [[models.providers]]\nprovider = \"a\" # first\nname = \"old-1\"\n\n[[models]]\nid = \"new\"\n\n[[models.providers]]\n\
        provider = \"a\"\nname = \"new-1\"\n";

    #[test]
    fn an_alias_moves_and_all_else_stays() {
        let edited = edit(TEXT, ("nick", "old", "new")).unwrap();
        let expected = TEXT.replace("[\"nick\", \"other\"]", "[ \"other\"]");
        let expected = expected.replace("id = \"new\"\n", "id = \"new\"\naliases = [\"nick\"]\n");
        assert_eq!(edited, expected);
        let again = edit(&edited, ("other", "old", "new")).unwrap();
        assert!(again.contains("aliases = [\"nick\", \"other\"]"), "{again}");
        assert_eq!(again.matches("aliases").count(), 1, "{again}");
        assert!(again.starts_with("# Prices of May.") && again.contains("# first"));
    }

    #[test]
    fn what_is_not_as_it_should_be_is_not_written() {
        for (text, names) in [
            ("models = [", ("nick", "old", "new")),
            ("models = []", ("nick", "old", "new")),
            ("", ("nick", "old", "new")),
            (TEXT, ("absent", "new", "old")),
            (TEXT, ("nick", "old", "newer")),
        ] {
            assert!(edit(text, names).is_err(), "{text} {names:?}");
        }
    }

    #[test]
    fn the_file_is_replaced_whole_with_its_permissions_and_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (
            folder.path().join("models.toml"),
            folder.path().join("link"),
        );
        fs::write(&file, TEXT).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        move_alias(&link, ("nick", "old", "new")).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("aliases = [\"nick\"]"), "{text}");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let error = move_alias(&link, ("nick", "old", "new")).unwrap_err();
        assert!(error.contains("could not be moved"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
