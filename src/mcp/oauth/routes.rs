//! The rows of the authorization server.

use std::sync::Arc;

use filters::fault::Fault;
use futures::future::BoxFuture;
use http::Method;

use super::{OAuth, authorize, documents_of_server, register, response, revoke, token};
use crate::proxy::handler::{Endpoint, Handler, Request};
use crate::proxy::response::Response;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, Route};

/// The maximum bytes of a registration.
const MAX_REGISTRATION_BYTES: usize = 32 << 10;
/// The maximum bytes of a form. The form of the page contains the request, with a `state` of 4 KiB and a URI of 2
/// KiB.
const MAX_FORM_BYTES: usize = 64 << 10;

/// Responds to a request.
type AnswerRequest = for<'a> fn(&'a OAuth, Request<'a>) -> BoxFuture<'a, Result<Response, Fault>>;

/// An endpoint of the authorization server.
struct OAuthEndpoint {
    oauth: Arc<OAuth>,
    answer: AnswerRequest,
}

impl Endpoint for OAuthEndpoint {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        (self.answer)(&self.oauth, request)
    }
}

/// Returns the rows.
pub(in crate::mcp) fn routes(oauth: &Arc<OAuth>) -> Vec<Route> {
    let documents = documents(oauth).into_iter();
    documents.chain(endpoints(oauth)).collect()
}

fn documents(oauth: &Arc<OAuth>) -> [Route; 5] {
    let server = documents_of_server::server;
    let resource = documents_of_server::resource;
    let handler = |answer| handler(oauth, answer);
    let first = Route {
        name: "mcp_oauth_server",
        method: Method::GET,
        path: "/.well-known/oauth-authorization-server",
        access: Access::Open,
        quota: None,
        deprecation: None,
        takes_permit: false,
        body: BodyRule::None,
        errors: ErrorStyle {
            schema: Some("OAuthError"),
            write: Arc::new(|fault, _| response::fault_response(fault)),
        },
        description: include_str!("server.json"),
        is_on: true,
        handler: handler(server),
    };
    let server_of_path = Route {
        name: "mcp_oauth_server_of_path",
        path: "/.well-known/oauth-authorization-server/mcp",
        ..first.clone()
    };
    let resource_document = Route {
        name: "mcp_resource",
        path: "/.well-known/oauth-protected-resource",
        description: include_str!("resource.json"),
        handler: handler(resource),
        ..first.clone()
    };
    let resource_of_path = Route {
        name: "mcp_resource_of_path",
        path: filters::mcp::oauth::metadata::RESOURCE_DOCUMENT,
        ..resource_document.clone()
    };
    let preflight = Route {
        name: "mcp_documents_preflight",
        method: Method::OPTIONS,
        path: "/.well-known/**",
        description: include_str!("documents_preflight.json"),
        handler: handler(documents_of_server::preflight),
        ..first.clone()
    };
    [
        first,
        server_of_path,
        resource_document,
        resource_of_path,
        preflight,
    ]
}

fn endpoints(oauth: &Arc<OAuth>) -> [Route; 6] {
    let handler = |answer| handler(oauth, answer);
    let [first, ..] = documents(oauth);
    let register = Route {
        name: "mcp_register",
        method: Method::POST,
        path: "/mcp/oauth/register",
        body: BodyRule::Json(MAX_REGISTRATION_BYTES),
        description: include_str!("register.json"),
        handler: handler(|oauth, request| Box::pin(register::answer(oauth, request))),
        ..first
    };
    let token = Route {
        name: "mcp_token",
        path: "/mcp/oauth/token",
        body: BodyRule::Any(MAX_FORM_BYTES),
        description: include_str!("token.json"),
        handler: handler(|oauth, request| Box::pin(token::answer(oauth, request))),
        ..register.clone()
    };
    let revoke = Route {
        name: "mcp_revoke",
        path: "/mcp/oauth/revoke",
        description: include_str!("revoke.json"),
        handler: handler(|oauth, request| Box::pin(revoke::answer(oauth, request))),
        ..token.clone()
    };
    let consent = Route {
        name: "mcp_consent",
        path: "/mcp/oauth/authorize",
        description: include_str!("consent.json"),
        handler: handler(|oauth, request| Box::pin(authorize::answer(oauth, request))),
        ..token.clone()
    };
    let authorize = Route {
        name: "mcp_authorize",
        method: Method::GET,
        body: BodyRule::None,
        description: include_str!("authorize.json"),
        handler: handler(|oauth, request| Box::pin(authorize::ask(oauth, request))),
        ..consent.clone()
    };
    let preflight = Route {
        name: "mcp_oauth_preflight",
        method: Method::OPTIONS,
        path: "/mcp/oauth/**",
        body: BodyRule::None,
        description: include_str!("preflight.json"),
        handler: handler(documents_of_server::preflight),
        ..consent.clone()
    };
    [register, token, revoke, consent, authorize, preflight]
}

fn handler(oauth: &Arc<OAuth>, answer: AnswerRequest) -> Handler {
    let oauth = Arc::clone(oauth);
    Handler::Endpoint(Arc::new(OAuthEndpoint { oauth, answer }))
}
