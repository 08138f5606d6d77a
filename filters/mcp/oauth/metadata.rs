//! The two documents that lead clients to the authorization server. Source: RFC 8414 2; RFC 9728 2.

use serde_json::{Value, json};

use super::client::ClientAuth;
use super::pkce;
use super::scope::Scope;

/// The path of the resource, below its issuer.
pub const RESOURCE_PATH: &str = "/mcp";
/// The path of the authorization server, below its issuer.
pub const PATH: &str = "/mcp/oauth";
/// The path of the document of the resource, below its issuer.
pub const RESOURCE_DOCUMENT: &str = "/.well-known/oauth-protected-resource/mcp";

fn scopes() -> Vec<&'static str> {
    Scope::ALL.into_iter().map(Scope::as_str).collect()
}

/// Returns the document of the authorization server.
pub fn server(issuer: &str) -> Value {
    let methods = ClientAuth::ALL.map(ClientAuth::as_str);
    let at = |name: &str| format!("{issuer}{PATH}/{name}");
    json!({
        "issuer": issuer,
        "authorization_endpoint": at("authorize"),
        "token_endpoint": at("token"),
        "registration_endpoint": at("register"),
        "revocation_endpoint": at("revoke"),
        "scopes_supported": scopes(),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": [pkce::METHOD],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
    })
}

/// Returns the document of the resource at this URL.
pub fn resource(issuer: &str, resource: &str) -> Value {
    json!({
        "resource": resource,
        "authorization_servers": [issuer],
        "scopes_supported": scopes(),
        "bearer_methods_supported": ["header"],
        "resource_name": "Weirgate",
    })
}
