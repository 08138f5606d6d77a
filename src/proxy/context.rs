//! The context that one request carries through the hooks.

use std::sync::Arc;
use std::time::Duration;

use filters::accounts::{AccessToken, Caller};
use filters::fault::Fault;
use filters::limits::headers::Quota;
use tokio::time::Instant;

use super::body_budget::{BodyBudget, BodyOwner, BodyReservation};
use super::budget_head::BudgetHead;
use super::buffered::session::SessionSlot;
use super::clock::Clock;
use super::deprecation::Deprecation;
use super::exchange::Exchange;
use super::permits::Permit;
use super::request_id::RequestId;
use super::response::HeadFields;
use super::state::ProxyState;
use crate::shared_wait::WaitBudget;
use crate::telemetry::calls::OpenCall;
use crate::telemetry::metrics::InFlight;
use crate::telemetry::traces::RequestTrace;

/// Facts about a request that are the same for all handlers.
pub struct RequestInfo {
    pub id: RequestId,
    /// The time at which the head was read.
    pub started: Instant,
    /// The time of the running hook, which reads the clock once for all that it calls.
    pub now: Instant,
    /// The wall clock at `started`: microseconds since 1970.
    pub started_unix_us: u64,
    /// Whether the client speaks HTTP/1.1. A response without a length is then chunked.
    pub is_http1_1: bool,
    /// The index of the route.
    pub route: usize,
    /// The caller, if the route requires an API key.
    pub caller: Option<Arc<Caller>>,
    /// The access token that the caller presented in place of an API key.
    pub token: Option<Box<AccessToken>>,
    /// One of the permits for concurrent model gateway requests, if the route needs one.
    pub permit: Option<Permit>,
    /// The memory reserved for the request's body.
    pub body_reservation: BodyReservation,
    pub quota: Option<Quota>,
    /// What is left of the budget of the call.
    pub budget: Option<BudgetHead>,
    /// The announcement that the route will end.
    pub deprecation: Option<Deprecation>,
    pub body_bytes: usize,
    /// The time that the request has spent waiting for state shared by processes.
    pub shared_wait: WaitBudget,
    /// The place in a trace, if the request is traced.
    pub trace: Option<Arc<RequestTrace>>,
    /// The place among the calls that run, if it is a call of a model and has been admitted.
    pub open_call: Option<OpenCall>,
}

impl RequestInfo {
    /// Returns the facts for a call that the gateway itself makes on behalf of the request, from `now` on.
    #[must_use]
    pub fn for_own_call(&self, now: Instant) -> Self {
        let waited = u64::try_from(now.duration_since(self.started).as_micros());
        Self {
            id: self.id.clone(),
            started: now,
            now,
            started_unix_us: self
                .started_unix_us
                .saturating_add(waited.unwrap_or_default()),
            is_http1_1: self.is_http1_1,
            route: self.route,
            caller: self.caller.clone(),
            token: None,
            permit: None,
            body_reservation: self.body_reservation.beside(),
            quota: None,
            budget: None,
            deprecation: None,
            body_bytes: 0,
            shared_wait: WaitBudget::default(),
            trace: self.trace.clone(),
            open_call: None,
        }
    }

    /// Returns the facts for a request that is answered without its client, from now on.
    pub fn in_background(
        id: RequestId,
        caller: Arc<Caller>,
        clock: Clock,
        body_reservation: BodyReservation,
    ) -> Self {
        let now = Instant::now();
        Self {
            id,
            started: now,
            now,
            started_unix_us: clock.unix_us(),
            is_http1_1: true,
            route: 0,
            caller: Some(caller),
            token: None,
            permit: None,
            body_reservation,
            quota: None,
            budget: None,
            deprecation: None,
            body_bytes: 0,
            shared_wait: WaitBudget::default(),
            trace: None,
            open_call: None,
        }
    }

    /// Returns the wall clock of the running hook, in Unix seconds.
    pub fn now_unix_s(&self) -> u64 {
        let since = self.now.saturating_duration_since(self.started);
        let now_us = u128::from(self.started_unix_us) + since.as_micros();
        u64::try_from(now_us / 1_000_000).unwrap_or(u64::MAX)
    }

    /// Returns the facts about the request that each of our heads states.
    pub fn head_fields(&self) -> HeadFields {
        HeadFields {
            request_id: self.id.as_header().clone(),
            quota: self.quota,
            budget: self.budget,
            deprecation: self.deprecation,
            is_chunked: self.is_http1_1,
        }
    }

    /// Sets the caller. The memory of the body counts against the caller's share from now on.
    pub fn set_caller(&mut self, caller: Arc<Caller>, budget: &Arc<BodyBudget>) {
        let owner = Some(Arc::clone(&caller.organization_id));
        self.body_reservation = budget.reservation(owner);
        self.caller = Some(caller);
    }

    /// Returns whether the export of logs may have what the caller asks and gets.
    pub fn exports_content(&self) -> bool {
        let caller = self.caller.as_ref();
        caller.is_some_and(|caller| caller.exports_content)
    }

    /// Returns until when what the caller asks and gets may be kept in memory, in unix milliseconds; `None`: it is not kept.
    pub fn keep_bodies_until_ms(&self) -> Option<i64> {
        let until_ms = self.caller.as_ref()?.keep_bodies_until_ms?;
        let now_ms = i64::try_from(self.unix_ms()).unwrap_or(i64::MAX);
        (now_ms < until_ms).then_some(until_ms)
    }

    /// Returns the owner of the body's memory and disk space.
    pub fn body_owner(&self) -> BodyOwner {
        let caller = self.caller.as_ref();
        caller.map(|caller| Arc::clone(&caller.organization_id))
    }

    /// Returns the time from the head of the request to `now`.
    pub fn elapsed(&self) -> Duration {
        self.now.duration_since(self.started)
    }

    /// Returns the wall clock at `now`: microseconds since 1970. It does not jump within a request.
    pub fn unix_us(&self) -> u64 {
        let elapsed_us = u64::try_from(self.elapsed().as_micros()).unwrap_or_default();
        self.started_unix_us.saturating_add(elapsed_us)
    }

    /// Returns the wall clock at a time of the request: nanoseconds since 1970.
    pub fn unix_ns_at(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.started).as_nanos();
        let at_ns = u128::from(self.started_unix_us) * 1_000 + since;
        u64::try_from(at_ns).unwrap_or(u64::MAX)
    }

    /// Returns the wall clock at `now`: milliseconds since 1970.
    pub fn unix_ms(&self) -> u64 {
        self.unix_us() / 1000
    }

    /// Returns the wall clock at `now`: seconds since 1970.
    pub fn unix_s(&self) -> u64 {
        self.unix_us() / 1_000_000
    }
}

/// The context of a request, with the state with which it began and ends.
pub struct PinnedContext {
    pub state: Arc<ProxyState>,
    pub context: Context,
}

/// The context of one request.
pub struct Context {
    /// The facts that every handler sees.
    pub info: RequestInfo,
    /// The exchange with an upstream, once it is open.
    pub exchange: Option<Box<dyn Exchange>>,
    /// The slot that gets the real session back when the buffered one is dropped.
    pub slot: Option<SessionSlot>,
    pub fault: Option<Fault>,
    /// The status that was sent; 0 before that.
    pub status: u16,
    /// Counts the request as in flight until the context is dropped, even if its end is never logged.
    pub in_flight: InFlight,
}

impl Context {
    /// Returns the context of a request before its head is read.
    pub fn new(state: &ProxyState) -> Self {
        let now = Instant::now();
        Self {
            info: RequestInfo {
                id: RequestId::NONE,
                started: now,
                now,
                started_unix_us: state.clock.unix_us(),
                is_http1_1: true,
                route: state.router.no_route(),
                caller: None,
                token: None,
                permit: None,
                body_reservation: state.body_budget.reservation(None),
                quota: None,
                budget: None,
                deprecation: None,
                body_bytes: 0,
                shared_wait: WaitBudget::default(),
                trace: None,
                open_call: None,
            },
            exchange: None,
            slot: None,
            fault: None,
            status: 0,
            in_flight: InFlight::new(&state.metrics),
        }
    }
}
