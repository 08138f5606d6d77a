//! A search of the web that the gateway runs, in the words of Contents: the tool of the vendor becomes a function, and its calls are
//! parts.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::json::{Error, Walker, quoted};
use crate::models::chat::text::Text;
use crate::models::dialects::contents::canonical;
use crate::models::request::{ModelRequest, Source};
use crate::models::search_loop::SearchFunction;
use crate::models::search_loop::function::{DESCRIPTION, NAME, SCHEMA, SearchOptions};
use crate::models::search_words::{
    SearchCall, SearchResult, SearchWords, allowed_searches, extend_array, replace_members,
};

/// The words of Contents.
#[derive(Debug)]
pub(super) struct ContentsSearch;

/// The search in a tool.
#[derive(Default, Deserialize)]
struct SaidSearch {
    #[serde(default, rename = "excludeDomains", alias = "exclude_domains")]
    blocked: Option<Vec<String>>,
}

/// An answer that the gateway has written.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    candidates: Vec<AnswerCandidate<'a>>,
}

#[derive(Deserialize)]
struct AnswerCandidate<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Vec<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    function_call: Option<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

/// The tools of a request without their searches.
struct Divided {
    /// Each a tool, as JSON.
    others: Vec<String>,
    search: Option<SaidSearch>,
    /// The names of functions.
    names: Vec<String>,
}

impl Divided {
    fn read(source: &Source) -> Option<Self> {
        let tools = std::str::from_utf8(source.value(source.member("tools")?)).ok()?;
        let mut divided = Self {
            others: Vec::new(),
            search: None,
            names: Vec::new(),
        };
        let read = match tools.starts_with('[') {
            true => Walker::over(tools).array(|walk, _| divided.tool(walk)),
            false => divided.tool(&mut Walker::over(tools)),
        };
        read.ok().map(|()| divided)
    }

    fn tool(&mut self, walk: &mut Walker<'_>) -> Result<(), Error> {
        let mut kept = String::from("{");
        walk.object(|walk, key| {
            let value = walk.skip()?;
            match &*canonical(&key) {
                "googleSearch" | "googleSearchRetrieval" => {
                    self.search = Some(serde_json::from_str(value).unwrap_or_default());
                    return Ok(());
                }
                "functionDeclarations" => self.note_names(value),
                _ => {}
            }
            let separator = if kept.len() > 1 { "," } else { "" };
            kept.extend([separator, &quoted(&key), ":", value]);
            Ok::<(), Error>(())
        })?;
        if kept.len() > 1 {
            kept.push('}');
            self.others.push(kept);
        }
        Ok(())
    }

    fn note_names(&mut self, functions: &str) {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let named: Vec<Named> = serde_json::from_str(functions).unwrap_or_default();
        self.names.extend(named.into_iter().map(|it| it.name));
    }

    /// Returns a name that no function has.
    fn free_name(&self) -> String {
        let is_free = |wanted: &str| self.names.iter().all(|name| name != wanted);
        let mut numbered = (2..).map(|number| format!("{NAME}_{number}"));
        match is_free(NAME) {
            true => NAME.to_owned(),
            false => numbered.find(|name| is_free(name)).unwrap_or_default(),
        }
    }
}

impl SearchWords for ContentsSearch {
    fn begin(&self, request: &ModelRequest) -> Option<(Vec<u8>, SearchFunction)> {
        let mut divided = Divided::read(&request.source)?;
        let name = divided.free_name();
        let options = SearchOptions {
            blocked_domains: divided.search.take()?.blocked.unwrap_or_default(),
            ..SearchOptions::default()
        };
        let function = SearchFunction::new(&name, allowed_searches(request)?, options)?;
        divided.others.push(format!(
            r#"{{"functionDeclarations":[{{"name":{},"description":{},"parametersJsonSchema":{SCHEMA}}}]}}"#,
            quoted(&name),
            quoted(DESCRIPTION),
        ));
        let tools = ["[", &divided.others.join(","), "]"].concat();
        let body = replace_members(&request.source, &[("tools", Some(tools))]);
        Some((body, function))
    }

    fn calls(&self, answer: &[u8], function: &str) -> Vec<SearchCall> {
        let content = content(answer);
        let read = content.and_then(|it| serde_json::from_str::<Content<'_>>(it).ok());
        let parts = read.map(|it| it.parts).unwrap_or_default();
        let calls = parts.into_iter().filter_map(|part| part.function_call);
        let calls = calls.filter(|call| &*call.name == function);
        calls
            .map(|call| SearchCall {
                id: (*call.id).into(),
                arguments: call.args.map_or("{}", RawValue::get).into(),
            })
            .collect()
    }

    fn proceed(&self, source: &Source, answer: &[u8], results: &[SearchResult]) -> Option<Vec<u8>> {
        let said = content(answer)?;
        let names: Content<'_> = serde_json::from_str(said).ok()?;
        let parts = results.iter().map(|result| {
            let key = if result.found.is_failed() {
                "error"
            } else {
                "output"
            };
            let called = names
                .parts
                .iter()
                .filter_map(|it| it.function_call.as_ref());
            let mut called = called.filter(|call| *call.id == *result.call.id);
            let name = called.next().map_or(NAME, |call| &*call.name);
            json!({"functionResponse": {
                "id": &*result.call.id, "name": name, "response": {key: result.found.to_text()}}})
        });
        let results = json!({"role": "user", "parts": parts.collect::<Vec<_>>()});
        let contents = std::str::from_utf8(source.value(source.member("contents")?)).ok()?;
        let list = match contents.starts_with('[') {
            true => contents.to_owned(),
            false => ["[", contents, "]"].concat(),
        };
        let contents = extend_array(&list, &[said.to_owned(), results.to_string()])?;
        let mut values = vec![("contents", Some(contents))];
        let config = source.member("toolConfig").map(|it| source.value(it));
        if let Some(config) = config.and_then(freed) {
            values.push(("toolConfig", Some(config)));
        }
        Some(replace_members(source, &values))
    }

    fn forgo(&self, request: &ModelRequest) -> Option<Vec<u8>> {
        let divided = Divided::read(&request.source)?;
        let tools = divided.others.join(",");
        let tools = (!tools.is_empty()).then(|| ["[", &tools, "]"].concat());
        let mut values = Vec::new();
        if tools.is_none() {
            values.push(("toolConfig", None));
        }
        values.push(("tools", tools));
        Some(replace_members(&request.source, &values))
    }
}

/// Returns the content of the first candidate of a whole answer.
fn content(answer: &[u8]) -> Option<&str> {
    let answer: Answer<'_> = serde_json::from_slice(answer).ok()?;
    Some(answer.candidates.first()?.content.get())
}

/// Returns a configuration that no longer demands a call; `None`: it demands none.
fn freed(config: &[u8]) -> Option<String> {
    let config: Value = serde_json::from_slice(config).ok()?;
    let calling = config
        .get("functionCallingConfig")
        .or_else(|| config.get("function_calling_config"))?;
    let mode = calling.get("mode")?.as_str()?;
    mode.eq_ignore_ascii_case("any")
        .then(|| json!({"functionCallingConfig": {"mode": "AUTO"}}).to_string())
}
