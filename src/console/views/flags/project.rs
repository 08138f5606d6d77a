//! One project: its datafile, its flags, and what they decide for a user.

use std::sync::Arc;

use filters::decisions::description::FlagSummary;
use maud::{Markup, html};

use super::decisions::{Problem, Question, outcome, problem, reasons, variables};
use super::projects::{origin, refresh};
use super::{PAGE_ROWS, PATH, events, first_row, flag, since};
use crate::console::parts::{TableColumn, Tone, badge, count, number, pager, table, text};
use crate::console::reply::ConsoleReply;
use crate::console::request::ConsoleRequest;
use crate::decisions::DecisionService;
use crate::decisions::datafiles::loaded::LoadedDatafile;
use crate::decisions::datafiles::state::DatafileState;
use crate::decisions::endpoints::explain_decision::ExplainedDecision;

const FLAGS: [TableColumn; 5] = [
    text("Flag"),
    number("Experiments that run"),
    number("Rules of the rollout"),
    number("Holdouts"),
    number("Variables"),
];
const DECIDED: [TableColumn; 5] = [
    text("Flag"),
    text("Decision"),
    text("Rule"),
    text("Variables"),
    text("Reasons"),
];

pub(super) async fn show(
    service: &DecisionService,
    datafile: &DatafileState,
    request: &ConsoleRequest,
) -> ConsoleReply {
    let title = format!("Flags of {}", datafile.hint());
    let path = format!("{PATH}/{}", datafile.id());
    let Some(loaded) = &datafile.loaded else {
        let body = html! {
            p { (badge(Tone::Bad, "no usable datafile")) }
            (state(datafile, None))
        };
        return ConsoleReply::page(title, body);
    };
    let question = Question::from_request(request);
    if !question.flag.is_empty() {
        return flag::show(service, (datafile, loaded), (&path, &question)).await;
    }
    let found = loaded.project.find_flags(&question.text);
    let from = first_row(request);
    let shown: Vec<FlagSummary<'_>> = found.iter().skip(from).take(PAGE_ROWS).copied().collect();
    let keys: Vec<&str> = shown.iter().map(|flag| flag.key).collect();
    let decided = question.decide(service, (datafile, loaded), &keys).await;
    let end = from.saturating_add(PAGE_ROWS);
    let next = (end < found.len()).then(|| question.address(&path, "", &end.to_string()));
    let status = match &decided {
        Err(problem) => problem.status,
        Ok(_) => 200,
    };
    let body = html! {
        (state(datafile, Some(loaded)))
        (question.forms(&path))
        h2 { "Flags" }
        p.muted { (range(from, shown.len(), found.len())) }
        (list(&question, &path, &shown, &decided))
        (pager(next.as_deref()))
        h2 { "Recent events" }
        (events::show(service, Some(&loaded.project.project_id)))
    };
    ConsoleReply::Page {
        status,
        title,
        body,
    }
}

fn range(from: usize, shown: usize, found: usize) -> String {
    match shown {
        0 => format!("None of {}.", count(found as u64)),
        _ => format!(
            "{} to {} of {}.",
            count(from as u64 + 1),
            count((from + shown) as u64),
            count(found as u64)
        ),
    }
}

/// The flags, or what they decide for the user.
fn list(
    question: &Question,
    path: &str,
    shown: &[FlagSummary<'_>],
    decided: &Result<Option<Vec<ExplainedDecision>>, Problem>,
) -> Markup {
    let name = |flag: &FlagSummary<'_>| {
        html! { a href=(question.address(path, flag.key, "")) { (flag.key) } }
    };
    let empty = "No flag has such a key.";
    if let Ok(Some(decisions)) = decided {
        let rows = shown.iter().zip(decisions).map(|(flag, decision)| {
            vec![
                name(flag),
                outcome(decision),
                html! { (decision.rule_key) },
                variables(&decision.variables),
                reasons(decision),
            ]
        });
        let rows: Vec<Vec<Markup>> = rows.collect();
        return table("Decisions for the user", &DECIDED, &rows, empty);
    }
    let rows = shown.iter().map(|flag| {
        let experiments = html! { (flag.running_experiments) " of " (flag.experiments) };
        let numbers = [flag.rollout_rules, flag.holdouts, flag.variables];
        let numbers = numbers.map(|number| html! { (number) });
        [vec![name(flag), experiments], numbers.into()].concat()
    });
    let rows: Vec<Vec<Markup>> = rows.collect();
    html! {
        @if let Err(why) = decided { (problem(why)) }
        (table("Flags", &FLAGS, &rows, empty))
    }
}

/// What is known of the datafile.
fn state(datafile: &DatafileState, loaded: Option<&Arc<LoadedDatafile>>) -> Markup {
    html! {
        dl.pairs {
            @if let Some(loaded) = loaded {
                @let project = &loaded.project;
                @let parts = project.parts();
                dt { "Project" }
                dd { (project.project_id) " " span.muted { "environment " (project.environment_key) ", account " (project.account_id) } }
                dt { "Revision" }
                dd { (project.revision) }
                dt { "In force since" }
                dd { (since(loaded.loaded_at.elapsed())) }
                dt { "Holds" }
                dd {
                    (count(parts.flags as u64)) " flags, " (count(parts.experiments as u64)) " experiments, "
                    (count(parts.rollouts as u64)) " rollouts, " (count(parts.holdouts as u64)) " holdouts that run, "
                    (count(parts.audiences as u64)) " audiences, " (count(parts.attributes as u64)) " attributes, "
                    (count(parts.events as u64)) " events; " (count(loaded.text.len() as u64)) " bytes"
                }
            }
            dt { "Source" }
            dd { (origin(&datafile.origin)) }
            dt { "Refresh" }
            dd { (refresh(&datafile.refresh)) }
        }
    }
}
