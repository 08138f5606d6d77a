//! The codes of faults: the words by which programs tell one error from another, each with what it means and who cures it.
//!
//! docs/errors.md is made of this table.

/// Who cures an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CuredBy {
    /// Whoever sends the request.
    Client,
    /// Whoever runs the gateway.
    Operator,
    /// A model provider, or the graph service; most often time alone.
    Provider,
}

/// A row of the table of codes.
#[derive(Clone, Copy, Debug)]
pub struct FaultCodeRow {
    /// The word.
    pub code: &'static str,
    /// The status with which it goes out.
    pub status: u16,
    pub cured_by: CuredBy,
    /// What happened.
    pub meaning: &'static str,
    /// What to do.
    pub cure: &'static str,
}

/// Makes the type of codes of its table, so that a row is all that a code needs.
macro_rules! table {
    ($($name:ident $code:literal $status:literal $cured_by:ident $meaning:literal $cure:literal)*) => {
        /// The code of a fault.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[expect(missing_docs, reason = "the table says what each means")]
        pub enum FaultCode {
            $($name,)*
        }

        impl FaultCode {
            /// All codes, by status.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the row of the table.
            pub const fn row(self) -> FaultCodeRow {
                match self {
                    $(Self::$name => FaultCodeRow {
                        code: $code,
                        status: $status,
                        cured_by: CuredBy::$cured_by,
                        meaning: $meaning,
                        cure: $cure,
                    },)*
                }
            }
        }
    };
}

table! {
    InvalidJson "invalid_json" 400 Client
        "The body is not a JSON object, or is nested or long beyond the limits."
        "Send one JSON object."
    DuplicateKey "duplicate_key" 400 Client
        "A member came twice in one object."
        "Send it once."
    InvalidParameters "invalid_parameters" 400 Client
        "A field breaks a rule. `param` names it; the message says what came and what is accepted."
        "Change the field."
    InvalidRequest "invalid_request" 400 Client
        "Two fields say the same thing and came together."
        "Send one of them."
    UnsupportedParameterCombination "unsupported_parameter_combination" 400 Client
        "Two fields do not go together."
        "Leave one out, as the message says."
    UnsupportedValue "unsupported_value" 400 Client
        "The value asks for what this gateway, or this configuration of it, does not do."
        "Leave the field out, or use a value that the message names."
    NotSupportedYet "not_supported_yet" 400 Client
        "The form of audio is known and not read yet."
        "Use another one, as the message says."
    UnsupportedServiceTier "unsupported_service_tier" 400 Client
        "No provider of the model has this tier."
        "Leave `service_tier` out, or name another model."
    UnsupportedDocumentFormat "unsupported_document_format" 400 Client
        "The provider's API takes no documents of this type."
        "Send a PDF or a text, or ask another model."
    ContentPolicyViolation "content_policy_violation" 400 Client
        "The provider refused the prompt for what it says."
        "Change the prompt."
    DestinationIpProhibited "destination_ip_prohibited" 400 Client
        "An address in the request leads to a private network, or is not https."
        "Use a public https address; the operator may allow an origin (`media.origins`, `videos.callback_origins`)."
    ThreadUnsupportedRequest "thread_unsupported_request" 400 Client
        "The request goes on with a message thread, whose history another server has."
        "Send the whole history; SDKs of the vendor do so by themselves."
    ItemNotFound "item_not_found" 400 Client
        "`input` refers to an item of no kept response of this key."
        "Send the item itself."
    PreviousResponseNotFound "previous_response_not_found" 400 Client
        "`previous_response_id` is no kept response of this key."
        "Send the whole history."
    PreviousResponseNotCompleted "previous_response_not_completed" 400 Client
        "The response of `previous_response_id` has no output to go on with."
        "Wait for its end, or go on from another."
    ResponseTooLarge "response_too_large" 400 Client
        "The response has more bytes with its input than are kept."
        "Begin a new conversation, or ask the operator for a larger `responses.max_bytes_per_response`."
    StoredResponsesLimitReached "stored_responses_limit_reached" 400 Client
        "The organization keeps as many responses as it may."
        "Delete some, or send `store: false`."
    ResponseNotFinished "response_not_finished" 400 Client
        "The response is still being made."
        "Wait for its end, or cancel it."
    ResponseNotCancellable "response_not_cancellable" 400 Client
        "The response was not made in the background."
        "Close the connection instead."
    VideoNotCompleted "video_not_completed" 400 Client
        "The video has no content, because its job has not completed."
        "Ask for its status first."
    VideoNotFinished "video_not_finished" 400 Client
        "The job of the video still runs."
        "Wait for its end, then delete it."
    InvalidExperiment "invalid_experiment" 400 Operator
        "The variation of a flag names a model or a prompt in a way that is not understood."
        "Change the variables of the flag."
    NoProviderKey "no_provider_key" 400 Operator
        "The project pays with the organization's own provider keys, and none is for a provider of this model."
        "Add one: `weirgate provider-key add`."
    OwnCredentialUnusable "own_credential_unusable" 400 Client
        "Beside the API key came a credential that goes to no vendor; the message says what it is and what is accepted."
        "Send a login or an API key of the vendor that serves the model, or leave it out."
    VendorMismatch "vendor_mismatch" 400 Client
        "The caller's own credential is of another vendor than those that may serve the request."
        "Name a model that this vendor serves itself, or leave the credential out."
    InvalidApiKey "invalid_api_key" 401 Client
        "The key is missing, unknown, disabled, revoked or expired; the message says which."
        "Send a key of this gateway in `Authorization: Bearer` or `x-api-key`."
    InvalidToken "invalid_token" 401 Client
        "The access token is unknown, expired or revoked."
        "Refresh it, or sign in again."
    UnknownTenant "unknown_tenant" 401 Client
        "The credential is of no tenant of the graph."
        "Send the tenant's own credential."
    OwnCredentialRefused "own_credential_refused" 401 Client
        "The vendor refuses the caller's own credential. The API key of the gateway is good."
        "Sign in with the vendor again, or send another of its keys."
    InsufficientCredits "insufficient_credits" 402 Operator
        "The organization's credit does not cover the most that the call may cost."
        "Add credit: `weirgate credit add`. A smaller `max_tokens` reserves less."
    KeyLimitReached "key_limit_reached" 402 Operator
        "The key has spent its limit, ever or of a period."
        "Wait for the next period, or raise it: `weirgate key update ID --limit`."
    MemberBudgetReached "member_budget_reached" 402 Operator
        "The keys of their owner have spent the budget."
        "Raise it: `weirgate member budget`."
    BudgetReached "insufficient_quota" 402 Operator
        "The session, the agent or a tag of the call has spent its budget, or a person has paused it."
        "Grant more: `weirgate session grant`, or `weirgate session resume`. The session goes on with its next request."
    PlanCreditsUsed "plan_credits_used" 402 Operator
        "The plan's allowance of the cycle is spent."
        "Wait for the next cycle, or change the plan."
    PlanPremiumLimitReached "plan_premium_limit_reached" 402 Client
        "The plan's week of premium models is spent."
        "Use another model, or wait."
    PlanDailyLimitReached "plan_daily_limit_reached" 402 Client
        "The plan's allowance of 24 hours is spent."
        "Wait."
    PermissionDenied "permission_denied" 403 Operator
        "A rule of the key, of the plan or of the provider forbids the request."
        "Use what the message names, or change the rule: `weirgate key update`."
    RegionNotAllowed "region_not_allowed" 403 Operator
        "Calls of this key stay in regions in which no provider has the model."
        "Use another model, or change `--regions` of the organization or the project."
    PassthroughNotAllowed "passthrough_not_allowed" 403 Operator
        "The key may not bring its own credential of this vendor."
        "`weirgate key update ID --allow-passthrough VENDOR`, or send the API key alone."
    KeyUnreadable "key_unreadable" 403 Operator
        "A newer version has written the settings of the key."
        "Upgrade this process."
    OrganizationHeld "organization_held" 403 Operator
        "The organization is held for review."
        "`weirgate org release NAME`."
    NotFound "not_found" 404 Client
        "No such path."
        "Look at [api.md](api.md)."
    ModelNotFound "model_not_found" 404 Client
        "No model has this name, or no provider of it is on."
        "`GET /v1/models` lists what the key may use."
    PromptNotFound "prompt_not_found" 404 Client
        "No such prompt, label or version."
        "`weirgate prompt list` has them."
    FlagNotFound "flag_not_found" 404 Operator
        "The flag that the request names as its model is unknown, or decides nothing."
        "Look at the flag and at `--experiments` of the project."
    ResponseNotFound "response_not_found" 404 Client
        "No kept response of this key has this id."
        "Use the key that made it; responses are deleted after `responses.retention_days`."
    VideoNotFound "video_not_found" 404 Client
        "No video of this key has this id."
        "Use the key that asked for it."
    VideoContentExpired "video_content_expired" 404 Client
        "The provider has the content no more."
        "Make the video again, and fetch it in time."
    MethodNotAllowed "method_not_allowed" 405 Client
        "The path does not take this method."
        "`Allow` names those that it takes."
    Timeout "timeout" 408 Client
        "The request did not arrive in time."
        "Send it again, faster."
    OrganizationDisabled "organization_disabled" 410 Operator
        "The organization is disabled."
        "`weirgate org enable NAME`."
    ProjectArchived "project_archived" 410 Operator
        "The project is archived."
        "`weirgate project enable --org ORG NAME`."
    RequestTooLarge "request_too_large" 413 Client
        "The body is over its limit."
        "Send less, or ask the operator for a larger `limits.body_bytes`."
    TargetTooLong "target_too_long" 414 Client
        "The address of the request is too long."
        "Shorten it."
    UnsupportedMediaType "unsupported_media_type" 415 Client
        "The body is encoded, or of another media type than the path takes."
        "Send the type that the message names, without `Content-Encoding`."
    RangeNotSatisfiable "range_not_satisfiable" 416 Client
        "`Range` begins behind the end of the video."
        "`Content-Range` has its length."
    TooManyOperations "too_many_operations" 422 Client
        "The batch has more operations than `decisions.batch_max_operations`."
        "Send several batches."
    UpgradeNotSupported "upgrade_not_supported" 426 Client
        "The path is not upgraded to a WebSocket."
        "Use `POST`; clients do so by themselves."
    RateLimitExceeded "rate_limit_exceeded" 429 Client
        "Over a limit of requests."
        "Wait for `Retry-After`."
    VendorLimitReached "vendor_limit_reached" 429 Client
        "The vendor's own limit of the caller's credential is reached."
        "Wait for `Retry-After`."
    HeadersTooLarge "headers_too_large" 431 Client
        "The head of the request is too large."
        "Send fewer or shorter headers."
    ConnectFailed "connect_failed" 502 Provider
        "No provider could be connected to."
        "Try again; `metadata.routing` says who was tried."
    AllProvidersFailed "all_providers_failed" 502 Provider
        "Each provider that was tried failed."
        "Try again; `metadata.routing` says how each failed."
    UpstreamFailed "upstream_failed" 502 Provider
        "The answer of the graph service broke off."
        "Try again."
    VideoContentFailed "video_content_failed" 502 Provider
        "The provider does not hand out the content of the video."
        "Try again."
    VideoTooLarge "video_too_large" 502 Operator
        "The video has more bytes than `limits.body_bytes.video`."
        "Raise that limit."
    StreamTruncated "stream_truncated" 502 Provider
        "A stream broke off after its first byte: an event of the stream, whose status was 200."
        "Ask again; what was delivered is charged."
    UpstreamUnavailable "upstream_unavailable" 503 Provider
        "The providers are unavailable, overloaded or throttle."
        "Wait for `Retry-After`, if there is one, and try again."
    Unavailable "unavailable" 503 Operator
        "A part of the gateway is unavailable, such as its store."
        "Try again; `weirgate status` says which."
    UpstreamTimeout "upstream_timeout" 504 Provider
        "No provider answered in time."
        "Try again, or ask for less."
    Overloaded "overloaded" 529 Operator
        "More requests, or more bytes of them, are in flight than `limits` allow."
        "Wait for `Retry-After`; raise `limits.in_flight` or `limits.buffered_bytes`."
}

impl FaultCode {
    /// Returns the word.
    pub const fn as_str(self) -> &'static str {
        self.row().code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_there_once_and_they_go_by_status() {
        for code in FaultCode::ALL {
            let same = FaultCode::ALL
                .iter()
                .filter(|it| it.as_str() == code.as_str());
            assert_eq!(same.count(), 1, "{code:?}");
        }
        assert!(FaultCode::ALL.is_sorted_by_key(|code| code.row().status));
    }
}
