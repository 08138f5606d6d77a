//! A search of the web that the gateway runs, in the words of Responses: the tool of the vendor becomes a function, and its calls are
//! items.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::tool_types::{self, ToolType};
use crate::json::quoted;
use crate::models::chat::text::Text;
use crate::models::chat::tools::SearchLocation;
use crate::models::request::{ModelRequest, Source};
use crate::models::search_loop::SearchFunction;
use crate::models::search_loop::function::{DESCRIPTION, NAME, SCHEMA, SearchOptions};
use crate::models::search_words::{
    SearchCall, SearchResult, SearchWords, allowed_searches, extend_array, replace_members,
};

/// The words of Responses.
#[derive(Debug)]
pub(super) struct ResponsesSearch;

#[derive(Default, Deserialize)]
struct SaidTool<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(default)]
    filters: Option<Filters>,
    #[serde(borrow, default)]
    user_location: Option<SearchLocation<'a>>,
    #[serde(borrow, default)]
    search_context_size: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
struct Filters {
    #[serde(default)]
    allowed_domains: Option<Vec<String>>,
    #[serde(default)]
    blocked_domains: Option<Vec<String>>,
}

/// An answer that the gateway has written.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    output: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    call_id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
}

impl SaidTool<'_> {
    fn is_search(&self) -> bool {
        tool_types::find(&self.kind) == ToolType::WebSearch
    }

    fn options(self) -> SearchOptions {
        let filters = self.filters.unwrap_or_default();
        let country = self.user_location.and_then(|it| it.country);
        SearchOptions {
            allowed_domains: filters.allowed_domains.unwrap_or_default(),
            blocked_domains: filters.blocked_domains.unwrap_or_default(),
            country: country.map(|country| country.0.into_owned()),
            context_size: self.search_context_size.map(|size| size.0.into_owned()),
        }
    }
}

/// The tools of a request.
fn tools(source: &Source) -> Option<Vec<(&RawValue, SaidTool<'_>)>> {
    let tools = source.value(source.member("tools")?);
    let tools: Vec<&RawValue> = serde_json::from_slice(tools).ok()?;
    let tools = tools.into_iter();
    let said = tools.map(|tool| (tool, serde_json::from_str(tool.get()).unwrap_or_default()));
    Some(said.collect())
}

/// Returns a name that no tool has.
fn free_name(tools: &[(&RawValue, SaidTool<'_>)]) -> String {
    let is_free = |wanted: &str| {
        let mut names = tools.iter().filter_map(|(_, tool)| tool.name.as_deref());
        names.all(|name| name != wanted)
    };
    let mut numbered = (2..).map(|number| format!("{NAME}_{number}"));
    match is_free(NAME) {
        true => NAME.to_owned(),
        false => numbered.find(|name| is_free(name)).unwrap_or_default(),
    }
}

impl SearchWords for ResponsesSearch {
    fn begin(&self, request: &ModelRequest) -> Option<(Vec<u8>, SearchFunction)> {
        let tools = tools(&request.source)?;
        let name = free_name(&tools);
        let mut found = None;
        let mut written = Vec::with_capacity(tools.len());
        for (json, tool) in tools {
            if !tool.is_search() {
                written.push(Cow::Borrowed(json.get()));
                continue;
            }
            written.push(Cow::Owned(format!(
                r#"{{"type":"function","name":{},"description":{},"parameters":{SCHEMA},"strict":false}}"#,
                quoted(&name),
                quoted(DESCRIPTION),
            )));
            found = Some(tool.options());
        }
        let function = SearchFunction::new(&name, allowed_searches(request)?, found?)?;
        let tools = ["[", &written.join(","), "]"].concat();
        let mut values = vec![("tools", Some(tools)), ("max_tool_calls", None)];
        if request.needs.web_search?.is_demanded {
            let choice = json!({"type": "function", "name": name});
            values.push(("tool_choice", Some(choice.to_string())));
        }
        Some((replace_members(&request.source, &values), function))
    }

    fn calls(&self, answer: &[u8], function: &str) -> Vec<SearchCall> {
        let answer: Option<Answer<'_>> = serde_json::from_slice(answer).ok();
        let items = answer.map(|answer| answer.output).unwrap_or_default();
        let calls = items
            .into_iter()
            .filter_map(|item| serde_json::from_str::<Call<'_>>(item.get()).ok())
            .filter(|call| &*call.kind == "function_call" && &*call.name == function);
        calls
            .map(|call| SearchCall {
                id: (*call.call_id).into(),
                arguments: (*call.arguments).into(),
            })
            .collect()
    }

    fn proceed(&self, source: &Source, answer: &[u8], results: &[SearchResult]) -> Option<Vec<u8>> {
        let answer: Answer<'_> = serde_json::from_slice(answer).ok()?;
        let said = answer.output.iter().map(|item| item.get().to_owned());
        let results = results.iter().map(|result| {
            json!({
                "type": "function_call_output", "call_id": &*result.call.id,
                "output": result.found.to_text()})
            .to_string()
        });
        let items: Vec<String> = said.chain(results).collect();
        let input = std::str::from_utf8(source.value(source.member("input")?)).ok()?;
        let input = extend_array(&as_items(input), &items)?;
        let mut values = vec![("input", Some(input))];
        let choice = source.member("tool_choice").map(|it| source.value(it));
        if choice.is_some_and(|choice| !matches!(choice, b"\"auto\"" | b"\"none\"" | b"null")) {
            values.push(("tool_choice", Some("\"auto\"".to_owned())));
        }
        Some(replace_members(source, &values))
    }

    fn forgo(&self, request: &ModelRequest) -> Option<Vec<u8>> {
        if request.needs.web_search?.is_demanded {
            return None;
        }
        let tools = tools(&request.source)?.into_iter();
        let kept: Vec<&str> = tools
            .filter(|(_, tool)| !tool.is_search())
            .map(|(json, _)| json.get())
            .collect();
        let tools = (!kept.is_empty()).then(|| ["[", &kept.join(","), "]"].concat());
        let mut values = vec![("max_tool_calls", None)];
        if tools.is_none() {
            values.push(("tool_choice", None));
        }
        values.push(("tools", tools));
        Some(replace_members(&request.source, &values))
    }
}

/// Returns `input` as an array of items.
pub(super) fn as_items(input: &str) -> Cow<'_, str> {
    match input.starts_with('"') {
        true => {
            let item = [
                r#"[{"type":"message","role":"user","content":"#,
                input,
                "}]",
            ]
            .concat();
            item.into()
        }
        false => input.into(),
    }
}
