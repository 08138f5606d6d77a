//! A reservation covers one call from before its first attempt to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use filters::accounts::Caller;
use filters::fault::{Fault, FaultKind};
use filters::ledger::journal::{Delivered, RecordRef, Reserve};
use filters::ledger::{CallOutcome, CallOwner, EntryId, Funding, LedgerEntry, UsageRecord};
use filters::money::Usd;
use filters::money::allowance::{LimitReached, SpendingBounds};

use super::Ledger;
use super::account;
use super::account::{Hold, OrganizationAccount};
use super::open_reservations::OpenReservation;
use super::receipt::Receipt;

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
            .with_code("insufficient_credits"),
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
    open: Arc<OpenReservation>,
    key_id: Arc<str>,
    member_id: Option<Arc<str>>,
    is_premium: bool,
    delivered: Option<UsageRecord>,
    is_byok: bool,
    last_progress: Option<Instant>,
    has_ended: bool,
}

impl Reservation {
    /// Opens the reservation of a call, after the account has reserved its amount.
    pub(super) fn begin(
        ledger: &Arc<Ledger>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
    ) -> Self {
        let caller = call.caller;
        let member = caller.member.as_deref().map(|member| &member.id);
        let reserve = Reserve {
            id: ledger.new_entry_id(),
            at_ms: ledger.now_ms(),
            owner: CallOwner {
                organization_id: Arc::clone(&caller.organization_id),
                project_id: Arc::clone(&caller.project_id),
                key_id: Arc::clone(&caller.key_id),
                member_id: member.map(Arc::clone),
                request_id: call.request_id.into(),
            },
            funding: call.funding,
            amount: call.max_cost,
            is_stream: call.is_stream,
        };
        let open = ledger.open.insert(reserve);
        if is_funded(call.funding) {
            ledger.journal.append(RecordRef::Reserve(&open.reserve));
        }
        Self {
            ledger: Arc::clone(ledger),
            account: Arc::clone(account),
            open,
            key_id: Arc::clone(&caller.key_id),
            member_id: member.map(Arc::clone),
            is_premium: call.is_premium,
            delivered: None,
            is_byok: false,
            last_progress: None,
            has_ended: false,
        }
    }

    /// Returns the call's id in the ledger.
    pub fn id(&self) -> EntryId {
        self.open.reserve.id
    }

    /// Records that a part of the response goes out. It calls `usage` for the first part and then at most four times a
    /// second. `is_byok`: a BYOK key serves the call.
    pub fn record_delivered(&mut self, is_byok: bool, usage: impl FnOnce() -> UsageRecord) {
        let is_due = self
            .last_progress
            .is_none_or(|last_progress| last_progress.elapsed() >= PROGRESS_INTERVAL);
        if self.has_ended || !is_due {
            return;
        }
        self.last_progress = Some(Instant::now());
        self.is_byok = is_byok;
        let usage = usage();
        self.open.record_delivered(usage.clone());
        if is_funded(self.open.reserve.funding) && !is_byok {
            let id = self.id();
            let delivered = Delivered {
                id,
                usage: usage.clone(),
            };
            self.ledger.journal.append(RecordRef::Delivered(&delivered));
        }
        self.delivered = Some(usage);
    }

    /// Ends the call and charges its usage. The last byte of the response waits for the receipt, which resolves when
    /// the record is durable.
    pub fn settle(&mut self, ended: CallEnd) -> Receipt {
        if std::mem::replace(&mut self.has_ended, true) {
            return Receipt::ready();
        }
        let reserve = &self.open.reserve;
        let at_ms = self.ledger.now_ms();
        let cost = ended.usage.total();
        let spent = account::Spent {
            cost,
            is_byok: ended.is_byok,
            is_premium: ended.usage.is_premium,
            at_ms,
        };
        let funding = match reserve.funding {
            _ if ended.is_byok => Funding::Byok,
            funding => funding,
        };
        let is_urgent = is_funded(funding) && cost > Usd::ZERO;
        let mut entry = LedgerEntry {
            id: reserve.id,
            at_ms,
            owner: reserve.owner.clone(),
            funding,
            usage: ended.usage,
            outcome: ended.outcome,
            reserved: reserve.amount,
            charged: Usd::ZERO,
            shortfall: Usd::ZERO,
            duration_ms: to_millis(ended.duration),
            first_event_ms: ended.first_event.map(to_millis),
            is_stream: reserve.is_stream,
        };
        let is_dropped = !is_funded(funding) && self.ledger.drop_unfunded();
        let (charge, receipt) = self.account.settle(&self.hold(), &spent, |charge| {
            if is_dropped {
                return (charge, Receipt::ready());
            }
            (entry.charged, entry.shortfall) = (charge.charged, charge.shortfall);
            (charge, self.ledger.journal.settle(&entry, is_urgent))
        });
        self.ledger.count_charge(&charge);
        self.ledger.open.remove(&reserve.id);
        receipt
    }

    fn release(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let reserve = &self.open.reserve;
        self.account.release(&self.hold());
        // A segment that starts meanwhile must not restate the call as open.
        self.ledger.open.remove(&reserve.id);
        if is_funded(reserve.funding) {
            self.ledger.journal.append(RecordRef::Release(&reserve.id));
        }
    }

    fn hold(&self) -> Hold<'_> {
        let reserve = &self.open.reserve;
        Hold {
            key_id: &self.key_id,
            member_id: self.member_id.as_ref(),
            funding: reserve.funding,
            amount: reserve.amount,
            is_premium: self.is_premium,
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        match self.delivered.take() {
            // The task that served the call was dropped, so nothing else will settle it.
            Some(usage) if !self.has_ended => {
                _ = self.settle(CallEnd {
                    usage,
                    outcome: CallOutcome::Killed,
                    is_byok: self.is_byok,
                    duration: Duration::ZERO,
                    first_event: None,
                });
            }
            _ => self.release(),
        }
    }
}

/// Returns whether the organization's credit or plan pays.
pub(super) fn is_funded(funding: Funding) -> bool {
    matches!(funding, Funding::Credit | Funding::Plan)
}

fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
