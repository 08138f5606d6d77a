//! The grammar of an event stream of Responses: numbered events, one beginning, items with dense indexes that begin and end as one,
//! parts and texts inside them, and exactly one event that ends it. Nothing follows that. Events that keep a silent stream alive stand
//! anywhere before, without a number.

use std::collections::HashSet;

use serde_json::{Value, json};

/// Reads the events of a stream, each its name and its data. Returns the response of the last event; null if none ended the stream.
///
/// Errors: the rule that is broken, and where.
pub fn fold<'a>(events: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Value, String> {
    let mut folding = Folding::default();
    for (name, data) in events {
        let read: Value =
            serde_json::from_str(data).map_err(|error| format!("{error} in {data}"))?;
        folding
            .take(name, &read)
            .map_err(|why| format!("{why}: {data}"))?;
    }
    Ok(folding.ended.unwrap_or_default())
}

#[derive(Default)]
struct Folding {
    number: u64,
    /// How many of the two events of the beginning have come.
    begun: usize,
    items: Vec<Value>,
    /// The open item, as its first event says it, and what its events have said since.
    open: Option<Open>,
    ids: HashSet<String>,
    ended: Option<Value>,
}

struct Open {
    item: Value,
    /// The open part, and the text of it so far.
    part: Option<Value>,
    text: String,
    /// Parts that have ended.
    parts: Vec<Value>,
    /// The text of the event that ended it.
    done_text: Option<String>,
    annotations: Vec<Value>,
    steps: Vec<String>,
}

type Checked = Result<(), String>;

fn rule(holds: bool, said: &str) -> Checked {
    holds.then_some(()).ok_or_else(|| said.to_owned())
}

impl Folding {
    fn take(&mut self, name: &str, data: &Value) -> Checked {
        let kind = data["type"].as_str().unwrap_or_default();
        rule(name == kind, "another name than type")?;
        rule(self.ended.is_none(), "it stands behind the end")?;
        if kind == "keepalive" {
            return rule(
                *data == json!({"type": "keepalive"}),
                "more in a sign of life",
            );
        }
        let number = data["sequence_number"].as_u64();
        let number = number.ok_or("no number")?;
        // What was written last does not go out where the response fails at that moment.
        let is_next = number == self.number || kind == "response.failed" && number > self.number;
        rule(is_next, "not the next number")?;
        self.number = number + 1;
        let beginning = ["response.created", "response.in_progress"];
        if self.begun < beginning.len() {
            rule(
                kind == beginning[self.begun],
                "it stands before the beginning",
            )?;
            self.begun += 1;
            return check_begun(&data["response"]);
        }
        rule(!beginning.contains(&kind), "a second beginning")?;
        match kind {
            "response.output_item.added" => self.added(data),
            "response.output_item.done" => self.done(data),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end(kind, &data["response"])
            }
            kind => {
                let index = self.items.len() as u64;
                rule(
                    data["output_index"] == index,
                    "not the index of the open item",
                )?;
                let open = self.open.as_mut().ok_or("no open item")?;
                rule(data["item_id"] == open.item["id"], "the id of another item")?;
                open.take(kind, data)
            }
        }
    }

    fn added(&mut self, data: &Value) -> Checked {
        let index = self.items.len() as u64;
        rule(
            data["output_index"] == index,
            "not the index of the next item",
        )?;
        rule(self.open.is_none(), "two open items")?;
        let item = data["item"].clone();
        let id = item["id"].as_str().ok_or("an item without an id")?;
        rule(self.ids.insert(id.to_owned()), "the id of an earlier item")?;
        rule(item["type"].is_string(), "an item without a type")?;
        if item["type"] == "message" {
            rule(
                item["content"] == json!([]),
                "a message that begins with content",
            )?;
        }
        self.open = Some(Open {
            item,
            part: None,
            text: String::new(),
            parts: Vec::new(),
            done_text: None,
            annotations: Vec::new(),
            steps: Vec::new(),
        });
        Ok(())
    }

    fn done(&mut self, data: &Value) -> Checked {
        let index = self.items.len() as u64;
        rule(
            data["output_index"] == index,
            "not the index of the open item",
        )?;
        let open = self.open.take().ok_or("no open item")?;
        let item = &data["item"];
        open.check(item)?;
        self.items.push(item.clone());
        Ok(())
    }

    fn end(&mut self, kind: &str, response: &Value) -> Checked {
        let status = kind.trim_start_matches("response.");
        rule(response["status"] == status, "another status than event")?;
        if status != "failed" {
            rule(self.open.is_none(), "an open item at the end")?;
            rule(response["usage"].is_object(), "an end without usage")?;
        }
        let is_error = response["error"]["code"].is_string();
        rule(is_error == (status == "failed"), "an error where none is")?;
        let has_reason = response["incomplete_details"]["reason"].is_string();
        rule(
            has_reason == (status == "incomplete"),
            "a reason where none is",
        )?;
        rule(
            response["output"] == Value::from(self.items.clone()),
            "other items than the events have told",
        )?;
        self.ended = Some(response.clone());
        Ok(())
    }
}

fn check_begun(response: &Value) -> Checked {
    rule(
        response["object"] == "response" && response["status"] == "in_progress",
        "a beginning that is no response in progress",
    )?;
    rule(response["output"] == json!([]), "a beginning with items")?;
    rule(
        response["id"].is_string() && response["model"].is_string(),
        "no id, or no model",
    )
}

impl Open {
    fn take(&mut self, kind: &str, data: &Value) -> Checked {
        let of = self.item["type"].as_str().unwrap_or_default().to_owned();
        match (kind, &*of) {
            ("response.content_part.added", "message")
            | ("response.reasoning_summary_part.added", "reasoning") => {
                rule(self.part.is_none(), "two open parts")?;
                self.part = Some(data["part"].clone());
                self.text.clear();
                self.done_text = None;
                Ok(())
            }
            ("response.output_text.delta", "message") => self.delta(data, "output_text"),
            ("response.refusal.delta", "message") => self.delta(data, "refusal"),
            ("response.reasoning_summary_text.delta", "reasoning") => {
                self.delta(data, "summary_text")
            }
            ("response.function_call_arguments.delta", "function_call")
            | ("response.custom_tool_call_input.delta", "custom_tool_call") => {
                self.push(&data["delta"])
            }
            ("response.output_text.annotation.added", "message") => {
                let number = self.annotations.len() as u64;
                rule(
                    data["annotation_index"] == number,
                    "not the next annotation",
                )?;
                self.annotations.push(data["annotation"].clone());
                Ok(())
            }
            ("response.output_text.done" | "response.reasoning_summary_text.done", _) => {
                self.text_done(&data["text"])
            }
            ("response.refusal.done", "message") => self.text_done(&data["refusal"]),
            ("response.function_call_arguments.done", "function_call") => {
                self.text_done(&data["arguments"])
            }
            ("response.custom_tool_call_input.done", "custom_tool_call") => {
                self.text_done(&data["input"])
            }
            ("response.content_part.done" | "response.reasoning_summary_part.done", _) => {
                let begun = self.part.take().ok_or("no open part")?;
                let part = &data["part"];
                rule(part["type"] == begun["type"], "a part of another type")?;
                let key = if part["type"] == "refusal" {
                    "refusal"
                } else {
                    "text"
                };
                rule(
                    part[key].as_str() == self.done_text.as_deref(),
                    "another text",
                )?;
                if part["type"] == "output_text" {
                    let said = Value::from(std::mem::take(&mut self.annotations));
                    rule(part["annotations"] == said, "other annotations")?;
                }
                self.parts.push(part.clone());
                Ok(())
            }
            (step, of) if step.starts_with(&format!("response.{of}.")) => {
                self.steps.push(step.to_owned());
                Ok(())
            }
            (kind, of) => Err(format!("no event of a {of} is a {kind}")),
        }
    }

    fn delta(&mut self, data: &Value, of: &str) -> Checked {
        let part = self.part.as_ref().ok_or("no open part")?;
        rule(part["type"] == of, "a piece of another type than its part")?;
        self.push(&data["delta"])
    }

    fn push(&mut self, piece: &Value) -> Checked {
        rule(self.done_text.is_none(), "a piece behind its text")?;
        let piece = piece.as_str().ok_or("a piece that is no text")?;
        self.text.push_str(piece);
        Ok(())
    }

    fn text_done(&mut self, text: &Value) -> Checked {
        rule(self.done_text.is_none(), "a second text")?;
        rule(
            text.as_str() == Some(&self.text),
            "another text than its pieces",
        )?;
        self.done_text = Some(self.text.clone());
        Ok(())
    }

    /// Checks the item at its end.
    fn check(self, item: &Value) -> Checked {
        rule(self.part.is_none(), "an open part at the end")?;
        for key in [
            "id",
            "type",
            "call_id",
            "name",
            "namespace",
            "role",
            "phase",
        ] {
            rule(
                item[key] == self.item[key],
                "an item that has become another",
            )?;
        }
        if self.item == *item {
            // It came whole.
            return Ok(());
        }
        let text = self.done_text.as_deref();
        match item["type"].as_str().unwrap_or_default() {
            "message" => rule(item["content"] == Value::from(self.parts), "other parts"),
            "reasoning" => rule(item["summary"] == Value::from(self.parts), "other parts"),
            "function_call" => rule(item["arguments"].as_str() == text, "other arguments"),
            "custom_tool_call" => rule(item["input"].as_str() == text, "another input"),
            "web_search_call" | "image_generation_call" => rule(
                self.steps.len() == 3,
                "an item of a tool without its three steps",
            ),
            _ => Ok(()),
        }
    }
}
