//! Problems, with their places and cures.

use proptest::prelude::*;

use super::*;

#[test]
fn every_problem_of_a_file_is_told_with_its_place() {
    let problems = bad(concat!(
        "[listen]\n",
        "header_bytes = \"many\"\n",
        "[routing]\n",
        "  attemps = 3\n",
        "  attempts = 99\n",
        "weights = { price = -1 }\n",
    ));
    let spots: Vec<_> = problems.iter().map(spot).collect();
    assert_eq!(
        spots,
        [
            ("listen.header_bytes", 2, 16),
            ("routing.attemps", 4, 3),
            ("routing.attempts", 5, 14),
            ("routing.weights.price", 6, 21),
        ]
    );
}

#[test]
fn an_unknown_key_is_refused_with_what_was_meant() {
    let problem = only("[listen]\nadress = \"127.0.0.1:80\"\n");
    assert_eq!(problem.cure, "did you mean address?");
}

#[test]
fn an_unknown_section_is_refused_with_what_was_meant() {
    let problem = only("[provider.openai]\nkind = \"openai\"\n");
    assert_eq!(
        (problem.key.as_str(), problem.cure.as_str()),
        ("provider", "did you mean providers?")
    );
}

#[test]
fn an_unknown_key_like_no_other_lists_what_there_is() {
    let problem = only("[admin]\nzzz = 1\n");
    assert_eq!(
        problem.cure,
        "take it out, or use one of: address, token, write"
    );
}

#[test]
fn a_wrong_type_names_what_came_and_what_is_accepted() {
    let problem = only("[listen]\nhttp2 = \"yes\"\n");
    assert_eq!(problem.message, "must be true or false, but is a string");
}

#[test]
fn a_number_out_of_range_is_cured_by_its_bounds() {
    let problem = only("[routing]\nattempts = 0\n");
    assert_eq!(problem.message, "0 is out of range");
    assert_eq!(problem.cure, "give a number from 1 to 10; the default is 3");
}

#[test]
fn numbers_that_no_machine_holds_are_out_of_range() {
    for value in ["99999999999999999999", "-1", "0x7fffffffffffffff"] {
        let problem = only(&format!("[routing]\ndeadline_s = {value}\n"));
        assert!(problem.message.ends_with("is out of range"), "{problem:?}");
    }
    for value in ["nan", "inf", "-inf", "1e999"] {
        let problem = only(&format!("[routing]\nexploration = {value}\n"));
        assert!(problem.message.ends_with("is out of range"), "{problem:?}");
    }
}

#[test]
fn a_float_is_no_integer_but_an_integer_is_a_number() {
    assert_eq!(
        only("[routing]\nattempts = 2.5\n").message,
        "must be an integer, but is 2.5"
    );
    assert!(
        (good("[routing]\nexploration = 1\n")
            .config
            .routing
            .exploration
            - 1.0)
            .abs()
            < 1e-12
    );
}

#[test]
fn a_choice_that_is_not_known_lists_the_choices() {
    let problem = only("[providers.x]\nkind = \"open-ai\"\n");
    assert!(
        problem
            .cure
            .starts_with("did you mean \"openai\"? use one of: \"openai\", "),
        "{problem:?}"
    );
}

#[test]
fn texts_are_checked_by_what_they_mean() {
    for (toml, key) in [
        ("[listen]\naddress = \"localhost:80\"", "listen.address"),
        ("[listen]\naddress = \"127.0.0.1\"", "listen.address"),
        (
            "[listen]\nclient_ip_header = \"a b\"",
            "listen.client_ip_header",
        ),
        (
            "[listen]\ntrusted_proxies = [\"10.0.0.0/99\"]",
            "listen.trusted_proxies[0]",
        ),
        (
            "[listen]\ntrusted_proxies = [\"::1\", \"::1\"]",
            "listen.trusted_proxies[1]",
        ),
        ("[listen]\ntls = { cert = \"c\" }", "listen.tls.key"),
        ("[store]\nurl = \"mysql://h/d\"", "store.url"),
        ("[store]\nurl = \"sqlite:\"", "store.url"),
        ("[shared]\nredis = \"http://h\"", "shared.redis"),
        (
            "[providers.p]\nkind = \"openai\"\nbase_url = \"ftp://h\"",
            "providers.p.base_url",
        ),
        (
            "[providers.p]\nkind = \"openai\"\nbase_url = \"https://h/v1?x=1\"",
            "providers.p.base_url",
        ),
        (
            "[providers.p]\nkind = \"openai\"\nbase_url = \"https://h:99999/v1\"",
            "providers.p.base_url",
        ),
        (
            "[providers.p]\nkind = \"openai\"\nchat_path = \"chat\"",
            "providers.p.chat_path",
        ),
        (
            "[providers.p]\nkind = \"openai\"\nparameters = { drop = [\"a..b\"] }",
            "providers.p.parameters.drop[0]",
        ),
        (
            "[providers.\"a b\"]\nkind = \"sandbox\"",
            "providers.\"a b\"",
        ),
        (
            "[providers.p]\nbase_url = \"https://h\"",
            "providers.p.kind",
        ),
        (
            "[decisions]\ndatafile_url = \"https://h/x.json\"",
            "decisions.datafile_url",
        ),
        (
            "[decisions]\nsdk_key_headers = []",
            "decisions.sdk_key_headers",
        ),
        (
            "[[decisions.projects]]\nsdk_key = \"a b\"\ndatafile = \"sandbox\"",
            "decisions.projects[0].sdk_key",
        ),
        (
            "[[decisions.projects]]\nsdk_key = \"a\"",
            "decisions.projects[0].datafile",
        ),
        ("[graph]\nupstream = \"https://h/path\"", "graph.upstream"),
        ("[graph]\nlevels = [10, 50, 20]", "graph.levels[2]"),
        (
            "[[graph.tenants]]\nid = \"a\"\nlimits = { \"/x\" = 1 }",
            "graph.tenants[0].limits.\"/x\"",
        ),
        (
            "[[graph.operations]]\nmethods = [\"get\"]\npath = \"/\"\ncategory = \"query\"",
            "graph.operations[0].methods[0]",
        ),
        (
            "[[graph.operations]]\nmethods = [\"GET\"]\npath = \"/\"\ncategory = \"querry\"",
            "graph.operations[0].category",
        ),
        (
            "[[graph.operations]]\nmethods = [\"GET\"]\npath = \"/a/*/b\"\ncategory = \"query\"",
            "graph.operations[0].path",
        ),
        (
            "[[graph.tenants]]\nid = \"a\"\nallocation_qps = 0",
            "graph.tenants[0].allocation_qps",
        ),
        (
            "[graph.categories]\na = { default = 9, maximum = 1 }",
            "graph.categories.a.default",
        ),
        ("[plans.pro]\ncycle_usd = \"-1\"", "plans.pro.cycle_usd"),
        ("[plans.gold]\ndaily_pct = 1", "plans.gold"),
        ("[routing]\nauto = [\"a\", \"a\"]", "routing.auto[1]"),
        ("[routing]\nauto = [1]", "routing.auto[0]"),
        ("[routing]\nauto = \"a\"", "routing.auto"),
        ("routing = 1979-05-27", "routing"),
    ] {
        let problem = only(toml);
        assert_eq!(problem.key, key, "{toml}: {problem:?}");
        assert!(!problem.cure.is_empty(), "{toml}: {problem:?}");
        assert!(
            matches!(problem.place, Location::File(_)),
            "{toml}: {problem:?}"
        );
    }
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    for (toml, key) in [
        (
            "[listen]\naddress = \"127.0.0.1:80\"\n[admin]\naddress = \"127.0.0.1:80\"",
            "admin.address",
        ),
        ("[store]\nurl = \"postgres://u@h/d\"", "store.secret"),
        (
            "[decisions]\nuser_profiles = \"redis\"",
            "decisions.user_profiles",
        ),
        (
            "[decisions]\nodp = { segments_cache = \"redis\" }",
            "decisions.odp.segments_cache",
        ),
        (
            "[shared]\nredis = \"redis://h\"\n[decisions]\ncompat = \"agent\"\nuser_profiles = \"redis\"",
            "decisions.user_profiles",
        ),
        (
            "[shared]\nredis = \"redis://h/0\"\n\
             [decisions]\ncompat = \"agent\"\nagent_redis = \"redis://H:6379\"",
            "decisions.agent_redis",
        ),
        (
            "[[decisions.clients]]\nid = \"a\"\nsecret_hash = \"x\"\nsdk_keys = [\"k\"]",
            "decisions.token_keys",
        ),
        (
            "[[decisions.projects]]\nsdk_key = \"a\"\ndatafile = \"sandbox\"\n\
             [[decisions.projects]]\nsdk_key = \"a\"\ndatafile = \"sandbox\"",
            "decisions.projects[1].sdk_key",
        ),
        (
            "[[graph.tenants]]\nid = \"a\"\n[[graph.tenants]]\nid = \"a\"",
            "graph.tenants[1].id",
        ),
        (
            "[[graph.tenants]]\nid = \"a\"\nsingle_keys = [\"k\"]\n\
             [[graph.tenants]]\nid = \"b\"\nsingle_keys = [\"k\"]",
            "graph.tenants[1].single_keys[0]",
        ),
        (
            "[[graph.tenants]]\nid = \"a\"\nbearer = [{ issuer = \"i\" }]\n\
             [[graph.tenants]]\nid = \"b\"\nbearer = [{ issuer = \"i\" }]",
            "graph.tenants[1].bearer[0].issuer",
        ),
    ] {
        assert_eq!(only(toml).key, key, "{toml}");
    }
}

#[test]
fn broken_syntax_is_told_beside_the_other_problems() {
    let problems = bad("[listen]\nhttp2 = tru\n[routing]\nattempts = 0\n");
    assert!(
        problems
            .iter()
            .any(|problem| problem.message.starts_with("not valid TOML"))
    );
    assert!(
        problems
            .iter()
            .any(|problem| problem.key == "routing.attempts"),
        "{problems:?}"
    );
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let problems = bad("[listen]\nhttp2 = true\nhttp2 = false\n");
    assert_eq!(spot(&problems[0]).1, 3);
}

#[test]
fn a_file_that_cannot_be_read_is_a_problem_not_a_default() {
    let source = Source::File("/nonexistent/weirgate.toml".into());
    let problems = load(&source, []).err().unwrap();
    assert!(
        problems[0]
            .message
            .contains("/nonexistent/weirgate.toml cannot be read")
    );
}

#[test]
fn a_catalogue_that_was_named_must_exist() {
    let problem = only("[models]\nfile = \"/nonexistent/models.toml\"\n");
    assert_eq!(spot(&problem), ("models.file", 2, 8));
}

#[test]
fn settings_and_kinds_that_are_not_built_are_unknown() {
    for (toml, key) in [
        ("[telemetry]\ncontent = true\n", "telemetry.content"),
        ("[server]\nconsole = true\n", "server.console"),
        ("[providers.p]\nkind = \"ollama\"\n", "providers.p.kind"),
    ] {
        let problem = only(toml);
        assert_eq!(problem.key, key, "{toml}");
        assert!(problem.message.contains("known"), "{problem}");
    }
}

#[test]
fn a_literal_secret_is_refused_and_not_repeated() {
    for toml in [
        "[providers.p]\nkind = \"openai\"\nkeys = [\"sk-live-12345\"]\n",
        "[admin]\ntoken = \"sk-live-12345\"\n",
        "[admin]\ntoken = { env = 1, x = \"sk-live-12345\" }\n",
        "[providers.p]\nkind = \"openai\"\napi_key = \"sk-live-12345\"\n",
        "[providers]\np = { kind = \"openai\", keys = [\"sk-live-12345\"], bogus = 1 }\n",
        "[providers.p]\nkind = \"openai\"\nkeys = \"sk-live-12345\"\n",
        "[admin]\ntoken = { env = \"sk-live-12345\" }\n",
        "provider = { openai = { keys = [\"sk-live-12345\"] } }\n",
        "[providers]\np = [\"sk-live-12345\"]\n",
        "[store]\nurl = \"mysql://u:sk-live-12345@h/d\"\n",
    ] {
        for problem in bad(toml) {
            let shown = format!("{problem}{}", serde_json::to_string(&problem).unwrap());
            assert!(!shown.contains("12345"), "{toml}: {shown}");
            assert!(!problem.cure.is_empty());
        }
    }
}

#[test]
fn a_wrong_value_that_is_no_secret_is_shown() {
    let problem = only("[listen]\nhttp2 = \"yes\"\n");
    assert!(
        problem.to_string().contains("2 | http2 = \"yes\"\n"),
        "{problem}"
    );
}

#[test]
fn a_mark_at_the_start_of_the_file_does_no_harm() {
    assert_eq!(
        good("\u{feff}[routing]\nattempts = 2\n")
            .config
            .routing
            .attempts,
        2
    );
}

#[test]
fn lines_may_end_as_on_windows() {
    let problem = only("[routing]\r\nattempts = 0\r\n");
    assert_eq!(spot(&problem), ("routing.attempts", 2, 12));
    assert!(!problem.to_string().contains('\r'));
}

/// An empty catalogue: the shipped one takes most of the time of a check.
const NO_MODELS: [(&str, &str); 1] = [("WEIRGATE_MODELS__FILE", "/dev/null")];

proptest! {
    #[test]
    fn no_text_makes_the_check_fall_over(text in "\\PC*") {
        let _ = from_str(&text, env(&NO_MODELS));
    }

    #[test]
    fn no_value_of_a_known_key_makes_the_check_fall_over(
        key in "(listen|providers\\.p|graph|store|decisions|routing)\\.(address|keys|kind|levels|url|auto|tenants)",
        value in "(\"[^\"\\\\\\n]*\"|[0-9]{1,40}|\\[[0-9, ]*\\]|\\{ env = [0-9] \\}|true|[0-9]\\.[0-9]e[0-9]{1,4})",
    ) {
        let _ = from_str(&format!("{key} = {value}\n"), env(&NO_MODELS));
    }
}
