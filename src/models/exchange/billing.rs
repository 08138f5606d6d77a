//! A call's place in the ledger: what is reserved for it, what its ended parts took, and what it took in the end.

use filters::models::metadata::PriceNotes;
use filters::models::usage::{Settlement, Usage};
use filters::money::Cost;
use uuid::Uuid;

use crate::ledger::{CallEnd, Receipt, Reservation};

/// See the module.
#[derive(Default)]
pub(super) struct Billing {
    settlement: Option<Settlement>,
    price_notes: PriceNotes,
    /// What the parts of the running attempt took that have ended.
    parts: Option<Settlement>,
    /// What such parts cost of attempts that have failed, on platform keys: their providers have billed them.
    abandoned: Option<Cost>,
    /// Stands for the call until it has ended, whatever its end is.
    pub(super) reservation: Option<Reservation>,
    /// The call's id in the ledger, in the answer and in the log line.
    log_id: Option<Uuid>,
}

/// What nothing takes.
fn nothing() -> Settlement {
    Settlement {
        usage: Usage::default(),
        cost: None,
    }
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

    /// What the call took, once it has ended.
    pub(super) fn settlement(&self) -> Option<&Settlement> {
        self.settlement.as_ref()
    }

    /// What parts of failed attempts cost.
    pub(super) fn abandoned(&self) -> Option<&Cost> {
        self.abandoned.as_ref()
    }

    /// Returns whether parts of a request have ended, which providers have billed.
    pub(super) fn has_parts(&self) -> bool {
        self.parts.is_some() || self.abandoned.is_some()
    }

    /// Begins the call with what is reserved for it.
    pub(super) fn begin(&mut self, reservation: Reservation) {
        self.log_id = Some(Uuid::from_bytes(reservation.id().0));
        self.reservation = Some(reservation);
    }

    /// Records what a replayed answer takes, which nobody pays for, and the id of the call in its answer and its log line.
    pub(super) fn record_replay(&mut self, settlement: Settlement, id: Uuid) {
        self.settlement = Some(settlement);
        self.log_id = Some(id);
    }

    /// Takes the reservation of a call that has begun a job, which takes nothing before its end.
    pub(super) fn begin_job(&mut self) -> Option<Reservation> {
        self.settlement = Some(nothing());
        self.reservation.take()
    }

    /// Adds what a part took that has ended to what those before it took.
    pub(super) fn end_part(&mut self, part: Settlement) {
        let parts = self.parts.take();
        self.parts = Some(parts.map_or_else(|| part.clone(), |parts| parts.plus(&part)));
    }

    /// Keeps what the ended parts of an attempt cost that has failed. What the caller's own key has paid is not ours.
    pub(super) fn abandon_parts(&mut self, is_byok: bool) {
        let parts = self.parts.take().and_then(|parts| parts.cost);
        if let Some(cost) = parts.filter(|_| !is_byok) {
            self.abandoned = Some(self.abandoned.unwrap_or_default().plus(&cost));
        }
    }

    /// Returns what all parts took, with that of the `reply` at hand, unless its request was not sent.
    pub(super) fn sum(&self, reply: Settlement, is_sent: bool) -> Settlement {
        if !self.has_parts() {
            return reply;
        }
        let mut sum = self.parts.clone().unwrap_or_else(nothing);
        if is_sent {
            sum = sum.plus(&reply);
        }
        sum.cost = match (sum.cost, self.abandoned) {
            (Some(cost), Some(abandoned)) => Some(cost.plus(&abandoned)),
            (cost, abandoned) => cost.or(abandoned),
        };
        sum
    }

    /// Records what the call took.
    pub(super) fn record(&mut self, settlement: Settlement, price_notes: PriceNotes) {
        self.settlement = Some(settlement);
        self.price_notes = price_notes;
    }

    /// Charges the call.
    pub(super) fn settle(&mut self, ended: CallEnd) -> Receipt {
        match &mut self.reservation {
            Some(reservation) => reservation.settle(ended),
            None => Receipt::ready(),
        }
    }
}
