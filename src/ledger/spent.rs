//! What a key, its member and its plan have spent, for answers about it.

use std::sync::Arc;
use std::time::Duration;

use filters::accounts::Caller;
use filters::ledger::{Funding, LedgerEntry, LimitScope};
use filters::money::allowance::SpentSoFar;

use super::Ledger;
use super::leases::POLL_INTERVAL;
use super::reservation::ReservationError;
use crate::store::StoreError;

/// The maximum age of other processes' spending.
const MAX_SPENT_AGE: Duration = Duration::from_secs(1);
/// How often spending is read while calls are being posted.
const TRIES: u32 = 5;

/// Whose spending is read.
struct Spenders {
    organization_id: Arc<str>,
    /// The key, its member if it has one, and the plan.
    scopes: Vec<LimitScope>,
    plan_since_ms: i64,
}

impl Ledger {
    /// Returns what a key, its member and its plan have spent, without open reservations. The spending of other processes is
    /// at most [`MAX_SPENT_AGE`] old while the store responds.
    ///
    /// Errors: the spending was never read and the store does not respond.
    pub async fn spent(self: &Arc<Self>, caller: &Caller) -> Result<SpentSoFar, ReservationError> {
        let account = self.account(&caller.organization_id);
        let known = account.known_spent(&caller.key_id);
        if let Some((spent, true, age)) = known
            && age < MAX_SPENT_AGE
        {
            return Ok(spent);
        }
        let spendings = account.spendings();
        match self.load_spent(caller).await {
            Some(spent) => {
                account.set_known_spent(&caller.key_id, spent, spendings);
                Ok(spent)
            }
            None => {
                let known = known.map(|(spent, _, _)| spent);
                known.ok_or(ReservationError::Unavailable)
            }
        }
    }

    async fn load_spent(self: &Arc<Self>, caller: &Caller) -> Option<SpentSoFar> {
        let member = caller.member.as_deref();
        let member = member.map(|member| LimitScope::Member(Arc::clone(&member.id)));
        let key = LimitScope::Key(Arc::clone(&caller.key_id));
        let spenders = Spenders {
            organization_id: Arc::clone(&caller.organization_id),
            scopes: [Some(key), member, Some(LimitScope::Plan)]
                .into_iter()
                .flatten()
                .collect(),
            plan_since_ms: caller.plan_since_ms,
        };
        let ledger = Arc::clone(self);
        let read = self.with_store(|_, _| async move { ledger.read_spent(&spenders).await });
        read.await.ok()
    }

    /// Reads the spending that all processes have stored, and adds the calls that this process has not stored yet.
    ///
    /// Calls on their way to the store would be in both sources or in neither. So the two are joined only if the store
    /// had as many posts of this process as the calls that wait are without. Else it tries again, and at last it keeps
    /// posts off.
    async fn read_spent(&self, spenders: &Spenders) -> Result<SpentSoFar, StoreError> {
        for _ in 0..TRIES {
            if let (spent, true) = self.try_read_spent(spenders).await? {
                return Ok(spent);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let _flush_guard = self.flush_lock.lock().await;
        Ok(self.try_read_spent(spenders).await?.0)
    }

    /// Returns the spending, and whether each call is in it once though calls may be on their way.
    async fn try_read_spent(&self, of: &Spenders) -> Result<(SpentSoFar, bool), StoreError> {
        let stored = self
            .store
            .spent(&self.owner, &of.organization_id, &of.scopes);
        let (mut stored, posts) = stored.await?;
        let mut waiting = self.journal.waiting();
        let is_exact = waiting.posts() == Some(posts);
        waiting.visit(|call| {
            if call.owner.organization_id == of.organization_id {
                let scopes = of.scopes.iter().zip(&mut stored);
                for (_, spent) in scopes.filter(|(scope, _)| is_spent_in(call, scope)) {
                    let ended_ms = (call.at_ms, call.at_ms);
                    spent.add(call.usage.total(), call.usage.is_premium, ended_ms);
                }
            }
        });
        let (now_ms, mut so_far) = (self.now_ms(), SpentSoFar::default());
        for (scope, spent) in of.scopes.iter().zip(&stored) {
            let spent = spent.so_far(now_ms, of.plan_since_ms);
            match scope {
                LimitScope::Key(_) => so_far.key = spent.key,
                LimitScope::Member(_) => so_far.member = spent.member,
                LimitScope::Plan | LimitScope::Premium => so_far.plan = spent.plan,
                LimitScope::Budget(_) => {}
            }
        }
        Ok((so_far, is_exact))
    }
}

/// Returns whether a call counts as spent in a scope of its organization.
pub(super) fn is_spent_in(call: &LedgerEntry, scope: &LimitScope) -> bool {
    match scope {
        LimitScope::Key(id) => *id == call.owner.key_id,
        LimitScope::Member(id) => call.owner.member_id.as_ref() == Some(id),
        LimitScope::Plan | LimitScope::Premium => call.funding == Funding::Plan,
        LimitScope::Budget(name) => call.budgets().contains(name),
    }
}
