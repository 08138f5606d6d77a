//! The rules on small wrong texts: each rule must find its violation and nothing else.

mod adding;
mod arrows;
mod contract;
mod names;
mod shape;

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
    let text = "// é\nconst A: &str = \"→\"; const B: char = 'é';\nuse pingora_proxy::Session;";
    let file = Source::new("src/store.rs", text);
    let findings = crate::layers::pingora(&file);
    assert!(findings[0].text.starts_with("src/store.rs:3: "));
}

#[test]
fn a_test_module_in_a_file_of_its_own_hides_nothing_after_it() {
    let file = Source::new("src/x.rs", "#[cfg(test)]\nmod tests;\nfn f() {}");
    assert_eq!(file.shipped.trim(), "fn f() {}");
}
