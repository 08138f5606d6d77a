//! Wrong imports: the files they resolve to, the layers they break, the circles they close.

use crate::circles;
use crate::findings::Finding;
use crate::graph::Graph;
use crate::layers::*;
use crate::source::Source;

/// A tree of paths and texts.
fn tree(files: &[(&str, &str)]) -> Vec<Source> {
    files
        .iter()
        .map(|(path, text)| Source::new(path, text))
        .collect()
}

/// The arrows of `src` as `from to`, without `src/` and `.rs`.
fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let tree = tree(files);
    let short = |file: &Source| file.path.replace("src/", "").replace(".rs", "");
    let arrows = Graph::new("src", &tree).arrows();
    arrows
        .iter()
        .map(|it| format!("{} {}", short(it.from), short(it.to)))
        .collect()
}

fn texts(findings: Vec<Finding>) -> Vec<String> {
    findings.into_iter().map(|it| it.text).collect()
}

fn src(files: &[(&str, &str)]) -> Vec<String> {
    let tree = tree(files);
    texts(src_layers(&Graph::new("src", &tree).arrows()))
}

fn filters(files: &[(&str, &str)]) -> Vec<String> {
    let tree = tree(files);
    texts(filters_layers(&Graph::new("filters", &tree).arrows()))
}

#[test]
fn every_way_to_write_a_path_is_resolved() {
    let b = ("src/b.rs", "pub struct B; pub fn b() {}");
    for text in [
        "use crate::b::B;",
        "use crate::{b::{self, B as C}, c};",
        "use super::b; fn f() { b::b() }",
        "use super::b as d; fn f() { d::b() }",
        "fn f(b: crate::b::B) {}",
        "fn f(b: &super::b::B) -> Vec<u8> {}",
        "use crate::b::*;",
    ] {
        assert_eq!(arrows(&[b, ("src/a.rs", text)]), ["a b"], "{text}");
    }
    for text in [
        "use crate::b;",
        "use other::b::B;",
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "fn f() -> impl Fn() + use<'_> { \"crate::b::B\" } // crate::b::B",
    ] {
        assert!(arrows(&[b, ("src/a.rs", text)]).is_empty(), "{text}");
    }
}

#[test]
fn a_name_passed_on_leads_to_the_file_that_defines_it() {
    let inner = ("src/a/x.rs", "pub struct X;");
    let user = ("src/b.rs", "use crate::a::X;");
    for text in [
        "mod x; pub use x::X;",
        "mod x; pub use self::x::*;",
        "mod x; pub(crate) use crate::a::x::X;",
    ] {
        assert_eq!(
            arrows(&[inner, user, ("src/a/mod.rs", text)]),
            ["b a/x"],
            "{text}"
        );
    }
    // A module that passes a name on and also uses it depends on it.
    let text = "mod x; pub use x::X; fn f(x: X) {}";
    assert_eq!(
        arrows(&[inner, user, ("src/a/mod.rs", text)]),
        ["a/mod a/x", "b a/x"]
    );
    // A function of the name of its module.
    let function = [
        ("src/a/mod.rs", "pub mod boot; pub use boot::boot;"),
        ("src/a/boot.rs", "pub fn boot() {}"),
        ("src/b.rs", "use crate::a::boot; fn f() { boot() }"),
    ];
    assert_eq!(arrows(&function), ["b a/boot"]);
}

#[test]
fn imports_against_the_layers_of_src_are_found() {
    let found = src(&[
        ("src/store/mod.rs", "pub struct Store;"),
        ("src/models/mod.rs", "pub struct Models;"),
        (
            "src/proxy/mod.rs",
            "use crate::config::Config;\nuse crate::models::Models;\nuse crate::store::Store;",
        ),
        ("src/config/mod.rs", "pub struct Config;"),
        (
            "src/graph/mod.rs",
            "use crate::models::Models; use crate::store::Store;",
        ),
        (
            "src/sandbox/mod.rs",
            "use crate::config::Config; use crate::store::Store; pub struct Sandbox;",
        ),
        (
            "src/app/mod.rs",
            "use crate::{models::Models, sandbox::Sandbox}; pub struct Running;",
        ),
        ("src/cli/mod.rs", "use crate::app::Running;"),
    ]);
    assert_eq!(
        found,
        [
            "src/graph/mod.rs:1: `graph` must not import `models` (src/models/mod.rs)",
            "src/proxy/mod.rs:2: `proxy` must not import `models` (src/models/mod.rs)",
            "src/proxy/mod.rs:3: `proxy` must not import `store` (src/store/mod.rs)",
            "src/sandbox/mod.rs:1: `sandbox` must not import `store` (src/store/mod.rs)",
        ]
    );
}

#[test]
fn imports_against_the_layers_of_filters_are_found() {
    let found = filters(&[
        ("filters/fault.rs", "pub struct Fault;"),
        (
            "filters/money/mod.rs",
            "use crate::fault::Fault; use crate::auth::A; pub struct Usd;",
        ),
        ("filters/auth.rs", "use crate::money::Usd; pub struct A;"),
        ("filters/decisions.rs", "use crate::models::usage::Usage;"),
        ("filters/models/mod.rs", ""),
        ("filters/models/usage.rs", "pub struct Usage;"),
    ]);
    assert_eq!(
        found,
        [
            "filters/decisions.rs:1: `decisions` must not import `models` (filters/models/usage.rs)",
            "filters/money/mod.rs:1: `money` must not import `auth` (filters/auth.rs)",
        ]
    );
}

#[test]
fn imports_against_the_layers_of_models_are_found() {
    let wires = "filters/models/wires";
    let found = filters(&[
        ("filters/models/mod.rs", ""),
        ("filters/models/usage.rs", "use super::routing::R;"),
        (
            "filters/models/chat.rs",
            "use super::embeddings::E; pub struct C;",
        ),
        (
            "filters/models/embeddings.rs",
            "use super::usage::U; pub struct E;",
        ),
        (
            "filters/models/request.rs",
            "use super::{chat::C, embeddings::E}; pub struct Q;",
        ),
        (
            "filters/models/routing/mod.rs",
            "use crate::models::request::Q; pub struct R;",
        ),
        ("filters/models/fronts/mod.rs", ""),
        (
            "filters/models/fronts/a/mod.rs",
            "use crate::models::wires::openai::W; pub struct F;",
        ),
        ("filters/models/fronts/b/mod.rs", "use super::a::F;"),
        (
            &format!("{wires}/mod.rs"),
            "use self::openai::W; pub struct T;",
        ),
        (&format!("{wires}/failure.rs"), "pub struct L;"),
        (&format!("{wires}/openai/mod.rs"), "pub struct W;"),
        (
            &format!("{wires}/google/mod.rs"),
            "use super::{failure::L, openai::W, T};",
        ),
    ]);
    assert_eq!(
        found,
        [
            "filters/models/chat.rs:1: `chat` must not import `embeddings` (filters/models/embeddings.rs)",
            "filters/models/fronts/a/mod.rs:1: `fronts` must not import `wires` (filters/models/wires/openai/mod.rs)",
            "filters/models/fronts/b/mod.rs:1: `b` must not import `fronts::a`",
            "filters/models/usage.rs:1: `usage` must not import `routing` (filters/models/routing/mod.rs)",
            "filters/models/wires/google/mod.rs:1: `google` must not import `wires::openai`",
        ]
    );
}

#[test]
fn a_module_without_a_layer_is_found() {
    let is = |path: &str| unplaced(&Source::new(path, "//! x\nfn f() {}")).len();
    assert_eq!(is("src/novel.rs"), 1);
    assert_eq!(is("filters/novel/mod.rs"), 1);
    for path in [
        "src/lib.rs",
        "src/main.rs",
        "src/mcp/mod.rs",
        "filters/models/speech.rs",
    ] {
        assert_eq!(is(path), 0, "{path}");
    }
}

#[test]
fn pingora_outside_its_folders_is_found() {
    let text = "use pingora::services::background::BackgroundService;\nuse pingora::{Error, Result};\n\
                fn f(s: &mut pingora_proxy::Session) {}";
    let is = |path: &str| {
        let found = texts(pingora(&Source::new(path, text)));
        found
            .iter()
            .map(|it| it.split(':').nth(1).unwrap().parse().unwrap())
            .collect::<Vec<usize>>()
    };
    assert_eq!(is("src/decisions/endpoints/track.rs"), [2, 2, 3]);
    assert_eq!(is("src/models/exchange/failure.rs"), [3]);
    assert_eq!(is("src/graph/exchange.rs"), [3]);
    assert_eq!(is("src/sandbox/mod.rs"), [3]);
    assert!(is("src/proxy/hooks.rs").is_empty());
    assert!(is("src/app/serve.rs").is_empty());
}

#[test]
fn circles_across_folders_are_found() {
    let tree = tree(&[
        ("src/a/x.rs", "use crate::b::y::Y; pub struct X;"),
        ("src/b/y.rs", "\nuse crate::b::z::Z; pub struct Y;"),
        ("src/b/z.rs", "use crate::a::x::X; pub struct Z;"),
        ("src/c.rs", "use crate::a::x::X;"),
    ]);
    let arrows = Graph::new("src", &tree).arrows();
    assert_eq!(
        circles::circles(&arrows),
        [["src/a/x.rs", "src/b/y.rs", "src/b/z.rs"]]
    );
    let found = texts(circles::findings(&arrows));
    assert_eq!(found.len(), 3);
    let way = "src/b/y.rs → src/b/z.rs → src/a/x.rs → src/b/y.rs";
    assert_eq!(
        found[1],
        format!("src/b/y.rs:2: in a circle of files: {way}")
    );
}

#[test]
fn circles_inside_a_folder_are_accepted_unless_it_is_free_of_them() {
    let is = |files: &[(&str, &str)]| {
        let tree = tree(files);
        circles::circles(&Graph::new("src", &tree).arrows()).len()
    };
    let one = [
        ("src/a/mod.rs", "use x::X; pub struct A;"),
        ("src/a/x.rs", "use super::A; pub struct X;"),
    ];
    assert_eq!(is(&one), 0);
    // `a.rs` beside `a/` belongs to the folder `a` too.
    let beside = [
        ("src/a.rs", "use x::X; pub struct A;"),
        ("src/a/x.rs", "use super::A; pub struct X;"),
    ];
    assert_eq!(is(&beside), 0);
    let below = [
        ("src/a/mod.rs", "use x::X; pub struct A;"),
        ("src/a/x/mod.rs", "use super::A; pub struct X;"),
    ];
    assert_eq!(is(&below), 1);
    let free = [
        ("src/models/exchange/mod.rs", "use x::X; pub struct A;"),
        ("src/models/exchange/x.rs", "use super::A; pub struct X;"),
    ];
    assert_eq!(is(&free), 1);
}
