#![allow(clippy::unwrap_used, reason = "tests")]

use filters::models::routing::CatalogFile;

use super::*;
use crate::config;

/// 2026-11-01.
const NOW_S: u64 = 1_793_491_200;

fn warnings(models: &str) -> Vec<String> {
    let toml = "[providers.on]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\nkeys = []\n";
    let loaded = config::from_str(toml, []).unwrap_or_else(|bad| panic!("{}", bad[0]));
    let mut config = loaded.config;
    let file: CatalogFile = toml::from_str(models).unwrap();
    config.models.catalog = Ok(file);
    find(&config, NOW_S)
        .into_iter()
        .map(|problem| format!("{}: {}; {}", problem.key, problem.message, problem.cure))
        .collect()
}

fn model(provider: &str, date: &str) -> String {
    format!(
        "[[models]]\nid = \"m\"\n[[models.providers]]\nprovider = \"{provider}\"\nname = \"m-1\"\ndeactivated_at = {date}\n"
    )
}

/// Source: model-gateway 9.4.
#[test]
fn the_check_warns_a_month_before_a_deactivation() {
    let [warning] = &warnings(&model("on", "2026-12-01"))[..] else {
        panic!("one warning");
    };
    let expected =
        "models[0].providers[0].deactivated_at: on deactivates m on 2026-12-01, in 30 days; ";
    assert!(warning.starts_with(expected), "{warning}");
    for (provider, date) in [
        ("on", "2026-12-03"),
        ("on", "2026-10-31"),
        ("off", "2026-12-01"),
    ] {
        assert!(
            warnings(&model(provider, date)).is_empty(),
            "{provider} {date}"
        );
    }
}

#[test]
fn the_warning_names_the_successor() {
    let models = model("on", "2026-11-02").replace("id = \"m\"", "id = \"m\"\nsuccessor = \"n\"");
    assert!(warnings(&models)[0].ends_with("move its callers to n"));
}
