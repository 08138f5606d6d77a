//! One operation of the document, made from its row and its description.

use filters::fault::quoted;
use filters::graph::GraphOperation;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Components, responses};
use crate::proxy::handler::Handler;
use crate::proxy::router::{Access, BodyRule, Route};

/// A route, or one of several operations of a route.
pub(super) struct DescribedTarget<'r> {
    route: &'r Route,
    tag: &'static str,
    pub(super) method: &'r str,
    /// The path as in the row, or with `{name}` for segments.
    pub(super) path: &'r str,
    /// Whether the operation takes queries of the graph service. The description's example is such a query.
    takes_queries: bool,
}

/// The path of the graph service's operations for unknown paths.
const UNKNOWN_PATHS: &str = "/*";

/// The members of a description.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationDescription {
    summary: String,
    description: Option<String>,
    /// Parameters in OpenAPI's form.
    #[serde(default)]
    parameters: Vec<Value>,
    /// The schema of the body, by media type.
    #[serde(default)]
    body: Map<String, Value>,
    /// Whether a request may have no body.
    #[serde(default)]
    optional_body: bool,
    /// A body to which the built-in sandbox responds. In a form `@NAME` stands for the file with that name.
    example: Option<Value>,
    /// Responses of success in OpenAPI's form.
    responses: Map<String, Value>,
    /// Statuses of errors beyond those that follow from the row.
    #[serde(default)]
    errors: Vec<u16>,
    /// Schemas to which others may refer.
    #[serde(default)]
    schemas: Map<String, Value>,
}

/// An operation and its schemas.
type Described = (Value, Map<String, Value>);

impl<'r> DescribedTarget<'r> {
    pub(super) fn from_route(route: &'r Route, tag: &'static str) -> Self {
        Self {
            route,
            tag,
            method: route.method.as_str(),
            path: route.path,
            takes_queries: true,
        }
    }

    /// Returns an operation of the graph service, or `None` if it stands for paths that are not listed.
    pub(super) fn from_graph(route: &'r Route, operation: &'r GraphOperation) -> Option<Self> {
        let (method, path) = operation.name.split_once(' ')?;
        if path == UNKNOWN_PATHS {
            return None;
        }
        Some(Self {
            route,
            tag: "Graph",
            method,
            path,
            takes_queries: operation.accepts_single_key,
        })
    }

    pub(super) fn name(&self) -> &str {
        self.route.name
    }

    /// Describes the operation. Responses shared with other operations are added to the components.
    ///
    /// Errors: the description is invalid.
    pub(super) fn describe(&self, components: &mut Components) -> Result<Described, String> {
        let told = serde_json::from_str(self.route.description);
        let mut told: OperationDescription =
            told.map_err(|error| format!("{}: {error}", self.name()))?;
        self.check_body(&told)?;
        if self.method == Method::GET.as_str() {
            told.body.clear();
        }
        told.example = told.example.filter(|_| self.takes_queries);
        let mut operation = Map::new();
        let mut set = |key: &str, value: Value| operation.insert(key.to_owned(), value);
        set("operationId", self.id().into());
        set("tags", json!([self.tag]));
        set("summary", told.summary.into());
        if let Some(description) = told.description {
            set("description", description.into());
        }
        set("security", self.security());
        let parameters = self.parameters(told.parameters);
        if !parameters.is_empty() {
            set("parameters", parameters.into());
        }
        if !told.body.is_empty() {
            if let Some(bytes) = self.route.body.max_bytes() {
                set("x-body-bytes", bytes.into());
            }
            let content = content(told.body, told.example);
            set(
                "requestBody",
                json!({"required": !told.optional_body, "content": content}),
            );
        }
        let responses = responses::describe(self.route, told.responses, &told.errors, components);
        set("responses", responses.into());
        if let Some(group) = self.route.quota {
            set("x-quota", group.as_str().into());
        }
        if self.route.deprecation.is_some() {
            set("deprecated", true.into());
        }
        Ok((Value::Object(operation), told.schemas))
    }

    /// Checks that the body has the media types that the row reads.
    fn check_body(&self, told: &OperationDescription) -> Result<(), String> {
        let types: Vec<&str> = told.body.keys().map(String::as_str).collect();
        let fits = match self.route.body {
            BodyRule::None => types.is_empty(),
            BodyRule::Json(_) | BodyRule::SpooledJson(_) => types == ["application/json"],
            BodyRule::JsonOrForm(_) => types == ["application/json", "multipart/form-data"],
            BodyRule::Form(_) => types == ["multipart/form-data"],
            // The endpoints with GET need no body, but check one.
            BodyRule::Any(_) => types.is_empty() == (self.route.method == Method::GET),
            BodyRule::Unread => true,
        };
        if fits {
            return Ok(());
        }
        let (name, types) = (self.name(), quoted(&types.join(", ")).into_owned());
        let rule = self.route.body;
        Err(format!(
            "{name}: the body has {types:?}, which is not what the row reads: {rule:?}"
        ))
    }

    /// Returns the name of the route; for a route with several operations it also has method and path.
    fn id(&self) -> String {
        if self.path == self.route.path {
            return self.name().to_owned();
        }
        let words = self
            .path
            .split(|letter: char| !letter.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let method = self.method.to_ascii_lowercase();
        format!("{}_{method}_{}", self.name(), words.join("_"))
    }

    fn security(&self) -> Value {
        match self.route.access {
            Access::Open => json!([]),
            Access::Key => json!([{"apiKey": []}, {"apiKeyHeader": []}]),
            Access::KeyInQuery => {
                json!([{"apiKey": []}, {"apiKeyHeader": []}, {"contentsApiKey": []}, {"contentsApiKeyInQuery": []}])
            }
            Access::KeyOrToken => {
                json!([{"apiKey": []}, {"apiKeyHeader": []}, {"accessToken": []}])
            }
            Access::KeyOrTokenForEvents => {
                json!([{}, {"apiKey": []}, {"apiKeyHeader": []}, {"accessToken": []}])
            }
            Access::SdkKey => json!([{"sdkKey": []}, {"token": []}]),
        }
    }

    /// Returns the parameters of the description, the other parameters of the path, and the headers of all model
    /// calls.
    fn parameters(&self, told: Vec<Value>) -> Vec<Value> {
        let mut parameters = told;
        for name in segment_names(self.path) {
            let named = json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}});
            parameters.push(named);
        }
        let is_keyed = matches!(
            self.route.access,
            Access::Key | Access::KeyInQuery | Access::KeyOrToken
        );
        if matches!(self.route.handler, Handler::Forward(_)) && is_keyed {
            let shared = ["SessionId", "NoCache", "NoFallback"];
            let shared =
                shared.map(|name| json!({"$ref": format!("#/components/parameters/{name}")}));
            parameters.extend(shared);
        }
        parameters
    }
}

/// Returns the bodies by media type. The example is in the schema of JSON, or in the only one.
fn content(body: Map<String, Value>, example: Option<Value>) -> Map<String, Value> {
    let is_only = body.len() == 1;
    let with_schema = body.into_iter().map(|(media_type, schema)| {
        let mut content = json!({"schema": schema});
        let is_shown = is_only || media_type == "application/json";
        if let (true, Some(example), Some(content)) = (is_shown, &example, content.as_object_mut())
        {
            content.insert("example".to_owned(), example.clone());
        }
        (media_type, content)
    });
    with_schema.collect()
}

/// Returns the names of a path's variable segments.
fn segment_names(path: &str) -> impl Iterator<Item = &str> {
    let parts = path.split('{').skip(1);
    let named = parts
        .filter_map(|part| part.split_once('}'))
        .map(|(name, _)| name);
    named.chain(
        path.starts_with("/api/")
            .then_some("rest")
            .filter(|_| path.ends_with('*')),
    )
}

/// Returns the path in OpenAPI's form: stars become the name of the operation's path parameter.
pub(super) fn path_template(path: &str, operation: &Value) -> String {
    let Some((prefix, rest)) = path.split_once('*') else {
        return path.to_owned();
    };
    let rest = rest.trim_start_matches('*');
    let parameters = operation.get("parameters").and_then(Value::as_array);
    let mut parameters = parameters.into_iter().flatten();
    let in_path = parameters.find(|parameter| parameter.get("in") == Some(&"path".into()));
    let name = in_path.and_then(|parameter| parameter.get("name")?.as_str());
    format!("{prefix}{{{}}}{rest}", name.unwrap_or_default())
}
