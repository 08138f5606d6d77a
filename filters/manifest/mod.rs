//! Accounts as a file declares them: organizations with their projects, members, keys, provider keys and prompts.
//!
//! The same types say what the store has. [`check()`] brings both into one form, so that [`plan()`] can compare them, field
//! by field, and name what has to change. What a file does not say has its default; a thing that it does not name stays,
//! unless the plan is to prune.

mod changes;
mod check;
mod keys;
mod order;
mod plan;
mod planner;
mod prompts;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounts::{KeyHash, TermsFile};
use crate::secret_ref::SecretRef;

pub use changes::{Action, FieldChange, PlannedChange, PlannedKey, PlannedPrompt, PlannedRow};
pub use check::{check, normal_terms, to_time};
pub use plan::plan;

/// The project that each organization has from its beginning.
pub const FIRST_PROJECT: &str = "default";
/// The maximum number of things in a file. Our choice: all of them are written in seconds, during which SQLite has no other writer.
pub const MAX_THINGS: usize = 20_000;
/// The status of what is in use.
const ACTIVE: &str = "active";

/// The file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Manifest {
    /// Who pays.
    pub organizations: Vec<DeclaredOrganization>,
}

/// An organization with what belongs to it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredOrganization {
    /// Its id, chosen by you; absent: the name finds it, and a new one gets an id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its name, which no other has.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its plan.
    #[serde(default = "no_plan")]
    #[schemars(extend("enum" = ["none", "lite", "pro", "max"]))]
    pub plan: String,
    /// Where its calls may be computed: names of regions with commas between them; absent: everywhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub regions: String,
    /// Whether the export of logs has the content of its calls: what is asked and what is answered.
    #[serde(default, skip_serializing_if = "is_false")]
    pub export_content: bool,
    /// Whether its keys count.
    #[serde(default = "active", skip_serializing_if = "is_active")]
    #[schemars(extend("enum" = ["active", "disabled"]))]
    pub status: String,
    /// Its projects; each organization has the project `default`, whether or not it stands here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<DeclaredProject>,
    /// The owners of its keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<DeclaredMember>,
    /// Its API keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<DeclaredKey>,
    /// Its own keys of providers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provider_keys: Vec<DeclaredProviderKey>,
    /// Its managed prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<DeclaredPrompt>,
}

/// A project.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredProject {
    /// Its id, chosen by you; absent: the name finds it, and a new one gets an id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its name, which no other of the organization has.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Whose credentials serve it.
    #[serde(default = "platform")]
    #[schemars(extend("enum" = ["platform", "byok", "hybrid"]))]
    pub mode: String,
    /// How long its replies may be replayed, in seconds; absent or 0: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 31_536_000))]
    pub cache_ttl_s: Option<u32>,
    /// The SDK key of the datafile whose flags its requests may name as models; absent: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub experiments: String,
    /// Where its calls may be computed, of the regions of its organization; absent: in all of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub regions: String,
    /// Whether its keys count.
    #[serde(default = "active", skip_serializing_if = "is_active")]
    #[schemars(extend("enum" = ["active", "archived"]))]
    pub status: String,
}

/// A member.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredMember {
    /// Its id, chosen by you; absent: the name finds it, and a new one gets an id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its name, which no other of the organization has.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The most that all its keys may ever spend together, in USD; absent: any amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "usd"))]
    pub budget: Option<String>,
}

/// An API key.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct DeclaredKey {
    /// Its id, chosen by you, which no other key has.
    #[schemars(length(min = 1))]
    pub id: String,
    /// The project whose key it is.
    #[serde(default = "first_project", skip_serializing_if = "is_first_project")]
    #[schemars(length(min = 1))]
    pub project: String,
    /// What you call it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The member who owns it; absent: only the organization does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub member: String,
    /// When it stops to count; absent: never.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "time"))]
    pub expires: String,
    /// Whether its requests may ask why their providers were chosen.
    #[serde(default, skip_serializing_if = "is_false")]
    pub debug: bool,
    /// Whether it counts.
    #[serde(default = "active", skip_serializing_if = "is_active")]
    #[schemars(extend("enum" = ["active", "disabled"]))]
    pub status: String,
    /// Its text; absent: a new key gets one, which is printed once, and a known one keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRef>,
    /// What it may spend and use.
    #[serde(flatten)]
    pub terms: TermsFile,
    /// The hash of its text, if that is known.
    #[serde(skip)]
    pub hash: Option<KeyHash>,
    /// Whether it was revoked. Files name no such keys.
    #[serde(skip)]
    pub is_revoked: bool,
}

/// An organization's own key of a provider, found by provider and label.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredProviderKey {
    /// The provider, as the configuration names it.
    #[schemars(length(min = 1))]
    pub provider: String,
    /// What you call it.
    #[schemars(length(min = 1))]
    pub label: String,
    /// Its text; absent: the store has it already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRef>,
    /// Its id in the store.
    #[serde(skip)]
    pub id: String,
    /// A keyed hash of its text, if that is known.
    #[serde(skip)]
    pub hash: Option<KeyHash>,
}

/// A managed prompt, found by project and name.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredPrompt {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The project whose prompt it is; absent: it serves all projects of the organization.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// Its versions, oldest first.
    #[schemars(length(min = 1))]
    pub versions: Vec<DeclaredVersion>,
    /// Its id in the store.
    #[serde(skip)]
    pub id: String,
}

/// A version of a prompt, found by its content.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredVersion {
    /// The file of the prompt, TOML or JSON, from the folder of this one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The prompt itself, in place of a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// Its labels; absent for the only version of a prompt: `production`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// Its number in the store; 0: it has none yet.
    #[serde(skip)]
    pub number: u64,
}

/// A mistake in a file, or what the store has against it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ManifestFault {
    /// The place, such as `organizations[0].keys[2].member`.
    pub path: String,
    /// What came, and what is accepted.
    pub message: String,
    pub cure: String,
}

impl ManifestFault {
    fn new(path: String, message: impl Into<String>, cure: impl Into<String>) -> Self {
        Self {
            path,
            message: message.into(),
            cure: cure.into(),
        }
    }
}

impl Manifest {
    /// Returns the number of things that it names.
    pub fn count(&self) -> usize {
        let inside = |it: &DeclaredOrganization| {
            it.projects.len()
                + it.members.len()
                + it.keys.len()
                + it.provider_keys.len()
                + it.prompts.iter().map(|it| it.versions.len()).sum::<usize>()
        };
        self.organizations.iter().map(|it| 1 + inside(it)).sum()
    }
}

fn no_plan() -> String {
    "none".to_owned()
}

fn platform() -> String {
    "platform".to_owned()
}

fn active() -> String {
    ACTIVE.to_owned()
}

fn is_active(status: &str) -> bool {
    status == ACTIVE
}

fn first_project() -> String {
    FIRST_PROJECT.to_owned()
}

fn is_first_project(name: &str) -> bool {
    name == FIRST_PROJECT
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests;
