//! The lists of docs/adding.md against the code that names their examples.
//!
//! Shape of a section: a sentence "… has the words `a`, `b`: its folder and 2 files" (or "no folder and 2 files"), a list with `-` of
//! the files of code that have one of the words, folders ending in `/`, and a list with `*` of other files.

use std::collections::BTreeSet;

use crate::source::{Source, word_offsets};

/// One section of the page.
#[derive(Debug, Default, PartialEq)]
pub struct Section {
    pub name: String,
    pub words: Vec<String>,
    pub has_folder: bool,
    pub files: usize,
    pub listed: Vec<String>,
    pub others: Vec<String>,
}

/// Returns the sections of the page.
pub fn sections(page: &str) -> Vec<Section> {
    page.split("\n## ").skip(1).map(section).collect()
}

fn section(text: &str) -> Section {
    let (name, body) = text.split_once('\n').unwrap_or((text, ""));
    let listed = |mark: &str| {
        let items = body
            .lines()
            .filter_map(|line| line.strip_prefix(mark)?.split_once('`'));
        items.map(|(path, _)| path.to_owned()).collect()
    };
    let flat = body.replace('\n', " ");
    let said = flat
        .split_once("has the words ")
        .map_or("", |(_, said)| said);
    let (words, counts) = said.split_once(": ").unwrap_or_default();
    let count = counts.split_once(" files").map_or("", |(count, _)| count);
    Section {
        name: name.to_owned(),
        words: words
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect(),
        has_folder: count.starts_with("its folder and "),
        files: count
            .rsplit(' ')
            .next()
            .and_then(|it| it.parse().ok())
            .unwrap_or(usize::MAX),
        listed: listed("- `"),
        others: listed("* `"),
    }
}

/// Returns what is wrong in a section; `exists` tells whether a path of the repository does.
pub fn findings(section: &Section, tree: &[Source], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let name = &section.name;
    let mut found = Vec::new();
    if section.words.is_empty() || section.listed.is_empty() {
        found.push(format!("{name}: no words or no list"));
    }
    for path in section.listed.iter().chain(&section.others) {
        if !exists(path) {
            found.push(format!("{name}: {path} does not exist"));
        }
    }
    let has_one = |file: &&Source| {
        let mut words = section.words.iter();
        (file.is_under("filters/") || file.is_under("src/"))
            && words.any(|word| !word_offsets(&file.shipped_strings, word).is_empty())
    };
    let naming: BTreeSet<&str> = tree
        .iter()
        .filter(has_one)
        .map(|file| file.path.as_str())
        .collect();
    let is_of = |path: &str, listed: &str| {
        path == listed || listed.ends_with('/') && path.starts_with(listed)
    };
    for path in &naming {
        if !section.listed.iter().any(|listed| is_of(path, listed)) {
            found.push(format!(
                "{name}: {path} has one of the words and is not listed"
            ));
        }
    }
    for listed in &section.listed {
        if !naming.iter().any(|path| is_of(path, listed)) {
            found.push(format!("{name}: {listed} has none of the words"));
        }
    }
    let folders = section
        .listed
        .iter()
        .filter(|listed| listed.ends_with('/'))
        .count();
    let files = section.listed.len() - folders;
    if files != section.files || folders != usize::from(section.has_folder) {
        found.push(format!("{name}: {folders} folders and {files} files are listed, the sentence says another number"));
    }
    found
}
