//! A call's state in the ledger: its reservation, the usage of its ended parts, and its final usage.

use std::borrow::Cow;

use filters::ledger::EntryId;
use filters::models::metadata::PriceNotes;
use filters::models::usage::{Settlement, Usage};
use filters::money::{Cost, Details, Usd};
use uuid::Uuid;

use crate::ledger::{CallEnd, Receipt, Reservation};

/// A call's state in the ledger.
#[derive(Default)]
pub(super) struct Billing {
    settlement: Option<Settlement>,
    /// The usage of the ended turns of the answer and of the searches between them, which are charged.
    turns: Option<Box<Settlement>>,
    price_notes: PriceNotes,
    /// The usage of the ended parts of the running attempt.
    parts: Option<Box<Settlement>>,
    /// The cost of ended parts of failed attempts on platform keys. Their providers have billed these parts.
    abandoned: Option<Box<Cost>>,
    /// The reservation. If it is dropped early, it settles the call.
    pub(super) reservation: Option<Reservation>,
    /// The call's id in the ledger, in the response and in the log line.
    log_id: Option<Uuid>,
    /// How the call ended, if there is no reservation to charge it to.
    end: Option<Box<CallEnd>>,
}

/// Returns a settlement without usage.
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

    /// Returns the facts on which the prices of an ended call depended.
    pub(super) fn price_notes(&self) -> PriceNotes {
        self.price_notes
    }

    /// Returns the usage and cost of an ended call, or of its last turn.
    pub(super) fn settlement(&self) -> Option<&Settlement> {
        self.settlement.as_ref()
    }

    /// Returns the usage and cost of an ended call in all its turns, with their searches.
    pub(super) fn total(&self) -> Option<Cow<'_, Settlement>> {
        match (self.turns.as_deref(), self.settlement()) {
            (Some(turns), Some(last)) => Some(Cow::Owned(turns.plus(last))),
            (turns, last) => turns.or(last).map(Cow::Borrowed),
        }
    }

    /// Ends a turn, which was charged.
    pub(super) fn end_turn(&mut self) {
        self.reservation = None;
        if let Some(ended) = self.settlement.take() {
            self.add_to_turns(&ended);
        }
    }

    /// Adds a search between two turns, which was charged.
    pub(super) fn add_search(&mut self, cost: Option<Usd>) {
        self.add_to_turns(&Settlement {
            usage: Usage {
                web_searches: 1,
                ..Usage::default()
            },
            cost: cost.map(|total| Cost {
                total,
                details: Details {
                    total_cost: total,
                    web_search_cost: total,
                    ..Details::default()
                },
            }),
        });
    }

    /// Adds the cost of a request of the gateway's own, which was charged. Its tokens are none of the answer's.
    pub(super) fn add_cost(&mut self, cost: Cost) {
        self.add_to_turns(&Settlement {
            usage: Usage::default(),
            cost: Some(cost),
        });
    }

    fn add_to_turns(&mut self, more: &Settlement) {
        match &mut self.turns {
            Some(turns) => **turns = turns.plus(more),
            None => self.turns = Some(Box::new(more.clone())),
        }
    }

    /// Returns the cost of parts of failed attempts.
    pub(super) fn abandoned(&self) -> Option<&Cost> {
        self.abandoned.as_deref()
    }

    /// Returns whether parts of the request have ended. Providers have billed these parts.
    pub(super) fn has_parts(&self) -> bool {
        self.parts.is_some() || self.abandoned.is_some()
    }

    /// Starts the call with its reservation.
    pub(super) fn begin(&mut self, reservation: Reservation) {
        self.log_id = Some(Uuid::from_bytes(reservation.id().0));
        self.reservation = Some(reservation);
    }

    /// Records the usage of a replayed response, which is free, and the id of the call in its response and log line.
    pub(super) fn record_replay(&mut self, settlement: Settlement, id: Uuid) {
        self.settlement = Some(settlement);
        self.log_id = Some(id);
    }

    /// Takes the reservation of a call that has begun a job. The job is charged when it ends.
    pub(super) fn begin_job(&mut self) -> Option<Reservation> {
        self.settlement = Some(nothing());
        self.reservation.take()
    }

    /// Adds the usage of an ended part to that of the parts before it.
    pub(super) fn end_part(&mut self, part: Settlement) {
        match &mut self.parts {
            Some(parts) => **parts = parts.plus(&part),
            None => self.parts = Some(Box::new(part)),
        }
    }

    /// Keeps the cost of the ended parts of a failed attempt. Parts on a BYOK key cost the platform nothing.
    pub(super) fn abandon_parts(&mut self, is_byok: bool) {
        let parts = self.parts.take().and_then(|parts| parts.cost);
        if let Some(cost) = parts.filter(|_| !is_byok) {
            let abandoned = self.abandoned.get_or_insert_default();
            **abandoned = abandoned.plus(&cost);
        }
    }

    /// Returns the usage of all parts together with the current `reply`, unless the request of that reply was not
    /// sent.
    pub(super) fn sum(&self, reply: Settlement, is_sent: bool) -> Settlement {
        if !self.has_parts() {
            return reply;
        }
        let mut sum = self.parts.as_deref().cloned().unwrap_or_else(nothing);
        if is_sent {
            sum = sum.plus(&reply);
        }
        sum.cost = match (sum.cost, self.abandoned()) {
            (Some(cost), Some(abandoned)) => Some(cost.plus(abandoned)),
            (cost, abandoned) => cost.or(abandoned.copied()),
        };
        sum
    }

    /// Records the usage of the call.
    pub(super) fn record(&mut self, settlement: Settlement, price_notes: PriceNotes) {
        self.settlement = Some(settlement);
        self.price_notes = price_notes;
    }

    /// Charges the call, or keeps its end for the job that it was made for.
    pub(super) fn settle(&mut self, ended: CallEnd) -> Receipt {
        match &mut self.reservation {
            Some(reservation) => reservation.settle(ended),
            None => {
                self.end = Some(Box::new(ended));
                Receipt::ready()
            }
        }
    }

    /// Starts a call that another one has reserved, under its id.
    pub(super) fn begin_for_job(&mut self, id: EntryId) {
        self.log_id = Some(Uuid::from_bytes(id.0));
    }

    /// Takes how a call without a reservation ended.
    pub(super) fn take_end(&mut self) -> Option<CallEnd> {
        self.end.take().map(|end| *end)
    }
}
