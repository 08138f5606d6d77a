//! What a chat loses on a wire of another dialect than that in which it was said. Nothing else may be lost.

use filters::models::dialects::Dialect::{
    self, Chat, ChatV2, Completions, Contents, Converse, Messages, Responses,
};
use serde_json::Value;

use super::meaning::{Entry, Meaning, joined, text};

/// Something that changes between fronts and wires.
pub struct Cell {
    /// What becomes of it.
    pub what: &'static str,
    pub fronts: &'static [Dialect],
    pub wires: &'static [Dialect],
    /// It holds on a wire of the front's own dialect as well.
    pub also_own: bool,
    pub change: fn(&mut Meaning, Dialect),
}

impl Cell {
    /// Returns whether it holds for a chat that a front of one dialect has read, on a wire of another or of the same.
    pub fn holds(&self, front: Dialect, wire: Dialect) -> bool {
        let is_between = self.also_own || front != wire;
        is_between && self.fronts.contains(&front) && self.wires.contains(&wire)
    }
}

/// Leaves out the functions that may not be called.
fn allowed(meaning: &mut Meaning, _: Dialect) {
    if meaning.choice == "look" {
        meaning.tools.retain(|tool| tool["name"] == "look");
    }
}

/// The table. Its rows hold one behind the other. Where a front and a wire have one dialect, what is listed holds as well.
pub static CELLS: [Cell; 22] = [
    Cell {
        what: "state goes back to its maker alone, and reasoning without it to nobody",
        fronts: &[Chat, Messages, Responses, Contents],
        wires: &[Chat, Messages, Responses, Contents, Converse, ChatV2],
        also_own: true,
        change: |meaning, wire| {
            meaning.said.retain_mut(|entry| match entry {
                Entry::Thought { made, text, .. } => {
                    if matches!(made, Some(Responses | Contents)) {
                        // The state holds the text, or is all that there is.
                        text.clear();
                    }
                    // Converse has the state of Messages.
                    let own = if wire == Converse { Messages } else { wire };
                    *made == Some(own)
                }
                _ => true,
            });
        },
    },
    Cell {
        what: "instructions of chat completions stand at the beginning, where the wire has them apart",
        fronts: &[Chat],
        wires: &[Messages, Contents, Converse],
        also_own: false,
        change: |meaning, _| {
            let is_instruction = |entry: &Entry| {
                matches!(
                    entry,
                    Entry::Text {
                        role: "system" | "developer",
                        ..
                    }
                )
            };
            let (mut first, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut meaning.said)
                .into_iter()
                .partition(is_instruction);
            first.iter_mut().for_each(as_system);
            first.extend(rest);
            meaning.said = first;
        },
    },
    Cell {
        what: "instructions between messages are the user's words, marked",
        fronts: &[Messages, Responses],
        wires: &[Messages, Contents, Converse],
        also_own: false,
        change: |meaning, _| {
            let mut has_begun = false;
            for entry in &mut meaning.said {
                match entry {
                    Entry::Text {
                        role: role @ ("system" | "developer"),
                        text,
                    } if has_begun => {
                        *text = format!("<system-reminder>\n{text}\n</system-reminder>");
                        *role = "user";
                    }
                    Entry::Text {
                        role: "system" | "developer",
                        ..
                    } => {}
                    _ => has_begun = true,
                }
            }
        },
    },
    Cell {
        what: "instructions between messages are the developer's",
        fronts: &[Messages],
        wires: &[Responses],
        also_own: false,
        change: |meaning, _| {
            let mut has_begun = false;
            for entry in &mut meaning.said {
                match entry {
                    Entry::Text {
                        role: role @ "system",
                        ..
                    } if has_begun => *role = "developer",
                    Entry::Text { role: "system", .. } => {}
                    _ => has_begun = true,
                }
            }
        },
    },
    Cell {
        what: "the developer's instructions are the system's",
        fronts: &[Responses],
        wires: &[Chat, Messages, Contents, Converse],
        also_own: false,
        change: |meaning, _| meaning.said.iter_mut().for_each(as_system),
    },
    Cell {
        what: "instructions are the system's, wherever they stand",
        fronts: &[Chat, Responses],
        wires: &[ChatV2],
        also_own: false,
        change: |meaning, _| meaning.said.iter_mut().for_each(as_system),
    },
    Cell {
        what: "a refusal is a text",
        fronts: &[Chat, Responses],
        wires: &[Messages, Contents, Converse, ChatV2],
        also_own: false,
        change: |meaning, _| {
            for entry in &mut meaning.said {
                if let Entry::Refusal(said) = entry {
                    *entry = text("assistant", said);
                }
            }
        },
    },
    Cell {
        what: "the result of a call that failed begins with `Error:`",
        fronts: &[Messages, Contents],
        wires: &[Chat, Responses, ChatV2],
        also_own: false,
        change: |meaning, _| {
            for entry in &mut meaning.said {
                if let Entry::Result {
                    is_error: is_error @ true,
                    parts,
                    ..
                } = entry
                {
                    *is_error = false;
                    match &mut **parts {
                        [Entry::Text { text, .. }, ..] => text.insert_str(0, "Error: "),
                        _ => parts.insert(0, text("result", "Error: ")),
                    }
                }
            }
        },
    },
    Cell {
        what: "media in results stand in a message of the user behind them",
        fronts: &[Messages, Responses, Contents],
        wires: &[Chat, ChatV2],
        also_own: false,
        change: |meaning, _| {
            media_behind(meaning, |parts| {
                parts.push(text(
                    "result",
                    "\n\nThe result holds media, which stand in the next message.",
                ));
            })
        },
    },
    Cell {
        what: "results are in the order of their calls",
        fronts: &[Chat, Messages, Responses],
        wires: &[Contents],
        also_own: false,
        change: |meaning, _| {
            let is_result = |entry: &Entry| matches!(entry, Entry::Result { .. });
            let alike = |one: &Entry, other: &Entry| is_result(one) == is_result(other);
            for run in meaning.said.chunk_by_mut(alike) {
                run.sort_by_key(|entry| match entry {
                    Entry::Result { number, .. } => *number,
                    _ => 0,
                });
            }
        },
    },
    Cell {
        what: "how closely an image is looked at has no word",
        fronts: &[Chat, Responses],
        wires: &[Messages, Contents, Converse],
        also_own: false,
        change: |meaning, _| {
            each_media(meaning, |media| {
                if media.get("image").is_some() {
                    media["detail"] = Value::Null;
                }
            })
        },
    },
    Cell {
        what: "files have no names",
        fronts: &[Chat, Messages, Responses, Contents],
        wires: &[Contents, Converse],
        also_own: false,
        change: |meaning, _| {
            each_media(meaning, |media| {
                if media.get("file").is_some() {
                    media["name"] = Value::Null;
                }
            })
        },
    },
    Cell {
        what: "stop sequences have no word, so the gateway cuts",
        fronts: &[Messages, Contents, Completions],
        wires: &[Responses],
        also_own: false,
        change: |meaning, _| meaning.stop.clear(),
    },
    Cell {
        what: "calls one at a time cannot be asked for",
        fronts: &[Chat, Messages, Responses],
        wires: &[Contents, Converse, ChatV2],
        also_own: false,
        change: |meaning, _| meaning.is_serial = false,
    },
    Cell {
        what: "any JSON object is asked for in words",
        fronts: &[Chat, Responses, Contents],
        wires: &[Messages, Converse],
        also_own: false,
        change: |meaning, _| {
            if meaning.form == "object" {
                meaning.form = Value::Null;
                instruct(meaning, "Answer with one JSON object and nothing else.");
            }
        },
    },
    Cell {
        what: "the schema of answers has no name",
        fronts: &[Chat, Responses],
        wires: &[Messages, Contents, ChatV2],
        also_own: false,
        change: |meaning, _| {
            if let Some(schema) = meaning.form.get("fit") {
                meaning.form = serde_json::json!({ "answer": schema });
            }
        },
    },
    Cell {
        what: "schemas are those that the wire knows, and one is not strict",
        fronts: &[Chat, Messages, Responses],
        wires: &[Contents],
        also_own: false,
        change: |meaning, _| {
            for tool in &mut meaning.tools {
                tool["strict"] = false.into();
                if let Some(schema) = tool["schema"].as_object_mut() {
                    schema.remove("additionalProperties");
                }
            }
            if let Some(schema) = meaning
                .form
                .get_mut("answer")
                .and_then(Value::as_object_mut)
            {
                schema.remove("additionalProperties");
            }
        },
    },
    Cell {
        what: "a function that has to be called is the only one that is allowed, and a client reads no other",
        fronts: &[Chat, Messages, Responses],
        wires: &[Contents],
        also_own: false,
        change: allowed,
    },
    Cell {
        what: "functions that are not allowed are left out",
        fronts: &[Contents],
        wires: &[Chat, Messages, Responses, Contents, Converse, ChatV2],
        also_own: true,
        change: allowed,
    },
    Cell {
        what: "no call can be forbidden but in words",
        fronts: &[Chat, Messages, Responses, Contents],
        wires: &[Converse],
        also_own: false,
        change: |meaning, _| {
            if meaning.choice == "none" {
                meaning.choice = "auto".to_owned();
                let is_call = |entry: &Entry| matches!(entry, Entry::Call { .. });
                match meaning.said.iter().any(is_call) {
                    true => instruct(meaning, "Answer in text. Do not call a tool now."),
                    false => meaning.tools.clear(),
                }
            }
        },
    },
    Cell {
        what: "functions are not strict",
        fronts: &[Chat, Messages, Responses],
        wires: &[Converse],
        also_own: false,
        change: |meaning, _| {
            for tool in &mut meaning.tools {
                tool["strict"] = false.into();
            }
        },
    },
    Cell {
        what: "a forced function is the only one, and functions are strict together or not at all",
        fronts: &[Chat, Messages, Responses, Contents],
        wires: &[ChatV2],
        also_own: false,
        change: |meaning, _| {
            let words = ["auto", "none", "required"];
            if !words.contains(&&*meaning.choice) {
                let forced = std::mem::replace(&mut meaning.choice, "required".to_owned());
                meaning.tools.retain(|tool| tool["name"] == *forced);
            }
            let is_strict = meaning.tools.iter().all(|tool| tool["strict"] == true);
            for tool in &mut meaning.tools {
                tool["strict"] = is_strict.into();
            }
        },
    },
];

/// Adds to the instructions at the beginning.
fn instruct(meaning: &mut Meaning, said: &str) {
    let is_instruction = |it: &&Entry| matches!(it, Entry::Text { role: "system", .. });
    let leading = meaning.said.iter().take_while(is_instruction).count();
    meaning.said.insert(leading, text("system", said));
}

fn as_system(entry: &mut Entry) {
    if let Entry::Text {
        role: role @ "developer",
        ..
    } = entry
    {
        *role = "system";
    }
}

fn each_media(meaning: &mut Meaning, change: fn(&mut Value)) {
    for entry in &mut meaning.said {
        match entry {
            Entry::Media { media, .. } => change(media),
            Entry::Result { parts, .. } => {
                for part in parts {
                    if let Entry::Media { media, .. } = part {
                        change(media);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Puts the media of results behind the last one of their turn.
fn media_behind(meaning: &mut Meaning, mark: fn(&mut Vec<Entry>)) {
    let mut said = Vec::new();
    let mut behind = Vec::new();
    for mut entry in std::mem::take(&mut meaning.said) {
        match &mut entry {
            Entry::Result { parts, .. } => {
                let is_media = |part: &Entry| matches!(part, Entry::Media { .. });
                let (media, mut rest): (Vec<_>, Vec<_>) =
                    std::mem::take(parts).into_iter().partition(is_media);
                if !media.is_empty() {
                    mark(&mut rest);
                }
                behind.extend(media);
                *parts = joined(rest);
            }
            _ => said.extend(behind.drain(..).map(as_users)),
        }
        said.push(entry);
    }
    said.extend(behind.into_iter().map(as_users));
    meaning.said = said;
}

fn as_users(entry: Entry) -> Entry {
    match entry {
        Entry::Media { media, .. } => Entry::Media {
            role: "user",
            media,
        },
        other => other,
    }
}
