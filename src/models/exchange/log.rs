//! A call's members of the log line. Source: docs/interface.md, Logs.

use filters::json::Object;
use filters::models::metadata::AttemptRecord;

use super::ModelExchange;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::log_ms;

/// Writes the model, the attempts, and what the call took.
pub(super) fn write(exchange: &ModelExchange, info: &RequestInfo, line: &mut Object<'_>) {
    let deployment = exchange.deployment();
    let used_model = deployment.map_or("", |deployment| &deployment.used_model);
    let provider = deployment.map_or("", |deployment| &deployment.provider.name);
    line.text("model", &exchange.request.model);
    line.text("used_model", used_model);
    line.text("provider", provider);
    line.bool("stream", exchange.request.is_stream);
    line.array("attempts", &exchange.log.records, AttemptRecord::write);
    match exchange.timing.first_content {
        Some(at) => log_ms(line, "first_event_ms", at.duration_since(info.started)),
        None => line.raw("first_event_ms", "null"),
    }
    let Some(settled) = exchange.billing.settlement() else {
        return;
    };
    line.number("prompt_tokens", settled.usage.prompt);
    line.number("completion_tokens", settled.usage.completion);
    line.number("cached_tokens", settled.usage.cached);
    line.bool("estimated", settled.usage.estimated);
    let cost = settled.cost.as_ref().map(|cost| cost.total.to_string());
    line.text_or_null("cost", cost.as_deref());
}
