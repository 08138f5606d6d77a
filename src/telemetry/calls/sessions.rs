//! The sessions of the kept calls, and the agents in one of them.

use std::collections::{BTreeMap, HashSet};

use filters::money::Usd;

use super::line::cached_share;
use super::{KeptCall, SessionCall};

/// The calls of a session that are kept.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionSummary {
    /// Organizations may give the same id.
    pub organization: String,
    pub session_id: String,
    /// How many agents there are beside the one that began.
    pub agents: usize,
    pub totals: CallTotals,
}

/// The calls of an agent that are kept.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AgentSummary {
    /// Empty: the agent that the session began with.
    pub agent_id: String,
    /// How many agents stand above it.
    pub depth: usize,
    pub totals: CallTotals,
}

/// What calls come to together.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CallTotals {
    pub calls: usize,
    pub failed: usize,
    pub cost: Usd,
    /// How many calls had an answer whose price is unknown.
    pub unpriced: usize,
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub completion_tokens: u64,
    /// When the first of them ended, RFC 3339.
    pub first: String,
    /// When the last of them ended.
    pub last: String,
}

impl CallTotals {
    fn add(&mut self, call: &SessionCall<'_>) {
        self.calls += 1;
        self.failed += usize::from(call.has_failed());
        self.cost = self.cost.plus(call.cost.unwrap_or(Usd::ZERO));
        self.unpriced += usize::from(call.outcome == "ok" && call.cost.is_none());
        self.prompt_tokens = self.prompt_tokens.saturating_add(call.prompt_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(call.cached_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(call.completion_tokens);
        // Times of one form sort as texts.
        if self.first.is_empty() || *call.time < *self.first {
            self.first.clear();
            self.first.push_str(&call.time);
        }
        if *call.time > *self.last {
            self.last.clear();
            self.last.push_str(&call.time);
        }
    }

    /// Returns the share of the prompts that providers had cached; `None`: there were no prompts.
    pub fn cached_share(&self) -> Option<f64> {
        cached_share(self.cached_tokens, self.prompt_tokens)
    }
}

/// Adds calls up by session. It keeps no call, so a list of all sessions takes the memory of the sessions alone.
#[derive(Debug, Default)]
pub struct SessionTable(BTreeMap<(String, String), SessionTotals>);

#[derive(Debug, Default)]
struct SessionTotals {
    totals: CallTotals,
    agents: HashSet<String>,
}

impl SessionTable {
    /// Adds a call, unless it is of no session.
    pub fn add(&mut self, call: &SessionCall<'_>) {
        if call.session_id.is_empty() {
            return;
        }
        let of = (call.organization.to_string(), call.session_id.to_string());
        let session = self.0.entry(of).or_default();
        session.totals.add(call);
        if !call.agent_id.is_empty() && !session.agents.contains(&*call.agent_id) {
            session.agents.insert(call.agent_id.to_string());
        }
    }

    /// Returns the sessions, the last used first.
    pub fn into_list(self) -> Vec<SessionSummary> {
        let summary = |((organization, session_id), session): (_, SessionTotals)| SessionSummary {
            organization,
            session_id,
            agents: session.agents.len(),
            totals: session.totals,
        };
        let mut found: Vec<_> = self.0.into_iter().map(summary).collect();
        found.sort_by(|one, other| other.totals.last.cmp(&one.totals.last));
        found
    }
}

/// Returns the sessions of calls, the last used first. Calls of no session are none's.
pub fn sessions<'c>(calls: impl IntoIterator<Item = &'c KeptCall>) -> Vec<SessionSummary> {
    let mut table = SessionTable::default();
    for call in calls {
        table.add(&SessionCall::from(call));
    }
    table.into_list()
}

/// Returns the agents of the calls of one session, each before those that it has asked. An agent whose parent has no call here stands at
/// the top, as do those that name each other.
pub fn agents<'c>(calls: impl IntoIterator<Item = &'c KeptCall>) -> Vec<AgentSummary> {
    let mut found = BTreeMap::<&str, (&str, CallTotals)>::new();
    for call in calls {
        let (parent, totals) = found.entry(&call.agent_id).or_default();
        if parent.is_empty() {
            *parent = &call.parent_agent_id;
        }
        totals.add(&SessionCall::from(call));
    }
    let mut asked = BTreeMap::<&str, Vec<&str>>::new();
    let mut tops = Vec::new();
    for (id, (parent, _)) in &found {
        let has_parent = !id.is_empty() && parent != id && found.contains_key(parent);
        match has_parent {
            true => asked.entry(*parent).or_default().push(*id),
            false => tops.push(*id),
        }
    }
    // Whoever is in a circle comes after all others.
    let all: Vec<&str> = tops.into_iter().chain(found.keys().copied()).collect();
    let (mut listed, mut open) = (Vec::new(), Vec::new());
    for top in all {
        open.push((top, 0));
        while let Some((id, depth)) = open.pop() {
            let Some((_, totals)) = found.remove(id) else {
                continue;
            };
            listed.push(AgentSummary {
                agent_id: id.to_owned(),
                depth,
                totals,
            });
            let children = asked.remove(id).unwrap_or_default();
            open.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
        }
    }
    listed
}
