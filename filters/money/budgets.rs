//! Budgets: what each session, each agent and each tag of a caller may spend.
//!
//! A session, an agent or a tag is whatever the client names so, so a budget stops a run that went astray and no one who means
//! to spend: the limits of the key stand above it. A call counts in each of its budgets, and is reserved in each before it begins.
//! The name of a budget says whose it is. An agent counts in the budget of the agent at the top, which has asked it.

use std::fmt;
use std::sync::Arc;

use super::allowance::KeyLimits;
use super::period::Period;
use super::tally::Tally;
use super::usd::Usd;

/// What a budget is of.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum BudgetKind {
    Session,
    Agent,
    Tag,
}

/// A tag, and what all calls with it may spend.
pub type TagLimits = (Box<str>, KeyLimits);

/// The budgets that a key or a project sets.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BudgetTerms {
    /// Of each session.
    pub session: KeyLimits,
    /// Of each agent.
    pub agent: KeyLimits,
    /// Of these tags.
    pub tags: Box<[TagLimits]>,
    /// How many calls a session may make when its budget is used up, to end what it does.
    pub grace_calls: u32,
}

/// Who of a client makes a call. Empty: it says not.
#[derive(Clone, Copy, Debug, Default)]
pub struct BudgetNames<'a> {
    pub session: &'a str,
    /// The agent at the top.
    pub agent: &'a str,
    pub tags: &'a [Box<str>],
}

/// A budget in which a call counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Budget {
    pub kind: BudgetKind,
    /// Names it in its organization, see [`session_budget`].
    pub name: Arc<str>,
    pub limits: KeyLimits,
    /// Whether the call may pass it: it counts there all the same.
    pub is_waived: bool,
}

/// A budget that does not cover a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BudgetReached {
    pub kind: BudgetKind,
    /// Its place among the budgets of the call.
    pub place: usize,
    /// The period of its tightest limit; `None`: it has none.
    pub period: Option<Period>,
    pub limit: Usd,
    /// What is left; negative beyond the limit. A call that may cost more is not covered.
    pub left: Usd,
    /// When it begins anew, in unix milliseconds; `i64::MAX`: never.
    pub resets_ms: i64,
}

/// What people have said of a budget.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BudgetState {
    /// What was granted beyond its limits, in the periods in which it was.
    pub granted: Tally,
    /// Since when it is paused, in unix milliseconds.
    pub paused_ms: Option<i64>,
}

impl BudgetKind {
    /// Returns its word for people and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Tag => "tag",
        }
    }
}

impl fmt::Display for BudgetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the name of the budget of a session.
pub fn session_budget(session: &str) -> String {
    format!("session/{session}")
}

/// Returns the name of the budget of all calls of a key that name no session.
pub fn nameless_budget(key_id: &str) -> String {
    format!("sessionless/{key_id}")
}

/// Returns the name of the budget of an agent. Names have no tab, so no two agents share one.
fn agent_budget(session: &str, agent: &str) -> String {
    format!("agent/{session}\t{agent}")
}

/// Returns the name of the budget of a tag that a key or a project limits.
fn tag_budget(owner_id: &str, tag: &str) -> String {
    format!("tag/{owner_id}\t{tag}")
}

impl KeyLimits {
    /// Returns whether there is no limit.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the lower limit of each two.
    pub fn lower(self, other: Self) -> Self {
        let lower = |one: Option<Usd>, other: Option<Usd>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let mut periods = self.periods;
        for (own, other) in periods.iter_mut().zip(other.periods) {
            *own = lower(*own, other);
        }
        Self {
            lifetime: lower(self.lifetime, other.lifetime),
            periods,
        }
    }

    /// Returns the limits with what was granted beyond them.
    pub fn plus(self, granted: &Tally, now_ms: i64) -> Self {
        let granted = granted.spent(now_ms);
        let mut periods = self.periods;
        for (limit, granted) in periods.iter_mut().zip(granted.periods) {
            *limit = limit.map(|limit| limit.plus(granted));
        }
        Self {
            lifetime: self.lifetime.map(|limit| limit.plus(granted.total)),
            periods,
        }
    }
}

impl BudgetTerms {
    /// Returns whether no budget is set.
    pub fn is_empty(&self) -> bool {
        self.session.is_empty() && self.agent.is_empty() && self.tags.is_empty()
    }
}

impl Budget {
    fn new(kind: BudgetKind, name: String, limits: KeyLimits) -> Self {
        Self {
            kind,
            name: name.into(),
            limits,
            is_waived: false,
        }
    }

    /// Returns the budgets in which a call counts, by the terms of its key and of its project, each with the id of its owner.
    pub fn of_call(
        terms: [(&str, Option<&BudgetTerms>); 2],
        key_id: &str,
        names: BudgetNames<'_>,
    ) -> Vec<Self> {
        let set = || terms.iter().filter_map(|(_, terms)| *terms);
        let lowest = |limits: fn(&BudgetTerms) -> KeyLimits| {
            set()
                .map(limits)
                .fold(KeyLimits::default(), KeyLimits::lower)
        };
        let mut budgets = Vec::new();
        let (session, agent) = (lowest(|it| it.session), lowest(|it| it.agent));
        if !session.is_empty() {
            let name = match names.session {
                "" => nameless_budget(key_id),
                session => session_budget(session),
            };
            budgets.push(Self::new(BudgetKind::Session, name, session));
        }
        if !agent.is_empty() {
            // Without a session, the agents of a key are its own.
            let session = match names.session {
                "" => key_id,
                session => session,
            };
            let name = agent_budget(session, names.agent);
            budgets.push(Self::new(BudgetKind::Agent, name, agent));
        }
        for (owner_id, terms) in terms.iter().filter_map(|(id, terms)| Some((id, (*terms)?))) {
            let tags = terms.tags.iter();
            let tags = tags.filter(|(tag, _)| names.tags.contains(tag));
            budgets.extend(tags.map(|(tag, limits)| {
                Self::new(BudgetKind::Tag, tag_budget(owner_id, tag), *limits)
            }));
        }
        budgets
    }

    /// Makes it the budget of the calls of a key that name no session, or no agent.
    pub fn count_as_other(&mut self, key_id: &str) {
        let name = match self.kind {
            BudgetKind::Session => nameless_budget(key_id),
            BudgetKind::Agent => agent_budget(key_id, ""),
            BudgetKind::Tag => return,
        };
        self.name = name.into();
    }

    /// Applies what people have said of it. Returns whether it is paused.
    pub fn apply(&mut self, state: &BudgetState, now_ms: i64) -> bool {
        self.limits = self.limits.plus(&state.granted, now_ms);
        state.paused_ms.is_some()
    }
}

impl fmt::Display for BudgetReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind, limit, left, ..
        } = self;
        let spent = limit.minus(*left);
        write!(f, "this {kind} has used {spent} of its {limit} USD")?;
        if let Some(period) = self.period {
            write!(f, " per {period}")?;
        }
        if *left > Usd::ZERO {
            write!(
                f,
                ", and this call may cost more than the {left} USD that are left"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    /// 2027-01-15T08:00:00Z.
    const NOW_MS: i64 = 1_800_000_000_000;
    const DAY_MS: i64 = 86_400_000;

    fn usd(text: &str) -> Usd {
        Usd::parse(text).unwrap()
    }

    fn ever(text: &str) -> KeyLimits {
        KeyLimits {
            lifetime: Some(usd(text)),
            ..KeyLimits::default()
        }
    }

    fn names<'a>(session: &'a str, agent: &'a str, tags: &'a [Box<str>]) -> BudgetNames<'a> {
        BudgetNames {
            session,
            agent,
            tags,
        }
    }

    fn named(budgets: &[Budget]) -> Vec<(&str, KeyLimits)> {
        let all = budgets.iter();
        all.map(|budget| (&*budget.name, budget.limits)).collect()
    }

    #[test]
    fn a_call_counts_in_each_budget_that_its_key_or_its_project_sets() {
        let key = BudgetTerms {
            session: ever("5"),
            agent: ever("2"),
            tags: [("nightly".into(), ever("9"))].into(),
            grace_calls: 0,
        };
        let project = BudgetTerms {
            session: KeyLimits {
                lifetime: Some(usd("3")),
                periods: [None, Some(usd("1")), None, None],
            },
            tags: [("nightly".into(), ever("20")), ("ci".into(), ever("1"))].into(),
            ..BudgetTerms::default()
        };
        let tags: [Box<str>; 2] = ["nightly".into(), "other".into()];
        let terms = [("key_1", Some(&key)), ("proj_1", Some(&project))];
        let budgets = Budget::of_call(terms, "key_1", names("s", "a", &tags));
        let both = KeyLimits {
            lifetime: Some(usd("3")),
            periods: [None, Some(usd("1")), None, None],
        };
        assert_eq!(
            named(&budgets),
            [
                ("session/s", both),
                ("agent/s\ta", ever("2")),
                ("tag/key_1\tnightly", ever("9")),
                ("tag/proj_1\tnightly", ever("20")),
            ]
        );
        let none = Budget::of_call([("k", None), ("p", None)], "k", names("s", "a", &tags));
        assert_eq!(none, []);
    }

    #[test]
    fn calls_without_names_are_one_session_and_one_agent_of_their_key() {
        let terms = BudgetTerms {
            session: ever("5"),
            agent: ever("2"),
            ..BudgetTerms::default()
        };
        let of = |key, session, agent| {
            let terms = [(key, Some(&terms)), ("p", None)];
            let budgets = Budget::of_call(terms, key, names(session, agent, &[]));
            let names = budgets.iter().map(|it| it.name.to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(of("k1", "", ""), ["sessionless/k1", "agent/k1\t"]);
        assert_eq!(of("k2", "", "a"), ["sessionless/k2", "agent/k2\ta"]);
        // No name of a client is the name of the nameless, or of another's agent.
        assert_eq!(of("k1", "k2", "")[0], "session/k2");
        assert_ne!(of("k1", "a", "b/c"), of("k1", "a/b", "c"));
    }

    #[test]
    fn a_grant_counts_for_good_and_in_the_period_in_which_it_was_given() {
        let limits = KeyLimits {
            lifetime: Some(usd("5")),
            periods: [None, Some(usd("1")), None, None],
        };
        let mut state = BudgetState::default();
        state.granted.charge(usd("2"), NOW_MS);
        let budget = Budget::new(BudgetKind::Session, session_budget("s"), limits);
        let at = |now_ms| {
            let mut granted = budget.clone();
            assert!(!granted.apply(&state, now_ms));
            (granted.limits.lifetime, granted.limits.periods[1])
        };
        assert_eq!(at(NOW_MS), (Some(usd("7")), Some(usd("3"))));
        assert_eq!(at(NOW_MS + DAY_MS), (Some(usd("7")), Some(usd("1"))));
        let paused = BudgetState {
            paused_ms: Some(NOW_MS),
            ..state
        };
        assert!(budget.clone().apply(&paused, NOW_MS));
    }

    #[test]
    fn a_refusal_says_what_was_spent_of_what_and_what_is_left() {
        let reached = BudgetReached {
            kind: BudgetKind::Session,
            place: 0,
            period: None,
            limit: usd("5"),
            left: Usd::ZERO,
            resets_ms: i64::MAX,
        };
        assert_eq!(reached.to_string(), "this session has used 5 of its 5 USD");
        let daily = BudgetReached {
            kind: BudgetKind::Tag,
            period: Some(Period::Day),
            left: usd("0.01"),
            ..reached
        };
        let told = "this tag has used 4.99 of its 5 USD per day, and this call may cost more than the 0.01 USD that are left";
        assert_eq!(daily.to_string(), told);
    }
}
