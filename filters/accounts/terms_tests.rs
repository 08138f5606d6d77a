#![allow(clippy::unwrap_used, reason = "tests")]
use proptest::prelude::*;

use super::super::rules::{Forbidden, Offer};
use super::*;
use crate::money::PriceSet;

fn terms(json: &str) -> KeyTerms {
    let written: TermsFile = serde_json::from_str(json).unwrap();
    written.check().unwrap()
}

fn prices(input: &str, output: &str) -> PriceSet {
    PriceSet {
        input: Price::per_million(input).unwrap(),
        output: Price::per_million(output).unwrap(),
        ..PriceSet::default()
    }
}

fn asks(rules: &KeyRules, model: &str, provider: &str) -> Result<(), Forbidden> {
    rules.check(&Offer {
        model,
        aliases: &["fast".into()],
        provider,
        upstream_name: "its-own-id",
        prices: Some(&prices("1", "4")),
    })
}

#[test]
fn an_allowing_rule_shuts_out_the_rest_and_a_denying_one_wins() {
    use Forbidden::{Model, Provider};
    let table = [
        (r#"{}"#, "a", "p", Ok(())),
        (r#"{"allow_models":["a","b"]}"#, "a", "p", Ok(())),
        (r#"{"allow_models":["a","b"]}"#, "c", "p", Err(Model)),
        (
            r#"{"allow_models":["a"],"deny_models":["a"]}"#,
            "a",
            "p",
            Err(Model),
        ),
        (r#"{"deny_models":["a"]}"#, "b", "p", Ok(())),
        (r#"{"deny_providers":["p"]}"#, "a", "p", Err(Provider)),
        (r#"{"allow_providers":["q"]}"#, "a", "p", Err(Provider)),
        (
            r#"{"allow_models":["a"],"allow_providers":["q"]}"#,
            "a",
            "p",
            Err(Provider),
        ),
        (
            r#"{"allow_models":["a"],"allow_providers":["q"]}"#,
            "a",
            "q",
            Ok(()),
        ),
    ];
    for (json, model, provider, expected) in table {
        assert_eq!(
            asks(&terms(json).rules, model, provider),
            expected,
            "{json}"
        );
    }
}

#[test]
fn a_model_is_named_by_id_alias_or_either_behind_its_provider() {
    for name in ["a", "fast", "p/a", "p/fast", "p/its-own-id"] {
        let json = format!(r#"{{"deny_models":["{name}"]}}"#);
        assert_eq!(
            asks(&terms(&json).rules, "a", "p"),
            Err(Forbidden::Model),
            "{name}"
        );
    }
    for name in ["A", "q/a", "its-own-id", "p", "/a"] {
        let json = format!(r#"{{"deny_models":["{name}"]}}"#);
        assert_eq!(asks(&terms(&json).rules, "a", "p"), Ok(()), "{name}");
    }
}

#[test]
fn a_highest_price_includes_itself_and_shuts_out_what_is_unknown() {
    let table = [
        (r#"{"max_input_price":"1"}"#, Ok(())),
        (
            r#"{"max_input_price":"0.999999999999"}"#,
            Err(Forbidden::Price),
        ),
        (r#"{"max_output_price":"4"}"#, Ok(())),
        (r#"{"max_output_price":"3.99"}"#, Err(Forbidden::Price)),
        (r#"{"max_input_price":"0"}"#, Err(Forbidden::Price)),
    ];
    for (json, expected) in table {
        assert_eq!(asks(&terms(json).rules, "a", "p"), expected, "{json}");
    }
    let unknown = Offer {
        model: "a",
        aliases: &[],
        provider: "p",
        upstream_name: "a",
        prices: None,
    };
    let rules = terms(r#"{"max_input_price":"100"}"#).rules;
    assert_eq!(rules.check(&unknown), Err(Forbidden::Price));
}

#[test]
fn an_unknown_address_is_none_of_those_allowed() {
    let rules = terms(r#"{"allow_ips":["10.0.0.0/8","::1"],"deny_ips":["10.1.0.0/16"]}"#).rules;
    let table = [
        (Some("10.2.3.4"), Ok(())),
        (Some("::ffff:10.2.3.4"), Ok(())),
        (Some("::1"), Ok(())),
        (Some("10.1.0.1"), Err(Forbidden::Address)),
        (Some("192.0.2.1"), Err(Forbidden::Address)),
        (None, Err(Forbidden::Address)),
    ];
    for (address, expected) in table {
        let ip = address.map(|text| text.parse().unwrap());
        assert_eq!(rules.check_address(ip), expected, "{address:?}");
    }
    let denies = terms(r#"{"deny_ips":["10.1.0.0/16"]}"#).rules;
    assert_eq!(denies.check_address(None), Ok(()));
}

#[test]
fn limits_are_read_by_period() {
    let limits = terms(r#"{"limit":"0","limit_per":{"day":"1.5","month":"30"}}"#).limits;
    let usd = |text| Some(Usd::parse(text).unwrap());
    assert_eq!(limits.lifetime, usd("0"));
    assert_eq!(limits.periods, [None, usd("1.5"), None, usd("30")]);
}

#[test]
fn what_cannot_be_a_term_is_refused_by_its_name() {
    let table = [
        (r#"{"limit":"-1"}"#, "limit"),
        (r#"{"limit":"123456789012345678901234567890"}"#, "limit"),
        (r#"{"limit_per":{"year":"1"}}"#, "limit_per"),
        (r#"{"limit_per":{"day":"1e3"}}"#, "limit_per"),
        (
            r#"{"max_input_price":"0.0000000000001"}"#,
            "max_input_price",
        ),
        (r#"{"max_output_price":"x"}"#, "max_output_price"),
        (r#"{"allow_models":[""]}"#, "allow_models"),
        (r#"{"deny_providers":[" p"]}"#, "deny_providers"),
        (r#"{"allow_ips":["10.0.0.1/8"]}"#, "allow_ips"),
        (r#"{"deny_ips":["example.com"]}"#, "deny_ips"),
    ];
    for (json, field) in table {
        let written: TermsFile = serde_json::from_str(json).unwrap();
        assert_eq!(written.check().unwrap_err().field, field, "{json}");
    }
}

#[test]
fn terms_are_written_as_they_were_read() {
    let json =
        r#"{"limit":"5","limit_per":{"day":"1"},"allow_models":["a"],"deny_ips":["10.0.0.0/8"]}"#;
    let written: TermsFile = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&written).unwrap(), json);
    assert_eq!(serde_json::to_string(&TermsFile::default()).unwrap(), "{}");
}

proptest! {
    #[test]
    fn more_denying_rules_never_admit_more(
        denied in proptest::collection::vec("[a-d]", 0..4), more in "[a-d]", model in "[a-d]",
    ) {
        let rules = |deny: &[String]| {
            let written = TermsFile { deny_models: deny.to_vec(), ..TermsFile::default() };
            written.check().unwrap().rules
        };
        let before = asks(&rules(&denied), &model, "p");
        let mut longer = denied.clone();
        longer.push(more);
        let after = asks(&rules(&longer), &model, "p");
        prop_assert!(before.is_ok() || after.is_err());
    }
}

#[test]
fn a_term_or_a_rule_is_not_empty() {
    assert!(TermsFile::default().is_empty());
    assert!(KeyRules::default().is_empty());
    for json in [
        r#"{"allow_models":["m"]}"#,
        r#"{"deny_models":["m"]}"#,
        r#"{"allow_providers":["a"]}"#,
        r#"{"deny_providers":["a"]}"#,
        r#"{"max_input_price":"1"}"#,
        r#"{"max_output_price":"1"}"#,
        r#"{"allow_ips":["10.0.0.0/8"]}"#,
        r#"{"deny_ips":["10.0.0.0/8"]}"#,
    ] {
        assert!(!terms(json).rules.is_empty(), "{json}");
        let file: TermsFile = serde_json::from_str(json).unwrap();
        assert!(!file.is_empty(), "{json}");
    }
}

#[test]
fn a_refusal_names_its_rule_and_a_problem_its_field() {
    for (forbidden, words) in [
        (Forbidden::Model, "forbid the model"),
        (Forbidden::Provider, "forbid the provider"),
        (Forbidden::Price, "forbid the price"),
        (Forbidden::Address, "forbid the address"),
    ] {
        let fault = crate::fault::Fault::from(forbidden);
        assert!(fault.message.contains(words), "{fault}");
    }
    let file: TermsFile = serde_json::from_str(r#"{"limit":"-1"}"#).unwrap();
    assert!(file.check().unwrap_err().to_string().starts_with("limit: "));
}

#[test]
fn vendors_are_passed_on_by_name_and_by_default_none_is() {
    use super::super::Vendor;
    assert!(terms("{}").passthrough.is_empty());
    let both = terms(r#"{"allow_passthrough":["anthropic","openai"]}"#);
    assert_eq!(*both.passthrough, [Vendor::Anthropic, Vendor::OpenAi]);
    let written: TermsFile = serde_json::from_str(r#"{"allow_passthrough":["claude"]}"#).unwrap();
    let invalid = written.check().unwrap_err();
    assert_eq!(invalid.field, "allow_passthrough");
    assert!(invalid.problem.contains("claude") && invalid.problem.contains("anthropic, openai"));
}
