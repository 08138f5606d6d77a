//! Tools as other dialects have them: functions with plain names. A tool that takes a text is a function of one string, the tools of
//! a namespace have it in their names, and [`ToolNames`] knows what each was called.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::tool_types::{self, ToolType};
use crate::json::{Type, Walker, offset_of, quoted};
use crate::models::chat::text::Text;
use crate::models::chat::tools::{Function, SearchLocation, Tool, WebSearchTool};
use crate::models::request::Source;

/// The most characters of a name that all providers take.
const MAX_NAME_CHARS: usize = 64;

/// The member of the arguments that holds the text of a tool that takes one.
const TEXT: &str = "input";
/// The schema of a function in place of a tool that takes a text.
const TEXT_SCHEMA: &str = r#"{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text."}},"required":["input"],"additionalProperties":false}"#;
/// The name of a search among deferred tools that the client runs.
const SEARCH: &str = "tool_search";
/// The schema of a search that names none.
const SEARCH_SCHEMA: &str =
    r#"{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}"#;

/// A tool of any type.
#[derive(Deserialize)]
pub(super) struct SaidTool<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(default)]
    strict: Option<bool>,
    #[serde(default)]
    defer_loading: Option<bool>,
    #[serde(borrow, default)]
    format: Option<TextFormat<'a>>,
    #[serde(borrow, default)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    execution: Option<Text<'a>>,
    #[serde(borrow, default)]
    filters: Option<Filters<'a>>,
    #[serde(borrow, default)]
    search_context_size: Option<Text<'a>>,
    #[serde(borrow, default)]
    user_location: Option<SearchLocation<'a>>,
}

/// The form of the text that a tool takes.
#[derive(Deserialize)]
struct TextFormat<'a> {
    #[serde(borrow, default)]
    syntax: Option<Text<'a>>,
    #[serde(borrow, default)]
    definition: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
pub(super) struct Filters<'a> {
    #[serde(borrow, default)]
    pub(super) allowed_domains: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) blocked_domains: Option<&'a RawValue>,
}

/// How a call of a tool is said.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CallForm {
    /// Its arguments are JSON.
    Arguments,
    /// A text.
    Text,
    /// A search among deferred tools, whose arguments are an object.
    Search,
}

/// A tool that the client runs, as the request calls it.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct NamedTool {
    pub(super) name: Box<str>,
    pub(super) namespace: Option<Box<str>>,
    pub(super) form: CallForm,
}

/// What the tools of a request are called, here and there.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    tools: Vec<NamedTool>,
    /// The places of tools, by their names in other dialects.
    by_name: HashMap<Box<str>, usize>,
    /// The names in other dialects, by those of the request.
    by_said: HashMap<Said, Box<str>>,
}

type Said = (Option<Box<str>>, Box<str>);

impl ToolNames {
    /// Returns the tool of a name that another dialect has said.
    pub(super) fn find(&self, name: &str) -> Option<&NamedTool> {
        self.tools.get(*self.by_name.get(name)?)
    }

    /// Returns what other dialects call a tool, which may no longer be among the request's.
    pub(super) fn flat(&self, namespace: Option<&str>, name: &str) -> Cow<'_, str> {
        let said = (namespace.map(Box::from), Box::from(name));
        match self.by_said.get(&said) {
            Some(flat) => Cow::Borrowed(flat),
            None => Cow::Owned(flattened(namespace, name)),
        }
    }

    /// Adds a tool, and returns what other dialects call it; `None`: it is there already.
    fn add(&mut self, tool: NamedTool) -> Option<Box<str>> {
        let said = (tool.namespace.clone(), tool.name.clone());
        if self.by_said.contains_key(&said) {
            return None;
        }
        let plain = flattened(tool.namespace.as_deref(), &tool.name);
        let mut flat: Box<str> = plain.as_str().into();
        let mut number = 1;
        while self.by_name.contains_key(&flat) {
            number += 1;
            let end = format!("_{number}");
            let kept: String = plain.chars().take(MAX_NAME_CHARS - end.len()).collect();
            flat = (kept + &end).into();
        }
        self.by_name.insert(flat.clone(), self.tools.len());
        self.by_said.insert(said, flat.clone());
        self.tools.push(tool);
        Some(flat)
    }
}

/// Returns the name of a tool with its namespace. A long one keeps its beginning, and a sum of the whole tells it from others.
fn flattened(namespace: Option<&str>, name: &str) -> String {
    let whole = match namespace {
        Some(namespace) => [namespace, "__", name].concat(),
        None => name.to_owned(),
    };
    if whole.chars().count() <= MAX_NAME_CHARS {
        return whole;
    }
    let sum = format!("_{:08x}", crc32fast::hash(whole.as_bytes()));
    let kept: String = whole.chars().take(MAX_NAME_CHARS - sum.len()).collect();
    kept + &sum
}

/// Returns the arguments of a call whose tool takes a text: a JSON object.
pub(super) fn text_arguments(text: &str) -> String {
    ["{\"", TEXT, "\":", &quoted(text), "}"].concat()
}

/// Returns the text of such a call. Arguments of another form are the text themselves, so that nothing is lost.
pub(super) fn text_of(arguments: &str) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Arguments<'a> {
        #[serde(borrow)]
        input: Text<'a>,
    }
    match serde_json::from_str::<Arguments<'_>>(arguments) {
        Ok(read) => read.input.0,
        Err(_) => Cow::Borrowed(arguments),
    }
}

/// The tools of a request.
pub(super) struct ToolList<'a> {
    pub(super) names: ToolNames,
    pub(super) tools: Vec<Tool<'a>>,
}

/// Reads the tools of a checked request, those in its items too. A deferred one is hidden until the client's search has found it, and
/// then stands behind the others, so that the prefix that providers cache stays. Where the vendor would search, all are shown,
/// because other models cannot.
pub(super) fn read<'a>(body: &'a str, source: &Source) -> ToolList<'a> {
    let (offered, found) = lists(body, source);
    let offered: Vec<SaidTool<'a>> = offered.into_iter().flat_map(parsed).collect();
    let hides = offered.iter().any(SaidTool::is_client_search);
    let mut reader = Reader {
        body,
        hides,
        list: ToolList {
            names: ToolNames::default(),
            tools: Vec::new(),
        },
    };
    for tool in offered {
        reader.read(tool, None);
    }
    reader.hides = false;
    for tool in found.into_iter().flat_map(parsed) {
        reader.read(tool, None);
    }
    reader.list
}

fn parsed(list: &str) -> Vec<SaidTool<'_>> {
    let list: Vec<&RawValue> = serde_json::from_str(list).unwrap_or_default();
    let tools = list.into_iter();
    tools
        .filter_map(|tool| serde_json::from_str(tool.get()).ok())
        .collect()
}

/// Returns the lists of tools: those that are offered, and those that searches have found.
fn lists<'a>(body: &'a str, source: &Source) -> (Vec<&'a str>, Vec<&'a str>) {
    let value = |key| {
        let member = source.member(key)?;
        body.get(member.value.clone())
    };
    let mut offered: Vec<&str> = value("tools").into_iter().collect();
    let mut found = Vec::new();
    let has = |kind: &str| memchr::memmem::find(body.as_bytes(), kind.as_bytes()).is_some();
    let input = value("input").filter(|it| it.starts_with('['));
    if let Some(input) = input.filter(|_| has("additional_tools") || has("tool_search_output")) {
        let walked = Walker::over(input).array(|walk, _| {
            let (mut kind, mut tools) = (Cow::Borrowed(""), None);
            walk.object(|walk, key| {
                match &*key {
                    "type" if walk.peek()? == Type::String => kind = walk.text()?,
                    "tools" => tools = Some(walk.skip()?),
                    _ => _ = walk.skip()?,
                }
                Ok::<(), crate::json::Error>(())
            })?;
            match &*kind {
                "additional_tools" => offered.extend(tools),
                "tool_search_output" => found.extend(tools),
                _ => {}
            }
            Ok::<(), crate::json::Error>(())
        });
        // It was checked, so it does not fail.
        _ = walked;
    }
    (offered, found)
}

struct Reader<'a> {
    body: &'a str,
    hides: bool,
    list: ToolList<'a>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, tool: SaidTool<'a>, namespace: Option<&str>) {
        match tool_types::find(&tool.kind) {
            ToolType::Function => self.function(tool, namespace, CallForm::Arguments),
            ToolType::Custom => self.function(tool, namespace, CallForm::Text),
            ToolType::ToolSearch if tool.is_client_search() => {
                self.function(tool, None, CallForm::Search);
            }
            ToolType::Namespace => {
                let name = tool.name.unwrap_or_default();
                for inside in tool.tools.unwrap_or_default() {
                    if let Ok(inside) = serde_json::from_str::<SaidTool<'a>>(inside.get()) {
                        self.read(inside, Some(&name));
                    }
                }
            }
            ToolType::WebSearch => {
                let filters = tool.filters.unwrap_or_default();
                self.list.tools.push(Tool::WebSearch(WebSearchTool {
                    user_location: tool.user_location,
                    search_context_size: tool.search_context_size,
                    allowed_domains: filters.allowed_domains,
                    blocked_domains: filters.blocked_domains,
                }));
            }
            ToolType::ToolSearch | ToolType::Native => {}
        }
    }

    fn function(&mut self, tool: SaidTool<'a>, namespace: Option<&str>, form: CallForm) {
        if self.hides && tool.defer_loading == Some(true) {
            return;
        }
        let name = match form {
            CallForm::Search => SEARCH,
            _ => tool.name.as_deref().unwrap_or_default(),
        };
        let Some(flat) = self.list.names.add(NamedTool {
            name: name.into(),
            namespace: namespace.map(Box::from),
            form,
        }) else {
            return;
        };
        let said = tool.parameters.map(RawValue::get);
        let parameters = match form {
            CallForm::Arguments => said,
            CallForm::Text => Some(TEXT_SCHEMA),
            CallForm::Search => said.or(Some(SEARCH_SCHEMA)),
        };
        let at = said.filter(|_| form != CallForm::Text);
        self.list.tools.push(Tool::Function(Function {
            name: Text(String::from(flat).into()),
            description: match form {
                CallForm::Text => Some(described(&tool)),
                _ => tool.description,
            },
            parameters: parameters.map(Cow::Borrowed),
            at: at.map_or(0, |schema| offset_of(self.body, schema)),
            strict: tool.strict.filter(|_| form == CallForm::Arguments),
            cache: None,
            is_deferred: false,
            callers: None,
        }));
    }
}

/// Returns the description of a tool that takes a text, with the form that the text has to have.
fn described<'a>(tool: &SaidTool<'a>) -> Text<'a> {
    let said = tool.description.clone().unwrap_or_default();
    let format = tool.format.as_ref();
    let grammar =
        format.and_then(|format| Some((format.syntax.as_deref(), format.definition.as_deref()?)));
    let Some((syntax, definition)) = grammar else {
        return said;
    };
    let syntax = syntax.unwrap_or("lark");
    let said = format!(
        "{}\n\nThe input has to fit this {syntax} grammar:\n{definition}",
        &*said
    );
    Text(said.trim_start().to_owned().into())
}

impl SaidTool<'_> {
    /// Returns whether the client searches among the deferred tools.
    fn is_client_search(&self) -> bool {
        let is_search = tool_types::find(&self.kind) == ToolType::ToolSearch;
        is_search && self.execution.as_deref() == Some("client")
    }
}

/// Returns what other dialects call the tools of a list.
pub(super) fn names_in(list: &str, names: &ToolNames) -> Vec<String> {
    let mut found = Vec::new();
    for tool in parsed(list) {
        let name = tool.name.as_deref().unwrap_or_default();
        match tool_types::find(&tool.kind) {
            ToolType::Namespace => {
                for inside in tool.tools.iter().flatten() {
                    if let Ok(inside) = serde_json::from_str::<SaidTool<'_>>(inside.get()) {
                        let inside = inside.name.unwrap_or_default();
                        found.push(names.flat(Some(name), &inside).into_owned());
                    }
                }
            }
            _ => found.push(names.flat(None, name).into_owned()),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;
    use crate::models::front::Front as _;
    use crate::models::fronts::responses::Responses;

    fn named(tools: &Value) -> (Vec<String>, ToolNames) {
        let body = Bytes::from(json!({"model": "m", "input": "Hi", "tools": tools}).to_string());
        let request = Responses.parse(body).unwrap();
        let text = std::str::from_utf8(&request.source.body).unwrap();
        let list = read(text, &request.source);
        let flat: Vec<String> = list
            .tools
            .iter()
            .filter_map(|tool| match tool {
                Tool::Function(function) => Some(function.name.to_string()),
                _ => None,
            })
            .collect();
        (flat, list.names)
    }

    #[test]
    fn each_tool_has_a_name_of_its_own_and_is_found_by_it() {
        let long = "n".repeat(70);
        let function = |name: &str| json!({"type": "function", "name": name});
        let tools = json!([function("a__b"), {"type": "namespace", "name": "a", "tools": [function("b"), function("b"), function(&long)]},
            {"type": "custom", "name": "c"}, function("c"), {"type": "namespace", "name": "x", "tools": [function(&long)]}]);
        let (flat, names) = named(&tools);
        assert_eq!(flat.len(), 5);
        assert_eq!(&flat[..2], ["a__b", "a__b_2"]);
        assert!(
            flat.iter().all(|name| name.len() <= MAX_NAME_CHARS),
            "{flat:?}"
        );
        for name in &flat {
            let tool = names.find(name).unwrap();
            assert_eq!(names.flat(tool.namespace.as_deref(), &tool.name), *name);
        }
        // The first of two tools with one name counts.
        assert_eq!(names.find("c").unwrap().form, CallForm::Text);
        // A tool that is no longer offered keeps the name that it would have.
        assert_eq!(names.flat(Some("gone"), "f"), "gone__f");
    }

    #[test]
    fn a_text_goes_into_arguments_and_back() {
        for text in ["", "plain", "\"\n\u{1}é", "{\"input\":\"x\"}"] {
            assert_eq!(text_of(&text_arguments(text)), text);
        }
        // Arguments of another form are the text, so that nothing is lost.
        for other in ["", "no json", "{\"a\":1}", "[]"] {
            assert_eq!(text_of(other), other);
        }
    }
}
