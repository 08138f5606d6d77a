//! Errors with the codes of OAuth: RFC 6749 5.2, RFC 7591 3.2.2, RFC 8707 2.

use std::borrow::Cow;

use serde_json::json;

use crate::fault::{Fault, FaultKind};

/// The code of an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OAuthErrorCode {
    /// A parameter is missing, wrong, or repeated.
    InvalidRequest,
    InvalidClient,
    /// A code or a refresh token is invalid, or belongs to another client.
    InvalidGrant,
    UnauthorizedClient,
    UnsupportedGrantType,
    UnsupportedResponseType,
    InvalidScope,
    InvalidTarget,
    AccessDenied,
    InvalidRedirectUri,
    InvalidClientMetadata,
    /// The server cannot serve the request now.
    TemporarilyUnavailable,
    ServerError,
}

impl OAuthErrorCode {
    /// All codes.
    pub const ALL: [Self; 13] = [
        Self::InvalidRequest,
        Self::InvalidClient,
        Self::InvalidGrant,
        Self::UnauthorizedClient,
        Self::UnsupportedGrantType,
        Self::UnsupportedResponseType,
        Self::InvalidScope,
        Self::InvalidTarget,
        Self::AccessDenied,
        Self::InvalidRedirectUri,
        Self::InvalidClientMetadata,
        Self::TemporarilyUnavailable,
        Self::ServerError,
    ];

    /// Returns the code as a string.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidGrant => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::AccessDenied => "access_denied",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
            Self::ServerError => "server_error",
        }
    }
}

/// An error of OAuth.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OAuthError {
    /// The code, for programs.
    pub code: OAuthErrorCode,
    /// The description, for people.
    pub description: Cow<'static, str>,
}

impl OAuthError {
    /// Makes an error.
    pub fn new(code: OAuthErrorCode, description: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            description: description.into(),
        }
    }

    /// Makes the error of a request with a missing or wrong parameter.
    pub fn invalid(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new(OAuthErrorCode::InvalidRequest, description)
    }

    /// Returns the status of the response.
    pub fn status(&self) -> u16 {
        match self.code {
            OAuthErrorCode::InvalidClient => 401,
            OAuthErrorCode::TemporarilyUnavailable => 503,
            OAuthErrorCode::ServerError => 500,
            _ => 400,
        }
    }

    /// Returns the body: `{error, error_description}`.
    pub fn body(&self) -> Vec<u8> {
        body(self.code, &self.description)
    }
}

fn body(code: OAuthErrorCode, description: &str) -> Vec<u8> {
    let body = json!({"error": code.as_str(), "error_description": description});
    body.to_string().into_bytes()
}

/// Returns the body of a fault of the gateway, in OAuth's form.
pub fn fault_body(fault: &Fault) -> Vec<u8> {
    let code = match fault.kind {
        FaultKind::Unavailable | FaultKind::RateLimited | FaultKind::Overloaded => {
            OAuthErrorCode::TemporarilyUnavailable
        }
        FaultKind::Internal => OAuthErrorCode::ServerError,
        _ => OAuthErrorCode::InvalidRequest,
    };
    body(code, &fault.message)
}
