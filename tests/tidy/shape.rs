//! Sizes, names and manners of files.

use std::ops::Range;

use crate::findings::Finding;
use crate::source::{Source, item_end, line_of, word_offsets};
use crate::tokens::tokens;

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 60;
/// Functions of tests, which are tables of cases.
const CASES_LINES: usize = 120;

/// Files of more than 600 lines. A file ends where its thought ends; this is the upper limit.
pub fn long_files(file: &Source) -> Vec<String> {
    let lines = file.text.lines().count();
    let message = format!("{lines} lines, at most {FILE_LINES}: take it apart");
    (lines > FILE_LINES)
        .then(|| file.finding(0, &message))
        .into_iter()
        .collect()
}

/// Functions longer than 60 lines, signature included; of tests, longer than 120.
pub fn long_functions(file: &Source) -> Vec<Finding> {
    let most = if file.shipped.is_empty() {
        CASES_LINES
    } else {
        FUNCTION_LINES
    };
    let mut found = Vec::new();
    for at in word_offsets(&file.code, "fn") {
        let is_named = file.code[at..].starts_with("fn ");
        let end = item_end(&file.code, at);
        let lines = 1 + line_of(&file.text, end) - line_of(&file.text, at);
        if is_named && lines > most {
            let name = tokens(&file.code[at..end])
                .get(1)
                .map_or("", |token| token.1);
            let message = format!("a function of {lines} lines, at most {most}");
            found.push(Finding::new(file, at, name, message));
        }
    }
    found
}

/// What ends a process or leaves work undone.
const FORBIDDEN: &[&str] = &[
    ".unwrap()",
    ".unwrap_err()",
    "panic!(",
    "todo!(",
    "unimplemented!(",
    "dbg!(",
    "unreachable!(",
];

/// Panicking calls outside tests, where no `#[expect(clippy::…, reason = …)]` on the statement allows them.
/// `.expect(` counts only with a message: parsers may have a method of that name.
pub fn panicking_calls(file: &Source) -> Vec<String> {
    let code = &file.shipped;
    let mut found = Vec::new();
    for call in FORBIDDEN {
        found.extend(code.match_indices(call).map(|(at, _)| (at, *call)));
    }
    for (at, call) in code.match_indices(".expect(") {
        if code[at + call.len()..].trim_start().starts_with(['"', '&']) {
            found.push((at, call));
        }
    }
    let waived = waived_ranges(code);
    found.retain(|(at, _)| !waived.iter().any(|range| range.contains(at)));
    found
        .into_iter()
        .map(|(at, call)| file.finding(at, &format!("`{call}` outside tests")))
        .collect()
}

/// The items and statements under a waiver of a lint against panics.
fn waived_ranges(code: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for lint in [
        "clippy::unwrap_used",
        "clippy::expect_used",
        "clippy::panic",
    ] {
        for (at, _) in code.match_indices(&format!("#[expect({lint}")) {
            let attribute_end = code[at..].find(")]").map_or(code.len(), |end| at + end + 2);
            ranges.push(at..item_end(code, attribute_end));
        }
    }
    ranges
}

const EMPTY_NAMES: &[&str] = &[
    "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils",
];

/// Files and folders whose name says nothing.
pub fn empty_names(path: &str) -> Vec<String> {
    let mut parts = path
        .split('/')
        .flat_map(|part| part.trim_end_matches(".rs").split('_'));
    let found = parts.find(|part| EMPTY_NAMES.contains(part));
    found
        .map(|name| format!("{path}:1: `{name}` names nothing: say what it is"))
        .into_iter()
        .collect()
}

/// Waivers of lints that do not say why.
pub fn waivers_without_reason(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for opening in ["#[allow(", "#![allow(", "#[expect(", "#![expect("] {
        for (at, _) in file.code.match_indices(opening) {
            let end = file.code[at..]
                .find(']')
                .map_or(file.code.len(), |end| at + end);
            if !file.code[at..end].contains("reason =") {
                found.push(file.finding(at, "a waiver without `reason = \"…\"`"));
            }
        }
    }
    found
}

/// Files that do not begin with what they are, test files of a module excepted.
pub fn missing_module_docs(file: &Source) -> Vec<String> {
    let is_bare = !file.shipped.is_empty() && !file.text.starts_with("//!");
    is_bare
        .then(|| file.finding(0, "begin with `//!` and what this file is"))
        .into_iter()
        .collect()
}

/// Public items without documentation. Fields and variants may go without, because their names say it.
pub fn missing_item_docs(file: &Source) -> Vec<String> {
    const ITEMS: &[&str] = &[
        "async", "const", "enum", "fn", "static", "struct", "trait", "type",
    ];
    let lines: Vec<&str> = file.text.lines().collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let (mut found, mut offset) = (Vec::new(), 0);
    for (number, code) in file.shipped.lines().enumerate() {
        let item = code.trim_start().strip_prefix("pub ");
        let word = item.and_then(|item| item.split_whitespace().next());
        if word.is_some_and(|word| ITEMS.contains(&word)) && !code.contains(" $") {
            // Attributes may stand between, on several lines.
            let mut above = lines[..number].iter().rev().skip_while(|line| {
                let is_attribute = line.trim_start().starts_with("#[");
                is_attribute || line.trim_start() == ")]" || depth(line) > depth(code)
            });
            if !above
                .next()
                .is_some_and(|line| line.trim_start().starts_with("///"))
            {
                found.push(file.finding(offset, "a public item without `///`"));
            }
        }
        offset += lines[number].len() + 1;
    }
    found
}

/// Notes of work not done.
pub fn unfinished_notes(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for note in [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ] {
        for at in word_offsets(&file.text, note) {
            found.push(file.finding(at, &format!("`{note}`: do it or write an issue")));
        }
    }
    found
}
