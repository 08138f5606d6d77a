//! The lines of the documentation run: each block of commands of each page, in order, against a gateway of the shipped
//! configuration.
//!
//! CONTRIBUTING.md, "Commands in pages", says how a page marks its blocks. Pages are read when the test runs, so that a
//! changed page needs no build.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub,
    reason = "tests"
)]

#[path = "../support/loopback.rs"]
mod loopback;
mod page;
mod scratch;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use page::{Block, Page, Run};

/// The most blocks of all pages that need what a test does not have. A block that can run must not be skipped.
const MAX_SKIPPED: usize = 24;
/// The fewest blocks that run, so that a change of the marks cannot empty the test.
const MIN_RUN: usize = 20;
/// Pages wait for their gateway most of the time.
const WORKERS: usize = 3;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All pages with commands for people who use or run the product.
fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> = ["README.md", "examples/README.md"]
        .map(PathBuf::from)
        .into();
    collect(Path::new("docs"), &mut paths);
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        Page::parse(&path.display().to_string(), &text)
            .unwrap_or_else(|problem| panic!("{problem}"))
    };
    paths.iter().map(read).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|end| end == "md") {
            paths.push(path);
        }
    }
}

#[test]
fn each_line_of_each_page_runs() {
    let pages = pages();
    let of_commands = |page: &&Page| page.blocks.iter().any(Block::runs);
    let pages: Vec<&Page> = pages.iter().filter(of_commands).collect();
    let run: usize = pages
        .iter()
        .map(|page| page.blocks.iter().filter(|block| block.runs()).count())
        .sum();
    assert!(run >= MIN_RUN, "only {run} blocks run");
    let (left, failures) = (Mutex::new(pages), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(page) = next() {
                    if let Err(failure) = scratch::run(page) {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn few_blocks_are_skipped_and_each_says_why() {
    let pages = pages();
    let mut skipped = Vec::new();
    for page in &pages {
        for block in &page.blocks {
            if let Run::Skip(reason) = &block.run {
                assert!(
                    reason.split_whitespace().count() >= 2,
                    "{}:{}: `skip: {reason}` says too little",
                    page.path,
                    block.line
                );
                skipped.push(format!("{}:{}: {reason}", page.path, block.line));
            }
        }
    }
    let count = skipped.len();
    assert!(
        count <= MAX_SKIPPED,
        "{count} blocks are skipped, at most {MAX_SKIPPED} may be:\n{}",
        skipped.join("\n")
    );
}

#[test]
fn commands_stand_in_blocks_that_run() {
    let mut found = Vec::new();
    for page in &pages() {
        for block in page.blocks.iter().filter(|block| !block.is_shell()) {
            for line in block.text.lines().filter(|line| page::is_command(line)) {
                found.push(format!(
                    "{}:{}: `{line}` stands in a block `{}`; mark it as `sh`",
                    page.path, block.line, block.language
                ));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
