//! The shipped file and the table of keys agree.

use std::collections::BTreeSet;
use std::sync::Arc;

use filters::models::operation::Operation;
use filters::models::parameter::Parameter;
use filters::models::request::Effort;
use filters::models::routing::CatalogFile;
use filters::models::routing::catalog::Catalog;

use super::*;
use crate::config::checked::provider_names;

/// Compiled in, so that the test does not depend on the working directory.
const SHIPPED: &str = include_str!("../../../conf/weirgate.toml");

/// The shipped file with every option set.
fn uncommented() -> String {
    let is_option = |line: &str| {
        line.strip_prefix('#').is_some_and(|rest| {
            rest.starts_with(|first: char| first == '[' || first.is_ascii_lowercase())
        })
    };
    let line = |line: &str| {
        if is_option(line) {
            line[1..].to_owned()
        } else {
            line.to_owned()
        }
    };
    SHIPPED.lines().map(|text| line(text) + "\n").collect()
}

/// The catalogue's format is not part of the configuration.
fn without_catalogue(text: &str) -> String {
    text.replace("file = \"conf/models.toml\"\n", "")
}

/// All keys of a schema. Free names and places in a list are `*`.
fn keys(schema: &Json, key: &str, all: &mut BTreeSet<String>) {
    let any = |name: &str| {
        if key.is_empty() {
            name.to_owned()
        } else {
            format!("{key}.{name}")
        }
    };
    if let Some(known) = schema.get("properties").and_then(Json::as_object) {
        for (name, inner) in known {
            keys(inner, &any(name), all);
        }
    } else if let Some(inner) = schema
        .get("additionalProperties")
        .filter(|inner| inner.is_object())
    {
        keys(inner, &any("*"), all);
    } else if let Some(inner) = schema
        .get("items")
        .filter(|inner| inner.get("properties").is_some())
    {
        keys(inner, &any("*"), all);
    } else {
        all.insert(key.to_owned());
    }
}

/// All keys of a document, with the free names of `schema` as `*`.
fn used(value: &toml::Value, schema: &Json, key: &str, all: &mut BTreeSet<String>) {
    let any = |name: &str| {
        if key.is_empty() {
            name.to_owned()
        } else {
            format!("{key}.{name}")
        }
    };
    let known = schema.get("properties");
    match value {
        toml::Value::Table(table) if known.is_some() => {
            for (name, value) in table {
                let inner = known.and_then(|known| known.get(name));
                used(value, inner.unwrap_or(&Json::Null), &any(name), all);
            }
        }
        toml::Value::Table(table) if schema["additionalProperties"].is_object() => {
            for value in table.values() {
                used(value, &schema["additionalProperties"], &any("*"), all);
            }
        }
        toml::Value::Array(items) if schema["items"]["properties"].is_object() => {
            for value in items {
                used(value, &schema["items"], &any("*"), all);
            }
        }
        _ => {
            all.insert(key.to_owned());
        }
    }
}

#[test]
fn the_shipped_file_is_good_without_a_single_key() {
    let loaded = good(&without_catalogue(SHIPPED));
    let on: Vec<_> = loaded
        .config
        .providers
        .iter()
        .map(|on| on.name.as_str())
        .collect();
    assert_eq!(on, ["sandbox"]);
    assert_eq!(loaded.config.off_providers.len(), 24);
}

#[test]
fn the_usual_variables_switch_the_shipped_providers_on() {
    let names = [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "XAI_API_KEY",
        "GROQ_API_KEY",
        "DEEPSEEK_API_KEY",
        "MISTRAL_API_KEY",
        "JINA_API_KEY",
        "TOGETHER_API_KEY",
        "FIREWORKS_API_KEY",
        "OPENROUTER_API_KEY",
        "PERPLEXITY_API_KEY",
        "CEREBRAS_API_KEY",
        "MOONSHOT_API_KEY",
        "ZAI_API_KEY",
        "DASHSCOPE_API_KEY",
        "COHERE_API_KEY",
        "VOYAGE_API_KEY",
        "TAVILY_API_KEY",
        "EXA_API_KEY",
        "AWS_BEARER_TOKEN_BEDROCK",
    ];
    let pairs: Vec<_> = names.iter().map(|name| (*name, "k")).collect();
    let loaded = good_with(&without_catalogue(SHIPPED), &pairs);
    assert_eq!(loaded.config.providers.len(), 22);
}

#[test]
fn every_option_of_the_shipped_file_is_accepted_when_set() {
    let names = [
        "WEIRGATE_ADMIN_TOKEN",
        "WEIRGATE_OTLP_AUTHORIZATION",
        "WEIRGATE_TOKEN_KEY",
        "LOG_EXPORT_KEY_ID",
        "LOG_EXPORT_KEY",
        "LOG_EXPORT_TOKEN",
    ];
    let pairs = names.map(|name| (name, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="));
    let text = without_catalogue(&uncommented())
        .replace(
            "secret = { file = \"weirgate-secret\" }",
            "secret = { env = \"WEIRGATE_TOKEN_KEY\" }",
        )
        // Keys of one kind of log export stand for all.
        .replace("url = \"http://localhost:8123\"\n", "")
        .replace("database = \"default\"\ntable = \"weirgate_calls\"\n", "")
        .replace(
            "user = \"default\"\npassword = { file = \"clickhouse-password\" }\n",
            "",
        )
        .replace("folder = \"/var/lib/weirgate/calls\"\n", "")
        // It stands in place of keys.
        .replace("credentials = \"aws\"\n", "")
        // These files do not exist here.
        .replace("tls = { cert = \"cert.pem\", key = \"key.pem\" }\n", "");
    good_with(&text, &pairs);
}

#[test]
fn every_key_stands_in_the_shipped_file_and_no_other() {
    let schema = schema();
    let (mut known, mut shipped) = (BTreeSet::new(), BTreeSet::new());
    keys(&schema, "", &mut known);
    let document = toml::Value::Table(toml::from_str(&uncommented()).unwrap());
    used(&document, &schema, "", &mut shipped);
    let missing: Vec<_> = known.difference(&shipped).collect();
    let foreign: Vec<_> = shipped.difference(&known).collect();
    assert_eq!((missing, foreign), (vec![], vec![]));
}

#[test]
fn a_value_that_is_shipped_for_a_section_of_scalars_is_its_default() {
    let examples = [
        "routing.auto",
        "routing.auto_images",
        "graph.upstream",
        "decisions.token_keys",
    ];
    let schema = schema();
    let document: toml::Value = toml::Value::Table(toml::from_str(&uncommented()).unwrap());
    let mut compared = 0;
    for (section, table) in document.as_table().unwrap() {
        let Some(known) = schema["properties"][section]["properties"].as_object() else {
            continue;
        };
        for (name, value) in table.as_table().unwrap() {
            let default = &known[name]["default"];
            let is_plain = !(default.is_null() || default.is_object() || value.is_array());
            if is_plain && !examples.contains(&format!("{section}.{name}").as_str()) {
                let shipped = serde_json::to_value(value).unwrap();
                let same = shipped == *default
                    || shipped
                        .as_f64()
                        .is_some_and(|number| default.as_f64() == Some(number));
                assert!(
                    same,
                    "{section}.{name}: shipped {shipped}, default {default}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn every_key_is_documented() {
    /// Returns the number of keys.
    fn walk(schema: &Json, key: &str) -> usize {
        let known = schema.get("properties").and_then(Json::as_object);
        let mut seen = 0;
        for (name, inner) in known.into_iter().flatten() {
            let key = format!("{key}.{name}");
            assert!(inner["description"].is_string(), "{key} has no description");
            let inside = [inner, &inner["items"], &inner["additionalProperties"]];
            seen += 1 + inside.map(|inner| walk(inner, &key)).iter().sum::<usize>();
        }
        seen
    }
    let seen = walk(&schema(), "");
    assert!(seen > 100, "{seen}");
}

/// A configuration of the days before regions does not have to learn of them.
#[test]
fn the_shipped_catalogue_is_good_for_a_provider_without_regions() {
    let catalogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/models.toml");
    let toml = format!(
        "[models]\nfile = {:?}\n[providers.openai]\nkind = \"openai\"\nkeys = [{{ env = \"K\" }}]\n",
        catalogue.display().to_string()
    );
    let loaded = good_with(&toml, &[("K", "sk-1")]);
    let catalog = loaded.config.models.catalog.as_ref().unwrap();
    let mappings = || catalog.models.iter().flat_map(|model| &model.providers);
    let regional = |provider: &str| {
        let of_it = mappings().filter(|mapping| mapping.provider == provider);
        of_it.flat_map(|mapping| &mapping.regions).count()
    };
    assert_eq!(regional("openai"), 0);
    let warned = warned(&loaded);
    let of_regions = warned.iter().filter(|(key, _)| key.ends_with(".regions"));
    let messages: Vec<&str> = of_regions.map(|(_, message)| *message).collect();
    let [message] = messages[..] else {
        panic!("{warned:?}");
    };
    let expected =
        "provider \"openai\" has no address for its regions, so they are not offered: eu, us (";
    assert!(message.starts_with(expected), "{message}");
}

/// Source: model-gateway 2.1: `effort` and `sensitive_word_check` reach a model, and every effort does.
#[test]
fn the_shipped_catalogue_has_models_that_take_what_few_vendors_know() {
    let catalogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/models.toml");
    let models = format!("file = {:?}", catalogue.display().to_string());
    let toml = SHIPPED.replace("file = \"conf/models.toml\"", &models);
    let keys = ["ANTHROPIC", "GEMINI", "DEEPSEEK", "ZAI"].map(|name| format!("{name}_API_KEY"));
    let pairs: Vec<_> = keys.iter().map(|name| (name.as_str(), "k")).collect();
    let config = good_with(&toml, &pairs).config;
    let names = provider_names(config.providers.iter());
    let file = config.models.catalog.clone().unwrap();
    let catalog = Catalog::check(file, names).unwrap();
    let of = |provider: &str, parameter: Parameter| -> Vec<&str> {
        let mappings = catalog.models().iter().flat_map(|model| &model.mappings);
        let of_it = mappings.filter(|mapping| &*mapping.provider == provider);
        of_it
            .filter(|mapping| mapping.parameters.supports(parameter))
            .map(|mapping| &*mapping.name)
            .collect()
    };
    let efforts = of("anthropic", Parameter::Effort);
    assert!(
        efforts.len() > 10 && efforts.contains(&"claude-opus-4-5"),
        "{efforts:?}"
    );
    for deaf in ["claude-sonnet-4-5", "claude-haiku-4-5"] {
        assert!(!efforts.contains(&deaf), "{deaf}");
    }
    assert!(of("zai", Parameter::SensitiveWordCheck).contains(&"glm-5.3"));
    let mapping = |model: &str| Arc::clone(&catalog.find(model).unwrap().mappings[0]);
    for model in [
        "claude-opus-4-5",
        "gemini-2.5-pro",
        "gemini-2.5-flash",
        "gemini-2.5-flash-lite",
    ] {
        assert_eq!(mapping(model).thinking.efforts, Effort::ALL, "{model}");
    }
    let off = |model| mapping(model).thinking.budget(Effort::None);
    assert_eq!(
        [
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            "gemini-2.5-flash-lite"
        ]
        .map(off),
        [Some(128), None, None]
    );
    assert!(mapping("deepseek-v4-pro").thinking.takes_words());
}

#[test]
fn every_operation_is_named_where_operations_are_explained() {
    let error = serde_json::from_str::<Operation>("\"none\"").unwrap_err();
    let error = error.to_string();
    let (_, expected) = error.split_once("expected one of ").unwrap();
    // The words between backticks.
    let words = |text: &str| -> BTreeSet<String> {
        text.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let expected = words(expected);
    assert!(
        expected.len() > 12 && expected.contains("ocr"),
        "{expected:?}"
    );
    for (page, before) in [
        (
            "conf/models.toml",
            "`operations` says it outright, as a list of ",
        ),
        ("docs/interface.md", "\n`operations` is a list of "),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
        let text = std::fs::read_to_string(path).unwrap();
        let (_, list) = text.split_once(before).unwrap_or_else(|| panic!("{page}"));
        let (list, _) = list.split_once('.').unwrap();
        assert_eq!(words(list), expected, "{page}");
    }
    let schema = schema::make_schema::<CatalogFile>();
    let models = &schema["properties"]["models"]["items"]["properties"];
    let accepted = models["operations"]["items"]["enum"].as_array().unwrap();
    let accepted = accepted
        .iter()
        .map(|word| word.as_str().unwrap().to_owned());
    assert_eq!(accepted.collect::<BTreeSet<_>>(), expected);
}

/// Source: model-gateway 9.4: deprecations are announced in a changelog.
#[test]
fn the_changelog_announces_each_deactivation_of_the_shipped_catalogue() {
    let catalogue: CatalogFile = toml::from_str(include_str!("../../../conf/models.toml")).unwrap();
    let changelog = include_str!("../../../CHANGELOG.md");
    let mut announced = 0;
    for model in &catalogue.models {
        for mapping in &model.providers {
            let Some(date) = &mapping.deactivated_at else {
                continue;
            };
            let line = format!("| {} | `{}` | {} |", date.0, model.id, mapping.provider);
            assert!(changelog.contains(&line), "missing in CHANGELOG.md: {line}");
            announced += 1;
        }
    }
    assert!(announced > 20, "{announced}");
}
