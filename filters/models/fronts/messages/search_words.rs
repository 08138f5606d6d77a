//! A search of the web that the gateway runs, in the words of Messages: the tool of the vendor becomes a function of the same name,
//! and its calls `tool_use` blocks.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::answer;
use super::tool_types::{self, ToolType};
use crate::models::chat::text::Text;
use crate::models::chat::tools::SearchLocation;
use crate::models::request::{ModelRequest, Source};
use crate::models::search_loop::SearchFunction;
use crate::models::search_loop::function::{DESCRIPTION, NAME, SCHEMA, SearchOptions};
use crate::models::search_words::{
    SearchCall, SearchResult, SearchWords, allowed_searches, extend_array, replace_members,
};

/// The words of Messages.
#[derive(Debug)]
pub(super) struct MessagesSearch;

#[derive(Deserialize)]
struct SearchTool<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(default)]
    allowed_domains: Option<Vec<String>>,
    #[serde(default)]
    blocked_domains: Option<Vec<String>>,
    #[serde(borrow, default)]
    user_location: Option<SearchLocation<'a>>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
}

impl SearchTool<'_> {
    fn is_search(&self) -> bool {
        let kind = self.kind.as_deref().unwrap_or(tool_types::CUSTOM);
        tool_types::find(kind) == ToolType::WebSearch
    }

    /// Returns the function in its place.
    fn to_function(&self, name: &str) -> String {
        let mut function = format!(
            r#"{{"name":{},"description":{},"input_schema":{SCHEMA}"#,
            json!(name),
            json!(DESCRIPTION)
        );
        if let Some(mark) = self.cache_control {
            function.extend([",\"cache_control\":", mark.get()]);
        }
        function.push('}');
        function
    }
}

impl SearchWords for MessagesSearch {
    fn begin(&self, request: &ModelRequest) -> Option<(Vec<u8>, SearchFunction)> {
        let source = &request.source;
        let tools = source.value(source.member("tools")?);
        let tools: Vec<&RawValue> = serde_json::from_slice(tools).ok()?;
        let mut found = None;
        let mut written = Vec::with_capacity(tools.len());
        for tool in tools {
            let said = serde_json::from_str::<SearchTool<'_>>(tool.get()).ok();
            match said.filter(SearchTool::is_search) {
                Some(search) => {
                    let name = search.name.as_deref().unwrap_or(NAME).to_owned();
                    written.push(search.to_function(&name));
                    found = Some((search, name));
                }
                None => written.push(tool.get().to_owned()),
            }
        }
        let (search, name) = found?;
        let country = search.user_location.and_then(|it| it.country);
        let options = SearchOptions {
            allowed_domains: search.allowed_domains.unwrap_or_default(),
            blocked_domains: search.blocked_domains.unwrap_or_default(),
            country: country.map(|country| country.0.into_owned()),
            context_size: None,
        };
        let function = SearchFunction::new(&name, allowed_searches(request)?, options)?;
        let tools = ["[", &written.join(","), "]"].concat();
        let body = replace_members(source, &[("tools", Some(tools))]);
        Some((body, function))
    }

    fn calls(&self, answer: &[u8], function: &str) -> Vec<SearchCall> {
        let calls = answer::calls(answer).into_iter();
        let calls = calls.filter(|call| &*call.name == function);
        let calls = calls.map(|call| SearchCall {
            id: (*call.id).into(),
            arguments: call.input.map_or("{}", RawValue::get).into(),
        });
        calls.collect()
    }

    fn proceed(&self, source: &Source, answer: &[u8], results: &[SearchResult]) -> Option<Vec<u8>> {
        let content = answer::content(answer)?;
        let said = format!(r#"{{"role":"assistant","content":{content}}}"#);
        let results = results.iter().map(|result| {
            json!({
                "type": "tool_result", "tool_use_id": &*result.call.id,
                "content": result.found.to_text(), "is_error": result.found.is_failed()})
        });
        let results = json!({"role": "user", "content": results.collect::<Vec<_>>()});
        let messages = std::str::from_utf8(source.value(source.member("messages")?)).ok()?;
        let messages = extend_array(messages, &[said, results.to_string()])?;
        let mut values = vec![("messages", Some(messages))];
        if let Some(choice) = source
            .member("tool_choice")
            .and_then(|it| freed(source.value(it)))
        {
            values.push(("tool_choice", Some(choice)));
        }
        Some(replace_members(source, &values))
    }
}

/// Returns a choice that no longer demands a call; `None`: it demands none.
fn freed(choice: &[u8]) -> Option<String> {
    let mut choice: serde_json::Value = serde_json::from_slice(choice).ok()?;
    let members = choice.as_object_mut()?;
    let kind = members.get("type").and_then(|kind| kind.as_str())?;
    matches!(kind, "any" | "tool").then_some(())?;
    members.remove("name");
    members.insert("type".to_owned(), "auto".into());
    Some(choice.to_string())
}
