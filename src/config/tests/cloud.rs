//! A cloud's own sign-in: what is said at the start.

use super::*;

fn first(toml: &str, pairs: &[(&str, &str)]) -> String {
    let provider = "[providers.p]\nkind = \"openai\"\n";
    let problems = bad_with(&format!("{provider}{toml}\n"), pairs);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    format!("{}: {}", problems[0].key, problems[0].message)
}

#[test]
fn a_provider_with_credentials_needs_no_keys() {
    let toml = "[providers.p]\nkind = \"openai\"\ncredentials = \"entra\"\n";
    let loaded = good_with(toml, &[("AZURE_CLIENT_ID", "c"), ("OTHER", "x")]);
    let cloud = loaded.config.providers[0].cloud.as_ref().unwrap();
    assert_eq!(&*cloud.scope, "https://ai.azure.com/.default");
    assert!(cloud.environment.contains_key("AZURE_CLIENT_ID") && cloud.environment.len() == 1);
}

#[test]
fn what_cannot_work_is_said_at_the_start_with_its_setting() {
    let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let aws = "credentials = \"aws\"";
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    std::fs::write(
        &config,
        "[profile p]\naws_access_key_id = a\naws_secret_access_key = s\n",
    )
    .unwrap();
    let profile = [
        ("AWS_PROFILE", "p"),
        ("AWS_CONFIG_FILE", config.to_str().unwrap()),
    ];
    let gone = [("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent.json")];
    for (toml, pairs, expected) in [
        (
            aws,
            &keys[..],
            "providers.p.region: is missing, and so are AWS_REGION and a region of the profile default",
        ),
        (
            aws,
            &profile[..],
            "providers.p.region: is missing, and so are AWS_REGION and a region of the profile p",
        ),
        (
            "credentials = \"aws\"\nregion = \"a/b\"",
            &keys[..],
            "providers.p.region: has characters that none has",
        ),
        (
            "credentials = \"aws\"\nregion = \"a\"",
            &keys[..1],
            "providers.p.credentials: AWS_SECRET_ACCESS_KEY: is missing",
        ),
        (
            "credentials = \"entra\"\nkeys = [{ env = \"A\" }]",
            &[("A", "k")][..],
            "providers.p.credentials: stands beside keys",
        ),
        (
            "credentials = \"entra\"",
            &[("AZURE_CLIENT_SECRET", "s")][..],
            "providers.p.credentials: AZURE_CLIENT_ID: is missing",
        ),
        (
            "credentials = \"google\"",
            &gone[..],
            "providers.p.credentials: GOOGLE_APPLICATION_CREDENTIALS: /nonexistent.json",
        ),
    ] {
        let said = first(toml, pairs);
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_setting_that_needs_credentials_is_idle_without_them() {
    let toml = "[providers.p]\nkind = \"openai\"\nkeys = [{ env = \"A\" }]\nregion = \"a\"\n";
    let loaded = good_with(toml, &[("A", "k")]);
    let mut warned = warned(&loaded);
    warned.retain(|(key, _)| key.starts_with("providers."));
    assert_eq!(
        warned,
        [("providers.p.region", "has no effect without credentials")]
    );
}
