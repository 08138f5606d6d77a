//! The grammar of an event stream of Messages: one beginning, blocks one behind the other with deltas of their own type, the
//! reason of the end, and the end; or an error in its place. Nothing follows either. Pings stand anywhere before.

use serde_json::{Map, Value, json};

/// How a stream ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StreamEnd {
    Whole,
    Error,
    /// It broke off.
    Open,
}

/// A stream, and the message that its events make.
#[derive(Debug)]
pub struct Folded {
    /// Null if it never began.
    pub message: Value,
    pub end: StreamEnd,
}

/// Reads the events of a stream, each its name and its data. `input` makes the input of a call from the text of its deltas.
///
/// Errors: the rule that is broken, and where.
pub fn fold<'a>(
    events: impl Iterator<Item = (&'a str, &'a str)>,
    input: impl Fn(&str) -> Value,
) -> Result<Folded, String> {
    let mut folding = Folding::default();
    for (name, data) in events {
        let read: Value =
            serde_json::from_str(data).map_err(|error| format!("{error} in {data}"))?;
        folding
            .take(name, &read, &input)
            .map_err(|why| format!("{why}: {data}"))?;
    }
    if folding.end == Some(StreamEnd::Whole) && !folding.has_reason {
        return Err("an end without a `message_delta`".to_owned());
    }
    Ok(Folded {
        message: folding.message,
        end: folding.end.unwrap_or(StreamEnd::Open),
    })
}

/// The events of a stream that the gateway itself has written.
///
/// Errors: an event that is not two lines.
pub fn events(stream: &str) -> Result<Vec<(&str, &str)>, String> {
    let parts = stream.split_terminator("\n\n");
    let read = parts.map(|event| {
        let (name, data) = event.split_once('\n')?;
        Some((name.strip_prefix("event: ")?, data.strip_prefix("data: ")?))
    });
    let all: Option<Vec<_>> = read.collect();
    all.ok_or_else(|| format!("not all are events: {stream}"))
}

#[derive(Default)]
struct Folding {
    message: Value,
    /// The open block.
    block: Option<Value>,
    /// The text of its input so far.
    input: String,
    has_reason: bool,
    end: Option<StreamEnd>,
}

type Checked = Result<(), String>;

fn rule(holds: bool, said: &str) -> Checked {
    holds.then_some(()).ok_or_else(|| said.to_owned())
}

impl Folding {
    fn take(&mut self, name: &str, data: &Value, input: &impl Fn(&str) -> Value) -> Checked {
        let kind = data["type"].as_str().unwrap_or_default();
        rule(name == kind, "another name than type")?;
        rule(self.end.is_none(), "it stands behind the end")?;
        match kind {
            "ping" => return Ok(()),
            "error" => {
                rule(data["error"]["type"].is_string(), "an error without a type")?;
                self.end = Some(StreamEnd::Error);
                return Ok(());
            }
            "message_start" => return self.begin(data),
            _ => {}
        }
        rule(!self.message.is_null(), "it stands before the beginning")?;
        rule(
            !self.has_reason || matches!(kind, "message_delta" | "message_stop"),
            "it stands behind the reason of the end",
        )?;
        match kind {
            "content_block_start" => {
                self.at_index(data)?;
                rule(self.block.is_none(), "two open blocks")?;
                rule(
                    data["content_block"]["type"].is_string(),
                    "a block without a type",
                )?;
                self.block = Some(data["content_block"].clone());
                self.input.clear();
                Ok(())
            }
            "content_block_delta" => {
                self.at_index(data)?;
                self.delta(&data["delta"])
            }
            "content_block_stop" => {
                self.at_index(data)?;
                let mut block = self.block.take().ok_or("no open block")?;
                if block["type"] == "tool_use" || !self.input.is_empty() {
                    block["input"] = input(&self.input);
                }
                self.content()?.push(block);
                Ok(())
            }
            "message_delta" => self.reason(data),
            "message_stop" => {
                rule(self.block.is_none(), "an open block at the end")?;
                self.end = Some(StreamEnd::Whole);
                Ok(())
            }
            other => Err(format!("no event is a {other}")),
        }
    }

    fn begin(&mut self, data: &Value) -> Checked {
        rule(self.message.is_null(), "a second beginning")?;
        let message = &data["message"];
        let is_message = message["type"] == "message" && message["role"] == "assistant";
        rule(
            is_message && message["content"] == json!([]),
            "a beginning that is no empty message",
        )?;
        rule(
            message["stop_reason"].is_null(),
            "a reason at the beginning",
        )?;
        rule(
            message["id"].is_string() && message["model"].is_string(),
            "no id, or no model",
        )?;
        let tokens = message["usage"]["input_tokens"].is_u64();
        rule(
            tokens && message["usage"]["output_tokens"].is_u64(),
            "no usage at the beginning",
        )?;
        self.message = message.clone();
        Ok(())
    }

    fn content(&mut self) -> Result<&mut Vec<Value>, String> {
        let content = self.message["content"].as_array_mut();
        content.ok_or_else(|| "content that is no list".to_owned())
    }

    fn at_index(&mut self, data: &Value) -> Checked {
        let next = self.content()?.len() as u64;
        rule(
            data["index"].as_u64() == Some(next),
            "not the index of the next block",
        )
    }

    fn delta(&mut self, delta: &Value) -> Checked {
        let block = self.block.as_mut().ok_or("no open block")?;
        let (of, key) = match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => ("text", "text"),
            "thinking_delta" => ("thinking", "thinking"),
            "signature_delta" => ("thinking", "signature"),
            "citations_delta" => {
                rule(block["type"] == "text", "a citation of another block")?;
                let citations = block["citations"].as_array().cloned().unwrap_or_default();
                block["citations"] = [citations, vec![delta["citation"].clone()]].concat().into();
                return Ok(());
            }
            "input_json_delta" => {
                rule(
                    block["input"].is_object(),
                    "an input of a block that has none",
                )?;
                let part = delta["partial_json"].as_str();
                self.input.push_str(part.ok_or("an input that is no text")?);
                return Ok(());
            }
            other => return Err(format!("no delta is a {other}")),
        };
        rule(
            block["type"] == of,
            "a delta of another type than its block",
        )?;
        let more = delta[key].as_str().ok_or("a delta that is no text")?;
        rule(!more.is_empty(), "an empty delta")?;
        let text = block[key].as_str().ok_or("a block without its text")?;
        block[key] = [text, more].concat().into();
        Ok(())
    }

    fn reason(&mut self, data: &Value) -> Checked {
        rule(self.block.is_none(), "an open block at the end")?;
        rule(
            data["usage"]["output_tokens"].is_u64(),
            "no usage at the end",
        )?;
        let delta = data["delta"].as_object().ok_or("no delta")?;
        rule(
            delta.get("stop_reason").is_some_and(Value::is_string),
            "no reason of the end",
        )?;
        self.has_reason = true;
        let own = data
            .get("weirgate")
            .map(|own| ("weirgate".to_owned(), own.clone()));
        let usage = ("usage".to_owned(), data["usage"].clone());
        let ended: Map<String, Value> = delta
            .clone()
            .into_iter()
            .chain([usage])
            .chain(own)
            .collect();
        let message = self.message.as_object_mut().ok_or("no message")?;
        message.extend(ended);
        Ok(())
    }
}
