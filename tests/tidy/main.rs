//! Rules that Cargo cannot enforce, checked on the source tree as text: layers, circles, names, sizes. A test per rule.
//!
//! Every rule is a function from texts to findings (`path:line: message`). The tests here apply the rules to the
//! tree; those in `samples/` apply them to small wrong texts, so that no rule is empty. A new module under `src/` or `filters/` needs a layer in `layers.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub,
    reason = "tests"
)]

mod adding;
mod circles;
mod contract;
mod findings;
mod graph;
mod layers;
mod lists;
mod names;
mod report;
mod retired;
mod rules;
mod samples;
mod shape;
mod source;
mod tokens;

use std::sync::LazyLock;

use findings::Finding;
use source::{Source, files, read, sources};

const EVERYWHERE: &[&str] = &["benches", "filters", "src", "tests"];

/// Every Rust file, read once for all rules.
static TREE: LazyLock<Vec<Source>> = LazyLock::new(|| sources(EVERYWHERE));

/// Fails with every finding of a rule over the files of these folders.
fn hold(folders: &[&str], rule: impl Fn(&Source) -> Vec<String>) {
    let is_inside = |file: &&Source| {
        folders
            .iter()
            .any(|folder| file.is_under(&format!("{folder}/")))
    };
    none(TREE.iter().filter(is_inside).flat_map(rule).collect());
}

fn none(findings: Vec<String>) {
    assert!(
        findings.is_empty(),
        "{} found:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// Fails with every finding of a rule over the whole tree.
fn hold_for_all(findings: Vec<Finding>) {
    none(findings.into_iter().map(|finding| finding.text).collect());
}

#[test]
fn imports_only_go_downwards() {
    hold_for_all(rules::layers(&TREE));
}

#[test]
fn every_module_has_a_layer() {
    hold(&["filters", "src"], layers::unplaced);
}

#[test]
fn pingora_is_known_to_the_core_alone() {
    hold_for_all(rules::pingora(&TREE));
}

#[test]
fn no_circle_of_files_spans_folders_or_is_in_one_that_has_none() {
    hold_for_all(rules::circles(&TREE));
}

#[test]
fn a_public_type_name_occurs_once() {
    hold_for_all(rules::repeated(&TREE));
}

#[test]
fn retired_names_do_not_return() {
    hold_for_all(rules::retired(&TREE));
}

#[test]
fn the_pure_crate_is_pure() {
    hold(&["filters"], layers::impurities);
}

#[test]
fn a_provider_is_named_only_at_home() {
    hold(&["filters", "src"], names::provider_names);
}

#[test]
fn members_of_chat_completions_are_named_only_at_home() {
    hold(&["filters", "src"], names::chat_members);
}

#[test]
fn the_page_of_what_to_touch_lists_the_files_of_its_examples() {
    let exists = |path: &str| {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(path)
            .exists()
    };
    let sections = adding::sections(&read("docs/adding.md"));
    assert_eq!(sections.len(), 5);
    let findings = |section| adding::findings(section, &TREE, exists);
    none(sections.iter().flat_map(findings).collect());
}

#[test]
fn every_route_has_a_test_module() {
    let tables = TREE
        .iter()
        .filter(|file| file.is_under("src/") && file.path.ends_with("/routes.rs"));
    let rows: Vec<[String; 2]> = tables.flat_map(lists::route_names).collect();
    assert!(
        !rows.is_empty(),
        "no routes.rs under src has rows `Route {{ name: \"…\", … }}`"
    );
    none(lists::untested_routes(&rows, &sources(&["tests/gateway"])));
}

#[test]
fn files_are_short() {
    hold(EVERYWHERE, shape::long_files);
}

fn contract_rows() -> Vec<contract::Row> {
    let rows = |page: &&str| contract::rows(page, &read(&format!("docs/{page}.md")));
    contract::PAGES.iter().flat_map(rows).collect()
}

#[test]
fn every_row_of_the_contracts_has_a_test() {
    let held = contract::held(&TREE);
    none(contract::findings(
        &contract_rows(),
        &held,
        &contract::WITHOUT_TEST,
    ));
}

#[test]
fn the_page_of_the_contract_is_as_its_tests_say() {
    let held = contract::held(&TREE);
    let page = contract::page(&contract_rows(), &held, &contract::WITHOUT_TEST);
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/contract.md");
        std::fs::write(path, &page).unwrap();
    }
    assert!(
        read("docs/contract.md") == page,
        "docs/contract.md is of other tests: WRITE_GOLDEN=1 cargo test --test tidy the_page_of_the_contract"
    );
}

#[test]
fn functions_are_short() {
    hold_for_all(rules::long_functions(&TREE));
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
fn every_public_item_is_documented() {
    hold(&["filters", "src"], shape::missing_item_docs);
}

#[test]
fn nothing_is_left_for_later() {
    hold(EVERYWHERE, shape::unfinished_notes);
}

#[test]
fn ring_is_the_only_crypto() {
    none(lists::crypto(&read("Cargo.lock")));
}
