//! Wrong shapes, manners and lists.

use super::lines;
use crate::layers::impurities;
use crate::lists::*;
use crate::shape::*;
use crate::source::Source;

#[test]
fn long_files_and_functions_are_found() {
    let file = |path: &str, lines: usize| long_files(&Source::new(path, &"\n".repeat(lines)));
    for path in ["src/x.rs", "src/x/tests.rs", "tests/x.rs"] {
        assert!(file(path, 600).is_empty());
        assert_eq!(file(path, 601).len(), 1);
    }
    let function = |path: &str, lines: usize| {
        let body = "\n".repeat(lines - 1);
        let text = format!("type A = fn();\nfn f(a: [u8; 4]) {{{body}}}\nfn g();");
        let findings = long_functions(&Source::new(path, &text));
        findings
            .into_iter()
            .map(|it| (it.key, it.text))
            .collect::<Vec<_>>()
    };
    assert!(function("src/x.rs", 60).is_empty());
    let text = "src/x.rs:2: a function of 61 lines, at most 60".to_owned();
    assert_eq!(function("src/x.rs", 61), [("f".to_owned(), text)]);
    assert!(function("tests/x.rs", 120).is_empty());
    assert_eq!(function("tests/x.rs", 121).len(), 1);
}

#[test]
fn panicking_calls_are_found() {
    let text = "a.unwrap();\nb.expect(\"c\");\nd.expect(b'{');\npanic!(\"e\");\n// f.unwrap()\n\".unwrap()\";";
    let mut found = lines(&panicking_calls(&Source::new("src/x.rs", text)));
    found.sort_unstable();
    assert_eq!(found, [1, 2, 4]);
}

#[test]
fn a_waived_call_is_accepted_and_the_next_one_found() {
    let text =
        "fn f() {\n#[expect(clippy::expect_used, reason = \"r\")]\na.expect(\"b\")\n}\nc.unwrap();";
    assert_eq!(lines(&panicking_calls(&Source::new("src/x.rs", text))), [5]);
}

#[test]
fn items_without_documentation_are_found() {
    let text = "/// A.\n#[derive(\n    B,\n)]\npub struct A {\n    pub b: u8,\n}\npub fn c() {}\n";
    let text = format!(
        "{text}impl A {{\n    /// D.\n    pub fn d() {{}}\n    pub const fn e() {{}}\n}}\n"
    );
    let found = lines(&missing_item_docs(&Source::new("src/x.rs", &text)));
    assert_eq!(found, [8, 12]);
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
fn clocks_files_and_async_are_impure() {
    let text = "async fn a() {}\nlet t = Instant::now();\nuse std::fs;\nlet random = 1;\n// tokio";
    let mut found = lines(&impurities(&Source::new("filters/money/x.rs", text)));
    found.sort_unstable();
    assert_eq!(found, [1, 2, 3]);
}

#[test]
fn a_second_crypto_stack_is_found() {
    let lock = "[[package]]\nname = \"ring\"\n\n[[package]]\nname = \"rsa\"\n";
    assert_eq!(crypto(lock), ["Cargo.lock: `rsa` must not be in the tree"]);
    assert_eq!(crypto("").len(), 1);
    assert_eq!(crypto("name = \"ring\"\nname = \"ring\"\n").len(), 1);
}

#[test]
fn the_rows_of_a_table_of_routes_are_found() {
    let table = |text: &str| route_names(&Source::new("src/mcp/oauth/routes.rs", text));
    let rows = "pub struct Row { pub name: &'static str }\nRow { name: \"a\", x: 1 }, Row {\n    name: \"b\",\n}";
    assert_eq!(table(rows), [["mcp", "a"], ["mcp", "b"]]);
    assert_eq!(table(&rows.replace("Row", "Route")), table(rows));
    assert!(table("#[cfg(test)]\nmod tests { const A: Row = Row { name: \"a\" }; }").is_empty());
}

#[test]
fn routes_without_tests_are_found() {
    let is_tested = |[product, name]: [&str; 2], files: &[(&str, &str)]| {
        let file =
            |(path, text): &(&str, &str)| Source::new(&format!("tests/gateway/{path}"), text);
        let files: Vec<Source> = files.iter().map(file).collect();
        untested_routes(&[[product, name].map(str::to_owned)], &files).is_empty()
    };
    let tree = [
        ("main.rs", "mod mcp;"),
        ("mcp/mod.rs", "mod oauth;"),
        ("mcp/oauth/mod.rs", "pub mod a;"),
        ("mcp/oauth/a.rs", ""),
    ];
    for (name, is) in [
        ("a", true),
        ("mcp_a", true),
        ("mcp", true),
        ("b", false),
        ("mcp_b", false),
    ] {
        assert_eq!(is_tested(["mcp", name], &tree), is, "{name}");
    }
    assert!(!is_tested(["models", "a"], &tree));
    assert!(!is_tested(["mcp", "a"], &tree[..3]));
    for at in 0..3 {
        let mut tree = tree;
        tree[at].1 = "// mod mcp; mod oauth; mod a;";
        assert!(!is_tested(["mcp", "a"], &tree));
    }
    let other = [tree[0], ("mcp/mod.rs", "mod a;"), ("mcp/a/mod.rs", "")];
    assert!(is_tested(["mcp", "a"], &other));
}
