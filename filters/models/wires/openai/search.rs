//! Searches of the web at providers of this convention: how each dialect says one, and what an answer says of its sources.
//! Source: docs/facts/wire-formats.md 5.5.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::json::{Error, Type, Walker};
use crate::models::chat::piece::{Citation, Piece};
use crate::models::chat::tools::{SearchLocation, WebSearchTool};
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::routing::search::SearchDialect;
use crate::models::wires::scan::text;
use crate::models::wires::wire::Target;

/// The tool of the dialect that has one.
const TOOL: &str = r#"{"type":"web_search","web_search":{"enable":true,"search_engine":"search-prime","search_result":true}}"#;

/// Returns the tool that asks for a search, in the dialect that has one.
pub(super) fn tool(request: &ModelRequest, target: &Target<'_>) -> Option<&'static str> {
    let asks = request.needs.web_search.is_some();
    (asks && target.search.dialect == SearchDialect::Tool).then_some(TOOL)
}

/// Returns the members that ask for a search.
pub(super) fn members(request: &ModelRequest, target: &Target<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let Some(search) = request.needs.web_search else {
        return Vec::new();
    };
    let chat = request.front.conversation(request).ok();
    let tool = chat.as_ref().and_then(|chat| chat.web_search());
    let none = WebSearchTool::default();
    let tool = tool.unwrap_or(&none);
    let mut members = Vec::new();
    let mut add = |key, value: Value| members.push((key, value.to_string().into_bytes()));
    match target.search.dialect {
        SearchDialect::None | SearchDialect::Tool => {}
        SearchDialect::Options => add("web_search_options", options(tool, request, target, nested)),
        SearchDialect::Always => {
            let options = options(tool, request, target, flat);
            if options
                .as_object()
                .is_some_and(|options| !options.is_empty())
            {
                add("web_search_options", options);
            }
            if let Some(domains) = domains(tool, request) {
                add("search_domain_filter", domains);
            }
        }
        SearchDialect::Plugin => add("plugins", json!([{ "id": "web" }])),
        SearchDialect::EnableSearch => {
            add("enable_search", true.into());
            if search.is_demanded {
                add("search_options", json!({ "forced_search": true }));
            }
        }
    }
    members
}

fn options(
    tool: &WebSearchTool<'_>,
    request: &ModelRequest,
    target: &Target<'_>,
    place: fn(&SearchLocation<'_>) -> Value,
) -> Value {
    let mut options = serde_json::Map::new();
    let size = tool.search_context_size.as_deref();
    if let Some(size) = size.filter(|_| target.tells(Parameter::SearchContextSize, request)) {
        options.insert("search_context_size".to_owned(), size.into());
    }
    let location = tool.user_location.as_ref();
    if let Some(location) = location.filter(|_| target.tells(Parameter::SearchLocation, request)) {
        options.insert("user_location".to_owned(), place(location));
    }
    Value::Object(options)
}

fn nested(location: &SearchLocation<'_>) -> Value {
    json!({ "type": "approximate", "approximate": location })
}

fn flat(location: &SearchLocation<'_>) -> Value {
    let mut place = json!(location);
    if let Some(place) = place.as_object_mut() {
        place.remove("timezone");
    }
    place
}

/// One list has both kinds of domains: a dash stands before those that are left out.
fn domains(tool: &WebSearchTool<'_>, request: &ModelRequest) -> Option<Value> {
    let list = |raw: Option<&RawValue>, parameter| {
        let raw = raw.filter(|_| request.asked.set.contains(parameter))?;
        serde_json::from_str::<Vec<String>>(raw.get()).ok()
    };
    let allowed = list(tool.allowed_domains, Parameter::AllowedDomains).unwrap_or_default();
    let blocked = list(tool.blocked_domains, Parameter::BlockedDomains).unwrap_or_default();
    let blocked = blocked.into_iter().map(|domain| format!("-{domain}"));
    let all: Vec<String> = allowed.into_iter().chain(blocked).collect();
    (!all.is_empty()).then(|| all.into())
}

/// How the searches of an answer are seen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sources {
    /// The member of a reply that lists the sources; `None`: they come as annotations, or not at all.
    pub(super) member: Option<&'static str>,
    /// The searches of each answer.
    pub(super) searches: u64,
    /// Whether a list of sources is one search.
    are_a_search: bool,
}

impl Sources {
    /// Returns how the answer to a request shows its searches.
    pub(super) fn new(request: &ModelRequest, target: &Target<'_>) -> Self {
        let asks = request.needs.web_search.is_some();
        match target.search.dialect {
            SearchDialect::Options => Self {
                searches: 1,
                ..Self::default()
            },
            SearchDialect::Plugin | SearchDialect::EnableSearch => Self {
                searches: u64::from(asks),
                ..Self::default()
            },
            SearchDialect::Always => Self {
                member: Some("search_results"),
                ..Self::default()
            },
            SearchDialect::Tool => Self {
                member: Some("web_search"),
                are_a_search: true,
                ..Self::default()
            },
            SearchDialect::None => Self::default(),
        }
    }

    /// Returns the sources that a reply or a chunk lists, as citations of the whole answer, and their searches; `None`: it
    /// lists none.
    pub(super) fn read<'a>(&self, data: &'a [u8]) -> Option<(Vec<Piece<'a>>, u64)> {
        let member = self.member?;
        memchr::memmem::find(data, member.as_bytes())?;
        let mut list = Vec::new();
        let mut walk = Walker::new(data).ok()?;
        let walked = walk.object(|walk, key| {
            if key == member && walk.peek()? == Type::Array {
                return walk.array(|walk, _| source(walk, &mut list));
            }
            walk.skip().map(|_| ())
        });
        walked.ok()?;
        (!list.is_empty()).then(|| (list, u64::from(self.are_a_search)))
    }
}

fn source<'a>(walk: &mut Walker<'a>, list: &mut Vec<Piece<'a>>) -> Result<(), Error> {
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| ());
    }
    let (mut url, mut title) = (None, None);
    walk.object(|walk, key| {
        match &*key {
            "url" | "link" => url = text(walk)?.or(url),
            "title" => title = text(walk)?,
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    })?;
    if let Some(url) = url.filter(|url| !url.is_empty()) {
        list.push(Piece::Citation(Citation::Page {
            url,
            title,
            start: 0,
            end: 0,
        }));
    }
    Ok(())
}
