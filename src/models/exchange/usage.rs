//! What a reply took: as its provider reports it, as far as that can be true, and what it does not tell.

use filters::models::routing::usage_limits::usage_limits;
use filters::models::usage::Usage;

use super::ModelExchange;
use crate::proxy::context::RequestInfo;

/// Returns what the reply at hand took so far, as far as that can be true.
pub(super) fn possible(exchange: &ModelExchange, is_whole: bool, hidden: u64) -> Usage {
    let request = &exchange.request;
    let prompt_bytes = exchange.cursor.parts.text_bytes;
    let usage = exchange.reader.usage(prompt_bytes, request.units, is_whole);
    let Some(deployment) = exchange.deployment() else {
        return usage;
    };
    let (mapping, target) = (&deployment.mapping, deployment.target());
    let made = (target.max_searches(request), usage.images);
    let usage = usage.within(&usage_limits(mapping, request, made));
    let told = deployment.wire.max_output(request, &target);
    let choices = u64::from(request.needs.choices.max(1));
    let most = mapping.bounds.output(told).saturating_mul(choices);
    usage.with_hidden(hidden, most)
}

/// Says what was reported and cannot be true.
pub(super) fn tell_excess(exchange: &ModelExchange, info: &RequestInfo, usage: &Usage) {
    let Some(deployment) = exchange.deployment().filter(|_| usage.set_aside > 0) else {
        return;
    };
    let (request, excess) = (info.id.as_str(), usage.set_aside);
    let (model, provider) = (&deployment.model.id, &deployment.provider.name);
    log::warn!(
        "request {request}: {provider} reports more usage than {model} can take: {excess} tokens, searches or units are set aside and not charged"
    );
}

/// Returns the tokens of reasoning that nobody has seen, of a provider that has not said what it took: those it can have made
/// in the time before its first content. 0: the model does not reason, or tells its reasoning.
pub(super) fn hidden_reasoning(exchange: &ModelExchange, info: &RequestInfo) -> u64 {
    let (request, reader) = (&exchange.request, &exchange.reader);
    let reported = reader.reported();
    let is_known = reader.is_complete() || reported.has_finished || reported.tells_reasoning;
    let reasons = exchange.deployment().is_some_and(|deployment| {
        let thinking = &deployment.mapping.thinking;
        request.payload.chat().is_some() && thinking.is_on(&request.needs)
    });
    if is_known || !reasons || !exchange.state.is_sent() {
        return 0;
    }
    let now_ms = exchange.models.clock.ms_at(info.now);
    let measured = exchange.measured.as_ref();
    measured.map_or(0, |measured| measured.silent_tokens(now_ms))
}
