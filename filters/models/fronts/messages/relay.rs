//! A response of a provider that speaks Messages itself: its events or its message pass as they came, so that what the vendor adds
//! reaches the client. Replaced are the model and, of hosts that are not the vendor's, the state, which is sealed. The end waits
//! for the cost.

use serde::Deserialize;

use super::safeguards::RESULTS;
use super::shape::write_event;
use crate::json::members::{joined, replaced, with_member};
use crate::json::{Error, Object, Walker, quoted};
use crate::models::chat::text::Text;
use crate::models::dialects::Dialect;
use crate::models::dialects::state::OwnedMaker;

/// What passes through.
#[derive(Debug)]
pub(super) struct Relay {
    maker: OwnedMaker,
    /// The model as the client calls it.
    model: Box<str>,
    /// The signature of the open block so far.
    signature: String,
    /// The event before the last, or the whole message, which gets the cost.
    end: Option<String>,
}

/// An event, as far as state may stand in it.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: u64,
    #[serde(borrow, default)]
    delta: Option<Stateful<'a>>,
    #[serde(borrow, default)]
    content_block: Option<Stateful<'a>>,
}

/// A block, or a delta of one.
#[derive(Deserialize)]
struct Stateful<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    data: Option<Text<'a>>,
}

impl Relay {
    pub(super) fn new(maker: &OwnedMaker, model: &str) -> Self {
        Self {
            maker: maker.clone(),
            model: model.into(),
            signature: String::new(),
            end: None,
        }
    }

    /// Passes an event on, or keeps it.
    pub(super) fn event(&mut self, name: &str, data: &[u8], out: &mut Vec<u8>) {
        // It was read before, so it is text.
        let data = std::str::from_utf8(data).unwrap_or_default();
        match name {
            // Clients read the data of every event as JSON.
            _ if data.trim_ascii().is_empty() => {}
            "message_start" => {
                let told = replaced(data, "message", |message| {
                    replaced(message, "model", |_| Ok(quoted(&self.model)))
                });
                write_event(name, told.as_deref().unwrap_or(data).as_bytes(), out);
            }
            "message_delta" => {
                // Some hosts say how far they have come before they end.
                if let Some(earlier) = self.end.replace(data.to_owned()) {
                    write_event(name, earlier.as_bytes(), out);
                }
            }
            "message_stop" => {}
            _ if self.maker.speaks_bare(Dialect::Messages) => {
                write_event(name, data.as_bytes(), out)
            }
            _ => self.sealed(name, data, out),
        }
    }

    /// Passes an event of a host that is not the vendor's on, with state sealed.
    fn sealed(&mut self, name: &str, data: &str, out: &mut Vec<u8>) {
        let Ok(event) = serde_json::from_str::<Event<'_>>(data) else {
            return write_event(name, data.as_bytes(), out);
        };
        let index = event.index;
        match &*event.kind {
            "content_block_delta" => {
                let delta = event
                    .delta
                    .filter(|delta| &*delta.kind == "signature_delta");
                match delta.and_then(|delta| delta.signature) {
                    Some(signature) => self.signature.push_str(&signature),
                    None => write_event(name, data.as_bytes(), out),
                }
            }
            "content_block_start" => {
                let block = event.content_block;
                let block = block.filter(|block| &*block.kind == "redacted_thinking");
                let state = block.and_then(|block| block.data);
                let told = state.and_then(|state| {
                    let sealed = quoted(&self.seal(&state));
                    replaced(data, "content_block", |block| {
                        replaced(block, "data", |_| Ok(sealed.clone()))
                    })
                    .ok()
                });
                write_event(name, told.as_deref().unwrap_or(data).as_bytes(), out);
            }
            "content_block_stop" => {
                let signature = std::mem::take(&mut self.signature);
                if !signature.is_empty() {
                    self.write_signature(index, &signature, out);
                }
                write_event(name, data.as_bytes(), out);
            }
            _ => write_event(name, data.as_bytes(), out),
        }
    }

    fn seal(&self, state: &str) -> String {
        self.maker.borrow().seal(Dialect::Messages, state)
    }

    fn write_signature(&self, index: u64, signature: &str, out: &mut Vec<u8>) {
        let mut data = Vec::with_capacity(signature.len() + 160);
        let mut event = Object::open(&mut data);
        event.text("type", "content_block_delta");
        event.number("index", index);
        event.object("delta", |delta| {
            delta.text("type", "signature_delta");
            delta.text("signature", &self.seal(signature));
        });
        event.close();
        write_event("content_block_delta", &data, out);
    }

    /// Keeps a whole message.
    pub(super) fn whole(&mut self, body: &[u8]) {
        let body = std::str::from_utf8(body).unwrap_or_default();
        let told = replaced(body, "model", |_| Ok(quoted(&self.model)));
        let told = told.unwrap_or_else(|_| body.to_owned());
        let sealed = match self.maker.speaks_bare(Dialect::Messages) {
            true => None,
            false => replaced(&told, "content", |content| self.sealed_blocks(content)).ok(),
        };
        self.end = Some(sealed.unwrap_or(told));
    }

    fn sealed_blocks(&self, content: &str) -> Result<String, Error> {
        let mut out = String::with_capacity(content.len() + 128);
        out.push('[');
        Walker::over(content).array(|walk, at| {
            let block = walk.skip()?;
            out.push_str(if at > 0 { "," } else { "" });
            let said = serde_json::from_str::<Stateful<'_>>(block).ok();
            let state = said.and_then(|said| match &*said.kind {
                "thinking" => Some(("signature", said.signature?)),
                "redacted_thinking" => Some(("data", said.data?)),
                _ => None,
            });
            match state {
                None => out.push_str(block),
                Some((key, state)) => {
                    let sealed = quoted(&self.seal(&state));
                    out.push_str(&replaced(block, key, |_| Ok(sealed.clone()))?);
                }
            }
            Ok::<(), Error>(())
        })?;
        out.push(']');
        Ok(out)
    }

    /// Ends the response, with the results of safeguards that the gateway says, and the members that `more` writes in its last part.
    pub(super) fn complete(
        &mut self,
        is_stream: bool,
        results: Option<&str>,
        more: impl FnOnce(&mut Object<'_>),
        out: &mut Vec<u8>,
    ) {
        let end = self.end.take().unwrap_or_else(|| "{}".to_owned());
        let told = results.and_then(|results| {
            let told = |message: &str| with_member(message, RESULTS, results);
            match is_stream {
                true => replaced(&end, "delta", told).ok(),
                false => told(&end).ok(),
            }
        });
        let end = told.unwrap_or(end);
        let mut added = Vec::new();
        let mut object = Object::open(&mut added);
        more(&mut object);
        object.close();
        let added = String::from_utf8(added).unwrap_or_default();
        let inside = added.strip_prefix('{').unwrap_or_default();
        let end = joined(&end, inside);
        match is_stream {
            false => out.extend_from_slice(end.as_bytes()),
            true => {
                write_event("message_delta", end.as_bytes(), out);
                write_event("message_stop", br#"{"type":"message_stop"}"#, out);
            }
        }
    }
}
