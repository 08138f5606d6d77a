//! The fields of the other gateway that have no counterpart here, with what that means and what helps.
//!
//! Source: the other gateway's reference of settings. A field that is in no table is told as unknown.

use filters::models::parameter::Parameter;

use super::findings::UntranslatedRow;

const NOTHING: &str = "nothing";
const LOGS: &str = "read the log line and the metrics of each request (docs/interface.md), and send them on from there";
const KEYS: &str = "give bounds to each key: `weirgate key create --limit USD --allow-model M`, or in accounts.toml";

/// `model_list[]`.
pub(super) const MODEL: &[UntranslatedRow] = &[
    (
        "tpm rpm",
        "belongs into litellm_params",
        "move it there, and import again",
    ),
    (
        "model_group litellm_provider",
        "says nothing that litellm_params.model does not",
        NOTHING,
    ),
];

/// `credential_list[]`.
pub(super) const CREDENTIAL: &[UntranslatedRow] =
    &[("credential_info", "is a description alone", NOTHING)];

/// `model_list[].litellm_params`.
pub(super) const PARAMS: &[UntranslatedRow] = &[
    (
        "timeout stream_timeout",
        "timeouts are of all providers together here",
        "set routing.total_timeout_s and routing.first_event_timeout_s in weirgate.toml",
    ),
    (
        "max_retries num_retries retry_policy",
        "a failed attempt leads to the next provider or region, and is not repeated",
        "set routing.attempts in weirgate.toml",
    ),
    (
        "max_parallel_requests default_api_key_tpm_limit default_api_key_rpm_limit",
        "calls to a provider have no limit of their own here",
        "nothing, if the provider tells its limits in its replies, which are kept to; else limits.in_flight",
    ),
    (
        "max_budget budget_duration",
        "a provider has no budget here",
        KEYS,
    ),
    (
        "tags region_name",
        "requests choose no provider by tags",
        "bind a project to regions (`weirgate project update --regions`), or a key to providers (--allow-provider)",
    ),
    (
        "mock_response mock_tool_calls mock_timeout",
        "a provider does not answer by itself here",
        "use [providers.sandbox], which replies, streams and fails on demand",
    ),
    (
        "drop_params allowed_openai_params",
        "what a provider does not take is left out or goes to another, field by field",
        "docs/chat-fields.md shows what becomes of each field; `parameters` in models.toml changes it",
    ),
    (
        "cache_control_injection_points",
        "prompts that are likely to be read again are marked for the provider's cache by themselves",
        NOTHING,
    ),
    (
        "use_in_pass_through use_litellm_proxy configurable_clientside_auth_params",
        "requests pass through the gateway's own endpoints alone, and bring no addresses",
        "store a key of the organization: `weirgate provider-key add`",
    ),
    (
        "merge_reasoning_content_in_choices",
        "reasoning stays apart from the answer",
        NOTHING,
    ),
    (
        "guardrails",
        "there are no guardrails here",
        "ask /v1/moderations, or put a guard in front",
    ),
    (
        "vertex_credentials_json s3_bucket_name s3_region_name gcs_bucket_name aws_batch_role_arn",
        "batches and files of clouds are not served",
        NOTHING,
    ),
    (
        "extra_body",
        "fields are not added to requests",
        "let clients send them; pass_members of the provider lets them through",
    ),
    (
        "prompt_id prompt_variables prompt_label",
        "prompts of other services are not asked for",
        "keep it as a managed prompt: `weirgate prompt` (docs/prompts.md)",
    ),
    (
        "azure_scope azure_username azure_password azure_ad_token_provider",
        "tokens are fetched as the cloud's own SDKs do",
        "see `token_scope` and docs/providers.md",
    ),
    (
        "aws_external_id aws_sts_endpoint_url model_id aws_bedrock_project_id",
        "the sign-in of the cloud has no such setting",
        "see docs/providers.md",
    ),
    (
        "api_key api_version api_base organization",
        "has no effect on this provider",
        NOTHING,
    ),
    (
        "stream metadata user seed ttl",
        "a mapping has no parameters of its own for requests that say nothing",
        "let clients send it",
    ),
];

/// `model_list[].model_info`.
pub(super) const MODEL_INFO: &[UntranslatedRow] = &[
    (
        "id db_model key litellm_provider",
        "entries have no ids here: provider and name tell them apart",
        NOTHING,
    ),
    (
        "access_groups team_id team_public_model_name direct_access",
        "models are not bound to groups or teams",
        "bound the keys: --allow-model, or allow_models in accounts.toml",
    ),
    (
        "health_check_model health_check_timeout disable_background_health_check health_check_max_tokens \
         health_check_voice",
        "providers are measured by the calls that they get, not by calls of their own",
        "health_path and health_interval_s of the provider check servers of your own",
    ),
    (
        "tier metadata description created_at updated_at created_by updated_by version",
        "is a description alone",
        NOTHING,
    ),
    (
        "supports_system_messages supports_assistant_prefill supports_prompt_caching \
         supports_native_streaming supports_audio_output supports_computer_use supports_url_context \
         supports_embedding_image_input supported_openai_params supported_endpoints supported_environments \
         supported_regions output_vector_size supports_image_input",
        "is no capability that the catalogue lists",
        "docs/interface.md lists capabilities and parameters of models.toml",
    ),
    (
        "max_query_tokens max_images_per_prompt max_audio_length_hours max_video_length",
        "the catalogue has no such bound",
        NOTHING,
    ),
];

/// The top of the file.
pub(super) const ROOT: &[UntranslatedRow] = &[
    (
        "include",
        "other files are not read with this one",
        "import each, and join what was written",
    ),
    (
        "guardrails",
        "there are no guardrails here",
        "ask /v1/moderations, or put a guard in front of the gateway",
    ),
    (
        "mcp_servers mcp_tools mcp_aliases mcp_semantic_tool_filter",
        "the gateway is an MCP server itself, and passes no calls on to others",
        "let clients connect to those servers (docs/mcp.md tells what /mcp offers)",
    ),
    (
        "prompts",
        "prompts of other services are not read",
        "keep them as managed prompts: `weirgate prompt` (docs/prompts.md)",
    ),
    (
        "vector_store_registry files_settings finetune_settings assistant_settings batch_settings",
        "files, batches, assistants and vector stores are not served",
        "let clients ask the provider for these",
    ),
    (
        "search_tools",
        "searches are models of the type search",
        "add [providers.NAME] of a searching kind, and its models of conf/models.toml",
    ),
    (
        "callback_settings observability",
        "there are no callbacks here",
        LOGS,
    ),
    ("agent_list agents", "agents are not served", NOTHING),
    (
        "policies policy_attachments",
        "there are no policies beside the bounds of keys",
        KEYS,
    ),
];

/// `litellm_settings`.
pub(super) const LIBRARY: &[UntranslatedRow] = &[
    (
        "success_callback failure_callback callbacks service_callbacks audit_log_callbacks \
         langfuse_default_tags turn_off_message_logging redact_user_api_key_info \
         redact_messages_in_exceptions custom_prometheus_metadata_labels custom_prometheus_tags \
         prometheus_metrics_config prometheus_initialize_budget_metrics require_auth_for_metrics_endpoint \
         datadog_params s3_callback_params gcs_pub_sub_use_v1 otel disable_end_user_cost_tracking \
         disable_end_user_cost_tracking_prometheus_only enable_end_user_cost_tracking_prometheus_only \
         store_audit_logs langsmith_batch_size log_raw_request_response add_user_information_to_llm_headers",
        "there are no callbacks here; bodies are never logged",
        LOGS,
    ),
    (
        "guardrails post_call_rules pre_call_rules llamaguard_model_name llamaguard_unsafe_content_categories \
         presidio_ad_hoc_recognizers google_moderation_confidence_threshold banned_keywords_list \
         blocked_user_list",
        "there are no guardrails here",
        "ask /v1/moderations, or put a guard in front of the gateway",
    ),
    (
        "drop_params modify_params enable_preview_features additional_drop_params \
         disable_add_transform_inline_image_block disable_stop_sequence_limit enable_json_schema_validation \
         use_chat_completions_url_for_anthropic_messages route_all_chat_openai_to_responses \
         reasoning_auto_summary",
        "what a provider does not take is left out or goes to another, field by field",
        "docs/chat-fields.md shows what becomes of each field; `parameters` in models.toml changes it",
    ),
    (
        "max_internal_user_budget internal_user_budget_duration default_internal_user_params max_user_budget \
         user_budget_duration default_max_internal_user_budget",
        "users are not made by themselves here",
        "make members with a budget: `weirgate member create --budget USD`, or [[organizations.members]] in accounts.toml",
    ),
    (
        "max_end_user_budget max_end_user_budget_id default_end_user_params",
        "the users that requests name have no budgets",
        "make a key for each, with a limit",
    ),
    (
        "default_key_generate_params upperbound_key_generate_params key_generation_settings \
         default_team_params default_user_params enable_key_alias_format_validation \
         default_team_member_budget default_max_budget_per_session",
        "bounds are those of each key; there are no defaults for new ones",
        KEYS,
    ),
    (
        "tag_budget_config max_tag_budget",
        "tags have no budgets",
        "make a key for each, with a limit",
    ),
    (
        "allowed_fails cooldown_time",
        "when a provider cools down follows from what is measured",
        "nothing (docs/routing.md, What is measured)",
    ),
    (
        "force_ipv4 ssl_verify ssl_certificate aiohttp_trust_env network_mock client_ttl ssl_security_level \
         disable_aiohttp_transport",
        "connections to providers have no such setting",
        "SSL_CERT_FILE names other authorities",
    ),
    (
        "mcp_aliases public_mcp_servers mcp_tools",
        "the gateway passes no calls on to MCP servers",
        "let clients connect to those servers",
    ),
    (
        "default_redis_ttl default_redis_batch_cache_expiry default_in_memory_ttl \
         enable_caching_on_provider_specific_optional_params enable_redis_auth_cache",
        "how long a reply is replayed is said by the project alone",
        "set cache_ttl_s of the project in accounts.toml",
    ),
    (
        "default_fallback_model model_fallbacks model_alias_map",
        "names of models are those of the catalogue",
        "add aliases in models.toml",
    ),
    (
        "public_model_groups public_model_groups_links public_agent_groups",
        "there are no public pages",
        "models.require_key = false lists models without a key",
    ),
    (
        "priority_reservation priority_reservation_settings",
        "no share of calls is kept back for some keys",
        "organizations share limits.in_flight equally",
    ),
    (
        "disable_hf_tokenizer_download token_counter suppress_debug_info disable_copilot_system_to_assistant \
         num_retries_per_request telemetry cost_discount_config cost_margin_config \
         include_cost_in_streaming_usage disable_token_counter forward_traceparent_to_llm_provider",
        "has no counterpart",
        "docs/interface.md lists what can be set",
    ),
];

/// `cache_params`.
pub(super) const CACHE: &[UntranslatedRow] = &[
    (
        "namespace max_connections socket_timeout gcp_service_account gcp_ssl_ca_certs ssl_cert_reqs \
         ssl_check_hostname redis_flush_size",
        "the connection to Redis has no such setting",
        NOTHING,
    ),
    (
        "redis_startup_nodes service_name sentinel_nodes sentinel_password",
        "one server of Redis is used, no cluster and no sentinels",
        "name one server in shared.redis",
    ),
    (
        "similarity_threshold redis_semantic_cache_embedding_model redis_semantic_cache_index_name \
         qdrant_semantic_cache_embedding_model qdrant_collection_name qdrant_quantization_config \
         qdrant_semantic_cache_vector_size qdrant_api_base qdrant_api_key",
        "replies are replayed for the same request alone",
        NOTHING,
    ),
    (
        "s3_bucket_name s3_region_name s3_aws_access_key_id s3_aws_secret_access_key s3_endpoint_url s3_path \
         gcs_bucket_name gcs_path_service_account gcs_path disk_cache_dir azure_account_url \
         azure_blob_container",
        "replies are kept in memory or in Redis",
        "set shared.redis",
    ),
    (
        "supported_call_types",
        "which requests are replayed is said in docs/response-cache.md",
        "set cache_ttl_s of the projects that want it",
    ),
    (
        "default_in_memory_ttl default_in_redis_ttl max_size_in_memory",
        "there is one time and one size",
        "set cache_ttl_s of the project, and cache.max_bytes",
    ),
];

/// `router_settings`.
pub(super) const ROUTER: &[UntranslatedRow] = &[
    (
        "allowed_fails allowed_fails_policy cooldown_time disable_cooldowns retry_after retry_policy \
         model_group_retry_policy routing_strategy_args cooldown_policy",
        "when a provider cools down, and when it is tried again, follows from what is measured",
        "nothing (docs/routing.md, What is measured)",
    ),
    (
        "enable_pre_call_checks optional_pre_call_checks pre_call_checks",
        "a provider whose context is too small, or that cannot do what a request asks for, is always left out",
        NOTHING,
    ),
    (
        "enable_tag_filtering tag_filtering_match_any enable_weighted_failover",
        "requests choose no provider by tags",
        "bound keys to providers: --allow-provider, or allow_providers in accounts.toml",
    ),
    (
        "provider_budget_config deployment_budget_config",
        "a provider has no budget here",
        "limit the keys, and set limits at the provider",
    ),
    (
        "redis_db cache_kwargs cache_responses caching_groups client_ttl",
        "has no counterpart",
        "one server of Redis is shared: shared.redis",
    ),
    (
        "default_max_parallel_requests max_fallbacks",
        "calls to a provider have no limit of their own; routing.attempts bounds the attempts of a request",
        "set routing.attempts and limits.in_flight in weirgate.toml",
    ),
    (
        "default_priority polling_interval queue enable_priority",
        "requests do not wait in a queue by priority",
        "organizations share limits.in_flight equally",
    ),
    (
        "default_litellm_params assistants_config search_tools guardrail_list ignore_invalid_deployments",
        "has no counterpart",
        "docs/interface.md lists what can be set",
    ),
    (
        "debug_level set_verbose",
        "the log has one level",
        "set log.level in weirgate.toml",
    ),
];

/// `general_settings`.
pub(super) const GENERAL: &[UntranslatedRow] = &[
    (
        "database_url database_connection_pool_limit database_connection_timeout database_url_env \
         store_model_in_db supported_db_objects allow_requests_on_db_unavailable disable_prisma_schema_update \
         use_redis_transaction_buffer proxy_batch_write_at disable_adding_master_key_hash_to_db database_type \
         database_args user_api_key_cache_ttl",
        "accounts are in a store of our own tables; keys, teams and spending of the other gateway's database are not read",
        "keep SQLite, or set WEIRGATE_STORE__URL to another database of PostgreSQL; then `weirgate apply -f accounts.toml`",
    ),
    (
        "alerting alerting_threshold alerting_args alert_types alert_to_webhook_url spend_report_frequency",
        "nothing is sent to chats or by mail",
        "alert on the metrics of the admin listener (docs/interface.md)",
    ),
    (
        "disable_spend_logs disable_spend_updates store_prompts_in_spend_logs \
         maximum_spend_logs_retention_interval disable_reset_budget proxy_budget_rescheduler_min_time \
         proxy_budget_rescheduler_max_time disable_error_logs maximum_spend_logs_cleanup_cron",
        "each call is in the ledger, without its text",
        "store.usage_retention_days says how long",
    ),
    (
        "custom_auth custom_auth_run_common_checks custom_key_generate custom_key_update custom_sso \
         custom_ui_sso_sign_in_handler enable_jwt_auth litellm_jwtauth enable_oauth2_auth \
         enable_oauth2_proxy_auth oauth2_config_mappings allow_user_auth service_account_settings \
         user_header_name user_header_mappings",
        "callers have API keys; tokens of others are not taken for models",
        "make a key for each caller: `weirgate key create`",
    ),
    (
        "key_management_system key_management_settings use_azure_key_vault use_google_kms",
        "secrets are in the environment or in files",
        "let the system put them there, such as with LoadCredential= of systemd",
    ),
    (
        "pass_through_endpoints use_client_credentials_pass_through_routes",
        "paths are the gateway's own, and nothing is passed through unread",
        "ask the gateway's endpoints (docs/api.md), or the provider itself",
    ),
    (
        "background_health_checks health_check_interval health_check_details use_shared_health_check \
         health_check_concurrency",
        "providers are measured by the calls that they get, not by calls of their own",
        "health_path and health_interval_s of the provider check servers of your own",
    ),
    (
        "allowed_routes public_routes admin_only_routes enforced_params enforce_user_param \
         reject_clientside_metadata_tags disable_responses_id_security",
        "each key may ask all endpoints",
        "put a proxy in front that refuses paths",
    ),
    (
        "completion_model embedding_model moderation_model image_generation_model",
        "a request names its model",
        "let clients send it, or `auto`",
    ),
    (
        "max_parallel_requests",
        "calls to a provider have no limit of their own here",
        "set limits.in_flight in weirgate.toml, which is of all calls",
    ),
    (
        "use_x_forwarded_for",
        "a header with the client's address counts from trusted proxies alone",
        "set listen.client_ip_header and listen.trusted_proxies in weirgate.toml",
    ),
    (
        "allow_client_side_credentials forward_client_headers_to_llm_api forward_openai_org_id \
         forward_llm_provider_auth_headers",
        "clients bring neither keys of providers nor headers for them",
        "store a key of the organization: `weirgate provider-key add`",
    ),
    (
        "ui_access_mode disable_master_key_return litellm_license ui_username ui_password \
         user_mcp_management_mode default_team_disabled role_permissions proxy_admin_email",
        "there is no page for people yet",
        "use the commands: `weirgate --help`",
    ),
    (
        "litellm_key_header_name",
        "keys come in Authorization, x-api-key, x-goog-api-key or the header of listen.key_header",
        "set listen.key_header in weirgate.toml",
    ),
    (
        "infer_model_from_keys max_response_size_mb proxy_batch_polling_interval \
         disable_retry_on_max_parallel_request_limit_error coding_agent_settings control_plane_url \
         block_robots pass_through_request_timeout",
        "has no counterpart",
        "docs/interface.md lists what can be set",
    ),
];

/// `litellm_settings.default_team_settings[]`.
pub(super) const TEAM: &[UntranslatedRow] = &[(
    "success_callback failure_callback callbacks langfuse_project langfuse_public_key langfuse_secret \
         langfuse_secret_key langfuse_host",
    "there are no callbacks here; the log line names the project of each request",
    LOGS,
)];

/// Returns whether a field of `litellm_params` is a parameter of requests.
pub(super) fn is_parameter(name: &str) -> bool {
    let mut known = Parameter::ALL.iter().map(|parameter| parameter.as_str());
    let starts = ["max_completion", "reasoning_", "stream_"];
    let words = ["n", "thinking", "voice", "input_type", "encoding_format"];
    known.any(|known| known == name)
        || words.contains(&name)
        || starts.iter().any(|start| name.starts_with(start)) && name != "stream_timeout"
}
