//! The account's leases of limits: of its keys, its members and its plan.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use filters::ledger::{
    Funding, HeldLimits, LimitGrant, LimitLease, LimitOffer, LimitScope, LimitTerms,
};
use filters::money::Usd;
use filters::money::allowance::{LimitReached, SpendingBounds, SpentSoFar};

use super::account::{Hold, OrganizationAccount};
use super::account_state::{AccountState, LACK_TTL, MAX_LACK_ANSWERS, Spender, spender_entry};
use crate::store::ledger::LimitRequest;

/// The lease of the limits of one scope, and what the store lately did not have for it.
#[derive(Default)]
pub(super) struct LeasedLimit {
    lease: LimitLease,
    lack: Option<LimitLack>,
}

/// The store had nothing left of the limits of a scope.
struct LimitLack {
    terms: LimitTerms,
    since: Instant,
    /// How often the store said so.
    answers: u32,
}

/// The leases of an organization's plan, and what is known of all its leases.
#[derive(Default)]
pub(super) struct PlanLimits {
    plan: Option<Box<LeasedLimit>>,
    premium: Option<Box<LeasedLimit>>,
    /// Whether the account has leases of limits at all.
    has_leases: bool,
    /// When the store last did not answer a request for them.
    failed_at: Option<Instant>,
}

/// A call, or the start of one, as its limits see it.
#[derive(Clone, Copy)]
pub struct LimitedCall<'a> {
    /// What it reserves.
    pub hold: Hold<'a>,
    /// Its limits.
    pub bounds: &'a SpendingBounds,
    /// When its plan began, in unix milliseconds.
    pub plan_since_ms: i64,
    /// The time, in unix milliseconds.
    pub now_ms: i64,
    /// Whether other processes may spend on the same limits, so that it needs leases of them.
    pub needs_lease: bool,
}

/// What a call finds of the leases of its limits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Leased {
    /// One was never granted, or under other limits.
    Unknown,
    /// Of one nothing is left.
    UsedUp,
    /// All have something left.
    Covered,
}

/// A lease that is to be changed.
#[derive(Clone, Debug)]
pub struct WantedLimit {
    /// Whose limits.
    pub scope: LimitScope,
    /// The limits; `None`: what is left is returned.
    pub terms: Option<LimitTerms>,
}

/// A change of a lease, on its way to the store.
pub struct OfferedLimit {
    wanted: WantedLimit,
    offer: LimitOffer,
    at_ms: i64,
}

impl LimitedCall<'_> {
    fn terms(&self) -> impl Iterator<Item = LimitTerms> + use<> {
        LimitTerms::of_call(self.bounds, self.plan_since_ms, self.hold.is_premium)
    }

    fn wanted(&self, terms: LimitTerms) -> Option<WantedLimit> {
        let scope = match terms {
            LimitTerms::Key(_) => LimitScope::Key(Arc::clone(self.hold.key_id)),
            LimitTerms::Member(_) => LimitScope::Member(Arc::clone(self.hold.member_id?)),
            LimitTerms::Plan(..) => LimitScope::Plan,
            LimitTerms::Premium(..) => LimitScope::Premium,
        };
        let terms = Some(terms);
        Some(WantedLimit { scope, terms })
    }
}

impl OrganizationAccount {
    /// Returns the leases that have to grow before the call may start.
    pub fn missing_limits(&self, call: &LimitedCall<'_>) -> Vec<WantedLimit> {
        self.select_limits(call, |lease, terms| {
            !lease.is_some_and(|lease| lease.is_of(terms, call.now_ms) && lease.admits())
        })
    }

    /// Returns the leases of which little is left.
    pub fn low_limits(&self, call: &LimitedCall<'_>) -> Vec<WantedLimit> {
        self.select_limits(call, |lease, _| lease.is_some_and(LimitLease::is_low))
    }

    fn select_limits(
        &self,
        call: &LimitedCall<'_>,
        is_selected: impl Fn(Option<&LimitLease>, &LimitTerms) -> bool,
    ) -> Vec<WantedLimit> {
        let state = self.lock();
        let mut selected = Vec::new();
        for terms in call.terms() {
            let lease = state.limit_of(&terms, &call.hold);
            if is_selected(lease.map(|limit| &limit.lease), &terms) {
                selected.extend(call.wanted(terms));
            }
        }
        selected
    }

    /// Makes the leases that are to change, so that they follow their calls from here on.
    pub fn begin_limits(&self, wanted: &[WantedLimit]) {
        let mut state = self.lock();
        state.plan_limits.has_leases = true;
        for wanted in wanted {
            state.limit_slot(&wanted.scope).get_or_insert_default();
        }
    }

    /// Returns whether one of these leases has ended calls that may not be stored.
    pub fn has_unstored(&self, wanted: &[WantedLimit]) -> bool {
        let mut state = self.lock();
        wanted.iter().any(|wanted| {
            let limit = state.limit(&wanted.scope);
            limit.is_some_and(|limit| limit.lease.has_unstored())
        })
    }

    /// Makes the requests that change leases, from what the account has just loaded and what processes held before that.
    pub fn offer_limits(
        &self,
        wanted: &[WantedLimit],
        need: Usd,
        mut held: HashMap<String, HeldLimits>,
        owner: &str,
        now_ms: i64,
    ) -> (Vec<LimitRequest>, Vec<OfferedLimit>) {
        let mut state = self.lock();
        let offers = wanted.iter().map(|wanted| {
            let scope = wanted.scope.to_string();
            let mut seen = held.remove(&scope).unwrap_or_default();
            let own = seen.remove(owner).unwrap_or_default();
            let room = wanted.terms.map(|terms| {
                let spent = state.spent_of(&wanted.scope, now_ms);
                terms.room(&spent).0
            });
            let reserved = state.reserved_of(&wanted.scope);
            let limit = state.limit_slot(&wanted.scope).get_or_insert_default();
            limit.lease.continue_from(own.stored);
            let need = wanted.terms.map(|_| need);
            let offer = limit.lease.offer(reserved, room.unwrap_or_default(), need);
            let request = LimitRequest {
                organization_id: self.organization_id.to_string(),
                scope,
                offer,
                seen,
            };
            let wanted = wanted.clone();
            let at_ms = now_ms;
            let offered = OfferedLimit {
                wanted,
                offer,
                at_ms,
            };
            (request, offered)
        });
        offers.unzip()
    }

    /// Applies what the store granted.
    pub fn apply_limits(&self, offered: &[OfferedLimit], grants: &[LimitGrant]) {
        let mut state = self.lock();
        for (offered, grant) in offered.iter().zip(grants) {
            let Some(limit) = state.limit(&offered.wanted.scope) else {
                continue;
            };
            if let (Some(left), Some(terms)) = (grant.left, offered.wanted.terms) {
                limit
                    .lease
                    .apply(&offered.offer, left, terms, offered.at_ms);
            }
            if grant.amount == Usd::ZERO {
                limit.lease.mark_returned();
            }
            if limit.lease.admits() {
                limit.lack = None;
            }
        }
    }

    /// Records that the store has nothing left of these limits.
    pub fn record_limit_lack(&self, wanted: &[WantedLimit]) {
        let mut state = self.lock();
        for wanted in wanted {
            let Some((limit, terms)) = state.limit(&wanted.scope).zip(wanted.terms) else {
                continue;
            };
            let known = limit.lack.take().filter(|lack| lack.is_fresh(&terms));
            limit.lack = Some(LimitLack {
                terms,
                since: known.as_ref().map_or_else(Instant::now, |lack| lack.since),
                answers: known.map_or(1, |lack| lack.answers + 1),
            });
        }
    }

    /// Returns whether the store has lately said, after `waits_since` or often enough, that nothing is left of a limit of
    /// the call, so that it is not asked again.
    pub fn lacks_limits(&self, call: &LimitedCall<'_>, waits_since: Instant) -> bool {
        let state = self.lock();
        call.terms().any(|terms| {
            let limit = state.limit_of(&terms, &call.hold);
            let lack = limit.filter(|limit| !limit.lease.admits());
            let lack = lack.and_then(|limit| limit.lack.as_ref());
            lack.is_some_and(|lack| {
                lack.is_fresh(&terms)
                    && (lack.answers >= MAX_LACK_ANSWERS || lack.since >= waits_since)
            })
        })
    }

    /// Records that the store did not answer a request for leases.
    pub fn record_limit_failure(&self) {
        self.lock().plan_limits.failed_at = Some(Instant::now());
    }

    /// Returns whether the store did not answer such a request after this time. Who has waited for it does not ask again.
    pub fn has_limit_failure(&self, waits_since: Instant) -> bool {
        let failed_at = self.lock().plan_limits.failed_at;
        failed_at.is_some_and(|failed_at| failed_at >= waits_since)
    }

    /// Returns the refusal of a call that a lease does not cover: the tightest limit of the first such scope.
    pub fn reached_limit(&self, call: &LimitedCall<'_>) -> Option<LimitReached> {
        if !call.needs_lease {
            return None;
        }
        let wanted = self.missing_limits(call).into_iter().next()?;
        let spent = self.lock().spent_of(&wanted.scope, call.now_ms);
        Some(wanted.terms?.room(&spent).1)
    }

    /// Returns the leases of which the store may hold an amount.
    pub fn held_limits(&self) -> Vec<WantedLimit> {
        let state = self.lock();
        if !state.plan_limits.has_leases {
            return Vec::new();
        }
        let keys = state.keys.iter();
        let keys = keys.map(|(id, key)| (LimitScope::Key(Arc::clone(id)), &key.limit));
        let members = state.members.iter();
        let members = members.map(|(id, of)| (LimitScope::Member(Arc::clone(id)), &of.limit));
        let plan = [
            (LimitScope::Plan, &state.plan_limits.plan),
            (LimitScope::Premium, &state.plan_limits.premium),
        ];
        let held = keys.chain(members).chain(plan).filter(|(_, limit)| {
            let limit = limit.as_ref();
            limit.is_some_and(|limit| limit.lease.is_held())
        });
        held.map(|(scope, _)| WantedLimit { scope, terms: None })
            .collect()
    }

    /// Returns whether the store may hold an amount of this scope.
    pub fn holds_limit(&self, scope: &LimitScope) -> bool {
        let mut state = self.lock();
        state
            .limit(scope)
            .is_some_and(|limit| limit.lease.is_held())
    }

    /// Forgets the leases of limits: the store has released them for other processes.
    pub fn revoke_limits(&self) {
        let mut state = self.lock();
        state.limits().for_each(|limit| limit.lease.revoke());
    }
}

impl LimitLack {
    fn is_fresh(&self, terms: &LimitTerms) -> bool {
        self.terms == *terms && self.since.elapsed() < LACK_TTL
    }
}

impl AccountState {
    /// Returns what the call finds of its leases.
    pub(super) fn leased(&self, call: &LimitedCall<'_>) -> Leased {
        let mut found = Leased::Covered;
        for terms in call.terms() {
            let limit = self.limit_of(&terms, &call.hold);
            match limit.map(|limit| &limit.lease) {
                Some(lease) if !lease.is_of(&terms, call.now_ms) => return Leased::Unknown,
                Some(lease) if lease.admits() => {}
                Some(_) => found = Leased::UsedUp,
                None => return Leased::Unknown,
            }
        }
        found
    }

    /// Reserves an amount of the leases; a negative amount ends a reservation.
    pub(super) fn reserve_limits(&mut self, hold: &Hold<'_>, amount: Usd) {
        let premium = (hold.funding == Funding::Plan).then_some(hold.is_premium);
        let member = hold.member_id.map(|id| &**id);
        self.each_limit(hold.key_id, member, premium, |lease| lease.reserve(amount));
    }

    /// Applies `change` to the leases that a call has. `premium`: the plan pays, and whether the model is premium.
    pub(super) fn each_limit(
        &mut self,
        key_id: &str,
        member_id: Option<&str>,
        premium: Option<bool>,
        mut change: impl FnMut(&mut LimitLease),
    ) {
        if !self.plan_limits.has_leases {
            return;
        }
        let key = self.keys.get_mut(key_id);
        let key = key.and_then(|key| key.limit.as_deref_mut());
        let member = member_id.and_then(|id| self.members.get_mut(id));
        let member = member.and_then(|member| member.limit.as_deref_mut());
        let PlanLimits {
            plan, premium: of, ..
        } = &mut self.plan_limits;
        let plan = plan.as_deref_mut().filter(|_| premium.is_some());
        let premium = of.as_deref_mut().filter(|_| premium == Some(true));
        let all = [key, member, plan, premium].into_iter().flatten();
        all.for_each(|limit| change(&mut limit.lease));
    }

    /// Forgets which ended calls are not stored, before they are counted anew.
    pub(super) fn forget_unstored(&mut self) {
        self.limits()
            .for_each(|limit| limit.lease.forget_unstored());
    }

    fn limits(&mut self) -> impl Iterator<Item = &mut LeasedLimit> {
        let keys = self.keys.values_mut().map(|key| &mut key.limit);
        let members = self.members.values_mut().map(|member| &mut member.limit);
        let PlanLimits { plan, premium, .. } = &mut self.plan_limits;
        let all = keys.chain(members).chain([plan, premium]);
        all.filter_map(Option::as_deref_mut)
    }

    fn limit_slot(&mut self, scope: &LimitScope) -> &mut Option<Box<LeasedLimit>> {
        match scope {
            LimitScope::Key(id) => &mut spender_entry(&mut self.keys, id).limit,
            LimitScope::Member(id) => &mut spender_entry(&mut self.members, id).limit,
            LimitScope::Plan => &mut self.plan_limits.plan,
            LimitScope::Premium => &mut self.plan_limits.premium,
        }
    }

    fn limit(&mut self, scope: &LimitScope) -> Option<&mut LeasedLimit> {
        match scope {
            LimitScope::Key(id) => self.keys.get_mut(id)?.limit.as_deref_mut(),
            LimitScope::Member(id) => self.members.get_mut(id)?.limit.as_deref_mut(),
            LimitScope::Plan => self.plan_limits.plan.as_deref_mut(),
            LimitScope::Premium => self.plan_limits.premium.as_deref_mut(),
        }
    }

    /// Returns the lease for limits of a call.
    fn limit_of(&self, terms: &LimitTerms, hold: &Hold<'_>) -> Option<&LeasedLimit> {
        match terms {
            LimitTerms::Key(_) => self.keys.get(hold.key_id)?.limit.as_deref(),
            LimitTerms::Member(_) => self.members.get(hold.member_id?)?.limit.as_deref(),
            LimitTerms::Plan(..) => self.plan_limits.plan.as_deref(),
            LimitTerms::Premium(..) => self.plan_limits.premium.as_deref(),
        }
    }

    /// Returns the spending on the limits of a scope, with open reservations.
    fn spent_of(&self, scope: &LimitScope, now_ms: i64) -> SpentSoFar {
        match scope {
            LimitScope::Key(id) => self.spent(id, None, now_ms),
            LimitScope::Member(id) => self.spent("", Some(id), now_ms),
            LimitScope::Plan | LimitScope::Premium => self.spent("", None, now_ms),
        }
    }

    fn reserved_of(&self, scope: &LimitScope) -> Usd {
        let of = |spender: Option<&Spender>| spender.map_or(Usd::ZERO, |of| of.reserved);
        match scope {
            LimitScope::Key(id) => of(self.keys.get(id)),
            LimitScope::Member(id) => of(self.members.get(id)),
            LimitScope::Plan => self.plan_reserved,
            LimitScope::Premium => self.premium_reserved,
        }
    }
}
