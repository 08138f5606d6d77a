//! One flag: its rules in order, and how a user meets them.

use std::sync::Arc;

use filters::decisions::description::{FlagDescription, RuleDescription, TrafficShare};
use maud::{Markup, html};
use serde_json::Value;

use super::decisions::{Question, audience, gives, outcome, problem, reasons, variables};
use crate::console::parts::{TableColumn, Tone, badge, count, number, table, text};
use crate::console::reply::ConsoleReply;
use crate::decisions::DecisionService;
use crate::decisions::datafiles::loaded::LoadedDatafile;
use crate::decisions::datafiles::state::DatafileState;
use crate::decisions::endpoints::explain_decision::ExplainedDecision;

/// The maximum number of rows of a table. Datafiles have a few rules for each flag.
const MAX_ROWS: usize = 200;

const RULES: [TableColumn; 6] = [
    text("Rule"),
    number("Order"),
    text("Kind"),
    text("State"),
    text("Audience"),
    text("Traffic"),
];
/// What a user adds to the columns of rules.
const USER: [TableColumn; 3] = [
    text("User in the audience"),
    number("Bucket"),
    text("The bucket gives"),
];
const VARIATIONS: [TableColumn; 4] = [
    text("Variation"),
    text("Rule"),
    text("State"),
    text("Variables"),
];
const VARIABLES: [TableColumn; 3] = [text("Variable"), text("Type"), text("Default")];
const AUDIENCES: [TableColumn; 3] = [text("Audience"), text("Id"), text("Users for whom")];

pub(super) async fn show(
    service: &DecisionService,
    (datafile, loaded): (&DatafileState, &Arc<LoadedDatafile>),
    (path, question): (&str, &Question),
) -> ConsoleReply {
    let Some(flag) = find(loaded, &question.flag) else {
        return ConsoleReply::not_found("The datafile in force has no flag with this key.");
    };
    let datafile = (datafile, loaded);
    let decided = question.decide(service, datafile, &[flag.key]).await;
    let (decision, status) = match &decided {
        Ok(decided) => (decided.as_ref().and_then(|all| all.first()), 200),
        Err(problem) => (None, problem.status),
    };
    let body = html! {
        p { a href=(question.address(path, "", "")) { "All flags of " (datafile.0.hint()) } }
        @if let Err(why) = &decided { (problem(why)) }
        @if let Some(decision) = decision {
            h2 { "Decision for the user" }
            dl.pairs {
                dt { "Decision" } dd { (outcome(decision)) }
                dt { "Rule" } dd { (decision.rule_key) }
                dt { "Variables" } dd { (variables(&decision.variables)) }
                dt { "Reasons" } dd { (reasons(decision)) }
            }
        }
        h2 { "Rules" }
        p.muted { "The first rule that gives a user a variation decides. A flag that is forced by the request comes before all." }
        (rules(&flag, decision))
        h2 { "Variations" }
        (variations(&flag))
        h2 { "Variables" }
        (flag_variables(&flag))
        h2 { "Audiences" }
        (audiences(&flag))
        (question.forms(path))
    };
    ConsoleReply::Page {
        status,
        title: format!("Flag {}", flag.key),
        body,
    }
}

/// Returns the flag of a key. A key from an address has lost the spaces around it.
fn find<'p>(loaded: &'p LoadedDatafile, key: &str) -> Option<FlagDescription<'p>> {
    let project = &loaded.project;
    project.describe_flag(key).or_else(|| {
        let spaced = project.flag_keys().find(|known| known.trim() == key)?;
        project.describe_flag(spaced)
    })
}

fn rules(flag: &FlagDescription<'_>, decision: Option<&ExplainedDecision>) -> Markup {
    let rows = flag.rules.iter().take(MAX_ROWS).enumerate();
    let rows = rows.map(|(at, rule)| {
        let explained = decision.and_then(|decision| decision.rules.get(at));
        rule_row(at + 1, rule, explained)
    });
    let rows: Vec<Vec<Markup>> = rows.collect();
    let columns: Vec<TableColumn> = match decision {
        Some(_) => [&RULES[..], &USER].concat(),
        None => RULES.to_vec(),
    };
    html! {
        (table("Rules in order", &columns, &rows, "The flag has no rules: it is off for everyone."))
        (left_out(flag.rules.len()))
    }
}

fn rule_row(order: usize, rule: &RuleDescription<'_>, explained: Option<&Value>) -> Vec<Markup> {
    let state = match rule.is_running {
        true => badge(Tone::Good, "runs"),
        false => badge(Tone::Neutral, "does not run"),
    };
    let mut cells = vec![
        html! { (rule.key) },
        html! { (order) },
        html! { (rule.kind) },
        state,
        html! {
            @match &rule.audience { None => "everyone", Some(words) => (words) }
            @if rule.whitelisted_users > 0 {
                span.muted { "; " (count(rule.whitelisted_users as u64)) " users have a variation of their own" }
            }
        },
        traffic(rule),
    ];
    if let Some(explained) = explained {
        cells.push(audience(explained));
        let bucket = explained.get("bucket").and_then(Value::as_u64);
        cells.push(html! { @if let Some(bucket) = bucket { (bucket) } });
        cells.push(gives(explained));
    }
    cells
}

fn traffic(rule: &RuleDescription<'_>) -> Markup {
    html! {
        @if let Some(until) = rule.predicted_until {
            "predicted for " (percent(until)) " of users"
        } @else if rule.traffic.is_empty() {
            span.muted { "none" }
        } @else {
            ul.reasons {
                @for share in rule.traffic.iter().take(MAX_ROWS) { li { (share_words(share)) } }
            }
        }
        @if let Some(group) = rule.group {
            span.muted { " in the exclusion group " (group) }
        }
    }
}

fn share_words(share: &TrafficShare<'_>) -> Markup {
    html! {
        @match share.variation {
            Some(variation) => { (variation) ": " },
            None => span.muted { "no variation: " },
        }
        (percent(share.until - share.from))
        span.muted { " (buckets " (share.from) " to " (share.until - 1) ")" }
    }
}

/// Returns buckets as a part of all ten thousand.
fn percent(buckets: u32) -> String {
    let (whole, rest) = (buckets / 100, buckets % 100);
    match rest {
        0 => format!("{whole} %"),
        rest if rest % 10 == 0 => format!("{whole}.{} %", rest / 10),
        rest => format!("{whole}.{rest:02} %"),
    }
}

fn variations(flag: &FlagDescription<'_>) -> Markup {
    let all = || {
        let rules = flag.rules.iter();
        rules.flat_map(|rule| rule.variations.iter().map(move |one| (rule, one)))
    };
    let rows = all().take(MAX_ROWS).map(|(rule, variation)| {
        let state = match variation.is_enabled {
            true => badge(Tone::Good, "on"),
            false => badge(Tone::Neutral, "off"),
        };
        vec![
            html! { (variation.key) },
            html! { (rule.key) },
            state,
            variables(&variation.variables),
        ]
    });
    let rows: Vec<Vec<Markup>> = rows.collect();
    html! {
        (table("Variations of the rules", &VARIATIONS, &rows, "No rule has variations."))
        (left_out(all().count()))
    }
}

fn flag_variables(flag: &FlagDescription<'_>) -> Markup {
    let rows = flag.variables.iter().take(MAX_ROWS).map(|variable| {
        vec![
            html! { (variable.key) },
            html! { (variable.kind) },
            html! { code { (variable.default) } },
        ]
    });
    let rows: Vec<Vec<Markup>> = rows.collect();
    html! {
        (table("Variables of the flag", &VARIABLES, &rows, "The flag has no variables."))
        (left_out(flag.variables.len()))
    }
}

fn audiences(flag: &FlagDescription<'_>) -> Markup {
    let rows = flag.audiences.iter().take(MAX_ROWS).map(|audience| {
        vec![
            html! { (audience.name) },
            html! { (audience.id) },
            html! { (audience.conditions) },
        ]
    });
    let rows: Vec<Vec<Markup>> = rows.collect();
    html! {
        (table("Audiences of the rules", &AUDIENCES, &rows, "No rule names an audience."))
        (left_out(flag.audiences.len()))
    }
}

/// Says how many rows a table lacks.
fn left_out(rows: usize) -> Markup {
    html! {
        @if rows > MAX_ROWS {
            p.muted { (count((rows - MAX_ROWS) as u64)) " more are not shown." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_parts_of_a_hundred() {
        for (buckets, words) in [
            (10_000, "100 %"),
            (5_050, "50.5 %"),
            (1, "0.01 %"),
            (0, "0 %"),
        ] {
            assert_eq!(percent(buckets), words);
        }
    }
}
