//! Providers: on, off, and their quirks.

use filters::models::parameter::Parameter;
use filters::models::wires::quirks::{ReasoningReplay, StreamUsage};

use super::*;

const GROQ: &str =
    "[providers.groq]\nkind = \"openai-compatible\"\nbase_url = \"https://groq.test/v1\"\n";

#[test]
fn a_provider_is_on_once_one_of_its_secrets_is_there() {
    let toml = format!("{GROQ}keys = [{{ env = \"A\" }}, {{ env = \"B\" }}]\n");
    let loaded = good_with(&toml, &[("B", " b\n")]);
    let keys: Vec<_> = loaded.config.providers[0]
        .keys
        .iter()
        .map(Secret::expose)
        .collect();
    assert_eq!(keys, ["b"]);
}

#[test]
fn a_provider_without_any_secret_is_off_and_no_error() {
    let toml = format!("{GROQ}keys = [{{ env = \"A\" }}, {{ file = \"/nonexistent/key\" }}]\n");
    let loaded = good_with(&toml, &[("A", "")]);
    assert!(loaded.config.providers.is_empty());
    let off = &loaded.config.off_providers[0];
    assert_eq!(off.name, "groq");
    assert_eq!(off.why, "A is not set; /nonexistent/key is absent or empty");
    assert_eq!(off.cure, "set A or write it to /nonexistent/key");
}

#[test]
fn a_remote_provider_that_lists_no_keys_is_off_unless_it_says_that_it_needs_none() {
    assert!(good(GROQ).config.providers.is_empty());
    assert_eq!(
        good(&format!("{GROQ}keys = []\n")).config.providers.len(),
        1
    );
    let openai = "[providers.o]\nkind = \"openai\"\nkeys = []\n";
    assert!(good(openai).config.providers.is_empty());
}

#[test]
fn a_local_server_needs_no_key() {
    for host in ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"] {
        let toml = format!(
            "[providers.v]\nkind = \"openai-compatible\"\nbase_url = \"http://{host}/v1\"\n"
        );
        assert_eq!(good(&toml).config.providers.len(), 1, "{host}");
    }
}

#[test]
fn a_key_in_a_file_is_found_by_path_and_among_the_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("groq-key");
    std::fs::write(&path, "from-file\n").unwrap();
    let by_path = format!("{GROQ}keys = [{{ file = {:?} }}]\n", path);
    let loaded = good(&by_path);
    assert_eq!(loaded.config.providers[0].keys[0].expose(), "from-file");
    let by_name = format!("{GROQ}keys = [{{ file = \"groq-key\" }}]\n");
    let folder = folder.path().to_str().unwrap();
    let loaded = good_with(&by_name, &[("CREDENTIALS_DIRECTORY", folder)]);
    assert_eq!(loaded.config.providers[0].keys[0].expose(), "from-file");
}

#[test]
fn a_literal_key_is_for_the_sandbox_alone() {
    let loaded = good("[providers.s]\nkind = \"sandbox\"\nkeys = [\"play\"]\n");
    assert_eq!(loaded.config.providers[0].keys[0].expose(), "play");
    let shown = loaded
        .origins
        .value("providers.s.keys")
        .unwrap()
        .to_string();
    assert_eq!(shown, "[\"(hidden)\"]");
    let problem = only(&format!("{GROQ}keys = [\"sk-12345\"]\n"));
    assert_eq!(problem.key, "providers.groq.keys[0]");
    assert!(problem.cure.starts_with("write { env = \"NAME\" }"));
}

#[test]
fn a_key_that_no_header_can_carry_is_refused_and_not_shown() {
    let toml = format!("{GROQ}keys = [{{ env = \"A\" }}]\n");
    let problems = bad_with(&toml, &[("A", "se\ncret")]);
    assert_eq!(problems[0].key, "providers.groq.keys[0]");
    assert!(!problems[0].to_string().contains("cret"));
}

#[test]
fn the_well_known_kinds_have_a_usual_address_and_the_others_need_one() {
    for (kind, url) in [
        ("openai", "https://api.openai.com/v1"),
        ("anthropic", "https://api.anthropic.com"),
        ("google", "https://generativelanguage.googleapis.com"),
        ("cohere", "https://api.cohere.com"),
        ("voyage", "https://api.voyageai.com/v1"),
    ] {
        let toml = format!("[providers.p]\nkind = \"{kind}\"\nkeys = [{{ env = \"K\" }}]\n");
        assert_eq!(
            good_with(&toml, &[("K", "k")]).config.providers[0].base_urls[0],
            url
        );
    }
    let problem = only("[providers.p]\nkind = \"openai-compatible\"\n");
    assert_eq!(problem.key, "providers.p.base_url");
}

#[test]
fn a_wrong_address_is_told_once() {
    let problem = only("[providers.p]\nkind = \"openai-compatible\"\nbase_url = 7\n");
    assert_eq!(problem.message, "must be a string, but is an integer");
}

#[test]
fn headers_of_the_connection_and_of_credentials_are_not_configured() {
    for name in ["Authorization", "host", "X-Api-Key", "content-length"] {
        let toml = format!("{GROQ}headers = {{ \"{name}\" = \"x\" }}\n");
        assert_eq!(
            only(&toml).message,
            "is written by the gateway itself",
            "{name}"
        );
    }
    let toml = format!("{GROQ}keys = []\nheaders = {{ \"X-Title\" = \"weirgate\" }}\n");
    let (name, value) = &good(&toml).config.providers[0].headers[0];
    assert_eq!(
        (name.as_str(), value.to_str().unwrap()),
        ("x-title", "weirgate")
    );
}

#[test]
fn without_quirks_a_provider_speaks_the_plain_convention() {
    let loaded = good(&format!("{GROQ}keys = []\n"));
    // What the convention does not know, only the providers of the test below get.
    let plain = filters::models::wires::Quirks {
        drop_unknown_fields: true,
        late_instructions: false,
        ..Default::default()
    };
    assert_eq!(loaded.config.providers[0].quirks, plain);
}

#[test]
fn unknown_members_pass_to_openai_and_to_this_machine_unless_configured_otherwise() {
    for (kind, url, more, is_dropped) in [
        ("openai", "https://api.openai.com/v1", "", false),
        ("openai", "https://api.openai.com.example/v1", "", true),
        ("openai-compatible", "http://127.0.0.1:8000/v1", "", false),
        (
            "openai-compatible",
            "https://aggregator.example/v1",
            "",
            true,
        ),
        (
            "openai-compatible",
            "https://own.example/v1",
            "unknown_fields = \"pass\"",
            false,
        ),
    ] {
        let toml =
            format!("[providers.p]\nkind = \"{kind}\"\nbase_url = \"{url}\"\nkeys = []\n{more}\n");
        let config = good(&toml).config;
        let providers = config.providers.iter().chain(&config.byok_only_providers);
        let drops: Vec<bool> = providers.map(|p| p.quirks.drop_unknown_fields).collect();
        assert_eq!(drops, [is_dropped], "{kind} {url}");
    }
}

#[test]
fn every_quirk_arrives() {
    let toml = format!(
        "{GROQ}keys = []\n{}",
        r#"
        chat_path = "/c"
        auth_header = "api-key"
        stream_usage = "never"
        reasoning_replay = "reasoning_content_required"
        reasoning_excluded_from_completion = true
        strict_messages = true
        unknown_fields = "drop"
        pass_members = ["top_k"]
        tool_call_ids = "mistral9"
        null_content = "empty"
        json_schema = false
        forced_tools = false
        strict_schema = true
        system_role = "system"
        late_instructions = true
        inline_images = true
        cache_breakpoints = false
        bills_after_disconnect = true
        "#
    );
    let expected = filters::models::wires::Quirks {
        chat_path: "/c".to_owned(),
        auth_header: HeaderName::from_static("api-key"),
        stream_usage: StreamUsage::Never,
        reasoning_replay: ReasoningReplay::ReasoningContentRequired,
        reasoning_excluded_from_completion: true,
        strict_messages: true,
        drop_unknown_fields: true,
        pass_members: vec!["top_k".to_owned()],
        tool_call_ids_of_nine: true,
        null_content_is_empty: true,
        json_schema: false,
        forced_tools: false,
        strict_schema: true,
        developer_is_system: true,
        late_instructions: true,
        inline_images: true,
        cache_breakpoints: false,
        bills_after_disconnect: true,
    };
    assert_eq!(good(&toml).config.providers[0].quirks, expected);
}

#[test]
fn openai_itself_limits_completion_tokens_unless_told_otherwise() {
    let name = |more: &str| {
        let toml = format!("[providers.o]\nkind = \"openai\"\nkeys = [{{ env = \"K\" }}]\n{more}");
        let config = good_with(&toml, &[("K", "k")]).config;
        let table = &config.providers[0].defaults.parameters;
        table.name(Parameter::MaxTokens).to_owned()
    };
    assert_eq!(name(""), "max_completion_tokens");
    let other = "parameters = { rename = { max_tokens = \"max_tokens\" } }\n";
    assert_eq!(name(other), "max_tokens");
}

#[test]
fn the_parameters_of_a_provider_are_those_of_its_kind_and_what_is_written() {
    let more = "parameters = { drop = [\"seed\", \"messages[].name\"], refuse = [\"stop\"], \
                bounds = { temperature = { max = 1 } } }\n";
    let loaded = good(&format!("{GROQ}keys = []\n{more}"));
    let table = &loaded.config.providers[0].defaults.parameters;
    let lost = Parameter::ALL
        .into_iter()
        .filter(|one| !table.supports(*one));
    assert_eq!(
        lost.collect::<Vec<_>>(),
        [
            Parameter::Stop,
            Parameter::Seed,
            Parameter::PromptCacheRetention,
            Parameter::PromptCacheOptions,
            Parameter::Effort,
            Parameter::SensitiveWordCheck,
            Parameter::MessageName,
            Parameter::ToolResultMedia,
            Parameter::ImageQuality,
            Parameter::ImageModeration,
            Parameter::ImageCount,
            Parameter::ImageSeed,
            Parameter::ToolSearch,
            Parameter::AllowedCallers,
            Parameter::VendorSafeguards,
            Parameter::ImageStyle,
            Parameter::ImageBackground,
            Parameter::InputFidelity,
            Parameter::OutputFormat,
            Parameter::OutputCompression,
        ]
    );
}

#[test]
fn a_quirk_of_another_wire_is_warned_of() {
    let loaded = good("[providers.a]\nkind = \"anthropic\"\nstrict_messages = true\n");
    let place = "providers.a.strict_messages";
    assert!(warned(&loaded).contains(&(place, "has no effect on this kind")));
}

#[test]
fn an_unencrypted_way_to_another_machine_is_warned_of() {
    let toml = "[providers.p]\nkind = \"openai\"\nbase_url = \"http://far.test/v1\"\nkeys = [{ env = \"K\" }]\n";
    let loaded = good_with(toml, &[("K", "k")]);
    assert!(
        warned(&loaded)
            .iter()
            .any(|(key, _)| *key == "providers.p.base_url")
    );
}

#[test]
fn a_provider_with_keys_in_its_regions_alone_is_on() {
    let toml = format!(
        "{GROQ}keys = [{{ env = \"A\" }}]\n[providers.groq.regions.eu]\nkeys = [{{ env = \"B\" }}]\n"
    );
    let loaded = good_with(&toml, &[("B", "b")]);
    let provider = &loaded.config.providers[0];
    assert!(provider.keys.is_empty() && provider.is_byok_only);
    assert!(loaded.config.off_providers.is_empty());
    let off = good(&toml);
    assert!(off.config.providers.is_empty());
}
