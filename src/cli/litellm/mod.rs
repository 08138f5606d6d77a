//! `weirgate import --from litellm`: the configuration of another gateway as ours, and what of it has no counterpart.
//!
//! The translation is pure; files are read and written at its ends alone. Secrets of the input are neither written nor shown:
//! a variable stands for each. It does not read the other gateway's database, in which its keys, users and spending are.

mod accounts;
mod catalog;
mod deployments;
mod fallbacks;
mod fields;
mod findings;
mod known;
mod mapping;
mod places;
mod pools;
mod providers;
mod ranks;
mod references;
mod settings;
#[cfg(test)]
mod tests;
mod wildcards;
mod write;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use toml::{Table, Value};

use self::fields::{Field, Fields};
use self::findings::ImportFinding;
use self::ranks::MAX_ATTEMPTS;
use self::references::Reading;
use self::settings::Sections;
use self::yaml::YamlProblem;
use super::{Exit, Output, OutputFormat, new_files};
use crate::config::{self, Source};

/// The folder of what is written, unless another is named.
pub(super) const USUAL_FOLDER: &str = "weirgate-import";
/// How many attempts a request makes where nothing says more.
const USUAL_ATTEMPTS: usize = 3;

/// The members of a provider that stand first.
const FIRST: [&str; 8] = [
    "kind",
    "base_url",
    "project",
    "region",
    "keys",
    "credentials",
    "regions",
    "priority",
];

/// What a configuration became.
struct ImportedFiles {
    config: String,
    catalog: String,
    accounts: String,
    findings: Vec<ImportFinding>,
    models: usize,
    providers: usize,
}

/// Imports a configuration: writes three files into a folder, and tells what has no counterpart.
pub(super) fn run(file: &Path, into: &Path, format: OutputFormat, out: &mut Output) -> Exit {
    let names = ["weirgate.toml", "models.toml", "accounts.toml"];
    let paths = names.map(|name| into.join(name));
    if let Some(known) = paths.iter().find(|path| path.exists()) {
        return out.fail(&new_files::is_there(known));
    }
    let bytes = match read_file(file) {
        Ok(bytes) => bytes,
        Err(error) => return out.fail(&format!("{}: {error}", file.display())),
    };
    let environment: BTreeMap<String, String> = config::environment().collect();
    let models_file = std::path::absolute(into).unwrap_or_else(|_| into.to_owned());
    let models_file = models_file.join("models.toml");
    let imported = match translate(&bytes, &environment, &models_file.to_string_lossy()) {
        Ok(imported) => imported,
        Err(problem) => {
            let line = problem
                .line
                .map(|line| format!(":{line}"))
                .unwrap_or_default();
            let message = problem.message;
            let text = format!(
                "{}{line}: {message}\n  = cure: {}",
                file.display(),
                problem.cure
            );
            return out.fail(&text);
        }
    };
    let [config, catalog, accounts] = &paths;
    let files = [
        (catalog.clone(), &*imported.catalog),
        (accounts.clone(), &*imported.accounts),
        (config.clone(), &*imported.config),
    ];
    if let Err(error) = new_files::create(&files) {
        return out.fail(&error);
    }
    report(file, &paths, &imported, format, out);
    check((config, &imported.accounts), environment, out)
}

/// Reads a file, of which one byte more than is accepted is enough.
fn read_file(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = yaml::MAX_BYTES as u64 + 1;
    File::open(file)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn report(
    file: &Path,
    paths: &[PathBuf; 3],
    imported: &ImportedFiles,
    format: OutputFormat,
    out: &mut Output,
) {
    if format == OutputFormat::Json {
        let files = paths.iter().map(|path| path.display().to_string());
        let findings: Vec<Json> = imported
            .findings
            .iter()
            .map(ImportFinding::to_json)
            .collect();
        out.json(&json!({
            "files": files.collect::<Vec<_>>(),
            "models": imported.models,
            "providers": imported.providers,
            "findings": findings,
        }));
        return;
    }
    for finding in &imported.findings {
        out.note(&format!(
            "{}:{}: {}: {}: {}\n  = cure: {}",
            file.display(),
            finding.line,
            finding.path,
            finding.outcome.words(),
            finding.what,
            finding.cure
        ));
    }
    let [config, _, accounts] = paths;
    out.note(&format!(
        "\nimported {} models of {} providers, with {} findings; next:\n  weirgate check -c {}\n  weirgate apply -c {} -f {} --plan",
        imported.models,
        imported.providers,
        imported.findings.len(),
        config.display(),
        config.display(),
        accounts.display()
    ));
    for path in paths {
        out.line(&path.display().to_string());
    }
}

/// Checks what was written, so that nobody starts with what does not load.
fn check(
    (file, accounts): (&Path, &str),
    environment: BTreeMap<String, String>,
    out: &mut Output,
) -> Exit {
    let foreign = environment
        .into_iter()
        .filter(|(name, _)| !name.starts_with("WEIRGATE_"));
    let foreign: BTreeMap<String, String> = foreign.collect();
    let source = Source::File(file.to_owned());
    let mut problems = match config::load(&source, foreign.clone()) {
        Ok(loaded) => loaded.config.models.catalog.err().unwrap_or_default(),
        Err(problems) => problems,
    };
    let declared = config::read_accounts("accounts.toml", accounts, Path::new(""), &foreign);
    problems.extend(declared.err().into_iter().flatten());
    for problem in &problems {
        out.fail(problem.to_string().trim_end());
    }
    match problems.is_empty() {
        true => Exit::Done,
        false => out.fail(
            "what was written does not load as it is; correct these places, and please report them",
        ),
    }
}

/// Translates a configuration. `models_file` is where the catalogue will be.
///
/// Errors: what is no configuration at all.
fn translate(
    bytes: &[u8],
    environment: &BTreeMap<String, String>,
    models_file: &str,
) -> Result<ImportedFiles, YamlProblem> {
    let node = yaml::read(bytes)?;
    let root = Field::root(&node);
    let Some(mut root) = root.to_fields().filter(|fields| !fields.is_empty()) else {
        return Err(YamlProblem {
            line: None,
            message: "holds no settings".to_owned(),
            cure: "give the file that the other gateway is started with: its --config",
        });
    };
    let variables = root.take("environment_variables");
    let environment = with_variables(environment, variables.as_ref());
    let mut reading = Reading::new(&environment);
    settings::read_environment(Fields::read(variables, &mut reading.findings), &mut reading);
    let mut router = Fields::read(root.take("router_settings"), &mut reading.findings);
    let mut library = Fields::read(root.take("litellm_settings"), &mut reading.findings);
    let mut general = Fields::read(root.take("general_settings"), &mut reading.findings);
    let credentials = deployments::read_credentials(root.take("credential_list"), &mut reading);
    let deployments = deployments::read(root.take("model_list"), &credentials, &mut reading);
    let fallbacks = fallbacks::Fallbacks::read(&mut router, &mut library, &mut reading);
    let mut settings = settings::read(&mut router, &mut library, &mut reading);
    settings::read_general(&mut settings, &mut general, &mut reading);
    let accounts = accounts::read(&mut general, &mut library, &mut reading);
    let aliases = router.take("model_group_alias");
    let mut arrangement = ranks::arrange(&deployments, &fallbacks, &mut reading);
    let routing = to_routing(&arrangement, settings.retries);
    settings
        .sections
        .entry("routing")
        .or_default()
        .extend(routing);
    let mut models = std::mem::take(&mut arrangement.models);
    let reserved = to_reserved(&models, aliases.as_ref());
    let providers = arrangement.pools.into_tables(&reserved);
    catalog::add_aliases(&mut models, aliases, &providers, &mut reading);
    reading.findings.leave(router, known::ROUTER);
    reading.findings.leave(library, known::LIBRARY);
    reading.findings.leave(general, known::GENERAL);
    reading.findings.leave(root, known::ROOT);
    Ok(ImportedFiles {
        config: to_config(&settings.sections, &providers, models_file),
        catalog: catalog::to_toml(&models, &providers),
        accounts: accounts::to_toml(&accounts, settings.cache_ttl_s),
        findings: reading.findings.into_sorted(),
        models: models.len(),
        providers: providers.len(),
    })
}

/// Adds the variables that the file sets itself, as the other gateway does.
fn with_variables(
    environment: &BTreeMap<String, String>,
    variables: Option<&Field<'_>>,
) -> BTreeMap<String, String> {
    let mut all = environment.clone();
    let fields = variables.and_then(Field::to_fields);
    for (name, field) in fields.into_iter().flat_map(Fields::into_rest) {
        if !references::is_variable(&field)
            && let Some(text) = field.to_text()
        {
            all.insert(name.to_owned(), text);
        }
    }
    all
}

/// Returns what follows from models with several providers: enough attempts for all, and no trials of those that stand in for
/// others.
fn to_routing(arrangement: &ranks::Arrangement, retries: Option<u64>) -> Table {
    let retries = retries.map_or(0, |retries| {
        usize::try_from(retries).unwrap_or(MAX_ATTEMPTS)
    });
    let wanted = arrangement.most_attempts().max(retries.saturating_add(1));
    let attempts = wanted.clamp(1, MAX_ATTEMPTS);
    let mut routing = Table::new();
    if attempts > USUAL_ATTEMPTS {
        let attempts = i64::try_from(attempts).unwrap_or(1);
        routing.insert("attempts".to_owned(), Value::from(attempts));
    }
    if arrangement.has_ranks() {
        routing.insert("exploration".to_owned(), Value::from(0));
    }
    routing
}

/// Returns the prefixes of names that are no providers, because the whole name is a model's.
fn to_reserved(models: &[ranks::ImportedModel], aliases: Option<&Field<'_>>) -> BTreeSet<String> {
    let fields = aliases.and_then(Field::to_fields);
    let aliases = fields.into_iter().flat_map(Fields::into_rest);
    let names = models.iter().map(|model| model.id.clone());
    let names = names.chain(aliases.map(|(alias, _)| alias.to_owned()));
    let prefix = |name: String| name.split_once('/').map(|(prefix, _)| prefix.to_owned());
    names.filter_map(prefix).collect()
}

/// Returns the configuration.
fn to_config(sections: &Sections, providers: &[(String, Table)], models_file: &str) -> String {
    let mut text = String::from(
        "# Imported from the configuration of a LiteLLM proxy. What is not here has its default; conf/weirgate.toml has every\n\
         # option. `weirgate check -c` of this file finds every problem, and names what is still missing in the environment.\n\n",
    );
    text.push_str(&format!(
        "[models]\nfile = {}\n",
        write::to_quoted(models_file)
    ));
    for (name, table) in sections.iter().filter(|(_, table)| !table.is_empty()) {
        text.push_str(&format!("\n[{name}]\n{}", write::to_lines(table, &[])));
    }
    for (name, table) in providers {
        let name = write::to_key(name);
        text.push_str(&format!(
            "\n[providers.{name}]\n{}",
            write::to_lines(table, &FIRST)
        ));
    }
    text
}
