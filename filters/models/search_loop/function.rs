//! The function that a model calls to search the web, and the searches that its calls are.

use std::borrow::Cow;

use serde::Deserialize;

use super::pages::SearchOutcome;
use crate::json::Object;
use crate::models::chat::text::Text;

/// The most searches of an answer whose request sets no limit. Our choice, as of models' own searches.
const USUAL_LIMIT: u64 = 5;
/// The most results of one search, by how much of the web the request wants to be read. Our choice: what a model reads of them
/// costs tokens in each turn that follows.
const FEW_RESULTS: usize = 4;
const USUAL_RESULTS: usize = 8;
const MANY_RESULTS: usize = 12;
/// The most domains of a search. Source: docs/model-gateway.md 2.14.
const MAX_DOMAINS: usize = 20;
/// The most bytes of a query. Source: docs/model-gateway.md 2.14.
const MAX_QUERY_BYTES: usize = 8192;

/// The usual name of the function.
pub const NAME: &str = "web_search";
/// What the model is told of it.
pub const DESCRIPTION: &str = "Searches the web, and returns pages with their titles, addresses and what they say about the query. For what is new, what changes, and what has to be looked up.";
/// The schema of its arguments.
pub const SCHEMA: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"What to search for."}},"required":["query"]}"#;

/// A function that stands for a search of the web.
#[derive(Clone, Debug)]
pub struct SearchFunction {
    pub name: Box<str>,
    /// The most searches of the answer.
    pub limit: u64,
    options: SearchOptions,
}

/// What a request says of its search.
#[derive(Clone, Debug, Default)]
pub struct SearchOptions {
    pub allowed_domains: Vec<String>,
    pub blocked_domains: Vec<String>,
    /// The country in which the user is.
    pub country: Option<String>,
    /// `low`, `medium` or `high`.
    pub context_size: Option<String>,
}

impl SearchFunction {
    /// Returns the function for a search of at most `max_uses` searches; `None`: it cannot do what is asked.
    pub fn new(name: &str, max_uses: Option<u64>, options: SearchOptions) -> Option<Self> {
        let domains = options.allowed_domains.len() + options.blocked_domains.len();
        (domains <= MAX_DOMAINS).then(|| Self {
            name: name.into(),
            limit: max_uses.unwrap_or(USUAL_LIMIT),
            options,
        })
    }

    /// Returns what a call searches for.
    ///
    /// Errors: what the client and the model are told of arguments that say no search.
    pub fn query(arguments: &str) -> Result<String, SearchOutcome> {
        #[derive(Deserialize)]
        struct Arguments<'a> {
            #[serde(borrow)]
            query: Text<'a>,
        }
        let read = serde_json::from_str::<Arguments<'_>>(arguments);
        let query = read.map(|it| it.query.0.trim().to_owned());
        match query {
            Ok(query) if query.len() > MAX_QUERY_BYTES => {
                Err(SearchOutcome::Failed("query_too_long"))
            }
            Ok(query) if !query.is_empty() => Ok(query),
            _ => Err(SearchOutcome::Failed("invalid_tool_input")),
        }
    }

    /// Returns the most results of one search.
    pub fn most_results(&self) -> usize {
        match self.options.context_size.as_deref() {
            Some("low") => FEW_RESULTS,
            Some("high") => MANY_RESULTS,
            _ => USUAL_RESULTS,
        }
    }

    /// Returns whether a country is known, to search for.
    pub fn has_country(&self) -> bool {
        self.options.country.is_some()
    }

    /// Returns the body of the search for a query, as `POST /v1/search` takes it. Not all providers can search for a country, so
    /// `is_local` says whether this search shall.
    pub fn body(&self, query: &str, is_local: bool) -> Vec<u8> {
        let options = &self.options;
        let allowed = options
            .allowed_domains
            .iter()
            .map(|it| Cow::Borrowed(&**it));
        let blocked = options.blocked_domains.iter();
        let blocked = blocked.map(|domain| Cow::Owned(format!("-{domain}")));
        let domains: Vec<Cow<'_, str>> = allowed.chain(blocked).collect();
        let mut out = Vec::new();
        let mut body = Object::open(&mut out);
        body.text("query", query);
        body.number("max_results", self.most_results() as u64);
        if !domains.is_empty() {
            body.array("search_domain_filter", &domains, |domain, out| {
                crate::json::Str::Plain(domain).write(out);
            });
        }
        // A country that is no code of two letters bounds no search.
        let is_code =
            |code: &&str| code.len() == 2 && code.bytes().all(|it| it.is_ascii_alphabetic());
        let country = options.country.as_deref().filter(is_code);
        if let Some(country) = country.filter(|_| is_local) {
            body.text("country", country);
        }
        body.close();
        out
    }
}
