//! The names of attributes, and the well-known values of some: the only place that knows the conventions.
//!
//! Source: OpenTelemetry's conventions for generative AI, github.com/open-telemetry/semantic-conventions-genai, and for
//! HTTP and errors its core conventions. What they do not have begins with `weirgate.`.

use filters::models::operation::Operation;

use crate::config::Semconv;

/// The class of reason for which a span failed.
pub const ERROR_TYPE: &str = "error.type";
/// The method of a request.
pub const HTTP_METHOD: &str = "http.request.method";
/// The path of its route.
pub const HTTP_ROUTE: &str = "http.route";
/// The status of a response.
pub const HTTP_STATUS: &str = "http.response.status_code";
/// The host of a provider's endpoint.
pub const SERVER_ADDRESS: &str = "server.address";
/// The port of that.
pub const SERVER_PORT: &str = "server.port";
/// The user whom a request names.
pub const USER_ID: &str = "user.id";
pub(super) const SERVICE_NAME: &str = "service.name";
pub(super) const SERVICE_VERSION: &str = "service.version";

/// What a model is asked for.
pub const OPERATION: &str = "gen_ai.operation.name";
/// Who is asked for it.
pub const PROVIDER: &str = "gen_ai.provider.name";
/// The model that is asked.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// The model that has answered.
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// Whether the response is a stream.
pub const IS_STREAM: &str = "gen_ai.request.stream";
/// The session of a call.
pub const CONVERSATION: &str = "gen_ai.conversation.id";
/// All prompt tokens.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// All completion tokens.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Prompt tokens read from a provider's cache.
pub const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
/// Prompt tokens written to a provider's cache.
pub const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_write.input_tokens";
/// Completion tokens spent on reasoning.
pub const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
/// Why the choices of an answer have ended.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Seconds from the beginning of an attempt to the first byte of its answer.
pub const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";

/// The id of a request.
pub const REQUEST_ID: &str = "weirgate.request_id";
/// The name of its route, as in metrics and logs.
pub const ROUTE: &str = "weirgate.route";
/// How it ended, as in the log.
pub const OUTCOME: &str = "weirgate.outcome";
/// The organization that asks.
pub const ORGANIZATION: &str = "weirgate.organization";
/// The project of its key.
pub const PROJECT: &str = "weirgate.project";
/// The id of its key.
pub const KEY_ID: &str = "weirgate.key_id";
/// The id of a call in the ledger.
pub const LOG_ID: &str = "weirgate.log_id";
/// US dollars, as a decimal text.
pub const COST_USD: &str = "weirgate.cost_usd";
/// Whether a reply was replayed.
pub const IS_CACHED: &str = "weirgate.cached";
/// The number of ended attempts.
pub const ATTEMPTS: &str = "weirgate.attempts";
/// `provider/model` of an answer, as clients get it.
pub const USED_MODEL: &str = "weirgate.used_model";
/// The provider's name in the configuration.
pub const CONFIGURED_PROVIDER: &str = "weirgate.provider";
/// Whose key was used: `platform` or `byok`.
pub const CREDENTIAL_SOURCE: &str = "weirgate.credential_source";
/// Whether the gateway has estimated the tokens.
pub const IS_ESTIMATED: &str = "weirgate.estimated";
/// The agent of the session that asks.
pub const AGENT: &str = "weirgate.agent_id";
/// The agent that has asked that one.
pub const PARENT_AGENT: &str = "weirgate.parent_agent_id";
/// The tool of a call over MCP.
pub const TOOL: &str = "weirgate.tool";
/// The tenant of a request to the graph service.
pub const TENANT: &str = "weirgate.tenant";
/// Its operation.
pub const GRAPH_OPERATION: &str = "weirgate.operation";
/// What the limit decided.
pub const LIMIT_DECISION: &str = "weirgate.decision";

/// Returns the schema that the names follow.
pub(super) fn schema_url(version: Semconv) -> &'static str {
    match version {
        Semconv::V0_1 => "https://opentelemetry.io/schemas/gen-ai/0.1.0",
    }
}

/// Returns the name of an operation. Those that the conventions do not have are ours.
pub fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Chat => "chat",
        Operation::Embeddings => "embeddings",
        Operation::Images | Operation::ImageEdits | Operation::Videos => "generate_content",
        Operation::Search => "retrieval",
        Operation::Rerank => "rerank",
        Operation::Moderations => "moderation",
        Operation::Speech => "speech",
        Operation::Ocr => "ocr",
        Operation::TypedDecisions => "typed_decision",
        Operation::Transcriptions => "transcription",
        Operation::Translations => "translation",
    }
}
