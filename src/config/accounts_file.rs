//! Reads a file of accounts, which `weirgate apply` takes. It finds every problem at once, each with its place.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use filters::accounts::ApiKey;
use filters::manifest::{DeclaredVersion, Manifest, ManifestFault, check};
use filters::models::prompts::MAX_PROMPT_BYTES;
use filters::secret_ref::SecretRef;

use super::document::{self, SourceSpan};
use super::problem::Problem;
use super::prompt_file::read_prompt;
use super::reporter::Reporter;
use super::schema::make_schema;
use super::secret::{self, Secret};
use super::walk::{Finding, Walk};

/// A valid file of accounts. It has no `Debug`, because it holds secrets.
pub struct AccountsFile {
    /// What it declares, in the form in which it is compared, with the contents of its prompts.
    pub manifest: Manifest,
    /// The texts of its secrets.
    pub secrets: BTreeMap<SecretRef, Secret>,
    /// Possible mistakes.
    pub warnings: Vec<Problem>,
    places: Places,
}

/// Where the values of a file are.
struct Places {
    name: String,
    text: String,
    walk: Walk,
}

impl AccountsFile {
    /// Gives faults that were found later their places.
    pub fn to_problems(&self, faults: Vec<ManifestFault>) -> Vec<Problem> {
        self.places.to_problems(faults)
    }
}

impl Places {
    fn to_problems(&self, faults: Vec<ManifestFault>) -> Vec<Problem> {
        let findings = faults.into_iter().map(|fault| Finding {
            at: match fault.path.as_str() {
                "" => SourceSpan::Nowhere,
                path => self.walk.find_span(path),
            },
            key: fault.path,
            message: fault.message,
            cure: fault.cure,
        });
        self.report(findings.collect(), &self.walk.hidden)
    }

    fn report(&self, findings: Vec<Finding>, hidden: &[Range<usize>]) -> Vec<Problem> {
        let (name, text) = (self.name.as_str(), self.text.as_str());
        Reporter { name, text, hidden }.to_problems(findings)
    }
}

/// Reads the text of the file `name`. Files of prompts and of secrets are looked for from `folder`, variables in `env`.
///
/// Errors: all problems, in the order of the file.
pub fn read_accounts(
    name: &str,
    text: &str,
    folder: &Path,
    env: &BTreeMap<String, String>,
) -> Result<AccountsFile, Vec<Problem>> {
    let (root, syntax) = document::parse(text);
    let mut places = Places {
        name: name.to_owned(),
        text: text.to_owned(),
        walk: Walk::default(),
    };
    places.walk.hide_in_broken_lines(text, &syntax);
    let checked = places
        .walk
        .check_document(&root, &make_schema::<Manifest>());
    let findings = std::mem::take(&mut places.walk.findings);
    let findings = document::without_echoes(text, syntax, findings);
    if !findings.is_empty() {
        return Err(places.report(findings, &places.walk.hidden));
    }
    let mut manifest: Manifest = serde_json::from_value(checked).map_err(|error| {
        let path = String::new();
        let (message, cure) = (
            format!("cannot be used: {error}"),
            "please report this".to_owned(),
        );
        places.to_problems(vec![ManifestFault {
            path,
            message,
            cure,
        }])
    })?;
    let mut reading = Reading {
        folder,
        env,
        secrets: BTreeMap::new(),
        faults: Vec::new(),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    reading.read(&mut manifest);
    let mut faults = reading.faults;
    // A prompt that could not be read is no mistake of another kind.
    if reading.problems.is_empty() {
        faults.extend(check(&mut manifest));
    }
    let mut problems = places.to_problems(faults);
    problems.append(&mut reading.problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(AccountsFile {
        manifest,
        secrets: reading.secrets,
        warnings: reading.warnings,
        places,
    })
}

/// What a file refers to.
struct Reading<'a> {
    folder: &'a Path,
    env: &'a BTreeMap<String, String>,
    secrets: BTreeMap<SecretRef, Secret>,
    faults: Vec<ManifestFault>,
    /// Problems of other files.
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Reading<'_> {
    /// Reads all secrets and prompts that the file refers to.
    fn read(&mut self, manifest: &mut Manifest) {
        for (index, organization) in manifest.organizations.iter_mut().enumerate() {
            let at = format!("organizations[{index}]");
            for (index, key) in organization.keys.iter().enumerate() {
                let path = format!("{at}.keys[{index}].secret");
                if let Some(reference) = &key.secret {
                    self.find_secret(&path, reference, true);
                }
            }
            for (index, key) in organization.provider_keys.iter().enumerate() {
                let path = format!("{at}.provider_keys[{index}].secret");
                if let Some(reference) = &key.secret {
                    self.find_secret(&path, reference, false);
                }
            }
            for (index, prompt) in organization.prompts.iter_mut().enumerate() {
                for (version_index, version) in prompt.versions.iter_mut().enumerate() {
                    let path = format!("{at}.prompts[{index}].versions[{version_index}]");
                    self.read_version(&path, version);
                }
            }
        }
    }

    fn refuse(&mut self, path: &str, message: String, cure: &str) {
        let (path, cure) = (path.to_owned(), cure.to_owned());
        self.faults.push(ManifestFault {
            path,
            message,
            cure,
        });
    }

    fn find_secret(&mut self, path: &str, reference: &SecretRef, is_api_key: bool) {
        if matches!(reference, SecretRef::Literal(_)) {
            let message = "a secret must not stand in the file itself".to_owned();
            let cure = "write { env = \"NAME\" } or { file = \"PATH\" }, and change the secret: it was written down";
            return self.refuse(path, message, cure);
        }
        let found = match reference {
            SecretRef::File { file } => {
                let file = self.folder.join(file).to_string_lossy().into_owned();
                let beside = secret::find_text(&SecretRef::File { file }, self.env);
                beside.or_else(|_| secret::find_text(reference, self.env))
            }
            _ => secret::find_text(reference, self.env),
        };
        let text = match found {
            Ok(text) => text,
            Err(absent) => {
                let cure = format!("{}, or take the secret out", absent.cure());
                return self.refuse(path, absent.to_string(), &cure);
            }
        };
        if is_api_key && ApiKey::parse(text.expose().as_bytes()).is_err() {
            let message = "what it refers to is no API key of this server".to_owned();
            let cure = "refer to the text that `weirgate key create` or an earlier `weirgate apply` has printed, or take the \
                        secret out: then a text is made and printed";
            return self.refuse(path, message, cure);
        }
        self.secrets.insert(reference.clone(), text);
    }

    /// Puts the content of a version into the form in which it is stored.
    fn read_version(&mut self, path: &str, version: &mut DeclaredVersion) {
        let (name, text) = match (version.file.is_empty(), version.content.is_empty()) {
            (false, true) => match self.read_file(path, &version.file) {
                Some(read) => read,
                None => return,
            },
            (true, false) => (format!("{path}.content"), version.content.clone()),
            _ => {
                let message = "a version has exactly one of file and content".to_owned();
                return self.refuse(path, message, "leave one of them");
            }
        };
        if text.len() > MAX_PROMPT_BYTES {
            let message = format!("the prompt has {} bytes", text.len());
            return self.refuse(
                path,
                message,
                &format!("accepted are at most {MAX_PROMPT_BYTES}"),
            );
        }
        match read_prompt(&name, &text) {
            Ok(mut read) => {
                self.warnings.append(&mut read.warnings);
                version.file.clear();
                version.content = read.json;
            }
            Err(mut problems) => self.problems.append(&mut problems),
        }
    }

    /// Returns the name and the text of the file of a prompt.
    fn read_file(&mut self, path: &str, file: &str) -> Option<(String, String)> {
        let file = self.folder.join(file);
        let length = std::fs::metadata(&file).map(|it| it.len());
        if let Ok(length) = length
            && length > MAX_PROMPT_BYTES as u64
        {
            let message = format!("{} has {length} bytes", file.display());
            self.refuse(
                path,
                message,
                &format!("accepted are at most {MAX_PROMPT_BYTES}"),
            );
            return None;
        }
        match std::fs::read_to_string(&file) {
            Ok(text) => Some((file.display().to_string(), text)),
            Err(error) => {
                let message = format!("{} cannot be read: {error}", file.display());
                self.refuse(
                    path,
                    message,
                    "correct the path, which begins at the folder of this file",
                );
                None
            }
        }
    }
}
