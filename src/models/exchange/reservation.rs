//! The maximum cost of a call, which is reserved before its first attempt and for the cancelled one of two attempts.

use std::sync::Arc;

use filters::accounts::{Caller, Plan};
use filters::fault::Fault;
use filters::ledger::{Funding, SessionNames};
use filters::money::Usd;
use filters::money::allowance::{LimitReached, SpendingBounds};

use super::ModelExchange;
use super::call::Call;
use super::planned_attempt::PlannedAttempt;
use crate::ledger::{NewReservation, ReservationError};
use crate::models::Models;
use crate::proxy::context::RequestInfo;

impl ModelExchange {
    /// Reserves the maximum cost of the planned attempts.
    ///
    /// If credit or plan do not suffice, only attempts that need neither remain. Errors: 402, 503.
    pub async fn reserve(&mut self, info: &RequestInfo) -> Result<(), Fault> {
        let Some(caller) = info.caller.as_deref() else {
            return Ok(());
        };
        let Self { models, call, .. } = self;
        call.find_budgets(models, caller)?;
        loop {
            let wanted = call.reservation(models, caller, info, call.attempts.iter());
            let refusal = match models.ledger.reserve(&wanted).await {
                Ok(reservation) => {
                    call.billing.begin(reservation);
                    return Ok(());
                }
                Err(refusal) => refusal,
            };
            match refusal {
                ReservationError::Reached(LimitReached::Budget(reached)) => {
                    call.pass_budget(models, caller, &reached).await?;
                }
                refusal if !call.avoid(&refusal) => return Err(refusal.into()),
                _ => {}
            }
        }
    }
}

impl Call {
    /// Drops the attempts that a refusal forbids. Returns whether other attempts remain.
    fn avoid(&mut self, refusal: &ReservationError) -> bool {
        let attempts = &mut self.attempts;
        let may_run: fn(&PlannedAttempt) -> bool = match refusal {
            ReservationError::Reached(LimitReached::Premium(_)) => {
                |attempt| attempt.is_byok() || !attempt.deployment.is_premium()
            }
            ReservationError::Reached(LimitReached::Cycle(_) | LimitReached::Daily(_))
            | ReservationError::NoCredit
            | ReservationError::Unavailable => PlannedAttempt::is_byok,
            // These limits also hold for calls on BYOK keys.
            ReservationError::Reached(
                LimitReached::Key(_)
                | LimitReached::KeyPeriod(..)
                | LimitReached::Member(_)
                | LimitReached::Budget(_),
            ) => return false,
        };
        let can_avoid = attempts.iter().any(may_run) && !attempts.iter().all(may_run);
        if can_avoid {
            attempts.retain(may_run);
        }
        can_avoid
    }

    /// Returns the reservation for attempts: the parties that pay, and the maximum cost.
    pub(super) fn reservation<'c>(
        &'c self,
        models: &Models,
        caller: &'c Caller,
        info: &'c RequestInfo,
        attempts: impl Iterator<Item = &'c PlannedAttempt> + Clone,
    ) -> NewReservation<'c> {
        let has_platform = attempts.clone().any(|attempt| !attempt.is_byok());
        let paid = attempts.filter(|attempt| has_platform != attempt.is_byok());
        let max_cost = self.max_cost(paid.clone());
        let funding = match (has_platform, caller.plan) {
            (false, _) => Funding::Byok,
            _ if max_cost == Usd::ZERO => Funding::Unbilled,
            (_, Plan::None) => Funding::Credit,
            _ => Funding::Plan,
        };
        let plan = models.plans.allowance(caller.plan);
        NewReservation {
            caller,
            request_id: info.id.as_str(),
            is_stream: self.request.is_stream,
            funding,
            max_cost,
            is_premium: paid.clone().any(|attempt| attempt.deployment.is_premium()),
            bounds: SpendingBounds {
                key: caller
                    .terms
                    .as_ref()
                    .map_or_else(Default::default, |terms| terms.limits),
                member: caller.member.as_ref().and_then(|member| member.budget),
                plan: plan.filter(|_| funding == Funding::Plan),
            },
            experiment: self.request.experiment(),
            session: self.usage_session(),
            budgets: self.budgets.all.as_ref(),
            marks: self.budgets.marks.as_ref(),
        }
    }

    /// Returns the session in whose usage the call is. An agent without a session is in none.
    pub(super) fn usage_session(&self) -> Option<&Arc<SessionNames>> {
        let names = self.session_names.as_ref();
        names.filter(|names| !names.session.is_empty())
    }

    /// Returns the maximum cost of attempts that follow each other. A failed attempt costs nothing, unless it has
    /// several parts, of which all but one may have ended.
    pub(super) fn max_cost<'c>(&self, attempts: impl Iterator<Item = &'c PlannedAttempt>) -> Usd {
        let (mut most, mut failed) = (Usd::ZERO, Usd::ZERO);
        for attempt in attempts {
            let cost = attempt.max_cost(&self.request, self.price_point);
            let cost = cost.unwrap_or(Usd::ZERO);
            most = most.max(failed.plus(cost));
            if attempt.is_split(&self.request) {
                failed = failed.plus(cost);
            }
        }
        most
    }
}
