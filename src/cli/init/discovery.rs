//! What the environment has that a configuration can use.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::cli::shipped;
use crate::config;

/// A provider of the shipped configuration, and whether it is on with what the environment has.
pub(super) struct DiscoveredProvider {
    pub name: String,
    /// The variables of its key or its sign-in that are set.
    pub variables: Vec<String>,
    /// The options that differ from the shipped ones; `None`: the option is taken out.
    pub options: Vec<(&'static str, Option<Value>)>,
    pub state: ProviderState,
}

/// Whether a provider is on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ProviderState {
    On,
    /// It is not, with the reason and the cure.
    Refused {
        why: String,
        cure: String,
    },
}

/// What was found.
pub(super) struct Discovery {
    pub providers: Vec<DiscoveredProvider>,
    /// The address of Redis, if it holds no secret.
    pub redis: Option<String>,
    /// The store, where it is not the usual one.
    pub store: Option<String>,
    /// The variable that names a database of PostgreSQL.
    pub database: Option<&'static str>,
    /// What people should know beside.
    pub notes: Vec<String>,
}

/// What a provider's place is taken from: its option, and variables.
type PlaceRow = (&'static str, &'static str, &'static [&'static str]);

const PLACES: &[PlaceRow] = &[
    ("azure", "base_url", &["AZURE_OPENAI_ENDPOINT"]),
    ("bedrock", "region", &["AWS_REGION", "AWS_DEFAULT_REGION"]),
    (
        "aws-anthropic",
        "region",
        &["AWS_REGION", "AWS_DEFAULT_REGION"],
    ),
    (
        "vertex",
        "project",
        &["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"],
    ),
    ("vertex", "region", &["GOOGLE_CLOUD_LOCATION"]),
];

/// The sign-in of a cloud: its provider, its word, and variables that name a source.
type SignInRow = (&'static str, &'static str, &'static [&'static str]);

const SIGN_INS: &[SignInRow] = &[
    (
        "azure",
        "entra",
        &[
            "AZURE_CLIENT_SECRET",
            "AZURE_FEDERATED_TOKEN_FILE",
            "IDENTITY_ENDPOINT",
        ],
    ),
    (
        "bedrock",
        "aws",
        &[
            "AWS_ACCESS_KEY_ID",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_PROFILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        ],
    ),
    ("vertex", "google", &["GOOGLE_APPLICATION_CREDENTIALS"]),
];

/// Other names that keys have.
const KEY_SYNONYMS: &[(&str, &str)] = &[("google", "GOOGLE_API_KEY")];

impl Discovery {
    /// Looks into an environment. `folder` is where the store of an installed server is.
    pub(super) fn new(environment: &BTreeMap<String, String>, folder: Option<&str>) -> Self {
        let set = |name: &str| {
            let text = environment.get(name).map(|text| text.trim());
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let names = names_in_order();
        let providers = names.into_iter().filter(|name| name != "sandbox");
        let mut found = Self {
            providers: providers.map(|name| discover(name, environment)).collect(),
            redis: None,
            store: None,
            database: None,
            notes: Vec::new(),
        };
        if let Some(url) = set("REDIS_URL") {
            let section = format!("[shared]\nredis = {}\n", Value::from(url.as_str()));
            match loads(&section, environment) {
                true => found.redis = Some(url),
                false => found.notes.push(
                    "REDIS_URL holds a password, or is no address: WEIRGATE_SHARED__REDIS in the environment of the server can have it"
                        .to_owned(),
                ),
            }
        }
        let first = |folders: String| folders.split(':').next().map(str::to_owned);
        let folder = set("STATE_DIRECTORY")
            .and_then(first)
            .or(folder.map(str::to_owned));
        if let Some(folder) = folder {
            let url = format!("sqlite:{}/weirgate.db", folder.trim_end_matches('/'));
            let section = format!("[store]\nurl = {}\n", Value::from(url.as_str()));
            found.store = loads(&section, environment).then_some(url);
        }
        let is_postgres =
            |url: String| url.starts_with("postgres://") || url.starts_with("postgresql://");
        found.database = match set("DATABASE_URL").is_some_and(is_postgres) {
            true => Some("DATABASE_URL"),
            false => set("PGHOST").map(|_| "PGHOST"),
        };
        if let Some(variable) = found.database {
            found.notes.push(format!(
                "{variable} names PostgreSQL; the store is SQLite until store.url says otherwise"
            ));
        }
        found
    }

    /// Returns the providers that are on.
    pub(super) fn on(&self) -> impl Iterator<Item = &DiscoveredProvider> {
        self.providers
            .iter()
            .filter(|provider| provider.state == ProviderState::On)
    }
}

/// Returns the names of providers in the order of the shipped file.
fn names_in_order() -> Vec<String> {
    let headers = shipped::CONFIG.lines().filter_map(provider_of);
    headers.map(str::to_owned).collect()
}

/// Returns the provider whose table a line begins.
pub(super) fn provider_of(line: &str) -> Option<&str> {
    let name = line.strip_prefix("[providers.")?.strip_suffix(']')?;
    shipped::PROVIDERS.contains_key(name).then_some(name)
}

/// Finds out whether a provider is on, with its key or else with its cloud's sign-in.
fn discover(name: String, environment: &BTreeMap<String, String>) -> DiscoveredProvider {
    let is_set = |variable: &&str| {
        environment
            .get(*variable)
            .is_some_and(|text| !text.trim().is_empty())
    };
    let known = shipped::PROVIDERS
        .get(&name)
        .and_then(Value::as_table)
        .cloned()
        .unwrap_or_default();
    let keys = key_variables(&known);
    let mut set: Vec<String> = keys.into_iter().filter(|key| is_set(&&**key)).collect();
    let mut options = place_options(&name, environment);
    let other = KEY_SYNONYMS
        .iter()
        .find(|(provider, key)| *provider == name && is_set(key));
    if let Some((_, key)) = other.filter(|_| set.is_empty()) {
        set.push((*key).to_owned());
        let reference = Table::from_iter([("env".to_owned(), Value::from(*key))]);
        options.push(("keys", Some(Value::Array(vec![Value::Table(reference)]))));
    }
    let with_key = match set.is_empty() {
        true => unset(&known),
        false => try_provider(&name, &known, &options, environment),
    };
    let sign_in = SIGN_INS
        .iter()
        .find(|(provider, _, hints)| *provider == name && hints.iter().any(is_set));
    let mut state = with_key;
    if let Some((_, cloud, hints)) = sign_in.filter(|_| state != ProviderState::On) {
        let hints = hints.iter().filter(|hint| is_set(hint));
        set.extend(hints.map(|hint| (*hint).to_owned()));
        let mut signed = options.clone();
        signed.push(("keys", None));
        signed.push(("credentials", Some(Value::from(*cloud))));
        state = try_provider(&name, &known, &signed, environment);
        if state == ProviderState::On {
            options = signed;
        }
    }
    // A key that can be no key is an error where it is named.
    if !set.is_empty() && load(&name, &known, &options, environment).is_err() {
        options.push(("keys", None));
    }
    DiscoveredProvider {
        name,
        variables: set,
        options,
        state,
    }
}

/// Returns the state of a provider none of whose variables is set.
fn unset(provider: &Table) -> ProviderState {
    let names = key_variables(provider).join(" or ");
    ProviderState::Refused {
        why: format!("{names} is not set"),
        cure: format!("set {names}"),
    }
}

/// Returns the variables of a provider's keys.
fn key_variables(provider: &Table) -> Vec<String> {
    let keys = provider.get("keys").and_then(Value::as_array);
    let names = keys
        .into_iter()
        .flatten()
        .filter_map(|key| key.get("env")?.as_str());
    names.map(str::to_owned).collect()
}

/// Returns the options of a cloud that say where it is. One that does not load is left out.
fn place_options(
    name: &str,
    environment: &BTreeMap<String, String>,
) -> Vec<(&'static str, Option<Value>)> {
    let rows = PLACES.iter().filter(|(provider, _, _)| *provider == name);
    let options = rows.filter_map(|(_, option, variables)| {
        let mut texts = variables
            .iter()
            .filter_map(|variable| environment.get(*variable));
        let text = texts.find(|text| !text.trim().is_empty())?;
        let value = Value::from(text.trim().trim_end_matches('/'));
        let known = shipped::PROVIDERS.get(name)?.as_table()?;
        let is_taken = load(name, known, &[(*option, Some(value.clone()))], environment).is_ok();
        is_taken.then_some((*option, Some(value)))
    });
    options.collect()
}

/// Returns whether a provider with these options is on.
fn try_provider(
    name: &str,
    known: &Table,
    options: &[(&'static str, Option<Value>)],
    environment: &BTreeMap<String, String>,
) -> ProviderState {
    let refused = |why: String, cure: String| ProviderState::Refused { why, cure };
    let loaded = match load(name, known, options, environment) {
        Ok(loaded) => loaded,
        Err((why, cure)) => return refused(why, cure),
    };
    match loaded.off_providers.first() {
        Some(off) => refused(off.why.clone(), off.cure.clone()),
        None => ProviderState::On,
    }
}

/// Loads a configuration of this provider alone. Errors: the first problem or warning, with its cure.
fn load(
    name: &str,
    known: &Table,
    options: &[(&'static str, Option<Value>)],
    environment: &BTreeMap<String, String>,
) -> Result<config::Config, (String, String)> {
    let mut table = known.clone();
    for (key, value) in options {
        match value {
            Some(value) => drop(table.insert((*key).to_owned(), value.clone())),
            None => drop(table.remove(*key)),
        }
    }
    let lines = table
        .iter()
        .map(|(key, value)| format!("{key} = {value}\n"));
    let section = format!("[providers.{name}]\n{}", lines.collect::<String>());
    load_section(&section, environment)
}

fn loads(section: &str, environment: &BTreeMap<String, String>) -> bool {
    load_section(section, environment).is_ok()
}

/// Loads a section alone. Overrides of the environment are left aside, because they hold for whatever is written.
fn load_section(
    section: &str,
    environment: &BTreeMap<String, String>,
) -> Result<config::Config, (String, String)> {
    let text = format!("[models]\nfile = \"/dev/null\"\n{section}");
    let foreign = environment
        .iter()
        .filter(|(name, _)| !name.starts_with("WEIRGATE_"));
    let foreign = foreign.map(|(name, value)| (name.clone(), value.clone()));
    let (found, loaded) = match config::from_str(&text, foreign) {
        Ok(loaded) => (loaded.warnings.into_iter().next(), Some(loaded.config)),
        Err(problems) => (problems.into_iter().next(), None),
    };
    match (found, loaded) {
        (None, Some(config)) => Ok(config),
        (found, _) => Err(found.map_or_else(Default::default, |it| (it.message, it.cure))),
    }
}
