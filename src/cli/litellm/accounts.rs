//! Writes `accounts.toml`, which `weirgate apply` reads: one organization, its projects, and the key of the operator.

use filters::accounts::TermsFile;
use toml::{Table, Value};

use super::fields::Fields;
use super::known;
use super::references::Reading;
use super::write::{to_lines, to_quoted};
use crate::cli::models::decimal;

/// The name of the organization. Our choice: the other gateway has none in its file.
const ORGANIZATION: &str = "litellm";
/// The id of the key that stands in for the master key.
const KEY_ID: &str = "key_litellm_master";
/// The project of keys that name none.
const PROJECT: &str = "default";

/// What the file will hold.
#[derive(Default)]
pub(super) struct ImportedAccounts {
    has_key: bool,
    terms: Table,
    projects: Vec<String>,
}

/// Reads what is an account, a bound of a key, or a team.
pub(super) fn read(
    general: &mut Fields<'_>,
    library: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) -> ImportedAccounts {
    let mut accounts = ImportedAccounts::default();
    if let Some(field) = general.take("master_key") {
        accounts.has_key = true;
        let what = "keys of the other gateway have another form, so a new one stands for it: `weirgate apply` prints it once";
        let cure = "let clients send the new key";
        reading.findings.differs(&field, what, cure);
    }
    read_budget(&mut accounts, library, reading);
    if let Some(field) = general.take("allowed_ips") {
        let blocks = field.to_texts();
        let written = TermsFile {
            allow_ips: blocks.clone(),
            ..TermsFile::default()
        };
        match written.check() {
            Ok(_) if !blocks.is_empty() => {
                let list = blocks.into_iter().map(Value::from).collect();
                accounts
                    .terms
                    .insert("allow_ips".to_owned(), Value::Array(list));
                let what = "it bounds the imported key, not the listener";
                let cure = "give it to each key: `weirgate key create --allow-ip`";
                reading.findings.differs(&field, what, cure);
            }
            _ => {
                let what = "is no list of addresses";
                reading
                    .findings
                    .left_out(&field, what, "write blocks such as 10.0.0.0/8");
            }
        }
    }
    read_teams(&mut accounts, library, reading);
    // A bound needs a key to hold for.
    accounts.has_key |= !accounts.terms.is_empty();
    accounts
}

/// Reads the budget of the whole gateway, which becomes a bound of the key.
fn read_budget(
    accounts: &mut ImportedAccounts,
    library: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) {
    let duration = library.take_text("budget_duration", &mut reading.findings);
    let Some(field) = library.take("max_budget") else {
        if let Some((field, _)) = duration {
            let what = "has no effect without max_budget";
            reading.findings.left_out(&field, what, "take it out");
        }
        return;
    };
    let amount = field
        .to_number()
        .and_then(|number| decimal::shift_point(&number, 0));
    let amount = amount.map(|amount| decimal::round_fraction(&amount, 6));
    let Some(amount) = amount else {
        return reading.findings.wrong_kind(&field, "an amount of USD");
    };
    let period = match &duration {
        None => None,
        Some((field, text)) => {
            let period = to_period(text);
            if period.is_none() {
                let what =
                    "is no hour, day, week or month; the amount bounds all spending of the key";
                let cure = "set limit_per of the key in accounts.toml";
                reading.findings.differs(field, what, cure);
            }
            period
        }
    };
    let what = match period {
        Some(period) => format!(
            "it bounds what the imported key may spend in a {period} of the calendar, not all keys together"
        ),
        None => "it bounds what the imported key may spend, not all keys together".to_owned(),
    };
    let cure = "give the organization credit (`weirgate credit add`), which bounds all its keys";
    reading.findings.differs(&field, what, cure);
    match period {
        Some(period) => {
            let table = Table::from_iter([(period.to_owned(), Value::from(amount))]);
            accounts
                .terms
                .insert("limit_per".to_owned(), Value::Table(table));
        }
        None => drop(
            accounts
                .terms
                .insert("limit".to_owned(), Value::from(amount)),
        ),
    }
}

fn to_period(duration: &str) -> Option<&'static str> {
    match duration {
        "1h" | "60m" | "3600s" => Some("hour"),
        "1d" | "24h" => Some("day"),
        "7d" | "1w" => Some("week"),
        "30d" | "31d" | "1mo" => Some("month"),
        _ => None,
    }
}

/// Reads the teams that the file knows, which become projects.
fn read_teams(
    accounts: &mut ImportedAccounts,
    library: &mut Fields<'_>,
    reading: &mut Reading<'_>,
) {
    let Some(list) = library.take("default_team_settings") else {
        return;
    };
    for entry in list.items() {
        let mut fields = Fields::read(Some(entry.clone()), &mut reading.findings);
        let id = fields.take_text("team_id", &mut reading.findings);
        reading.findings.leave(fields, known::TEAM);
        match id {
            Some((field, id)) if !id.trim().is_empty() => {
                let what = "the team becomes a project, without members and keys, which are in the other gateway's database";
                let cure =
                    "add its keys to accounts.toml, or make them: `weirgate key create --project`";
                reading.findings.differs(&field, what, cure);
                if !accounts.projects.contains(&id) {
                    accounts.projects.push(id);
                }
            }
            _ => reading
                .findings
                .left_out(&entry, "has no team_id", "name the team"),
        }
    }
}

/// Returns the file.
pub(super) fn to_toml(accounts: &ImportedAccounts, cache_ttl_s: Option<u64>) -> String {
    let mut text = format!(
        "# The organization of what was imported from the configuration of a LiteLLM proxy:\n\
         #   weirgate apply -f accounts.toml --plan     says what would change\n\
         #   weirgate apply -f accounts.toml            does it, and prints new keys once\n\
         # Calls on the operator's keys of providers need credit: weirgate credit add --org {ORGANIZATION} USD\n\n\
         [[organizations]]\nname = {}\n",
        to_quoted(ORGANIZATION),
    );
    let has_default = accounts.projects.iter().any(|project| project == PROJECT);
    let mut projects: Vec<&str> = accounts.projects.iter().map(String::as_str).collect();
    if cache_ttl_s.is_some() && !has_default {
        projects.insert(0, PROJECT);
    }
    for project in projects {
        text.push_str(&format!(
            "\n[[organizations.projects]]\nname = {}\n",
            to_quoted(project)
        ));
        if let Some(seconds) = cache_ttl_s {
            text.push_str(&format!("cache_ttl_s = {seconds}\n"));
        }
    }
    if accounts.has_key {
        text.push_str(&format!(
            "\n# It has no secret here, so a new one is made. A key that there is already is named so: secret = {{ env = \"NAME\" }}\n\
             [[organizations.keys]]\nid = {}\nlabel = \"imported master key\"\n",
            to_quoted(KEY_ID)
        ));
        text.push_str(&to_lines(&accounts.terms, &[]));
    }
    text
}
