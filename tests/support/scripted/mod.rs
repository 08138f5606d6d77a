//! A provider that speaks every wire and says what a script decides, in words of no wire.
//!
//! [`provider`] answers as `tests/clients/wires_python.py`, `wires_node.mjs`, `messages_python.py`, `messages_node.mjs`,
//! `responses_python.py`, `responses_node.mjs` and `langchain_python.py` expect: it calls `get_weather` where tools are offered, tells the result of a call, gives JSON where a schema is asked for, says whether it
//! sees an image, reasons "hm" where that is asked for, and repeats the last text otherwise.

pub mod cloud_wires;
pub mod wires;

use std::time::Duration;

use serde_json::{Value, json};

use super::boot::Gateway;
use super::script::{Cut, Reply, Step};
use super::upstream::Upstream;

/// What a request asks, in words of no wire.
#[derive(Clone, Debug)]
pub struct Asked {
    pub body: Value,
    /// The names of the functions that are offered.
    pub tools: Vec<String>,
    /// The texts of all results of calls.
    pub results: Vec<String>,
    /// The last message or item.
    pub last: Value,
    /// Whether that brings a result.
    pub has_result: bool,
    /// Whether the answer is to show reasoning.
    pub reasons: bool,
    pub is_stream: bool,
}

impl Asked {
    /// Whether a text stands anywhere in the request.
    pub fn holds(&self, text: &str) -> bool {
        let quoted = Value::from(text).to_string();
        let inside = &quoted[1..quoted.len() - 1];
        self.body.to_string().contains(inside)
    }

    pub fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }

    /// The text of the last message.
    pub fn last_text(&self) -> String {
        text(&self.last).unwrap_or_default()
    }

    /// Whether the last message shows an image.
    pub fn shows_image(&self) -> bool {
        let shown = self.last.to_string();
        let marks = ["image_url", "input_image", "\"image\"", "inlineData"];
        marks.iter().any(|mark| shown.contains(mark))
    }
}

/// What the model says.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    pub reasoning: Option<String>,
    pub text: Option<String>,
    /// Names of functions, and their input.
    pub calls: Vec<(String, Value)>,
    /// Tokens of the prompt that are reported; 0: nine.
    pub prompt_tokens: u64,
    /// Whether the stream breaks off behind its first half.
    pub breaks: bool,
    /// How long the stream is silent: before its first byte, within an event, and between two.
    pub silence: Option<Duration>,
}

impl Turn {
    pub fn text(text: impl Into<String>) -> Turn {
        Turn {
            text: Some(text.into()),
            ..Turn::default()
        }
    }

    pub fn call(name: &str, input: Value) -> Turn {
        Turn::default().and_call(name, input)
    }

    pub fn and_call(mut self, name: &str, input: Value) -> Turn {
        self.calls.push((name.to_owned(), input));
        self
    }
}

/// What the provider does.
pub enum Said {
    Turn(Turn),
    /// A reply in the words of the wire.
    Reply(Reply),
}

impl From<Turn> for Said {
    fn from(turn: Turn) -> Said {
        Said::Turn(turn)
    }
}

/// The models of [`gateway`]; each is served on another wire: chat completions, Responses, Messages, Gemini's contents.
pub const MODELS: [&str; 4] = ["chat", "items", "blocks", "parts"];

/// A gateway in front of a provider, with a model for each wire.
pub fn gateway(provider: &Upstream) -> Gateway {
    gateway_with(provider, "", "", "1000")
}

/// The same with more configuration, more models, and this credit.
pub fn gateway_with(provider: &Upstream, more: &str, more_models: &str, credit: &str) -> Gateway {
    let url = provider.url();
    let toml = format!(
        "[providers.first]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n\
         [providers.second]\nkind = \"anthropic\"\nbase_url = \"{url}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n\
         [providers.third]\nkind = \"google\"\nbase_url = \"{url}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n{more}"
    );
    let models = [&*models_named(""), more_models].concat();
    Gateway::start_with_credit(&toml, &models, &[("FIRST_KEY", "sk-first")], credit)
}

/// A model for each wire, whose name begins so.
pub fn models_named(prefix: &str) -> String {
    let wires = [
        ("first", "wire = \"chat\"\n"),
        ("first", "wire = \"responses\"\n"),
        ("second", ""),
        ("third", ""),
    ];
    let models = MODELS.iter().zip(wires).map(|(id, (provider, wire))| {
        format!(
            "[[models]]\nid = \"{prefix}{id}\"\n[[models.providers]]\nprovider = \"{provider}\"\nname = \"up-{id}\"\n\
             capabilities = [\"streaming\", \"tools\", \"parallel_tools\", \"forced_tools\", \"vision\", \"documents\", \"json_object\", \"json_schema\", \"reasoning\"]\n\
             max_output = 32000\ninput_price = \"1\"\noutput_price = \"2\"\n{wire}"
        )
    });
    models.collect()
}

/// A gateway whose answers this model judges, where they are asked to be. `judge` is one of this provider, for which it is
/// `up-judge`.
pub fn gateway_with_judge(provider: &Upstream, judge: &str) -> Gateway {
    let models = "[[models]]\nid = \"judge\"\n[[models.providers]]\nprovider = \"first\"\nname = \"up-judge\"\n\
         capabilities = [\"streaming\"]\nmax_output = 32000\ninput_price = \"100\"\noutput_price = \"0\"\n";
    let toml = format!("[claude_code]\njudge_model = \"{judge}\"\n");
    gateway_with(provider, &toml, models, "1000")
}

/// A gateway with a search of the web, which costs a cent.
pub fn gateway_with_search(provider: &Upstream, finder: &Upstream, credit: &str) -> Gateway {
    let models = "[[models]]\nid = \"web-search\"\ntype = \"search\"\n\
         [[models.providers]]\nprovider = \"finder\"\nname = \"basic\"\nsearch_price = \"0.01\"\n";
    let toml = format!(
        "[providers.finder]\nkind = \"tavily\"\nbase_url = \"{}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n\
         [routing]\nkeepalive_s = 1\n",
        finder.url()
    );
    gateway_with(provider, &toml, models, credit)
}

/// What the provider of such a search replies: a page.
pub fn found_page() -> Reply {
    let page = json!({"title": "Cats", "url": "https://cats.test", "content": "Cats are small.", "score": 0.9, "raw_content": null});
    let body = json!({"query": "cats", "answer": null, "images": [], "results": [page], "response_time": 1.5});
    Reply::json(200, body.to_string())
}

/// Starts the provider of the clients' scripts.
pub fn provider() -> Upstream {
    saying(|asked| answer(asked).into())
}

/// Starts a provider. Its paths are those of the public providers, below `/v1` and `/v1beta`.
pub fn saying(script: impl Fn(&Asked) -> Said + Send + Sync + 'static) -> Upstream {
    Upstream::answering(move |request| {
        let Some(wire) = wires::of(&request.path) else {
            return Reply::json(404, "{}");
        };
        let asked = wire.read(request);
        match script(&asked) {
            Said::Reply(reply) => reply,
            Said::Turn(turn) => {
                let reply = wire.reply(&asked, &turn);
                match (turn.breaks, turn.silence) {
                    (true, _) => {
                        let half = reply.wire_len() / 2;
                        // A reset would drop what the gateway has not read yet.
                        reply.cut(half, Cut::Close)
                    }
                    (false, Some(silence)) => silent(&reply, silence),
                    (false, None) => reply,
                }
            }
        }
    })
}

/// Makes a reply fall silent before its first byte, within an event and between two.
fn silent(reply: &Reply, silence: Duration) -> Reply {
    let steps = reply.steps();
    let (within, between) = (steps.len() / 2, steps.len() * 3 / 4);
    let mut said = Reply::empty().pause(silence);
    for (at, step) in steps.iter().enumerate() {
        let Step::Send(bytes) = step else {
            panic!("the reply has another step than bytes: {step:?}");
        };
        let middle = if at == within { bytes.len() / 2 } else { 0 };
        if at == within || at == between {
            said = said.bytes(&bytes[..middle]).pause(silence);
        }
        said = said.bytes(&bytes[middle..]);
    }
    said
}

/// Answers as the clients' scripts expect.
fn answer(asked: &Asked) -> Turn {
    let schemas = ["json_schema", "responseSchema", "responseJsonSchema"];
    let mut turn = if asked.has_result {
        let result = asked.results.last().map_or("", String::as_str);
        Turn::text(format!("The tool said: {result}"))
    } else if !asked.tools.is_empty() {
        Turn::call("get_weather", json!({"city": "Paris"}))
    } else if schemas.iter().any(|key| asked.holds(key)) {
        Turn::text("{\"city\":\"Paris\",\"degrees\":20}")
    } else if asked.shows_image() {
        Turn::text("I see an image")
    } else {
        Turn::text(format!("You said: {}", asked.last_text()))
    };
    turn.reasoning = asked.reasons.then(|| "hm".to_owned());
    turn
}

/// Finds the last text inside a value.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => items.iter().rev().find_map(text),
        Value::Object(members) => {
            let keys = ["text", "content", "parts", "output", "result"];
            let own = keys.iter().find_map(|key| members.get(*key));
            own.and_then(text)
        }
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}
