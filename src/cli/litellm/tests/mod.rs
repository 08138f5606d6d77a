//! Configurations of the other gateway, and what becomes of them.
//!
//! `NAME.yaml` is a configuration, the folder `NAME` has the files that are written and `findings.txt`. After a wanted change:
//! `WRITE_GOLDEN=1 cargo test --lib litellm::tests`, and read the difference.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use std::fmt::Write as _;

use filters::models::operation::Operation;
use filters::models::routing::catalog::Catalog;
use filters::models::routing::resolve::resolve;

use super::*;
use crate::config::LoadedConfig;

const NAMES: [&str; 5] = ["simple", "azure", "clouds", "teams", "wildcards"];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/litellm/tests")
}

/// What the process of the import has: places, and no secret.
fn environment() -> BTreeMap<String, String> {
    let pairs = [("AZURE_API_BASE", "https://acme-main.openai.azure.com")];
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

fn imported(name: &str) -> ImportedFiles {
    let bytes = std::fs::read(fixtures().join(format!("{name}.yaml"))).unwrap();
    translate(&bytes, &environment(), "weirgate-import/models.toml").unwrap()
}

fn from_text(yaml: &str) -> ImportedFiles {
    translate(yaml.as_bytes(), &environment(), "models.toml").unwrap()
}

fn told(findings: &[ImportFinding]) -> String {
    let mut text = String::new();
    for finding in findings {
        writeln!(
            text,
            "{}: {}: {} ({}): {}\n  = cure: {}",
            finding.line,
            finding.path,
            finding.outcome.words(),
            finding.kind,
            finding.what,
            finding.cure
        )
        .unwrap();
    }
    text
}

/// Loads what was imported, with a value for each variable that it names.
fn loaded(imported: &ImportedFiles) -> LoadedConfig {
    let folder = tempfile::tempdir().unwrap();
    let catalog = folder.path().join("models.toml");
    std::fs::write(&catalog, &imported.catalog).unwrap();
    let config: Table = toml::from_str(&imported.config).unwrap();
    let written = config["models"]["file"].as_str().unwrap();
    let text = imported.config.replace(written, catalog.to_str().unwrap());
    let named = imported.config.split("env = \"").skip(1);
    let mut variables: BTreeMap<String, String> = named
        .map(|rest| {
            (
                rest.split('"').next().unwrap().to_owned(),
                "a-key".to_owned(),
            )
        })
        .collect();
    let clouds = [
        ("AZURE_TENANT_ID", "t"),
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_CLIENT_SECRET", "s"),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
    ];
    variables.extend(clouds.map(|(name, value)| (name.to_owned(), value.to_owned())));
    match config::from_str(&text, variables) {
        Ok(loaded) => loaded,
        Err(problems) => {
            let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
            panic!("{text}\n{}", shown.join("\n"));
        }
    }
}

#[test]
fn each_configuration_becomes_the_expected_files_and_findings() {
    let mut differing = Vec::new();
    for name in NAMES {
        let imported = imported(name);
        let files = [
            ("weirgate.toml", imported.config.clone()),
            ("models.toml", imported.catalog.clone()),
            ("accounts.toml", imported.accounts.clone()),
            ("findings.txt", told(&imported.findings)),
        ];
        for (file, text) in files {
            let path = fixtures().join(name).join(file);
            if std::env::var_os("WRITE_GOLDEN").is_some() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            if std::fs::read_to_string(&path).unwrap_or_default() != text {
                differing.push(format!("{name}/{file}:\n{text}"));
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn what_is_written_is_accepted_without_a_warning() {
    for name in NAMES {
        let loaded = loaded(&imported(name));
        let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, Vec::<String>::new(), "{name}");
        let catalog = loaded.config.models.catalog.as_ref();
        assert!(
            catalog.is_ok_and(|catalog| !catalog.models.is_empty()),
            "{name}"
        );
        assert_eq!(loaded.config.off_providers.len(), 0, "{name}");
    }
}

#[test]
fn the_accounts_are_a_file_that_can_be_applied() {
    for name in NAMES {
        let accounts = imported(name).accounts;
        let read = config::read_accounts("accounts.toml", &accounts, Path::new(""), &environment());
        let problems = read.err().unwrap_or_default();
        let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(shown, Vec::<String>::new(), "{name}:\n{accounts}");
    }
}

#[test]
fn every_name_of_the_input_is_a_model() {
    for (name, asked) in [
        (
            "simple",
            &["gpt-5-mini", "claude", "local-llama", "hello"][..],
        ),
        ("azure", &["gpt-5", "small", "claude"]),
        (
            "clouds",
            &[
                "nova",
                "claude-on-aws",
                "profile",
                "gemini",
                "claude-on-vertex",
                "llama-on-vertex",
            ],
        ),
        ("teams", &["gpt-5-mini", "guarded"]),
        (
            "wildcards",
            &[
                "openai/gpt-5",
                "groq/llama-3.3-70b-versatile",
                "house/anything",
                "anthropic/claude-best",
                "gpt-3.5-turbo",
                "gpt-4",
                "opus",
                "anthropic/opus",
                "mini",
                "strange/one",
                "team-blue",
            ],
        ),
    ] {
        let loaded = loaded(&imported(name));
        let providers = config::provider_names(loaded.config.providers.iter());
        let names = loaded.config.providers.iter();
        let on = providers.set(names.map(|provider| provider.name.as_str()));
        let file = loaded.config.models.catalog.unwrap();
        let catalog = Catalog::check(file, providers).unwrap();
        for asked in asked {
            let found = resolve(asked, Operation::Chat, &catalog, &on, &[], 1_790_000_000);
            let asked = format!("{name}: {asked}");
            assert!(
                found.is_ok_and(|found| !found.candidates.is_empty()),
                "{asked}"
            );
        }
    }
}

#[test]
fn no_secret_is_written_or_told() {
    for name in NAMES {
        let imported = imported(name);
        let all = [
            &imported.config,
            &imported.catalog,
            &imported.accounts,
            &told(&imported.findings),
        ];
        for text in all {
            assert!(!text.contains("hunter2"), "{name}:\n{text}");
        }
    }
}

#[test]
fn each_field_is_taken_over_or_told() {
    let fields = [
        "litellm_params: {model: openai/gpt-5, never_heard_of: 1}",
        "litellm_params: {model: openai/gpt-5}\n    model_info: {never_heard_of: 1}",
        "litellm_params: {model: openai/gpt-5}\n    never_heard_of: 1",
        "litellm_params: {model: openai/gpt-5}\nrouter_settings: {never_heard_of: 1}",
        "litellm_params: {model: openai/gpt-5}\nlitellm_settings: {never_heard_of: 1}",
        "litellm_params: {model: openai/gpt-5}\ngeneral_settings: {never_heard_of: 1}",
        "litellm_params: {model: openai/gpt-5}\nlitellm_settings: {cache: true, cache_params: {type: local, ttl: 5, never_heard_of: 1}}",
        "litellm_params: {model: openai/gpt-5}\nnever_heard_of: 1",
    ];
    for rest in fields {
        let imported = from_text(&format!("model_list:\n  - model_name: m\n    {rest}\n"));
        let paths: Vec<_> = imported
            .findings
            .iter()
            .map(|it| it.path.as_str())
            .collect();
        assert_eq!(paths.len(), 1, "{rest}: {paths:?}");
        assert!(paths[0].ends_with("never_heard_of"), "{paths:?}");
        assert_eq!(imported.findings[0].kind, "number");
    }
}

#[test]
fn a_cycle_of_fallbacks_ends_and_each_model_keeps_its_own_first() {
    let yaml = "\
model_list:
  - {model_name: a, litellm_params: {model: openai/gpt-5}}
  - {model_name: b, litellm_params: {model: groq/gpt-oss-120b}}
router_settings:
  fallbacks: [{a: [b, a]}, {b: [a]}]
";
    let imported = from_text(yaml);
    let catalog: Table = toml::from_str(&imported.catalog).unwrap();
    let served = |at: usize| {
        let mappings = catalog["models"][at]["providers"].as_array().unwrap();
        let names = mappings
            .iter()
            .map(|mapping| mapping["provider"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(served(0), ["openai", "groq-fallback"]);
    assert_eq!(served(1), ["groq", "openai-fallback"]);
    let config: Table = toml::from_str(&imported.config).unwrap();
    let priority = |name: &str| config["providers"][name]["priority"].as_integer().unwrap();
    assert!(priority("openai") > priority("openai-fallback"));
    assert_eq!(config["routing"]["exploration"].as_integer(), Some(0));
}

#[test]
fn hostile_input_is_refused_with_a_place_and_a_cure() {
    let bomb = format!(
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n{}",
        ('b'..='i')
            .map(|name| {
                let before = char::from(name as u8 - 1);
                let aliases = vec![format!("*{before}"); 10].join(", ");
                format!("{name}: &{name} [{aliases}]\n")
            })
            .collect::<String>()
    );
    let deep = "[".repeat(100_000);
    for (what, bytes, said) in [
        ("empty", b"".to_vec(), "holds no settings"),
        ("a text", b"hello".to_vec(), "holds no settings"),
        (
            "two documents",
            b"a: 1\n---\nb: 2\n".to_vec(),
            "several documents",
        ),
        (
            "a key twice",
            b"a: 1\nhunter2: 2\nhunter2: 3\n".to_vec(),
            "twice",
        ),
        ("latin", b"a: 1\nb: \xe4\n".to_vec(), "UTF-8"),
        ("unbalanced", b"a: [1, 2\nb: hunter2-secret\n".to_vec(), ""),
        ("an unknown alias", b"a: *nobody\n".to_vec(), ""),
        ("a bomb", bomb.into_bytes(), "too much"),
        ("deep", deep.into_bytes(), ""),
        ("large", vec![b'#'; yaml::MAX_BYTES + 1], "bytes"),
    ] {
        let Err(problem) = translate(&bytes, &BTreeMap::new(), "models.toml") else {
            panic!("{what} is accepted");
        };
        assert!(
            problem.message.contains(said),
            "{what}: {}",
            problem.message
        );
        assert!(!problem.message.contains("hunter2-secret"), "{what}");
        assert!(!problem.cure.is_empty(), "{what}");
    }
    let twice = translate(b"a: 1\nb: 2\nb: 3\n", &BTreeMap::new(), "m")
        .err()
        .unwrap();
    assert_eq!(twice.line, Some(3));
    let latin = translate(b"a: 1\nb: \xe4\n", &BTreeMap::new(), "m")
        .err()
        .unwrap();
    assert_eq!(latin.line, Some(2));
}

#[test]
fn anchors_and_merge_keys_are_what_they_stand_for() {
    let yaml = "\
usual: &usual
  api_base: https://one.example/v1
  api_key: os.environ/ONE_KEY
model_list:
  - model_name: one
    litellm_params:
      <<: *usual
      model: openai/a
  - model_name: two
    litellm_params: {<<: *usual, model: openai/b, api_base: https://two.example/v1}
";
    let imported = from_text(yaml);
    let config: Table = toml::from_str(&imported.config).unwrap();
    let url = |name: &str| {
        config["providers"][name]["base_url"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(url("one-example"), "https://one.example/v1");
    assert_eq!(url("two-example"), "https://two.example/v1");
}

#[test]
fn the_command_writes_three_files_once_and_tells_the_findings() {
    let folder = tempfile::tempdir().unwrap();
    let (input, into) = (
        folder.path().join("config.yaml"),
        folder.path().join("new/place"),
    );
    std::fs::copy(fixtures().join("teams.yaml"), &input).unwrap();
    let (mut out, captured) = Output::captured();
    assert_eq!(
        run(&input, &into, OutputFormat::Json, &mut out),
        Exit::Done,
        "{}",
        captured.err()
    );
    let told: Json = serde_json::from_str(&captured.out()).unwrap();
    assert_eq!(told["files"].as_array().unwrap().len(), 3);
    assert!(told["findings"].as_array().unwrap().len() > 20);
    assert!(told["findings"][0]["line"].as_u64().unwrap() > 0);
    assert!(!captured.out().contains("hunter2"));
    let before = std::fs::read_to_string(into.join("accounts.toml")).unwrap();
    for name in ["models.toml", "weirgate.toml"] {
        let (mut out, captured) = Output::captured();
        assert_eq!(
            run(&input, &into, OutputFormat::Table, &mut out),
            Exit::Failed
        );
        assert!(
            captured.err().contains("is there already"),
            "{}",
            captured.err()
        );
        std::fs::remove_file(into.join(name)).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(into.join("accounts.toml")).unwrap(),
        before
    );
    assert!(!into.join("weirgate.toml").exists());
    std::fs::remove_file(into.join("accounts.toml")).unwrap();
    let (mut out, captured) = Output::captured();
    assert_eq!(
        run(&input, &into, OutputFormat::Table, &mut out),
        Exit::Done
    );
    assert_eq!(captured.out().lines().count(), 3);
    assert!(captured.err().contains("= cure: "));
    assert!(!captured.err().contains("hunter2"));
}

#[test]
fn a_file_that_cannot_be_read_is_a_failure_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("into");
    let (mut out, captured) = Output::captured();
    let absent = folder.path().join("absent.yaml");
    assert_eq!(
        run(&absent, &into, OutputFormat::Table, &mut out),
        Exit::Failed
    );
    std::fs::write(folder.path().join("bad.yaml"), "a: 1\na: 2\n").unwrap();
    let bad = folder.path().join("bad.yaml");
    assert_eq!(
        run(&bad, &into, OutputFormat::Table, &mut out),
        Exit::Failed
    );
    assert!(
        captured.err().contains("bad.yaml:2: "),
        "{}",
        captured.err()
    );
    assert!(!into.exists());
}
