//! Requests and replies of the customer-data platform: segments of users, and the events that segments are made of.
//! Source: docs/facts/decision-engine.md E.

use serde_json::{Map, Value, json};

use super::project::Odp;
use crate::fault::{Fault, FaultKind};

/// Returns the host and the key for segments and events. The key is the one of the datafile's integration, and so is
/// the host unless another one is configured.
pub fn odp_target<'p>(host: Option<&'p str>, odp: Option<&'p Odp>) -> Option<(&'p str, &'p str)> {
    let odp = odp.filter(|odp| !odp.public_key.is_empty())?;
    let host = host.unwrap_or(&odp.host);
    (!host.is_empty()).then_some((host, &odp.public_key))
}

/// Returns the body of the request for a user's segments.
pub fn segments_query(user_id: &str, segments: &[Box<str>]) -> Vec<u8> {
    const QUERY: &str = "query($userId: String, $audiences: [String]) {customer(fs_user_id: $userId) {audiences(subset: \
        $audiences) {edges {node {name state}}}}}";
    json!({"query": QUERY, "variables": {"userId": user_id, "audiences": segments}})
        .to_string()
        .into_bytes()
}

/// Returns the segments of the user, or `None` if the reply does not list them.
pub fn read_segments(body: &[u8]) -> Option<Vec<String>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    if body.get("errors").is_some_and(|errors| !errors.is_null()) {
        return None;
    }
    let edges = body.pointer("/data/customer/audiences/edges")?.as_array()?;
    let node = |edge: &Value| {
        let node = edge.get("node")?;
        let (name, state) = (node.get("name")?.as_str()?, node.get("state")?.as_str()?);
        Some((name.to_owned(), state == "qualified"))
    };
    let nodes: Option<Vec<_>> = edges.iter().map(node).collect();
    let qualified = nodes?.into_iter().filter(|(_, is_in)| *is_in);
    Some(qualified.map(|(name, _)| name).collect())
}

/// An event that a caller sends.
#[derive(Clone, Debug, PartialEq)]
pub struct OdpEvent {
    kind: String,
    action: String,
    identifiers: Map<String, Value>,
    data: Map<String, Value>,
}

impl OdpEvent {
    /// Checks the members of an event.
    ///
    /// Errors: 400 for no action or no identifiers.
    pub(super) fn new(
        kind: String,
        action: String,
        identifiers: Map<String, Value>,
        data: Map<String, Value>,
    ) -> Result<Self, Fault> {
        let missing = |message: &'static str, param: &str| {
            Err(Fault::new(FaultKind::Invalid, message).with_param(param))
        };
        if action.is_empty() {
            return missing("missing \"action\" in request payload", "action");
        }
        if identifiers.is_empty() {
            let message = "missing or empty \"identifiers\" in request payload";
            return missing(message, "identifiers");
        }
        if !identifiers.values().all(Value::is_string) {
            let message = "error parsing request body: `identifiers` are texts";
            return missing(message, "identifiers");
        }
        let kind = if kind.is_empty() {
            "fullstack".to_owned()
        } else {
            kind
        };
        let identifiers = identifiers.into_iter();
        Ok(Self {
            kind,
            action,
            identifiers: identifiers.map(|(key, id)| (user_key(key), id)).collect(),
            data,
        })
    }

    /// Returns whether the platform accepts the event's data: no value is a list or an object.
    pub fn is_sendable(&self) -> bool {
        let mut values = self.data.values();
        !values.any(|value| value.is_array() || value.is_object())
    }

    /// Returns the event as the platform expects it. `uuid` identifies the event, so that it counts once if it is
    /// sent several times. `source` is the name of the client that sends it.
    pub fn to_json(&self, uuid: &str, source: &str) -> Value {
        let mut data = json!({
            "idempotence_id": uuid,
            "data_source_type": "sdk",
            "data_source": source,
            "data_source_version": env!("CARGO_PKG_VERSION"),
        });
        if let Some(data) = data.as_object_mut() {
            data.extend(self.data.clone());
        }
        json!({"type": self.kind, "action": self.action, "identifiers": self.identifiers, "data": data})
    }
}

/// Returns the name of an identifier. All spellings of the user's id have one name.
fn user_key(key: String) -> String {
    if key.eq_ignore_ascii_case("fs-user-id") || key.eq_ignore_ascii_case("fs_user_id") {
        return "fs_user_id".to_owned();
    }
    key
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn only_what_is_qualified_counts() {
        let body = r#"{"data":{"customer":{"audiences":{"edges":[
            {"node":{"name":"a","state":"qualified"}},{"node":{"name":"b","state":"not_qualified"}}]}}}}"#;
        assert_eq!(read_segments(body.as_bytes()), Some(vec!["a".to_owned()]));
        let none = r#"{"data":{"customer":{"audiences":{"edges":[]}}}}"#;
        assert_eq!(read_segments(none.as_bytes()), Some(Vec::new()));
        for bad in [
            "",
            "{}",
            r#"{"errors":[{"message":"x"}],"data":{"customer":null}}"#,
            r#"{"data":{"customer":{"audiences":{"edges":[{"node":{}}]}}}}"#,
        ] {
            assert_eq!(read_segments(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn an_event_is_told_with_an_id_of_its_own_and_the_users_key_in_one_spelling() {
        let identifiers = object(json!({"FS-USER-ID": "u", "vuid": "v"}));
        let data = object(json!({"x": 1, "idempotence_id": "mine"}));
        let event = OdpEvent::new(String::new(), "bought".to_owned(), identifiers, data).unwrap();
        let written = event.to_json("id", "go-sdk");
        assert_eq!(written["type"], "fullstack");
        assert_eq!(
            written["identifiers"],
            json!({"fs_user_id": "u", "vuid": "v"})
        );
        assert_eq!(
            (&written["data"]["data_source"], &written["data"]["x"]),
            (&"go-sdk".into(), &1.into())
        );
        assert_eq!(written["data"]["idempotence_id"], "mine");
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        let ids = || object(json!({"vuid": "v"}));
        let event = |action: &str, ids, data| {
            OdpEvent::new(String::new(), action.to_owned(), ids, object(data)).unwrap_err()
        };
        let (action, empty) = (
            event("", ids(), json!({})),
            event("a", Map::new(), json!({})),
        );
        assert_eq!(action.message, "missing \"action\" in request payload");
        assert_eq!(
            empty.message,
            "missing or empty \"identifiers\" in request payload"
        );
        let data = object(json!({"x": []}));
        let event_with_list = OdpEvent::new(String::new(), "a".to_owned(), ids(), data);
        assert!(!event_with_list.unwrap().is_sendable());
        let odd = event("a", object(json!({"vuid": 1})), json!({}));
        assert_eq!(odd.status(), 400);
    }
}
