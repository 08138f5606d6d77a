//! Checks the keys of `[models]`, and the catalogue.

use std::io::ErrorKind;
use std::path::PathBuf;

use filters::models::routing::CatalogFile;
use filters::models::routing::providers::ProviderNames;
use filters::models::routing::resolve::AUTO;

use super::Rules;
use crate::config::catalog;
use crate::config::checked::ModelsConfig;
use crate::config::file::File;
use crate::config::suggest;

/// Checks the section, reads the catalogue, and checks the keys that refer to it.
pub(super) fn check(rules: &mut Rules<'_>, file: &File, enabled: ProviderNames) -> ModelsConfig {
    let models = &file.models;
    let text = read(rules, &models.file);
    let mut checked = ModelsConfig {
        file: text.as_ref().map(|_| PathBuf::from(&models.file)),
        require_key: models.require_key,
        catalog: Ok(CatalogFile::default()),
    };
    let Some(text) = text else {
        return checked;
    };
    let catalog = catalog::check(&models.file, &text, &file.providers, enabled);
    let names: Vec<&str> = catalog.names.iter().map(String::as_str).collect();
    let judge = &file.claude_code.judge_model;
    // What names a provider, too, is no name of the catalogue.
    let judges: &[String] = match judge.is_empty() || judge.contains('/') || judge == AUTO {
        true => &[],
        false => std::slice::from_ref(judge),
    };
    let lists = [
        ("routing.auto", &*file.routing.auto),
        ("routing.auto_images", &*file.routing.auto_images),
        ("claude_code.judge_model", judges),
    ];
    for (key, list) in lists {
        for (index, model) in list.iter().enumerate() {
            if !names.contains(&model.as_str()) {
                let cure = match suggest::nearest(model, &names) {
                    Some(meant) => format!("did you mean {meant:?}?"),
                    None => "name an id or alias of the catalogue, or take it out".to_owned(),
                };
                let message = format!("the catalogue has no model {model:?}");
                match key.starts_with("routing") {
                    true => rules.warn(&format!("{key}[{index}]"), message, cure),
                    false => rules.warn(key, message, cure),
                }
            }
        }
    }
    rules.catalog_digest = catalog.digest;
    rules.catalog_warnings.extend(catalog.warnings);
    checked.catalog = catalog.file;
    checked
}

/// Reads the catalogue. Returns `None` if it does not exist.
fn read(rules: &mut Rules<'_>, path: &str) -> Option<String> {
    const KEY: &str = "models.file";
    match std::fs::read_to_string(path) {
        Ok(text) => return Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound && rules.is_set(KEY) => {
            let message = format!("the file {path:?} does not exist");
            let cure =
                "correct the path, which starts at the working directory, or take the key out";
            rules.refuse(KEY, message, cure);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let message = format!("no catalogue: {path} does not exist");
            rules.warn(KEY, message, "set models.file to a catalogue");
        }
        Err(error) => {
            let message = format!("the file {path:?} cannot be read: {error}");
            rules.refuse(KEY, message, super::cure_of_unreadable(&error));
        }
    }
    None
}
