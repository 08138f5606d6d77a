#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use super::*;
use crate::config::LoadedConfig;

/// Every variable that is looked at, with a value that a secret, a folder or an address may have.
const VARIABLES: &[(&str, &str)] = &[
    ("AZURE_OPENAI_ENDPOINT", "https://acme.openai.azure.com/"),
    ("AZURE_CLIENT_ID", "client"),
    ("AZURE_TENANT_ID", "tenant"),
    ("AZURE_CLIENT_SECRET", "hunter2"),
    ("AWS_REGION", "eu-west-1"),
    ("AWS_DEFAULT_REGION", "eu-west-2"),
    ("AWS_ACCESS_KEY_ID", "hunter2"),
    ("AWS_SECRET_ACCESS_KEY", "hunter2"),
    ("AWS_PROFILE", "nobody"),
    ("GOOGLE_CLOUD_PROJECT", "acme-project"),
    ("GOOGLE_CLOUD_LOCATION", "europe-west4"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/account.json"),
    ("GOOGLE_API_KEY", "hunter2"),
    ("REDIS_URL", "redis://127.0.0.1:6379"),
    ("DATABASE_URL", "postgres://user:hunter2@db/weirgate"),
    ("PGHOST", "db"),
    ("STATE_DIRECTORY", "/var/lib/weirgate"),
];

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Every variable of a key in the shipped configuration.
fn keys() -> Vec<String> {
    let tables = shipped::PROVIDERS
        .values()
        .filter_map(toml::Value::as_table);
    let keys = tables
        .filter_map(|table| table.get("keys")?.as_array())
        .flatten();
    let keys = keys.filter_map(|key| key.get("env")?.as_str());
    keys.map(str::to_owned).collect()
}

/// Writes into a new folder, and loads it as the server does. Returns the text, too.
fn written(environment: &BTreeMap<String, String>) -> (String, LoadedConfig) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep/weirgate.toml");
    let (mut out, captured) = Output::captured();
    let exit = init(
        &file,
        &arguments(OutputFormat::Table),
        environment,
        &mut out,
    );
    assert_eq!(exit, Exit::Done, "{}", captured.err());
    let text = std::fs::read_to_string(&file).unwrap();
    let all = format!("{text}{}{}", captured.out(), captured.err());
    assert!(!all.contains("hunter2"), "{all}");
    let source = config::Source::File(file);
    match config::load(&source, environment.clone()) {
        Ok(loaded) => (text, loaded),
        Err(problems) => {
            let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
            panic!("{environment:?}\n{}", shown.join("\n"));
        }
    }
}

fn arguments(format: OutputFormat) -> InitArgs {
    InitArgs {
        file: None,
        print: false,
        format,
    }
}

fn names_on(loaded: &LoadedConfig) -> Vec<&str> {
    let providers = loaded.config.providers.iter();
    providers.map(|provider| provider.name.as_str()).collect()
}

fn assert_clean(loaded: &LoadedConfig, what: &str) {
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, Vec::<String>::new(), "{what}");
    let catalog = loaded.config.models.catalog.as_ref();
    assert!(
        catalog.is_ok_and(|catalog| !catalog.models.is_empty()),
        "{what}"
    );
}

#[test]
fn without_a_key_the_sandbox_answers() {
    let (_, loaded) = written(&environment(&[]));
    assert_clean(&loaded, "nothing");
    assert_eq!(names_on(&loaded), ["sandbox"]);
    assert!(loaded.config.decisions.is_some() && loaded.config.graph.is_some());
}

#[test]
fn each_key_alone_switches_its_provider_on_and_the_sandbox_off() {
    // Clouds are on once somebody has named their place, too.
    let placeless = ["azure", "vertex", "aws-anthropic"];
    for key in keys() {
        let (text, loaded) = written(&environment(&[(&key, "hunter2")]));
        assert_clean(&loaded, &key);
        let on = names_on(&loaded);
        let owner = shipped::PROVIDERS
            .iter()
            .find(|(_, table)| table.to_string().contains(&format!("\"{key}\"")));
        let owner = owner.unwrap().0.as_str();
        if placeless.contains(&owner) {
            assert_eq!(on, ["sandbox"], "{key}");
            continue;
        }
        assert_eq!(on, [owner], "{key}");
        assert!(
            text.contains(&format!("[providers.{owner}]\n# On: {key} is set.\n")),
            "{key}"
        );
    }
}

#[test]
fn each_other_variable_alone_loads() {
    for (name, value) in VARIABLES {
        let (_, loaded) = written(&environment(&[(name, value)]));
        assert_clean(&loaded, name);
    }
    for odd in [
        "",
        " ",
        "two words",
        "ä",
        "\u{7f}",
        "http://",
        "a:b",
        "sqlite:x?y",
    ] {
        // The sign-in to AWS reads its region itself, whatever is written.
        let names = VARIABLES
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .chain(keys());
        let names = names.filter(|name| !name.ends_with("_REGION"));
        let all: BTreeMap<_, _> = names.map(|name| (name, odd.to_owned())).collect();
        let (_, loaded) = written(&all);
        assert_clean(&loaded, odd);
    }
}

#[test]
fn all_variables_together_load_and_name_the_places() {
    let mut all = environment(VARIABLES);
    all.remove("AWS_PROFILE");
    all.extend(keys().into_iter().map(|key| (key, "hunter2".to_owned())));
    let (text, loaded) = written(&all);
    assert_clean(&loaded, "all");
    let on = names_on(&loaded);
    assert!(on.len() > 18 && !on.contains(&"sandbox"), "{on:?}");
    let provider = |name: &str| {
        loaded
            .config
            .providers
            .iter()
            .find(|it| it.name == name)
            .unwrap()
    };
    assert_eq!(
        provider("azure").base_urls,
        ["https://acme.openai.azure.com"]
    );
    assert_eq!(&*provider("bedrock").place.region, "eu-west-1");
    assert_eq!(&*provider("vertex").place.project, "acme-project");
    assert!(text.contains("redis = \"redis://127.0.0.1:6379\"\n"));
    assert!(text.contains("url = \"sqlite:/var/lib/weirgate/weirgate.db\"\n"));
    assert!(text.contains("# DATABASE_URL is set."));
    assert!(loaded.config.decisions.is_none() && loaded.config.graph.is_none());
}

#[test]
fn a_clouds_own_sign_in_stands_in_for_a_key() {
    let (text, loaded) = written(&environment(&[
        ("AWS_ACCESS_KEY_ID", "hunter2"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
        ("AZURE_OPENAI_ENDPOINT", "https://acme.openai.azure.com"),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "client"),
        ("AZURE_CLIENT_SECRET", "hunter2"),
    ]));
    assert_clean(&loaded, "clouds");
    assert_eq!(names_on(&loaded), ["azure", "bedrock"]);
    assert!(text.contains("credentials = \"aws\"\n") && text.contains("credentials = \"entra\"\n"));
}

#[test]
fn a_password_is_named_and_not_written() {
    let (text, loaded) = written(&environment(&[(
        "REDIS_URL",
        "redis://:hunter2@cache:6379",
    )]));
    assert_clean(&loaded, "a password");
    assert!(text.contains("\nredis = \"\"\n"));
}

#[test]
fn a_file_that_is_there_stays_and_so_does_a_catalogue() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weirgate.toml");
    let catalog = folder.path().join("models.toml");
    std::fs::write(&catalog, "# mine\n").unwrap();
    let none = environment(&[]);
    let (mut out, captured) = Output::captured();
    assert_eq!(
        init(&file, &arguments(OutputFormat::Json), &none, &mut out),
        Exit::Done
    );
    let told: Value = serde_json::from_str(&captured.out()).unwrap();
    assert_eq!(told["is_catalog_new"], false);
    assert_eq!(told["is_sandbox_on"], true);
    assert!(told["providers"].as_array().unwrap().len() > 18);
    assert_eq!(std::fs::read_to_string(&catalog).unwrap(), "# mine\n");
    std::fs::write(&file, "# edited\n").unwrap();
    let (mut out, captured) = Output::captured();
    assert_eq!(
        init(&file, &arguments(OutputFormat::Table), &none, &mut out),
        Exit::Failed
    );
    assert!(captured.err().contains("is there already") && captured.err().contains("--print"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# edited\n");
}

#[test]
fn print_writes_the_text_to_stdout_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weirgate.toml");
    let (mut out, captured) = Output::captured();
    let args = InitArgs {
        print: true,
        ..arguments(OutputFormat::Table)
    };
    let keys = environment(&[("OPENAI_API_KEY", "hunter2")]);
    assert_eq!(init(&file, &args, &keys, &mut out), Exit::Done);
    let printed: toml::Table = toml::from_str(&captured.out()).unwrap();
    assert!(printed["providers"].get("openai").is_some());
    assert!(
        captured.err().contains("found openai (OPENAI_API_KEY)"),
        "{}",
        captured.err()
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_usual_place_is_the_folder_conf_or_that_of_the_system() {
    assert_eq!(usual_file(false, false), Path::new(LOCAL));
    assert_eq!(usual_file(false, true), Path::new(LOCAL));
    assert_eq!(usual_file(true, true), Path::new(LOCAL));
    assert_eq!(usual_file(true, false), Path::new(OF_SYSTEM));
}
