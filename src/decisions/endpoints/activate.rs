//! `POST /v1/activate`: features and experiments by key or by type.

use std::borrow::Cow;

use filters::decisions::activate;
use filters::decisions::activate::Activation;
use filters::decisions::keys::Keys;
use filters::decisions::notice;
use filters::decisions::notice::Topic;
use filters::decisions::{Compat, Options, answer as written};
use filters::fault::{Fault, FaultKind};

use super::DecisionContext;
use super::user_state::UserState;
use crate::proxy::response::Response;

/// A list, in the order of the query; by type in the datafile's.
///
/// Errors: 400 for too many keys and for unknown types, 413 for an answer that would be too long.
pub(super) async fn answer(asked: &DecisionContext<'_>) -> Result<Response, Fault> {
    let user = asked.body()?.user()?;
    let wanted = wanted(asked)?;
    let project = &asked.loaded.project;
    let mut known = UserState::new(asked, &user, &[], Options::default()).await;
    let items: Vec<Activation<'_>> = known
        .decide(&wanted, |(kind, key), inputs| match kind {
            ItemKind::Feature => activate::feature(project, key, inputs),
            ItemKind::Experiment => activate::experiment(project, key, inputs),
        })
        .await?;
    if !asked.call.is_true("disableTracking") {
        asked.tell(
            &user,
            items.iter().filter_map(|item| item.impression.as_ref()),
        );
    }
    let found: Vec<(&str, &str)> = items.iter().filter_map(|item| item.remembers).collect();
    known.remember(&found).await;
    for item in &items {
        if let Some(notice) = notice::activated(project, item, &user) {
            asked.notify(Topic::Decision, || notice);
        }
    }
    listed(asked, &items, &user.id).map(Response::json)
}

/// The items that the query wants to see, as a JSON list. Errors: 413.
fn listed(
    asked: &DecisionContext<'_>,
    items: &[Activation<'_>],
    user_id: &str,
) -> Result<Vec<u8>, Fault> {
    let only = asked.call.values("enabled").last();
    let is_listed = |item: &&Activation<'_>| match only.as_deref() {
        Some("true") => item.is_enabled,
        Some("false") if asked.compat() == Compat::Agent => !item.is_enabled,
        _ => true,
    };
    written::list(items.iter().filter(is_listed), |item, out| {
        written::write_activated(item, user_id, asked.compat(), out);
    })
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ItemKind {
    Feature,
    Experiment,
}

/// What is asked for, each once; a key of both kinds is the feature's. Errors: 400.
/// Source: docs/decision-agent.md 4, rule 2.
fn wanted<'a>(asked: &'a DecisionContext<'_>) -> Result<Vec<(ItemKind, Cow<'a, str>)>, Fault> {
    let project = &asked.loaded.project;
    let features = asked.call.values("featureKey");
    let experiments = asked.call.values("experimentKey");
    let mut found = Keys::default();
    for key in features {
        found.name(ItemKind::Feature, key, "featureKey")?;
    }
    for key in experiments {
        found.name(ItemKind::Experiment, key, "experimentKey")?;
    }
    let kinds = kinds(asked)?;
    let is_agent = asked.compat() == Compat::Agent;
    if found.is_empty() || is_agent {
        for kind in kinds {
            let keys: &mut dyn Iterator<Item = &'a str> = match kind {
                ItemKind::Feature => &mut project.flag_keys(),
                ItemKind::Experiment => &mut project.experiment_keys(),
            };
            keys.for_each(|key| found.add(kind, key.into()));
        }
        return Ok(found.into_vec());
    }
    let mut found = found.into_vec();
    if !kinds.is_empty() {
        found.retain(|(kind, _)| kinds.contains(kind));
    }
    Ok(found)
}

fn kinds(asked: &DecisionContext<'_>) -> Result<Vec<ItemKind>, Fault> {
    let types = asked.call.values("type");
    types
        .map(|word| match &*word {
            "feature" => Ok(ItemKind::Feature),
            "experiment" => Ok(ItemKind::Experiment),
            _ => {
                let message = format!("type \"{word}\" not supported");
                Err(Fault::new(FaultKind::Invalid, message).with_param("type"))
            }
        })
        .collect()
}
