//! The caller behind a key, and the snapshot of all keys.

use std::collections::HashMap;
use std::sync::Arc;

use super::api_key::KeyHash;
use super::terms::KeyTerms;
use crate::money::Usd;

/// A value that is not in a closed list, with the list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownValue(
    /// The accepted values, as messages list them.
    pub &'static str,
);

impl std::fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "accepted are {}", self.0)
    }
}

impl std::error::Error for UnknownValue {}

/// Whose provider credentials the calls of a project use. Source: docs/model-gateway.md 1.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// The platform's credentials.
    #[default]
    Platform,
    /// The caller's own credentials only.
    Byok,
    /// The caller's own credentials, then the platform's.
    Hybrid,
}

impl Mode {
    /// Returns the name in the CLI, the store and responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Byok => "byok",
            Self::Hybrid => "hybrid",
        }
    }
}

impl std::str::FromStr for Mode {
    type Err = UnknownValue;
    fn from_str(word: &str) -> Result<Self, UnknownValue> {
        match word {
            "platform" => Ok(Self::Platform),
            "byok" => Ok(Self::Byok),
            "hybrid" => Ok(Self::Hybrid),
            _ => Err(UnknownValue("platform, byok, hybrid")),
        }
    }
}

/// The plan an organization is on. Source: docs/model-gateway.md 2.8.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Plan {
    /// Pay as you go.
    #[default]
    None,
    /// The smallest plan.
    Lite,
    /// The middle plan.
    Pro,
    /// The largest plan.
    Max,
}

impl Plan {
    /// Returns the name in the CLI, the store and responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lite => "lite",
            Self::Pro => "pro",
            Self::Max => "max",
        }
    }
}

impl std::str::FromStr for Plan {
    type Err = UnknownValue;
    fn from_str(word: &str) -> Result<Self, UnknownValue> {
        match word {
            "none" => Ok(Self::None),
            "lite" => Ok(Self::Lite),
            "pro" => Ok(Self::Pro),
            "max" => Ok(Self::Max),
            _ => Err(UnknownValue("none, lite, pro, max")),
        }
    }
}

/// The owner of a key: a person or a service of the organization.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Member {
    /// `mem_` and a uuid.
    pub id: Arc<str>,
    /// The maximum that all keys of the member may ever spend together, if it is limited.
    pub budget: Option<Usd>,
}

/// The caller of a request: the key, its project and its organization, as of the snapshot.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Caller {
    /// `org_` and a uuid.
    pub organization_id: Arc<str>,
    /// The organization's name.
    pub organization: Arc<str>,
    /// `proj_` and a uuid.
    pub project_id: Arc<str>,
    /// The project's name.
    pub project: Arc<str>,
    /// `key_` and a uuid.
    pub key_id: Arc<str>,
    /// The owner's name for the key; may be empty.
    pub key_label: Arc<str>,
    /// Whose provider credentials serve the project.
    pub mode: Mode,
    /// The organization's plan.
    pub plan: Plan,
    /// When the plan's first cycle began, in unix milliseconds.
    pub plan_since_ms: i64,
    /// The owner of the key, if the key belongs to a member.
    pub member: Option<Arc<Member>>,
    /// What the key may spend and use; `None` means no restriction.
    pub terms: Option<Arc<KeyTerms>>,
    /// How long the project's responses may be cached, in seconds; `None` means never.
    pub cache_ttl_s: Option<u32>,
    /// When the key expires, in unix milliseconds.
    pub expires_at_ms: Option<i64>,
}

/// A key of the snapshot: its caller, and whether it is still valid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRow {
    /// The caller that the key authenticates.
    pub caller: Arc<Caller>,
    /// Whether the key was revoked.
    pub is_revoked: bool,
    /// Whether its organization is disabled.
    pub is_organization_disabled: bool,
    /// Whether its project is archived.
    pub is_project_archived: bool,
}

/// Every key that was ever issued, by its hash, as of one revision of the store.
///
/// Revoked and expired keys stay in the snapshot, so that their errors differ from those of unknown keys.
#[derive(Default)]
pub struct AccountsSnapshot {
    revision: i64,
    rows: HashMap<KeyHash, KeyRow>,
}

impl AccountsSnapshot {
    /// Creates the snapshot of one revision.
    pub fn new(revision: i64, rows: impl IntoIterator<Item = (KeyHash, KeyRow)>) -> Self {
        Self {
            revision,
            rows: rows.into_iter().collect(),
        }
    }

    /// Returns the revision of the store that the snapshot was read at.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the row of a key. Cost: one map look-up, compared in constant time.
    pub fn find(&self, hash: &KeyHash) -> Option<&KeyRow> {
        self.rows.get(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_plans_are_read_by_their_names() {
        for mode in [Mode::Platform, Mode::Byok, Mode::Hybrid] {
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        for plan in [Plan::None, Plan::Lite, Plan::Pro, Plan::Max] {
            assert_eq!(plan.as_str().parse(), Ok(plan));
        }
        assert_eq!(Mode::Byok.as_str(), "byok");
        let unknown = "other".parse::<Plan>();
        let told = unknown.map_err(|error| error.to_string());
        assert!(told.is_err_and(|told| told.contains("none, lite, pro, max")));
        assert!("other".parse::<Mode>().is_err());
    }

    #[test]
    fn a_snapshot_knows_its_revision_and_its_size() {
        let row = |id: &str| KeyRow {
            caller: Arc::new(Caller {
                organization_id: "org_1".into(),
                organization: "acme".into(),
                project_id: "proj_1".into(),
                project: "default".into(),
                key_id: id.into(),
                key_label: "".into(),
                mode: Mode::Platform,
                plan: Plan::None,
                plan_since_ms: 0,
                member: None,
                terms: None,
                cache_ttl_s: None,
                expires_at_ms: None,
            }),
            is_revoked: false,
            is_organization_disabled: false,
            is_project_archived: false,
        };
        let keys = [1, 2, 3].map(|number| KeyHash::from_bytes([number; 32]));
        let snapshot = AccountsSnapshot::new(7, keys.map(|hash| (hash, row("key"))));
        assert_eq!((snapshot.revision(), snapshot.len()), (7, 3));
        assert!(!snapshot.is_empty());
        assert!(AccountsSnapshot::default().is_empty());
    }
}
