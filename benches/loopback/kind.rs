//! The kinds of requests, each a row of the table.

use std::time::Duration;

/// The number of events in one stream.
pub const EVENTS: usize = 200;
/// The number of vectors in a reply, each of 1,536 numbers.
pub const VECTORS: usize = 52;
/// The beginning of a usual message.
const SMALL: &str = r#""content":""#;
/// This beginning of a message asks the upstream for a reply of 50 KB.
pub const LARGE: &str = r#""content":"large "#;
/// This member of a request asks the upstream for a stream that stays open.
pub const HOLD: &str = r#""user":"hold""#;
/// This member asks it for a stream of [`PIECES`], one each [`PACE`].
pub const SLOW: &str = r#""user":"slow""#;
/// The number of pieces of a slow stream.
pub const PIECES: usize = 64;
/// The time between two of them.
pub const PACE: Duration = Duration::from_millis(20);
/// This member asks it for a stream.
pub const STREAM: &str = r#""stream":true"#;

/// The kind of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// 1 KB up, 1 KB of JSON down.
    Json,
    /// The same from a model without a price: no money is reserved or charged.
    Free,
    /// 1 KB up, 50 KB of JSON down.
    Large,
    /// 52 short texts up, their vectors down: 1 MB of JSON.
    Vectors,
    /// A stream of 200 events of one token each.
    Stream,
    /// The first one, answered from the response cache.
    Replay,
    /// 1 KB up to a provider of another API, a short reply down.
    Translated,
    /// A stream of that provider, of as many tokens.
    TranslatedStream,
    /// 50 KB of Messages up to a provider that speaks it, a short reply down.
    Messages,
    /// 50 KB of Responses up to a provider that speaks them, a short reply down.
    Responses,
    /// 1 KB up for a model that does not exist.
    Unknown,
    /// A decision of a flag.
    Decide,
    /// A query that is answered from the cache: 1 KB up, 1 KB down.
    Hit,
    /// The same, counted and forwarded.
    Pass,
    /// The same, over its limit.
    Refused,
}

impl Kind {
    /// All kinds, in the order of the table.
    pub const ALL: [Kind; 15] = [
        Self::Json,
        Self::Free,
        Self::Large,
        Self::Vectors,
        Self::Stream,
        Self::Replay,
        Self::Translated,
        Self::TranslatedStream,
        Self::Messages,
        Self::Responses,
        Self::Unknown,
        Self::Decide,
        Self::Hit,
        Self::Pass,
        Self::Refused,
    ];

    /// Returns the kind that `--only` calls so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns its name for `--only`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Free => "free",
            Self::Large => "large",
            Self::Vectors => "vectors",
            Self::Stream => "stream",
            Self::Replay => "replay",
            Self::Translated => "translated",
            Self::TranslatedStream => "translated-stream",
            Self::Messages => "messages",
            Self::Responses => "responses",
            Self::Unknown => "unknown",
            Self::Decide => "decide",
            Self::Hit => "hit",
            Self::Pass => "pass",
            Self::Refused => "refused",
        }
    }

    /// Returns its name in the tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Json => "1 KB JSON",
            Self::Free => "1 KB JSON, no price",
            Self::Large => "50 KB JSON reply",
            Self::Vectors => "1 MB of vectors",
            Self::Stream => "SSE of 200 events",
            Self::Replay => "1 KB JSON, replayed",
            Self::Translated => "1 KB JSON, translated",
            Self::TranslatedStream => "SSE of 200 events, translated",
            Self::Messages => "50 KB of Messages, passed",
            Self::Responses => "50 KB of Responses, passed",
            Self::Unknown => "an unknown model",
            Self::Decide => "decide ÷ constant handler",
            Self::Hit => "graph hit ÷ constant handler",
            Self::Pass => "graph pass",
            Self::Refused => "graph refusal",
        }
    }

    /// Returns the least rate in parts of bare Pingora's that is good enough.
    pub fn goal(self) -> Option<f64> {
        match self {
            Self::Json | Self::Free | Self::Large | Self::Vectors => Some(0.65),
            Self::Stream => Some(0.85),
            Self::Messages | Self::Responses => Some(0.8),
            Self::Decide => Some(0.9),
            Self::Hit => Some(1.15),
            Self::Pass => Some(0.88),
            Self::Replay
            | Self::Translated
            | Self::TranslatedStream
            | Self::Unknown
            | Self::Refused => None,
        }
    }

    /// Returns whether it is a call of a model.
    pub fn is_chat(self) -> bool {
        matches!(
            self,
            Self::Json
                | Self::Free
                | Self::Large
                | Self::Vectors
                | Self::Stream
                | Self::Replay
                | Self::Translated
                | Self::TranslatedStream
                | Self::Messages
                | Self::Responses
        )
    }

    /// Returns whether a call is a stream of [`EVENTS`].
    pub fn is_stream(self) -> bool {
        matches!(self, Self::Stream | Self::TranslatedStream)
    }

    /// Returns whether bare Pingora can do the same.
    pub fn has_bare(self) -> bool {
        !matches!(
            self,
            Self::Translated | Self::TranslatedStream | Self::Unknown | Self::Refused
        )
    }

    /// Returns the status of its responses.
    pub fn status(self) -> &'static [u8] {
        match self {
            Self::Refused => b"429",
            Self::Unknown => b"404",
            _ => b"200",
        }
    }

    /// Returns a request with this API key, head and body.
    pub fn request(self, key: &str) -> Vec<u8> {
        let text = "b".repeat(900);
        let query = format!(
            r#"{{"query":"query A($b: String) {{ a(b: $b) {{ c d }} }}","variables":{{"b":"{text}"}}}}"#
        );
        let whole = |model: &str, content: &str| {
            let body =
                format!(r#"{{"model":"{model}","messages":[{{"role":"user",{content}{text}"}}]}}"#);
            chat(key, &body)
        };
        let stream = |model: &str| {
            let body = format!(
                r#"{{"model":"{model}",{STREAM},"messages":[{{"role":"user",{SMALL}{text}"}}]}}"#
            );
            chat(key, &body)
        };
        // A request with an application's key is counted and forwarded; the response to a public key may be cached.
        match self {
            Self::Json | Self::Replay => whole("own", SMALL),
            Self::Free => whole("free", SMALL),
            Self::Large => whole("own", LARGE),
            Self::Vectors => {
                let texts = vec![r#""a short text""#; VECTORS].join(",");
                let body = format!(r#"{{"model":"vectors","input":[{texts}]}}"#);
                post("/v1/embeddings", &credential(key), &body)
            }
            Self::Stream => stream("own"),
            Self::Translated => whole("translated", SMALL),
            Self::TranslatedStream => stream("translated"),
            Self::Messages => {
                let turn = |role: &str| format!(r#"{{"role":"{role}",{SMALL}{text}"}}"#);
                let turns: Vec<String> = (0..27)
                    .flat_map(|_| [turn("user"), turn("assistant")])
                    .chain([turn("user")])
                    .collect();
                let turns = turns.join(",");
                let body =
                    format!(r#"{{"model":"translated","max_tokens":64,"messages":[{turns}]}}"#);
                post("/v1/messages", &credential(key), &body)
            }
            Self::Responses => {
                let turn = |role: &str, kind: &str| {
                    format!(
                        r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#
                    )
                };
                let turns: Vec<String> = (0..25)
                    .flat_map(|_| [turn("user", "input_text"), turn("assistant", "output_text")])
                    .chain([turn("user", "input_text")])
                    .collect();
                let turns = turns.join(",");
                let body = format!(r#"{{"model":"items","store":false,"input":[{turns}]}}"#);
                post("/v1/responses", &credential(key), &body)
            }
            Self::Unknown => whole("nobodys", SMALL),
            Self::Decide => post(
                "/v1/decide?keys=dark_mode",
                "X-Platform-SDK-Key: bench\r\n",
                r#"{"userId":"user-1","userAttributes":{"version":"2.1","country":"FR"}}"#,
            ),
            Self::Hit => post("/content/v2?auth=public", "", &query),
            Self::Pass => post("/content/v2", "authorization: Basic cGFzczp4\r\n", &query),
            Self::Refused => post(
                "/content/v2",
                "authorization: Basic cmVmdXNlZDp4\r\n",
                &query,
            ),
        }
    }
}

/// Returns a chat request with this body.
pub fn chat(key: &str, body: &str) -> Vec<u8> {
    post("/v1/chat/completions", &credential(key), body)
}

fn credential(key: &str) -> String {
    format!("Authorization: Bearer {key}\r\n")
}

fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: bench\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
    )
    .into_bytes()
}
