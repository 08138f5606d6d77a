//! The playground: a prompt, a model, and the answer as it comes.
//!
//! The request goes to the public listener with the key that the person gives, like that of any client: its rules, limits and
//! credit hold. The key is sent on and kept nowhere.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::models::operation::Operation;
use filters::models::routing::catalog::Model;
use filters::sse::{EventReader, TooLong};
use http::Method;
use maud::{Markup, html};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::console::Console;
use crate::console::layout::csrf;
use crate::console::reply::{ConsoleReply, ConsoleStream};
use crate::console::request::ConsoleRequest;

/// The path of the view.
pub(super) const PATH: &str = "/console/playground";
/// How long an answer may take, with the time in which the browser reads it.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The pieces that wait for a slow browser.
const WAITING_PIECES: usize = 64;
/// The maximum bytes of an error that are shown.
const MAX_ERROR_BYTES: usize = 64 << 10;

pub(super) async fn show(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    match request.method {
        Method::POST => ask(console, request),
        _ => ConsoleReply::page("Playground", form(console, request)),
    }
}

fn form(console: &Console, request: &ConsoleRequest) -> Markup {
    let app = console.app();
    let models = app.models.planner.catalog().models();
    let is_chat = |model: &&Arc<Model>| model.operations.contains(&Operation::Chat);
    html! {
        p { "The request goes through the gateway as a client's does: rules, limits and credit of the key hold, and it costs what it costs." }
        form.stacked method="post" action=(PATH) data-stream="answer" autocomplete="off" {
            (csrf(&request.visitor))
            label for="key" { "API key" }
            input #key name="key" type="password" required aria-describedby="key-help";
            p #key-help .muted { "It is sent on with the request and kept nowhere." }
            label for="model" { "Model" }
            input #model name="model" required list="models" value="auto";
            datalist #models {
                @for model in models.iter().filter(is_chat) { option value=(model.id) {} }
            }
            label for="system" { "Instructions (optional)" }
            textarea.short #system name="system" {}
            label for="prompt" { "Prompt" }
            textarea #prompt name="prompt" required {}
            label for="max_tokens" { "At most so many tokens (optional)" }
            input #max_tokens name="max_tokens" type="number" min="1";
            button type="submit" { "Ask" }
        }
        h2 { "Answer" }
        pre #answer .answer tabindex="0" aria-live="polite" {}
    }
}

/// Sends the request, and returns the answer as text that comes while it is made.
fn ask(console: &Console, request: &ConsoleRequest) -> ConsoleReply {
    let Some(listener) = console.public_url() else {
        return ConsoleReply::failed(&"the process starts");
    };
    let prepared = match prepare(request, &listener) {
        Ok(prepared) => prepared,
        Err(problem) => return ConsoleReply::text(400, format!("{problem}\n")),
    };
    let capacity = &console.capacity;
    let permits = capacity
        .answers
        .enter()
        .and_then(|answer| Ok((answer, capacity.streams.enter()?)));
    let (answer, permit) = match permits {
        Ok(permits) => permits,
        Err(full) => return full.into(),
    };
    let (sender, pieces) = mpsc::channel(WAITING_PIECES);
    console.thread().spawn(async move {
        let relayed = tokio::select! {
            relayed = timeout(TIMEOUT, relay(prepared, &sender)) => relayed,
            // Nobody waits any more, and the gateway is told so.
            () = sender.closed() => return drop(answer),
        };
        let problem = match relayed {
            Ok(Ok(())) => None,
            Ok(Err(problem)) => Some(problem),
            Err(_) => Some(format!("An answer may take {} s.", TIMEOUT.as_secs())),
        };
        // A browser that has not read what came before takes no more.
        _ = problem.map(|problem| sender.try_send(format!("\n{problem}\n").into()));
        drop(answer);
    });
    ConsoleReply::Text(ConsoleStream::new(pieces, permit))
}

/// Errors: what is wrong with what was typed.
fn prepare(request: &ConsoleRequest, listener: &str) -> Result<RequestBuilder, String> {
    let field = |name: &str| {
        request
            .field(name)
            .ok_or_else(|| format!("{name} is empty"))
    };
    let mut messages = Vec::new();
    if let Some(system) = request.field("system") {
        messages.push(json!({"role": "system", "content": system}));
    }
    messages.push(json!({"role": "user", "content": field("prompt")?}));
    let mut body = json!({
        "model": field("model")?,
        "messages": messages,
        "stream": true,
    });
    if let Some(most) = request.field("max_tokens") {
        let most: u64 = most
            .parse()
            .map_err(|_| format!("max_tokens is {most:?}; a whole number is accepted"))?;
        if let Some(body) = body.as_object_mut() {
            body.insert("max_tokens".to_owned(), json!(most));
        }
    }
    // The certificate names the public host, not this address, at which nobody but this process listens.
    let client = Client::builder()
        .no_proxy()
        .danger_accept_invalid_certs(listener.starts_with("https:"))
        .build();
    let client = client.map_err(|error| error.to_string())?;
    Ok(client
        .post(format!("{listener}/v1/chat/completions"))
        .bearer_auth(field("key")?)
        .header("content-type", "application/json")
        .body(body.to_string()))
}

/// Passes the text of an answer on, and what it was and cost.
///
/// Errors: why it ended.
async fn relay(request: RequestBuilder, sender: &mpsc::Sender<Bytes>) -> Result<(), String> {
    let mut response = request.send().await.map_err(|error| error.to_string())?;
    let id = response.headers().get("x-request-id");
    let id = id
        .and_then(|id| id.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    if !response.status().is_success() {
        return Err(format!(
            "{}: {}",
            response.status(),
            error_text(response).await
        ));
    }
    let (mut reader, mut last) = (EventReader::default(), Value::Null);
    let broken = |error: reqwest::Error| format!("The stream broke: {error}");
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        let mut text = String::new();
        let fed = reader.feed::<TooLong>(&chunk, |event| {
            if let Ok(value) = serde_json::from_slice::<Value>(event.data) {
                text.push_str(&shown(&value));
                if value.get("usage").is_some_and(Value::is_object) {
                    last = value;
                }
            }
            Ok(())
        });
        fed.map_err(|_| "The stream has an event that is too long.".to_owned())?;
        if !text.is_empty() && sender.send(text.into()).await.is_err() {
            // Dropping the response tells the gateway that the client has left.
            return Ok(());
        }
    }
    _ = sender.send(summary(&last, &id).into()).await;
    Ok(())
}

/// The text of an event: content, or the message of an error.
fn shown(event: &Value) -> String {
    let texts = ["/choices/0/delta/content", "/choices/0/delta/refusal"];
    let text = texts.iter().find_map(|at| event.pointer(at)?.as_str());
    match event.pointer("/error/message").and_then(Value::as_str) {
        Some(message) => format!("\nError: {message}\n"),
        None => text.unwrap_or_default().to_owned(),
    }
}

async fn error_text(mut response: Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ERROR_BYTES {
            break;
        }
    }
    let error: Option<Value> = serde_json::from_slice(&body).ok();
    let message = error
        .as_ref()
        .and_then(|it| it.pointer("/error/message")?.as_str());
    message.map_or_else(
        || String::from_utf8_lossy(&body).into_owned(),
        str::to_owned,
    )
}

/// What an answer was and cost, as lines behind it.
fn summary(last: &Value, id: &str) -> String {
    let text = |at: &str| {
        last.pointer(at).map_or_else(
            || "unknown".to_owned(),
            |value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            },
        )
    };
    format!(
        "\n\n– {} by {}\n– {} tokens in, {} out, cost ${}\n– request {}\n",
        text("/metadata/underlying_used_model"),
        text("/metadata/used_provider"),
        text("/usage/prompt_tokens"),
        text("/usage/completion_tokens"),
        text("/usage/cost"),
        id,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_shown_as_its_text() {
        let shown_of = |text: &str| shown(&serde_json::from_str(text).unwrap_or_default());
        assert_eq!(
            shown_of(r#"{"choices":[{"delta":{"content":"Hi"}}]}"#),
            "Hi"
        );
        assert_eq!(shown_of(r#"{"choices":[]}"#), "");
        assert_eq!(
            shown_of(r#"{"error":{"message":"gone"}}"#),
            "\nError: gone\n"
        );
    }
}
