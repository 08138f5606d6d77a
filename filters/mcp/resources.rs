//! Resources: each is a `GET` of one of the gateway's routes, under a URI of its own.

use serde_json::{Value, json};

use super::message::{Call, INVALID_PARAMS, Members};
use super::oauth::scope::Scope;
use super::revision::Revision;

/// The resource does not exist. Revisions with sessions have their own code for this error.
const RESOURCE_NOT_FOUND: i32 = -32002;
/// The most values of a completion.
const MAX_COMPLETIONS: usize = 100;
/// The media type of all resources.
const JSON: &str = "application/json";

/// A resource, or all resources of a template.
#[derive(Debug)]
pub struct McpResource {
    /// The name of the route that serves the resource.
    pub route: &'static str,
    /// The scope that an access token needs for it.
    scope: Scope,
    /// The path; for a template, the part before its variable.
    path: &'static str,
    /// The URI; for a template, the part before its variable.
    uri: &'static str,
    /// The variable at the end of a template.
    variable: Option<TemplateVariable>,
    name: &'static str,
    title: &'static str,
    description: &'static str,
}

/// The variable of a template.
#[derive(Debug)]
struct TemplateVariable {
    name: &'static str,
    /// The route that lists the variable's values, and the member of an entry with the value.
    listed: (&'static str, &'static str),
}

/// All resources, in the order in which they are listed.
pub static RESOURCES: [McpResource; 5] = [
    McpResource {
        route: "models",
        scope: Scope::Models,
        path: "/v1/models",
        uri: "weirgate://models",
        variable: None,
        name: "models",
        title: "Models",
        description: "The models that this key may use, with their prices and providers.",
    },
    McpResource {
        route: "model",
        scope: Scope::Models,
        path: "/v1/models/",
        uri: "weirgate://models/",
        variable: Some(TemplateVariable {
            name: "id",
            listed: ("models", "id"),
        }),
        name: "model",
        title: "Model",
        description: "One model, by its id or an alias, or by either behind `provider/`.",
    },
    McpResource {
        route: "prompts",
        scope: Scope::Models,
        path: "/v1/prompts",
        uri: "weirgate://prompts",
        variable: None,
        name: "prompts",
        title: "Managed prompts",
        description: "The managed prompts that this key may use, with their versions, labels and variables.",
    },
    McpResource {
        route: "prompt",
        scope: Scope::Models,
        path: "/v1/prompts/",
        uri: "weirgate://prompts/",
        variable: Some(TemplateVariable {
            name: "name",
            listed: ("prompts", "name"),
        }),
        name: "prompt",
        title: "Managed prompt",
        description: "A managed prompt as it was written, by its name, or by `name@label` or `name@version`.",
    },
    McpResource {
        route: FLAGS,
        scope: Scope::Decisions,
        path: "/v1/config",
        uri: "weirgate://flags",
        variable: None,
        name: "flags",
        title: "Flag configuration",
        description: "The flags and experiments of the project whose SDK key the client sends in its header.",
    },
];

/// The route of a project's flags. Its requests need an SDK key.
pub const FLAGS: &str = "config";

impl McpResource {
    /// Returns whether this is a template.
    pub fn is_template(&self) -> bool {
        self.variable.is_some()
    }

    /// Returns the description for clients.
    pub fn entry(&self) -> Value {
        let key = if self.is_template() {
            "uriTemplate"
        } else {
            "uri"
        };
        json!({
            key: self.whole_uri(),
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "mimeType": JSON,
        })
    }

    fn whole_uri(&self) -> String {
        let name = self.variable.as_ref().map(|variable| variable.name);
        let variable = name.map(|name| format!("{{{name}}}"));
        format!("{}{}", self.uri, variable.unwrap_or_default())
    }

    /// Returns the path of the request for a URI, or `None` if the URI is not one of this resource.
    fn path(&self, uri: &str) -> Option<String> {
        let rest = uri.strip_prefix(self.uri)?;
        let is_one = rest.is_empty() != self.is_template();
        is_one.then(|| format!("{}{rest}", self.path))
    }
}

/// Returns the scope that an access token needs for a request for resources or prompts. `None` means no scope: the
/// resource is public or does not exist.
pub fn needed_scope(call: &Call) -> Option<Scope> {
    match call.method.as_str() {
        "resources/read" => Some(find(call.text("uri")?)?.0.scope),
        "prompts/list" | "prompts/get" | "completion/complete" => Some(Scope::Models),
        _ => None,
    }
}

/// Returns the resource of a URI, and the path of the request for it.
pub fn find(uri: &str) -> Option<(&'static McpResource, String)> {
    let mut all = RESOURCES.iter();
    all.find_map(|resource| Some((resource, resource.path(uri)?)))
}

/// Returns the route that lists the values of a template's variable, and the member of an entry with the value.
/// Returns `None` if there is no such template or variable.
pub fn find_values(template: &str, variable: &str) -> Option<(&'static str, &'static str)> {
    let mut all = RESOURCES.iter();
    let found = all.find(|resource| resource.whole_uri() == template)?;
    let known = found.variable.as_ref();
    known.filter(|it| it.name == variable).map(|it| it.listed)
}

/// Returns the members of a `completion/complete` result: the values of a list that begin with `begun`. Returns
/// `None` if the body has no list.
pub fn completion(body: &[u8], member: &str, begun: &str) -> Option<Members> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let entries = answer.get("data")?.as_array()?.iter();
    let values = entries.filter_map(|entry| entry.get(member)?.as_str());
    let fitting: Vec<&str> = values.filter(|value| value.starts_with(begun)).collect();
    let shown = fitting.get(..MAX_COMPLETIONS).unwrap_or(&fitting);
    let mut members = Members::new();
    let completion = json!({
        "values": shown,
        "total": fitting.len(),
        "hasMore": fitting.len() > shown.len(),
    });
    members.insert("completion".to_owned(), completion);
    Some(members)
}

/// Returns the members of a `resources/read` result for a response body of the resource's route.
pub fn contents(uri: &str, body: &[u8]) -> Members {
    let text = String::from_utf8_lossy(body);
    let mut members = Members::new();
    members.insert(
        "contents".to_owned(),
        json!([{"uri": uri, "mimeType": JSON, "text": text}]),
    );
    members
}

/// Returns the error code for a resource that does not exist.
pub fn not_found_code(revision: Revision) -> i32 {
    match revision.is_stateless() {
        true => INVALID_PARAMS,
        false => RESOURCE_NOT_FOUND,
    }
}
