//! The budgets in which a call counts: those of its session, its agents and its tags.

use std::sync::Arc;

use filters::accounts::{Caller, parse_tags};
use filters::fault::{Fault, FaultKind, quoted};
use filters::fault_code::FaultCode;
use filters::ledger::CallMarks;
use filters::models::dialects::Dialect;
use filters::money::budgets::{
    Budget, BudgetKind, BudgetNames, BudgetReached, BudgetTerms, nameless_budget, session_budget,
};
use http::{HeaderMap, HeaderName};

use super::ModelExchange;
use super::call::Call;
use crate::ledger::use_of_reached;
use crate::models::Models;
use crate::proxy::budget_head::BudgetHead;
use crate::proxy::context::RequestInfo;

/// The header with the tags of a call, separated by commas.
const TAGS: HeaderName = HeaderName::from_static("x-weirgate-tags");

impl ModelExchange {
    /// Reads the tags of the call. Errors: 400 for one that is no tag, or too many.
    ///
    /// Cost without the header: one look-up.
    pub(super) fn set_tags(&mut self, headers: &HeaderMap) -> Result<(), Fault> {
        if let Some(value) = headers.get(TAGS) {
            self.call.budgets.tags = parse_tags(TAGS.as_str(), value.as_bytes())?;
        }
        Ok(())
    }

    /// Returns what is left of the call's budget that is nearest to its end, or of the one for which it was refused.
    pub fn budget_head(&self, info: &RequestInfo) -> Option<BudgetHead> {
        let Self { models, call, .. } = self;
        let (caller, budgets) = (info.caller.as_deref()?, &call.budgets);
        let all = budgets.all.as_deref()?;
        let of = match &budgets.reached {
            Some(reached) => Some(use_of_reached(reached)),
            None => models.ledger.budget_use(&caller.organization_id, all),
        };
        Some(BudgetHead {
            of: of?,
            now_ms: models.ledger.now_ms(),
            is_messages: call.request.front.row().dialect == Some(Dialect::Messages),
            is_refused: budgets.reached.is_some(),
        })
    }
}

impl Call {
    /// Finds the budgets in which the call counts, by the terms of its key, and what people have said of them.
    ///
    /// Cost without budgets, tags and sessions of the organization that are granted more or paused: two branches and a look-up.
    /// Errors: 402 for a session that is paused, 403 for models without a price.
    pub(super) fn find_budgets(&mut self, models: &Models, caller: &Caller) -> Result<(), Fault> {
        let terms = caller.terms.as_deref().map(|terms| &terms.budgets);
        let terms = terms.filter(|terms| !terms.is_empty());
        let said = models.budgets.find(&caller.organization_id);
        if terms.is_none() && said.is_none() && self.budgets.tags.is_empty() {
            return Ok(());
        }
        let now_ms = models.ledger.now_ms();
        let mut budgets = self.name_budgets(models, caller, terms);
        models.ledger.bound_names(caller, &mut budgets, now_ms);
        if let Some(said) = said {
            let session = self.session_budget(caller);
            let session = said.get(&*session).and_then(|state| state.paused_ms);
            let mut is_paused = session.is_some();
            for budget in &mut budgets {
                if let Some(state) = said.get(&*budget.name) {
                    is_paused |= budget.apply(state, now_ms);
                }
            }
            if is_paused {
                return Err(self.paused(caller));
            }
        }
        self.require_prices(&budgets)?;
        self.budgets.marks = (!budgets.is_empty() || !self.budgets.tags.is_empty()).then(|| {
            Arc::new(CallMarks {
                tags: self.budgets.tags.clone(),
                budgets: budgets.iter().map(|it| Arc::clone(&it.name)).collect(),
            })
        });
        self.budgets.all = (!budgets.is_empty()).then(|| budgets.into());
        Ok(())
    }

    fn name_budgets(
        &self,
        models: &Models,
        caller: &Caller,
        terms: Option<&BudgetTerms>,
    ) -> Vec<Budget> {
        let names = self.session_names.as_deref();
        let (session, agent, parent) = names.map_or(("", "", ""), |names| {
            (&*names.session, &*names.agent, &*names.parent)
        });
        let has_agents = terms.is_some_and(|terms| !terms.agent.is_empty());
        let top = has_agents.then(|| {
            let names = (session, agent, parent);
            models.ledger.top_agent(&caller.organization_id, names)
        });
        let names = BudgetNames {
            session,
            agent: top.as_deref().unwrap_or_default(),
            tags: &self.budgets.tags,
        };
        let terms = [(&*caller.key_id, terms), ("", None)];
        Budget::of_call(terms, &caller.key_id, names)
    }

    /// Returns the name of the budget of its session, whether or not it has one.
    fn session_budget(&self, caller: &Caller) -> String {
        let names = self.session_names.as_deref();
        match names.map_or("", |names| &*names.session) {
            "" => nameless_budget(&caller.key_id),
            session => session_budget(session),
        }
    }

    /// Drops the attempts whose price is unknown, because no budget can hold what they cost.
    ///
    /// Errors: no other is left.
    fn require_prices(&mut self, budgets: &[Budget]) -> Result<(), Fault> {
        let Some(budget) = budgets.first() else {
            return Ok(());
        };
        let (request, point) = (&self.request, self.price_point);
        let has_price =
            |attempt: &super::PlannedAttempt| attempt.max_cost(request, point).is_some();
        if !self.attempts.iter().any(has_price) {
            let message = format!(
                "calls of this key have a budget of each {}, and the price of this model is not known; accepted are models \
                 with a price: the operator can set one in the catalogue",
                budget.kind
            );
            return Err(Fault::new(FaultKind::Forbidden, message));
        }
        self.attempts.retain(has_price);
        Ok(())
    }

    /// Lets the call pass a budget that does not cover it, if the session has calls left behind the end of its own.
    ///
    /// Errors: the refusal, which says what was spent and how to go on.
    pub(super) async fn pass_budget(
        &mut self,
        models: &Models,
        caller: &Caller,
        reached: &BudgetReached,
    ) -> Result<(), Fault> {
        let all = self.budgets.all.as_deref().unwrap_or_default();
        let budget = all.get(reached.place);
        let terms = caller.terms.as_deref().map(|terms| &terms.budgets);
        let most = terms.map_or(0, |terms| terms.grace_calls);
        if let Some(budget) = budget
            && budget.kind == BudgetKind::Session
            && !budget.is_waived
        {
            let call = (budget, reached);
            let ledger = &models.ledger;
            if ledger
                .use_grace_call(&caller.organization_id, call, most)
                .await
            {
                let mut budgets = all.to_vec();
                if let Some(budget) = budgets.get_mut(reached.place) {
                    budget.is_waived = true;
                }
                self.budgets.all = Some(budgets.into());
                return Ok(());
            }
        }
        self.budgets.reached = Some(*reached);
        Err(self.refused(caller, reached, models.ledger.now_ms()))
    }

    /// Returns the refusal of a call that its budget does not cover.
    fn refused(&self, caller: &Caller, reached: &BudgetReached, now_ms: i64) -> Fault {
        let how = match reached.kind {
            BudgetKind::Session => format!(
                "an operator can grant more with `weirgate session grant --org {} {} USD`, and the session goes on with its \
                 next request",
                quoted(&caller.organization),
                self.session_words(caller)
            ),
            BudgetKind::Agent | BudgetKind::Tag => format!(
                "an operator can raise it with `weirgate key update {} --{}-limit`",
                caller.key_id, reached.kind
            ),
        };
        let head = BudgetHead {
            of: use_of_reached(reached),
            now_ms,
            is_messages: false,
            is_refused: true,
        };
        Fault::new(FaultKind::Payment, format!("{reached}; {how}"))
            .with_code(FaultCode::BudgetReached)
            .with_retry_after_s(head.reset_s())
    }

    /// Returns the refusal of a call of a session that a person has paused.
    fn paused(&self, caller: &Caller) -> Fault {
        const DAY_S: u32 = 86_400;
        let message = format!(
            "this session is paused; an operator lets it go on with `weirgate session resume --org {} {}`, and it does with its \
             next request",
            quoted(&caller.organization),
            self.session_words(caller)
        );
        Fault::new(FaultKind::Payment, message)
            .with_code(FaultCode::BudgetReached)
            .with_retry_after_s(DAY_S)
    }

    /// Returns the session as commands take it: by its id, or else by the id of the key.
    fn session_words(&self, caller: &Caller) -> String {
        let names = self.session_names.as_deref();
        match names.map_or("", |names| &*names.session) {
            "" => caller.key_id.to_string(),
            session => format!("'{}'", session.replace('\'', "")),
        }
    }
}
