//! The account's leases of limits: of its keys, its members, its plan, and the budgets of its calls.

use std::sync::Arc;
use std::time::Instant;

use filters::ledger::{Funding, LimitGrant, LimitLease, LimitScope, LimitTerms};
use filters::money::Usd;
use filters::money::allowance::{LimitReached, SpendingBounds};
use filters::money::budgets::{Budget, BudgetReached};
use filters::money::limit_use::LimitUse;

use super::account::{Hold, HoldError, OrganizationAccount};
use super::account_state::{
    AccountState, LACK_TTL, MAX_LACK_ANSWERS, Spender, budget_entry, spender_entry,
};
use super::budgets::use_of_reached;
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
    /// Until this time, in unix milliseconds, nothing comes back.
    until_ms: i64,
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
    /// Whether it needs leases of its limits. Else what is known of them decides.
    pub needs_lease: bool,
}

/// Limits of a call.
#[derive(Clone, Copy)]
struct CallTerms<'a> {
    terms: LimitTerms,
    /// The budget that they are of.
    budget: Option<&'a Budget>,
}

/// A lease that is to be changed.
#[derive(Clone, Debug)]
pub struct WantedLimit {
    /// Whose limits.
    pub scope: LimitScope,
    /// The limits; `None`: what is left is returned.
    pub terms: Option<LimitTerms>,
}

impl LeasedLimit {
    /// Returns whether the store may hold an amount of it.
    pub(super) fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// Returns what is left of a budget, as far as this process knows.
    pub(super) fn budget_use(&self) -> Option<LimitUse> {
        match self.lease.reached()? {
            LimitReached::Budget(reached) => Some(use_of_reached(&reached)),
            _ => None,
        }
    }
}

impl WantedLimit {
    /// Returns what is left of a budget.
    pub(super) fn returned_budget(name: &Arc<str>) -> Self {
        Self {
            scope: LimitScope::Budget(Arc::clone(name)),
            terms: None,
        }
    }
}

impl LimitedCall<'_> {
    /// Returns its limits, each with its budget if it is of one.
    fn terms(&self) -> impl Iterator<Item = CallTerms<'_>> {
        let limits = LimitTerms::of_call(self.bounds, self.plan_since_ms, self.hold.is_premium);
        let budgets = self.hold.budgets.iter().filter(|budget| !budget.is_waived);
        let budgets = budgets.map(|budget| CallTerms {
            terms: LimitTerms::Budget(budget.kind, budget.limits),
            budget: Some(budget),
        });
        let limits = limits.map(|terms| CallTerms {
            terms,
            budget: None,
        });
        limits.chain(budgets)
    }

    fn wanted(&self, of: CallTerms<'_>) -> Option<WantedLimit> {
        let scope = match of.terms {
            LimitTerms::Key(_) => LimitScope::Key(Arc::clone(self.hold.key_id)),
            LimitTerms::Member(_) => LimitScope::Member(Arc::clone(self.hold.member_id?)),
            LimitTerms::Plan(..) => LimitScope::Plan,
            LimitTerms::Premium(..) => LimitScope::Premium,
            LimitTerms::Budget(..) => LimitScope::Budget(Arc::clone(&of.budget?.name)),
        };
        let terms = Some(of.terms);
        Some(WantedLimit { scope, terms })
    }

    /// Returns the refusal of a lease that does not cover the call.
    fn reached(&self, of: &CallTerms<'_>, lease: &LimitLease) -> Option<LimitReached> {
        Some(match lease.reached()? {
            LimitReached::Budget(reached) => {
                let budgets = self.hold.budgets.iter();
                let mut is_place = budgets.map(|it| of.budget.is_some_and(|of| of.name == it.name));
                LimitReached::Budget(BudgetReached {
                    place: is_place.position(|is_place| is_place).unwrap_or_default(),
                    ..reached
                })
            }
            reached => reached,
        })
    }

    /// Returns what has to be left of such limits.
    fn need(&self, terms: &LimitTerms) -> Usd {
        terms.need(self.hold.amount)
    }
}

impl OrganizationAccount {
    /// Returns the leases that have to grow before the call may start.
    pub fn missing_limits(&self, call: &LimitedCall<'_>) -> Vec<WantedLimit> {
        self.select_limits(call, |lease, terms| {
            let need = call.need(terms);
            !lease.is_some_and(|lease| lease.is_of(terms, call.now_ms) && lease.admits(need))
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
        for of in call.terms() {
            let lease = state.limit_of(&of, &call.hold);
            if is_selected(lease.map(|limit| &limit.lease), &of.terms) {
                selected.extend(call.wanted(of));
            }
        }
        selected
    }

    /// Makes the requests that change leases. `need`: what a call may cost. `number`: that of this change. `is_waiting` says
    /// whether the store does not have all calls of a scope that have ended.
    ///
    /// Returns `None` if such calls would be neither spent nor held: the first lease of their scope has to wait for them.
    pub fn offer_limits(
        &self,
        wanted: &[WantedLimit],
        need: Usd,
        (number, now_ms): (i64, i64),
        is_waiting: impl Fn(&LimitScope) -> bool,
    ) -> Option<Vec<LimitRequest>> {
        let mut state = self.lock();
        let mut is_early = |wanted: &WantedLimit| {
            let limit = state.limit(&wanted.scope);
            let is_granted = limit.is_some_and(|limit| limit.lease.is_granted());
            wanted.terms.is_some() && !is_granted && is_waiting(&wanted.scope)
        };
        if wanted.iter().any(&mut is_early) {
            return None;
        }
        state.plan_limits.has_leases = true;
        let requests = wanted.iter().map(|wanted| {
            let reserved = state.reserved_of(&wanted.scope);
            let limit = state.limit_slot(&wanted.scope).get_or_insert_default();
            let terms = wanted.terms.map(|terms| (terms, need));
            if terms.is_none() && !is_waiting(&wanted.scope) {
                limit.lease.forget_granted();
            }
            LimitRequest {
                organization_id: self.organization_id.to_string(),
                scope: wanted.scope.clone(),
                number,
                offer: limit.lease.offer(reserved, terms, now_ms),
            }
        });
        Some(requests.collect())
    }

    /// Applies what the store granted.
    pub fn apply_limits(&self, requests: &[LimitRequest], grants: &[LimitGrant]) {
        let mut state = self.lock();
        for (request, grant) in requests.iter().zip(grants) {
            let Some(limit) = state.limit(&request.scope) else {
                continue;
            };
            limit.lease.apply(&request.offer, grant);
            let need = request.offer.wanted.map(|(terms, need)| terms.need(need));
            if limit.lease.admits(need.unwrap_or_default()) {
                limit.lack = None;
            }
            // The store has forgotten a budget of which this process holds nothing, and so does it.
            if matches!(request.scope, LimitScope::Budget(_))
                && request.offer.wanted.is_none()
                && !limit.lease.is_held()
            {
                limit.lease.forget_granted();
            }
        }
    }

    /// Records that the store has nothing left of these limits. `is_final`: nothing comes back before they begin anew.
    pub fn record_limit_lack(&self, wanted: &[WantedLimit], is_final: bool) {
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
                until_ms: match is_final {
                    true => limit.lease.resets_ms(),
                    false => 0,
                },
            });
        }
    }

    /// Returns whether the store has lately said, after `waits_since` or often enough, that nothing is left of a limit of
    /// the call, so that it is not asked again.
    pub fn lacks_limits(&self, call: &LimitedCall<'_>, waits_since: Instant) -> bool {
        let state = self.lock();
        call.terms().any(|of| {
            let limit = state.limit_of(&of, &call.hold);
            let lack = limit.filter(|limit| !limit.lease.admits(call.need(&of.terms)));
            let lack = lack.and_then(|limit| limit.lack.as_ref());
            lack.is_some_and(|lack| {
                let is_final = lack.terms == of.terms && call.now_ms < lack.until_ms;
                let is_known = lack.answers >= MAX_LACK_ANSWERS || lack.since >= waits_since;
                is_final || (is_known && lack.is_fresh(&of.terms))
            })
        })
    }

    /// Records that the store did not answer a request for leases.
    pub fn record_limit_failure(&self) {
        self.lock().plan_limits.failed_at = Some(Instant::now());
    }

    /// Returns whether the store did not answer such a request after this time. A call that waited for it does not ask again.
    pub fn has_limit_failure(&self, waits_since: Instant) -> bool {
        let failed_at = self.lock().plan_limits.failed_at;
        failed_at.is_some_and(|failed_at| failed_at >= waits_since)
    }

    /// Returns the refusal of a call that a lease does not cover: the tightest limit of the first such scope.
    pub fn reached_limit(&self, call: &LimitedCall<'_>) -> Option<LimitReached> {
        let state = self.lock();
        let lacking = |of: &CallTerms<'_>| {
            let limit = state.limit_of(of, &call.hold)?;
            let is_granted = limit.lease.is_of(&of.terms, call.now_ms);
            let is_lacking = is_granted && !limit.lease.admits(call.need(&of.terms));
            is_lacking.then(|| call.reached(of, &limit.lease)).flatten()
        };
        call.terms().find_map(|of| lacking(&of))
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
        let budgets = state.budgets.iter();
        let budgets = budgets.map(|(name, of)| (LimitScope::Budget(Arc::clone(name)), &of.limit));
        let plan = [
            (LimitScope::Plan, &state.plan_limits.plan),
            (LimitScope::Premium, &state.plan_limits.premium),
        ];
        let all = keys.chain(members).chain(budgets).chain(plan);
        let held = all.filter(|(_, limit)| {
            let limit = limit.as_ref();
            limit.is_some_and(|limit| limit.lease.is_held())
        });
        held.map(|(scope, _)| WantedLimit { scope, terms: None })
            .collect()
    }

    /// Returns whether enough is left of a lease for a call that may cost this much.
    pub fn still_admits(&self, wanted: &WantedLimit, max_cost: Usd) -> bool {
        let need = wanted.terms.map(|terms| terms.need(max_cost));
        let mut state = self.lock();
        state
            .limit(&wanted.scope)
            .is_some_and(|limit| limit.lease.admits(need.unwrap_or_default()))
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
    /// Checks the limits of a call: each has to be leased and to have something left, or, without a lease, is known to be
    /// reached or not.
    pub(super) fn check_limits(&self, call: &LimitedCall<'_>) -> Result<(), HoldError> {
        for of in call.terms() {
            let lease = self.limit_of(&of, &call.hold).map(|limit| &limit.lease);
            if call.needs_lease {
                let need = call.need(&of.terms);
                let covers =
                    |lease: &LimitLease| lease.is_of(&of.terms, call.now_ms) && lease.admits(need);
                if !lease.is_some_and(covers) {
                    return Err(HoldError::Limit);
                }
            } else if let Some(lease) = lease
                && !lease.may_be_left(&of.terms, call.now_ms)
            {
                let reached = call.reached(&of, lease);
                return Err(reached.map_or(HoldError::Limit, HoldError::Reached));
            }
        }
        Ok(())
    }

    /// Reserves an amount of the leases; a negative amount ends a reservation.
    pub(super) fn reserve_limits(&mut self, hold: &Hold<'_>, amount: Usd) {
        let premium = (hold.funding == Funding::Plan).then_some(hold.is_premium);
        self.each_limit(hold, premium, |lease| lease.reserve(amount));
    }

    /// Counts what a call has spent. `premium`: the plan pays, and whether the model is premium.
    pub(super) fn spend(
        &mut self,
        hold: &Hold<'_>,
        premium: Option<bool>,
        change: impl FnMut(&mut LimitLease),
    ) {
        self.spendings += 1;
        self.each_limit(hold, premium, change);
    }

    /// Applies `change` to the leases that a call has. `premium`: the plan pays, and whether the model is premium.
    fn each_limit(
        &mut self,
        hold: &Hold<'_>,
        premium: Option<bool>,
        mut change: impl FnMut(&mut LimitLease),
    ) {
        if !self.plan_limits.has_leases {
            return;
        }
        for budget in hold.budgets {
            let of = self.budgets.get_mut(&budget.name);
            if let Some(limit) = of.and_then(|of| of.limit.as_deref_mut()) {
                change(&mut limit.lease);
            }
        }
        let key = self.keys.get_mut(hold.key_id);
        let key = key.and_then(|key| key.limit.as_deref_mut());
        let member = hold.member_id.and_then(|id| self.members.get_mut(id));
        let member = member.and_then(|member| member.limit.as_deref_mut());
        let PlanLimits {
            plan, premium: of, ..
        } = &mut self.plan_limits;
        let plan = plan.as_deref_mut().filter(|_| premium.is_some());
        let premium = of.as_deref_mut().filter(|_| premium == Some(true));
        let all = [key, member, plan, premium].into_iter().flatten();
        all.for_each(|limit| change(&mut limit.lease));
    }

    /// Forgets what the store lately had not.
    pub(super) fn forget_lacks(&mut self) {
        self.limits().for_each(|limit| limit.lack = None);
    }

    fn limits(&mut self) -> impl Iterator<Item = &mut LeasedLimit> {
        let keys = self.keys.values_mut().map(|key| &mut key.limit);
        let members = self.members.values_mut().map(|member| &mut member.limit);
        let PlanLimits { plan, premium, .. } = &mut self.plan_limits;
        let budgets = self.budgets.values_mut().map(|of| &mut of.limit);
        let all = keys.chain(members).chain(budgets).chain([plan, premium]);
        all.filter_map(Option::as_deref_mut)
    }

    fn limit_slot(&mut self, scope: &LimitScope) -> &mut Option<Box<LeasedLimit>> {
        match scope {
            LimitScope::Key(id) => &mut spender_entry(&mut self.keys, id).limit,
            LimitScope::Member(id) => &mut spender_entry(&mut self.members, id).limit,
            LimitScope::Plan => &mut self.plan_limits.plan,
            LimitScope::Premium => &mut self.plan_limits.premium,
            LimitScope::Budget(name) => &mut budget_entry(&mut self.budgets, name).limit,
        }
    }

    fn limit(&mut self, scope: &LimitScope) -> Option<&mut LeasedLimit> {
        match scope {
            LimitScope::Key(id) => self.keys.get_mut(id)?.limit.as_deref_mut(),
            LimitScope::Member(id) => self.members.get_mut(id)?.limit.as_deref_mut(),
            LimitScope::Plan => self.plan_limits.plan.as_deref_mut(),
            LimitScope::Premium => self.plan_limits.premium.as_deref_mut(),
            LimitScope::Budget(name) => self.budgets.get_mut(name)?.limit.as_deref_mut(),
        }
    }

    /// Returns the lease for limits of a call.
    fn limit_of(&self, of: &CallTerms<'_>, hold: &Hold<'_>) -> Option<&LeasedLimit> {
        match of.terms {
            LimitTerms::Key(_) => self.keys.get(hold.key_id)?.limit.as_deref(),
            LimitTerms::Member(_) => self.members.get(hold.member_id?)?.limit.as_deref(),
            LimitTerms::Plan(..) => self.plan_limits.plan.as_deref(),
            LimitTerms::Premium(..) => self.plan_limits.premium.as_deref(),
            LimitTerms::Budget(..) => self.budgets.get(&of.budget?.name)?.limit.as_deref(),
        }
    }

    fn reserved_of(&self, scope: &LimitScope) -> Usd {
        let of = |spender: Option<&Spender>| spender.map_or(Usd::ZERO, |of| of.reserved);
        match scope {
            LimitScope::Key(id) => of(self.keys.get(id)),
            LimitScope::Member(id) => of(self.members.get(id)),
            LimitScope::Plan => self.plan_reserved,
            LimitScope::Premium => self.premium_reserved,
            LimitScope::Budget(name) => {
                let budget = self.budgets.get(name);
                budget.map_or(Usd::ZERO, |of| of.reserved)
            }
        }
    }
}
