#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use super::*;
use crate::config::{Source, load};
use crate::models::providers::providers;

#[test]
fn the_shipped_catalogue_is_good_with_every_shipped_provider_on() {
    let keys = [
        "OPENAI",
        "ANTHROPIC",
        "GEMINI",
        "XAI",
        "GROQ",
        "DEEPSEEK",
        "MISTRAL",
        "TOGETHER",
        "FIREWORKS",
    ];
    let more = [
        "JINA",
        "TAVILY",
        "EXA",
        "OPENROUTER",
        "PERPLEXITY",
        "CEREBRAS",
        "MOONSHOT",
        "DASHSCOPE",
    ];
    let env = keys.iter().chain(&more);
    let env = env.map(|name| (format!("{name}_API_KEY"), "sk-1".to_owned()));
    let clouds = [
        ("AWS_BEARER_TOKEN_BEDROCK", "sk-1"),
        ("ANTHROPIC_AWS_API_KEY", "sk-1"),
        ("AZURE_OPENAI_API_KEY", "sk-1"),
        ("VERTEX_ACCESS_TOKEN", "sk-1"),
        (
            "WEIRGATE_PROVIDERS__AZURE__BASE_URL",
            "https://cloud.example",
        ),
        ("WEIRGATE_PROVIDERS__VERTEX__PROJECT", "my-project"),
        ("WEIRGATE_PROVIDERS__AWS_ANTHROPIC__WORKSPACE", "wrkspc_1"),
    ];
    let clouds = clouds.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let env = env.chain(clouds);
    let source = Source::Text {
        name: "weirgate.toml".into(),
        text: include_str!("../../conf/weirgate.toml").to_owned(),
    };
    let loaded = load(&source, env).unwrap_or_else(|bad| panic!("{bad:?}"));
    let on = loaded.config.providers.len();
    assert_eq!(
        on,
        keys.len() + more.len() + 5,
        "{:?}",
        loaded.config.off_providers
    );
    let catalog = load_catalog(&loaded.config).unwrap();
    assert!(catalog.models().len() > 80);
    let mappings = || catalog.models().iter().flat_map(|model| &model.mappings);
    let priced = mappings().filter(|mapping| mapping.prices.is_some());
    assert_eq!(priced.count(), catalog.mappings());
    let regional = mappings().flat_map(|mapping| &mapping.regions);
    assert!(regional.clone().count() > 10);
    assert!(regional.into_iter().all(|region| region.prices.is_some()));
}

/// Returns the planner of providers, each of which serves the models of these names.
fn planner(served: &[(&str, &[&str])], previous: Option<&Planner>) -> Planner {
    let tables = served.iter().map(|(name, _)| {
        let kind = "kind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"";
        format!("[providers.{name}]\n{kind}\nkeys = [{{ env = \"KEY\" }}]\n")
    });
    let source = Source::Text {
        name: "weirgate.toml".into(),
        text: tables.collect(),
    };
    let config = load(&source, [("KEY".to_owned(), "sk".to_owned())]);
    let config = config.unwrap_or_else(|bad| panic!("{bad:?}")).config;
    let models: std::collections::BTreeSet<&str> = served
        .iter()
        .flat_map(|(_, models)| *models)
        .copied()
        .collect();
    let models = models.into_iter().map(|model| {
        let serving = served.iter().filter(|(_, models)| models.contains(&model));
        let mappings = serving.map(|(name, _)| serde_json::json!({"provider": name, "name": "up"}));
        serde_json::json!({"id": model, "providers": mappings.collect::<Vec<_>>()})
    });
    let file = serde_json::json!({"models": models.collect::<Vec<_>>()});
    let file = serde_json::from_value(file).unwrap();
    let names = provider_names(enabled_providers(&config));
    let catalog = Catalog::check(file, names).unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let settings = (&config.routing, true);
    let configured = enabled_providers(&config);
    let before = previous.map_or(&[][..], |previous| &previous.providers);
    let providers = providers(configured, settings, (b"key", &metrics), before).unwrap();
    Planner::new(&config, &providers, catalog, &metrics, previous)
}

#[test]
fn a_candidate_keeps_its_measurements_whatever_comes_before_it() {
    let old = planner(&[("b", &["m"])], None);
    let place = |planner: &Planner, provider: &str, model: &str| {
        let mut candidates = planner.catalog.candidates().iter();
        let found =
            candidates.find(|it| *it.mapping.provider == *provider && *it.model.id == *model);
        found.unwrap().index
    };
    let running = old.begin_attempt(place(&old, "b", "m"), false, 0);
    let new = planner(&[("a", &["a", "m"]), ("b", &["m", "z"])], Some(&old));
    let known = || new.health.standing(place(&new, "b", "m"), 100).stats;
    assert_eq!((place(&old, "b", "m"), known()), (0, None));
    assert_ne!(place(&new, "b", "m"), 0);
    // The attempt of the old generation is measured for the new one.
    running.record_answer(None, 90);
    assert!(known().is_some());
    assert_eq!(new.health.standing(place(&new, "a", "m"), 100).stats, None);
    let without = planner(&[("a", &["m"])], Some(&new));
    let again = planner(&[("b", &["m"])], Some(&without));
    assert_eq!(again.health.standing(0, 100).stats, None, "it was removed");
}

#[test]
fn a_provider_stands_as_its_candidates_do_together() {
    let planner = planner(&[("a", &["m", "n"]), ("b", &["m"]), ("c", &[])], None);
    let of_a = planner.catalog.candidates().iter();
    let of_a: Vec<usize> = of_a
        .filter(|it| *it.mapping.provider == *"a")
        .map(|it| it.index)
        .collect();
    for _ in 0..3 {
        let attempt = planner.begin_attempt(of_a[0], false, 10);
        attempt.record_failure(20);
    }
    planner
        .begin_attempt(of_a[1], true, 10)
        .record_answer(Some(90.0), 510);
    let standings = planner.standings(600, PricePoint::default());
    let shown = standings
        .iter()
        .map(|it| (&*it.name, it.candidates, it.resting));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [("a", 2, 1), ("b", 1, 0), ("c", 0, 0)]
    );
    let uptime = standings[0].stats.unwrap().uptime;
    assert!(uptime > 0.0 && uptime < 100.0, "{uptime}");
    assert_eq!((standings[1].stats, standings[1].input), (None, None));
}
