//! How a model at a provider is told to reason. Source: docs/model-gateway.md 2.1, rules of `reasoning_effort`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::models::request::{Effort, Needs};

/// What a provider is told.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum ThinkingControl {
    #[default]
    Levels,
    Adaptive,
    Budget,
    Switch,
    Fixed,
}

/// What the kind of a provider says of reasoning where the catalogue says nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThinkingDefaults {
    /// What the provider is told.
    pub control: ThinkingControl,
    /// The budgets that efforts stand for, by their order in [`Effort::ALL`]. Units: tokens.
    pub budgets: [Option<u64>; Effort::ALL.len()],
    /// The least and the most budget, where the kind has bounds. Units: tokens.
    pub bounds: (Option<u64>, Option<u64>),
    /// Whether a model that is told a budget can be told not to reason.
    pub can_switch_off: bool,
}

impl ThinkingDefaults {
    /// Words of effort, as they came.
    pub const LEVELS: Self = Self {
        control: ThinkingControl::Levels,
        budgets: [None; Effort::ALL.len()],
        bounds: (None, None),
        can_switch_off: false,
    };
}

/// What a mapping of the catalogue writes.
#[derive(Clone, Debug, Default)]
pub struct WrittenThinking<'a> {
    /// `thinking`.
    pub control: Option<ThinkingControl>,
    /// `budget_min`.
    pub budget_min: Option<u64>,
    /// `budget_max`.
    pub budget_max: Option<u64>,
    /// `reasoning_efforts`.
    pub efforts: &'a [Effort],
    /// `reasons_by_default`.
    pub by_default: bool,
    /// Whether its capabilities list reasoning; `None`: they are not listed.
    pub reasons: Option<bool>,
}

/// How a mapping is told to reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Thinking {
    /// What the provider is told.
    pub control: ThinkingControl,
    /// The efforts it takes, in order; empty: unknown, or none.
    pub efforts: Vec<Effort>,
    budgets: [Option<u64>; Effort::ALL.len()],
    /// The least and the most budget; `None`: an exact budget cannot be said. Units: tokens.
    pub bounds: Option<(u64, u64)>,
    /// Whether the model reasons; `None`: unknown.
    pub reasons: Option<bool>,
    /// Whether it reasons where the request says nothing.
    by_default: bool,
}

impl Default for Thinking {
    fn default() -> Self {
        Self::unknown()
    }
}

impl Thinking {
    /// What is known of a model outside the catalogue at a provider that takes words of effort.
    pub const UNKNOWN: &'static Self = &Self::unknown();

    const fn unknown() -> Self {
        Self {
            control: ThinkingControl::Levels,
            efforts: Vec::new(),
            budgets: [None; Effort::ALL.len()],
            bounds: None,
            reasons: None,
            by_default: false,
        }
    }

    /// Reads what a mapping writes, on top of what the kind of its provider says.
    ///
    /// Errors: the key, and why: a listed effort without a budget inside the bounds, or bounds that do not bound.
    pub fn new(
        written: &WrittenThinking<'_>,
        defaults: &ThinkingDefaults,
    ) -> Result<Self, (String, String)> {
        let control = written.control.unwrap_or(defaults.control);
        let has_bounds = written.budget_min.is_some() || written.budget_max.is_some();
        let (least, most) = defaults.bounds;
        let min = written.budget_min.or(least).unwrap_or(1);
        let max = written.budget_max.or(most).unwrap_or(u64::from(u32::MAX));
        if min > max {
            let why = format!(
                "`budget_min` is {min}, above `budget_max`, which is {max}; accepted is a min that is not above the max"
            );
            return Err(("budget_min".to_owned(), why));
        }
        let takes_budgets = control == ThinkingControl::Budget || has_bounds;
        let mut thinking = Self {
            control,
            efforts: written.efforts.to_vec(),
            budgets: defaults.budgets,
            bounds: takes_budgets.then_some((min, max)),
            reasons: written.reasons,
            by_default: written.by_default,
        };
        thinking.efforts.sort_unstable();
        thinking.efforts.dedup();
        if control == ThinkingControl::Budget {
            thinking.settle_budgets(written, defaults)?;
        }
        Ok(thinking)
    }

    /// Keeps the budgets inside the bounds, and lists their efforts where the catalogue lists none.
    fn settle_budgets(
        &mut self,
        written: &WrittenThinking<'_>,
        defaults: &ThinkingDefaults,
    ) -> Result<(), (String, String)> {
        let (min, max) = self.bounds.unwrap_or((1, u64::MAX));
        for budget in &mut self.budgets {
            *budget = budget.filter(|tokens| (min..=max).contains(tokens));
        }
        // The highest effort is the most that the model takes, where that is more than the one below.
        let highest = self.budgets.iter().flatten().max().copied();
        let is_more = highest.is_some_and(|highest| highest < max);
        let has_max = written.budget_max.is_some() || defaults.bounds.1.is_some();
        if let [.., last @ None] = &mut self.budgets
            && is_more
            && has_max
        {
            *last = Some(max);
        }
        if written.efforts.is_empty() {
            let can_switch_off = defaults.can_switch_off || written.budget_min == Some(0);
            self.efforts = Effort::ALL
                .into_iter()
                .filter(|effort| match effort {
                    Effort::None => can_switch_off,
                    effort => self.budget(*effort).is_some(),
                })
                .collect();
        }
        let lost = self
            .efforts
            .iter()
            .find(|effort| **effort != Effort::None && self.budget(**effort).is_none());
        match lost {
            Some(effort) => {
                let why = format!(
                    "`reasoning_efforts` lists `{}`, which has no budget from {min} to {max}; accepted are efforts with one",
                    effort.as_str()
                );
                Err(("reasoning_efforts".to_owned(), why))
            }
            None => Ok(()),
        }
    }

    /// Returns the budget that an effort stands for. Units: tokens.
    pub fn budget(&self, effort: Effort) -> Option<u64> {
        self.budgets.get(effort as usize).copied().flatten()
    }

    /// Returns the budget that a request asks for, exactly or by its effort. Units: tokens.
    pub fn asked_budget(&self, needs: &Needs) -> Option<u64> {
        let by_effort = || {
            let is_told = self.control == ThinkingControl::Budget;
            needs
                .effort
                .filter(|_| is_told)
                .and_then(|effort| self.budget(effort))
        };
        needs.reasoning_tokens.or_else(by_effort)
    }

    /// Returns whether the model reasons while it answers a request, as far as the request and the catalogue say.
    pub fn is_on(&self, needs: &Needs) -> bool {
        if self.reasons == Some(false) {
            return false;
        }
        match (needs.reasoning_tokens, needs.effort) {
            (Some(_), _) => true,
            (None, Some(effort)) => effort != Effort::None,
            (None, None) => self.by_default || self.control == ThinkingControl::Fixed,
        }
    }

    /// Checks what a request asks of reasoning.
    ///
    /// Errors: the field that cannot be served, and why.
    pub fn check(&self, needs: &Needs) -> Result<(), (&'static str, Cow<'static, str>)> {
        if let Some(budget) = needs.reasoning_tokens {
            return self
                .check_budget(budget)
                .map_err(|reason| ("reasoning.max_tokens", reason));
        }
        let Some(effort) = needs.effort else {
            return Ok(());
        };
        self.check_effort(effort)
            .map_err(|reason| ("reasoning_effort", reason))
    }

    fn check_budget(&self, budget: u64) -> Result<(), Cow<'static, str>> {
        if self.reasons == Some(false) {
            return Err("does not reason".into());
        }
        match self.bounds {
            None => Err("takes efforts, not budgets".into()),
            Some((min, max)) if !(min..=max).contains(&budget) => {
                Err(format!("takes budgets from {min} to {max}").into())
            }
            Some(_) => Ok(()),
        }
    }

    fn check_effort(&self, effort: Effort) -> Result<(), Cow<'static, str>> {
        match (self.reasons, effort) {
            // There is nothing to switch off.
            (Some(false), Effort::None) => return Ok(()),
            (Some(false), _) => return Err("does not reason".into()),
            _ => {}
        }
        if self.control == ThinkingControl::Fixed {
            return Err("reasons always, and takes no effort".into());
        }
        if self.efforts.is_empty() || self.efforts.contains(&effort) {
            return Ok(());
        }
        let known: Vec<&str> = self.efforts.iter().map(|known| known.as_str()).collect();
        let reason = format!(
            "takes the efforts {}, not {}",
            known.join(", "),
            effort.as_str()
        );
        Err(reason.into())
    }
}

#[cfg(test)]
#[path = "thinking_tests.rs"]
mod tests;
