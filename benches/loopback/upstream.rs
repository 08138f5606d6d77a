//! The upstream: it replies at once with prepared bytes.

use std::fmt::Write as _;
use std::rc::Rc;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::kind::{EVENTS, HOLD, LARGE, PACE, PIECES, SLOW, STREAM, VECTORS};
use crate::message::{content_length, head_len};
use crate::print_line;

/// The start of a body that decides about the reply.
const START_BYTES: usize = 1024;
/// One `read` finds a usual request whole.
const BUFFER_BYTES: usize = 64 << 10;

/// Replies with 1 KB of JSON, 50 KB of JSON, a stream of events, or a stream that stays open, as the request says.
pub fn run() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        print_line(&listener.local_addr().unwrap().to_string());
        let replies = Rc::new(Replies::new());
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::task::spawn_local(serve(stream, Rc::clone(&replies)));
        }
    });
}

/// Serves one connection until it ends.
async fn serve(mut stream: TcpStream, replies: Rc<Replies>) -> Option<()> {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        buffer.clear();
        let head = loop {
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
            if let Some(head) = head_len(&buffer) {
                break head;
            }
        };
        let body = content_length(&buffer[..head]).unwrap_or(0);
        let mut missing = (head + body).saturating_sub(buffer.len());
        while missing > 0 && buffer.len() < head + START_BYTES {
            missing -= stream.read_buf(&mut buffer).await.ok()?;
        }
        let start = buffer.len().min(head + START_BYTES);
        let reply = replies.choose(&buffer[..head], &buffer[head..start]);
        while missing > 0 {
            buffer.clear();
            missing -= stream.read_buf(&mut buffer).await.ok()?;
        }
        match reply {
            Reply::Ended(bytes) => stream.write_all(bytes).await.ok()?,
            Reply::Held(bytes) => {
                stream.write_all(bytes).await.ok()?;
                _ = stream.read_buf(&mut buffer).await;
                return None;
            }
            Reply::Slow => replies.write_slowly(&mut stream).await.ok()?,
        }
    }
}

enum Reply<'a> {
    /// The connection takes the next request.
    Ended(&'a [u8]),
    /// The reply stays without an end.
    Held(&'a [u8]),
    /// A stream whose pieces come one by one.
    Slow,
}

struct Replies {
    small: Vec<u8>,
    large: Vec<u8>,
    vectors: Vec<u8>,
    /// A reply of the other convention.
    messages: Vec<u8>,
    messages_stream: Vec<u8>,
    responses: Vec<u8>,
    held: Vec<u8>,
    stream: Vec<u8>,
    /// The first piece with the head, those in the middle, and the last with the end.
    slow: [Vec<u8>; 3],
}

impl Replies {
    fn new() -> Self {
        let chat = |text: &str| {
            whole(&format!(
                r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":9,"completion_tokens":100,"total_tokens":109}}}}"#
            ))
        };
        let messages = r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#;
        let responses = r#"{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}"#;
        let events = events();
        Self {
            small: chat(&"a".repeat(700)),
            large: chat(&"a b, ".repeat(10_000)),
            vectors: whole(&vectors()),
            messages: whole(messages),
            responses: whole(responses),
            messages_stream: stream(&messages_events()),
            held: [STREAM_HEAD, &chunk(&events[0]), &chunk(&events[1])].concat(),
            slow: [
                [STREAM_HEAD, &chunk(&events[0])].concat(),
                chunk(&events[1]),
                [
                    &*chunk(&events[EVENTS - 2]),
                    &chunk(&events[EVENTS - 1]),
                    LAST_CHUNK,
                ]
                .concat(),
            ],
            stream: stream(&events),
        }
    }

    /// Writes [`PIECES`], one each [`PACE`].
    async fn write_slowly(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let [first, middle, last] = &self.slow;
        let mut ticks = tokio::time::interval(PACE);
        for at in 0..PIECES {
            ticks.tick().await;
            let piece = match at {
                0 => first,
                _ if at + 1 < PIECES => middle,
                _ => last,
            };
            stream.write_all(piece).await?;
        }
        Ok(())
    }

    /// Returns the reply to a request.
    fn choose(&self, head: &[u8], start: &[u8]) -> Reply<'_> {
        let has = |text: &str| memmem::find(start, text.as_bytes()).is_some();
        if head.starts_with(b"POST /v1/messages") {
            Reply::Ended(match has(STREAM) {
                true => &self.messages_stream,
                false => &self.messages,
            })
        } else if head.starts_with(b"POST /v1/responses") {
            Reply::Ended(&self.responses)
        } else if head.starts_with(b"POST /v1/embeddings") {
            Reply::Ended(&self.vectors)
        } else if has(HOLD) {
            Reply::Held(&self.held)
        } else if has(SLOW) {
            Reply::Slow
        } else if has(STREAM) {
            Reply::Ended(&self.stream)
        } else if has(LARGE) {
            Reply::Ended(&self.large)
        } else {
            Reply::Ended(&self.small)
        }
    }
}

/// Returns a list of vectors, 1 MB of it.
fn vectors() -> String {
    let number = |at: usize| format!("-0.0{:08}", at * 7919 % 100_000_000);
    let item = |index: usize| {
        let numbers: Vec<String> = (0..1536).map(|at| number(1536 * index + at)).collect();
        let numbers = numbers.join(",");
        format!(r#"{{"object":"embedding","index":{index},"embedding":[{numbers}]}}"#)
    };
    let items: Vec<String> = (0..VECTORS).map(item).collect();
    let items = items.join(",");
    format!(
        r#"{{"object":"list","data":[{items}],"model":"m","usage":{{"prompt_tokens":156,"total_tokens":156}}}}"#
    )
}

fn whole(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

fn chunk(event: &str) -> Vec<u8> {
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

/// Returns the bytes of a stream. Each event is a chunk of its own. One `write` offers all of them, so that the proxy takes
/// them as fast as it can: with a `write` per event the upstream was the limit, and bare Pingora idle for a quarter of the
/// time.
fn stream(events: &[String]) -> Vec<u8> {
    let mut bytes = STREAM_HEAD.to_vec();
    for event in events {
        bytes.extend(chunk(event));
    }
    bytes.extend_from_slice(LAST_CHUNK);
    bytes
}

/// Returns the events of one stream: a token each, then the usage with the end.
fn events() -> Vec<String> {
    let event = |choices: &str, usage: &str| {
        format!(
            r#"data: {{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{choices}]{usage}}}"#
        ) + "\n\n"
    };
    let choice = |delta: &str, finish: &str| {
        format!(r#"{{"index":0,"delta":{{{delta}}},"logprobs":null,"finish_reason":{finish}}}"#)
    };
    let mut events = vec![event(
        &choice(r#""role":"assistant","content":"""#, "null"),
        "",
    )];
    while events.len() < EVENTS - 2 {
        let mut token = String::from(r#""content":" "#);
        write!(token, "w{}\"", events.len()).unwrap();
        events.push(event(&choice(&token, "null"), ""));
    }
    events.push(event(&choice("", r#""stop""#), ""));
    let usage = r#","usage":{"prompt_tokens":9,"completion_tokens":198,"total_tokens":207}"#;
    events.push(event("", usage) + "data: [DONE]\n\n");
    events
}

/// Returns as many events of the other convention.
fn messages_events() -> Vec<String> {
    let event = |kind: &str, members: &str| {
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{members}}}\n\n")
    };
    let mut events = vec![
        event(
            "message_start",
            r#","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}"#,
        ),
        event(
            "content_block_start",
            r#","index":0,"content_block":{"type":"text","text":""}"#,
        ),
    ];
    while events.len() < EVENTS - 3 {
        let delta = format!(
            r#","index":0,"delta":{{"type":"text_delta","text":" w{}"}}"#,
            events.len()
        );
        events.push(event("content_block_delta", &delta));
    }
    events.push(event("content_block_stop", r#","index":0"#));
    events.push(event(
        "message_delta",
        r#","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":195}"#,
    ));
    events.push(event("message_stop", ""));
    events
}
