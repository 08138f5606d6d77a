//! How a model at a provider is told to reason. Source: docs/model-gateway.md 2.1, rules of `reasoning_effort`.
//!
//! No effort is lowered. A provider that takes words gets the word, and what it refuses is its own error. One that takes
//! budgets has a budget for every effort.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::models::dialects::NamedMember;
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
    pub control: ThinkingControl,
    /// The budgets that efforts stand for, by their order in [`Effort::ALL`]. Units: tokens.
    pub budgets: [u64; Effort::ALL.len()],
    /// The least and the most budget, where the kind has bounds. Units: tokens.
    pub bounds: (Option<u64>, Option<u64>),
    /// Whether a model that is told a budget can be told not to reason.
    pub can_switch_off: bool,
    /// Whether `none` is one of the words of effort.
    pub says_none: bool,
}

impl ThinkingDefaults {
    /// Words of effort, as they came. Our choice of budgets: as Gemini's.
    pub const LEVELS: Self = Self {
        control: ThinkingControl::Levels,
        budgets: [0, 512, 2048, 8192, 24_576, 65_536, 128_000],
        bounds: (None, None),
        can_switch_off: true,
        says_none: true,
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
    /// `max_output`.
    pub max_output: Option<u64>,
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
    pub control: ThinkingControl,
    /// The efforts it takes, in order; empty: unknown, or none.
    pub efforts: Vec<Effort>,
    /// The budgets of all efforts, within the bounds.
    budgets: [u64; Effort::ALL.len()],
    /// The least and the most budget; `None`: an exact budget cannot be said. Units: tokens.
    pub bounds: Option<(u64, u64)>,
    /// Whether the model reasons; `None`: unknown.
    pub reasons: Option<bool>,
    /// Whether it reasons where the request says nothing.
    by_default: bool,
    /// Whether it can be told not to reason, as far as that is known.
    can_switch_off: bool,
}

impl Default for Thinking {
    fn default() -> Self {
        Self::unknown()
    }
}

/// What an answer keeps of `max_output` beside the most budget. Our choice. Units: tokens.
const ANSWER_TOKENS: u64 = 1000;

impl Thinking {
    /// What is known of a model outside the catalogue at a provider that takes words of effort.
    pub const UNKNOWN: &'static Self = &Self::unknown();

    const fn unknown() -> Self {
        Self {
            control: ThinkingControl::Levels,
            efforts: Vec::new(),
            budgets: ThinkingDefaults::LEVELS.budgets,
            bounds: None,
            reasons: None,
            by_default: false,
            can_switch_off: true,
        }
    }

    /// Reads what a mapping writes, on top of what the kind of its provider says.
    ///
    /// Errors: the key, and why: bounds that do not bound.
    pub fn new(
        written: &WrittenThinking<'_>,
        defaults: &ThinkingDefaults,
    ) -> Result<Self, (String, String)> {
        let control = written.control.unwrap_or(defaults.control);
        let has_bounds = written.budget_min.is_some() || written.budget_max.is_some();
        let takes_budgets = control == ThinkingControl::Budget || has_bounds;
        let (min, max) = read_bounds(written, defaults)?;
        let mut thinking = Self {
            control,
            efforts: written.efforts.to_vec(),
            budgets: defaults.budgets.map(|budget| budget.clamp(min, max)),
            bounds: takes_budgets.then_some((min, max)),
            reasons: written.reasons,
            by_default: written.by_default,
            can_switch_off: can_switch_off(control, written, defaults),
        };
        let is_told_none = written.reasons == Some(false) && written.efforts.is_empty();
        if control == ThinkingControl::Budget && !is_told_none {
            // Each has its budget, whatever the catalogue lists.
            thinking.efforts = Effort::ALL.to_vec();
        }
        thinking.efforts.sort_unstable();
        thinking.efforts.dedup();
        Ok(thinking)
    }

    /// Returns the budget nearest to what an effort stands for; `None`: reasoning is off. Units: tokens.
    ///
    /// `none` is the least budget where reasoning cannot be switched off.
    pub fn budget(&self, effort: Effort) -> Option<u64> {
        let is_off = effort == Effort::None && self.can_switch_off;
        self.budgets
            .get(effort as usize)
            .copied()
            .filter(|_| !is_off)
    }

    /// Returns whether the provider is told words of effort: a switch has them beside it where several are listed.
    pub fn takes_words(&self) -> bool {
        let words = self.efforts.iter().filter(|word| **word != Effort::None);
        match self.control {
            ThinkingControl::Levels | ThinkingControl::Adaptive => true,
            ThinkingControl::Switch => words.count() > 1,
            ThinkingControl::Budget | ThinkingControl::Fixed => false,
        }
    }

    /// Returns the effort that a request asks for. Of a request that adapts it is the nearest that the model is known to have;
    /// `None`: it asks for none, or the model has none.
    pub fn effort(&self, needs: &Needs) -> Option<Effort> {
        let asked = needs.effort?;
        if !needs.adapts {
            return Some(asked);
        }
        if self.reasons != Some(true) || self.control == ThinkingControl::Fixed {
            return None;
        }
        let is_known = self.efforts.is_empty() || self.efforts.contains(&asked);
        if is_known || asked == Effort::None {
            return Some(asked).filter(|_| is_known || self.can_switch_off);
        }
        let words = || self.efforts.iter().filter(|word| **word != Effort::None);
        let below = words().rev().find(|word| **word < asked);
        below.or_else(|| words().next()).copied()
    }

    /// Returns the word of effort that a request asks for. `none` is the least word where reasoning cannot be switched off.
    pub fn asked_word(&self, needs: &Needs) -> Option<Effort> {
        let asked = self.effort(needs)?;
        let is_least = asked == Effort::None && !self.can_switch_off;
        let least = self.efforts.first().filter(|_| is_least);
        Some(least.copied().unwrap_or(asked))
    }

    /// Returns whether a request says how much to reason, and the model may.
    pub fn is_asked(&self, needs: &Needs) -> bool {
        let is_said = self.effort(needs).is_some() || needs.reasoning_tokens.is_some();
        is_said && self.reasons != Some(false)
    }

    /// Returns the budget that a request asks for, exactly or by its effort. Units: tokens.
    pub fn asked_budget(&self, needs: &Needs) -> Option<u64> {
        let by_effort = || {
            let is_told = self.control == ThinkingControl::Budget && self.reasons != Some(false);
            self.effort(needs)
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
        match (needs.reasoning_tokens, self.effort(needs)) {
            (Some(_), _) => true,
            (None, Some(effort)) => effort != Effort::None || !self.can_switch_off,
            (None, None) => self.by_default || self.control == ThinkingControl::Fixed,
        }
    }

    /// Checks what a request asks of reasoning.
    ///
    /// Errors: the member that cannot be served, and why.
    pub fn check(&self, needs: &Needs) -> Result<(), (NamedMember, Cow<'static, str>)> {
        if let Some(budget) = needs.reasoning_tokens {
            return self
                .check_budget(budget)
                .map_err(|reason| (NamedMember::ReasoningBudget, reason));
        }
        let Some(effort) = needs.effort else {
            return Ok(());
        };
        self.check_effort(effort)
            .map_err(|reason| (NamedMember::Effort, reason))
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
            (Some(false), Effort::None) => Ok(()),
            (Some(false), _) => Err("does not reason".into()),
            _ if self.control == ThinkingControl::Fixed => {
                Err("reasons always, and takes no effort".into())
            }
            _ => Ok(()),
        }
    }

    /// Checks whether the mapping has the effort that a request asks for; one that lacks it is called where no other has it.
    ///
    /// Errors: why not.
    pub fn check_listed(&self, needs: &Needs) -> Result<(), Cow<'static, str>> {
        let asked = needs.effort.filter(|_| needs.reasoning_tokens.is_none());
        let Some(effort) = asked.filter(|_| self.reasons != Some(false)) else {
            return Ok(());
        };
        if self.control == ThinkingControl::Budget {
            let is_lost = effort == Effort::None && !self.can_switch_off;
            return if is_lost {
                Err("reasons always".into())
            } else {
                Ok(())
            };
        }
        if self.efforts.is_empty() || self.efforts.contains(&effort) {
            return Ok(());
        }
        let known: Vec<&str> = self.efforts.iter().map(|known| known.as_str()).collect();
        let known = known.join(", ");
        Err(format!("takes the efforts {known}, not {}", effort.as_str()).into())
    }
}

/// Returns the least and the most budget. What is written counts, then what the kind says; a budget without a bound leaves room
/// for an answer.
fn read_bounds(
    written: &WrittenThinking<'_>,
    defaults: &ThinkingDefaults,
) -> Result<(u64, u64), (String, String)> {
    let (least, most) = defaults.bounds;
    let min = written.budget_min.or(least).unwrap_or(1);
    let room = written
        .max_output
        .map(|most| most.saturating_sub(ANSWER_TOKENS).max(min));
    let usual = most.unwrap_or(u64::from(u32::MAX));
    let usual = usual.min(room.unwrap_or(u64::MAX));
    let max = written.budget_max.unwrap_or(usual);
    if min <= max {
        return Ok((min, max));
    }
    let why = format!(
        "`budget_min` is {min}, above `budget_max`, which is {max}; accepted is a min that is not above the max"
    );
    Err(("budget_min".to_owned(), why))
}

/// Returns whether a mapping can be told not to reason: its efforts list `none`, or they say nothing and its kind can.
fn can_switch_off(
    control: ThinkingControl,
    written: &WrittenThinking<'_>,
    defaults: &ThinkingDefaults,
) -> bool {
    if written.efforts.contains(&Effort::None) {
        return true;
    }
    match control {
        ThinkingControl::Fixed => false,
        ThinkingControl::Levels | ThinkingControl::Adaptive | ThinkingControl::Switch => {
            // What a provider does not know of its own words it refuses itself.
            written.efforts.is_empty() || defaults.says_none
        }
        ThinkingControl::Budget => {
            let is_bounded = written.budget_min.is_some_and(|min| min > 0);
            written.efforts.is_empty() && (defaults.can_switch_off || !is_bounded)
        }
    }
}

#[cfg(test)]
#[path = "thinking_tests.rs"]
mod tests;
