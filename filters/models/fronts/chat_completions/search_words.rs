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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use serde_json::Value;

    use super::*;
    use crate::models::front::Front;
    use crate::models::fronts::chat_completions::ChatCompletions;

    fn begun(members: &Value) -> Option<(Value, SearchFunction)> {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
        let members = members.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(members);
        let request = ChatCompletions.parse(body.to_string().into()).unwrap();
        let (body, function) = ChatSearch.begin(&request)?;
        // What it says is a request, too.
        ChatCompletions.parse(body.clone().into()).unwrap();
        Some((serde_json::from_slice(&body).unwrap(), function))
    }

    #[test]
    fn flag_and_tool_become_one_function_that_no_other_has_the_name_of() {
        let own = json!({"type": "function", "function": {"name": "web_search", "parameters": {"type": "object"}}});
        let hosted = json!({"type": "web_search", "max_uses": 2, "search_context_size": "low", "allowed_domains": ["a.example"],
            "blocked_domains": ["b.example"], "user_location": {"country": "de"}});
        let (body, function) = begun(&json!({"web_search": true})).unwrap();
        assert_eq!((&*function.name, function.limit), ("web_search", 5));
        assert_eq!(body.get("web_search"), None);
        assert_eq!(body["tools"][0]["function"]["name"], "web_search");
        let (body, function) = begun(&json!({"tools": [hosted, own]})).unwrap();
        assert_eq!((&*function.name, function.limit), ("web_search_2", 2));
        let names: Vec<&Value> = body["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["function"]["name"])
            .collect();
        assert_eq!(names, ["web_search", "web_search_2"]);
        let search: Value = serde_json::from_slice(&function.body("cats", true)).unwrap();
        assert_eq!(
            search,
            json!({"query": "cats", "max_results": 4, "search_domain_filter": ["a.example", "-b.example"], "country": "de"})
        );
        let search: Value = serde_json::from_slice(&function.body("cats", false)).unwrap();
        assert_eq!(search.get("country"), None);
    }

    #[test]
    fn what_a_function_cannot_do_is_no_function() {
        let many: Vec<String> = (0..21).map(|at| format!("d{at}.example")).collect();
        for members in [
            json!({}),
            json!({"web_search": false}),
            json!({"web_search": true, "n": 2}),
            json!({"tools": [{"type": "web_search", "allowed_domains": many}]}),
            json!({"tools": [{"type": "web_search", "max_uses": 0}]}),
            json!({"web_search": true, "plugins": [{"id": "response-healing"}], "response_format": {"type": "json_object"}}),
        ] {
            assert!(begun(&members).is_none(), "{members}");
        }
    }

    #[test]
    fn results_stand_behind_the_answer_and_nothing_is_demanded_any_more() {
        let source = ChatCompletions.parse(json!({"model": "m", "tools": [{"type": "function", "function": {"name": "web_search"}}],
            "messages": [{"role": "user", "content": "Hi"}], "tool_choice": "required"}).to_string().into()).unwrap().source;
        let call = json!({"id": "c1", "type": "function", "function": {"name": "web_search", "arguments": "{\"query\":\"x\"}"}});
        let answer = json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [call]}}]}).to_string();
        let calls = ChatSearch.calls(answer.as_bytes(), "web_search");
        assert_eq!(
            (&*calls[0].id, &*calls[0].arguments),
            ("c1", "{\"query\":\"x\"}")
        );
        let found = crate::models::search_loop::SearchOutcome::Failed("unavailable");
        let results = [SearchResult {
            call: calls[0].clone(),
            found,
        }];
        let body = ChatSearch
            .proceed(&source, answer.as_bytes(), &results)
            .unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["messages"].as_array().unwrap().len(), 3);
        assert_eq!(body["messages"][2]["tool_call_id"], "c1");
        assert_eq!(body["tool_choice"], "auto");
    }
}
