//! The one of two attempts that is cancelled: what is reserved for it, what it costs, and its entry in the records.

use std::sync::{Arc, PoisonError};

use filters::ledger::{CallOutcome, Funding, UsageRecord};
use filters::models::metadata::Owed;
use filters::models::wires::{Failure, FailureKind};
use filters::money::Usd;
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use super::{ModelExchange, PlannedAttempt, billing};
use crate::ledger::{CallEnd, NewReservation, Receipt};
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::Gate;
use crate::proxy::hedge::Permission;

/// Returns what reserves the maximum that the one of two attempts may cost that is cancelled; `None`: neither is billed then,
/// or nobody pays. It resolves to whether credit, plan and limits cover it.
pub(super) fn reserve(
    exchange: &ModelExchange,
    info: &RequestInfo,
    pair: [usize; 2],
) -> Option<Permission> {
    let caller = Arc::clone(info.caller.as_ref()?);
    let billed = pair.iter().filter_map(|at| exchange.attempts.get(*at));
    let billed = billed.filter(|attempt| attempt.bills_after_disconnect());
    billed.clone().next()?;
    let mut wanted = NewReservation {
        caller: &caller,
        request_id: "",
        is_stream: true,
        funding: Funding::Byok,
        max_cost: Usd::ZERO,
        is_premium: false,
        bounds: billing::bounds(&exchange.models, &caller),
        experiment: None,
    };
    billing::price(exchange, billed, &mut wanted);
    let (funding, max_cost, is_premium, bounds) = (
        wanted.funding,
        wanted.max_cost,
        wanted.is_premium,
        wanted.bounds,
    );
    let ledger = Arc::clone(&exchange.models.ledger);
    let reserved = exchange.hedge.as_ref()?.reserved();
    let request_id = info.id.as_str().to_owned();
    let experiment = exchange.request.experiment().map(Arc::clone);
    let reserving = async move {
        let wanted = NewReservation {
            caller: &caller,
            request_id: &request_id,
            is_stream: true,
            funding,
            max_cost,
            is_premium,
            bounds,
            experiment: experiment.as_ref(),
        };
        let reservation = ledger.reserve(&wanted).await.ok();
        let is_covered = reservation.is_some();
        *reserved.lock().unwrap_or_else(PoisonError::into_inner) = reservation;
        is_covered
    };
    Some(reserving.boxed())
}

/// Charges a cancelled attempt: its prompt, and what was reported of it. Returns what is owed; `None`: nothing was reserved.
///
/// To its provider we are a client that has left, and so it is called in the ledger.
fn settle(exchange: &mut ModelExchange, info: &RequestInfo) -> Option<Owed> {
    let mut reservation = exchange.hedge.as_ref()?.take_reservation()?;
    let (settlement, _) = billing::measure_reply(exchange, false, 0);
    let log_id = Uuid::from_bytes(reservation.id().0);
    let receipt = reservation.settle(CallEnd {
        usage: UsageRecord {
            attempts: 1,
            ..billing::usage_record(exchange, &settlement)
        },
        outcome: CallOutcome::ClientDisconnected,
        is_byok: exchange.attempt().is_some_and(PlannedAttempt::is_byok),
        duration: info.elapsed(),
        first_event: None,
    });
    if let Some(deployment) = exchange.deployment() {
        deployment.metrics.count_usage(&settlement);
    }
    if let Some(hedge) = &mut exchange.hedge {
        hedge.keep_receipt(receipt);
    }
    Some(Owed {
        log_id: log_id.hyphenated().to_string().into(),
        cost: settlement.cost.map(|cost| cost.total),
    })
}

/// Records that an attempt is cancelled, and charges it if it is owed.
pub(super) fn record(exchange: &mut ModelExchange, info: &RequestInfo, is_owed: bool) {
    let owed = is_owed.then(|| settle(exchange, info));
    let failure = Failure::new(FailureKind::Cancelled);
    if let Some(mut record) = exchange.record(Some(&failure)) {
        record.owed = owed.flatten();
        if let Some(deployment) = exchange.deployment() {
            deployment.metrics.count_attempt(&record);
        }
        exchange.log.records.push(record);
        exchange.log.failures.push(failure);
    }
    let now_ms = exchange.models.clock.ms_at(info.now);
    if let Some(measured) = exchange.measured.take() {
        measured.record_cancelled(now_ms);
    }
}

/// Returns the gate of a response whose last byte waits for this receipt, for that of a cancelled attempt, and until others
/// are `told` of its session.
pub(super) fn gate(
    exchange: &mut ModelExchange,
    receipt: Receipt,
    told: Option<BoxFuture<'static, ()>>,
) -> Option<Gate> {
    let hedge = exchange.hedge.as_mut();
    let cancelled = hedge.and_then(|hedge| hedge.take_receipt());
    let receipts = [Some(receipt), cancelled].map(|it| it.filter(|receipt| !receipt.is_ready()));
    if receipts.iter().all(Option::is_none) && told.is_none() {
        return None;
    }
    let durable = async {
        for receipt in receipts.into_iter().flatten() {
            if !receipt.is_durable().await {
                return false;
            }
        }
        true
    };
    let told = async {
        if let Some(told) = told {
            told.await;
        }
    };
    Some(async { futures::join!(durable, told).0 }.boxed())
}
