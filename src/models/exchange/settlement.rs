//! Reports the usage of a call to the ledger: the delivered bytes so far, and the final usage.

use filters::ledger::CallOutcome;
use filters::models::metadata::PriceNotes;
use filters::models::usage::Settlement;

use super::ModelExchange;
use super::usage::empty_record;
use crate::ledger::{CallEnd, Receipt};
use crate::proxy::context::RequestInfo;

impl ModelExchange {
    /// Records that a piece of the response is sent.
    pub(super) fn deliver(&mut self) {
        let Some(mut reservation) = self.call.billing.reservation.take() else {
            return;
        };
        let is_byok = self.running.is_byok(&self.call);
        reservation.record_delivered(is_byok, || {
            let (settlement, _) = self.measure_call(0);
            let attempts = self.call.log.begun();
            self.running.usage_record(&self.call, &settlement, attempts)
        });
        self.call.billing.reservation = Some(reservation);
    }

    /// Records the usage of the call, with its cost if the price is known, and charges it. The last byte of the
    /// response waits for the receipt.
    pub(super) fn settle(&mut self, info: &RequestInfo, outcome: CallOutcome) -> Receipt {
        if self.is_between_turns() {
            // What has ended is charged, and the next turn has not begun.
            return Receipt::ready();
        }
        let hides = outcome == CallOutcome::ClientDisconnected && self.state.is_sent();
        let hidden = match hides {
            true => {
                let now_ms = self.now_ms(info);
                self.running.hidden_reasoning(&self.call, now_ms)
            }
            false => 0,
        };
        let (settlement, price_notes) = self.measure_call(hidden);
        let (call, running) = (&mut self.call, &self.running);
        running.log_excess(call, info, &settlement.usage);
        let first_content = call.timing.first_content;
        let ended = CallEnd {
            usage: running.usage_record(call, &settlement, call.log.begun()),
            outcome,
            is_byok: running.is_byok(call),
            duration: info.elapsed(),
            first_event: first_content.map(|first| first.duration_since(info.started)),
        };
        call.billing.record(settlement, price_notes);
        call.billing.settle(ended)
    }

    /// Returns whether a turn of the answer has ended and the next one was not asked for.
    pub(super) fn is_between_turns(&self) -> bool {
        let is_later = self
            .call
            .turns
            .as_ref()
            .is_some_and(|turns| turns.is_later());
        is_later && !self.running.reader.is_in_turn()
    }

    /// Returns the usage of the call so far, in all its parts, and the facts on which its prices depend. `hidden` are
    /// the reasoning tokens that were not visible.
    fn measure_call(&self, hidden: u64) -> (Settlement, PriceNotes) {
        let is_complete = self.running.reader.is_complete();
        let measured = self.running.measure_reply(&self.call, is_complete, hidden);
        let (reply, notes) = measured;
        // A part that was not sent has no usage.
        let is_sent = is_complete || self.state.is_sent();
        (self.call.billing.sum(reply, is_sent), notes)
    }

    /// Records the failed call of an experiment, which costs nothing, as a failure of its variation. The client has
    /// not got its error yet, so a killed process loses no failure that a client has seen.
    pub(super) fn record_failed_experiment(&mut self, info: &RequestInfo) {
        let is_of_experiment = self.call.request.experiment().is_some();
        let deployment = self.running.deployment(&self.call);
        let Some(deployment) = deployment.filter(|_| is_of_experiment) else {
            return;
        };
        let ended = CallEnd {
            usage: empty_record(deployment, self.call.log.ended()),
            outcome: CallOutcome::Failed,
            is_byok: false,
            duration: info.elapsed(),
            first_event: None,
        };
        // The response does not wait for this receipt.
        drop(self.call.billing.settle(ended));
    }
}
