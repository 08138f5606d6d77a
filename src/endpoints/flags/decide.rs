//! `POST /v1/decide`: one flag, several, or all.

use std::collections::HashMap;

use filters::fault::Fault;
use filters::flags::ask;
use filters::flags::decide::{Decided, decide};
use filters::flags::inputs::Inputs;
use filters::flags::{Profile, answer as written};

use super::Asked;
use crate::reply::Answer;

/// One key: an object; several or none: a list, in the request's or the datafile's order.
pub(super) fn answer(asked: &Asked<'_>) -> Result<Answer, Fault> {
    let body = asked.body()?.decide()?;
    if body.fetch_segments {
        return Err(Fault::not_supported_yet("fetchSegments"));
    }
    let project = &asked.loaded.project;
    let keys = asked.call.values("keys");
    let decider = Decider::new(asked, &body);
    let mut out = Vec::with_capacity(1024);
    if let [key] = keys.as_slice() {
        let decided = decider.decide(key);
        decider.finish(std::slice::from_ref(&decided));
        decider.write(&decided, &mut out);
        return Ok(Answer::json(out));
    }
    let mut wanted: Vec<&str> = Vec::new();
    for key in &keys {
        if !wanted.contains(&key.as_str()) {
            wanted.push(key);
        }
    }
    let all: Vec<Decided<'_>> = if wanted.is_empty() {
        project.flag_keys().map(|key| decider.decide(key)).collect()
    } else {
        wanted.iter().map(|key| decider.decide(key)).collect()
    };
    decider.finish(&all);
    let is_listed = |one: &&Decided<'_>| one.is_enabled || !body.options.enabled_flags_only;
    out.push(b'[');
    for (at, decided) in all.iter().filter(is_listed).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        decider.write(decided, &mut out);
    }
    out.push(b']');
    Ok(Answer::json(out))
}

/// Decides for one user: the profile is read once, and written once.
pub(super) struct Decider<'a> {
    asked: &'a Asked<'a>,
    body: &'a ask::Decide,
    overrides: Vec<(Box<str>, Box<str>)>,
    profile: Option<Profile>,
}

impl<'a> Decider<'a> {
    pub(super) fn new(asked: &'a Asked<'a>, body: &'a ask::Decide) -> Self {
        let (key, user) = (&asked.sdk_key, &body.user.id);
        let overrides = asked.flags.overrides.as_ref();
        let profiles = asked.flags.profiles.as_ref();
        Self {
            asked,
            body,
            overrides: overrides.map(|all| all.of(key, user)).unwrap_or_default(),
            profile: profiles
                .filter(|_| !body.options.ignore_user_profile)
                .map(|all| all.of(key, user)),
        }
    }

    pub(super) fn decide(&self, key: &str) -> Decided<'a> {
        let none = HashMap::new();
        let inputs = Inputs {
            user_id: &self.body.user.id,
            attributes: &self.body.user.attributes,
            segments: &[],
            forced: &self.body.forced,
            overrides: &self.overrides,
            profile: self.profile.as_ref(),
            predictions: &none,
            options: self.body.options,
        };
        let project = &self.asked.loaded.project;
        let decided = decide(project, key, &inputs);
        let Some(want) = &decided.wants else {
            return decided;
        };
        let predictions = super::no_prediction(want.experiment_id);
        let inputs = Inputs {
            predictions: &predictions,
            ..inputs
        };
        decide(project, key, &inputs)
    }

    /// Tells the backend, and the profile.
    pub(super) fn finish(&self, all: &[Decided<'_>]) {
        let impressions = all.iter().flat_map(|decided| &decided.impressions);
        self.asked.tell(&self.body.user, impressions);
        if let Some(profiles) = self.asked.flags.profiles.as_ref() {
            let found: Vec<(&str, &str)> = all.iter().filter_map(|one| one.remembers).collect();
            profiles.remember(&self.asked.sdk_key, &self.body.user.id, &found);
        }
    }

    fn write(&self, decided: &Decided<'_>, out: &mut Vec<u8>) {
        let user = &self.body.user;
        let compat = self.asked.compat();
        written::write_decided(decided, &user.id, &user.attributes, compat, out);
    }
}
