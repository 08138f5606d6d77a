//! The flags for the terms of a key: what it may spend and use, and from which addresses.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use filters::accounts::{BudgetsFile, InvalidTerm, TermsFile};
use serde_json::{Value, json};

use super::{Exit, Output, Source, load};
use crate::models::planner;
use crate::models::unknown_names::{known_providers, unknown_names};

/// The bounds of a key. A list that is given replaces the one before.
#[derive(Args)]
#[command(next_help_heading = "Bounds")]
pub(super) struct TermArgs {
    /// The most it may ever spend
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    limit: Option<String>,
    /// The most it may spend in an hour, day, week or month, of the calendar in UTC
    #[arg(long, value_name = "PERIOD=USD")]
    limit_per: Vec<String>,
    /// A model it may use, and no other: an id, an alias, or either behind its provider
    #[arg(long, value_name = "MODEL")]
    allow_model: Vec<String>,
    /// A model it may not use
    #[arg(long, value_name = "MODEL")]
    deny_model: Vec<String>,
    /// A provider that may serve it, and no other
    #[arg(long, value_name = "PROVIDER")]
    allow_provider: Vec<String>,
    /// A provider that may not serve it
    #[arg(long, value_name = "PROVIDER")]
    deny_provider: Vec<String>,
    /// The highest input price, per million tokens
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    max_input_price: Option<String>,
    /// The highest output price, per million tokens
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    max_output_price: Option<String>,
    /// A block of addresses that it may be used from, and no other
    #[arg(long, value_name = "CIDR")]
    allow_ip: Vec<String>,
    /// A block of addresses that it may not be used from
    #[arg(long, value_name = "CIDR")]
    deny_ip: Vec<String>,
    /// The most that each session may spend: for good, or in an hour, day, week or month
    #[arg(long, value_name = "USD[/PERIOD]", allow_hyphen_values = true)]
    session_limit: Vec<String>,
    /// The most that each agent of a session may spend, with the agents that it asks
    #[arg(long, value_name = "USD[/PERIOD]", allow_hyphen_values = true)]
    agent_limit: Vec<String>,
    /// The most that the calls with a tag may spend together
    #[arg(long, value_name = "TAG=USD[/PERIOD]")]
    tag_limit: Vec<String>,
    /// How many calls a session may make when its limit is used up, to end what it does
    #[arg(long, value_name = "COUNT")]
    grace_calls: Option<u32>,
    /// A vendor whose own credentials its requests may bring beside it: anthropic, openai
    #[arg(long, value_name = "VENDOR", value_delimiter = ',')]
    allow_passthrough: Vec<String>,
}

/// What `key update --clear` takes away.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum TermPart {
    /// The time it stops to count
    Expires,
    /// Its owner
    Member,
    /// That its requests may ask why their providers were chosen
    Debug,
    /// The lifetime limit
    Limit,
    /// The limits of all periods
    LimitPer,
    /// The rules about models
    Models,
    /// The rules about providers
    Providers,
    /// The highest prices
    Prices,
    /// The rules about addresses
    Ips,
    /// The limits of sessions, agents and tags
    Budgets,
    /// That its requests may bring credentials of vendors
    Passthrough,
}

impl TermPart {
    /// Returns whether the part belongs to the key's terms.
    pub(super) fn is_term(&self) -> bool {
        !matches!(self, Self::Expires | Self::Member | Self::Debug)
    }

    /// Removes the part from the terms.
    pub(super) fn clear(self, terms: &mut TermsFile) {
        match self {
            Self::Expires | Self::Member | Self::Debug => {}
            Self::Limit => terms.limit = None,
            Self::LimitPer => terms.limit_per.clear(),
            Self::Models => {
                terms.allow_models.clear();
                terms.deny_models.clear();
            }
            Self::Providers => {
                terms.allow_providers.clear();
                terms.deny_providers.clear();
            }
            Self::Prices => {
                terms.max_input_price = None;
                terms.max_output_price = None;
            }
            Self::Ips => {
                terms.allow_ips.clear();
                terms.deny_ips.clear();
            }
            Self::Budgets => terms.budgets = BudgetsFile::default(),
            Self::Passthrough => terms.allow_passthrough.clear(),
        }
    }
}

impl TermArgs {
    /// Returns whether any flag was given.
    pub(super) fn is_given(&self) -> bool {
        let mut terms = TermsFile::default();
        self.apply(&mut terms);
        !terms.is_empty() || self.grace_calls.is_some()
    }

    /// Returns the given terms after checking them. Errors: an invalid term; the message names its flag.
    pub(super) fn parse(&self, out: &mut Output) -> Result<TermsFile, Exit> {
        let mut terms = TermsFile::default();
        if let Some(wrong) = self.limit_per.iter().find(|text| !text.contains('=')) {
            let shape = "is not of the form PERIOD=USD, such as day=5";
            out.fail(&format!("--limit-per: {wrong:?} {shape}"));
            return Err(Exit::Usage);
        }
        if let Some(wrong) = self.tag_limit.iter().find(|text| !text.contains('=')) {
            let shape = "is not of the form TAG=USD or TAG=USD/PERIOD, such as nightly=20/month";
            out.fail(&format!("--tag-limit: {wrong:?} {shape}"));
            return Err(Exit::Usage);
        }
        self.apply(&mut terms);
        let mut given = terms.clone();
        if given.budgets.session.is_empty() {
            // The key may have a budget of sessions, so the store says whether it needs one.
            given.budgets.grace_calls = 0;
        }
        match given.check() {
            Ok(_) => Ok(terms),
            Err(error) => {
                out.fail(&format!("--{}: {}", flag_name(&error), error.problem));
                Err(Exit::Usage)
            }
        }
    }

    /// Warns of models and providers that the configuration does not know, because a rule with a typo has no effect.
    ///
    /// Errors: an unusable configuration.
    pub(super) fn warn_unknown(&self, source: &Source, out: &mut Output) -> Result<(), Exit> {
        let mut terms = TermsFile::default();
        self.apply(&mut terms);
        let lists = [
            &terms.allow_models,
            &terms.deny_models,
            &terms.allow_providers,
            &terms.deny_providers,
        ];
        if lists.iter().all(|names| names.is_empty()) {
            return Ok(());
        }
        let config = load(source, out)?.config;
        // The server and `check` report an unreadable catalogue.
        let catalog = planner::load_catalog(&config).unwrap_or_default();
        for warning in unknown_names(&terms, &known_providers(&config), &catalog) {
            out.warn(&warning);
        }
        Ok(())
    }

    /// Overwrites `terms` with the given flags.
    pub(super) fn apply(&self, terms: &mut TermsFile) {
        let pairs = self
            .limit_per
            .iter()
            .filter_map(|text| text.split_once('='));
        let pairs = pairs.map(|(period, usd)| (period.to_owned(), usd.to_owned()));
        terms.limit_per.extend(pairs.collect::<BTreeMap<_, _>>());
        let budgets = &mut terms.budgets;
        // All limits of a tag that is named replace those that it had.
        let tags = self
            .tag_limit
            .iter()
            .filter_map(|text| text.rsplit_once('='));
        let mut given: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (tag, limit) in tags {
            given
                .entry(tag.to_owned())
                .or_default()
                .push(limit.to_owned());
        }
        budgets.tags.extend(given);
        budgets.grace_calls = self.grace_calls.unwrap_or(budgets.grace_calls);
        for (given, stored) in [
            (&self.limit, &mut terms.limit),
            (&self.max_input_price, &mut terms.max_input_price),
            (&self.max_output_price, &mut terms.max_output_price),
        ] {
            if given.is_some() {
                stored.clone_from(given);
            }
        }
        for (given, stored) in [
            (&self.allow_model, &mut terms.allow_models),
            (&self.deny_model, &mut terms.deny_models),
            (&self.allow_provider, &mut terms.allow_providers),
            (&self.deny_provider, &mut terms.deny_providers),
            (&self.allow_ip, &mut terms.allow_ips),
            (&self.deny_ip, &mut terms.deny_ips),
            (&self.session_limit, &mut terms.budgets.session),
            (&self.agent_limit, &mut terms.budgets.agent),
            (&self.allow_passthrough, &mut terms.allow_passthrough),
        ] {
            if !given.is_empty() {
                stored.clone_from(given);
            }
        }
    }
}

/// Returns the flag of a field: `allow_models` is `allow-model`.
fn flag_name(error: &InvalidTerm) -> String {
    if let Some(field) = error.field.strip_prefix("budgets.") {
        return match field {
            "grace_calls" => "grace-calls".to_owned(),
            of => format!("{}-limit", of.trim_end_matches('s')),
        };
    }
    error.field.trim_end_matches('s').replace('_', "-")
}

/// The columns of `key list` for terms.
pub(super) struct TermColumns {
    pub(super) periods: Value,
    pub(super) budgets: Value,
    pub(super) rules: Value,
}

/// Formats limits of periods, and rules, as columns.
pub(super) fn format_terms(terms: &TermsFile) -> TermColumns {
    let rules = TermsFile {
        limit: None,
        limit_per: BTreeMap::new(),
        budgets: BudgetsFile::default(),
        ..terms.clone()
    };
    let null_if = |value: Value, is_empty: bool| if is_empty { Value::Null } else { value };
    TermColumns {
        periods: null_if(json!(terms.limit_per), terms.limit_per.is_empty()),
        budgets: null_if(json!(terms.budgets), terms.budgets.is_empty()),
        rules: null_if(json!(rules), rules.is_empty()),
    }
}
