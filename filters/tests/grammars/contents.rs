//! The grammar of a stream of Contents: chunks of candidates whose parts each say one thing, of one response, until the last one,
//! which has a reason for the end of each candidate, and the tokens; or an error. Nothing follows either.

use serde_json::{Value, json};

/// How a stream has ended.
#[derive(Debug, PartialEq)]
pub enum StreamEnd {
    /// The whole response that the chunks make.
    Response(Value),
    /// An error, and what was said before it.
    Error(Value, Value),
}

/// Returns the data of the events of a stream, in which comments may stand.
///
/// Errors: something is no event.
pub fn chunks(stream: &str) -> Result<Vec<&str>, String> {
    let parts = stream.split_terminator("\n\n");
    let parts = parts.filter(|part| !part.starts_with(':'));
    let read: Option<Vec<_>> = parts.map(|part| part.strip_prefix("data: ")).collect();
    read.ok_or_else(|| format!("not all are events: {stream}"))
}

/// Reads the chunks of a stream. `None`: nothing ended it.
///
/// Errors: the rule that is broken, and where.
pub fn fold<'a>(chunks: impl IntoIterator<Item = &'a str>) -> Result<Option<StreamEnd>, String> {
    let (mut folded, mut end) = (json!({"candidates": []}), None);
    for data in chunks {
        let chunk: Value =
            serde_json::from_str(data).map_err(|error| format!("{error} in {data}"))?;
        let taken = rule(end.is_none(), "it stands behind the end");
        let taken = taken.and_then(|()| take(&mut folded, &chunk));
        end = taken.map_err(|why| format!("{why}: {data}"))?;
    }
    Ok(end)
}

type Checked<T = ()> = Result<T, String>;

fn rule(holds: bool, said: &str) -> Checked {
    holds.then_some(()).ok_or_else(|| said.to_owned())
}

fn take(folded: &mut Value, chunk: &Value) -> Checked<Option<StreamEnd>> {
    let members = chunk.as_object().ok_or("a chunk that is no object")?;
    if let Some(error) = members.get("error") {
        let code = error["code"].as_u64();
        rule(members.len() == 1, "an error beside something")?;
        rule(
            code.is_some_and(|code| code >= 400),
            "an error without its code",
        )?;
        rule(
            error["message"].is_string() && error["status"].is_string(),
            "an error without words",
        )?;
        return Ok(Some(StreamEnd::Error(error.clone(), folded.clone())));
    }
    for key in ["modelVersion", "responseId"] {
        rule(chunk[key].is_string(), "a chunk of no response")?;
        let known = folded.get(key).unwrap_or(&chunk[key]).clone();
        rule(known == chunk[key], "a chunk of another response")?;
        folded[key] = known;
    }
    let candidates = chunk["candidates"].as_array().ok_or("no candidates")?;
    rule(!candidates.is_empty(), "a chunk that says nothing")?;
    // Providers count in every chunk, and end with one that has no parts.
    let is_last = candidates.iter().any(has_reason);
    for candidate in candidates {
        rule(
            has_reason(candidate) == is_last,
            "a reason in the wrong chunk",
        )?;
        take_candidate(folded, candidate)?;
    }
    if !is_last {
        return Ok(None);
    }
    let told = folded["candidates"].as_array().map_or(0, Vec::len);
    rule(candidates.len() == told, "a candidate without an end")?;
    let usage = &chunk["usageMetadata"];
    rule(usage["totalTokenCount"].is_u64(), "no tokens")?;
    for key in ["usageMetadata", "weirgate", "promptFeedback"] {
        if let Some(value) = chunk.get(key) {
            folded[key] = value.clone();
        }
    }
    Ok(Some(StreamEnd::Response(folded.clone())))
}

fn has_reason(candidate: &Value) -> bool {
    candidate["finishReason"].is_string()
}

fn take_candidate(folded: &mut Value, candidate: &Value) -> Checked {
    let index = candidate["index"].as_u64().ok_or("no index")?;
    rule(candidate["content"]["role"] == "model", "another role")?;
    let parts = candidate["content"]["parts"].as_array().ok_or("no parts")?;
    rule(!parts.is_empty() || has_reason(candidate), "no parts")?;
    let list = folded["candidates"].as_array_mut().unwrap();
    let at = list.iter().position(|known| known["index"] == index);
    let at = at.unwrap_or_else(|| {
        list.push(json!({"content": {"parts": [], "role": "model"}, "index": index}));
        list.len() - 1
    });
    for part in parts {
        check_part(part)?;
        let told = list[at]["content"]["parts"].as_array_mut().unwrap();
        add(told, part);
    }
    for key in ["finishReason", "groundingMetadata"] {
        if let Some(value) = candidate.get(key) {
            list[at][key] = value.clone();
        }
    }
    list.sort_by_key(|candidate| candidate["index"].as_u64());
    Ok(())
}

fn check_part(part: &Value) -> Checked {
    let members = part.as_object().ok_or("a part that is no object")?;
    let aside = ["thought", "thoughtSignature"];
    let says = members.keys().filter(|key| !aside.contains(&key.as_str()));
    let says: Vec<&String> = says.collect();
    rule(says.len() == 1, "a part that does not say one thing")?;
    rule(
        !members.contains_key("thought") || says == ["text"],
        "a thought without a text",
    )?;
    if let Some(call) = members.get("functionCall") {
        rule(call["args"].is_object(), "arguments that are no object")?;
        // Providers may leave out the id.
        let has_id = call.get("id").is_none_or(|id| *id != "");
        let name = call["name"].as_str().unwrap_or_default();
        rule(has_id && !name.is_empty(), "a call without a name")?;
    }
    Ok(())
}

/// Adds a part to those of a whole answer: pieces of one text are one part, and an empty text without state says nothing.
pub fn add(told: &mut Vec<Value>, part: &Value) {
    let text = part["text"].as_str();
    if text == Some("") && part.get("thoughtSignature").is_none() {
        return;
    }
    let is_piece = part.get("thoughtSignature").is_none();
    if let (Some(text), Some(last)) = (text.filter(|_| is_piece), told.last_mut())
        && let Some(said) = last["text"].as_str().filter(|said| !said.is_empty())
        && last.get("thought") == part.get("thought")
    {
        last["text"] = [said, text].concat().into();
        return;
    }
    told.push(part.clone());
}
