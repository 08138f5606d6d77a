#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::library::{PromptEntry, PromptLibrary, ReferencePlace};
use super::prompt::Prompt;
use super::reference::{PromptReference, VersionReference, check_label, check_prompt_name};
use super::template::{PromptValue, TextPart, text_parts};
use super::tree::Node;
use crate::fault::Fault;
use crate::json::Str;

fn compile(file: &Value) -> Result<Prompt, Vec<String>> {
    let root = Node::parse_json(&file.to_string()).unwrap();
    let said = |mistake: super::prompt::Mistake| format!("{} {}", mistake.path, mistake.said);
    Prompt::compile(&root).map_err(|all| all.into_iter().map(said).collect())
}

/// A prompt of one message with this content.
fn prompt(content: &str, variables: &Value) -> Prompt {
    let messages = json!([{"role": "user", "content": content}]);
    compile(&json!({"messages": messages, "variables": variables})).unwrap()
}

fn rendered(prompt: &Prompt, given: &[(&str, PromptValue<'_>)]) -> Result<String, Fault> {
    let values = prompt.bind(given.iter().copied())?;
    let mut out = Vec::new();
    prompt.render(&values, &mut out);
    assert!(out.len() <= 6 * prompt.rendered_bytes(&values) + 16);
    let message: Value = serde_json::from_slice(&out).unwrap();
    Ok(message["content"].as_str().unwrap().to_owned())
}

#[test]
fn values_are_put_in_as_text_and_never_expanded() {
    let given = [
        ("name", PromptValue::Text(Str::Raw(r#"\"Ada\"\n{{b}}"#))),
        ("b", PromptValue::Text(Str::Plain("\"{{name}}\""))),
        ("n", PromptValue::Number("1.50")),
        ("yes", PromptValue::Bool(true)),
    ];
    for (content, expected) in [
        ("{{name}}", "\"Ada\"\n{{b}}"),
        ("a {{ name }} b", "a \"Ada\"\n{{b}} b"),
        ("{{b}}{{n}}{{\tyes\n}}", "\"{{name}}\"1.50true"),
        ("{{{n}}} { n } }}", "{1.50} { n } }}"),
        ("\\\"{{n}}\u{1}", "\\\"1.50\u{1}"),
        ("none", "none"),
    ] {
        let prompt = prompt(content, &json!({"name": {}, "b": {}, "n": {}, "yes": {}}));
        assert_eq!(rendered(&prompt, &given).unwrap(), expected, "{content}");
    }
}

#[test]
fn every_text_of_a_message_may_hold_variables() {
    let image = json!({"type": "image_url", "image_url": {"url": "{{url}}"}});
    let messages =
        json!([{"role": "system", "content": "{{a}}"}, {"role": "user", "content": [image]}]);
    let prompt = compile(&json!({ "messages": messages })).unwrap();
    assert_eq!(prompt.message_count, 2);
    let names: Vec<_> = prompt.variables().iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["a", "url"]);
}

#[test]
fn a_variable_is_of_its_type_given_once_known_and_has_a_value() {
    let variables = json!({"s": {"type": "string"}, "n": {"type": "number", "default": 3}, "b": true, "any": {}});
    let prompt = prompt("{{s}} {{n}} {{b}} {{any}} {{free}}", &variables);
    let text = PromptValue::Text(Str::Plain("x"));
    let full = [
        ("s", text),
        ("any", PromptValue::Bool(false)),
        ("free", PromptValue::Number("1")),
    ];
    assert_eq!(rendered(&prompt, &full).unwrap(), "x 3 true false 1");
    let with = |name, value| full.into_iter().chain([(name, value)]).collect::<Vec<_>>();
    for (given, param, said) in [
        (
            with("s", PromptValue::Number("1")),
            "s",
            "is a number; accepted is a string",
        ),
        (with("n", text), "n", "is a string; accepted is a number"),
        (with("b", text), "b", "is a string; accepted is a boolean"),
        (
            with("other", text),
            "other",
            "is no variable of this prompt; accepted are s, n, b, any, free",
        ),
        (
            full[..2].to_vec(),
            "free",
            "is missing, and it has no default",
        ),
        (full[1..].to_vec(), "s", "accepted is a string"),
    ] {
        let fault = rendered(&prompt, &given).unwrap_err();
        assert_eq!(fault.status(), 400);
        assert_eq!(
            fault.param.as_deref(),
            Some(&*format!("prompt.variables.{param}"))
        );
        assert!(fault.message.contains(said), "{fault}");
    }
    let none = self::prompt("plain", &json!({}));
    let fault = rendered(&none, &[("x", text)]).unwrap_err();
    assert!(fault.message.ends_with("accepted are none"), "{fault}");
}

#[test]
fn parts_of_texts_are_literals_variables_or_braces_around_no_name() {
    use TextPart::{Literal, Malformed, Variable};
    for (text, parts) in [
        ("", vec![]),
        ("a", vec![Literal("a")]),
        ("{{a}}", vec![Variable("a")]),
        ("{{ _a.b-1 }}x", vec![Variable("_a.b-1"), Literal("x")]),
        ("{a}", vec![Literal("{a}")]),
        (
            "{{{{a}}}}",
            vec![Literal("{{"), Variable("a"), Literal("}}")],
        ),
        ("x{{1}}", vec![Literal("x"), Malformed("{{1}}")]),
        ("{{}}", vec![Malformed("{{}}")]),
        ("{{a b}}", vec![Malformed("{{a b}}")]),
        ("{{nаme}}", vec![Malformed("{{nаme}}")]),
        ("{{a", vec![Malformed("{{a")]),
        ("{{a}{{b}}", vec![Malformed("{{a}{{b}}")]),
    ] {
        assert_eq!(text_parts(text).collect::<Vec<_>>(), parts, "{text}");
    }
}

proptest! {
    #[test]
    fn the_parts_of_a_text_make_the_text(text in "[{}a b_1]{0,24}") {
        let mut spaces = text.clone();
        spaces.retain(|char| char != ' ');
        let parts = text_parts(&text).map(|part| match part {
            TextPart::Literal(text) | TextPart::Malformed(text) => text.to_owned(),
            TextPart::Variable(name) => ["{{", name, "}}"].concat(),
        });
        let mut joined: String = parts.collect();
        joined.retain(|char| char != ' ');
        prop_assert_eq!(joined, spaces);
    }

    #[test]
    fn a_rendered_value_is_the_value(value in any::<String>()) {
        let prompt = prompt("<{{v}}>", &json!({}));
        let plain = [("v", PromptValue::Text(Str::Plain(&value)))];
        let expected = format!("<{value}>");
        prop_assert_eq!(rendered(&prompt, &plain).unwrap(), expected.clone());
        // As a request writes it.
        let quoted = Value::from(value.as_str()).to_string();
        let raw = [("v", PromptValue::Text(Str::Raw(&quoted[1..quoted.len() - 1])))];
        prop_assert_eq!(rendered(&prompt, &raw).unwrap(), expected);
    }
}

#[test]
fn a_file_tells_all_its_mistakes() {
    let found = compile(&json!({
        "model": 5, "temperature": 1, "parameters": [],
        "variables": {"1x": {}, "a": {"type": "text"}, "b": {"type": "number", "default": "x"}, "c": [], "d": {"typ": "string"}},
        "messages": [{"role": "user", "content": "{{a b}} {{"}],
    }));
    let found = found.unwrap_err();
    for said in [
        "model is a number; accepted is a string",
        "temperature is unknown; accepted are messages, model, parameters, variables; fields of a request stand in `parameters`",
        "parameters is an array; accepted is an object",
        "variables.1x is no name of a variable",
        "variables.a.type is \"text\"; accepted is one of string, number, boolean",
        "variables.b.default is a string; accepted is a number, as its type says",
        "variables.c is an array; accepted is a string, a number or a boolean",
        "variables.d.typ is unknown; accepted are type, default, description",
        "messages[0].content holds \"{{a b}}\"",
        "messages[0].content holds \"{{\"",
    ] {
        assert_eq!(
            found.iter().filter(|it| it.starts_with(said)).count(),
            1,
            "{said}: {found:#?}"
        );
    }
    assert_eq!(found.len(), 10, "{found:#?}");
    for (file, said) in [
        (json!([]), "the file is an array; accepted is an object"),
        (json!({}), "messages is missing"),
        (
            json!({"messages": "Hi"}),
            "messages is a string; accepted is an array of messages",
        ),
    ] {
        let found = compile(&file).unwrap_err();
        assert!(found.iter().any(|it| it.starts_with(said)), "{found:?}");
    }
    let twice = Node::parse_json(r#"{"messages":[],"model":"a","model":"b"}"#).unwrap();
    let found = Prompt::compile(&twice).unwrap_err();
    assert_eq!((&*found[0].path, found[0].span.start), ("model", 27));
}

fn entry(owner: &str, name: &str, labels: &[(&str, u64)], versions: &[u64]) -> PromptEntry {
    let prompt = Arc::new(prompt(owner, &json!({})));
    PromptEntry {
        owner_id: owner.into(),
        name: name.into(),
        labels: labels
            .iter()
            .map(|(label, number)| ((*label).into(), *number))
            .collect(),
        versions: versions
            .iter()
            .map(|number| (*number, Arc::clone(&prompt)))
            .collect(),
    }
}

#[test]
fn a_version_is_found_by_label_or_number_and_a_projects_prompt_counts_first() {
    let library = PromptLibrary::new([
        (
            "1".into(),
            entry("org", "hi", &[("production", 1), ("next", 2)], &[1, 2, 3]),
        ),
        ("2".into(), entry("proj", "hi", &[("production", 7)], &[7])),
        (
            "3".into(),
            entry("other", "secret", &[("production", 1)], &[1]),
        ),
        ("4".into(), entry("org", "draft", &[], &[1])),
    ]);
    let find = |owners, text: &str| {
        let reference = PromptReference::parse(text).unwrap();
        library.find(owners, &reference, ReferencePlace::Object)
    };
    for (owners, text, version) in [
        (("org", "p"), "hi", 1),
        (("org", "p"), "hi@production", 1),
        (("org", "p"), "hi@next", 2),
        (("org", "p"), "hi@latest", 3),
        (("org", "p"), "hi@2", 2),
        (("org", "p"), "hi@002", 2),
        (("org", "proj"), "hi", 7),
        (("org", "proj"), "draft@latest", 1),
    ] {
        assert_eq!(find(owners, text).unwrap().version, version, "{text}");
    }
    assert_eq!(find(("org", "p"), "hi@2").unwrap().label, None);
    assert_eq!(
        find(("org", "p"), "hi").unwrap().label.as_deref(),
        Some("production")
    );
    for (owners, text, param, said) in [
        (("org", "p"), "no", "prompt.id", "there is no prompt \"no\""),
        (
            ("org", "p"),
            "secret",
            "prompt.id",
            "there is no prompt \"secret\"",
        ),
        (("org", "p"), "hі", "prompt.id", "there is no prompt"),
        (
            ("org", "p"),
            "hi@no",
            "prompt.label",
            "the prompt `hi` has no label \"no\"; it has next, production, latest",
        ),
        (
            ("org", "p"),
            "hi@0",
            "prompt.version",
            "the prompt `hi` has no version 0; its newest is 3",
        ),
        (
            ("org", "p"),
            "hi@99999999999999999999",
            "prompt.version",
            "has no version",
        ),
        (
            ("org", "proj"),
            "hi@next",
            "prompt.label",
            "it has production, latest",
        ),
        (
            ("org", "p"),
            "draft",
            "prompt.label",
            "has no label \"production\"; it has latest",
        ),
    ] {
        let fault = find(owners, text).unwrap_err();
        assert_eq!(
            (fault.status(), fault.code()),
            (404, Some("prompt_not_found"))
        );
        assert_eq!(fault.param.as_deref(), Some(param));
        assert!(fault.message.contains(said), "{fault}");
    }
    let reference = PromptReference::parse("no").unwrap();
    let by_model = library.find(("org", "p"), &reference, ReferencePlace::Model);
    assert_eq!(by_model.unwrap_err().param.as_deref(), Some("model"));
    let changed = library.with([
        ("2".into(), None),
        ("5".into(), Some(entry("org", "new", &[], &[1]))),
    ]);
    let find = |text: &str| {
        let reference = PromptReference::parse(text).unwrap();
        changed.find(("org", "proj"), &reference, ReferencePlace::Object)
    };
    assert_eq!(find("hi").unwrap().version, 1);
    assert_eq!(find("new@latest").unwrap().version, 1);
}

#[test]
fn names_and_labels_fit_into_a_model_string() {
    for name in ["a", "support/greeting", "_a.b-C9", "9"] {
        assert_eq!(check_prompt_name(name), Ok(()), "{name}");
    }
    for name in ["", "a@b", "a b", "/a", ".a", "ä", "a\n", &"a".repeat(129)] {
        assert!(check_prompt_name(name).is_err(), "{name}");
    }
    for (label, is_good) in [
        ("production", true),
        ("v2", true),
        ("2", false),
        ("a/b", false),
        ("", false),
    ] {
        assert_eq!(check_label(label).is_ok(), is_good, "{label}");
    }
    assert_eq!(
        PromptReference::parse("a@b@c").unwrap().version,
        VersionReference::Label("b@c".into())
    );
    for text in ["", "@", "a@", "@b"] {
        assert_eq!(PromptReference::parse(text), None, "{text}");
    }
}
