//! Histograms of providers and models.

use std::time::Duration;

use serde_json::json;

use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply, usage};
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// The value of a series of the model `chat` at the provider `first`.
fn value(metrics: &str, name: &str, more: &str) -> f64 {
    let series = format!("{name}{{model=\"chat\",provider=\"first\"{more}}} ");
    let found = metrics.lines().find_map(|line| line.strip_prefix(&series));
    let found = found.unwrap_or_else(|| panic!("{series}\n{metrics}"));
    found.parse().unwrap()
}

#[test]
fn the_first_byte_of_a_provider_is_timed_from_its_attempt() {
    let refusing = Upstream::always(Reply::json(429, "{}").before(Duration::from_millis(400)));
    let slow = Upstream::always(reply().before(Duration::from_millis(400)));
    let gateway = Gateway::between(&refusing.url(), &slow.url());
    let answer = gateway.chat(PLAIN);
    gateway.log_line(answer.header("x-request-id").unwrap());
    let metrics = gateway.metrics();
    let name = "weirgate_upstream_first_byte_seconds";
    let of_second = metrics.lines().find_map(|line| {
        line.strip_prefix(&format!(
            "{name}_sum{{model=\"chat\",provider=\"second\"}} "
        ))
    });
    let seconds: f64 = of_second.unwrap().parse().unwrap();
    // The first attempt took as long, and is no part of it.
    assert!((0.4..0.8).contains(&seconds), "{seconds}");
    // A refusal says nothing of how fast a model is.
    let refused = format!("{name}_count{{model=\"chat\",provider=\"first\"}}");
    assert!(!metrics.contains(&refused), "{metrics}");
}

#[test]
fn the_share_of_a_prompt_that_was_cached_is_counted() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = gateway.chat(PLAIN);
    gateway.log_line(answer.header("x-request-id").unwrap());
    let metrics = gateway.metrics();
    // 400 of 1000 tokens.
    let name = "weirgate_cached_prompt_ratio";
    assert_eq!(value(&metrics, &format!("{name}_sum"), ""), 0.4);
    assert_eq!(
        value(&metrics, &format!("{name}_bucket"), ",le=\"0.25\""),
        0.0
    );
}

#[test]
fn the_time_per_token_is_that_of_a_stream_after_its_first_content() {
    let slow = Reply::stream()
        .event(&chunk(json!({"role": "assistant", "content": "hel"}), None))
        .pause(Duration::from_millis(200))
        .event(&chunk(json!({"content": "lo"}), Some("stop")))
        .event(&usage())
        .event("[DONE]")
        .end();
    let first = Upstream::always(slow);
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = gateway.chat(STREAM);
    gateway.log_line(answer.header("x-request-id").unwrap());
    let metrics = gateway.metrics();
    let name = "weirgate_output_token_seconds";
    assert_eq!(value(&metrics, &format!("{name}_count"), ""), 1.0);
    // Of two tokens one came after the first content.
    let sum = value(&metrics, &format!("{name}_sum"), "");
    assert!((0.19..5.0).contains(&sum), "{sum}");
}
