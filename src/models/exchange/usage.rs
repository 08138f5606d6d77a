//! The usage of a reply: the plausible part of the provider's report, an estimate of the rest, and the cost of both.

use std::sync::Arc;

use filters::ledger::{CostParts, UsageRecord};
use filters::models::metadata::PriceNotes;
use filters::models::routing::usage_limits::usage_limits;
use filters::models::usage::{Settlement, Usage};
use filters::money::{BilledTokens, PricePoint, ServiceTier};

use super::attempt::Attempt;
use super::call::Call;
use crate::models::deployment::Deployment;
use crate::proxy::context::RequestInfo;

impl Attempt {
    /// Returns the usage of the current reply so far, as far as it is plausible.
    fn usage(&self, call: &Call, is_whole: bool, hidden: u64) -> Usage {
        let request = &call.request;
        let prompt_bytes = self.cursor.parts.text_bytes;
        let usage = self.reader.usage(prompt_bytes, request.units, is_whole);
        let Some(attempt) = self.planned(call) else {
            return usage;
        };
        let deployment = &attempt.deployment;
        let (mapping, target) = (&deployment.mapping, deployment.target());
        let made = (target.max_searches(request), usage.images);
        let usage = usage.within(&usage_limits(mapping, request, made));
        let told = attempt.codec.max_output(request, &target);
        let choices = u64::from(request.needs.choices.max(1));
        let most = mapping.bounds.output(told).saturating_mul(choices);
        usage.with_hidden(hidden, most)
    }

    /// Returns the usage of the current reply so far, and the facts on which its prices depend. The tier is the
    /// requested one, or the usual one if the provider reports that; another tier was not reserved. `is_whole` tells
    /// that the reply has ended, and `hidden` are the reasoning tokens that were not visible.
    pub(super) fn measure_reply(
        &self,
        call: &Call,
        is_whole: bool,
        hidden: u64,
    ) -> (Settlement, PriceNotes) {
        let is_api_equivalent = self
            .planned(call)
            .is_some_and(|attempt| attempt.keys.passed().is_some());
        let usage = Usage {
            is_api_equivalent,
            ..self.usage(call, is_whole, hidden)
        };
        let asked = call.price_point;
        let used_tier = self.reader.service_tier().unwrap_or(asked.tier);
        let billed = match used_tier {
            tier @ ServiceTier::Standard => PricePoint { tier, ..asked },
            _ => asked,
        };
        let deployment = self.deployment(call);
        let prices = deployment.and_then(|deployment| deployment.prices.as_ref());
        let notes = PriceNotes {
            requested_tier: asked.tier,
            used_tier,
            is_off_peak: prices.is_some_and(|prices| prices.is_off_peak(asked.start_s)),
            discount: prices.and_then(|prices| prices.discount()),
            is_api_equivalent,
        };
        let search = deployment.map(|deployment| deployment.mapping.search);
        let tokens = BilledTokens {
            web_searches: search.unwrap_or_default().billed(usage.web_searches),
            annotates: call.request.cost_inputs.annotates,
            ..usage.billed()
        };
        let cost = prices.map(|prices| prices.at(billed).cost(&tokens));
        (Settlement { usage, cost }, notes)
    }

    /// Returns the record of the usage, as the one of `attempts` that the ledger charges.
    pub(super) fn usage_record(
        &self,
        call: &Call,
        settlement: &Settlement,
        attempts: u32,
    ) -> UsageRecord {
        let usage = &settlement.usage;
        let Some(deployment) = self.deployment(call) else {
            return UsageRecord::default();
        };
        UsageRecord {
            prompt_tokens: usage.prompt,
            cached_tokens: usage.cached,
            cache_write_tokens: usage.cache_write,
            completion_tokens: usage.completion,
            reasoning_tokens: usage.reasoning.unwrap_or(0),
            web_searches: usage.web_searches,
            units: usage.units,
            cost: settlement.cost.as_ref().map(CostParts::from),
            is_estimated: usage.estimated,
            ..empty_record(deployment, attempts)
        }
    }

    /// Logs reported usage that is implausible.
    pub(super) fn log_excess(&self, call: &Call, info: &RequestInfo, usage: &Usage) {
        let Some(deployment) = self.deployment(call).filter(|_| usage.set_aside > 0) else {
            return;
        };
        let (request, excess) = (info.id.as_str(), usage.set_aside);
        let (model, provider) = (&deployment.model.id, &deployment.provider.name);
        log::warn!(
            "request {request}: {provider} reports more usage than {model} can take: {excess} tokens, searches or units are set aside and not charged"
        );
    }

    /// Returns the invisible reasoning tokens of a provider without a report: as many as it can have made before its
    /// first content. Returns 0 if the model does not reason, or shows its reasoning.
    pub(super) fn hidden_reasoning(&self, call: &Call, now_ms: u64) -> u64 {
        let (request, reader) = (&call.request, &self.reader);
        let reported = reader.reported();
        let is_known = reader.is_complete() || reported.has_finished || reported.tells_reasoning;
        let reasons = self.deployment(call).is_some_and(|deployment| {
            let thinking = &deployment.mapping.thinking;
            request.payload.is_chat() && thinking.is_on(&request.needs)
        });
        let measured = self.measured.as_ref().filter(|_| !is_known && reasons);
        measured.map_or(0, |measured| measured.silent_tokens(now_ms))
    }
}

/// Returns the record of a call without usage.
pub(super) fn empty_record(deployment: &Deployment, attempts: u32) -> UsageRecord {
    UsageRecord {
        model: Arc::clone(&deployment.model.id),
        provider: Arc::clone(&deployment.provider.name),
        upstream_model: Arc::clone(&deployment.mapping.name),
        region: deployment.region.clone(),
        is_premium: deployment.is_premium(),
        attempts,
        ..UsageRecord::default()
    }
}
