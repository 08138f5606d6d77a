//! Reads events as they wait for the backend, for people. What the backend gets are the bytes as they were written.

use serde::Deserialize;
use serde_json::Value;

/// An event of one user.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedVisitor {
    pub user_id: String,
    /// The attributes that are sent: key and value.
    pub attributes: Vec<(String, Value)>,
    /// The key of the event: `campaign_activated` of an impression.
    pub event_key: String,
    /// Unix time.
    pub at_ms: u64,
    /// What an impression is of.
    pub impression: Option<SeenVariation>,
}

/// The variation that a user has got.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct SeenVariation {
    pub flag_key: String,
    pub rule_key: String,
    pub rule_type: String,
    pub variation_key: String,
    #[serde(rename = "enabled")]
    pub is_enabled: bool,
}

#[derive(Deserialize)]
struct VisitorMembers {
    visitor_id: String,
    attributes: Vec<AttributeMembers>,
    snapshots: Vec<SnapshotMembers>,
}

#[derive(Deserialize)]
struct AttributeMembers {
    key: String,
    value: Value,
}

#[derive(Deserialize)]
struct SnapshotMembers {
    #[serde(default)]
    decisions: Vec<DecisionMembers>,
    events: Vec<EventMembers>,
}

#[derive(Deserialize)]
struct DecisionMembers {
    metadata: SeenVariation,
}

#[derive(Deserialize)]
struct EventMembers {
    key: String,
    timestamp: u64,
}

impl QueuedVisitor {
    /// Reads a visitor that [`event`](super::event) has written. Returns `None` for other bytes.
    pub fn read(visitor: &[u8]) -> Option<Self> {
        let read: VisitorMembers = serde_json::from_slice(visitor).ok()?;
        let snapshot = read.snapshots.into_iter().next()?;
        let event = snapshot.events.into_iter().next()?;
        let decision = snapshot.decisions.into_iter().next();
        let attributes = read.attributes.into_iter();
        Some(Self {
            user_id: read.visitor_id,
            attributes: attributes.map(|one| (one.key, one.value)).collect(),
            event_key: event.key,
            at_ms: event.timestamp,
            impression: decision.map(|decision| decision.metadata),
        })
    }
}
