//! The file of accounts, and its page.

use std::collections::BTreeMap;

use filters::manifest::Manifest;
use serde_json::Value as Json;

use super::super::accounts_file::read_accounts;
use super::super::schema::make_schema;

const PAGE: &str = include_str!("../../../docs/apply.md");

/// Collects the names of all members of a schema.
fn names(schema: &Json, found: &mut Vec<String>) {
    let known = schema.get("properties").and_then(Json::as_object);
    for (name, inner) in known.into_iter().flatten() {
        found.push(name.clone());
        names(inner, found);
    }
    if let Some(items) = schema.get("items") {
        names(items, found);
    }
}

#[test]
fn the_page_names_each_field_and_its_example_is_a_file() {
    let mut found = Vec::new();
    names(&make_schema::<Manifest>(), &mut found);
    assert!(found.len() > 35, "{found:?}");
    let example = PAGE.split("```toml file=example.toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    for name in &found {
        assert!(
            example.contains(name.as_str()),
            "docs/apply.md lacks {name}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let prompt = "[[messages]]\nrole = \"user\"\ncontent = \"Hi\"\n";
    std::fs::write(folder.path().join("support-1.toml"), prompt).unwrap();
    let env = BTreeMap::from([("ACME_OPENAI_KEY".to_owned(), "sk-of-acme".to_owned())]);
    let read = read_accounts("accounts.toml", example, folder.path(), &env);
    let read = read.unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(
        read.manifest.organizations[0].keys[0]
            .terms
            .limit
            .as_deref(),
        Some("50")
    );
    assert_eq!(read.secrets.len(), 1);
    // All that is commented out is good, too, but for the file of a secret that is not there.
    let all = example.replace("# secret = { file = \"ci.key\" }", "");
    let all = all.replace("  # regions, id; status", "  # status");
    let uncommented: Vec<String> = all
        .lines()
        .map(|line| match line.trim_start().strip_prefix("# ") {
            Some(rest) => rest.to_owned(),
            None => line.to_owned(),
        })
        .collect();
    let read = read_accounts(
        "accounts.toml",
        &uncommented.join("\n"),
        folder.path(),
        &env,
    );
    assert!(read.is_ok(), "{:?}", read.err());
}
