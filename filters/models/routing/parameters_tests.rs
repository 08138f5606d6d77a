#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::*;

fn table(written: serde_json::Value) -> Parameters {
    Parameters::plain().with(&serde_json::from_value(written).unwrap())
}

fn asked(numbers: &[(Parameter, f64)], others: &[Parameter]) -> AskedParameters {
    let mut asked = AskedParameters::default();
    for (parameter, number) in numbers {
        asked.add_number(*parameter, *number);
    }
    for parameter in others {
        asked.set.insert(*parameter);
    }
    asked
}

fn refusal(table: &Parameters, asked: &AskedParameters, reasons: bool) -> Option<String> {
    let refused = table.check(asked, reasons).err();
    refused.map(|(parameter, reason)| format!("{}: {reason}", parameter.as_str()))
}

#[test]
fn every_parameter_is_passed_dropped_or_refused_as_written() {
    for parameter in Parameter::ALL {
        let asked = asked(&[], &[parameter]);
        let plain = Parameters::PLAIN;
        assert_eq!(plain.treat(parameter, &asked, true), Treatment::Pass);
        assert!(plain.supports(parameter) && plain.check(&asked, true).is_ok());

        let refused = table(json!({"refuse": [parameter]}));
        let (found, reason) = refused.check(&asked, false).unwrap_err();
        assert!(found == parameter && !reason.is_empty() && !refused.supports(parameter));

        let dropped = table(json!({"drop": [parameter]}));
        assert!(dropped.check(&asked, false).is_ok() && !dropped.supports(parameter));
        let is_kept = dropped.treat(parameter, &asked, false) == Treatment::Pass;
        assert_eq!(is_kept, parameter.is_essential());

        let passed = refused.with(&serde_json::from_value(json!({"pass": [parameter]})).unwrap());
        assert_eq!(&passed, plain);
    }
}

#[test]
fn what_reasoning_excludes_is_refused_only_with_reasoning() {
    let table =
        table(json!({"refuse_with_reasoning": ["temperature"], "drop_with_reasoning": ["seed"]}));
    let asked = asked(&[(Parameter::Temperature, 0.5)], &[Parameter::Seed]);
    assert_eq!(refusal(&table, &asked, false), None);
    assert_eq!(
        refusal(&table, &asked, true).unwrap(),
        "temperature: takes no `temperature` while it reasons"
    );
    assert_eq!(table.treat(Parameter::Seed, &asked, false), Treatment::Pass);
    assert_eq!(table.treat(Parameter::Seed, &asked, true), Treatment::Drop);
}

#[test]
fn a_value_that_asks_for_nothing_is_not_refused_and_not_sent() {
    let table = table(json!({"refuse": ["temperature"]}));
    let asked = asked(&[(Parameter::Temperature, 1.0)], &[]);
    assert_eq!(refusal(&table, &asked, false), None);
    assert_eq!(
        table.treat(Parameter::Temperature, &asked, false),
        Treatment::Drop
    );
}

#[test]
fn a_number_outside_its_bounds_becomes_the_bound_or_is_refused() {
    let written = json!({"bounds": {
        "temperature": {"max": 1}, "max_tokens": {"min": 16},
        "stop": {"max": 4, "outside": "refuse"}, "top_p": {"min": 0.1, "max": 0.9, "outside": "refuse"}}});
    let table = table(written);
    for (parameter, number, expected) in [
        (Parameter::Temperature, 1.7, Treatment::Number(1.0)),
        (Parameter::Temperature, 0.7, Treatment::Pass),
        (Parameter::MaxTokens, 3.0, Treatment::Number(16.0)),
        (Parameter::MaxTokens, 16.0, Treatment::Pass),
        (Parameter::Stop, 4.0, Treatment::Pass),
    ] {
        let asked = asked(&[(parameter, number)], &[]);
        assert_eq!(refusal(&table, &asked, false), None);
        assert_eq!(table.treat(parameter, &asked, false), expected);
    }
    for (parameter, number, reason) in [
        (Parameter::Stop, 5.0, "stop: takes `stop` of at most 4"),
        (
            Parameter::TopP,
            0.95,
            "top_p: takes `top_p` from 0.1 to 0.9",
        ),
    ] {
        let asked = asked(&[(parameter, number)], &[]);
        assert_eq!(refusal(&table, &asked, false).unwrap(), reason);
    }
}

#[test]
fn of_an_exclusive_group_one_may_be_asked() {
    let table = table(json!({"exclusive": [["temperature", "top_p"]]}));
    let both = asked(
        &[(Parameter::Temperature, 0.5), (Parameter::TopP, 0.5)],
        &[],
    );
    assert_eq!(
        refusal(&table, &both, false).unwrap(),
        "top_p: takes only one of `temperature` and `top_p`"
    );
    let one = asked(
        &[(Parameter::Temperature, 0.5), (Parameter::TopP, 1.0)],
        &[],
    );
    assert_eq!(refusal(&table, &one, false), None);
    // Even the other's neutral value is refused beside it.
    assert_eq!(table.treat(Parameter::TopP, &one, false), Treatment::Drop);
    assert_eq!(
        table.treat(Parameter::Temperature, &one, false),
        Treatment::Pass
    );
}

#[test]
fn a_member_may_have_another_name() {
    let table = table(json!({"rename": {"max_tokens": "max_completion_tokens"}}));
    assert_eq!(table.name(Parameter::MaxTokens), "max_completion_tokens");
    assert_eq!(table.name(Parameter::Seed), "seed");
}

#[test]
fn contradictions_are_named_with_what_is_accepted() {
    for (written, key, cure) in [
        (
            json!({"drop": ["seed"], "refuse": ["user", "seed"]}),
            "refuse[1]",
            "leave it in one of them",
        ),
        (
            json!({"pass": ["seed"], "drop": ["seed"]}),
            "drop[0]",
            "leave it in one of them",
        ),
        (json!({"drop": ["tools"]}), "drop[0]", "refuse it instead"),
        (
            json!({"drop_with_reasoning": ["tool_choice"]}),
            "drop_with_reasoning[0]",
            "refuse it instead",
        ),
        (
            json!({"rename": {"messages[].name": "x"}}),
            "rename.\"messages[].name\"",
            "rename members such as max_tokens or seed",
        ),
        (
            json!({"bounds": {"user": {"min": 1}}}),
            "bounds.user",
            "bound temperature, top_p, frequency_penalty, presence_penalty, max_tokens, stop, top_logprobs, tools[].function.strict, image_config.n",
        ),
        (
            json!({"bounds": {"top_p": {"min": 1, "max": 0}}}),
            "bounds.top_p",
            "give a min that is not above the max",
        ),
        (
            json!({"bounds": {"top_p": {}}}),
            "bounds.top_p",
            "give one of them",
        ),
        (
            json!({"bounds": {"stop": {"max": 4}}}),
            "bounds.stop",
            "add outside = \"refuse\"",
        ),
    ] {
        let written: WrittenParameters = serde_json::from_value(written).unwrap();
        let problems = written.problems();
        let found: Vec<(&str, &str)> = problems.iter().map(|p| (&*p.key, &*p.cure)).collect();
        assert_eq!(found, [(key, cure)]);
    }
    let good = json!({"drop": ["seed"], "refuse": ["tools"], "bounds": {"stop": {"max": 4, "outside": "refuse"}}});
    let good: WrittenParameters = serde_json::from_value(good).unwrap();
    assert_eq!(good.problems(), []);
}
