//! What differs between two configurations.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::config::changes;

const NO_MODELS: (&str, &str) = ("WEIRGATE_MODELS__FILE", "/dev/null");
const KEY: [u8; 32] = [7; 32];

fn loaded(toml: &str) -> LoadedConfig {
    good_with(toml, &[NO_MODELS])
}

fn between(before: &str, after: &str) -> ConfigChanges {
    changes(&loaded(before), &loaded(after))
}

/// The changed keys with their values, and with the details.
fn shown(changes: &ConfigChanges) -> Vec<String> {
    let changes = changes.to_string();
    changes.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_changed_value_is_shown_before_and_after() {
    let found = between("", "[routing]\nattempts = 2\n");
    assert_eq!(shown(&found), ["routing.attempts: 3 -> 2"]);
    let json = serde_json::to_value(&found).unwrap();
    let expected = json!([{ "key": "routing.attempts", "before": "3", "after": "2" }]);
    assert_eq!(json, expected);
    assert!(found.refusals().is_empty());
}

#[test]
fn order_comments_and_written_defaults_are_no_change() {
    let tenants = |first: &str, second: &str| {
        format!(
            "[graph]\nupstream = \"sandbox\"\n[[graph.tenants]]\nid = \"{first}\"\n[[graph.tenants]]\nid = \"{second}\"\n"
        )
    };
    let before = loaded(&tenants("a", "b"));
    let after = format!("[routing]\nattempts = 3 # as ever\n{}", tenants("b", "a"));
    let after = loaded(&after);
    assert_eq!(changes(&before, &after), ConfigChanges::default());
    assert_eq!(before.effective.hash(&KEY), after.effective.hash(&KEY));
    assert_eq!(before.effective.hash(&KEY).len(), 32);
    let other = loaded(&tenants("a", "c"));
    assert_ne!(before.effective.hash(&KEY), other.effective.hash(&KEY));
    assert_ne!(before.effective.hash(&KEY), before.effective.hash(&[8; 32]));
}

#[test]
fn a_tenant_is_known_by_its_id_and_not_by_its_place() {
    let tenant =
        |id: &str, qps: u32| format!("[[graph.tenants]]\nid = \"{id}\"\nallocation_qps = {qps}\n");
    let graph = "[graph]\nupstream = \"sandbox\"\n";
    let before = format!("{graph}{}{}", tenant("a", 1), tenant("b", 2));
    let after = format!(
        "{graph}{}{}{}",
        tenant("new", 1),
        tenant("a", 1),
        tenant("b", 3)
    );
    let found = between(&before, &after);
    let keys: Vec<_> = found.0.iter().map(|change| change.key.as_str()).collect();
    let expected = [
        "graph.tenants[\"b\"].allocation_qps",
        "graph.tenants[\"new\"]",
    ];
    assert_eq!(keys, expected);
    assert!(found.0[1].before.is_none());
    let back = between(&after, &before);
    assert!(back.0[1].after.is_none());
}

#[test]
fn a_provider_that_comes_is_one_change_with_what_was_written() {
    let found = between(
        "",
        "[providers.p]\nkind = \"openai\"\nkeys = [{ env = \"K\" }]\n",
    );
    assert_eq!(found.0.len(), 1, "{found}");
    let change = &found.0[0];
    assert_eq!((&*change.key, &change.before), ("providers.p", &None));
    let after = change.after.as_deref().unwrap();
    assert!(after.contains("{ env = \"K\" }"), "{after}");
}

#[test]
fn a_secret_is_compared_and_no_byte_of_it_is_shown() {
    let toml = "[admin]\ntoken = { env = \"T\" }\n[providers.p]\nkind = \"openai\"\nkeys = [{ env = \"K\" }]\n";
    let with = |token, key| good_with(toml, &[NO_MODELS, ("T", token), ("K", key)]);
    let before = with("hunter2", "one");
    let found = changes(&before, &with("hunter3", "two"));
    assert_eq!(
        shown(&found),
        [
            "admin.token: { env = \"T\" }",
            "the secret has changed",
            "providers.p.keys[0]: { env = \"K\" }",
            "the secret has changed",
        ]
    );
    let json = serde_json::to_string(&found).unwrap();
    for text in [json, found.to_string()] {
        assert!(!text.contains("hunter") && !text.contains("two"), "{text}");
    }
    let hash = |loaded: &LoadedConfig| loaded.effective.hash(&KEY);
    assert_ne!(hash(&before), hash(&with("hunter3", "one")));
    assert_eq!(hash(&before), hash(&with("hunter2", "one")));
}

#[test]
fn a_secret_that_is_found_at_last_is_a_change() {
    let toml = "[providers.p]\nkind = \"openai\"\nkeys = [{ env = \"K\" }]\n";
    let (without, with) = (loaded(toml), good_with(toml, &[NO_MODELS, ("K", "k")]));
    let details = |found: ConfigChanges| found.0[0].details.clone();
    assert_eq!(
        details(changes(&without, &with)),
        ["the secret is there now"]
    );
    let gone = "the secret is no longer there";
    assert_eq!(details(changes(&with, &without)), [gone]);
}

#[test]
fn the_password_of_a_url_is_compared_and_not_shown() {
    let url = |password: &str| {
        let url = format!("redis://:{password}@localhost:6379/1");
        good_with("", &[NO_MODELS, ("WEIRGATE_SHARED__REDIS", &url)])
    };
    let found = changes(&url("hunter2"), &url("hunter3"));
    assert_eq!(found.0.len(), 1, "{found}");
    assert_eq!(found.0[0].details, ["a part that is not shown has changed"]);
    assert!(!found.to_string().contains("hunter"), "{found}");
}

#[test]
fn a_key_that_needs_a_restart_is_refused_with_its_values_and_the_cure() {
    let found = between("", "[server]\nthreads = 3\n[routing]\nattempts = 2\n");
    let refusals = found.refusals();
    assert_eq!(refusals.len(), 1, "{found}");
    assert_eq!(refusals[0].key, "server.threads");
    assert!(refusals[0].message.starts_with("0 -> 3 needs a restart: "));
    assert!(refusals[0].cure.contains("weirgate upgrade"));
    let json = serde_json::to_value(&found).unwrap();
    assert!(json[1]["restart"].is_string(), "{json}");
}

#[test]
fn a_section_that_comes_needs_a_restart_only_if_one_of_its_keys_does() {
    let document = between("", "[decisions]\nuser_profiles = \"memory\"\n");
    assert!(document.refusals().is_empty(), "{document}");
    let agent = between("", "[decisions]\ncompat = \"agent\"\n");
    let refused: Vec<_> = agent.refusals().into_iter().map(|it| it.key).collect();
    assert_eq!(refused, ["decisions.compat"]);
}

#[test]
fn the_content_of_a_datafile_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flags.json");
    let toml = format!("[[decisions.projects]]\nsdk_key = \"demo\"\ndatafile = {path:?}\n");
    std::fs::write(&path, "{}").unwrap();
    let before = loaded(&toml);
    std::fs::write(&path, "{ }").unwrap();
    let found = changes(&before, &loaded(&toml));
    assert_eq!(found.0.len(), 1, "{found}");
    assert_eq!(found.0[0].key, "decisions.projects[\"demo\"].datafile");
    assert_eq!(found.0[0].details, ["the content of the file has changed"]);
}

#[test]
fn the_models_of_the_catalogue_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("models.toml");
    let load = |catalogue: &str| {
        std::fs::write(&path, catalogue).unwrap();
        let path = path.display().to_string();
        good_with("", &[("WEIRGATE_MODELS__FILE", &path)])
    };
    let before = load("[[models]]\nid = \"a\"\nproviders = []\n");
    let commented = load("# a comment\n[[models]]\nid = \"a\"\nproviders = []\n");
    assert!(changes(&before, &commented).is_empty());
    let after = load("[[models]]\nid = \"b\"\nproviders = []\n");
    let found = changes(&before, &after);
    assert_eq!(found.0.len(), 1, "{found}");
    assert_eq!(found.0[0].key, "models.file");
    assert_eq!(found.0[0].details, ["model a removed", "model b added"]);
    assert_ne!(before.effective.hash(&KEY), after.effective.hash(&KEY));
}

#[test]
fn a_long_value_is_cut() {
    let list = |count: u32| {
        let models: Vec<String> = (0..count).map(|n| format!("\"model-{n}\"")).collect();
        format!("[routing]\nauto = [{}]\n", models.join(", "))
    };
    let found = between(&list(1), &list(500));
    let after = found.0[0].after.as_deref().unwrap();
    assert_eq!(after.chars().count(), 401);
    assert!(after.ends_with('…'));
}

#[test]
fn what_the_environment_says_counts_as_what_the_file_says() {
    let env: BTreeMap<String, String> = BTreeMap::from([
        ("WEIRGATE_ROUTING__ATTEMPTS".to_owned(), "2".to_owned()),
        (NO_MODELS.0.to_owned(), NO_MODELS.1.to_owned()),
    ]);
    let after = from_str("", env).ok().unwrap();
    assert!(changes(&loaded("[routing]\nattempts = 2\n"), &after).is_empty());
}
