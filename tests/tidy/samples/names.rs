//! Wrong names.

use super::lines;
use crate::findings::Finding;
use crate::names::*;
use crate::source::Source;
use crate::tokens::{definitions, tokens};

fn keys(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|it| it.key.as_str()).collect()
}

#[test]
fn definitions_are_told_from_other_uses_of_their_words() {
    let text = "pub struct A<const N: usize>(fn(u8)); impl A { const B: &'static str = x; pub const fn c() {} }\n\
                pub(crate) type D = u8; pub(super) enum E {} mod f; let union = 1;";
    let found = definitions(&tokens(text));
    let named: Vec<(&str, &str)> = found
        .iter()
        .map(|it| (it.kind.as_str(), it.name.as_str()))
        .collect();
    let all = [
        ("struct", "A"),
        ("const", "B"),
        ("fn", "c"),
        ("type", "D"),
        ("enum", "E"),
        ("mod", "f"),
    ];
    assert_eq!(named, all);
    let public = found
        .iter()
        .filter(|it| it.is_public_type())
        .map(|it| it.name.as_str());
    assert_eq!(public.collect::<Vec<_>>(), ["A", "D"]);
}

#[test]
fn a_public_type_name_in_two_files_is_found() {
    let tree = [
        Source::new("src/a.rs", "pub struct Plan; struct Inner;"),
        Source::new("src/b.rs", "pub(crate) enum Plan {}\npub struct Inner;"),
        Source::new("src/c.rs", "#[cfg(test)]\nmod tests { pub struct Plan; }"),
        Source::new("filters/d.rs", "pub struct Plan;"),
    ];
    let found = repeated_types(&tree, "src/");
    assert_eq!(keys(&found), ["Plan", "Plan"]);
    assert_eq!(
        found[0].text,
        "src/a.rs:1: `Plan` is public here and in src/b.rs"
    );
}

#[test]
fn config_as_written_and_as_used_share_their_names() {
    let file = |path| Source::new(path, "pub struct Graph;");
    let tree = [
        file("src/config/file/graph.rs"),
        file("src/config/checked.rs"),
    ];
    assert!(repeated_types(&tree, "src/").is_empty());
    let tree = [file("src/config/file/graph.rs"), file("src/graph/mod.rs")];
    assert_eq!(repeated_types(&tree, "src/").len(), 2);
    let tree = [file("src/config/checked.rs"), file("src/config/rules.rs")];
    assert_eq!(repeated_types(&tree, "src/").len(), 2);
}

#[test]
fn definitions_under_retired_names_are_found() {
    let text = "struct House; mod held; const PATIENCE: u8 = 1; fn is_ours() {} struct Held { house: House }";
    let is = |path: &str| {
        retired_names(&Source::new(path, text))
            .into_iter()
            .map(|it| it.key)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        is("src/proxy/x.rs"),
        ["House", "held", "PATIENCE", "is_ours", "Held"]
    );
    assert_eq!(
        is("src/store/x.rs"),
        ["House", "held", "PATIENCE", "is_ours"]
    );
    assert!(is("src/store/tests.rs").is_empty());
}

#[test]
fn provider_names_outside_their_folder_are_found() {
    let text = "// Anthropic says\nlet a = \"anthropic\";\nstruct GoogleWire;\nstruct OpenAi;";
    let is = |path: &str| {
        let mut found = lines(&provider_names(&Source::new(path, text)));
        found.sort_unstable();
        found
    };
    assert_eq!(is("filters/models/request.rs"), [2, 3, 4]);
    assert_eq!(is("filters/models/wires/google/mod.rs"), [2, 4]);
    assert_eq!(is("filters/models/wires/openai/mod.rs"), [2, 3]);
    assert_eq!(is("filters/models/wires/openai.rs"), [2, 3]);
    assert!(is("filters/models/wires/mod.rs").is_empty());
    assert!(is("src/config/checked.rs").is_empty());
    assert!(is("filters/models/tests.rs").is_empty());
}

#[test]
fn provider_names_in_tests_inside_a_file_are_accepted() {
    let text = "#[cfg(test)]\nmod tests { fn google() { f(\"gemini\") } }\nlet a = \"gemini\";";
    assert_eq!(
        lines(&provider_names(&Source::new("filters/models/x.rs", text))),
        [3]
    );
}

#[test]
fn members_of_chat_completions_outside_their_homes_are_found() {
    let text = "// `tool_calls` says\nlet tool_calls = 1;\nlet a = \"no `tool_calls` here\";\nlet b = \"tool_calls_of\";\nlet c = \"finish_reason\";";
    let is = |path: &str| lines(&chat_members(&Source::new(path, text)));
    assert_eq!(is("filters/models/routing/capable.rs"), [5, 3]);
    assert_eq!(is("filters/mcp/tools/text.rs"), [3]);
    assert!(is("filters/models/wires/openai/reply.rs").is_empty());
    assert!(is("filters/models/routing/tests.rs").is_empty());
}
