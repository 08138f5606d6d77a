//! What a chat says, in a form that all APIs have alike.

use filters::models::chat::conversation::{
    AnswerForm, Block, BlockKind, Conversation, MediaKind, MediaSource, Role,
};
use filters::models::chat::tools::{Tool as ReadTool, ToolChoice};
use filters::models::dialects::Dialect;
use filters::models::parameter::Parameter;
use serde_json::{Value, json};

use super::talk::{Form, Part, Talk, ToolKind, Turn, schema};

#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Text {
        role: &'static str,
        text: String,
    },
    Refusal(String),
    /// An image, a file or a sound.
    Media {
        role: &'static str,
        media: Value,
    },
    Thought {
        made: Option<Dialect>,
        text: String,
        state: String,
    },
    /// The `number`th call.
    Call {
        number: usize,
        name: String,
        input: Value,
    },
    Result {
        number: usize,
        is_error: bool,
        parts: Vec<Entry>,
    },
}

impl Entry {
    /// Returns whether it is a signature of contents, which stands before what it signs.
    pub fn is_signature(&self) -> bool {
        matches!(
            self,
            Self::Thought {
                made: Some(Dialect::Contents),
                ..
            }
        )
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    pub said: Vec<Entry>,
    pub tools: Vec<Value>,
    pub choice: String,
    pub form: Value,
    pub stop: Vec<String>,
    pub is_serial: bool,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u64>,
}

pub fn text(role: &'static str, text: &str) -> Entry {
    Entry::Text {
        role,
        text: text.to_owned(),
    }
}

/// The schema of a function in place of a tool that takes a text.
pub const ONE_TEXT: &str = "one text";

pub fn tool(name: &str, description: Option<&str>, schema: Value, is_strict: bool) -> Value {
    let properties = schema["properties"].as_object();
    let is_one_text = properties.is_some_and(|it| it.len() == 1 && it.contains_key("input"));
    let schema = if is_one_text { ONE_TEXT.into() } else { schema };
    json!({"name": name, "description": description, "schema": schema, "strict": is_strict})
}

impl Meaning {
    /// Tells the first difference to what is expected.
    pub fn difference(&self, expected: &Self) -> Option<String> {
        let entries = self.said.len().max(expected.said.len());
        for at in 0..entries {
            let (read, wanted) = (self.said.get(at), expected.said.get(at));
            if read != wanted {
                return Some(format!("entry {at} is {read:?}, not {wanted:?}"));
            }
        }
        let rest = |meaning: &Self| {
            let mut rest = meaning.clone();
            rest.said.clear();
            format!("{rest:?}")
        };
        (self != expected).then(|| format!("{}\nis not {}", rest(self), rest(expected)))
    }

    /// The meaning of what was composed, said by a front of this dialect. Tools of Responses are what other dialects make of them, which its own
    /// front reads alike.
    pub fn of_talk(talk: &Talk, dialect: Dialect) -> Self {
        let mut numbers: Vec<&str> = Vec::new();
        let mut said = Vec::new();
        let mut has_found = false;
        for turn in &talk.turns {
            match turn {
                Turn::Given { role, parts } => said.extend(parts.iter().map(|it| part(role, it))),
                Turn::Said {
                    thought,
                    text: spoken,
                    refusal,
                    calls,
                } => {
                    let mut thought = thought.as_ref().map(|thought| Entry::Thought {
                        made: thought.made,
                        text: thought.text.clone(),
                        state: thought.state.clone(),
                    });
                    let signs_call = |it: &mut Entry| !calls.is_empty() && it.is_signature();
                    let signature = thought.take_if(signs_call);
                    said.extend(thought);
                    said.extend(spoken.as_ref().map(|it| text("assistant", it)));
                    said.extend(signature);
                    said.extend(refusal.clone().map(Entry::Refusal));
                    for call in calls {
                        let tool = &talk.tools[call.tool];
                        let input = match tool.kind {
                            ToolKind::Freeform => json!({ "input": call.input }),
                            _ => call.input.clone(),
                        };
                        said.push(Entry::Call {
                            number: numbers.len(),
                            name: flat(tool.kind, tool.name),
                            input,
                        });
                        numbers.push(&call.id);
                    }
                }
                Turn::Results(results) => {
                    for result in results {
                        let number = numbers.iter().rposition(|id| *id == result.id).unwrap();
                        let mut parts: Vec<Entry> =
                            result.parts.iter().map(|it| part("result", it)).collect();
                        if talk.tools[result.tool].kind == ToolKind::Search {
                            has_found = true;
                            parts.push(text("result", "These tools can be called now: hidden."));
                        }
                        said.push(Entry::Result {
                            number,
                            is_error: result.is_error,
                            parts,
                        });
                    }
                }
            }
        }
        let shown = talk
            .tools
            .iter()
            .filter(|tool| tool.kind != ToolKind::Deferred || has_found);
        let tools: Vec<Value> = shown
            .map(|it| {
                let schema = match it.kind {
                    ToolKind::Freeform => json!({"properties": {"input": {}}}),
                    _ => schema(),
                };
                tool(
                    &flat(it.kind, it.name),
                    Some(&it.description),
                    schema,
                    it.strict,
                )
            })
            .collect();
        let has_tools = !tools.is_empty();
        Self {
            said: joined(said),
            tools,
            choice: talk
                .choice
                .filter(|_| has_tools)
                .unwrap_or("auto")
                .to_owned(),
            form: match talk.form {
                Form::Text => Value::Null,
                Form::Object => "object".into(),
                Form::Schema if matches!(dialect, Dialect::Messages | Dialect::Contents) => {
                    json!({"answer": schema()})
                }
                Form::Schema => json!({"fit": schema()}),
            },
            stop: talk.stop.clone(),
            is_serial: has_tools && talk.parallel == Some(false) && talk.choice != Some("none"),
            temperature: talk.temperature,
            max_tokens: Some(64),
        }
    }

    /// The meaning of what a front has read.
    pub fn of_conversation(chat: &Conversation<'_>, max_tokens: Option<u64>) -> Self {
        let mut reading = Reading::default();
        for turn in &chat.turns {
            let role = match turn.role {
                Role::System => "system",
                Role::Developer => "developer",
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            let divided = turn.divided.iter().flat_map(|part| &part.blocks);
            match turn.divided.is_empty() {
                true => turn
                    .blocks
                    .iter()
                    .for_each(|block| reading.block(role, block)),
                false => divided.for_each(|block| reading.block(role, block)),
            }
        }
        let functions = chat.tools.iter().filter_map(|it| match it {
            ReadTool::Function(it) => {
                let schema = it
                    .parameters
                    .as_deref()
                    .map(|schema| serde_json::from_str(schema).unwrap());
                let schema: Value = schema.unwrap_or_default();
                Some(tool(
                    &it.name,
                    it.description.as_deref(),
                    schema,
                    it.strict == Some(true),
                ))
            }
            _ => None,
        });
        let tools: Vec<Value> = functions.collect();
        let choice = match &chat.choice {
            None | Some(ToolChoice::Auto) => "auto",
            Some(ToolChoice::None) => "none",
            Some(ToolChoice::Required) => "required",
            Some(ToolChoice::Function(name)) => name,
            Some(ToolChoice::WebSearch) => "web search",
        };
        let option = |parameter| chat.option(parameter).map(|raw| raw.get());
        Self {
            said: joined(reading.said),
            choice: choice.to_owned(),
            form: match &chat.form {
                AnswerForm::Text => Value::Null,
                AnswerForm::Json => "object".into(),
                AnswerForm::Schema(form) => {
                    let schema: Value = serde_json::from_str(form.schema.get()).unwrap();
                    json!({&*form.name: schema})
                }
            },
            stop: chat.stop.iter().map(|stop| stop.to_string()).collect(),
            is_serial: !tools.is_empty()
                && choice != "none"
                && option(Parameter::ParallelToolCalls) == Some("false"),
            temperature: option(Parameter::Temperature).and_then(|it| it.parse().ok()),
            max_tokens,
            tools,
        }
    }
}

fn flat(kind: ToolKind, name: &str) -> String {
    match kind {
        ToolKind::Namespaced => ["files__", name].concat(),
        _ => name.to_owned(),
    }
}

fn part(role: &'static str, part: &Part) -> Entry {
    let media = match part {
        Part::Text(said) => return text(role, said),
        Part::Image { url, detail } => json!({"image": url, "detail": detail}),
        Part::File { name, url } => json!({"file": url, "name": name}),
        Part::Sound { data, format } => json!({"sound": data, "format": format}),
    };
    Entry::Media { role, media }
}

/// Joins texts of one role that stand together: APIs differ in whether they are parts of one message.
pub fn joined(said: Vec<Entry>) -> Vec<Entry> {
    let mut joined: Vec<Entry> = Vec::new();
    for entry in said {
        let entry = match entry {
            Entry::Result {
                number,
                is_error,
                parts,
            } => Entry::Result {
                number,
                is_error,
                parts: self::joined(parts),
            },
            other => other,
        };
        match (joined.last_mut(), &entry) {
            (_, Entry::Text { text, .. }) if text.is_empty() => continue,
            (
                Some(Entry::Text { role, text }),
                Entry::Text {
                    role: next,
                    text: more,
                },
            ) if role == next => {
                let between = match *role {
                    "assistant" | "result" => "",
                    _ => "\n\n",
                };
                text.push_str(between);
                text.push_str(more);
                continue;
            }
            _ => {}
        }
        joined.push(entry);
    }
    joined
}

/// Reads blocks.
#[derive(Default)]
struct Reading {
    said: Vec<Entry>,
    ids: Vec<String>,
}

impl Reading {
    fn block(&mut self, role: &'static str, block: &Block<'_>) {
        let state = block.states.first();
        let is_thought = matches!(block.kind, BlockKind::Reasoning(_) | BlockKind::Redacted);
        if let Some(state) = state.filter(|_| !is_thought) {
            self.said.push(Entry::Thought {
                made: state.dialect,
                text: String::new(),
                state: state.text.to_string(),
            });
        }
        let entry = match &block.kind {
            BlockKind::Text(said) => text(role, said),
            BlockKind::Refusal(said) => Entry::Refusal(said.to_string()),
            BlockKind::Media(media) => {
                let media = match (&media.source, media.kind) {
                    (MediaSource::Data { data, format }, _) => {
                        json!({"sound": &**data, "format": &**format})
                    }
                    (MediaSource::Url(url), MediaKind::Document) => {
                        json!({"file": &**url, "name": media.name.as_deref()})
                    }
                    (MediaSource::Url(url), _) => {
                        json!({"image": &**url, "detail": media.detail.as_deref().filter(|it| *it != "auto")})
                    }
                    (MediaSource::Id(id), _) => json!({"id": &**id}),
                };
                Entry::Media { role, media }
            }
            BlockKind::Reasoning(said) => Entry::Thought {
                made: state.and_then(|state| state.dialect),
                text: said.to_string(),
                state: state.map_or_else(String::new, |state| state.text.to_string()),
            },
            BlockKind::Redacted => Entry::Thought {
                made: state.and_then(|state| state.dialect),
                text: String::new(),
                state: state.map_or_else(String::new, |state| state.text.to_string()),
            },
            BlockKind::Native(native) => panic!("{}", native.json),
            BlockKind::Call { id, name, input } => {
                self.ids.push(id.to_string());
                Entry::Call {
                    number: self.ids.len() - 1,
                    name: name.to_string(),
                    input: serde_json::from_str(input)
                        .unwrap_or_else(|_| json!({"no JSON": &**input})),
                }
            }
            BlockKind::Result {
                call,
                content,
                is_error,
            } => {
                let id = call.as_deref().unwrap();
                let number = self.ids.iter().rposition(|known| known == id);
                let mut inside = Reading::default();
                content
                    .iter()
                    .for_each(|block| inside.block("result", block));
                Entry::Result {
                    number: number.unwrap(),
                    is_error: *is_error,
                    parts: inside.said,
                }
            }
        };
        self.said.push(entry);
    }
}
