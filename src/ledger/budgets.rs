//! The budgets of calls in this process: how many names clients may make, who is an agent's top, what is left, and the calls behind
//! the end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use filters::accounts::Caller;
use filters::money::budgets::{Budget, BudgetKind, BudgetReached};
use filters::money::limit_use::{LimitName, LimitUse};

use super::Ledger;
use super::account::OrganizationAccount;
use super::account_limits::WantedLimit;
use super::account_state::spender_entry;

/// The new sessions and agents that calls of a key may begin in an hour in this process. Others are the session without a name.
const MAX_NEW_NAMES: u32 = 1_000;
/// The agents of an organization whose top is known.
const MAX_AGENTS: usize = 10_000;
const HOUR_MS: i64 = 3_600_000;

/// The agents at the top, by session and agent.
#[derive(Default)]
pub(super) struct TopAgents(HashMap<Box<str>, Box<str>>);

impl TopAgents {
    /// Returns the agent at the top of this one, which another one has asked.
    fn find(&mut self, session: &str, agent: &str, parent: &str) -> Box<str> {
        if agent.is_empty() {
            return Box::default();
        }
        let key = |agent: &str| -> Box<str> { format!("{session}\t{agent}").into() };
        let own = key(agent);
        if parent.is_empty() || parent == agent {
            return self.0.get(&own).map_or_else(|| agent.into(), Box::clone);
        }
        let top: Box<str> = self
            .0
            .get(&key(parent))
            .map_or_else(|| parent.into(), Box::clone);
        if self.0.len() >= MAX_AGENTS {
            self.0.clear();
        }
        self.0.insert(own, top.clone());
        top
    }
}

impl Ledger {
    /// Returns the agent at the top of one that another has asked, as far as this process has seen them.
    pub fn top_agent(&self, organization_id: &Arc<str>, names: (&str, &str, &str)) -> Box<str> {
        let (session, agent, parent) = names;
        let account = self.account(organization_id);
        let mut state = account.lock();
        state.top_agents.find(session, agent, parent)
    }

    /// Bounds how many sessions and agents the calls of a key may name: beyond that they count as the calls without a name, which
    /// have one budget.
    pub fn bound_names(&self, caller: &Caller, budgets: &mut [Budget], now_ms: i64) {
        let account = self.account(&caller.organization_id);
        let mut state = account.lock();
        for budget in budgets {
            if budget.kind == BudgetKind::Tag || state.budgets.contains_key(&budget.name) {
                continue;
            }
            let of_key = spender_entry(&mut state.keys, &caller.key_id);
            let hour = now_ms.div_euclid(HOUR_MS);
            let (of_hour, count) = &mut of_key.new_names;
            if *of_hour != hour {
                (*of_hour, *count) = (hour, 0);
            }
            if *count >= MAX_NEW_NAMES {
                budget.count_as_other(&caller.key_id);
            } else {
                *count += 1;
                state.budgets.entry(Arc::clone(&budget.name)).or_default();
            }
        }
    }

    /// Returns what is left of the budget that is nearest to its end, as far as this process knows.
    pub fn budget_use(&self, organization_id: &Arc<str>, budgets: &[Budget]) -> Option<LimitUse> {
        let account = self.account(organization_id);
        let state = account.lock();
        let uses = budgets.iter().filter_map(|budget| {
            let limit = state.budgets.get(&budget.name)?.limit.as_deref()?;
            limit.budget_use()
        });
        uses.max_by(LimitUse::cmp_nearness)
    }

    /// Takes one of the calls that a session may make behind the end of its budget. Returns whether there was one.
    pub async fn use_grace_call(
        &self,
        organization_id: &Arc<str>,
        (budget, reached): (&Budget, &BudgetReached),
        most: u32,
    ) -> bool {
        // Under another limit, or in another period, the count begins anew.
        let since = format!("{} {}", reached.limit, reached.resets_ms);
        let account = self.account(organization_id);
        let known = |over: &Option<Box<str>>| over.as_deref() == Some(&*since);
        if most == 0
            || account
                .lock()
                .budgets
                .get(&budget.name)
                .is_some_and(|of| known(&of.grace_over))
        {
            return false;
        }
        let (organization, name) = (Arc::clone(organization_id), Arc::clone(&budget.name));
        let (now_ms, of) = (self.now_ms(), since.clone());
        let used = self.with_store(|store, _| async move {
            store
                .use_grace_call(&organization, &name, (&of, most), now_ms)
                .await
        });
        match used.await {
            Ok(true) => true,
            Ok(false) => {
                if let Some(of) = account.lock().budgets.get_mut(&budget.name) {
                    of.grace_over = Some(since.into());
                }
                false
            }
            Err(_) => false,
        }
    }

    /// Returns the leases of budgets that rest, and forgets them.
    pub(super) async fn drop_idle_budgets(&self, idle: Duration) {
        for account in self.accounts() {
            let wanted = account.idle_budgets(idle);
            if !wanted.is_empty() {
                self.return_limits(&account, wanted).await;
            }
            account.drop_budgets(idle);
        }
    }
}

impl OrganizationAccount {
    /// Returns the leases of budgets that no call has used for this time.
    fn idle_budgets(&self, idle: Duration) -> Vec<WantedLimit> {
        let state = self.lock();
        let budgets = state.budgets.iter();
        let idle = budgets.filter(|(_, of)| of.is_idle(idle) && of.is_held());
        idle.map(|(name, _)| WantedLimit::returned_budget(name))
            .collect()
    }

    /// Forgets the budgets that rest and of which the store holds nothing.
    fn drop_budgets(&self, idle: Duration) {
        let mut state = self.lock();
        state
            .budgets
            .retain(|_, of| !of.is_idle(idle) || of.is_held());
        if state.budgets.capacity() > 4 * state.budgets.len() {
            state.budgets.shrink_to_fit();
        }
    }
}

/// Returns what is left of a budget under which something is refused.
pub fn use_of_reached(reached: &BudgetReached) -> LimitUse {
    LimitUse {
        name: LimitName::Of(reached.kind),
        limit: reached.limit,
        used: reached.limit.minus(reached.left),
        resets_ms: (reached.resets_ms != i64::MAX).then_some(reached.resets_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_share_the_budget_of_the_one_that_has_asked_the_first() {
        let mut tops = TopAgents::default();
        assert_eq!(&*tops.find("s", "", ""), "");
        assert_eq!(&*tops.find("s", "a", ""), "a");
        assert_eq!(&*tops.find("s", "b", "a"), "a");
        assert_eq!(&*tops.find("s", "c", "b"), "a");
        // One that is not told again is still known, and another session has agents of its own.
        assert_eq!(&*tops.find("s", "c", ""), "a");
        assert_eq!(&*tops.find("t", "c", "b"), "b");
        assert_eq!(&*tops.find("t", "d", "d"), "d");
        for n in 0..2 * MAX_AGENTS {
            tops.find("s", &n.to_string(), "a");
        }
        assert!(tops.0.len() <= MAX_AGENTS);
    }
}
