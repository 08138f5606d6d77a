//! What a call takes, told to the ledger: what was delivered of it so far, and what it took in the end.

use filters::ledger::CallOutcome;
use filters::models::metadata::PriceNotes;
use filters::models::usage::Settlement;

use super::ModelExchange;
use super::usage::empty_record;
use crate::ledger::{CallEnd, Receipt};
use crate::proxy::context::RequestInfo;

impl ModelExchange {
    /// Notes that a piece of the response goes out.
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

    /// Records what the call took, with its cost where the price is known, and charges it; the last byte of the response
    /// waits for the receipt.
    pub(super) fn settle(&mut self, info: &RequestInfo, outcome: CallOutcome) -> Receipt {
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
        running.tell_excess(call, info, &settlement.usage);
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

    /// Returns what the call took so far, in all its parts, and what its prices depend on. `hidden`: tokens of reasoning that
    /// nobody has seen.
    fn measure_call(&self, hidden: u64) -> (Settlement, PriceNotes) {
        let is_complete = self.running.reader.is_complete();
        let measured = self.running.measure_reply(&self.call, is_complete, hidden);
        let (reply, notes) = measured;
        // A part that was not sent took nothing.
        let is_sent = is_complete || self.state.is_sent();
        (self.call.billing.sum(reply, is_sent), notes)
    }

    /// Records the failed call of an experiment, which costs nothing: it is a failure of its variation. The client has not
    /// been told yet, so a process that is killed loses none that was.
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
        // No response waits for the receipt.
        drop(self.call.billing.settle(ended));
    }
}
