//! The caller behind a key, and the snapshot of all of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::api_key::KeyHash;
use super::terms::KeyTerms;
use crate::money::Usd;

/// A word that is none of a closed list, with the list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownWord(
    /// The words that are accepted, as a sentence names them.
    pub &'static str,
);

impl std::fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "accepted are {}", self.0)
    }
}

impl std::error::Error for UnknownWord {}

/// Whose credential a project's calls use upstream. Source: docs/model-gateway.md 1.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// The platform's.
    #[default]
    Platform,
    /// The caller's own, and no other.
    Byok,
    /// The caller's own, falling back to the platform's.
    Hybrid,
}

impl Mode {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Byok => "byok",
            Self::Hybrid => "hybrid",
        }
    }
}

impl std::str::FromStr for Mode {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "platform" => Ok(Self::Platform),
            "byok" => Ok(Self::Byok),
            "hybrid" => Ok(Self::Hybrid),
            _ => Err(UnknownWord("platform, byok, hybrid")),
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
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lite => "lite",
            Self::Pro => "pro",
            Self::Max => "max",
        }
    }
}

impl std::str::FromStr for Plan {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "none" => Ok(Self::None),
            "lite" => Ok(Self::Lite),
            "pro" => Ok(Self::Pro),
            "max" => Ok(Self::Max),
            _ => Err(UnknownWord("none, lite, pro, max")),
        }
    }
}

/// Who owns a key: a person or a service of the organization.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Member {
    /// `mem_` and a uuid.
    pub id: Box<str>,
    /// The most that all of its keys may ever spend together; none: any amount.
    pub budget: Option<Usd>,
}

/// Who calls: the key, its project and its organization, as of the snapshot.
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
    /// What the owner calls the key; may be empty.
    pub key_label: Arc<str>,
    /// Whose credentials serve the project.
    pub mode: Mode,
    /// The organization's plan.
    pub plan: Plan,
    /// From when the plan's cycles are counted, in unix milliseconds.
    pub plan_since_ms: i64,
    /// Who owns the key; none: the organization alone.
    pub member: Option<Arc<Member>>,
    /// What the key may spend and whom it may reach; none: everything.
    pub terms: Option<Arc<KeyTerms>>,
    /// How long the project's answers may be replayed, in seconds; `None`: never.
    pub cache_ttl_s: Option<u32>,
    /// When the key stops to count, in unix milliseconds.
    pub expires_at_ms: Option<i64>,
}

/// One key of the snapshot: who it stands for, and whether it still counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRow {
    /// Who calls with it.
    pub caller: Arc<Caller>,
    /// The key was revoked.
    pub is_revoked: bool,
    /// Its organization was disabled.
    pub is_organization_disabled: bool,
    /// Its project was archived.
    pub is_project_archived: bool,
}

/// Every key that was ever issued, by its hash, as of one revision of the store.
///
/// Revoked and expired keys stay in it, so that they are told from unknown ones.
#[derive(Default)]
pub struct AccountsSnapshot {
    revision: i64,
    rows: HashMap<KeyHash, KeyRow>,
}

impl AccountsSnapshot {
    /// The snapshot of one revision.
    pub fn new(revision: i64, rows: impl IntoIterator<Item = (KeyHash, KeyRow)>) -> Self {
        Self {
            revision,
            rows: rows.into_iter().collect(),
        }
    }

    /// The revision of the store it was read at.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// How many keys it knows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it knows no key at all.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row of a key. Cost: one map look-up, compared in constant time.
    pub fn find(&self, hash: &KeyHash) -> Option<&KeyRow> {
        self.rows.get(hash)
    }
}
