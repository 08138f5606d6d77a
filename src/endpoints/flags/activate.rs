//! `POST /v1/activate`: features and experiments by key or by type.

use std::borrow::Cow;

use filters::fault::{Fault, Kind};
use filters::flags::activate::{self, Activated};
use filters::flags::notice::{self, Topic};
use filters::flags::{Compat, Options, answer as written};

use super::Asked;
use super::known::Known;
use crate::reply::Answer;

/// A list, in the order of the query; by type in the datafile's.
pub(super) async fn answer(asked: &Asked<'_>) -> Result<Answer, Fault> {
    let user = asked.body()?.user()?;
    let wanted = wanted(asked)?;
    let project = &asked.loaded.project;
    let mut known = Known::new(asked, &user, &[], Options::default()).await;
    let items: Vec<Activated<'_>> = known
        .decide(
            &wanted,
            |(kind, key), inputs| match kind {
                Kindred::Feature => activate::feature(project, key, inputs),
                Kindred::Experiment => activate::experiment(project, key, inputs),
            },
            |item: &Activated<'_>| item.wants.clone(),
        )
        .await;
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
    Ok(Answer::json(listed(asked, &items, &user.id)))
}

/// The items that the query wants to see, as a JSON list.
fn listed(asked: &Asked<'_>, items: &[Activated<'_>], user_id: &str) -> Vec<u8> {
    let only = asked.call.values("enabled").last();
    let is_listed = |item: &&Activated<'_>| match only.as_deref() {
        Some("true") => item.is_enabled,
        Some("false") if asked.compat() == Compat::Agent => !item.is_enabled,
        _ => true,
    };
    let mut out = b"[".to_vec();
    for (at, item) in items.iter().filter(is_listed).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        written::write_activated(item, user_id, asked.compat(), &mut out);
    }
    out.push(b']');
    out
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kindred {
    Feature,
    Experiment,
}

/// What is asked for, each once; a key of both kinds is the feature's. Source: decision-agent 4, rule 2.
fn wanted<'a>(asked: &'a Asked<'_>) -> Result<Vec<(Kindred, Cow<'a, str>)>, Fault> {
    let project = &asked.loaded.project;
    let features = asked.call.values("featureKey");
    let experiments = asked.call.values("experimentKey");
    let mut found: Vec<(Kindred, Cow<'a, str>)> = Vec::new();
    let mut add = |kind: Kindred, key: Cow<'a, str>| {
        if !found.iter().any(|(_, known)| *known == key) {
            found.push((kind, key));
        }
    };
    features.for_each(|key| add(Kindred::Feature, key));
    experiments.for_each(|key| add(Kindred::Experiment, key));
    let kinds = kinds(asked)?;
    let is_agent = asked.compat() == Compat::Agent;
    if found.is_empty() || is_agent {
        for kind in kinds {
            let mut keys: Vec<&str> = match kind {
                Kindred::Feature => project.flag_keys().collect(),
                Kindred::Experiment => project.experiment_keys().collect(),
            };
            for key in keys.drain(..) {
                if !found.iter().any(|(_, known)| known == key) {
                    found.push((kind, key.into()));
                }
            }
        }
    } else if !kinds.is_empty() {
        found.retain(|(kind, _)| kinds.contains(kind));
    }
    Ok(found)
}

fn kinds(asked: &Asked<'_>) -> Result<Vec<Kindred>, Fault> {
    let types = asked.call.values("type");
    types
        .map(|word| match &*word {
            "feature" => Ok(Kindred::Feature),
            "experiment" => Ok(Kindred::Experiment),
            _ => {
                let message = format!("type \"{word}\" not supported");
                Err(Fault::new(Kind::Invalid, message).with_param("type"))
            }
        })
        .collect()
}
