//! A search of the web that the gateway runs, in the words of chat completions: the flag or the tool becomes a function, and its
//! calls are those of any function.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::models::chat::text::Text;
use crate::models::chat::tools::SearchLocation;
use crate::models::request::{ModelRequest, Payload, Source};
use crate::models::search_loop::SearchFunction;
use crate::models::search_loop::function::{DESCRIPTION, NAME, SCHEMA, SearchOptions};
use crate::models::search_words::{
    SearchCall, SearchResult, SearchWords, allowed_searches, extend_array, replace_members,
};

/// The words of chat completions.
#[derive(Debug)]
pub(super) struct ChatSearch;

#[derive(Default, Deserialize)]
struct SaidTool<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    function: Option<Named<'a>>,
    #[serde(borrow, default)]
    user_location: Option<SearchLocation<'a>>,
    #[serde(borrow, default)]
    search_context_size: Option<Text<'a>>,
    #[serde(default)]
    allowed_domains: Option<Vec<String>>,
    #[serde(default)]
    blocked_domains: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    tool_calls: Option<Vec<SaidCall<'a>>>,
}

#[derive(Deserialize)]
struct SaidCall<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow, default)]
    function: Option<Named<'a>>,
}

impl SaidTool<'_> {
    fn is_search(&self) -> bool {
        self.kind.as_deref() == Some("web_search")
    }

    fn name(&self) -> Option<&str> {
        self.function.as_ref().map(|function| &*function.name)
    }

    fn options(self) -> SearchOptions {
        let country = self.user_location.and_then(|it| it.country);
        SearchOptions {
            allowed_domains: self.allowed_domains.unwrap_or_default(),
            blocked_domains: self.blocked_domains.unwrap_or_default(),
            country: country.map(|country| country.0.into_owned()),
            context_size: self.search_context_size.map(|size| size.0.into_owned()),
        }
    }
}

/// Returns a name that no tool has.
fn free_name(tools: &[SaidTool<'_>]) -> String {
    let is_free = |name: &str| tools.iter().all(|tool| tool.name() != Some(name));
    let mut numbered = (2..).map(|number| format!("{NAME}_{number}"));
    match is_free(NAME) {
        true => NAME.to_owned(),
        false => numbered.find(|name| is_free(name)).unwrap_or_default(),
    }
}

fn member<'a>(source: &'a Source, key: &str) -> Option<&'a [u8]> {
    let value = source.value(source.member(key)?);
    (value != b"null").then_some(value)
}

impl SearchWords for ChatSearch {
    fn begin(&self, request: &ModelRequest) -> Option<(Vec<u8>, SearchFunction)> {
        let Payload::Chat(chat) = &request.payload else {
            return None;
        };
        // JSON that is repaired is one text.
        if chat.heals {
            return None;
        }
        let source = &request.source;
        let tools = member(source, "tools").unwrap_or(b"[]");
        let tools: Vec<&RawValue> = serde_json::from_slice(tools).ok()?;
        let said: Vec<SaidTool<'_>> = tools
            .iter()
            .map(|tool| serde_json::from_str(tool.get()).unwrap_or_default())
            .collect();
        let name = free_name(&said);
        let mut written = Vec::with_capacity(tools.len() + 1);
        let mut search = SaidTool::default();
        for (tool, said) in tools.iter().zip(said) {
            match said.is_search() {
                true => search = said,
                false => written.push(tool.get().to_owned()),
            }
        }
        written.push(format!(
            r#"{{"type":"function","function":{{"name":{},"description":{},"parameters":{SCHEMA}}}}}"#,
            json!(name),
            json!(DESCRIPTION)
        ));
        let function = SearchFunction::new(&name, allowed_searches(request)?, search.options())?;
        let tools = ["[", &written.join(","), "]"].concat();
        let mut values = vec![("web_search", None), ("tools", Some(tools))];
        if request.needs.web_search.is_some_and(|it| it.is_demanded) {
            let choice = json!({"type": "function", "function": {"name": name}});
            values.push(("tool_choice", Some(choice.to_string())));
        }
        Some((replace_members(source, &values), function))
    }

    fn calls(&self, answer: &[u8], function: &str) -> Vec<SearchCall> {
        let Some(message) = message(answer) else {
            return Vec::new();
        };
        let message = serde_json::from_str::<Message<'_>>(message.get()).ok();
        let calls = message.and_then(|message| message.tool_calls);
        let calls = calls.unwrap_or_default().into_iter().filter_map(|call| {
            let called = call.function?;
            (&*called.name == function).then(|| SearchCall {
                id: (*call.id).into(),
                arguments: called.arguments.as_deref().unwrap_or_default().into(),
            })
        });
        calls.collect()
    }

    fn proceed(&self, source: &Source, answer: &[u8], results: &[SearchResult]) -> Option<Vec<u8>> {
        let said = message(answer)?.get().to_owned();
        let results = results.iter().map(|result| {
            let (id, text) = (&*result.call.id, result.found.to_text());
            json!({"role": "tool", "tool_call_id": id, "content": text}).to_string()
        });
        let added: Vec<String> = std::iter::once(said).chain(results).collect();
        let messages = std::str::from_utf8(member(source, "messages")?).ok()?;
        let mut values = vec![("messages", Some(extend_array(messages, &added)?))];
        // `auto` and `none` demand nothing; `required` and an object do.
        let choice = member(source, "tool_choice").unwrap_or(b"\"auto\"");
        if ![&b"\"auto\""[..], b"\"none\""].contains(&choice) {
            values.push(("tool_choice", Some("\"auto\"".to_owned())));
        }
        Some(replace_members(source, &values))
    }

    fn separator(&self) -> &'static str {
        "\n\n"
    }
}

/// Returns the message of a whole answer.
fn message(answer: &[u8]) -> Option<&RawValue> {
    let answer: Answer<'_> = serde_json::from_slice(answer).ok()?;
    Some(answer.choices.into_iter().next()?.message)
}
