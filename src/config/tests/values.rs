//! The checked values.

use filters::accounts::Plan;
use filters::limits::QuotaGroup;
use filters::money::Usd;
use filters::money::allowance::Allowance;

use super::*;

/// 32 bytes.
const PEPPER: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn an_empty_file_gives_the_documented_defaults() {
    let config = good("").config;
    assert_eq!(config.listen.address.to_string(), "127.0.0.1:8080");
    assert_eq!(config.admin.address.to_string(), "127.0.0.1:8081");
    assert_eq!(config.store.url, "sqlite:var/weirgate.db");
    assert_eq!(config.limits.in_flight, 1000);
    assert_eq!(config.limits.body_bytes.chat, 20_971_520);
    let limits = config.limits.requests_per_minute.limits();
    assert!(limits.iter().all(|(_, limit)| limit.is_built_in));
    assert_eq!(config.server.grace_period, Duration::from_secs(900));
    assert!(config.models.require_key);
    assert!(config.providers.is_empty());
}

#[test]
fn threads_are_as_many_as_cores_unless_told() {
    assert!(good("").config.server.worker_threads() >= 1);
    assert_eq!(good("[server]\nthreads = 7\n").config.server.threads, 7);
}

#[test]
fn the_upgrade_socket_is_in_the_folder_of_state_unless_told() {
    let path = |text: &str| good(text).config.upgrade_socket();
    assert_eq!(path(""), Path::new("var/control.sock"));
    let state = "[store]\nstate_dir = \"/srv/w\"\n";
    assert_eq!(path(state), Path::new("/srv/w/control.sock"));
    let told = format!("{state}[server]\nupgrade_socket = \"/run/w.sock\"\n");
    assert_eq!(path(&told), Path::new("/run/w.sock"));
}

/// Source: model-gateway 8.1
#[test]
fn limits_are_shown_as_they_are_in_force() {
    let toml = "[limits]\nrequests_per_minute = { chat = 6, images = 0, translations = 2 }\n";
    let loaded = good(toml);
    let shown = |group: &str| {
        let key = format!("limits.requests_per_minute.{group}");
        loaded.origins.value(&key).unwrap().as_u64().unwrap()
    };
    let groups = ["chat", "decision", "images", "image_edits", "audio"];
    assert_eq!(groups.map(shown), [6, 6, 0, 0, 300]);
    let spoken = ["transcriptions", "translations"];
    assert_eq!(spoken.map(shown), [300, 2]);
    for (group, limit) in loaded.config.limits.requests_per_minute.limits() {
        assert_eq!(limit.per_minute, shown(group.as_str()), "{group:?}");
    }
}

/// Source: model-gateway 8.1
#[test]
fn each_group_is_a_key_with_its_built_in_limit() {
    let schema = schema();
    let of_limits = &schema["properties"]["limits"]["properties"];
    let known = &of_limits["requests_per_minute"]["properties"];
    let known = known.as_object().unwrap();
    assert_eq!(known.len(), QuotaGroup::ALL.len());
    for group in QuotaGroup::ALL {
        let limit = group.limit(|_| None).per_minute;
        assert_eq!(known[group.as_str()]["default"], limit, "{group:?}");
    }
}

#[test]
fn a_group_that_does_not_exist_is_refused() {
    let problem = only("[limits]\nrequests_per_minute = { embedding = 6 }\n");
    assert_eq!(problem.cure, "did you mean embeddings?");
}

#[test]
fn the_state_folder_is_beside_the_store_unless_told() {
    let folder = |toml: &str, pairs: &[(&str, &str)]| {
        good_with(toml, pairs)
            .config
            .store
            .state_dir
            .display()
            .to_string()
    };
    let state = ("STATE_DIRECTORY", "/var/lib/weirgate:/other");
    assert_eq!(folder("", &[state]), "var");
    assert_eq!(
        folder("[store]\nurl = \"sqlite:///a/b/c.db\"\n", &[]),
        "/a/b"
    );
    assert_eq!(
        folder("[store]\nurl = \"sqlite:c.db?mode=rwc\"\n", &[]),
        "."
    );
    assert_eq!(
        folder("[store]\nurl = \"sqlite::memory:\"\n", &[state]),
        "/var/lib/weirgate"
    );
    assert_eq!(folder("[store]\nstate_dir = \"s\"\n", &[state]), "s");
    let postgres = "[store]\nurl = \"postgres://u@h/d\"\nsecret = { env = \"S\" }\n";
    assert_eq!(
        folder(postgres, &[state, ("S", PEPPER)]),
        "/var/lib/weirgate"
    );
    assert_eq!(folder(postgres, &[("S", PEPPER)]), "var");
}

#[test]
fn a_secret_that_is_asked_for_must_be_there() {
    let toml = "[store]\nsecret = { env = \"S\" }\n";
    assert_eq!(only(toml).message, "S is not set");
    assert_eq!(
        good_with(toml, &[("S", PEPPER)])
            .config
            .store
            .secret
            .unwrap()
            .expose(),
        PEPPER.as_bytes()
    );
}

#[test]
fn a_pepper_below_32_bytes_is_refused() {
    let toml = "[store]\nsecret = { env = \"S\" }\n";
    let problems = bad_with(toml, &[("S", "0123456789abcdef0123456789abcde")]);
    assert_eq!(problems[0].key, "store.secret");
}

#[test]
fn a_token_key_below_32_bytes_is_refused() {
    let toml = "[decisions]\ntoken_keys = [{ env = \"K\" }]\n\
                [[decisions.clients]]\nid = \"a\"\nsecret_hash = \"x\"\nsdk_keys = [\"k\"]\n";
    let problems = bad_with(
        toml,
        &[("K", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZQ==")],
    );
    assert_eq!(problems[0].key, "decisions.token_keys[0]");
    assert!(problems[0].message.contains("31 bytes"), "{problems:?}");
    good_with(
        toml,
        &[("K", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")],
    );
}

#[test]
fn the_client_header_is_believed_from_the_trusted_alone() {
    let toml = "[listen]\nclient_ip_header = \"CF-Connecting-IP\"\n";
    let loaded = good(toml);
    assert_eq!(
        loaded.config.listen.client_ip_header.as_ref().unwrap(),
        "cf-connecting-ip"
    );
    assert!(
        warned(&loaded)
            .iter()
            .any(|(key, _)| *key == "listen.client_ip_header")
    );
    let loaded = good(&format!("{toml}trusted_proxies = [\"10.0.0.0/8\"]\n"));
    assert!(loaded.config.listen.trusted_proxies[0].contains("10.1.2.3".parse().unwrap()));
}

#[test]
fn an_amount_of_money_keeps_the_digits_that_were_written() {
    let loaded = good("[plans.pro]\ncycle_usd = 20.10\n[plans.max]\ncycle_usd = 200\n");
    assert_eq!(
        loaded.origins.value("plans.pro.cycle_usd").unwrap(),
        "20.10"
    );
    assert_eq!(loaded.origins.value("plans.max.cycle_usd").unwrap(), "200");
}

#[test]
fn a_plan_has_what_is_configured_and_for_the_rest_what_is_built_in() {
    let usd = |text| Usd::parse(text).unwrap();
    let plans = good("").config.plans;
    let shares = |of: Allowance| [of.cycle, of.weekly_premium, of.daily];
    assert_eq!(shares(plans.lite), ["87", "8.7", "6.96"].map(usd));
    assert_eq!(shares(plans.pro), ["237", "28.44", "21.33"].map(usd));
    assert_eq!(shares(plans.max), ["537", "80.55", "53.7"].map(usd));
    let toml = "[plans.pro]\ncycle_usd = \"20.10\"\ndaily_pct = 12.5\n[plans.max]\ndaily_pct = 0\n";
    let plans = good(toml).config.plans;
    assert_eq!(shares(plans.pro), ["20.10", "2.412", "2.5125"].map(usd));
    assert_eq!(shares(plans.max), ["537", "80.55", "0"].map(usd));
    assert_eq!(plans.allowance(Plan::None), None);
    let loaded = good("[plans.none]\ndaily_pct = 1\n");
    assert!(warned(&loaded).iter().any(|(key, _)| *key == "plans.none"));
}

#[test]
fn a_catalogue_that_exists_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.toml");
    std::fs::write(&path, "").unwrap();
    let loaded = good(&format!("[models]\nfile = {path:?}\n"));
    assert_eq!(loaded.config.models.file, Some(path));
}

#[test]
fn a_file_is_found_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.toml");
    std::fs::write(&path, "[routing]\nattempts = 2\n").unwrap();
    let source = Source::find(Some(&path));
    assert_eq!(load(&source, []).ok().unwrap().config.routing.attempts, 2);
}

#[test]
fn passwords_are_not_shown() {
    let toml = "[shared]\nredis = \"redis://:hush@h:6379/0\"\n";
    let loaded = good(toml);
    assert_eq!(
        loaded.origins.value("shared.redis").unwrap(),
        "redis://:***@h:6379/0"
    );
}

#[test]
fn without_a_file_there_is_a_warning_and_every_key_is_default() {
    let loaded = load(&Source::Defaults, []).ok().unwrap();
    assert!(
        loaded
            .warnings
            .iter()
            .any(|warning| warning.message.contains("no configuration file"))
    );
    assert!(
        loaded
            .origins
            .iter()
            .all(|(_, _, origin)| *origin == ValueSource::Default)
    );
}
