//! The rules on small wrong texts: each must find what it is for, and only that.

use crate::layers::*;
use crate::lists::*;
use crate::shape::*;
use crate::source::Source;

fn lines(findings: &[String]) -> Vec<usize> {
    findings
        .iter()
        .map(|finding| finding.split(':').nth(1).unwrap().parse().unwrap())
        .collect()
}

#[test]
fn comments_and_literals_are_no_code() {
    let text = "a /* b /* c */ d */ e // f\n\"g\\\" h\" r#\"i\" j\"# 'k' '\\'' b\"l\" <'m> n";
    let code = Source::new("src/x.rs", text).code;
    let words: Vec<&str> = code
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .collect();
    assert_eq!(words, ["a", "e", "r", "b", "m", "n"]);
    assert_eq!((code.len(), code.lines().count()), (text.len(), 2));
}

#[test]
fn raw_strings_end_at_their_own_quotes() {
    let text = "br\"\\\"; a; var\"b\"; r##\"c\"# d\"##; e";
    let code = Source::new("src/x.rs", text).code;
    assert_eq!(code.replace(' ', ""), "br\";a;var\"\";r#;e");
}

#[test]
fn characters_of_several_bytes_keep_offsets() {
    let file = Source::new(
        "src/store.rs",
        "// é\nconst A: &str = \"→\"; const B: char = 'é';\nuse crate::cli;",
    );
    assert_eq!(lines(&src_arrows(&file)), [3]);
}

#[test]
fn arrows_against_the_layers_are_found() {
    let uses = "use crate::fault::Fault;\nuse crate::chat::X;\nfn f() { crate::routing::y() }";
    let findings = filters_arrows(&Source::new("filters/auth/key.rs", uses));
    assert_eq!(
        findings[0],
        "filters/auth/key.rs:2: `auth` must not use `chat`"
    );
    assert_eq!(lines(&findings), [2, 3]);
    assert!(filters_arrows(&Source::new("filters/lib.rs", uses)).is_empty());
}

#[test]
fn grouped_imports_are_taken_apart() {
    let file = Source::new(
        "filters/routing/plan.rs",
        "use crate::{fault::{Fault, Kind}, providers::{X}, ids};",
    );
    let findings = filters_arrows(&file);
    assert_eq!(
        findings,
        ["filters/routing/plan.rs:1: `routing` must not use `providers`"]
    );
}

#[test]
fn tests_may_use_what_they_like() {
    let text =
        "#[cfg(test)]\nmod tests {\n use crate::chat; fn f() { x.unwrap() }\n}\nuse crate::flags;";
    let file = Source::new("filters/auth/key.rs", text);
    assert_eq!(lines(&filters_arrows(&file)), [5]);
    assert!(panicking_calls(&file).is_empty());
    assert!(
        filters_arrows(&Source::new(
            "filters/auth/key_tests.rs",
            "use crate::chat;"
        ))
        .is_empty()
    );
}

#[test]
fn a_test_module_in_a_file_of_its_own_hides_nothing_after_it() {
    let file = Source::new(
        "filters/auth/mod.rs",
        "#[cfg(test)]\nmod tests;\nuse crate::chat;",
    );
    assert_eq!(lines(&filters_arrows(&file)), [3]);
}

#[test]
fn the_halves_of_the_journey_and_organs_are_kept_apart() {
    let both = "use crate::{attempt, request};";
    assert_eq!(
        src_arrows(&Source::new("src/request/run.rs", both)).len(),
        1
    );
    assert_eq!(
        src_arrows(&Source::new("src/attempt/peer.rs", both)).len(),
        1
    );
    assert_eq!(src_arrows(&Source::new("src/reply.rs", both)).len(), 2);
    assert_eq!(src_arrows(&Source::new("src/gateway.rs", both)).len(), 0);
    let organs = "use crate::store; use filters::chat;";
    assert_eq!(
        src_arrows(&Source::new("src/endpoints/models.rs", organs)).len(),
        0
    );
}

#[test]
fn a_module_without_a_layer_is_found() {
    assert_eq!(src_arrows(&Source::new("src/novel.rs", "//! x")).len(), 1);
    assert_eq!(
        filters_arrows(&Source::new("filters/novel/mod.rs", "//! x")).len(),
        1
    );
}

#[test]
fn pingora_in_an_answer_is_found() {
    let text = "use pingora::Result;";
    assert_eq!(
        lines(&pingora_in_answers(&Source::new(
            "src/endpoints/models.rs",
            text
        ))),
        [1]
    );
    assert!(pingora_in_answers(&Source::new("src/request/run.rs", text)).is_empty());
}

#[test]
fn clocks_files_and_async_are_impure() {
    let text = "async fn a() {}\nlet t = Instant::now();\nuse std::fs;\nlet random = 1;\n// tokio";
    let mut found = lines(&impurities(&Source::new("filters/money/x.rs", text)));
    found.sort_unstable();
    assert_eq!(found, [1, 2, 3]);
}

#[test]
fn provider_names_outside_their_folder_are_found() {
    let text = "// Anthropic says\nlet a = \"anthropic\";\nstruct GoogleWire;";
    let is = |path: &str| lines(&provider_names(&Source::new(path, text)));
    assert_eq!(is("filters/chat/request.rs"), [2, 3]);
    assert_eq!(is("filters/models/wires/google/mod.rs"), [2]);
    assert_eq!(is("filters/models/wires/openai/mod.rs"), [2, 3]);
    assert!(is("filters/models/wires/mod.rs").is_empty());
    assert!(is("src/config/checked.rs").is_empty());
    assert!(is("filters/chat/tests.rs").is_empty());
}

#[test]
fn provider_names_in_tests_inside_a_file_are_let_be() {
    let text = "#[cfg(test)]\nmod tests { fn google() { f(\"gemini\") } }\nlet a = \"gemini\";";
    assert_eq!(
        lines(&provider_names(&Source::new("filters/chat/x.rs", text))),
        [3]
    );
}

#[test]
fn long_files_and_functions_are_found() {
    let file = |lines: usize| Source::new("src/x.rs", &"\n".repeat(lines));
    let tests = |lines: usize| Source::new("src/x/tests.rs", &"\n".repeat(lines));
    assert!(long_files(&tests(600), &[]).is_empty());
    assert_eq!(long_files(&tests(601), &[]).len(), 1);
    assert!(long_files(&file(400), &[]).is_empty());
    assert_eq!(long_files(&file(401), &[]).len(), 1);
    assert!(long_files(&file(600), &[("src/x.rs", "")]).is_empty());
    assert_eq!(long_files(&file(601), &[("src/x.rs", "")]).len(), 1);
    let function = |lines: usize| {
        let text = format!(
            "type A = fn();\nfn f(a: [u8; 4]) {{{}}}\nfn g();",
            "\n".repeat(lines - 1)
        );
        lines_of(&text)
    };
    assert!(function(60).is_empty());
    assert_eq!(function(61), [2]);
}

fn lines_of(text: &str) -> Vec<usize> {
    lines(&long_functions(&Source::new("src/x.rs", text)))
}

#[test]
fn panicking_calls_are_found() {
    let text = "a.unwrap();\nb.expect(\"c\");\nd.expect(b'{');\npanic!(\"e\");\n// f.unwrap()\n\".unwrap()\";";
    let mut found = lines(&panicking_calls(&Source::new("src/x.rs", text)));
    found.sort_unstable();
    assert_eq!(found, [1, 2, 4]);
}

#[test]
fn a_waived_call_is_let_be_and_the_next_one_found() {
    let text =
        "fn f() {\n#[expect(clippy::expect_used, reason = \"r\")]\na.expect(\"b\")\n}\nc.unwrap();";
    assert_eq!(lines(&panicking_calls(&Source::new("src/x.rs", text))), [5]);
}

#[test]
fn the_context_is_known_to_both_halves() {
    let uses = "use crate::request::context::Context;\nuse crate::request::run;";
    assert_eq!(
        lines(&src_arrows(&Source::new("src/attempt/peer.rs", uses))),
        [2]
    );
    let uses = "use crate::attempt::Call;\nuse crate::gateway;";
    let file = Source::new("src/request/held.rs", uses);
    assert_eq!(lines(&src_arrows(&file)), [2]);
    assert_eq!(
        lines(&src_arrows(&Source::new("src/request/context.rs", uses))),
        [2]
    );
}

#[test]
fn empty_names_are_found() {
    for path in [
        "src/utils.rs",
        "src/common/x.rs",
        "filters/key_helpers.rs",
        "src/manager/mod.rs",
    ] {
        assert_eq!(empty_names(path).len(), 1, "{path}");
    }
    assert!(empty_names("src/store/mod.rs").is_empty());
}

#[test]
fn waivers_without_reason_are_found() {
    let text =
        "#[allow(dead_code)]\n#[expect(\n a,\n reason = \"b\"\n)]\n#![expect(c)]\n// #[allow(x)]";
    assert_eq!(
        lines(&waivers_without_reason(&Source::new("src/x.rs", text))),
        [1, 6]
    );
}

#[test]
fn files_without_docs_and_notes_for_later_are_found() {
    let text = concat!("use a;\n// TO", "DO: later");
    let file = Source::new("src/x.rs", text);
    assert_eq!(lines(&missing_module_docs(&file)), [1]);
    assert_eq!(lines(&unfinished_notes(&file)), [2]);
}

#[test]
fn routes_without_tests_are_found() {
    let routes = "pub struct Row { pub name: &'static str }\nRow { name: \"a\", x: 1 }, Row {\n    name: \"b\",\n}";
    assert_eq!(route_names(routes), ["a", "b"]);
    let files = [
        "tests/gateway/a.rs".to_owned(),
        "tests/gateway/b.rs".to_owned(),
    ];
    assert_eq!(untested_routes(&["a", "b"], "mod a;", &files).len(), 1);
    assert_eq!(
        untested_routes(&["a", "b"], "mod a;\nmod b;", &files[..1]).len(),
        1
    );
    assert!(untested_routes(&["a", "b"], "mod a;\nmod b;", &files).is_empty());
}

#[test]
fn a_second_crypto_stack_is_found() {
    let lock = "[[package]]\nname = \"ring\"\n\n[[package]]\nname = \"rsa\"\n";
    assert_eq!(crypto(lock), ["Cargo.lock: `rsa` must not be in the tree"]);
    assert_eq!(crypto("").len(), 1);
    assert_eq!(crypto("name = \"ring\"\nname = \"ring\"\n").len(), 1);
}
