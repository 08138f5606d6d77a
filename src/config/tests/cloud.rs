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
fn a_cloud_whose_resource_or_project_nobody_names_is_off_with_or_without_a_key() {
    for (kind, cure) in [
        ("azure", "set providers.p.base_url"),
        ("vertex", "set providers.p.project"),
    ] {
        let toml = format!("[providers.p]\nkind = \"{kind}\"\nkeys = [{{ env = \"A\" }}]\n");
        for pairs in [&[("A", "k")][..], &[]] {
            let config = good_with(&toml, pairs).config;
            assert!(config.providers.is_empty() && config.byok_only_providers.is_empty());
            let off = &config.off_providers[0];
            assert_eq!((&*off.cure, off.serves_own_keys), (cure, false), "{kind}");
        }
        // Who signs in has meant it.
        let signing = format!("[providers.p]\nkind = \"{kind}\"\ncredentials = \"google\"\n");
        let said = bad_with(&signing, &[]);
        assert_eq!(said.len(), 1, "{said:#?}");
        assert!(said[0].message.starts_with("is missing: "), "{said:#?}");
    }
}

#[test]
fn a_setting_that_needs_credentials_is_idle_without_them() {
    let toml = "[providers.p]\nkind = \"openai\"\nkeys = [{ env = \"A\" }]\nregion = \"eu\"\ntoken_scope = \"a\"\n";
    let loaded = good_with(toml, &[("A", "k")]);
    let mut warned = warned(&loaded);
    warned.retain(|(key, _)| key.starts_with("providers."));
    assert_eq!(
        warned,
        [(
            "providers.p.token_scope",
            "has no effect without credentials"
        )]
    );
}

#[test]
fn claude_on_aws_names_its_workspace_and_nobody_else_does() {
    const CLAUDE: &str = "kind = \"aws-anthropic\"\nregion = \"a\"\nkeys = [{ env = \"A\" }]\n";
    let said = |more: &str| {
        let problems = bad_with(&format!("[providers.p]\n{CLAUDE}{more}"), &[("A", "k")]);
        format!("{}: {}", problems[0].key, problems[0].message)
    };
    let off = good_with(&format!("[providers.p]\n{CLAUDE}"), &[("A", "k")]);
    assert_eq!(off.config.off_providers[0].why, "no workspace is named");
    let header = "headers = { anthropic-workspace-id = \"w\" }\n";
    let both = said(&format!("workspace = \"w\"\n{header}"));
    assert!(both.contains("stands beside"), "{both}");
    assert!(said("workspace = \"a\\nb\"\n").contains("characters"));
    for one in [header, "workspace = \"w\"\n"] {
        let loaded = good_with(&format!("[providers.p]\n{CLAUDE}{one}"), &[("A", "k")]);
        let (name, value) = &loaded.config.providers[0].headers[0];
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("anthropic-workspace-id", &b"w"[..])
        );
    }
    let idle = "[providers.p]\nkind = \"openai\"\nworkspace = \"w\"\nkeys = [{ env = \"A\" }]\n";
    let loaded = good_with(idle, &[("A", "k")]);
    assert!(
        warned(&loaded)
            .iter()
            .any(|(key, _)| *key == "providers.p.workspace")
    );
}
