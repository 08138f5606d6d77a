//! Resources and prompts: a request for one becomes a request to one of the gateway's routes, which responds
//! in-process.

use std::sync::Arc;

use filters::accounts::Caller;
use filters::fault::{Fault, FaultKind, quoted};
use filters::mcp::answer::{self, Offered};
use filters::mcp::message::{INTERNAL_ERROR, INVALID_PARAMS, Members, REFUSED, RpcError};
use filters::mcp::resources::{self, FLAGS, RESOURCES};
use filters::mcp::{prompts, resources::McpResource, stream};
use http::{HeaderMap, HeaderName};
use serde_json::{Value, json};

use super::handler::McpCall;
use crate::proxy::handler::{Handler, Incoming, Request};
use crate::proxy::router::{Access, Route};

/// The enabled routes for resources and prompts.
pub(super) struct Reads {
    routes: Vec<Route>,
    sdk_key_headers: Vec<HeaderName>,
}

impl Reads {
    /// Selects the routes from the rows of all products. SDK keys of projects are in the headers `sdk_key_headers`.
    pub(super) fn new(routes: &[Route], sdk_key_headers: &[HeaderName]) -> Self {
        let is_needed = |route: &&Route| {
            let of_prompts = [prompts::LIST_ROUTE, prompts::RENDER_ROUTE];
            let mut needed = RESOURCES.iter().map(|it| it.route).chain(of_prompts);
            route.is_on && needed.any(|name| name == route.name)
        };
        Self {
            routes: routes.iter().filter(is_needed).cloned().collect(),
            sdk_key_headers: sdk_key_headers.to_vec(),
        }
    }

    /// Returns the features that are served.
    pub(super) fn offered(&self) -> Offered {
        Offered {
            resources: RESOURCES.iter().any(|it| self.route(it.route).is_some()),
            prompts: self.route(prompts::RENDER_ROUTE).is_some(),
        }
    }

    fn route(&self, name: &str) -> Option<&Route> {
        self.routes.iter().find(|route| route.name == name)
    }

    /// Returns the entries of a list of resources or of templates. Without an SDK key it contains no flags.
    fn list(&self, are_templates: bool, headers: &HeaderMap) -> Value {
        let mut names = self.sdk_key_headers.iter();
        let has_sdk_key = names.any(|name| headers.contains_key(name));
        let is_listed = |resource: &&McpResource| {
            resource.is_template() == are_templates
                && self.route(resource.route).is_some()
                && (has_sdk_key || resource.route != FLAGS)
        };
        let listed = RESOURCES.iter().filter(is_listed);
        listed.map(McpResource::entry).collect()
    }

    /// Returns the version of the list of prompts as a caller sees it, or `None` if it cannot be read.
    pub(super) async fn prompts_version(
        &self,
        caller: &Arc<Caller>,
        now_ms: u64,
    ) -> Option<String> {
        let route = self.route(prompts::LIST_ROUTE)?;
        let Handler::Endpoint(endpoint) = &route.handler else {
            return None;
        };
        let headers = HeaderMap::new();
        let called = endpoint.call(Request {
            headers: &headers,
            path: route.path,
            query: "",
            body: &[],
            caller: Some(caller),
            client_ip: None,
            now_ms,
        });
        let response = called.await.ok()?;
        let entries = prompts::entries(response.body.bytes())?;
        Some(stream::version(entries.to_string().as_bytes()))
    }

    /// Responds to a method of resources or prompts. Returns `None` for a method that is not served.
    pub(super) async fn answer(
        &self,
        incoming: &mut Incoming<'_>,
        asked: &mut McpCall,
    ) -> Option<Result<Members, RpcError>> {
        let (revision, offered) = (asked.revision, self.offered());
        let call = &mut asked.call;
        let answered = match call.method.as_str() {
            "resources/list" if offered.resources => {
                let items = self.list(false, &incoming.head().headers);
                answer::list(revision, call, "resources", items)
            }
            "resources/templates/list" if offered.resources => {
                let items = self.list(true, &incoming.head().headers);
                answer::list(revision, call, "resourceTemplates", items)
            }
            "resources/read" if offered.resources => self.read(incoming, asked).await,
            "completion/complete" if offered.resources => self.complete(incoming, asked).await,
            "prompts/list" if offered.prompts => self.list_prompts(incoming, asked).await,
            "prompts/get" if offered.prompts => self.get_prompt(incoming, asked).await,
            _ => return None,
        };
        Some(answered)
    }

    async fn read(
        &self,
        incoming: &mut Incoming<'_>,
        asked: &McpCall,
    ) -> Result<Members, RpcError> {
        let uri = asked.call.text("uri").ok_or_else(|| {
            let message = "`uri` is missing, or is no text";
            RpcError::new(INVALID_PARAMS, 200, message)
        })?;
        let not_found = || {
            let shown = quoted(uri);
            let message = format!("there is no resource `{shown}` that this key may read");
            let code = resources::not_found_code(asked.revision);
            RpcError::new(code, 200, message).with_data(json!({"uri": shown}))
        };
        let found = resources::find(uri);
        let found = found.and_then(|(it, path)| Some((self.route(it.route)?, path)));
        let (route, path) = found.ok_or_else(not_found)?;
        let read = self.call(incoming, route, (&path, &[])).await;
        let body = read.map_err(|fault| match fault.status() {
            404 => not_found(),
            _ => refusal(&fault),
        })?;
        let mut members = resources::contents(uri, &body);
        answer::allow_caching(asked.revision, &mut members);
        Ok(members)
    }

    /// Completes the variable of a template. Arguments of prompts may be any text, so no values are proposed for
    /// them.
    async fn complete(
        &self,
        incoming: &mut Incoming<'_>,
        asked: &McpCall,
    ) -> Result<Members, RpcError> {
        let text = |parameter: &str, name: &str| {
            let value = asked.call.params.get(parameter)?.get(name)?.as_str();
            value.map(str::to_owned)
        };
        let invalid = |message: &'static str| RpcError::new(INVALID_PARAMS, 200, message);
        let (Some(kind), Some(name), Some(begun)) = (
            text("ref", "type"),
            text("argument", "name"),
            text("argument", "value"),
        ) else {
            let message = "`ref.type`, `argument.name` and `argument.value` have to be texts";
            return Err(invalid(message));
        };
        let nothing = br#"{"data":[]}"#;
        let found = match &*kind {
            "ref/prompt" => None,
            "ref/resource" => {
                let template = text("ref", "uri").unwrap_or_default();
                let found = resources::find_values(&template, &name);
                let message = "`ref.uri` is no template with the variable of `argument.name`";
                Some(found.ok_or_else(|| invalid(message))?)
            }
            _ => {
                return Err(invalid(
                    "`ref.type` is neither `ref/prompt` nor `ref/resource`",
                ));
            }
        };
        let (body, member) =
            match found.and_then(|(name, member)| Some((self.route(name)?, member))) {
                None => (nothing.to_vec(), ""),
                Some((route, member)) => {
                    let read = self.call(incoming, route, (route.path, &[])).await;
                    (read.map_err(|fault| refusal(&fault))?, member)
                }
            };
        let completed = resources::completion(&body, member, &begun);
        completed.ok_or_else(|| refusal(&unreadable()))
    }

    async fn list_prompts(
        &self,
        incoming: &mut Incoming<'_>,
        asked: &McpCall,
    ) -> Result<Members, RpcError> {
        let route = self.route(prompts::LIST_ROUTE);
        let route = route.ok_or_else(|| refusal(&unreadable()))?;
        let read = self.call(incoming, route, (route.path, &[])).await;
        let entries = read.and_then(|body| prompts::entries(&body).ok_or_else(unreadable));
        let entries = entries.map_err(|fault| refusal(&fault))?;
        answer::list(asked.revision, &asked.call, "prompts", entries)
    }

    async fn get_prompt(
        &self,
        incoming: &mut Incoming<'_>,
        asked: &mut McpCall,
    ) -> Result<Members, RpcError> {
        let invalid = |message: String| RpcError::new(INVALID_PARAMS, 200, message);
        let arguments = asked.call.params.remove("arguments");
        let body = prompts::body(arguments).map_err(invalid)?;
        let name = asked.call.text("name");
        let name = name.ok_or_else(|| invalid("`name` is missing, or is no text".to_owned()))?;
        let route = self.route(prompts::RENDER_ROUTE);
        let route = route.ok_or_else(|| refusal(&unreadable()))?;
        let path = prompts::path(name);
        let read = self.call(incoming, route, (&path, &body)).await;
        let body = read.map_err(|fault| match fault.status() {
            400 | 404 | 413 => invalid(prompts::explain(&fault.message)),
            _ => refusal(&fault),
        })?;
        prompts::rendered(&body).map_err(invalid)
    }

    /// Calls a route like a request to that route.
    ///
    /// Errors: those of the route and of the request.
    async fn call(
        &self,
        incoming: &mut Incoming<'_>,
        route: &Route,
        (path, body): (&str, &[u8]),
    ) -> Result<Vec<u8>, Fault> {
        route.body.check_size(body.len())?;
        incoming.admit(route).await?;
        let Handler::Endpoint(endpoint) = &route.handler else {
            return Err(unreadable());
        };
        let headers = match route.access {
            Access::SdkKey => {
                super::tools::sdk_keys(&self.sdk_key_headers, &incoming.head().headers)
            }
            _ => HeaderMap::new(),
        };
        let called = endpoint.call(incoming.request(&headers, (path, ""), body));
        let response = called.await?;
        match response.status {
            200 => Ok(response.body.bytes().to_vec()),
            _ => Err(unreadable()),
        }
    }
}

fn unreadable() -> Fault {
    Fault::new(
        FaultKind::Internal,
        "the gateway's own answer cannot be read",
    )
}

/// Returns the error for a request that a route refuses or that fails.
fn refusal(fault: &Fault) -> RpcError {
    let code = match fault.status() {
        500.. => INTERNAL_ERROR,
        _ => REFUSED,
    };
    let error = RpcError::new(code, 200, fault.message.clone());
    error.with_data(super::routes::fault_data(fault))
}
