//! What a call may cost, what has gone out of it, what it took: the calls of the journey to the ledger.

use std::sync::Arc;

use filters::accounts::{Caller, Plan};
use filters::fault::Fault;
use filters::ledger::{CallOutcome, CostParts, Funding, UsageRecord};
use filters::money::Usd;
use filters::money::allowance::{LimitReached, SpendingBounds};
use tokio::time::Instant;

use super::{ModelExchange, PlannedAttempt, Settlement};
use crate::app::state::AppState;
use crate::ledger::{CallEnd, NewReservation, Receipt, ReservationError};
use crate::proxy::context::Context;

/// Reserves the most that the planned attempts may cost.
///
/// Where credit or plan do not reach, attempts remain that need neither. Errors: 402, 503.
pub async fn reserve(house: &Arc<AppState>, ctx: &mut Context) -> Result<(), Fault> {
    let (Some(call), Some(caller)) = (ctx.call.as_deref_mut(), ctx.caller.as_deref()) else {
        return Ok(());
    };
    let mut asked = NewReservation {
        caller,
        request_id: ctx.request_id.text(),
        is_stream: call.request.stream,
        funding: Funding::Byok,
        max_cost: Usd::ZERO,
        is_premium: false,
        bounds: bounds(house, caller),
    };
    loop {
        price(call, &mut asked);
        match house.ledger.reserve(&asked).await {
            Ok(reservation) => {
                call.reservation = Some(reservation);
                return Ok(());
            }
            Err(refusal) if !avoid(&mut call.steps, &refusal) => return Err(refusal.into()),
            Err(_) => {}
        }
    }
}

/// Drops the attempts that a refusal forbids; answers whether others remain that it says nothing of.
fn avoid(steps: &mut Vec<PlannedAttempt>, refusal: &ReservationError) -> bool {
    let may_run: fn(&PlannedAttempt) -> bool = match refusal {
        ReservationError::Reached(LimitReached::Premium(_)) => |step| !takes_premium(step),
        ReservationError::Reached(LimitReached::Cycle(_) | LimitReached::Daily(_))
        | ReservationError::NoCredit
        | ReservationError::Unavailable => PlannedAttempt::is_own,
        // These bound own keys as well.
        ReservationError::Reached(
            LimitReached::Key(_) | LimitReached::KeyPeriod(..) | LimitReached::Member(_),
        ) => {
            return false;
        }
    };
    let can_avoid = steps.iter().any(may_run) && !steps.iter().all(may_run);
    if can_avoid {
        steps.retain(may_run);
    }
    can_avoid
}

/// What pays for the planned attempts, and the most that they may cost.
fn price(call: &ModelExchange, asked: &mut NewReservation<'_>) {
    let has_ours = call.steps.iter().any(|step| !step.is_own());
    let steps = call.steps.iter().filter(|step| has_ours != step.is_own());
    asked.max_cost = steps
        .clone()
        .filter_map(|step| step.worst(&call.request))
        .fold(Usd::ZERO, Usd::max);
    asked.is_premium = steps.clone().any(is_premium);
    asked.funding = match (has_ours, asked.caller.plan) {
        (false, _) => Funding::Byok,
        _ if asked.max_cost == Usd::ZERO => Funding::Unbilled,
        (_, Plan::None) => Funding::Credit,
        _ => Funding::Plan,
    };
    if asked.funding != Funding::Plan {
        asked.bounds.plan = None;
    }
}

/// What bounds the spending of the caller.
fn bounds(house: &AppState, caller: &Caller) -> SpendingBounds {
    SpendingBounds {
        key: caller
            .terms
            .as_ref()
            .map_or_else(Default::default, |terms| terms.limits),
        member: caller.member.as_ref().and_then(|member| member.budget),
        plan: house.settings.plans.of(caller.plan),
    }
}

/// Whether an attempt takes of what plans allow for premium models.
fn takes_premium(step: &PlannedAttempt) -> bool {
    !step.is_own() && is_premium(step)
}

fn is_premium(step: &PlannedAttempt) -> bool {
    step.mapping
        .prices
        .is_some_and(|prices| prices.is_premium())
}

/// A piece of the answer goes out.
pub fn delivered(call: &mut ModelExchange) {
    let Some(mut reservation) = call.reservation.take() else {
        return;
    };
    let is_own = call.step().is_some_and(PlannedAttempt::is_own);
    reservation.record_delivered(is_own, || {
        let usage = call.receiving.usage(call.request.text_bytes);
        let cost = call.step().and_then(|step| step.mapping.cost(&usage));
        usage_record(call, &Settlement { usage, cost })
    });
    call.reservation = Some(reservation);
}

/// Keeps what the call took, with its cost where the price is known, and charges it; the last byte of the answer
/// waits for the ticket.
pub fn settle(call: &mut ModelExchange, outcome: CallOutcome, started: Instant) -> Receipt {
    let usage = call.receiving.usage(call.request.text_bytes);
    let cost = call.step().and_then(|step| step.mapping.cost(&usage));
    let settled = Settlement { usage, cost };
    let ended = CallEnd {
        usage: usage_record(call, &settled),
        outcome,
        is_byok: call.step().is_some_and(PlannedAttempt::is_own),
        duration: started.elapsed(),
        first_event: call
            .first_content
            .map(|first| first.duration_since(started)),
    };
    call.settled = Some(settled);
    match &mut call.reservation {
        Some(reservation) => reservation.settle(ended),
        None => Receipt::ready(),
    }
}

fn usage_record(call: &ModelExchange, settled: &Settlement) -> UsageRecord {
    let usage = &settled.usage;
    let Some(step) = call.step() else {
        return UsageRecord::default();
    };
    // The running attempt is listed only once it has ended.
    let has_ended = call.attempted.last().is_some_and(|last| last.succeeded);
    let attempts = call.attempted.len() + usize::from(!has_ended);
    UsageRecord {
        model: step.model.id.clone(),
        provider: (*step.upstream.name).into(),
        upstream_model: step.mapping.name.clone(),
        region: step.region.clone(),
        prompt_tokens: usage.prompt,
        cached_tokens: usage.cached,
        cache_write_tokens: usage.cache_write,
        completion_tokens: usage.completion,
        reasoning_tokens: usage.reasoning.unwrap_or(0),
        web_searches: usage.web_searches,
        cost: settled.cost.as_ref().map(CostParts::from),
        is_estimated: usage.estimated,
        is_premium: is_premium(step),
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
    }
}
