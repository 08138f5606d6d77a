#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use filters::models::wires::{Failure, FailureKind};

use super::*;
use crate::config::{Config, Source, load};

const USUAL: &str =
    "[providers.mine]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";

fn config(more: &str, environment: &[(&str, &str)]) -> Config {
    let text = format!("{USUAL}{more}");
    let name = "weirgate.toml".into();
    let env = environment.iter();
    let env = env.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    load(&Source::Text { name, text }, env).unwrap().config
}

fn built(config: &Config, previous: &[Arc<Provider>]) -> Arc<[Arc<Provider>]> {
    let metrics = Metrics::new().unwrap();
    let settings = (&config.routing, config.media.fetch);
    let own = config.providers.iter().filter(|it| it.name == "mine");
    providers(own, settings, (b"key", &metrics), previous).unwrap()
}

fn keys(count: usize) -> String {
    let keys = (0..count).map(|at| format!("{{ env = \"KEY_{at}\" }}"));
    format!("keys = [{}]\n", keys.collect::<Vec<_>>().join(", "))
}

const ENVIRONMENT: [(&str, &str); 2] = [("KEY_0", "sk-0"), ("KEY_1", "sk-1")];

#[test]
fn a_provider_of_which_nothing_changes_is_the_same() {
    let old = built(&config(&keys(1), &ENVIRONMENT), &[]);
    let unrelated = "[limits]\nin_flight = 7\n";
    let new = built(
        &config(&format!("{}{unrelated}", keys(1)), &ENVIRONMENT),
        &old,
    );
    assert!(Arc::ptr_eq(&old[0], &new[0]));
    let slower = "[routing]\nconnect_timeout_s = 9\n";
    let other = built(&config(&format!("{}{slower}", keys(1)), &ENVIRONMENT), &old);
    assert!(!Arc::ptr_eq(
        &old[0].home.endpoints,
        &other[0].home.endpoints
    ));
    let secret = Secret::new("sk-0");
    let key = |built: &[Arc<Provider>]| {
        let found = built[0].home.keys.find_secret(Some(&secret));
        Arc::clone(found.unwrap())
    };
    assert!(Arc::ptr_eq(&key(&other), &key(&old)));
}

#[test]
fn of_a_changed_provider_addresses_and_unchanged_keys_go_on() {
    let old = built(&config(&keys(1), &ENVIRONMENT), &[]);
    let refused = Failure::new(FailureKind::Status(401));
    old[0].home.keys.get(0).unwrap().record_failure(&refused, 0);
    let more = format!("{}priority = 2.0\n", keys(2));
    let new = built(&config(&more, &ENVIRONMENT), &old);
    assert!(Arc::ptr_eq(&old[0].home.endpoints, &new[0].home.endpoints));
    assert!((new[0].priority - 2.0).abs() < f64::EPSILON);
    let pool = &new[0].home.keys;
    assert_eq!(pool.len(), 2);
    assert!(
        (0..4).all(|_| pool.pick(0, 0, 1) == 1),
        "the first one rests"
    );
    let rotated = [("KEY_0", "sk-2"), ENVIRONMENT[1]];
    let rotated = built(&config(&keys(1), &rotated), &new);
    assert!(!rotated[0].home.keys.get(0).unwrap().rests(0, 1));
}

#[test]
fn a_key_has_a_header_for_each_way_in_which_its_provider_takes_it() {
    let old = built(&config(&keys(1), &ENVIRONMENT), &[]);
    let changed = format!("{}auth_header = \"x-key\"\n", keys(1));
    let new = built(&config(&changed, &ENVIRONMENT), &old);
    // The key of a caller lives longer than the configuration.
    let key = Credential::new(Secret::new("sk-own"), b"key", None);
    let name = |provider: &Provider| provider.credential(&key).unwrap().unwrap().0.clone();
    for _ in 0..2 {
        assert_eq!(name(&old[0]), "authorization");
        assert_eq!(name(&new[0]), "x-key");
    }
}
