//! What Cargo cannot enforce, over the source tree as text: layers, names, sizes, manners. A test per rule.
//!
//! Every rule is a function from a text to findings (`path:line: what`); the tests here apply it to the tree,
//! those in `samples.rs` to small wrong texts, so that no rule is empty. A new module under `src/` or
//! `filters/` needs a layer in `layers.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub,
    reason = "tests"
)]

mod layers;
mod lists;
mod samples;
mod shape;
mod source;

use source::{Source, files, read, sources};

const EVERYWHERE: &[&str] = &["benches", "filters", "src", "tests"];

/// Fails with every finding of a rule over the files of these folders.
fn hold(folders: &[&str], rule: impl Fn(&Source) -> Vec<String>) {
    none(sources(folders).iter().flat_map(rule).collect());
}

fn none(findings: Vec<String>) {
    assert!(
        findings.is_empty(),
        "{} found:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

#[test]
fn answers_do_not_know_pingora() {
    hold(&["src"], layers::pingora_in_answers);
}

#[test]
fn the_pure_crate_is_pure() {
    hold(&["filters"], layers::impurities);
}

#[test]
fn a_provider_is_named_only_at_home() {
    hold(&["filters", "src"], layers::provider_names);
}

#[test]
fn every_route_has_a_test_module() {
    let routes = read("src/app/routes.rs");
    let names = lists::route_names(&routes);
    assert!(
        !names.is_empty(),
        "src/app/routes.rs has no rows `Row {{ name: \"…\", … }}`"
    );
    none(lists::untested_routes(
        &names,
        &read("tests/gateway/main.rs"),
        &files("tests/gateway"),
    ));
}

#[test]
fn files_are_short() {
    hold(EVERYWHERE, |file| {
        shape::long_files(file, shape::LONG_FILES)
    });
}

#[test]
fn waivers_of_length_are_still_needed() {
    let is_long = |path: &str| {
        files(path.rsplit_once('/').unwrap().0).contains(&path.to_owned())
            && !shape::long_files(&Source::new(path, &read(path)), &[]).is_empty()
    };
    let idle = shape::LONG_FILES.iter().filter(|(path, _)| !is_long(path));
    none(
        idle.map(|(path, _)| format!("{path}:1: no longer needs its waiver"))
            .collect(),
    );
}

#[test]
fn functions_are_short() {
    hold(EVERYWHERE, shape::long_functions);
}

#[test]
fn nothing_panics_outside_tests() {
    hold(&["filters", "src"], shape::panicking_calls);
}

#[test]
fn names_say_something() {
    none(
        EVERYWHERE
            .iter()
            .flat_map(|folder| files(folder))
            .flat_map(|path| shape::empty_names(&path))
            .collect(),
    );
}

#[test]
fn every_waiver_says_why() {
    hold(EVERYWHERE, shape::waivers_without_reason);
}

#[test]
fn every_file_says_what_it_is() {
    hold(&["filters", "src"], shape::missing_module_docs);
}

#[test]
fn nothing_is_left_for_later() {
    hold(EVERYWHERE, shape::unfinished_notes);
}

#[test]
fn ring_is_the_only_crypto() {
    none(lists::crypto(&read("Cargo.lock")));
}
