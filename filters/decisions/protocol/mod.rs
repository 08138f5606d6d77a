//! The protocols of the decision endpoints: what their requests mean and which bytes answer them.
//!
//! The engine and the endpoints know no protocol's bytes; they ask a [`Protocol`]. [`Document`] speaks as the published
//! document says, [`Agent`] as the original agent does. Source: docs/decisions.md 19, docs/facts/decision-engine.md E.

mod agent;
mod document;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

pub use self::agent::Agent;
pub use self::document::Document;
use super::EvaluationRules;
use super::batch::{AnsweredBatch, AnsweredOperation, BatchOperation, BatchTarget, FindRoute};
use super::credentials::{Granted, SdkRules};
use super::errors::ErrorBody;
use super::event::EventClient;
use super::notice::Topic;
use super::override_result::OverrideResult;
use super::request_body::DecisionBody;
use super::response_body::ResultShape;
use super::selection::SelectionRules;
use super::token::TokenRefusal;
use crate::auth::jwks::KeySet;
use crate::fault::{Fault, FaultKind};

/// A dialect of the decision endpoints.
pub trait Protocol: Send + Sync {
    /// Whether `GET /v1/openapi.json` describes its responses.
    fn is_described(&self) -> bool;

    /// How the engine decides.
    fn rules(&self) -> EvaluationRules;

    /// What endpoints do.
    fn endpoint_rules(&self) -> EndpointRules;

    /// How events name the client that sends them.
    fn event_client(&self) -> EventClient;

    /// The Redis key of a user's profile: a prefix and hashes, or the agent's, which is used in a Redis of its own alone.
    /// Source: docs/interface.md, `decisions.user_profiles`; docs/security.md 62a.
    fn profile_key(&self, sdk_key: &str, user: &str) -> Vec<u8>;

    /// The Redis key that counts the users of an SDK key whose profiles are stored; `None`: there is no name that no user has.
    fn profile_count_key(&self, sdk_key: &str) -> Option<Vec<u8>>;

    /// The Redis key of a user's segments, as [`Self::profile_key`].
    fn segments_key(&self, sdk_key: &str, user: &str) -> Vec<u8>;

    /// The token of a request.
    fn token<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str>;

    /// The SDK key of a request, with its access token behind a colon if it came with one.
    ///
    /// `foreign` holds the keys of foreign tokens that are known. Errors: 400, 401 and 403 as docs/decisions.md 20 says.
    fn credentials(
        &self,
        headers: &HeaderMap,
        rules: &SdkRules,
        foreign: Option<&KeySet>,
        now_s: u64,
    ) -> Result<Granted, Fault>;

    /// The body of a request. Errors: 400 for a body that is no JSON object.
    fn read<'b>(&self, body: &'b [u8]) -> Result<DecisionBody<'b>, Fault>;

    /// The operations of a batch. Errors: 400 for a body that is no batch.
    fn read_batch(&self, body: &[u8]) -> Result<Vec<BatchOperation>, Fault>;

    /// The id of the project that a webhook message is about. Errors: 400 for a body that is no message.
    fn read_webhook(&self, body: &[u8]) -> Result<String, Fault>;

    /// A topic of the parameter `filter`; `None`: the name is ignored. Errors: 400 for an unknown name.
    fn read_topic(&self, name: &str) -> Result<Option<Topic>, Fault>;

    /// Checks that a request can be made of an operation. Errors: 400.
    fn check_operation(&self, operation: &BatchOperation) -> Result<(), Fault>;

    /// Where an operation goes.
    ///
    /// Errors: 400 for a path that cannot be normalised, for an unknown method and for a route that is no endpoint of
    /// decisions; 404; 405.
    fn find_target(
        &self,
        operation: &BatchOperation,
        find: FindRoute<'_>,
    ) -> Result<BatchTarget, Fault>;

    /// The headers of an operation's call; `batch` holds those of the batch. Errors: 400 for a header that cannot be sent.
    fn operation_headers(
        &self,
        operation: &BatchOperation,
        batch: &HeaderMap,
        rules: &SdkRules,
    ) -> Result<HeaderMap, Fault>;

    /// The bytes of an operation's body.
    fn operation_body(&self, operation: &BatchOperation) -> Vec<u8>;

    /// Which members results have.
    fn result_shape(&self) -> ResultShape;

    /// A datafile as it is answered.
    fn write_datafile(&self, text: &Bytes) -> Bytes;

    /// The response to a conversion; `error`: why it was not sent.
    fn write_track(&self, user_id: &str, event_key: &str, error: Option<&str>) -> Vec<u8>;

    /// The response to an override that was set or removed.
    fn write_override(&self, result: &OverrideResult<'_>) -> Vec<u8>;

    /// An item of a batch.
    fn write_item(&self, item: &AnsweredOperation<'_>) -> Vec<u8>;

    /// A batch.
    fn write_batch(&self, batch: AnsweredBatch) -> Vec<u8>;

    /// The body of a response with the JSON text `json`; an empty text stays empty.
    fn write(&self, json: Bytes) -> Bytes;

    /// The body of a fault.
    fn write_error(&self, fault: &Fault) -> ErrorBody;

    /// A notice as a piece of the event stream; `number` counts the notices of the subscription, `is_raw` asks for lines.
    fn frame(&self, notice: &[u8], number: u64, is_raw: bool) -> Vec<u8>;

    /// The fault of an endpoint that is switched off.
    fn switched_off(&self, message: &'static str) -> Fault;

    /// A fault of this kind, which the agent answers as 500: the process or the project lacks what the endpoint needs, or the
    /// customer-data platform does not answer.
    fn lacking(&self, kind: FaultKind, message: &'static str) -> Fault;

    /// The fault of an SDK key that no project has.
    fn unknown_key(&self) -> Fault;

    /// The fault of an SDK key that the source of datafiles refuses with this status.
    fn refused_by_source(&self, status: StatusCode) -> Fault;

    /// The fault of an SDK key without a usable datafile.
    fn unusable_datafile(&self, sdk_key: &str) -> Fault;

    /// The fault of a batch with more operations than `most`.
    fn too_many_operations(&self, most: usize) -> Fault;

    /// The refusal of a request for a token of an unknown media type. Errors: the protocol has a fault for it.
    fn wrong_token_media_type(&self) -> Result<TokenRefusal, Fault>;
}

/// What endpoints do where the protocols differ, as named behaviours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EndpointRules {
    /// A body sent to an endpoint that reads none has to be JSON too.
    pub checks_unread_bodies: bool,
    pub selection: SelectionRules,
    /// A missing profile service is a fault before the body is read.
    pub checks_profiles_first: bool,
    /// A profile store that does not answer is taken for an empty one; otherwise it is a 503.
    pub ignores_profile_outage: bool,
    /// A project without a customer-data platform is a fault before the data of an event is checked.
    pub checks_platform_before_data: bool,
    /// A batch needs credentials itself, beside those of its operations.
    pub checks_batch_credentials: bool,
    /// `ENABLED_FLAGS_ONLY` counts for a decision of one key too; otherwise for lists alone.
    pub filters_single_decisions: bool,
    pub has_heartbeats: bool,
}
