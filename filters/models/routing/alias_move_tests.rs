//! Moves of aliases between models that differ.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::json;

use super::*;

fn catalog() -> CatalogFile {
    serde_json::from_value(json!({"models": [
        {"id": "old", "aliases": ["nick", "n-*"], "providers": [
            {"provider": "a", "name": "old-1", "input_price": "1", "output_price": "2", "context_size": 1000,
             "capabilities": ["tools", "vision"]},
            {"provider": "b", "name": "old-1", "input_price": "1", "output_price": "3", "capabilities": ["tools"]},
            {"provider": "off", "name": "old-1", "input_price": "9", "capabilities": ["tools"]},
        ]},
        {"id": "new", "aliases": ["fresh"], "providers": [
            {"provider": "a", "name": "new-1", "input_price": "2", "cached_input_price": "0.5", "output_price": "2",
             "request_price": "0.01", "context_size": 2000, "capabilities": ["tools", "reasoning"]},
        ]},
        {"id": "vectors", "type": "embedding", "providers": [{"provider": "b", "name": "v"}]},
    ]}))
    .unwrap()
}

fn is_on(name: &str) -> bool {
    name != "off"
}

#[test]
fn a_move_names_an_alias_and_another_model() {
    let catalog = catalog();
    let find = |alias, to| AliasMove::find(&catalog, alias, to);
    for to in ["new", "fresh"] {
        let found = find("nick", to).unwrap();
        assert_eq!((&*found.from.id, &*found.to.id), ("old", "new"));
    }
    assert_eq!(find("n-*", "new").unwrap().from.id, "old");
    for (alias, to, error) in [
        ("old", "new", AliasMoveError::IsId),
        ("n-1", "new", AliasMoveError::NoAlias),
        ("nick", "newer", AliasMoveError::NoTarget),
        ("nick", "old", AliasMoveError::Unchanged),
        ("nick", "nick", AliasMoveError::Unchanged),
    ] {
        assert_eq!(find(alias, to).unwrap_err(), error, "{alias} {to}");
    }
}

#[test]
fn differences_are_of_providers_that_are_on() {
    let catalog = catalog();
    let found = AliasMove::find(&catalog, "nick", "new").unwrap();
    let told: Vec<_> = found.differences(&is_on);
    let told = told.iter();
    let told = told.map(|it| (&*it.property, &*it.from, &*it.to));
    let expected = [
        ("providers", "a, b", "a"),
        ("input_price", "1", "2"),
        ("cached_input_price", "unknown", "0.5"),
        ("output_price", "a 2, b 3", "2"),
        ("context_size", "1000", "2000"),
        ("reasoning", "no", "yes"),
        ("vision", "yes", "no"),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let found = AliasMove::find(&catalog, "nick", "vectors").unwrap();
    let told = found.differences(&is_on);
    assert_eq!(told[0].property, "type");
    let tools = told.iter().find(|it| it.property == "tools").unwrap();
    assert_eq!((&*tools.from, &*tools.to), ("yes", "unknown"));
}

#[test]
fn calls_are_priced_at_the_provider_that_they_had() {
    let catalog = catalog();
    let found = AliasMove::find(&catalog, "nick", "new").unwrap();
    let sums = CallSums {
        requests: 10,
        tokens: BilledTokens {
            prompt: 1_000_000,
            cached: 400_000,
            completion: 100_000,
            ..BilledTokens::default()
        },
    };
    // 0.6 at 2, 0.4 at 0.5, 0.1 at 2, and ten fees of a cent.
    for provider in ["a", "b"] {
        let cost = found.recost(provider, &sums, &is_on).unwrap();
        assert_eq!(cost.to_string(), "1.7", "{provider}");
    }
    let none = found.recost("a", &CallSums::default(), &is_on);
    assert_eq!(none, Some(Usd::ZERO));
    let back = AliasMove::find(&catalog, "fresh", "old").unwrap();
    // 1 at 1, because old has no price of its own for cached tokens, and 0.1 at 3.
    let cost = back.recost("b", &sums, &is_on).unwrap();
    assert_eq!(cost.to_string(), "1.3");
    let unknown = AliasMove::find(&catalog, "nick", "vectors").unwrap();
    assert_eq!(unknown.recost("a", &sums, &is_on), None);
}
