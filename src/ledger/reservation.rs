//! A reservation: it stands for a call from before its first attempt to its end, whatever the end is.

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

/// How often what has gone out of one answer is put into the journal.
const NOTE_EVERY: Duration = Duration::from_millis(250);

/// A call that wants to be paid for.
#[derive(Clone, Copy)]
pub struct NewReservation<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// The request's id, which is only data here.
    pub request_id: &'a str,
    /// Whether the answer is an event stream.
    pub is_stream: bool,
    /// What pays.
    pub funding: Funding,
    /// The most that it may cost.
    pub worst: Usd,
    /// Whether the model is one that plans count for themselves.
    pub is_premium: bool,
    /// What bounds the spending of its key, member and plan.
    pub bounds: SpendingBounds,
}

/// Why a call is not made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReservationError {
    /// A limit is reached.
    Reached(LimitReached),
    /// The credit does not cover it.
    NoCredit,
    /// Nothing can be reserved now: the store has been away for too long, or the journal cannot be written.
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
    /// What it took.
    pub taken: UsageRecord,
    /// How.
    pub outcome: CallOutcome,
    /// Whether the caller's own provider key served it.
    pub is_own_key: bool,
    /// From its head to its end.
    pub duration: Duration,
    /// From its head to the first content.
    pub first_event: Option<Duration>,
}

/// See the module. Dropped without an end it costs what had gone out, and nothing where that is nothing.
pub struct Reservation {
    ledger: Arc<Ledger>,
    account: Arc<OrganizationAccount>,
    running: Arc<OpenReservation>,
    key_id: Arc<str>,
    member_id: Option<Arc<str>>,
    is_premium: bool,
    delivered: Option<UsageRecord>,
    is_own_key: bool,
    noted: Option<Instant>,
    has_ended: bool,
}

impl Reservation {
    /// Begins to stand for a call whose amount the account has set aside.
    pub(super) fn begin(
        ledger: &Arc<Ledger>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
    ) -> Self {
        let caller = call.caller;
        let member = caller.member.as_deref().map(|member| &*member.id);
        let reserve = Reserve {
            id: ledger.new_id(),
            at_ms: ledger.now_ms(),
            who: CallOwner {
                organization_id: (*caller.organization_id).into(),
                project_id: (*caller.project_id).into(),
                key_id: (*caller.key_id).into(),
                member_id: member.map(Into::into),
                request_id: call.request_id.into(),
            },
            funding: call.funding,
            amount: call.worst,
            is_stream: call.is_stream,
        };
        let running = ledger.open.begin(reserve);
        if is_funded(call.funding) {
            ledger.journal.note(RecordRef::Reserve(&running.reserve));
        }
        Self {
            ledger: Arc::clone(ledger),
            account: Arc::clone(account),
            running,
            key_id: Arc::clone(&caller.key_id),
            member_id: member.map(Arc::from),
            is_premium: call.is_premium,
            delivered: None,
            is_own_key: false,
            noted: None,
            has_ended: false,
        }
    }

    /// Its name in the ledger.
    pub fn id(&self) -> EntryId {
        self.running.reserve.id
    }

    /// A piece of the answer goes out. `taken` is asked at the first, and then four times a second at most;
    /// `is_own_key`: the caller's own provider key serves it.
    pub fn delivered(&mut self, is_own_key: bool, taken: impl FnOnce() -> UsageRecord) {
        let is_due = self.noted.is_none_or(|noted| noted.elapsed() >= NOTE_EVERY);
        if self.has_ended || !is_due {
            return;
        }
        self.noted = Some(Instant::now());
        self.is_own_key = is_own_key;
        let taken = taken();
        self.running.delivered(taken.clone());
        if is_funded(self.running.reserve.funding) && !is_own_key {
            let id = self.id();
            let delivered = Delivered {
                id,
                taken: taken.clone(),
            };
            self.ledger.journal.note(RecordRef::Delivered(&delivered));
        }
        self.delivered = Some(taken);
    }

    /// Ends it at what the call took. The ticket tells when that is safe; the last byte of the answer waits for it.
    pub fn settle(&mut self, ended: CallEnd) -> Receipt {
        if std::mem::replace(&mut self.has_ended, true) {
            return Receipt::ready();
        }
        let reserve = &self.running.reserve;
        let at_ms = self.ledger.now_ms();
        let cost = ended.taken.total();
        let spent = account::Spent {
            cost,
            is_own: ended.is_own_key,
            is_premium: ended.taken.is_premium,
            at_ms,
        };
        let funding = match reserve.funding {
            _ if ended.is_own_key => Funding::OwnKey,
            funding => funding,
        };
        let is_urgent = is_funded(funding) && cost > Usd::ZERO;
        let mut entry = LedgerEntry {
            id: reserve.id,
            at_ms,
            who: reserve.who.clone(),
            funding,
            taken: ended.taken,
            outcome: ended.outcome,
            reserved: reserve.amount,
            charged: Usd::ZERO,
            shortfall: Usd::ZERO,
            duration_ms: millis(ended.duration),
            first_event_ms: ended.first_event.map(millis),
            is_stream: reserve.is_stream,
        };
        let is_dropped = !is_funded(funding) && self.ledger.drops_free();
        let (charge, ticket) = self.account.settle(&self.want(), &spent, |charge| {
            if is_dropped {
                return (charge, Receipt::ready());
            }
            (entry.charged, entry.shortfall) = (charge.charged, charge.shortfall);
            (charge, self.ledger.journal.settle(&entry, is_urgent))
        });
        self.ledger.count(&charge);
        self.ledger.open.end(&reserve.id);
        ticket
    }

    fn release(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let reserve = &self.running.reserve;
        self.account.release(&self.want());
        // A segment that begins meanwhile must not say again that it runs.
        self.ledger.open.end(&reserve.id);
        if is_funded(reserve.funding) {
            self.ledger.journal.note(RecordRef::Release(&reserve.id));
        }
    }

    fn want(&self) -> Hold<'_> {
        let reserve = &self.running.reserve;
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
            // The task that served it is gone, and nobody else will say how it ended.
            Some(taken) if !self.has_ended => {
                _ = self.settle(CallEnd {
                    taken,
                    outcome: CallOutcome::Killed,
                    is_own_key: self.is_own_key,
                    duration: Duration::ZERO,
                    first_event: None,
                });
            }
            _ => self.release(),
        }
    }
}

/// Whether our own money or promises pay for it.
pub(super) fn is_funded(funding: Funding) -> bool {
    matches!(funding, Funding::Credit | Funding::Plan)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
