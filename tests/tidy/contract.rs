//! The rows of the contracts, and the test that holds each. `docs/contract.md` is made from the two.
//!
//! A row is a row of a table, a rule with a number, or a point of a list of the pages below. A test names the rows that it
//! holds in its comment, one in a line: `/// Contract: model-gateway 2.1 temperature`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::source::Source;

/// The pages that are contracts.
pub const PAGES: [&str; 3] = ["model-gateway", "decision-agent", "graph-limits"];
/// The most characters of a row that the page shows.
const SHOWN_CHARS: usize = 110;

/// Rows that no test of ours can hold, each with what takes its place.
pub const WITHOUT_TEST: [(&str, &str); 1] = [(
    "decision-agent 9 2",
    "nothing: it tells of the contract's source",
)];

/// A row of a contract.
#[derive(Debug, Eq, PartialEq)]
pub struct Row {
    /// The page, the section, and what is unique in it.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// The rows that tests say they hold, each with the tests.
pub type Held = BTreeMap<String, Vec<String>>;

/// Returns the rows of a page, in its order.
pub fn rows(page: &str, text: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let (mut section, mut group) = (String::new(), String::new());
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(number) = heading(line) {
            (section, group) = (number, String::new());
            continue;
        }
        if let Some(of) = line.strip_prefix("Rules of ") {
            group = code(of).unwrap_or_default().to_owned() + " ";
        }
        let is_head = lines
            .get(at + 1)
            .is_some_and(|next| next.starts_with("|---"));
        let name = if section.is_empty() || is_head || line.starts_with("|---") {
            None
        } else if let Some(cells) = line.strip_prefix("| ") {
            let first = cells.split(" |").next().unwrap_or_default();
            Some(code(first).unwrap_or(first).to_owned())
        } else if let Some((number, _)) = numbered(line) {
            Some(format!("{group}{number}"))
        } else {
            line.strip_prefix("- ").map(first_words)
        };
        let Some(name) = name else { continue };
        let name = format!("{page} {section} {name}");
        let copies = rows
            .iter()
            .filter(|row| row.name.trim_end_matches('+') == name)
            .count();
        rows.push(Row {
            name: name + &"+".repeat(copies),
            text: (*line).to_owned(),
        });
    }
    rows
}

/// Returns the number of a heading.
fn heading(line: &str) -> Option<String> {
    let title = line
        .strip_prefix("## ")
        .or_else(|| line.strip_prefix("### "))?;
    let number = title.split(' ').next()?.trim_end_matches('.');
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    Some(if is_number {
        number.to_owned()
    } else {
        String::new()
    })
}

/// Returns the text between the backticks with which a text begins.
fn code(text: &str) -> Option<&str> {
    text.strip_prefix('`')?.split('`').next()
}

/// Returns the number of a rule, and what it says.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let (number, text) = line.split_once(". ")?;
    Some((number.parse().ok()?, text))
}

/// Returns the words by which a point of a list is named: those in bold, or the first three.
fn first_words(point: &str) -> String {
    if let Some(bold) = point.strip_prefix("**") {
        let bold = bold.split("**").next().unwrap_or_default();
        return bold.trim_end_matches('.').to_owned();
    }
    let words: Vec<&str> = point.split(' ').take(3).collect();
    words.join(" ").replace(['`', ','], "")
}

/// Returns the rows that the comments of tests name.
pub fn held(files: &[Source]) -> Held {
    let mut held = Held::new();
    for file in files {
        let mut named: Vec<&str> = Vec::new();
        for line in file.text.lines().map(str::trim) {
            if let Some(row) = line.strip_prefix("/// Contract: ") {
                named.push(row.trim_end_matches('.'));
            } else if let Some(name) = function(line) {
                for row in named.drain(..) {
                    let tests = held.entry(row.to_owned()).or_default();
                    tests.push(format!("`{}: {name}`", file.path));
                }
            }
        }
    }
    held
}

/// Returns the name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Returns the page of all rows.
pub fn page(rows: &[Row], held: &Held, others: &[(&str, &str)]) -> String {
    let mut page = String::from(
        "# The contract, and what holds it\n\n\
         Each row of the three contracts ([model-gateway.md](model-gateway.md), [decision-agent.md](decision-agent.md),\n\
         [graph-limits.md](graph-limits.md)) with the tests that hold it. A test makes this page of those pages and of the\n\
         comments of tests: `WRITE_GOLDEN=1 cargo test --test tidy the_page_of_the_contract`.\n\n\
         | row | says | held by |\n|---|---|---|\n",
    );
    for row in rows {
        let other = others.iter().find(|(name, _)| *name == row.name);
        let tests = match (held.get(&row.name), other) {
            (Some(tests), _) => tests.join(", "),
            (None, Some((_, reason))) => (*reason).to_owned(),
            (None, None) => String::new(),
        };
        let name = row.name.replace('|', "\\|");
        _ = writeln!(page, "| {name} | {} | {tests} |", shown(&row.text));
    }
    page
}

/// Returns the beginning of what a row says, as a cell.
fn shown(text: &str) -> String {
    let inner = text
        .trim_start_matches(['|', '-', ' '])
        .trim_end_matches(['|', ' ']);
    let said = inner
        .replace("\\|", "/")
        .replace(" | ", " · ")
        .replace(['|', '`', '[', ']'], "");
    match said.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => said[..end].trim_end().to_owned() + "…",
        None => said,
    }
}

/// Returns what is wrong: rows that nothing holds, and names of no row.
pub fn findings(rows: &[Row], held: &Held, others: &[(&str, &str)]) -> Vec<String> {
    let is_row = |name: &str| rows.iter().any(|row| row.name == name);
    let is_other = |name: &str| others.iter().any(|(other, _)| *other == name);
    let mut findings = Vec::new();
    for row in rows {
        match (held.contains_key(&row.name), is_other(&row.name)) {
            (false, false) => findings.push(format!(
                "no test holds `{}`: {}",
                row.name,
                shown(&row.text)
            )),
            (true, true) => {
                findings.push(format!("`{}` has a test and a reason for none", row.name))
            }
            _ => {}
        }
    }
    let unknown = held.iter().filter(|(name, _)| !is_row(name));
    findings
        .extend(unknown.map(|(name, tests)| {
            format!("{}: no contract has the row `{name}`", tests.join(", "))
        }));
    let unknown = others.iter().filter(|(name, _)| !is_row(name));
    findings
        .extend(unknown.map(|(name, _)| format!("contract.rs: no contract has the row `{name}`")));
    findings
}
