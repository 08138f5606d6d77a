//! AWS's shared files: `config` and `credentials`, which have a section for each profile.

use std::collections::BTreeMap;

use super::{AwsSource, Environment, WebIdentity, set};
use crate::models::cloud_credentials::secret_text::SecretText;
use crate::models::cloud_credentials::sigv4::AwsKeys;
use crate::models::cloud_credentials::source_error::SourceError;

const PROFILE: &str = "AWS_PROFILE";
const USUAL: &str = "default";

/// The texts of the shared files, where they exist.
#[derive(Clone, Copy, Default)]
pub struct ProfileFiles<'a> {
    pub config: Option<&'a str>,
    pub credentials: Option<&'a str>,
}

/// Returns the paths of the shared files: of `config`, of `credentials`.
pub fn paths(environment: &Environment) -> [Option<String>; 2] {
    let home = set(environment, "HOME");
    let files = [
        ("AWS_CONFIG_FILE", "config"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    ];
    files.map(|(variable, name)| {
        let named = set(environment, variable).map(str::to_owned);
        named.or_else(|| Some(format!("{}/.aws/{name}", home?)))
    })
}

/// Returns the name of the profile.
pub fn name(environment: &Environment) -> &str {
    set(environment, PROFILE).unwrap_or(USUAL)
}

/// The settings of a profile, of both files.
#[derive(Default)]
pub struct AwsProfile {
    name: String,
    settings: BTreeMap<String, String>,
    pub region: Option<String>,
}

impl AwsProfile {
    /// Finds a profile. `None`: the usual one does not exist, which is no error.
    ///
    /// Errors: a profile of another name does not exist.
    pub fn find(files: &ProfileFiles<'_>, name: &str) -> Result<Option<Self>, SourceError> {
        let titles = match name {
            USUAL => vec!["default".to_owned(), "profile default".to_owned()],
            name => vec![format!("profile {name}")],
        };
        let config = titles
            .iter()
            .find_map(|title| section(files.config?, title));
        let credentials = files.credentials.and_then(|text| section(text, name));
        if config.is_none() && credentials.is_none() {
            let came = format!("the profile {name} is in none of AWS's shared files");
            let cure = "correct the name, or AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE";
            return match name {
                USUAL => Ok(None),
                _ => Err(SourceError::new(PROFILE, came, cure)),
            };
        }
        let mut settings = config.unwrap_or_default();
        settings.extend(credentials.unwrap_or_default());
        Ok(Some(Self {
            name: name.to_owned(),
            region: settings.get("region").cloned(),
            settings,
        }))
    }

    /// Returns the source that the profile names. `None`: it names none.
    ///
    /// Errors: it names one that does not serve a gateway, or half of one.
    pub(super) fn source(
        &self,
        environment: &Environment,
        region: &str,
    ) -> Result<Option<AwsSource>, SourceError> {
        let get = |key: &str| self.settings.get(key).map(String::as_str);
        let error = |came: &str, cure: &'static str| {
            let came = format!("the profile {} {came}", self.name);
            Err(SourceError::new(PROFILE, came, cure))
        };
        if let Some(role) = get("role_arn") {
            let session = get("role_session_name");
            let cure = "give it web_identity_token_file, or keys of its own";
            return match get("web_identity_token_file") {
                Some(file) => {
                    let parts = (role, session, file);
                    let setting = "web_identity_token_file";
                    let identity = WebIdentity::new(environment, region, parts, setting)?;
                    Ok(Some(AwsSource::WebIdentity(identity)))
                }
                None => error(
                    "takes a role on by another profile, which is not done",
                    cure,
                ),
            };
        }
        match (get("aws_access_key_id"), get("aws_secret_access_key")) {
            (Some(id), Some(secret)) => Ok(Some(AwsSource::Keys(AwsKeys {
                access_key_id: id.into(),
                secret_access_key: SecretText::new(secret),
                session_token: get("aws_session_token").map(SecretText::new),
            }))),
            (None, None) => {
                let cure = "let the profile hold keys, or set AWS's variables";
                let mut foreign = ["credential_process", "sso_session", "sso_start_url"].iter();
                match foreign.find(|key| get(key).is_some()) {
                    Some(key) => error(&format!("has {key}, which a gateway does not run"), cure),
                    None => Ok(None),
                }
            }
            _ => error("has half of a pair of keys", "write both halves"),
        }
    }
}

/// Returns the settings of a section, or `None` if there is no such section. Nested settings are left out.
fn section(text: &str, title: &str) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    let mut is_inside = false;
    for line in text.lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if let Some(named) = bare.strip_prefix('[') {
            let named = named.split(']').next().unwrap_or_default();
            let words: Vec<&str> = named.split_ascii_whitespace().collect();
            is_inside = words.join(" ") == title;
            if is_inside {
                found.get_or_insert_default();
            }
        } else if is_inside
            && !line.starts_with([' ', '\t'])
            && let Some((key, value)) = bare.split_once('=')
            && let Some(settings) = &mut found
        {
            let value = value.split(" #").next().unwrap_or_default();
            let value = value.split(" ;").next().unwrap_or_default().trim();
            settings.insert(key.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    found
}
