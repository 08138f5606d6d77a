//! How a mapping searches the web by itself, and what bounds its searches.
//! Source: docs/model-gateway.md 2.4, docs/facts/wire-formats.md 5.5.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameters::Parameters;
use super::usage_limits::MAX_SEARCHES;
use crate::models::parameter::Parameter;
use crate::models::request::Needs;

/// The most searches of an answer whose request sets no limit, where the catalogue says nothing else. Our choice.
const DEFAULT_SEARCHES: u64 = 5;

/// How a provider of the chat convention is told to search. Other APIs have one way each.
///
/// - `none`: it cannot be told.
/// - `options`: by `web_search_options`; the model searches once for each answer, asked or not.
/// - `always`: not at all; the model searches for each answer, and says in its usage how often that costs.
/// - `plugin`: by a plugin with the id `web`, which searches once before the answer.
/// - `tool`: by a tool of the type `web_search`, which the model uses when it sees fit.
/// - `enable_search`: by a member of this name.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are told above")]
pub enum SearchDialect {
    #[default]
    None,
    Options,
    Always,
    Plugin,
    Tool,
    EnableSearch,
}

impl SearchDialect {
    /// Returns whether an answer surely rests on a search.
    pub fn can_demand(self) -> bool {
        !matches!(self, Self::None | Self::Tool)
    }

    /// Returns a table without the options that the dialect has no words for.
    #[must_use]
    pub fn limit(self, table: Parameters) -> Parameters {
        const DOMAINS: [Parameter; 2] = [Parameter::AllowedDomains, Parameter::BlockedDomains];
        const WISHES: [Parameter; 2] = [Parameter::SearchLocation, Parameter::SearchContextSize];
        let table = match self {
            Self::None => return table,
            Self::Always => table,
            Self::Options => table.without(&[], &DOMAINS),
            Self::Plugin | Self::Tool | Self::EnableSearch => table.without(&WISHES, &DOMAINS),
        };
        table.without(&[Parameter::SearchMaxUses], &[])
    }
}

/// What an upstream bills: each search, or each answer that rests on searches.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are told above")]
pub enum SearchUnit {
    #[default]
    Search,
    Answer,
}

/// How a mapping searches.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WebSearch {
    pub dialect: SearchDialect,
    /// What is billed.
    pub unit: SearchUnit,
    /// The most searches of an answer whose request sets no limit.
    pub max_searches: Option<u64>,
}

impl WebSearch {
    /// Returns the most searches that an answer may take.
    ///
    /// Wires that have a word for it tell it to the provider, so that a call costs no more than was reserved for it.
    pub fn limit(&self, needs: &Needs, parameters: &Parameters) -> u64 {
        let searches_unasked =
            matches!(self.dialect, SearchDialect::Options | SearchDialect::Always);
        if needs.web_search.is_none() && !searches_unasked {
            return 0;
        }
        let asked = needs.web_search.and_then(|search| search.max_uses);
        let told = asked.filter(|_| parameters.supports(Parameter::SearchMaxUses));
        if told == Some(u64::MAX) {
            return self.max_searches.unwrap_or(0).max(MAX_SEARCHES);
        }
        let once = matches!(self.dialect, SearchDialect::Options | SearchDialect::Plugin);
        let by_default = if once { 1 } else { DEFAULT_SEARCHES };
        told.or(self.max_searches).unwrap_or(by_default)
    }

    /// Returns how many searches are billed.
    pub fn billed(&self, searches: u64) -> u64 {
        match self.unit {
            SearchUnit::Search => searches,
            SearchUnit::Answer => searches.min(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::request::SearchNeeds;

    fn needs(max_uses: Option<u64>) -> Needs {
        Needs {
            web_search: Some(SearchNeeds {
                max_uses,
                ..SearchNeeds::default()
            }),
            ..Needs::default()
        }
    }

    #[test]
    fn searches_are_bounded_by_the_request_then_the_catalogue_then_a_default() {
        let own = WebSearch {
            max_searches: Some(9),
            ..WebSearch::default()
        };
        let table = Parameters::plain();
        assert_eq!(own.limit(&needs(Some(3)), &table), 3);
        assert_eq!(own.limit(&needs(None), &table), 9);
        assert_eq!(WebSearch::default().limit(&needs(None), &table), 5);
        assert_eq!(own.limit(&Needs::default(), &table), 0);
        // A number that bounds nothing costs no more than is ever charged.
        assert_eq!(own.limit(&needs(Some(u64::MAX)), &table), 64);
        // A provider that is not told the limit does not keep it.
        let deaf = table.without(&[Parameter::SearchMaxUses], &[]);
        assert_eq!(own.limit(&needs(Some(3)), &deaf), 9);
    }

    #[test]
    fn a_model_that_searches_unasked_is_bounded_unasked() {
        let of = |dialect| WebSearch {
            dialect,
            ..WebSearch::default()
        };
        let table = Parameters::plain();
        let unasked = |dialect| of(dialect).limit(&Needs::default(), &table);
        assert_eq!(unasked(SearchDialect::Options), 1);
        assert_eq!(unasked(SearchDialect::Always), 5);
        assert_eq!(unasked(SearchDialect::Plugin), 0);
        assert_eq!(of(SearchDialect::Plugin).limit(&needs(None), &table), 1);
    }

    #[test]
    fn an_answer_is_billed_once_where_that_is_the_unit() {
        let by_answer = WebSearch {
            unit: SearchUnit::Answer,
            ..WebSearch::default()
        };
        assert_eq!([0, 1, 4].map(|count| by_answer.billed(count)), [0, 1, 1]);
        assert_eq!(WebSearch::default().billed(4), 4);
    }
}
