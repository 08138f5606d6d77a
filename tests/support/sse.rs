//! The events of an event-stream text, for assertions.
//!
//! It shares no code with the product's reader on purpose: a mistake in one shows against the other.

use serde_json::Value;

/// The text between two blank lines: one event or a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An event: its name (`event:`), if it has one, and its `data:` lines joined by newlines.
    Event { name: Option<String>, data: String },
    /// A line that begins with a colon, without the colon and one space.
    Comment(String),
}

/// A stream taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Events and comments in order.
    pub items: Vec<Item>,
    /// The text after the last blank line. It is not empty if the stream was cut inside an event.
    pub tail: String,
}

/// Takes a text apart at blank lines; lines may end in LF, CRLF or CR.
pub fn parse(text: impl AsRef<[u8]>) -> Stream {
    let text = std::str::from_utf8(text.as_ref()).expect("an event stream is UTF-8");
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut items = Vec::new();
    let mut rest = text.as_str();
    while let Some((block, after)) = rest.split_once("\n\n") {
        push_block(&mut items, block);
        rest = after;
    }
    Stream {
        items,
        tail: rest.trim_start_matches('\n').to_owned(),
    }
}

fn push_block(items: &mut Vec<Item>, block: &str) {
    let (mut name, mut data) = (None, None::<String>);
    for line in block.lines() {
        if let Some(comment) = line.strip_prefix(':') {
            items.push(Item::Comment(
                comment.strip_prefix(' ').unwrap_or(comment).to_owned(),
            ));
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = Some(value.to_owned()),
            "data" => match &mut data {
                Some(data) => *data = format!("{data}\n{value}"),
                None => data = Some(value.to_owned()),
            },
            _ => {}
        }
    }
    if let Some(data) = data {
        items.push(Item::Event { name, data });
    }
}

impl Stream {
    /// The data of every event, in order.
    pub fn data(&self) -> Vec<&str> {
        self.items
            .iter()
            .filter_map(|item| match item {
                Item::Event { data, .. } => Some(data.as_str()),
                Item::Comment(_) => None,
            })
            .collect()
    }

    /// The comments, in order.
    pub fn comments(&self) -> Vec<&str> {
        self.items
            .iter()
            .filter_map(|item| match item {
                Item::Comment(text) => Some(text.as_str()),
                Item::Event { .. } => None,
            })
            .collect()
    }

    /// Every event but `[DONE]` as JSON; fails the test on one that is not.
    pub fn json(&self) -> Vec<Value> {
        self.data()
            .into_iter()
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap_or_else(|e| panic!("{e}: {data}")))
            .collect()
    }

    /// Returns whether it ends as a complete response does: `[DONE]` is the last event, once, and no event is cut.
    pub fn is_done(&self) -> bool {
        let data = self.data();
        let done = data.iter().filter(|data| **data == "[DONE]").count();
        self.tail.is_empty() && done == 1 && data.last() == Some(&"[DONE]")
    }

    /// Whether `[DONE]` occurs at all.
    pub fn says_done(&self) -> bool {
        self.data().contains(&"[DONE]")
    }

    /// The text of choice 0: every `delta.content` joined.
    pub fn content(&self) -> String {
        self.json()
            .iter()
            .filter_map(|chunk| {
                chunk["choices"][0]["delta"]["content"]
                    .as_str()
                    .map(str::to_owned)
            })
            .collect()
    }
}
