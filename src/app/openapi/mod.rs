//! `GET /v1/openapi.json`: the description of all that the listener serves, in OpenAPI 3.1. Source: docs/decisions.md
//! 58.
//!
//! The document is made once, together with the router. Method, path, credentials, limits and errors come from the
//! row of a route, and the rest comes from the description in the row.

pub mod curl;
mod operation;
mod responses;

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use filters::fault::Fault;
use filters::graph::Operations;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, header};
use serde::{Deserialize, Serialize};
use serde_json::map::Entry;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use self::operation::{DescribedTarget, path_template};
use crate::proxy::handler::{Endpoint, Handler, Request};
use crate::proxy::response::Response;
use crate::proxy::router::{Access, BodyRule, ErrorStyle, Route};

/// Schemas, headers and parameters that several operations share.
const COMPONENTS: &str = include_str!("components.json");

/// The description of a listener as a text, with its ETag.
#[derive(Clone, Debug)]
pub struct OpenApi {
    json: Bytes,
    etag: HeaderValue,
}

/// Routes with a common heading.
pub struct Section<'r> {
    pub tag: &'static str,
    pub routes: &'r [Route],
}

/// The route of the graph service, and its operations.
pub struct GraphSection<'r> {
    pub route: &'r Route,
    /// The operations in force.
    pub operations: &'r Operations,
}

impl OpenApi {
    /// Describes these routes. `sdk_key_header` is the header of SDK keys, if there are flag decisions.
    ///
    /// Errors: an invalid description, with the name of its route.
    pub fn describe(
        sections: &[Section<'_>],
        graph: Option<&GraphSection<'_>>,
        sdk_key_header: Option<&str>,
    ) -> Result<Self, String> {
        let mut document = Document::new(sdk_key_header)?;
        for section in sections {
            // A route that answers at several paths is described at the first.
            let mut told = HashSet::new();
            let routes = section.routes.iter().filter(|route| route.is_on);
            for route in routes.filter(|route| told.insert(route.name)) {
                document.add(&DescribedTarget::from_route(route, section.tag))?;
            }
        }
        if let Some(graph) = graph {
            for operation in graph.operations.all() {
                let target = DescribedTarget::from_graph(graph.route, operation);
                target.map_or(Ok(()), |target| document.add(&target))?;
            }
        }
        Ok(Self::from_text(document.into_text()))
    }

    /// Returns an empty document. It lets the document's own row be described before the document is written.
    pub fn unwritten() -> Self {
        Self::from_text("{}".to_owned())
    }

    fn from_text(json: String) -> Self {
        let hash = Sha256::digest(json.as_bytes());
        let hash: String = hash
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let etag = HeaderValue::try_from(format!("\"{hash}\""));
        Self {
            json: json.into(),
            etag: etag.unwrap_or_else(|_| HeaderValue::from_static("\"\"")),
        }
    }

    /// Returns the document.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    fn response(&self, request: &Request<'_>) -> Response {
        let known = request.headers.get_all(header::IF_NONE_MATCH);
        let is_known = known.iter().any(|known| *known == self.etag);
        let mut response = match is_known {
            true => Response {
                status: 304,
                ..Response::json(Bytes::new())
            },
            false => Response::json(self.json.clone()),
        };
        response.headers.push((header::ETAG, self.etag.clone()));
        response
    }
}

impl Endpoint for OpenApi {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let response = self.response(&request);
        Box::pin(async { Ok(response) })
    }
}

/// Returns the row of the document itself.
pub fn route(document: Arc<OpenApi>) -> Route {
    Route {
        name: "openapi",
        method: Method::GET,
        path: "/v1/openapi.json",
        access: Access::Open,
        quota: None,
        deprecation: None,
        takes_permit: false,
        body: BodyRule::None,
        errors: ErrorStyle::compatible(),
        description: include_str!("openapi.json"),
        is_on: true,
        handler: Handler::Endpoint(document),
    }
}

/// The document while it is made.
struct Document {
    paths: Map<String, Value>,
    components: Components,
}

/// The components that operations share.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Components {
    #[serde(default)]
    security_schemes: Map<String, Value>,
    parameters: Map<String, Value>,
    headers: Map<String, Value>,
    #[serde(default)]
    responses: Map<String, Value>,
    schemas: Map<String, Value>,
}

impl Document {
    fn new(sdk_key_header: Option<&str>) -> Result<Self, String> {
        let components = serde_json::from_str(COMPONENTS);
        let mut components: Components =
            components.map_err(|error| format!("components.json: {error}"))?;
        let mut add =
            |name: &str, scheme| components.security_schemes.insert(name.to_owned(), scheme);
        add(
            "apiKey",
            json!({"type": "http", "scheme": "bearer", "description": "An API key of the gateway."}),
        );
        add(
            "apiKeyHeader",
            json!({"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The same key in another header."}),
        );
        add(
            "contentsApiKey",
            json!({"type": "apiKey", "in": "header", "name": "x-goog-api-key", "description": "The same key in a third header."}),
        );
        add(
            "contentsApiKeyInQuery",
            json!({"type": "apiKey", "in": "query", "name": "key", "description": "The same key in the query."}),
        );
        add(
            "accessToken",
            json!({"type": "http", "scheme": "bearer", "description": "An access token of OAuth that stands for an API key."}),
        );
        if let Some(name) = sdk_key_header {
            add(
                "sdkKey",
                json!({"type": "apiKey", "in": "header", "name": name, "description": "The SDK key of a project with flags."}),
            );
            add(
                "token",
                json!({"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A token that stands for SDK keys."}),
            );
        }
        Ok(Self {
            paths: Map::new(),
            components,
        })
    }

    fn add(&mut self, target: &DescribedTarget<'_>) -> Result<(), String> {
        let (operation, schemas) = target.describe(&mut self.components)?;
        for (name, schema) in schemas {
            // All operations of the graph service share one description.
            let known = self.components.schemas.entry(name);
            let known = match known {
                Entry::Vacant(entry) => entry.insert(schema.clone()),
                Entry::Occupied(entry) => entry.into_mut(),
            };
            if *known != schema {
                let name = target.name();
                return Err(format!(
                    "{name}: one of its schemas has a name that is taken: {schema}"
                ));
            }
        }
        let path = path_template(target.path, &operation);
        let methods = self.paths.entry(path).or_insert_with(|| json!({}));
        if let Some(methods) = methods.as_object_mut() {
            methods.insert(target.method.to_ascii_lowercase(), operation);
        }
        Ok(())
    }

    fn into_text(self) -> String {
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Weirgate",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "What this listener serves: models, flag decisions and a graph service behind limits. \
                    Members that a schema does not name are accepted and, where a provider may know them, passed on. \
                    A GET is served as HEAD, too.",
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "paths": self.paths,
            "components": self.components,
        })
        .to_string()
    }
}
