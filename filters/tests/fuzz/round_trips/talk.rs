//! A chat at random, before any API has said it.

use filters::models::dialects::Dialect;
use serde_json::{Value, json};

use crate::choices::Choices;

/// What an API has words for.
#[derive(Clone, Copy)]
pub struct Words {
    pub developer: bool,
    /// Instructions between messages.
    pub later_instructions: bool,
    pub sound: bool,
    pub refusal: bool,
    pub errors: bool,
    pub media_in_results: bool,
    pub stop: bool,
    pub any_object: bool,
    pub details: bool,
    pub freeform: bool,
    pub strict: bool,
    /// Calls one at a time.
    pub serial: bool,
    /// One text alone.
    pub text_alone: bool,
}

pub const NO_WORDS: Words = Words {
    developer: false,
    later_instructions: false,
    sound: false,
    refusal: false,
    errors: false,
    media_in_results: false,
    stop: false,
    any_object: false,
    details: false,
    freeform: false,
    strict: false,
    serial: false,
    text_alone: false,
};

#[derive(Clone, Debug)]
pub enum Part {
    Text(String),
    Image { url: String, detail: Option<String> },
    File { name: String, url: String },
    Sound { data: String, format: String },
}

/// Reasoning that comes back.
#[derive(Clone, Debug)]
pub struct Thought {
    /// The dialect of its maker; `None`: it is of another maker than the one that gets the request. That of contents signs the
    /// first call of its turn, or else the text, and says nothing itself.
    pub made: Option<Dialect>,
    pub text: String,
    pub state: String,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub id: String,
    /// The place of its tool.
    pub tool: usize,
    /// The arguments; of a freeform tool a text.
    pub input: Value,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub id: String,
    pub tool: usize,
    pub parts: Vec<Part>,
    pub is_error: bool,
}

#[derive(Clone, Debug)]
pub enum Turn {
    Given {
        role: &'static str,
        parts: Vec<Part>,
    },
    Said {
        thought: Option<Thought>,
        text: Option<String>,
        refusal: Option<String>,
        calls: Vec<Call>,
    },
    Results(Vec<Outcome>),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ToolKind {
    Function,
    /// It takes a text.
    Freeform,
    /// It stands in the namespace `files`.
    Namespaced,
    /// A search of the client among deferred tools.
    Search,
    /// One that such a search finds.
    Deferred,
}

#[derive(Clone, Debug)]
pub struct Tool {
    pub kind: ToolKind,
    pub name: &'static str,
    pub description: String,
    pub strict: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    Text,
    Object,
    Schema,
}

#[derive(Clone, Debug)]
pub struct Talk {
    pub turns: Vec<Turn>,
    pub tools: Vec<Tool>,
    /// `auto`, `none`, `required`, or the first tool.
    pub choice: Option<&'static str>,
    pub form: Form,
    pub stop: Vec<String>,
    pub temperature: Option<f64>,
    /// Whether calls may come together, where it is said.
    pub parallel: Option<bool>,
    /// The number of calls so far.
    calls: usize,
}

/// The schema of all functions, and of answers.
pub fn schema() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false})
}

/// A text that says something.
pub fn text(choices: &mut Choices<'_>) -> String {
    let first = *choices.pick(&["Hi", "é", "\u{1f600}", "x y", "{\"a\": 1}", "<b>"]);
    [first, &choices.text(), "."].concat()
}

impl Talk {
    /// Composes one to four rounds: instructions or a user, an answer with calls, their results, and at last the user.
    pub fn compose(choices: &mut Choices<'_>, words: Words) -> Self {
        let mut talk = Self {
            turns: Vec::new(),
            tools: Vec::new(),
            choice: None,
            form: Form::Text,
            stop: Vec::new(),
            temperature: choices.once_in(3).then_some(0.5),
            parallel: None,
            calls: 0,
        };
        if words.stop && choices.once_in(3) {
            talk.stop = (0..=choices.below(3))
                .map(|at| format!("{at}{}", text(choices)))
                .collect();
        }
        if words.text_alone {
            let parts = vec![Part::Text(text(choices))];
            talk.turns.push(Turn::Given {
                role: "user",
                parts,
            });
            return talk;
        }
        talk.choose_tools(choices, words);
        let forms = [Form::Text, Form::Text, Form::Schema, Form::Object];
        talk.form = choices
            .pick(&forms[..3 + usize::from(words.any_object)])
            .clone();
        if choices.once_in(2) {
            talk.instruct(choices, words);
        }
        for _ in 0..choices.below(4) {
            talk.user(choices, words);
            while talk.answer(choices, words) && choices.once_in(3) {}
            if words.later_instructions && choices.once_in(4) {
                talk.instruct(choices, words);
            }
        }
        talk.user(choices, words);
        talk
    }

    fn choose_tools(&mut self, choices: &mut Choices<'_>, words: Words) {
        if choices.once_in(3) {
            return;
        }
        let mut add = |kind, name, choices: &mut Choices<'_>| {
            let strict = words.strict && kind == ToolKind::Function && choices.once_in(4);
            let description = text(choices);
            self.tools.push(Tool {
                kind,
                name,
                description,
                strict,
            });
        };
        add(ToolKind::Function, "look", choices);
        if choices.once_in(2) {
            add(ToolKind::Function, "add_up", choices);
        }
        if words.freeform && choices.once_in(2) {
            add(ToolKind::Freeform, "patch", choices);
        }
        if words.freeform && choices.once_in(2) {
            add(ToolKind::Namespaced, "read", choices);
        }
        if words.freeform && choices.once_in(3) {
            add(ToolKind::Search, "tool_search", choices);
            add(ToolKind::Deferred, "hidden", choices);
        }
        if words.serial {
            self.parallel = *choices.pick(&[None, Some(true), Some(false)]);
        }
        self.choice = *choices.pick(&[
            None,
            Some("auto"),
            Some("none"),
            Some("required"),
            Some("look"),
        ]);
    }

    fn instruct(&mut self, choices: &mut Choices<'_>, words: Words) {
        let role = match words.developer && choices.once_in(2) {
            true => "developer",
            false => "system",
        };
        let parts = vec![Part::Text(text(choices))];
        self.turns.push(Turn::Given { role, parts });
    }

    fn user(&mut self, choices: &mut Choices<'_>, words: Words) {
        let mut parts = vec![Part::Text(text(choices))];
        if choices.once_in(3) {
            parts.push(media(choices, words));
        }
        if choices.once_in(4) {
            parts.push(Part::Text(text(choices)));
        }
        self.turns.push(Turn::Given {
            role: "user",
            parts,
        });
    }

    /// The assistant says something, calls, or both. Returns whether it has called.
    fn answer(&mut self, choices: &mut Choices<'_>, words: Words) -> bool {
        let mut thought = choices.once_in(2).then(|| thought(choices));
        let count = match self.tools.is_empty() || choices.once_in(3) {
            true => 0,
            false => 1 + choices.below(3),
        };
        let calls: Vec<Call> = (0..count).map(|_| self.call(choices)).collect();
        let refuses = words.refusal && calls.is_empty() && choices.once_in(6);
        let speaks = !refuses && (calls.is_empty() || choices.once_in(2));
        if refuses {
            thought.take_if(|thought| thought.made == Some(Dialect::Contents));
        }
        self.turns.push(Turn::Said {
            thought,
            text: speaks.then(|| text(choices)),
            refusal: refuses.then(|| text(choices)),
            calls: calls.clone(),
        });
        let mut open = calls;
        let mut results = Vec::new();
        while !open.is_empty() {
            let call = open.remove(choices.below(open.len()));
            results.push(self.outcome(choices, words, call));
        }
        if !results.is_empty() {
            self.turns.push(Turn::Results(results));
        }
        count > 0
    }

    fn call(&mut self, choices: &mut Choices<'_>) -> Call {
        self.calls += 1;
        let number = self.calls;
        let ids = [
            format!("call_{number}_{}", choices.number() % 100_000),
            format!("toolu:{number}:{}", choices.number() % 100_000),
        ];
        let callable: Vec<usize> = (0..self.tools.len())
            .filter(|at| self.tools[*at].kind != ToolKind::Deferred)
            .collect();
        let tool = *choices.pick(&callable);
        let input = match self.tools[tool].kind {
            ToolKind::Freeform => text(choices).into(),
            ToolKind::Search => json!({ "query": text(choices) }),
            _ => choices
                .pick(&[
                    json!({"a": "é\n"}),
                    json!({"a": "", "n": [1, {"b": null}]}),
                    json!({}),
                ])
                .clone(),
        };
        Call {
            id: choices.pick(&ids).clone(),
            tool,
            input,
        }
    }

    fn outcome(&self, choices: &mut Choices<'_>, words: Words, call: Call) -> Outcome {
        let is_search = self.tools[call.tool].kind == ToolKind::Search;
        let mut parts = vec![Part::Text(match choices.once_in(3) {
            true => "{\"degrees\":20}".to_owned(),
            false => text(choices),
        })];
        if words.media_in_results && choices.once_in(4) {
            parts.push(image(choices, words));
        }
        Outcome {
            id: call.id,
            tool: call.tool,
            parts: if is_search { Vec::new() } else { parts },
            is_error: words.errors && choices.once_in(4),
        }
    }
}

fn image(choices: &mut Choices<'_>, words: Words) -> Part {
    let urls = [
        "data:image/png;base64,AAE=",
        "data:image/jpeg;base64,AAECAw==",
    ];
    Part::Image {
        url: (*choices.pick(&urls)).to_owned(),
        detail: (words.details && choices.once_in(2)).then(|| "low".to_owned()),
    }
}

fn media(choices: &mut Choices<'_>, words: Words) -> Part {
    match choices.below(if words.sound { 3 } else { 2 }) {
        0 => image(choices, words),
        1 => Part::File {
            name: "a.pdf".to_owned(),
            url: "data:application/pdf;base64,aGk=".to_owned(),
        },
        _ => Part::Sound {
            data: "aGk=".to_owned(),
            format: "wav".to_owned(),
        },
    }
}

fn thought(choices: &mut Choices<'_>) -> Thought {
    Thought {
        made: *choices.pick(&[
            Some(Dialect::Messages),
            Some(Dialect::Responses),
            Some(Dialect::Contents),
            None,
        ]),
        text: text(choices),
        state: format!("c3RhdGU{}", choices.number() % 10),
    }
}
