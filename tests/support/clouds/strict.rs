//! What vendors refuse: another path, another sign-in, members that they do not know. Each refusal is in the vendor's words.

use serde_json::{Value, json};

use super::signature::{self, SignedBy};
use super::{
    AWS_ID, AWS_SECRET, AWS_SESSION, CloudWire, Dialect, KEY, REGION, SignIn, TOKEN, Vendor,
    WORKSPACE,
};
use crate::support::script::Reply;
use crate::support::upstream::Received;

/// What signed requests are signed with.
const KEYS: SignedBy<'static> = SignedBy {
    id: AWS_ID,
    secret: AWS_SECRET,
    session: Some(AWS_SESSION),
    region: REGION,
    service: "bedrock",
};

/// A refusal.
pub struct Refused {
    pub why: String,
    pub reply: Reply,
}

/// Checks a request as the cloud does.
pub fn check(cloud: &CloudWire, request: &Received) -> Result<(), Refused> {
    let refused = |status, why: String| {
        let reply = refusal(cloud, status, &why);
        Refused { why, reply }
    };
    let is_known = request.method == "POST" && cloud.paths.contains(&request.path.as_str());
    if !is_known {
        let why = format!("no operation is {} {}", request.method, request.path);
        return Err(refused(404, why));
    }
    check_sign_in(cloud, request).map_err(|why| refused(401, why))?;
    if request.header("content-type") != Some("application/json") {
        let why = format!("content-type is {:?}", request.header("content-type"));
        return Err(refused(415, why));
    }
    let body = serde_json::from_slice(&request.body);
    let body: Value = body.map_err(|error| refused(400, error.to_string()))?;
    check_headers(cloud, request).map_err(|why| refused(400, why))?;
    check_body(cloud, &request.path, &body).map_err(|why| refused(400, why))
}

/// Checks the body of a request to this path.
pub fn check_body(cloud: &CloudWire, path: &str, body: &Value) -> Result<(), String> {
    check_members(cloud, body)?;
    check_form(cloud, path, body)
}

fn check_sign_in(cloud: &CloudWire, request: &Received) -> Result<(), String> {
    const HEADERS: [&str; 4] = ["authorization", "api-key", "x-api-key", "x-goog-api-key"];
    let is_there = |name: &&str| request.header(name).is_some();
    let given: Vec<&str> = HEADERS.into_iter().filter(is_there).collect();
    let (header, expected) = match cloud.sign_in {
        SignIn::Header(name) => (name, KEY.to_owned()),
        SignIn::Key => ("authorization", format!("Bearer {KEY}")),
        SignIn::Token => ("authorization", format!("Bearer {TOKEN}")),
        SignIn::Signature => {
            if given != ["authorization"] {
                return Err(format!("the request signs in by {given:?}"));
            }
            return signature::check(request, KEYS);
        }
    };
    match given == [header] && request.header(header) == Some(&*expected) {
        true => Ok(()),
        false => Err(format!("the request signs in by {given:?}")),
    }
}

fn check_headers(cloud: &CloudWire, request: &Received) -> Result<(), String> {
    let is_claude = cloud.dialect == Dialect::Blocks && cloud.vendor != Vendor::Vertex;
    if is_claude && request.header("anthropic-version") != Some("2023-06-01") {
        return Err("anthropic-version: header is required".to_owned());
    }
    let workspace = request.header("anthropic-workspace-id");
    if cloud.vendor == Vendor::ClaudeOnAws && workspace != Some(WORKSPACE) {
        return Err("anthropic-workspace-id: header is required".to_owned());
    }
    Ok(())
}

/// The members of a body that a dialect knows, and those that it needs.
fn members(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::Chat => (
            "messages tools tool_choice parallel_tool_calls response_format max_tokens max_completion_tokens temperature top_p \
             stop stream stream_options n seed logprobs top_logprobs logit_bias presence_penalty frequency_penalty user \
             reasoning_effort service_tier store metadata modalities audio prediction verbosity safety_identifier \
             prompt_cache_key",
            "messages",
        ),
        Dialect::Items => (
            "input instructions tools tool_choice parallel_tool_calls max_output_tokens max_tool_calls reasoning text temperature \
             top_p top_logprobs truncation store include stream stream_options service_tier metadata prompt_cache_key \
             safety_identifier user previous_response_id",
            "input",
        ),
        Dialect::Blocks => (
            "messages system max_tokens tools tool_choice thinking output_config temperature top_p top_k stop_sequences \
             metadata stream context_management cache_control",
            "messages max_tokens",
        ),
        Dialect::Parts => (
            "contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels",
            "contents",
        ),
        Dialect::Converse => (
            "messages system inferenceConfig toolConfig outputConfig guardrailConfig additionalModelRequestFields \
             additionalModelResponseFieldPaths requestMetadata performanceConfig promptVariables serviceTier",
            "messages",
        ),
        Dialect::V2 => (
            "messages tools tool_choice strict_tools response_format thinking max_tokens temperature p k seed frequency_penalty \
             presence_penalty stop_sequences stream documents citation_options safety_mode logprobs",
            "messages",
        ),
    }
}

fn check_members(cloud: &CloudWire, body: &Value) -> Result<(), String> {
    let (known, needed) = members(cloud.dialect);
    let own: &[&str] = match (cloud.names_model, cloud.dialect) {
        (true, _) => &["model"],
        (false, Dialect::Blocks) => &["anthropic_version"],
        (false, _) => &[],
    };
    let body = body.as_object().ok_or("the body is no object")?;
    let is_known = |key: &str| known.split_whitespace().any(|it| it == key) || own.contains(&key);
    if let Some(extra) = body.keys().find(|key| !is_known(key)) {
        return Err(format!("{extra}: Extra inputs are not permitted"));
    }
    let mut needed = needed.split_whitespace().chain(own.iter().copied());
    match needed.find(|key| !body.contains_key(*key)) {
        Some(missing) => Err(format!("{missing}: Field required")),
        None => Ok(()),
    }
}

/// Checks what members hold.
fn check_form(cloud: &CloudWire, path: &str, body: &Value) -> Result<(), String> {
    if cloud.names_model && body["model"] != cloud.model {
        return Err(format!("model: {} is not here", body["model"]));
    }
    let streams = path == cloud.paths[1] && cloud.paths[0] != cloud.paths[1];
    let is_bad = match (cloud.vendor, cloud.dialect) {
        (Vendor::Azure, Dialect::Chat) => body.get("max_tokens").is_some(),
        (Vendor::Vertex, Dialect::Blocks) => {
            body["anthropic_version"] != "vertex-2023-10-16" || (body["stream"] == true) != streams
        }
        (Vendor::Bedrock, Dialect::Items) => body["background"] == true,
        (Vendor::Bedrock, Dialect::Blocks) => return check_claude_on_bedrock(body),
        _ => false,
    };
    match is_bad {
        true => Err("a member has a value that is not taken".to_owned()),
        false => Ok(()),
    }
}

/// Source: docs/facts/clouds.md 1.2.
fn check_claude_on_bedrock(body: &Value) -> Result<(), String> {
    let extra = |place: &str| Err(format!("{place}: Extra inputs are not permitted"));
    if body["output_config"].get("format").is_some() {
        return extra("output_config.format");
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        if tool.get("strict").is_some() {
            return extra("tools.0.strict");
        }
        let kind = tool["type"].as_str().unwrap_or("custom");
        let is_vendors = ["web_search", "web_fetch", "code_execution", "mcp"];
        if is_vendors.iter().any(|it| kind.starts_with(it)) {
            return Err(format!(
                "tool type '{kind}' is not supported for this model"
            ));
        }
    }
    let user = body["metadata"]["user_id"].as_str().unwrap_or_default();
    let is_taken = |c: char| c.is_ascii_alphanumeric() || "_-. @".contains(c);
    match user.chars().all(is_taken) {
        true => Ok(()),
        false => {
            Err("Request metadata contains a value that violates the regular expression".to_owned())
        }
    }
}

/// A refusal in the words of the vendor.
pub fn refusal(cloud: &CloudWire, status: u16, why: &str) -> Reply {
    let of_claude =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": why}});
    let body = match (cloud.vendor, cloud.dialect) {
        // A path that it does not know is a success here.
        (Vendor::Bedrock, _) if status == 404 => {
            let kind = "com.amazon.coral.service#UnknownOperationException";
            let body = json!({"Output": {"__type": kind}, "Version": "1.0"});
            return Reply::json(200, body.to_string());
        }
        (Vendor::Bedrock, Dialect::Converse) => json!({"message": why}),
        (Vendor::Vertex, Dialect::Blocks) => {
            json!({"error": {"code": status, "message": of_claude.to_string(), "status": "INVALID_ARGUMENT"}})
        }
        (Vendor::Vertex, _) => {
            json!({"error": {"code": status, "message": why, "status": "INVALID_ARGUMENT"}})
        }
        (Vendor::Cohere, _) => json!({"id": "1", "message": why}),
        (_, Dialect::Blocks) => of_claude,
        _ => {
            json!({"error": {"code": "invalid_value", "message": why, "param": null, "type": "invalid_request_error"}})
        }
    };
    Reply::json(status, body.to_string())
}
