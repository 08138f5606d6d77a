//! The caller behind a key, and the snapshot of all keys.

use std::collections::HashMap;
use std::sync::Arc;

use super::api_key::KeyHash;
use super::passthrough::Vendor;
use super::regions::AllowedRegions;
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

/// Whose provider keys the calls of a project use. Source: docs/model-gateway.md 1.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
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
    Lite,
    Pro,
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
    pub organization: Arc<str>,
    /// `proj_` and a uuid.
    pub project_id: Arc<str>,
    pub project: Arc<str>,
    /// `key_` and a uuid.
    pub key_id: Arc<str>,
    /// The owner's name for the key, which may be empty.
    pub key_label: Arc<str>,
    /// Whose provider credentials serve the project.
    pub mode: Mode,
    pub plan: Plan,
    /// When the plan's first cycle began, in unix milliseconds.
    pub plan_since_ms: i64,
    /// The owner of the key, if the key belongs to a member.
    pub member: Option<Arc<Member>>,
    /// What the key may spend and use; `None` means no restriction.
    pub terms: Option<Arc<KeyTerms>>,
    /// How long the project's responses may be cached, in seconds; `None` means never.
    pub cache_ttl_s: Option<u32>,
    /// The SDK key of a datafile. Requests may name the flags of that datafile as models.
    pub experiments: Option<Arc<str>>,
    /// When the key expires, in unix milliseconds.
    pub expires_at_ms: Option<i64>,
    /// Whether requests with this key may ask why their providers were chosen.
    pub is_debug: bool,
    /// The regions in which calls of the organization and of the project may be computed; `None`: in all.
    pub regions: [Option<Arc<AllowedRegions>>; 2],
    /// Whether the export of logs may have what is asked and answered.
    pub exports_content: bool,
    /// Until when what is asked and answered may be kept in memory, in unix milliseconds; `None`: never.
    pub keep_bodies_until_ms: Option<i64>,
}

/// The organization that the first start creates.
pub const FIRST_RUN_ORGANIZATION: &str = "default";
/// The label of the key that the first start creates.
pub const FIRST_RUN_LABEL: &str = "first run";

impl Caller {
    /// Returns whether its calls may not be computed everywhere.
    pub fn is_regional(&self) -> bool {
        self.regions.iter().any(Option::is_some)
    }

    /// Returns the names of the regions in which its calls may be computed.
    pub fn named_regions(&self) -> String {
        let bounds = self.regions.iter().flatten();
        let bounds: Vec<String> = bounds.map(|allowed| allowed.to_string()).collect();
        bounds.join(" and of the project ")
    }

    /// Returns whether its calls may be computed in a region; `None` is an unknown one.
    pub fn may_be_in(&self, region: Option<&str>) -> bool {
        let mut bounds = self.regions.iter().flatten();
        bounds.all(|allowed| region.is_some_and(|region| allowed.contains(region)))
    }

    /// Returns whether its requests may bring their own credential of a vendor.
    pub fn may_pass(&self, vendor: Vendor) -> bool {
        let terms = self.terms.as_ref();
        terms.is_some_and(|terms| terms.passthrough.contains(&vendor))
    }

    /// Returns whether the key is the one that the first start printed for trying the gateway.
    pub fn is_first_run(&self) -> bool {
        *self.organization == *FIRST_RUN_ORGANIZATION && *self.key_label == *FIRST_RUN_LABEL
    }
}

/// The state of an organization.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OrganizationStatus {
    /// The keys of the organization are valid.
    #[default]
    Active,
    /// An operator reviews the organization. Until the review ends, its keys are refused.
    Held,
    /// The keys of the organization are no longer valid.
    Disabled,
}

impl OrganizationStatus {
    /// Returns the word for people and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Held => "held",
            Self::Disabled => "disabled",
        }
    }
}

/// The state of a key itself, whatever that of its project and its organization.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KeyState {
    #[default]
    Active,
    /// Out of use until it is enabled again.
    Disabled,
    /// Out of use for good.
    Revoked,
}

impl KeyState {
    /// Returns the state that the times make at which a key was disabled and revoked.
    pub fn from_times(disabled_at_ms: Option<i64>, revoked_at_ms: Option<i64>) -> Self {
        match (disabled_at_ms, revoked_at_ms) {
            (_, Some(_)) => Self::Revoked,
            (Some(_), None) => Self::Disabled,
            (None, None) => Self::Active,
        }
    }

    /// Returns the word for people and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
            Self::Revoked => "revoked",
        }
    }
}

/// A key of the snapshot: its caller, and whether it is still valid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRow {
    pub caller: Arc<Caller>,
    pub state: KeyState,
    /// Whether the key, or something that it shares with others, has a value that this version does not know.
    pub is_unreadable: bool,
    pub organization_status: OrganizationStatus,
    pub is_project_archived: bool,
}

/// The number of parts of a snapshot. A change copies only the parts that it touches: of a million keys, a thousand
/// per part.
const SHARDS: usize = 1024;

/// How long a revocation is kept. Every access token expires earlier.
pub const REVOCATION_KEPT_MS: i64 = 86_400_000;

/// All keys that were ever issued, by hash, as of one revision of the store, and the recent revocations.
///
/// Revoked and expired keys stay in the snapshot, so that their errors differ from those of unknown keys. Cost of a
/// copy: copies share their parts until one of the copies changes.
#[derive(Clone)]
pub struct AccountsSnapshot {
    revision: i64,
    shards: Box<[Arc<Shard>]>,
    revocations: Arc<HashMap<Box<str>, i64>>,
}

type Shard = HashMap<KeyHash, KeyRow>;

impl Default for AccountsSnapshot {
    /// A snapshot without keys, before the first change.
    fn default() -> Self {
        Self::new(0, [])
    }
}

impl AccountsSnapshot {
    /// Creates the snapshot of one revision.
    pub fn new(revision: i64, rows: impl IntoIterator<Item = (KeyHash, KeyRow)>) -> Self {
        let empty = Arc::new(Shard::new());
        let mut snapshot = Self {
            revision,
            shards: vec![empty; SHARDS].into(),
            revocations: Arc::default(),
        };
        for (hash, row) in rows {
            snapshot.insert(hash, row);
        }
        snapshot
    }

    /// Returns the revision of the store at which the snapshot was read.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Sets the revision that the rows have reached.
    pub fn set_revision(&mut self, revision: i64) {
        self.revision = revision;
    }

    /// Adds a key or replaces its row. Cost: the first change of a part copies the part, if another snapshot shares
    /// it.
    pub fn insert(&mut self, hash: KeyHash, row: KeyRow) {
        if let Some(shard) = self.shards.get_mut(shard_index(&hash)) {
            Arc::make_mut(shard).insert(hash, row);
        }
    }

    /// Removes the keys of these callers. Cost: a look at every key; copies the parts that have such a key.
    pub fn remove_keys(&mut self, is_removed: impl Fn(&Caller) -> bool) {
        for shard in &mut self.shards {
            if shard.values().any(|row| is_removed(&row.caller)) {
                Arc::make_mut(shard).retain(|_, row| !is_removed(&row.caller));
            }
        }
    }

    /// Refuses a key whose row can no longer be read. An unknown key stays unknown.
    pub fn refuse(&mut self, hash: &KeyHash) {
        let shard = self.shards.get_mut(shard_index(hash));
        if let Some(row) = shard.and_then(|shard| Arc::make_mut(shard).get_mut(hash)) {
            row.is_unreadable = true;
        }
    }

    /// Revokes a grant or a client of OAuth by its id, so that its access tokens are no longer valid. Drops
    /// revocations that are older than every valid access token.
    ///
    /// `at_ms` is unix time in milliseconds. Cost: copies the revocations if another snapshot shares them.
    pub fn revoke(&mut self, id: &str, at_ms: i64) {
        let revocations = Arc::make_mut(&mut self.revocations);
        revocations.retain(|_, earlier_ms| at_ms.saturating_sub(*earlier_ms) < REVOCATION_KEPT_MS);
        revocations.insert(id.into(), at_ms);
    }

    /// Returns whether a grant or a client of OAuth was revoked. Cost: one map look-up.
    pub fn is_revoked(&self, id: &str) -> bool {
        self.revocations.contains_key(id)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    /// Returns whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.is_empty())
    }

    /// Returns the row of a key. Cost: one map look-up, compared in constant time.
    pub fn find(&self, hash: &KeyHash) -> Option<&KeyRow> {
        self.shards.get(shard_index(hash))?.get(hash)
    }
}

/// Returns the index of the part that holds a key. The bytes are uniform, and the map inside the part hashes others.
fn shard_index(hash: &KeyHash) -> usize {
    let tail = hash.as_bytes().last_chunk::<2>().copied();
    usize::from(u16::from_le_bytes(tail.unwrap_or_default())) % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u32) -> (KeyHash, KeyRow) {
        let mut hash = [0; 32];
        hash[..4].copy_from_slice(&id.to_le_bytes());
        hash[28..].copy_from_slice(&id.to_le_bytes());
        let text = || Arc::<str>::from("a");
        let caller = Caller {
            organization_id: text(),
            organization: text(),
            project_id: text(),
            project: text(),
            key_id: id.to_string().into(),
            key_label: text(),
            mode: Mode::default(),
            plan: Plan::default(),
            plan_since_ms: 0,
            member: None,
            terms: None,
            cache_ttl_s: None,
            experiments: None,
            expires_at_ms: None,
            is_debug: false,
            regions: [None, None],
            exports_content: false,
            keep_bodies_until_ms: None,
        };
        let row = KeyRow {
            caller: Arc::new(caller),
            state: KeyState::Active,
            is_unreadable: false,
            organization_status: OrganizationStatus::Active,
            is_project_archived: false,
        };
        (KeyHash::from_bytes(hash), row)
    }

    #[test]
    fn a_change_copies_one_part_and_leaves_the_snapshot_before_it() {
        let before = AccountsSnapshot::new(1, (0..10_000).map(row));
        assert_eq!(before.len(), 10_000);
        let mut after = before.clone();
        let (hash, mut revoked) = row(77);
        revoked.state = KeyState::Revoked;
        after.insert(KeyHash::from_bytes(*hash.as_bytes()), revoked);
        after.set_revision(2);
        let shared = before.shards.iter().zip(&after.shards);
        let copied = shared.filter(|(before, after)| !Arc::ptr_eq(before, after));
        assert_eq!(copied.count(), 1);
        let is_revoked =
            |of: &AccountsSnapshot| of.find(&hash).map(|row| row.state == KeyState::Revoked);
        assert_eq!(
            (is_revoked(&before), is_revoked(&after)),
            (Some(false), Some(true))
        );
        assert_eq!((after.len(), after.revision()), (10_000, 2));
    }

    #[test]
    fn a_revocation_is_kept_as_long_as_a_token_may_live() {
        let mut snapshot = AccountsSnapshot::default();
        snapshot.revoke("one", 1_000);
        let before = snapshot.clone();
        snapshot.revoke("two", REVOCATION_KEPT_MS);
        assert!(snapshot.is_revoked("one") && snapshot.is_revoked("two"));
        assert!(!before.is_revoked("two"));
        snapshot.revoke("three", 1_000 + REVOCATION_KEPT_MS);
        assert!(!snapshot.is_revoked("one") && snapshot.is_revoked("two"));
    }

    /// Contract: model-gateway 2.8 devPlan
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
        let snapshot = AccountsSnapshot::new(7, (1..=3).map(row));
        assert_eq!((snapshot.revision(), snapshot.len()), (7, 3));
        assert!(!snapshot.is_empty());
        assert!(AccountsSnapshot::default().is_empty());
    }

    #[test]
    fn keys_that_are_removed_are_unknown_and_the_parts_of_others_are_shared() {
        let before = AccountsSnapshot::new(1, (0..10_000).map(row));
        let mut after = before.clone();
        after.remove_keys(|caller| &*caller.key_id == "77");
        let (removed, other) = (row(77).0, row(78).0);
        assert!(after.find(&removed).is_none() && before.find(&removed).is_some());
        assert!(after.find(&other).is_some());
        assert_eq!(after.len(), 9_999);
        let shared = before.shards.iter().zip(&after.shards);
        let copied = shared.filter(|(before, after)| !Arc::ptr_eq(before, after));
        assert_eq!(copied.count(), 1);
    }
}
