//! Wrong imports.

use super::lines;
use crate::layers::*;
use crate::shape::panicking_calls;
use crate::source::Source;

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
