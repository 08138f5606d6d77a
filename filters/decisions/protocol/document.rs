//! The protocol of the published document. Source: docs/decision-agent.md, docs/decisions.md 19 to 22.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde::de::Error;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{EndpointRules, Protocol};
use crate::auth::jwks::KeySet;
use crate::auth::jwt::InvalidToken;
use crate::decisions::batch::{
    AnsweredBatch, AnsweredOperation, BatchItem, BatchOperation, BatchTarget, FindRoute,
    no_decision_endpoint,
};
use crate::decisions::credentials::{
    SdkKeyGrant, SdkRules, bearer_token, is_sdk_key, malformed, unauthenticated,
};
use crate::decisions::errors::{self, DATAFILE_RETRY_AFTER_S, ErrorBody};
use crate::decisions::evaluation_rules::{
    AttributeName, EvaluationRules, HoldoutScope, OperatorString, SemverSuffix,
};
use crate::decisions::event::EventClient;
use crate::decisions::notice::{self, Topic};
use crate::decisions::override_result::OverrideResult;
use crate::decisions::request_body::{BodyRules, DecisionBody};
use crate::decisions::response_body::ResultShape;
use crate::decisions::selection::SelectionRules;
use crate::decisions::token::TokenRefusal;
use crate::decisions::webhook;
use crate::fault::{Fault, FaultKind, quoted};
use crate::json::Object;

/// The protocol of the published document.
pub struct Document;

/// The behaviour of most of the newest SDKs.
const EVALUATION: EvaluationRules = EvaluationRules {
    operator: OperatorString::First,
    and_stops_at_unknown: false,
    compares_inexact_numbers: false,
    semver_suffix: SemverSuffix::Condition,
    runs_paused_experiments: false,
    reads_bandit_profiles: true,
    holdout_scope: HoldoutScope::EveryFlag,
    spares_targeted_deliveries: true,
    opens_feature_rollouts: true,
    defaults_campaign_to_experiment: true,
    prediction_attribute: AttributeName::Id,
    tells_doubts: false,
    quotes_in_full: false,
};

const ENDPOINTS: EndpointRules = EndpointRules {
    checks_unread_bodies: true,
    selection: SelectionRules {
        type_adds_items: false,
        lists_disabled: false,
        refuses_other_words: true,
    },
    checks_profiles_first: false,
    ignores_profile_outage: false,
    checks_platform_before_data: false,
    checks_batch_credentials: true,
    filters_single_decisions: true,
    has_heartbeats: true,
};

static BODY: BodyRules = BodyRules {
    keeps_equal_names: false,
    reads_identifiers_as_texts: false,
    requires_forced_keys: true,
    activates_anonymous_users: true,
    unsendable: FaultKind::Invalid,
    unreadable: |why| {
        Fault::new(
            FaultKind::Invalid,
            format!("error parsing request body: {}", quoted(why)),
        )
    },
};

#[derive(Deserialize)]
struct BatchRequest<'b> {
    #[serde(borrow)]
    operations: Vec<&'b RawValue>,
}

/// Reads the operations of a batch. Derived types would accept lists in place of objects.
fn read_operations(body: &[u8]) -> serde_json::Result<Vec<BatchOperation>> {
    let batch: &RawValue = serde_json::from_slice(body)?;
    let batch: BatchRequest<'_> = read_object(batch)?;
    batch.operations.into_iter().map(read_object).collect()
}

fn read_object<'b, T: Deserialize<'b>>(json: &'b RawValue) -> serde_json::Result<T> {
    match json.get().starts_with('{') {
        true => serde_json::from_str(json.get()),
        false => Err(serde_json::Error::custom("an object is expected")),
    }
}

impl Protocol for Document {
    fn is_described(&self) -> bool {
        true
    }

    fn rules(&self) -> EvaluationRules {
        EVALUATION
    }

    fn endpoint_rules(&self) -> EndpointRules {
        ENDPOINTS
    }

    fn event_client(&self) -> EventClient {
        EventClient {
            name: "weirgate",
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    fn profile_key(&self, sdk_key: &str, user: &str) -> Vec<u8> {
        let (project, user) = (hash_hex(sdk_key), hash_hex(user));
        format!("weirgate:ups:{project}:{user}").into_bytes()
    }

    fn profile_count_key(&self, sdk_key: &str) -> Option<Vec<u8>> {
        let project = hash_hex(sdk_key);
        Some(format!("weirgate:ups-count:{project}").into_bytes())
    }

    fn segments_key(&self, sdk_key: &str, user: &str) -> Vec<u8> {
        let hash = hash_hex(&format!("{sdk_key}\0{user}"));
        format!("weirgate:segments:{hash}").into_bytes()
    }

    fn token<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        bearer_token(headers)
    }

    /// An SDK key or a token suffices, even where tokens are issued. A key counts beside an invalid token; a valid
    /// token has to grant the key.
    fn credentials(
        &self,
        headers: &HeaderMap,
        rules: &SdkRules,
        foreign: Option<&KeySet>,
        now_s: u64,
    ) -> Result<SdkKeyGrant, Fault> {
        let key = rules.presented_key(headers, FaultKind::Unauthenticated)?;
        let Some(token) = self.token(headers) else {
            let key = key.ok_or_else(|| missing_credentials(rules))?;
            return Ok(SdkKeyGrant::Key(key.into()));
        };
        let granted = match rules.checks_tokens() {
            true => {
                let granted = rules.granted_keys(token, foreign, now_s);
                granted.map_err(InvalidToken::message)
            }
            false => Err("no tokens are issued here"),
        };
        match (key, granted) {
            (Some(key), Ok(granted)) if !granted.iter().any(|one| one == key) => {
                Err(key_not_granted())
            }
            (Some(key), _) => Ok(SdkKeyGrant::Key(key.into())),
            (None, Ok(granted)) => granted_by_token(granted),
            (None, Err(why)) => Err(unauthenticated(why)),
        }
    }

    fn read<'b>(&self, body: &'b [u8]) -> Result<DecisionBody<'b>, Fault> {
        DecisionBody::parse(body, &BODY)
    }

    fn read_batch(&self, body: &[u8]) -> Result<Vec<BatchOperation>, Fault> {
        read_operations(body).map_err(|error| {
            let message = format!(
                "cannot decode the operation body: {}",
                quoted(&error.to_string())
            );
            Fault::new(FaultKind::Invalid, message)
        })
    }

    fn read_webhook(&self, body: &[u8]) -> Result<String, Fault> {
        let message: Option<Value> = serde_json::from_slice(body).ok();
        let id = match message.as_ref().and_then(|one| one.get("project_id")) {
            Some(Value::String(id)) => Some(id.clone()),
            Some(id) if id.is_u64() => Some(id.to_string()),
            _ => None,
        };
        id.ok_or_else(webhook::unreadable_message)
    }

    fn read_topic(&self, name: &str) -> Result<Option<Topic>, Fault> {
        let topic = Topic::parse(name).ok_or_else(|| {
            let message = format!(
                "`filter` is {:?}; decision, track and project_config_update are accepted",
                quoted(name)
            );
            Fault::new(FaultKind::Invalid, message).with_param("filter")
        });
        topic.map(Some)
    }

    fn check_operation(&self, _: &BatchOperation) -> Result<(), Fault> {
        Ok(())
    }

    fn find_target(
        &self,
        operation: &BatchOperation,
        find: FindRoute<'_>,
    ) -> Result<BatchTarget, Fault> {
        let method = match &*operation.method {
            "" | "GET" => Method::GET,
            "POST" => Method::POST,
            other => {
                let message = format!("`method` is {:?}; GET and POST are accepted", quoted(other));
                return Err(Fault::new(FaultKind::Invalid, message).with_param("method"));
            }
        };
        let route = find(&method, operation.split_url().0)?;
        if !route.is_operation {
            return Err(no_decision_endpoint());
        }
        Ok(BatchTarget::Endpoint(route.index))
    }

    /// Bodies are JSON, and operations have the credentials of the batch, unless the operation says otherwise.
    fn operation_headers(
        &self,
        operation: &BatchOperation,
        batch: &HeaderMap,
        rules: &SdkRules,
    ) -> Result<HeaderMap, Fault> {
        let mut headers = operation.header_map()?;
        if !headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        rules.lend_credentials(batch, &mut headers);
        Ok(headers)
    }

    fn operation_body(&self, operation: &BatchOperation) -> Vec<u8> {
        match &operation.body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        }
    }

    fn result_shape(&self) -> ResultShape {
        ResultShape {
            has_empty_variables: true,
            has_everyone_else: false,
        }
    }

    fn write_datafile(&self, text: &Bytes) -> Bytes {
        text.clone()
    }

    fn write_track(&self, _: &str, _: &str, error: Option<&str>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut body = Object::open(&mut out);
        body.optional_text("error", error);
        body.close();
        out
    }

    /// The response is a list of one result.
    fn write_override(&self, result: &OverrideResult<'_>) -> Vec<u8> {
        let mut out = b"[".to_vec();
        result.write(&mut out, |object| result.write_messages(object));
        out.push(b']');
        out
    }

    /// The status is 200 or 400. A response without a body becomes an empty object.
    fn write_item(&self, item: &AnsweredOperation<'_>) -> Vec<u8> {
        let body = String::from_utf8_lossy(item.body);
        let item = BatchItem {
            operation: item.operation,
            status: if item.status == 200 { 200 } else { 400 },
            request_id: &item.request_id,
            body: if body.is_empty() { "{}" } else { &body },
            started_at: &item.times.started_at,
            ended_at: &item.times.ended_at,
        };
        item.write()
    }

    fn write_batch(&self, batch: AnsweredBatch) -> Vec<u8> {
        let ended_at = batch.times.ended_at.clone();
        batch.write(&ended_at)
    }

    fn write(&self, json: Bytes) -> Bytes {
        json
    }

    fn write_error(&self, fault: &Fault) -> ErrorBody {
        ErrorBody {
            bytes: errors::write_json(fault),
            is_text: false,
        }
    }

    fn frame(&self, notice: &[u8], number: u64, is_raw: bool) -> Vec<u8> {
        notice::frame(notice, Some(number), is_raw)
    }

    fn switched_off(&self, message: &'static str) -> Fault {
        Fault::new(FaultKind::Forbidden, message)
    }

    fn lacking(&self, kind: FaultKind, message: &'static str) -> Fault {
        Fault::new(kind, message)
    }

    fn unknown_key(&self) -> Fault {
        unauthenticated("the SDK key is not known here")
    }

    fn refused_by_source(&self, _: StatusCode) -> Fault {
        self.unknown_key()
    }

    fn unusable_datafile(&self, _: &str) -> Fault {
        let message = "the project's datafile cannot be read at the moment";
        Fault::new(FaultKind::Unavailable, message).with_retry_after_s(DATAFILE_RETRY_AFTER_S)
    }

    fn too_many_operations(&self, most: usize) -> Fault {
        let message = format!("too many operations, exceeding {most} operations");
        Fault::new(FaultKind::TooMany, message)
    }

    fn wrong_token_media_type(&self) -> Result<TokenRefusal, Fault> {
        Err(Fault::new(
            FaultKind::MediaType,
            "`Content-Type` is neither application/json nor application/x-www-form-urlencoded",
        ))
    }
}

fn missing_credentials(rules: &SdkRules) -> Fault {
    unauthenticated(format!(
        "an SDK key or a token is required: send the header {} or `Authorization: Bearer <token>`",
        rules.header_name()
    ))
}

fn key_not_granted() -> Fault {
    let message = "the SDK key is not among those of the token";
    Fault::new(FaultKind::Forbidden, message)
}

/// Returns the grant of a token that came without an SDK key in a header.
fn granted_by_token(keys: Vec<String>) -> Result<SdkKeyGrant, Fault> {
    let mut keys = keys.into_iter();
    match (keys.next(), keys.next()) {
        (Some(key), None) if is_sdk_key(&key) => Ok(SdkKeyGrant::Key(key.into())),
        (Some(_), None) => Err(malformed(FaultKind::Unauthenticated)),
        (None, _) => Err(key_not_granted()),
        (Some(_), Some(_)) => Ok(SdkKeyGrant::Several),
    }
}

fn hash_hex(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
