//! Events in the format of the analytics backend. Source: docs/facts/decision-engine.md G.
//!
//! A visitor is one event of one user. A batch has a head and the visitors of one project and revision.

use http::StatusCode;
use serde_json::{Map, Value};

use super::borrowed_object::{BorrowedObject, BorrowedValue};
use super::decide::Impression;
use super::encode;
use super::project::Project;
use crate::json::Object;

/// The largest number that counts as an attribute.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_992.0;
/// The prefix of the service's own attributes.
const RESERVED: &str = "$opt_";

/// The name and version of the client in events.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct EventClient {
    pub name: &'static str,
    pub version: &'static str,
}

/// The members that all events of a batch share.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct EventHead {
    account_id: Box<str>,
    project_id: Box<str>,
    revision: Box<str>,
    region: Box<str>,
    anonymize_ip: bool,
    client: EventClient,
}

impl EventHead {
    /// Returns the head of a project's events.
    pub fn new(project: &Project, client: EventClient) -> Self {
        Self {
            account_id: project.account_id.clone(),
            project_id: project.project_id.clone(),
            revision: project.revision.clone(),
            region: project.region.clone(),
            anonymize_ip: project.anonymize_ip,
            client,
        }
    }

    /// Returns the id of the project in its datafile.
    pub fn project_id(&self) -> &str {
        &self.project_id
    }

    /// Returns the body of a batch. `visitors` are JSON objects.
    pub fn batch<'v>(&self, visitors: impl IntoIterator<Item = &'v [u8]>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut batch = Object::open(&mut out);
        batch.text("revision", &self.revision);
        batch.text("account_id", &self.account_id);
        batch.text("client_version", self.client.version);
        batch.array("visitors", visitors, |visitor, out| {
            out.extend_from_slice(visitor)
        });
        batch.text("project_id", &self.project_id);
        batch.text("client_name", self.client.name);
        batch.bool("anonymize_ip", self.anonymize_ip);
        batch.bool("enrich_decisions", true);
        batch.text("region", &self.region);
        batch.close();
        out
    }
}

/// The user, the time and the id of an event.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    pub user_id: &'a str,
    pub attributes: &'a BorrowedObject<'a>,
    /// Unix time.
    pub now_ms: u64,
    /// The id of the event, which stays the same when the event is sent again.
    pub uuid: &'a str,
}

/// Returns whether the backend would refuse the same batch again. A redirect counts too, because redirects are not
/// followed.
pub fn is_final(status: StatusCode) -> bool {
    let is_temporary = matches!(
        status,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
    );
    status.is_redirection() || status.is_client_error() && !is_temporary
}

/// Returns the visitor of an impression.
pub fn impression(project: &Project, impression: &Impression<'_>, moment: &Moment<'_>) -> Vec<u8> {
    let campaign = match impression.layer_id {
        "" if project.rules.defaults_campaign_to_experiment => impression.experiment_id,
        id => id,
    };
    visitor(project, moment, |snapshot| {
        snapshot.array("decisions", [impression], |impression, out| {
            let mut decision = Object::open(out);
            decision.text("variation_id", impression.variation_id);
            decision.text("campaign_id", campaign);
            decision.text("experiment_id", impression.experiment_id);
            decision.object("metadata", |metadata| {
                metadata.text("flag_key", impression.flag_key);
                metadata.text("rule_key", impression.rule_key);
                metadata.text("rule_type", impression.rule_type);
                metadata.text("variation_key", impression.variation_key);
                metadata.bool("enabled", impression.is_enabled);
                metadata.optional_text("cmab_uuid", impression.cmab_uuid.as_deref());
            });
            decision.close();
        });
        snapshot.array("events", [()], |(), out| {
            let mut event = Object::open(out);
            event.text("entity_id", campaign);
            event.text("key", "campaign_activated");
            event.number("timestamp", moment.now_ms);
            event.text("uuid", moment.uuid);
            event.close();
        });
    })
}

/// Returns the visitor of a conversion, or `None` if the datafile does not contain the event.
pub fn conversion(
    project: &Project,
    key: &str,
    tags: &Map<String, Value>,
    moment: &Moment<'_>,
) -> Option<Vec<u8>> {
    let known = project.event_keys.get(key);
    let known = known.and_then(|at| project.events.get(*at))?;
    Some(visitor(project, moment, |snapshot| {
        snapshot.array("events", [known], |known, out| {
            let mut event = Object::open(out);
            event.text("entity_id", &known.id);
            event.text("key", &known.key);
            event.number("timestamp", moment.now_ms);
            event.text("uuid", moment.uuid);
            if !tags.is_empty() {
                event.value("tags", |out| encode::write_object(tags, out));
            }
            if let Some(revenue) = tags.get("revenue").filter(|tag| tag.is_number()) {
                event.raw("revenue", &truncated(revenue).to_string());
            }
            if let Some(value) = tags.get("value").and_then(Value::as_f64) {
                event.raw("value", &encode::number(value));
            }
            event.close();
        });
    }))
}

/// Returns a number without its fraction.
fn truncated(number: &Value) -> i64 {
    let float = || number.as_f64().unwrap_or_default() as i64;
    number.as_i64().unwrap_or_else(float)
}

fn visitor(
    project: &Project,
    moment: &Moment<'_>,
    snapshot: impl FnOnce(&mut Object<'_>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let mut visitor = Object::open(&mut out);
    let bots = BorrowedValue::Bool(project.bot_filtering);
    let all = moment
        .attributes
        .iter()
        .chain([("$opt_bot_filtering", &bots)]);
    let sent = all.filter_map(|(key, value)| Some((key, value, entity_id(project, key, value)?)));
    visitor.array("attributes", sent, |(key, value, entity), out| {
        let mut attribute = Object::open(out);
        attribute.value("value", |out| encode::write_value(value, out));
        attribute.text("key", key);
        attribute.text("type", "custom");
        attribute.text("entity_id", entity);
        attribute.close();
    });
    visitor.array("snapshots", [snapshot], |snapshot, out| {
        let mut inner = Object::open(out);
        snapshot(&mut inner);
        inner.close();
    });
    visitor.text("visitor_id", moment.user_id);
    visitor.close();
    out
}

/// Returns the id under which an attribute is sent, or `None` for an attribute that is not sent.
fn entity_id<'a>(project: &'a Project, key: &'a str, value: &BorrowedValue<'_>) -> Option<&'a str> {
    let counts = match value {
        BorrowedValue::Bool(_) | BorrowedValue::Text(_) => true,
        BorrowedValue::Number(number) => number
            .as_f64()
            .is_some_and(|number| number.abs() <= MAX_SAFE_INTEGER),
        _ => false,
    };
    if !counts {
        return None;
    }
    let known = project.attribute_ids.get(key);
    match known.and_then(|at| project.attributes.get(*at)) {
        Some(attribute) => Some(&attribute.id),
        None => key.starts_with(RESERVED).then_some(key),
    }
}
