//! The hedge of a call: a second [`Attempt`] beside the running one, and the reservation for the one that is
//! cancelled.

use std::sync::{Arc, Mutex, PoisonError};

use filters::ledger::CallOutcome;
use filters::models::metadata::Owed;
use filters::models::request::ModelRequest;
use filters::models::routing::hedge::is_owed;
use filters::models::wires::{Failure, FailureKind};
use futures::FutureExt;
use uuid::Uuid;

use super::attempt::Attempt;
use super::call::Call;
use super::planned_attempt::PlannedAttempt;
use crate::ledger::{CallEnd, NewReservation, Receipt, Reservation};
use crate::models::Models;
use crate::proxy::context::RequestInfo;
use crate::proxy::hedge::{Permission, Race};

/// The hedge of a call, also before it begins.
pub(super) struct Hedge {
    pub(super) race: Arc<Race>,
    /// The attempt while it runs beside the attempt of Pingora's loop.
    pub(super) beside: Option<Attempt>,
    /// The reservation for the cancelled attempt, if its provider bills it. The hedge's own future makes it.
    reserved: Arc<Mutex<Option<Reservation>>>,
    pub(super) stage: HedgeStage,
    /// The receipt for the cost of the cancelled attempt. The last byte of the response waits for it.
    pub(super) receipt: Option<Receipt>,
}

/// The stage of a hedge.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HedgeStage {
    /// It may begin, or runs beside the attempt of Pingora's loop.
    Open,
    /// The hedge's content came first.
    Won,
    /// The hedge is the next attempt of Pingora's loop.
    Next,
    /// The hedge is the running attempt of Pingora's loop.
    Adopted,
    /// No hedge runs or begins any more.
    Over,
}

impl Hedge {
    /// Returns the hedge that a call may have. The call is a stream with more than one planned attempt. It makes no
    /// images, which take long without any event and would be paid twice, and has no upload, which would be sent
    /// twice.
    pub(super) fn new(
        models: &Models,
        request: &ModelRequest,
        attempts: &[PlannedAttempt],
    ) -> Option<Box<Self>> {
        let hedging = models.hedging.as_ref()?;
        let operation = request.payload.operation();
        let is_drawn = operation.draws() || request.image_count().is_some();
        let is_fit = !is_drawn && !operation.is_upload();
        let may_be = request.is_stream && attempts.len() > 1 && is_fit;
        may_be.then(|| {
            Box::new(Self {
                race: Arc::new(Race::new(hedging.after)),
                beside: None,
                reserved: Arc::default(),
                stage: HedgeStage::Open,
                receipt: None,
            })
        })
    }

    /// Returns whether the hedge is the running attempt of Pingora's loop.
    pub(super) fn is_adopted(&self) -> bool {
        self.stage == HedgeStage::Adopted
    }

    /// Returns whether the hedge runs beside the attempt of Pingora's loop.
    pub(super) fn is_beside(&self) -> bool {
        self.beside.is_some()
    }

    /// Returns whether its provider has to be paid if the hedge is cancelled.
    pub(super) fn is_owed(&self, call: &Call) -> bool {
        let beside = self.beside.as_ref();
        let bills = beside.is_some_and(|beside| beside.bills_after_disconnect(call));
        is_owed(self.race.is_sent(), bills)
    }

    /// Ends the hedge, and releases a reservation that is not needed.
    pub(super) fn end(&mut self) {
        self.race.cancel();
        self.beside = None;
        self.stage = HedgeStage::Over;
        drop(self.take_reservation());
    }

    /// Takes the attempt that ran beside the one of Pingora's loop, to be the next one there.
    pub(super) fn promote(&mut self) -> Option<Attempt> {
        let beside = self.beside.take()?;
        self.stage = HedgeStage::Next;
        drop(self.take_reservation());
        Some(beside)
    }

    /// Returns a future that reserves the maximum cost of the cancelled attempt of two. It resolves to whether
    /// credit, plan and limits cover the cost. Returns `None` if neither attempt would be billed then, or the call
    /// costs nothing.
    pub(super) fn reserve(
        &self,
        call: &Call,
        models: &Models,
        info: &RequestInfo,
        pair: [usize; 2],
    ) -> Option<Permission> {
        let caller = Arc::clone(info.caller.as_ref()?);
        let billed = pair.iter().filter_map(|at| call.attempts.get(*at));
        let billed = billed.filter(|attempt| attempt.bills_after_disconnect());
        billed.clone().next()?;
        let NewReservation {
            is_stream,
            funding,
            max_cost,
            is_premium,
            bounds,
            ..
        } = call.reservation(models, &caller, info, billed);
        let ledger = Arc::clone(&models.ledger);
        let reserved = Arc::clone(&self.reserved);
        let request_id = info.id.as_str().to_owned();
        let experiment = call.request.experiment().map(Arc::clone);
        let session = call.usage_session().map(Arc::clone);
        let budgets = call.budgets.all.clone();
        let marks = call.budgets.marks.clone();
        let reserving = async move {
            let wanted = NewReservation {
                caller: &caller,
                request_id: &request_id,
                is_stream,
                funding,
                max_cost,
                is_premium,
                bounds,
                experiment: experiment.as_ref(),
                session: session.as_ref(),
                budgets: budgets.as_ref(),
                marks: marks.as_ref(),
            };
            let reservation = ledger.reserve(&wanted).await.ok();
            let is_covered = reservation.is_some();
            *reserved.lock().unwrap_or_else(PoisonError::into_inner) = reservation;
            is_covered
        };
        Some(reserving.boxed())
    }

    fn take_reservation(&self) -> Option<Reservation> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.take()
    }

    /// Records a cancelled attempt, and charges it if its provider bills it.
    pub(super) fn record_cancelled(
        &mut self,
        cancelled: &mut Attempt,
        call: &mut Call,
        (info, now_ms): (&RequestInfo, u64),
        is_owed: bool,
    ) {
        let owed = is_owed.then(|| self.charge(cancelled, call, info));
        let failure = Failure::new(FailureKind::Cancelled);
        cancelled.record_end(call, info, &failure, owed.flatten());
        call.log.failures.push(failure);
        if let Some(measured) = cancelled.measured.take() {
            measured.record_cancelled(now_ms);
        }
    }

    /// Charges a cancelled attempt: its prompt, and its reported usage. Returns the charge, or `None` without a
    /// reservation.
    ///
    /// For the provider we are a client that has disconnected, and the ledger names the outcome like that.
    fn charge(&mut self, cancelled: &Attempt, call: &Call, info: &RequestInfo) -> Option<Owed> {
        let mut reservation = self.take_reservation()?;
        let (settlement, _) = cancelled.measure_reply(call, false, 0);
        let log_id = Uuid::from_bytes(reservation.id().0);
        self.receipt = Some(reservation.settle(CallEnd {
            usage: cancelled.usage_record(call, &settlement, 1),
            outcome: CallOutcome::ClientDisconnected,
            is_byok: cancelled.is_byok(call),
            duration: info.elapsed(),
            first_event: None,
        }));
        if let Some(deployment) = cancelled.deployment(call) {
            deployment.metrics.count_usage(&settlement);
        }
        Some(Owed {
            log_id: log_id.hyphenated().to_string().into(),
            cost: settlement.cost.map(|cost| cost.total),
        })
    }
}
