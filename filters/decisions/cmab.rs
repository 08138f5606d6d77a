//! Requests and replies of the predictor for contextual bandits (CMAB). Source: docs/facts/decision-engine.md B.

use serde_json::{Map, Value};

use super::borrowed_object::BorrowedObject;
use super::decide::PredictionRequest;
use super::evaluation_rules::AttributeName;
use super::{encode, murmur};
use crate::json::Object;

/// A request for a prediction: an experiment, and the attributes that the predictor may see.
#[derive(Clone, Debug)]
pub struct CmabRequest {
    pub experiment_id: Box<str>,
    attributes: Map<String, Value>,
}

impl CmabRequest {
    /// Makes a request with the attributes that the experiment shows to the predictor.
    pub fn new(
        want: &PredictionRequest<'_>,
        attributes: &BorrowedObject<'_>,
        attribute: AttributeName,
    ) -> Self {
        let listed = want.attributes.iter();
        let visible = listed.filter_map(|(key, id)| {
            let name = match attribute {
                AttributeName::Id => id,
                AttributeName::Key => key,
            };
            Some((name.to_string(), attributes.get(key)?.clone().into()))
        });
        Self {
            experiment_id: want.experiment_id.into(),
            attributes: visible.collect(),
        }
    }

    /// Returns a hash of the attributes. A prediction counts only for the attributes for which it was made.
    pub fn fingerprint(&self) -> u32 {
        let mut text = Vec::new();
        encode::write_object(&self.attributes, &mut text);
        murmur::hash(1, [&text, &[]])
    }

    /// Returns the body of the request, with `uuid` as the id of the prediction.
    pub fn body(&self, user_id: &str, uuid: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut body = Object::open(&mut out);
        body.array("instances", [self], |asked, out| {
            let mut instance = Object::open(out);
            instance.text("visitorId", user_id);
            instance.text("experimentId", &asked.experiment_id);
            instance.array("attributes", &asked.attributes, |(id, value), out| {
                let mut attribute = Object::open(out);
                attribute.text("id", id);
                attribute.raw("value", &encode::value(value));
                attribute.text("type", "custom_attribute");
                attribute.close();
            });
            instance.text("cmabUUID", uuid);
            instance.close();
        });
        body.close();
        out
    }
}

/// Returns the id of the predicted variation.
///
/// Shape: `{"predictions":[{"variation_id"}]}`. Returns `None` for any other shape.
pub fn read_prediction(body: &[u8]) -> Option<Box<str>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    match body.pointer("/predictions/0/variation_id")? {
        Value::String(id) => Some(id.as_str().into()),
        Value::Number(id) => Some(id.to_string().into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn question(attributes: &Value, attribute: AttributeName) -> CmabRequest {
        let listed = [("age".into(), "10".into()), ("city".into(), "20".into())];
        let want = PredictionRequest {
            experiment_id: "e1",
            attributes: &listed,
        };
        CmabRequest::new(
            &want,
            &attributes.as_object().unwrap().clone().into(),
            attribute,
        )
    }

    #[test]
    fn the_predictor_learns_what_the_experiment_lists_and_nothing_else() {
        let user = json!({"name": "Ada", "age": 36.0});
        for (attribute, id) in [(AttributeName::Id, "10"), (AttributeName::Key, "age")] {
            let body = question(&user, attribute).body("u", "x-y");
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(
                body,
                json!({"instances": [{"visitorId": "u", "experimentId": "e1", "cmabUUID": "x-y",
                    "attributes": [{"id": id, "value": 36, "type": "custom_attribute"}]}]})
            );
        }
    }

    #[test]
    fn a_fingerprint_changes_with_what_is_listed_alone() {
        let of = |user: &Value| question(user, AttributeName::Id).fingerprint();
        let first = of(&json!({"age": 36, "name": "Ada"}));
        assert_eq!(first, of(&json!({"name": "Eve", "age": 36.0})));
        assert_ne!(first, of(&json!({"age": 37})));
        assert_ne!(first, of(&json!({"age": 36, "city": "Rome"})));
    }

    #[test]
    fn only_a_prediction_is_one() {
        assert_eq!(
            read_prediction(br#"{"predictions":[{"variation_id":"v"}]}"#).as_deref(),
            Some("v")
        );
        assert_eq!(
            read_prediction(br#"{"predictions":[{"variation_id":7}]}"#).as_deref(),
            Some("7")
        );
        for other in [
            "",
            "[]",
            "{}",
            r#"{"predictions":[]}"#,
            r#"{"predictions":[{"variation_id":null}]}"#,
        ] {
            assert_eq!(read_prediction(other.as_bytes()), None, "{other}");
        }
    }
}
