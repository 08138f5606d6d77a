//! The protocol of the original agent, byte for byte. Source: docs/decisions.md 19, docs/facts/decision-engine.md.

mod errors;
mod json;
mod operation;
mod read_batch;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use self::errors::FaultForm;
use super::{EndpointRules, Protocol};
use crate::auth::jwks::KeySet;
use crate::auth::jwt::InvalidToken;
use crate::decisions::batch::{
    AnsweredBatch, AnsweredOperation, BatchItem, BatchOperation, BatchTarget, FindRoute,
};
use crate::decisions::borrowed_object::BorrowedValue;
use crate::decisions::caseless_object::CaselessObject;
use crate::decisions::credentials::{SdkKeyGrant, SdkRules, bearer_token};
use crate::decisions::encode;
use crate::decisions::errors::ErrorBody;
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
use crate::fault::{Fault, FaultKind};
use crate::json::Object;

/// The protocol of the original agent.
pub struct Agent;

const EVALUATION: EvaluationRules = EvaluationRules {
    operator: OperatorString::Last,
    and_stops_at_unknown: true,
    compares_inexact_numbers: true,
    semver_suffix: SemverSuffix::User,
    runs_paused_experiments: true,
    reads_bandit_profiles: false,
    holdout_scope: HoldoutScope::ListedFlags,
    spares_targeted_deliveries: false,
    opens_feature_rollouts: false,
    defaults_campaign_to_experiment: false,
    prediction_attribute: AttributeName::Key,
    tells_doubts: true,
    quotes_in_full: true,
};

const ENDPOINTS: EndpointRules = EndpointRules {
    checks_unread_bodies: false,
    selection: SelectionRules {
        type_adds_items: true,
        lists_disabled: true,
        refuses_other_words: false,
    },
    checks_profiles_first: true,
    ignores_profile_outage: true,
    checks_platform_before_data: true,
    checks_batch_credentials: false,
    filters_single_decisions: false,
    has_heartbeats: false,
};

static BODY: BodyRules = BodyRules {
    keeps_equal_names: true,
    reads_identifiers_as_texts: true,
    requires_forced_keys: false,
    activates_anonymous_users: false,
    unsendable: FaultKind::Internal,
    unreadable: |why| {
        Fault::new(FaultKind::Invalid, "error parsing request body").with_detail(why.to_owned())
    },
};

/// The agent's time of an event that never happened.
const NEVER: &str = "0001-01-01T00:00:00Z";

impl Protocol for Agent {
    fn is_described(&self) -> bool {
        false
    }

    fn rules(&self) -> EvaluationRules {
        EVALUATION
    }

    fn endpoint_rules(&self) -> EndpointRules {
        ENDPOINTS
    }

    fn event_client(&self) -> EventClient {
        EventClient {
            name: "go-sdk",
            version: "2.3.0",
        }
    }

    fn profile_key(&self, _: &str, user: &str) -> Vec<u8> {
        user.as_bytes().to_vec()
    }

    fn profile_count_key(&self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn segments_key(&self, _: &str, user: &str) -> Vec<u8> {
        format!("fs_user_id-$-{user}").into_bytes()
    }

    /// The agent also takes a token without a scheme, from two headers of its own.
    fn token<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        if headers.contains_key(AUTHORIZATION) {
            return bearer_token(headers);
        }
        let bare = ["jwt", "auth"].iter().find_map(|name| headers.get(*name))?;
        Some(bare.to_str().ok()?.trim())
    }

    /// If tokens count, the agent requires both an SDK key and a token.
    fn credentials(
        &self,
        headers: &HeaderMap,
        rules: &SdkRules,
        foreign: Option<&KeySet>,
        now_s: u64,
    ) -> Result<SdkKeyGrant, Fault> {
        let key = rules.presented_key(headers, FaultKind::Invalid)?;
        let key = key.ok_or_else(errors::missing_key)?;
        if !rules.checks_tokens() {
            return Ok(SdkKeyGrant::Key(key.into()));
        }
        let token = self.token(headers).ok_or(InvalidToken::Empty);
        let granted = token.and_then(|token| rules.granted_keys(token, foreign, now_s));
        let granted = granted.map_err(errors::bad_token)?;
        if !granted.iter().any(|one| one == key) {
            return Err(errors::key_not_granted());
        }
        Ok(SdkKeyGrant::Key(key.into()))
    }

    fn read<'b>(&self, body: &'b [u8]) -> Result<DecisionBody<'b>, Fault> {
        DecisionBody::parse(body, &BODY)
    }

    fn read_batch(&self, body: &[u8]) -> Result<Vec<BatchOperation>, Fault> {
        read_batch::read(body).ok_or_else(errors::unreadable_batch)
    }

    /// Names match in any case, members with a known name must have its type, and the id is a whole number, or zero
    /// without one.
    fn read_webhook(&self, body: &[u8]) -> Result<String, Fault> {
        project_id(body).ok_or_else(webhook::unreadable_message)
    }

    fn read_topic(&self, name: &str) -> Result<Option<Topic>, Fault> {
        Ok(Topic::parse(name))
    }

    fn check_operation(&self, operation: &BatchOperation) -> Result<(), Fault> {
        match operation::is_request(operation) {
            true => Ok(()),
            false => Err(errors::no_request()),
        }
    }

    fn find_target(
        &self,
        operation: &BatchOperation,
        find: FindRoute<'_>,
    ) -> Result<BatchTarget, Fault> {
        Ok(operation::find_target(operation, find))
    }

    /// Operations inherit no headers from the batch.
    fn operation_headers(
        &self,
        operation: &BatchOperation,
        _: &HeaderMap,
        _: &SdkRules,
    ) -> Result<HeaderMap, Fault> {
        operation.header_map()
    }

    /// The agent rewrites the body. Among names that differ only in case, the last one in sorted order counts.
    fn operation_body(&self, operation: &BatchOperation) -> Vec<u8> {
        encode::value(&operation.body).into_bytes()
    }

    fn result_shape(&self) -> ResultShape {
        ResultShape {
            has_empty_variables: false,
            has_everyone_else: true,
        }
    }

    /// The agent rewrites the datafile.
    fn write_datafile(&self, text: &Bytes) -> Bytes {
        match serde_json::from_slice(text) {
            Ok(value) => encode::value(&value).into(),
            Err(_) => text.clone(),
        }
    }

    fn write_track(&self, user_id: &str, event_key: &str, error: Option<&str>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut body = Object::open(&mut out);
        body.text("userId", user_id);
        body.text("eventKey", event_key);
        body.optional_text("error", error);
        body.close();
        out
    }

    fn write_override(&self, result: &OverrideResult<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        result.write(&mut out, |object| match result.messages.is_empty() {
            true => object.raw("messages", "null"),
            false => result.write_messages(object),
        });
        out
    }

    /// The agent rewrites the body of a response. Without JSON, an item has neither body nor request id.
    fn write_item(&self, item: &AnsweredOperation<'_>) -> Vec<u8> {
        let body: Option<Value> = serde_json::from_slice(item.body).ok();
        let given = item.operation.header("x-request-id");
        let request_id = given
            .filter(|id| !id.is_empty())
            .unwrap_or(&item.request_id);
        let ended_at = match operation::is_request(item.operation) {
            true => &*item.times.ended_at,
            false => NEVER,
        };
        let written = BatchItem {
            operation: item.operation,
            status: item.status,
            request_id: body.as_ref().map_or("", |_| request_id),
            body: &body
                .as_ref()
                .map_or_else(|| "null".to_owned(), encode::value),
            started_at: &item.times.started_at,
            ended_at,
        };
        written.write()
    }

    fn write_batch(&self, batch: AnsweredBatch) -> Vec<u8> {
        let ended_at = match batch.items.is_empty() {
            true => NEVER.to_owned(),
            false => batch.times.ended_at.clone(),
        };
        batch.write(&ended_at)
    }

    fn write(&self, json: Bytes) -> Bytes {
        if json.is_empty() {
            return json;
        }
        json::escape(&json).into()
    }

    fn write_error(&self, fault: &Fault) -> ErrorBody {
        errors::write(fault)
    }

    fn frame(&self, notice: &[u8], _: u64, is_raw: bool) -> Vec<u8> {
        notice::frame(json::escape(notice).trim_ascii_end(), None, is_raw)
    }

    fn switched_off(&self, message: &'static str) -> Fault {
        FaultForm::Text.mark(Fault::new(FaultKind::Forbidden, message))
    }

    fn lacking(&self, _: FaultKind, message: &'static str) -> Fault {
        Fault::new(FaultKind::Internal, message)
    }

    fn unknown_key(&self) -> Fault {
        Fault::new(FaultKind::Forbidden, "the SDK key is not known here")
    }

    fn refused_by_source(&self, status: StatusCode) -> Fault {
        errors::refused_by_source(status)
    }

    fn unusable_datafile(&self, sdk_key: &str) -> Fault {
        errors::unusable_datafile(sdk_key)
    }

    fn too_many_operations(&self, most: usize) -> Fault {
        errors::too_many_operations(most)
    }

    fn wrong_token_media_type(&self) -> Result<TokenRefusal, Fault> {
        Ok(TokenRefusal::new(
            415,
            "invalid_request",
            "Content-Type header value must be application/x-www-form-urlencoded",
        ))
    }
}

fn project_id(body: &[u8]) -> Option<String> {
    let message: Option<CaselessObject<'_>> = serde_json::from_slice(body).ok()?;
    let message = message.unwrap_or_default();
    let whole = |value: &BorrowedValue<'_>| match value {
        BorrowedValue::Number(number) => number.as_i64(),
        _ => None,
    };
    let is_known = message.all("timestamp").all(|value| whole(value).is_some())
        && message.all("event").all(|value| value.as_str().is_some())
        && message
            .all("data")
            .all(|value| matches!(value, BorrowedValue::Object(_)));
    let ids: Option<Vec<i64>> = message.all("project_id").map(whole).collect();
    let id = ids?.last().copied().unwrap_or_default();
    is_known.then(|| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_names_match_in_any_case_and_known_members_have_their_types() {
        for (body, expected) in [
            (r#"{"PROJECT_ID":77}"#, Some("77")),
            (
                r#"{"project_id":1,"Project_Id":2,"project_id":3,"PROJECT_ID":null}"#,
                Some("3"),
            ),
            (
                r#"{"project_id":77,"timestamp":-1,"event":"","data":{},"more":[]}"#,
                Some("77"),
            ),
            (
                r#"{"project_id":77,"timestamp":null,"event":null,"data":null}"#,
                Some("77"),
            ),
            ("{}", Some("0")),
            ("null", Some("0")),
            ("[]", None),
            (r#"{"project_id":"77"}"#, None),
            (r#"{"project_id":77.0}"#, None),
            (r#"{"project_id":"1","PROJECT_ID":77}"#, None),
            (r#"{"project_id":77,"Timestamp":"now"}"#, None),
            (r#"{"project_id":77,"timestamp":1.5}"#, None),
            (r#"{"project_id":77,"event":1}"#, None),
            (r#"{"project_id":77,"DATA":[]}"#, None),
        ] {
            let id = Agent.read_webhook(body.as_bytes()).ok();
            assert_eq!(id.as_deref(), expected, "{body}");
        }
    }
}
