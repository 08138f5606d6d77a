//! What a call may cost, what of it was delivered, what it took: its calls to the ledger.

use std::sync::Arc;

use filters::accounts::{Caller, Plan};
use filters::fault::Fault;
use filters::ledger::{CallOutcome, CostParts, Funding, UsageRecord};
use filters::models::metadata::PriceNotes;
use filters::models::request::ModelRequest;
use filters::models::usage::{Settlement, Usage};
use filters::money::allowance::{LimitReached, SpendingBounds};
use filters::money::{BilledTokens, Cost};
use filters::money::{PricePoint, ServiceTier, Usd};
use uuid::Uuid;

use super::{ModelExchange, PlannedAttempt, usage};
use crate::ledger::{CallEnd, NewReservation, Receipt, Reservation, ReservationError};
use crate::models::Models;
use crate::models::deployment::Deployment;
use crate::proxy::context::RequestInfo;

/// A call's place in the ledger.
#[derive(Default)]
pub(super) struct Billing {
    settlement: Option<Settlement>,
    price_notes: PriceNotes,
    /// What the parts of the running attempt took that have ended.
    parts: Option<Settlement>,
    /// What such parts cost of attempts that have failed, on platform keys: their providers have billed them.
    abandoned: Option<Cost>,
    /// Stands for the call until it has ended, whatever its end is.
    reservation: Option<Reservation>,
    /// The call's id in the ledger, in the answer and in the log line.
    log_id: Option<Uuid>,
}

impl Billing {
    /// Calls `write` with the text of the call's id.
    pub(super) fn with_log_id<T>(&self, write: impl FnOnce(Option<&str>) -> T) -> T {
        let mut buffer = Uuid::encode_buffer();
        let text = self
            .log_id
            .map(|id| &*id.hyphenated().encode_lower(&mut buffer));
        write(text)
    }

    /// What its prices depended on, once it has ended.
    pub(super) fn price_notes(&self) -> PriceNotes {
        self.price_notes
    }

    /// Records what a replayed answer takes, which nobody pays for, and the id of the call in its answer and its log line.
    pub(super) fn record_replay(&mut self, settlement: Settlement, id: Uuid) {
        self.settlement = Some(settlement);
        self.log_id = Some(id);
    }

    /// Takes the reservation of a call that has begun a job, which takes nothing before its end.
    pub(super) fn take_reservation(&mut self) -> Option<Reservation> {
        self.settlement = Some(Settlement {
            usage: Usage::default(),
            cost: None,
        });
        self.reservation.take()
    }

    /// Returns whether parts of a request have ended, which providers have billed.
    pub(super) fn has_parts(&self) -> bool {
        self.parts.is_some() || self.abandoned.is_some()
    }

    /// What parts of failed attempts cost.
    pub(super) fn abandoned(&self) -> Option<&Cost> {
        self.abandoned.as_ref()
    }

    /// What the call took, once it has ended.
    pub(super) fn settlement(&self) -> Option<&Settlement> {
        self.settlement.as_ref()
    }
}

/// Reserves the maximum that the planned attempts may cost.
///
/// Where credit or plan do not suffice, the attempts remain that need neither. Errors: 402, 503.
pub async fn reserve(exchange: &mut ModelExchange, info: &RequestInfo) -> Result<(), Fault> {
    let Some(caller) = info.caller.as_deref() else {
        return Ok(());
    };
    let mut wanted = NewReservation {
        caller,
        request_id: info.id.as_str(),
        is_stream: exchange.request.is_stream,
        funding: Funding::Byok,
        max_cost: Usd::ZERO,
        is_premium: false,
        bounds: bounds(&exchange.models, caller),
        experiment: None,
    };
    let models = Arc::clone(&exchange.models);
    let experiment = exchange.request.experiment().map(Arc::clone);
    wanted.experiment = experiment.as_ref();
    loop {
        price(exchange, exchange.attempts.iter(), &mut wanted);
        match models.ledger.reserve(&wanted).await {
            Ok(reservation) => {
                exchange.billing.log_id = Some(Uuid::from_bytes(reservation.id().0));
                exchange.billing.reservation = Some(reservation);
                return Ok(());
            }
            Err(refusal) if !avoid(exchange, &refusal) => return Err(refusal.into()),
            Err(_) => {}
        }
    }
}

/// Drops the attempts that a refusal forbids; returns whether other attempts remain.
fn avoid(exchange: &mut ModelExchange, refusal: &ReservationError) -> bool {
    let attempts = &mut exchange.attempts;
    let may_run: fn(&PlannedAttempt) -> bool = match refusal {
        ReservationError::Reached(LimitReached::Premium(_)) => |attempt| !takes_premium(attempt),
        ReservationError::Reached(LimitReached::Cycle(_) | LimitReached::Daily(_))
        | ReservationError::NoCredit
        | ReservationError::Unavailable => PlannedAttempt::is_byok,
        // These limit calls on the caller's own keys as well.
        ReservationError::Reached(
            LimitReached::Key(_) | LimitReached::KeyPeriod(..) | LimitReached::Member(_),
        ) => {
            return false;
        }
    };
    let can_avoid = attempts.iter().any(may_run) && !attempts.iter().all(may_run);
    if can_avoid {
        attempts.retain(may_run);
    }
    can_avoid
}

/// Sets what pays for attempts, and the maximum that they may cost.
pub(super) fn price<'e>(
    exchange: &'e ModelExchange,
    attempts: impl Iterator<Item = &'e PlannedAttempt> + Clone,
    wanted: &mut NewReservation<'_>,
) {
    let point = exchange.price_point;
    let has_platform = attempts.clone().any(|attempt| !attempt.is_byok());
    let paid = attempts.filter(|attempt| has_platform != attempt.is_byok());
    wanted.max_cost = most(&exchange.request, paid.clone(), point);
    wanted.is_premium = paid.clone().any(|attempt| attempt.deployment.is_premium());
    wanted.funding = match (has_platform, wanted.caller.plan) {
        (false, _) => Funding::Byok,
        _ if wanted.max_cost == Usd::ZERO => Funding::Unbilled,
        (_, Plan::None) => Funding::Credit,
        _ => Funding::Plan,
    };
    if wanted.funding != Funding::Plan {
        wanted.bounds.plan = None;
    }
}

/// Returns the most that attempts may cost, one after the other. A failed attempt costs nothing, unless it has several
/// parts, of which all but one may have ended.
fn most<'a>(
    request: &ModelRequest,
    attempts: impl Iterator<Item = &'a PlannedAttempt>,
    point: PricePoint,
) -> Usd {
    let (mut most, mut failed) = (Usd::ZERO, Usd::ZERO);
    for attempt in attempts {
        let cost = attempt.max_cost(request, point).unwrap_or(Usd::ZERO);
        most = most.max(failed.plus(cost));
        if attempt.is_split(request) {
            failed = failed.plus(cost);
        }
    }
    most
}

/// The bounds of the caller's spending.
pub(super) fn bounds(models: &Models, caller: &Caller) -> SpendingBounds {
    SpendingBounds {
        key: caller
            .terms
            .as_ref()
            .map_or_else(Default::default, |terms| terms.limits),
        member: caller.member.as_ref().and_then(|member| member.budget),
        plan: models.plans.allowance(caller.plan),
    }
}

/// Whether an attempt counts against a plan's allowance for premium models.
fn takes_premium(attempt: &PlannedAttempt) -> bool {
    !attempt.is_byok() && attempt.deployment.is_premium()
}

/// Notes that a piece of the response goes out.
pub(super) fn deliver(exchange: &mut ModelExchange) {
    let Some(mut reservation) = exchange.billing.reservation.take() else {
        return;
    };
    let is_byok = exchange.attempt().is_some_and(PlannedAttempt::is_byok);
    reservation.record_delivered(is_byok, || usage_record(exchange, &measure(exchange, 0).0));
    exchange.billing.reservation = Some(reservation);
}

/// Records what the call took, with its cost where the price is known, and charges it; the last byte of the response
/// waits for the receipt.
pub(super) fn settle(
    exchange: &mut ModelExchange,
    info: &RequestInfo,
    outcome: CallOutcome,
) -> Receipt {
    let hidden = match outcome {
        CallOutcome::ClientDisconnected => usage::hidden_reasoning(exchange, info),
        _ => 0,
    };
    let (settlement, price_notes) = measure(exchange, hidden);
    usage::tell_excess(exchange, info, &settlement.usage);
    let first_content = exchange.timing.first_content;
    let ended = CallEnd {
        usage: usage_record(exchange, &settlement),
        outcome,
        is_byok: exchange.attempt().is_some_and(PlannedAttempt::is_byok),
        duration: info.elapsed(),
        first_event: first_content.map(|first| first.duration_since(info.started)),
    };
    exchange.billing.settlement = Some(settlement);
    exchange.billing.price_notes = price_notes;
    match &mut exchange.billing.reservation {
        Some(reservation) => reservation.settle(ended),
        None => Receipt::ready(),
    }
}

/// Adds what the part at hand took to what those before it took.
pub(super) fn end_part(exchange: &mut ModelExchange) {
    let (part, _) = measure_reply(exchange, true, 0);
    let parts = exchange.billing.parts.take();
    exchange.billing.parts = Some(parts.map_or_else(|| part.clone(), |parts| parts.plus(&part)));
}

/// Keeps what the ended parts of an attempt cost that has failed. What the caller's own key has paid is not ours.
pub(super) fn abandon_parts(exchange: &mut ModelExchange) {
    let is_byok = exchange.attempt().is_some_and(PlannedAttempt::is_byok);
    let parts = exchange.billing.parts.take();
    let Some(cost) = parts.and_then(|parts| parts.cost).filter(|_| !is_byok) else {
        return;
    };
    let abandoned = exchange.billing.abandoned.unwrap_or_default();
    exchange.billing.abandoned = Some(abandoned.plus(&cost));
}

/// Records the failed call of an experiment, which costs nothing: it is a failure of its variation. The client has not
/// been told yet, so a process that is killed loses none that was.
pub(super) fn record_failure(exchange: &mut ModelExchange, info: &RequestInfo) {
    let is_of_experiment = exchange.request.experiment().is_some();
    let Some(deployment) = exchange.deployment().filter(|_| is_of_experiment) else {
        return;
    };
    let ended = CallEnd {
        usage: UsageRecord {
            attempts: u32::try_from(exchange.log.records.len()).unwrap_or(u32::MAX),
            ..of_deployment(deployment)
        },
        outcome: CallOutcome::Failed,
        is_byok: false,
        duration: info.elapsed(),
        first_event: None,
    };
    if let Some(reservation) = &mut exchange.billing.reservation {
        // No response waits for the receipt.
        drop(reservation.settle(ended));
    }
}

/// Returns what the call took so far, in all its parts, and what its prices depend on. `hidden`: tokens of reasoning that
/// nobody has seen.
fn measure(exchange: &ModelExchange, hidden: u64) -> (Settlement, PriceNotes) {
    let is_complete = exchange.reader.is_complete();
    let (reply, notes) = measure_reply(exchange, is_complete, hidden);
    let billing = &exchange.billing;
    if !billing.has_parts() {
        return (reply, notes);
    }
    let none = || Settlement {
        usage: Usage::default(),
        cost: None,
    };
    let mut sum = billing.parts.clone().unwrap_or_else(none);
    // A part that was not sent took nothing.
    if is_complete || exchange.state.is_sent() {
        sum = sum.plus(&reply);
    }
    sum.cost = match (sum.cost, billing.abandoned) {
        (Some(cost), Some(abandoned)) => Some(cost.plus(&abandoned)),
        (cost, abandoned) => cost.or(abandoned),
    };
    (sum, notes)
}

/// Returns what the reply at hand took so far, and what its prices depend on: on the tier that was asked for, or on the usual one
/// where the provider says that it used that. Another one was not reserved for. `is_whole`: it has come to its end.
pub(super) fn measure_reply(
    exchange: &ModelExchange,
    is_whole: bool,
    hidden: u64,
) -> (Settlement, PriceNotes) {
    let usage = usage::possible(exchange, is_whole, hidden);
    let asked = exchange.price_point;
    let used_tier = exchange.reader.service_tier().unwrap_or(asked.tier);
    let billed = match used_tier {
        tier @ ServiceTier::Standard => PricePoint { tier, ..asked },
        _ => asked,
    };
    let deployment = exchange.deployment();
    let prices = deployment.and_then(|deployment| deployment.prices.as_ref());
    let notes = PriceNotes {
        requested_tier: asked.tier,
        used_tier,
        is_off_peak: prices.is_some_and(|prices| prices.is_off_peak(asked.start_s)),
        discount: prices.and_then(|prices| prices.discount()),
    };
    let search = deployment.map(|deployment| deployment.mapping.search);
    let tokens = BilledTokens {
        web_searches: search.unwrap_or_default().billed(usage.web_searches),
        annotates: exchange.request.cost_inputs.annotates,
        ..usage.billed()
    };
    let cost = prices.map(|prices| prices.at(billed).cost(&tokens));
    (Settlement { usage, cost }, notes)
}

pub(super) fn usage_record(exchange: &ModelExchange, settlement: &Settlement) -> UsageRecord {
    let usage = &settlement.usage;
    let Some(deployment) = exchange.deployment() else {
        return UsageRecord::default();
    };
    // The running attempt is listed only once it has ended.
    let records = &exchange.log.records;
    let has_ended = records.last().is_some_and(|last| last.succeeded);
    let attempts = records.len() + usize::from(!has_ended);
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
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        ..of_deployment(deployment)
    }
}

/// Returns the usage of a call that has taken nothing.
fn of_deployment(deployment: &Deployment) -> UsageRecord {
    UsageRecord {
        model: Arc::clone(&deployment.model.id),
        provider: Arc::clone(&deployment.provider.name),
        upstream_model: Arc::clone(&deployment.mapping.name),
        region: deployment.region.clone(),
        is_premium: deployment.is_premium(),
        ..UsageRecord::default()
    }
}
