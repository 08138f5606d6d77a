//! Resources: each is a `GET` of one of the gateway's routes, under a URI of our own.

use serde_json::{Value, json};

use super::message::{Call, INVALID_PARAMS, Members};
use super::oauth::scope::Scope;
use super::revision::Revision;

/// There is no such resource. Revisions with sessions have a code of their own for it.
const RESOURCE_NOT_FOUND: i32 = -32002;
/// The most values of a completion.
const MAX_COMPLETIONS: usize = 100;
/// The media type of all of them.
const JSON: &str = "application/json";

/// A resource, or all that a template stands for.
#[derive(Debug)]
pub struct McpResource {
    /// The name of the route that answers.
    pub route: &'static str,
    /// What an access token has to permit for it.
    scope: Scope,
    /// Its path; of a template the part before its variable.
    path: &'static str,
    /// The URI; of a template the part before its variable.
    uri: &'static str,
    /// The variable at the end of a template.
    variable: Option<Variable>,
    name: &'static str,
    title: &'static str,
    description: &'static str,
}

/// The variable of a template.
#[derive(Debug)]
struct Variable {
    name: &'static str,
    /// The route that lists its values, and the member of an entry that has one.
    listed: (&'static str, &'static str),
}

/// All of them, in the order in which they are listed.
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
        variable: Some(Variable {
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
        variable: Some(Variable {
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

/// The route of the flags of a project, whose SDK key a request has to have.
pub const FLAGS: &str = "config";

impl McpResource {
    /// Returns whether it is a template.
    pub fn is_template(&self) -> bool {
        self.variable.is_some()
    }

    /// Returns what clients are told of it.
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

    /// Returns the path of the request that a URI stands for; `None`: it is not one of this resource.
    fn path(&self, uri: &str) -> Option<String> {
        let rest = uri.strip_prefix(self.uri)?;
        let is_one = rest.is_empty() != self.is_template();
        is_one.then(|| format!("{}{rest}", self.path))
    }
}

/// Returns what an access token has to permit for a request for resources or prompts; `None`: nothing, because what is there is
/// no secret, or is not there.
pub fn needed_scope(call: &Call) -> Option<Scope> {
    match call.method.as_str() {
        "resources/read" => Some(find(call.text("uri")?)?.0.scope),
        "prompts/list" | "prompts/get" | "completion/complete" => Some(Scope::Models),
        _ => None,
    }
}

/// Returns the resource of a URI, and the path of the request that it stands for.
pub fn find(uri: &str) -> Option<(&'static McpResource, String)> {
    let mut all = RESOURCES.iter();
    all.find_map(|resource| Some((resource, resource.path(uri)?)))
}

/// Returns the route that lists the values of the variable of a template, and the member of an entry that has one; `None`: there is
/// no such template, or it has another variable.
pub fn find_values(template: &str, variable: &str) -> Option<(&'static str, &'static str)> {
    let mut all = RESOURCES.iter();
    let found = all.find(|resource| resource.whole_uri() == template)?;
    let known = found.variable.as_ref();
    known.filter(|it| it.name == variable).map(|it| it.listed)
}

/// Returns the members of the result of a `completion/complete`: those of a list's values that begin so. `None`: the body has no list.
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

/// Returns the members of the result of a `resources/read` whose route has answered with this body.
pub fn contents(uri: &str, body: &[u8]) -> Members {
    let text = String::from_utf8_lossy(body);
    let mut members = Members::new();
    members.insert(
        "contents".to_owned(),
        json!([{"uri": uri, "mimeType": JSON, "text": text}]),
    );
    members
}

/// Returns the code of the error that there is no such resource.
pub fn not_found_code(revision: Revision) -> i32 {
    match revision.is_stateless() {
        true => INVALID_PARAMS,
        false => RESOURCE_NOT_FOUND,
    }
}
