//! The protocols of the decision endpoints: the meaning of their requests and the bytes of their responses.
//!
//! Only a [`Protocol`] knows bytes; the engine and the endpoints ask it. [`Document`] follows the published document,
//! and [`Agent`] the original agent. Source: docs/decisions.md 19, docs/facts/decision-engine.md E.

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
use super::credentials::{SdkKeyGrant, SdkRules};
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
    /// Returns whether `GET /v1/openapi.json` describes the responses of this protocol.
    fn is_described(&self) -> bool;

    /// Returns the rules of the engine.
    fn rules(&self) -> EvaluationRules;

    /// Returns the rules of the endpoints.
    fn endpoint_rules(&self) -> EndpointRules;

    /// Returns the name and version of the client in events.
    fn event_client(&self) -> EventClient;

    /// Returns the Redis key of a user's profile: a prefix and hashes, or the agent's key, which is only used in a
    /// Redis of its own. Source: docs/interface.md, `decisions.user_profiles`; docs/hostile-input.md 62a.
    fn profile_key(&self, sdk_key: &str, user: &str) -> Vec<u8>;

    /// Returns the Redis key that counts the users of an SDK key with stored profiles. Returns `None` if every
    /// possible key could be the key of a user.
    fn profile_count_key(&self, sdk_key: &str) -> Option<Vec<u8>>;

    /// Returns the Redis key of a user's segments, made like [`Self::profile_key`].
    fn segments_key(&self, sdk_key: &str, user: &str) -> Vec<u8>;

    /// Returns the token of a request.
    fn token<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str>;

    /// Returns the SDK key of a request. The access token follows after a colon, if the key came with one.
    ///
    /// `foreign` contains the known keys of foreign tokens. Errors: 400, 401 and 403 as docs/decisions.md 20 says.
    fn credentials(
        &self,
        headers: &HeaderMap,
        rules: &SdkRules,
        foreign: Option<&KeySet>,
        now_s: u64,
    ) -> Result<SdkKeyGrant, Fault>;

    /// Reads the body of a request. Errors: 400 for a body that is not a JSON object.
    fn read<'b>(&self, body: &'b [u8]) -> Result<DecisionBody<'b>, Fault>;

    /// Reads the operations of a batch. Errors: 400 for a body that is not a batch.
    fn read_batch(&self, body: &[u8]) -> Result<Vec<BatchOperation>, Fault>;

    /// Returns the project id in a webhook message. Errors: 400 for a body that is not such a message.
    fn read_webhook(&self, body: &[u8]) -> Result<String, Fault>;

    /// Reads a topic of the parameter `filter`. Returns `None` for a name to ignore. Errors: 400 for an unknown name.
    fn read_topic(&self, name: &str) -> Result<Option<Topic>, Fault>;

    /// Checks that an operation can be turned into a request. Errors: 400.
    fn check_operation(&self, operation: &BatchOperation) -> Result<(), Fault>;

    /// Returns the destination of an operation.
    ///
    /// Errors: 400 for a path that cannot be normalised, for an unknown method and for a route that is no endpoint of
    /// decisions; 404; 405.
    fn find_target(
        &self,
        operation: &BatchOperation,
        find: FindRoute<'_>,
    ) -> Result<BatchTarget, Fault>;

    /// Returns the headers of an operation's call. `batch` has the headers of the batch. Errors: 400 for an invalid
    /// header.
    fn operation_headers(
        &self,
        operation: &BatchOperation,
        batch: &HeaderMap,
        rules: &SdkRules,
    ) -> Result<HeaderMap, Fault>;

    /// Returns the body of an operation's call.
    fn operation_body(&self, operation: &BatchOperation) -> Vec<u8>;

    /// Returns the members that results have.
    fn result_shape(&self) -> ResultShape;

    /// Returns a datafile as sent to clients.
    fn write_datafile(&self, text: &Bytes) -> Bytes;

    /// Returns the response to a conversion. `error` says why the conversion was not sent.
    fn write_track(&self, user_id: &str, event_key: &str, error: Option<&str>) -> Vec<u8>;

    /// Returns the response to an override that was set or removed.
    fn write_override(&self, result: &OverrideResult<'_>) -> Vec<u8>;

    /// Returns an item of a batch.
    fn write_item(&self, item: &AnsweredOperation<'_>) -> Vec<u8>;

    /// Returns the response to a batch.
    fn write_batch(&self, batch: AnsweredBatch) -> Vec<u8>;

    /// Returns the body of a response for the JSON text `json`. An empty text stays empty.
    fn write(&self, json: Bytes) -> Bytes;

    /// Returns the body of a fault.
    fn write_error(&self, fault: &Fault) -> ErrorBody;

    /// Returns a notice as a part of the event stream. `number` counts the notices of the subscription, and `is_raw`
    /// asks for lines.
    fn frame(&self, notice: &[u8], number: u64, is_raw: bool) -> Vec<u8>;

    /// Returns the fault of an endpoint that is switched off.
    fn switched_off(&self, message: &'static str) -> Fault;

    /// Returns a fault of this kind, or 500 for the agent: the process or the project lacks something that the
    /// endpoint needs, or the customer-data platform does not respond.
    fn lacking(&self, kind: FaultKind, message: &'static str) -> Fault;

    /// Returns the fault of an SDK key that no project has.
    fn unknown_key(&self) -> Fault;

    /// Returns the fault of an SDK key that the source of datafiles refuses with this status.
    fn refused_by_source(&self, status: StatusCode) -> Fault;

    /// Returns the fault of an SDK key without a usable datafile.
    fn unusable_datafile(&self, sdk_key: &str) -> Fault;

    /// Returns the fault of a batch with more operations than `most`.
    fn too_many_operations(&self, most: usize) -> Fault;

    /// Returns the refusal of a token request with an unknown media type. Errors: the protocol has a fault for this
    /// case.
    fn wrong_token_media_type(&self) -> Result<TokenRefusal, Fault>;
}

/// The rules of endpoints where the protocols differ, as named behaviours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EndpointRules {
    /// A body must be JSON even if the endpoint ignores it.
    pub checks_unread_bodies: bool,
    pub selection: SelectionRules,
    /// A missing profile service is a fault before the body is read.
    pub checks_profiles_first: bool,
    /// An unavailable profile store counts as an empty one. Otherwise it is a 503.
    pub ignores_profile_outage: bool,
    /// A project without a customer-data platform is a fault before the data of an event is checked.
    pub checks_platform_before_data: bool,
    /// The batch itself needs credentials, in addition to its operations.
    pub checks_batch_credentials: bool,
    /// `ENABLED_FLAGS_ONLY` also counts for a decision of one key. Otherwise it counts only for lists.
    pub filters_single_decisions: bool,
    pub has_heartbeats: bool,
}
