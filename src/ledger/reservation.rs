//! A reservation covers one call from before its first attempt to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use filters::accounts::Caller;
use filters::fault::{Fault, FaultKind};
use filters::fault_code::FaultCode;
use filters::ledger::{
    CallMarks, CallOutcome, CallOwner, EntryId, ExperimentNames, Funding, LedgerEntry,
    SessionNames, UsageRecord,
};
use filters::money::Usd;
use filters::money::allowance::{LimitReached, SpendingBounds};
use filters::money::budgets::Budget;

use super::Ledger;
use super::account;
use super::account::{Hold, OrganizationAccount};
use super::receipt::Receipt;
use crate::store::ledger::StoredJob;

/// How often the delivered part of a response is recorded in the journal.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// A call that needs a reservation.
#[derive(Clone, Copy)]
pub struct NewReservation<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The client's request id. It is only data here.
    pub request_id: &'a str,
    /// Whether the response is an event stream.
    pub is_stream: bool,
    /// Who pays.
    pub funding: Funding,
    /// The maximum cost of the call.
    pub max_cost: Usd,
    /// Whether the model is premium, which plans limit separately.
    pub is_premium: bool,
    /// The limits of its key, member and plan.
    pub bounds: SpendingBounds,
    /// The experiment that has filled the request.
    pub experiment: Option<&'a Arc<ExperimentNames>>,
    /// The session that it belongs to.
    pub session: Option<&'a Arc<SessionNames>>,
    /// The budgets in which it counts.
    pub budgets: Option<&'a Arc<[Budget]>>,
    /// Its tags, and the names of its budgets.
    pub marks: Option<&'a Arc<CallMarks>>,
}

impl NewReservation<'_> {
    /// Returns whether the call has limits.
    pub(super) fn has_bounds(&self) -> bool {
        self.bounds != SpendingBounds::default() || self.budgets.is_some()
    }
}

/// Why a call got no reservation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReservationError {
    /// A limit is reached.
    Reached(LimitReached),
    /// The credit does not cover it.
    NoCredit,
    /// Nothing can be reserved now: the store has been down for too long, or the journal cannot be written.
    Unavailable,
}

impl From<ReservationError> for Fault {
    fn from(refusal: ReservationError) -> Self {
        match refusal {
            ReservationError::Reached(reached) => reached.into(),
            ReservationError::NoCredit => Self::new(
                FaultKind::Payment,
                "the organization's credit does not cover what this request may cost; \
                 a smaller `max_tokens` reserves less",
            )
            .with_code(FaultCode::InsufficientCredits),
            ReservationError::Unavailable => {
                let message = "calls on credit cannot be accounted for at the moment";
                let mut fault = Self::new(FaultKind::Unavailable, message);
                fault.retry_after_s = Some(2);
                fault
            }
        }
    }
}

/// How a call ended.
pub struct CallEnd {
    /// What the call used.
    pub usage: UsageRecord,
    /// How it ended.
    pub outcome: CallOutcome,
    /// Whether a BYOK key served it.
    pub is_byok: bool,
    /// Time from the request's head to the end of the call.
    pub duration: Duration,
    /// Time from the request's head to the first content.
    pub first_event: Option<Duration>,
}

/// The reservation of a running call. If dropped unsettled, it charges for the bytes delivered, or nothing if there are
/// none.
pub struct Reservation {
    ledger: Arc<Ledger>,
    account: Arc<OrganizationAccount>,
    key_id: Arc<str>,
    member_id: Option<Arc<str>>,
    is_premium: bool,
    budgets: Option<Arc<[Budget]>>,
    /// When the plan that pays began; 0 if none does. A clock that is behind dates no call before it.
    plan_since_ms: i64,
    /// The call's entry if it ended now.
    entry: LedgerEntry,
    /// The lane of the journal that has the call's records, from the first one on.
    lane: Option<usize>,
    delivered_at: Option<Instant>,
    is_byok: bool,
    has_ended: bool,
}

impl Reservation {
    /// Opens the reservation of a call that begins at this time, after the account has reserved its amount.
    pub(super) fn begin(
        ledger: &Arc<Ledger>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
        now_ms: i64,
    ) -> Self {
        let caller = call.caller;
        let member = caller.member.as_deref().map(|member| &member.id);
        let entry = LedgerEntry {
            id: ledger.new_entry_id(now_ms),
            at_ms: now_ms,
            owner: CallOwner {
                organization_id: Arc::clone(&caller.organization_id),
                project_id: Arc::clone(&caller.project_id),
                key_id: Arc::clone(&caller.key_id),
                member_id: member.map(Arc::clone),
                request_id: call.request_id.into(),
            },
            funding: call.funding,
            reserved: call.max_cost,
            is_stream: call.is_stream,
            outcome: CallOutcome::Killed,
            experiment: call.experiment.map(Arc::clone),
            session: call.session.map(Arc::clone),
            marks: call.marks.map(Arc::clone),
            ..LedgerEntry::default()
        };
        Self {
            ledger: Arc::clone(ledger),
            account: Arc::clone(account),
            key_id: Arc::clone(&caller.key_id),
            member_id: member.map(Arc::clone),
            is_premium: call.is_premium,
            budgets: call.budgets.map(Arc::clone),
            plan_since_ms: match call.funding {
                Funding::Plan => caller.plan_since_ms,
                _ => 0,
            },
            entry,
            lane: None,
            delivered_at: None,
            is_byok: false,
            has_ended: false,
        }
    }

    /// Returns the call's id in the ledger.
    pub fn id(&self) -> EntryId {
        self.entry.id
    }

    /// Records that a part of the response goes out. It calls `usage` for the first part and then at most four times a
    /// second. `is_byok`: a BYOK key serves the call.
    pub fn record_delivered(&mut self, is_byok: bool, usage: impl FnOnce() -> UsageRecord) {
        let is_due = self
            .delivered_at
            .is_none_or(|delivered_at| delivered_at.elapsed() >= PROGRESS_INTERVAL);
        if self.has_ended || !is_due {
            return;
        }
        self.delivered_at = Some(Instant::now());
        self.is_byok = is_byok;
        let entry = &mut self.entry;
        entry.usage = usage();
        if is_funded(entry.funding) && !is_byok {
            let cost = entry.usage.total();
            entry.charged = cost.min(entry.reserved);
            entry.shortfall = cost.minus(entry.charged);
            let journal = &self.ledger.journal;
            let lane = *self.lane.get_or_insert_with(|| journal.lane());
            journal.deliver(lane, entry);
        }
    }

    /// Ends the call and charges its usage; a failed call costs nothing. The last byte of the response waits for the
    /// receipt, which resolves when the charge survives what the configuration says.
    pub fn settle(&mut self, ended: CallEnd) -> Receipt {
        if std::mem::replace(&mut self.has_ended, true) {
            return Receipt::ready();
        }
        let journal = Arc::clone(&self.ledger.journal);
        let owner = std::mem::take(&mut self.entry.owner);
        let experiment = self.entry.experiment.take();
        let session = self.entry.session.take();
        let marks = self.entry.marks.take();
        let hold = self.hold();
        let at_ms = self.ledger.now_ms().max(self.plan_since_ms);
        let cost = ended.usage.total();
        let funding = match self.entry.funding {
            _ if ended.outcome == CallOutcome::Failed => Funding::Unbilled,
            _ if ended.is_byok => Funding::Byok,
            funding => funding,
        };
        let is_urgent = is_funded(funding) && cost > Usd::ZERO;
        // A call of which the journal has a part needs an end there.
        let is_dropped = !is_funded(funding) && self.lane.is_none() && self.ledger.drop_unfunded();
        let lane = self.lane.unwrap_or_else(|| journal.lane());
        let spent = account::Spent {
            cost,
            funding,
            is_premium: ended.usage.is_premium,
            is_stored: !is_dropped,
        };
        let mut entry = LedgerEntry {
            at_ms,
            funding,
            usage: ended.usage,
            outcome: ended.outcome,
            charged: Usd::ZERO,
            shortfall: Usd::ZERO,
            duration_ms: to_millis(ended.duration),
            first_event_ms: ended.first_event.map(to_millis),
            owner,
            experiment,
            session,
            marks,
            ..self.entry
        };
        let (charge, end) = self.account.settle(&hold, &spent, |charge| {
            (entry.charged, entry.shortfall) = (charge.charged, charge.shortfall);
            (charge, (!is_dropped).then(|| journal.end(lane, &entry)))
        });
        self.ledger.count_charge(&charge);
        end.map_or_else(Receipt::ready, |end| end.write(is_urgent))
    }

    /// Returns a job that the call has begun, with what the reservation knows of it.
    pub(super) fn describe(&self, job: StoredJob, is_byok: bool) -> StoredJob {
        StoredJob {
            id: self.entry.id,
            owner: self.entry.owner.clone(),
            funding: match is_byok {
                true => Funding::Byok,
                false => self.entry.funding,
            },
            is_premium: self.is_premium,
            marks: self.entry.marks.clone(),
            reserved: job.reserved.min(self.entry.reserved),
            ..job
        }
    }

    /// Ends with this amount in the hands of the store, and frees the rest. `is_byok`: a BYOK key serves the call, so all of
    /// its credit is free again.
    pub(super) fn hand_over(mut self, amount: Usd, is_byok: bool) {
        self.has_ended = true;
        self.account.hand_over(&self.hold(), amount, is_byok);
    }

    fn release(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.account.release(&self.hold());
        }
    }

    fn hold(&self) -> Hold<'_> {
        Hold {
            key_id: &self.key_id,
            member_id: self.member_id.as_ref(),
            funding: self.entry.funding,
            amount: self.entry.reserved,
            is_premium: self.is_premium,
            budgets: self.budgets.as_deref().unwrap_or_default(),
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.has_ended || self.delivered_at.is_none() {
            return self.release();
        }
        // The task that served the call was dropped, so nothing else will settle it.
        let usage = std::mem::take(&mut self.entry.usage);
        _ = self.settle(CallEnd {
            usage,
            outcome: CallOutcome::Killed,
            is_byok: self.is_byok,
            duration: Duration::ZERO,
            first_event: None,
        });
    }
}

/// Returns whether the organization's credit or plan pays.
pub(super) fn is_funded(funding: Funding) -> bool {
    matches!(funding, Funding::Credit | Funding::Plan)
}

fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
