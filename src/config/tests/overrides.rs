//! Variables override the file, and the file overrides the defaults.

use super::*;

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let toml = "[routing]\nattempts = 2\nkeepalive_s = 20\n";
    let loaded = good_with(toml, &[("WEIRGATE_ROUTING__ATTEMPTS", "4")]);
    assert_eq!(loaded.config.routing.attempts, 4);
    assert_eq!(loaded.config.routing.keepalive, Duration::from_secs(20));
    assert_eq!(loaded.config.routing.deadline, Duration::from_secs(1500));
    let origin = |key: &str| loaded.origins.find(key).unwrap().to_string();
    assert_eq!(origin("routing.attempts"), "env WEIRGATE_ROUTING__ATTEMPTS");
    assert_eq!(origin("routing.keepalive_s"), "weirgate.toml:3");
    assert_eq!(origin("routing.deadline_s"), "default");
}

#[test]
fn deeper_keys_are_reached_by_more_underscores() {
    let loaded = good_with(
        "[providers.sandbox]\nkind = \"sandbox\"\n",
        &[
            ("WEIRGATE_LIMITS__BODY_BYTES__CHAT", "4096"),
            (
                "WEIRGATE_PROVIDERS__SANDBOX__BASE_URL",
                "http://127.0.0.1:9/v1/",
            ),
        ],
    );
    assert_eq!(loaded.config.limits.body_bytes.chat, 4096);
    assert_eq!(
        loaded.config.providers[0].base_urls[0],
        "http://127.0.0.1:9/v1"
    );
}

#[test]
fn a_provider_can_come_from_the_environment_alone() {
    let loaded = good_with(
        "",
        &[
            ("WEIRGATE_PROVIDERS__MINE__KIND", "openai-compatible"),
            ("WEIRGATE_PROVIDERS__MINE__BASE_URL", "https://mine.test/v1"),
            ("WEIRGATE_PROVIDERS__MINE__KEYS", "[{ env = \"MINE\" }]"),
            ("MINE", "k"),
        ],
    );
    assert_eq!(loaded.config.providers[0].keys[0].expose(), "k");
}

#[test]
fn a_name_with_dashes_is_met_by_underscores() {
    let toml =
        "[providers.my-vllm]\nkind = \"openai-compatible\"\nbase_url = \"http://[::1]:1/v1\"\n";
    let loaded = good_with(toml, &[("WEIRGATE_PROVIDERS__MY_VLLM__PRIORITY", "2")]);
    assert_eq!(loaded.config.providers.len(), 1);
    assert!((loaded.config.providers[0].priority - 2.0).abs() < 1e-12);
}

#[test]
fn a_whole_table_comes_before_its_members() {
    let loaded = good_with(
        "",
        &[
            ("WEIRGATE_ROUTING__WEIGHTS__PRICE", "0.25"),
            ("WEIRGATE_ROUTING__WEIGHTS", "{ price = 1, uptime = 0.75 }"),
        ],
    );
    let weights = loaded.config.routing.weights;
    assert!((weights.price - 0.25).abs() < 1e-12 && (weights.uptime - 0.75).abs() < 1e-12);
}

#[test]
fn text_needs_no_quotes_and_may_have_them() {
    for value in ["127.0.0.1:0", "\"127.0.0.1:0\""] {
        let loaded = good_with("", &[("WEIRGATE_LISTEN__ADDRESS", value)]);
        assert_eq!(loaded.config.listen.address.port(), 0);
    }
}

#[test]
fn text_that_looks_like_a_number_stays_text() {
    let toml = "[providers.sandbox]\nkind = \"sandbox\"\nheaders = { x-a = \"a\" }\n";
    let loaded = good_with(toml, &[("WEIRGATE_PROVIDERS__SANDBOX__HEADERS__X-A", "1")]);
    assert_eq!(loaded.config.providers[0].headers[0].1, "1");
}

#[test]
fn a_variable_that_names_no_key_is_refused_by_its_name() {
    let problems = bad_with(
        "",
        &[
            ("WEIRGATE_ROUTING__ATTEMPS", "1"),
            ("WEIRGATE_FOO__BAR", "1"),
        ],
    );
    let variable = |problem: &Problem| match &problem.place {
        Location::Variable { variable } => variable.clone(),
        other => panic!("{other:?}"),
    };
    let named: Vec<_> = problems.iter().map(variable).collect();
    assert_eq!(named, ["WEIRGATE_FOO__BAR", "WEIRGATE_ROUTING__ATTEMPS"]);
    assert_eq!(problems[1].cure, "did you mean WEIRGATE_ROUTING__ATTEMPTS?");
}

#[test]
fn a_variable_below_a_value_is_refused() {
    let toml = "[routing]\nattempts = 3\n";
    assert_eq!(
        bad_with(toml, &[("WEIRGATE_ROUTING__ATTEMPTS__X", "1")]).len(),
        1
    );
    assert_eq!(
        bad_with("", &[("WEIRGATE_ROUTING__ATTEMPTS__X", "1")]).len(),
        1
    );
}

#[test]
fn a_wrong_value_of_a_variable_is_refused_by_its_name() {
    let problems = bad_with("", &[("WEIRGATE_ROUTING__ATTEMPTS", "many")]);
    assert_eq!(problems[0].key, "routing.attempts");
    assert_eq!(
        problems[0].place,
        Location::Variable {
            variable: "WEIRGATE_ROUTING__ATTEMPTS".to_owned()
        }
    );
}

#[test]
fn a_secret_itself_is_no_value_of_a_variable() {
    let problems = bad_with("", &[("WEIRGATE_ADMIN__TOKEN", "hush-12345")]);
    assert_eq!(problems.len(), 1);
    assert!(!problems[0].to_string().contains("12345"));
}

#[test]
fn variables_without_two_underscores_are_none_of_ours() {
    good_with(
        "",
        &[
            ("WEIRGATE_TOKEN_KEY", "x"),
            ("OTHER__THING", "x"),
            ("WEIRGATE", "x"),
        ],
    );
}
