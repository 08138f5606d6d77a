//! The tools whose routes are served.

use filters::fault::Fault;
use filters::mcp::message::Members;
use filters::mcp::tools::{Authorization, McpTool, RouteRequest, TOOLS};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;

use super::arguments::ArgumentSchema;
use crate::proxy::router::{Access, Route};

/// The header for a graph tenant's credential. `Authorization` has the client's API key.
const GRAPH_AUTHORIZATION: &str = "x-graph-authorization";

/// All served tools.
pub(super) struct Tools {
    served: Vec<ServedTool>,
    /// The entries of `tools/list`.
    list: Value,
    sdk_key_headers: Vec<HeaderName>,
}

/// A tool with its route.
pub(super) struct ServedTool {
    pub(super) name: String,
    pub(super) tool: &'static McpTool,
    pub(super) route: Route,
    schema: ArgumentSchema,
}

/// A request to the route of a tool.
pub(super) struct ToolRequest {
    pub(super) headers: HeaderMap,
    pub(super) query: String,
    pub(super) body: Vec<u8>,
}

impl Tools {
    /// Returns the tools of these routes. SDK keys of projects are in the headers `sdk_key_headers`.
    ///
    /// Errors: an invalid description.
    pub(super) fn new(routes: &[Route], sdk_key_headers: &[HeaderName]) -> Result<Self, String> {
        let (mut served, mut list) = (Vec::new(), Vec::new());
        for tool in &TOOLS {
            let mut routes = routes.iter();
            let Some(route) = routes.find(|it| it.name == tool.route && it.is_on) else {
                continue;
            };
            let entry = serde_json::from_str::<Value>(tool.description);
            let mut entry = entry.map_err(|error| format!("a tool of {}: {error}", tool.route))?;
            complete(&mut entry, route.description);
            let name = entry.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| format!("a tool of {} has no name", tool.route))?;
            let schema = entry.get("inputSchema").cloned().unwrap_or_default();
            served.push(ServedTool {
                name: name.to_owned(),
                tool,
                route: route.clone(),
                schema: ArgumentSchema::new(schema).map_err(|error| format!("{name}: {error}"))?,
            });
            list.push(entry);
        }
        Ok(Self {
            served,
            list: list.into(),
            sdk_key_headers: sdk_key_headers.to_vec(),
        })
    }

    /// Returns the entries of `tools/list`.
    pub(super) fn list(&self) -> Value {
        self.list.clone()
    }

    /// Returns the tool of this name.
    pub(super) fn find(&self, name: &str) -> Option<&ServedTool> {
        self.served.iter().find(|tool| tool.name == name)
    }

    /// Returns the request to a tool's route for these arguments, from a client that sent these headers.
    ///
    /// Errors: 400 for arguments that do not match the tool's schema.
    pub(super) fn request(
        &self,
        tool: &ServedTool,
        arguments: &Value,
        headers: &HeaderMap,
    ) -> Result<ToolRequest, Fault> {
        tool.schema.check(arguments)?;
        let none = Members::new();
        let request = (tool.tool.request)(arguments.as_object().unwrap_or(&none));
        let headers = match (&request.authorization, tool.route.access) {
            (Authorization::Graph(given), _) => graph_headers(given.as_deref(), headers)?,
            (Authorization::Client, Access::SdkKey) => self.flag_headers(&request, headers)?,
            (Authorization::Client, _) => headers.clone(),
        };
        let body = request.body.map(|body| body.to_string().into_bytes());
        Ok(ToolRequest {
            headers,
            query: request.query,
            body: body.unwrap_or_default(),
        })
    }

    /// Returns the headers of a request to flag decisions: only the SDK key, because the client's credential is an
    /// API key.
    fn flag_headers(&self, request: &RouteRequest, sent: &HeaderMap) -> Result<HeaderMap, Fault> {
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        match (&request.sdk_key, self.sdk_key_headers.first()) {
            (Some(key), Some(name)) => {
                let key = HeaderValue::try_from(key.as_str());
                let key = key.map_err(|_| {
                    let message = "`sdk_key` has characters that no SDK key has";
                    Fault::invalid("sdk_key", message)
                })?;
                headers.insert(name.clone(), key);
            }
            _ => headers.extend(sdk_keys(&self.sdk_key_headers, sent)),
        }
        Ok(headers)
    }
}

/// Gives the arguments of a tool that have no type the schemas of the same members of its route, without null.
fn complete(tool: &mut Value, route: &str) {
    let route: Value = serde_json::from_str(route).unwrap_or_default();
    let body = route.pointer("/body/application~1json/$ref");
    let body = body.and_then(|it| it.as_str()?.rsplit('/').next());
    let told = body.and_then(|name| route.pointer(&format!("/schemas/{name}/properties")));
    let arguments = tool.pointer_mut("/inputSchema/properties");
    let arguments = arguments.and_then(Value::as_object_mut);
    for (name, argument) in arguments.into_iter().flatten() {
        let has_type = ["type", "enum", "anyOf"]
            .iter()
            .any(|key| argument.get(key).is_some());
        let told = told.and_then(|told| told.get(name)?.as_object());
        if let (false, Some(told), Some(argument)) = (has_type, told, argument.as_object_mut()) {
            for (key, value) in told {
                let mut value = value.clone();
                match (key.as_str(), &mut value) {
                    ("type", Value::Array(kinds)) => value = kinds.swap_remove(0),
                    ("enum", Value::Array(words)) => words.retain(|word| !word.is_null()),
                    _ => {}
                }
                argument.entry(key).or_insert(value);
            }
        }
    }
}

/// Returns the SDK keys in these headers of a client.
pub(super) fn sdk_keys(names: &[HeaderName], sent: &HeaderMap) -> HeaderMap {
    let mut keys = HeaderMap::new();
    for name in names {
        for value in sent.get_all(name) {
            keys.append(name.clone(), value.clone());
        }
    }
    keys
}

/// Returns the headers of a request to the graph's own routes: only the tenant's credential.
fn graph_headers(given: Option<&str>, sent: &HeaderMap) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    match given {
        Some(given) => {
            let value = HeaderValue::try_from(given).map_err(|_| {
                let message = "`authorization` has characters that no header has";
                Fault::invalid("authorization", message)
            })?;
            headers.insert(header::AUTHORIZATION, value);
        }
        None => {
            for value in sent.get_all(GRAPH_AUTHORIZATION) {
                headers.append(header::AUTHORIZATION, value.clone());
            }
        }
    }
    Ok(headers)
}
