//! A broken configuration for each rule, with the messages that it gets.
//!
//! `golden/NAME.toml` is the configuration, `golden/NAME.txt` what is said of it; lines `# env NAME=VALUE` are its
//! environment. After a wanted change: `WRITE_GOLDEN=1 cargo test --lib config::tests::golden`, and read the difference.

use std::path::{Path, PathBuf};

use super::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/tests/golden")
}

/// All configurations, by name.
fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let is_configuration = |name: &String| !name.contains(".models.");
    let names = names.filter(is_configuration);
    let mut names: Vec<_> = names
        .filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned()))
        .collect();
    names.sort_unstable();
    names
}

fn said(name: &str) -> String {
    let toml = std::fs::read_to_string(folder().join(format!("{name}.toml"))).unwrap();
    // Without this the shipped catalogue would be checked too.
    let no_models = (!toml.contains("[models]"))
        .then(|| ("WEIRGATE_MODELS__FILE".to_owned(), "/dev/null".to_owned()));
    let pairs = toml.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("# env ")?.split_once('=')?;
        Some((name.to_owned(), value.replace("\\n", "\n")))
    });
    let pairs = pairs.chain(no_models);
    let (kind, problems) = match from_str(&toml, pairs) {
        Ok(loaded) => match loaded.config.models.catalog {
            Ok(_) => ("warning", loaded.warnings),
            Err(problems) => ("error", problems),
        },
        Err(problems) => ("error", problems),
    };
    let lines = problems
        .iter()
        .map(|problem| format!("{kind}: {problem}\n"));
    lines.collect()
}

#[test]
fn every_broken_configuration_gets_its_messages() {
    let (mut differing, names) = (Vec::new(), names());
    for name in &names {
        let said = said(name);
        assert!(!said.is_empty(), "{name}: nothing is said");
        assert!(!said.contains("hunter2"), "{name}: a secret is repeated");
        assert!(said.contains("= cure: "), "{name}: nothing is advised");
        let file = folder().join(format!("{name}.txt"));
        if std::env::var_os("WRITE_GOLDEN").is_some() {
            std::fs::write(&file, &said).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        if said != expected {
            differing.push(format!(
                "{name} is expected to say\n{expected}\nbut says\n{said}"
            ));
        }
    }
    assert!(names.len() > 90, "{}", names.len());
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
