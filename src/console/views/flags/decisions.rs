//! Decisions for a user: the form that asks, and what was decided why.

use std::sync::Arc;

use filters::decisions::borrowed_object::BorrowedObject;
use filters::decisions::request_body::DecisionUser;
use filters::fault::Fault;
use maud::{Markup, html};
use serde_json::Value;

use super::link;
use crate::console::parts::{Tone, badge};
use crate::console::request::ConsoleRequest;
use crate::decisions::DecisionService;
use crate::decisions::datafiles::loaded::LoadedDatafile;
use crate::decisions::datafiles::state::DatafileState;
use crate::decisions::endpoints::explain_decision::ExplainedDecision;
/// What a page is asked for.
pub(super) struct Question {
    /// The text that keys of flags have to contain.
    pub(super) text: String,
    /// The flag that is opened.
    pub(super) flag: String,
    /// The user, or an empty text for none.
    user: String,
    /// The attributes as they were entered.
    attributes: String,
    fetches_segments: bool,
}

/// Why nothing was decided.
pub(super) struct Problem {
    pub(super) status: u16,
    pub(super) message: String,
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self {
            status: fault.status(),
            message: fault.message.into_owned(),
        }
    }
}

impl Question {
    pub(super) fn from_request(request: &ConsoleRequest) -> Self {
        let value = |name| request.query(name).unwrap_or_default();
        Self {
            text: value("q"),
            flag: value("flag"),
            // Spaces around a user id are a part of it.
            user: request.query_as_sent("user"),
            attributes: value("attributes"),
            fetches_segments: request.query("segments").is_some(),
        }
    }

    /// Returns whether decisions are asked for.
    pub(super) fn has_user(&self) -> bool {
        !self.user.is_empty()
    }

    /// Returns the address of the same page with another flag and another first row.
    pub(super) fn address(&self, path: &str, flag: &str, from: &str) -> String {
        let parameters = [
            ("q", &*self.text),
            ("flag", flag),
            ("user", &self.user),
            ("attributes", &self.attributes),
            ("segments", if self.fetches_segments { "1" } else { "" }),
            ("from", from),
        ];
        link(path, &parameters)
    }

    /// Decides these flags for the user, if there is one.
    ///
    /// Errors: the attributes are no JSON object; those of [`DecisionService::explain_user`].
    pub(super) async fn decide(
        &self,
        service: &DecisionService,
        datafile: (&DatafileState, &Arc<LoadedDatafile>),
        keys: &[&str],
    ) -> Result<Option<Vec<ExplainedDecision>>, Problem> {
        if !self.has_user() {
            return Ok(None);
        }
        let user = DecisionUser {
            id: self.user.as_str().into(),
            attributes: parse_attributes(&self.attributes)?,
        };
        let user = (user, self.fetches_segments);
        let all = service.explain_user(datafile, user, keys).await?;
        Ok(Some(all))
    }

    /// The forms that look for flags and ask about a user.
    pub(super) fn forms(&self, path: &str) -> Markup {
        html! {
            form.filters method="get" action=(path) role="search" {
                div {
                    label for="q" { "Flags whose key contains" }
                    input #q name="q" type="search" value=(self.text);
                }
                @if self.has_user() {
                    input type="hidden" name="user" value=(self.user);
                    input type="hidden" name="attributes" value=(self.attributes);
                    @if self.fetches_segments { input type="hidden" name="segments" value="1"; }
                }
                button type="submit" { "Search" }
            }
            h2 #decide { "Decide for a user" }
            form.stacked method="get" action=(path) aria-labelledby="decide" {
                @if !self.text.is_empty() { input type="hidden" name="q" value=(self.text); }
                @if !self.flag.is_empty() { input type="hidden" name="flag" value=(self.flag); }
                label for="user" { "User id" }
                input #user name="user" value=(self.user) autocomplete="off" spellcheck="false";
                label for="attributes" { "Attributes, as a JSON object" }
                textarea #attributes name="attributes" spellcheck="false" placeholder="{\"country\": \"DE\"}" { (self.attributes) }
                p {
                    input #segments name="segments" type="checkbox" value="1" checked[self.fetches_segments];
                    " "
                    label.inline for="segments" { "Fetch the user's segments" }
                }
                p.muted {
                    "Decides as " code { "POST /v1/decide/explain" } " does, with the user's overrides, profile and predictions. "
                    "No event is sent, and nothing is stored about the user."
                }
                button type="submit" { "Decide" }
            }
        }
    }
}

/// Reads the attributes of a user; an empty text means none.
fn parse_attributes(text: &str) -> Result<BorrowedObject<'_>, Problem> {
    if text.is_empty() {
        return Ok(BorrowedObject::default());
    }
    serde_json::from_str(text).map_err(|error| Problem {
        status: 400,
        message: format!(
            "The attributes are no JSON object ({error}). Accepted is an object such as {{\"country\": \"DE\", \"age\": 30}}."
        ),
    })
}

/// Why nothing was decided, in words.
pub(super) fn problem(problem: &Problem) -> Markup {
    html! { p.notice role="alert" { (problem.message) } }
}

/// What was decided.
pub(super) fn outcome(decision: &ExplainedDecision) -> Markup {
    html! {
        @if decision.is_enabled { (badge(Tone::Good, "on")) } @else { (badge(Tone::Neutral, "off")) }
        " "
        @if decision.variation_key.is_empty() {
            span.muted { "no variation" }
        } @else {
            (decision.variation_key)
        }
    }
}

/// The reasons of a decision.
pub(super) fn reasons(decision: &ExplainedDecision) -> Markup {
    html! {
        ul.reasons { @for reason in &decision.reasons { li { (reason) } } }
    }
}

/// The variables of a decision.
pub(super) fn variables<K: AsRef<str>, V: AsRef<str>>(variables: &[(K, V)]) -> Markup {
    html! {
        @if variables.is_empty() {
            span.muted { "none" }
        } @else {
            ul.reasons {
                @for (key, value) in variables { li { (key.as_ref()) " = " code { (value.as_ref()) } } }
            }
        }
    }
}

/// Whether the user is in the audience of a rule.
pub(super) fn audience(rule: &Value) -> Markup {
    match rule.get("audience").and_then(Value::as_bool) {
        Some(true) => badge(Tone::Good, "yes"),
        Some(false) => badge(Tone::Neutral, "no"),
        None => badge(Tone::Warning, "unknown, counts as no"),
    }
}

/// What the bucket of a user gives, and what comes before the bucket.
pub(super) fn gives(rule: &Value) -> Markup {
    let word = |name: &str| rule.get(name).and_then(Value::as_str);
    let takes_part = rule.pointer("/group/takes_part").and_then(Value::as_bool);
    html! {
        @if rule.get("has_decided").and_then(Value::as_bool) == Some(true) { (badge(Tone::Good, "decided")) " " }
        @match word("bucketed") {
            Some(variation) => { (variation) },
            None => span.muted { "nothing" },
        }
        @if let Some(variation) = word("override") { span.muted { ", override: " } (variation) }
        @if let Some(variation) = word("whitelisted") { span.muted { ", whitelisted: " } (variation) }
        @if let Some(variation) = word("profile") { span.muted { ", profile: " } (variation) }
        @if takes_part == Some(false) { span.muted { ", another experiment of the group has the user" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_an_object_or_nothing() {
        assert!(parse_attributes("").is_ok());
        let found = parse_attributes(r#" {"a": [1, null], "b": "<i>"} "#);
        assert_eq!(found.map(|found| found.iter().count()).ok(), Some(2));
        for bad in [
            "1",
            "[]",
            "null",
            "{\"a\":1}}",
            "{a: 1}",
            "{\"a\":",
            "\"{}\"",
        ] {
            let problem = parse_attributes(bad).err();
            let problem = problem.map(|problem| (problem.status, problem.message));
            let Some((400, message)) = problem else {
                unreachable!("{bad} is taken")
            };
            assert!(message.contains("JSON object"), "{message}");
        }
    }
}
