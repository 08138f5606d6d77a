//! Decides one flag for another product of this process.

use std::sync::Arc;

use filters::decisions::decide::{Decision, DecisionSource, decide};
use filters::decisions::event::EventHead;
use filters::decisions::notice;
use filters::decisions::notice::Topic;
use filters::decisions::request_body::DecisionUser;
use filters::decisions::{Options, borrowed_object::BorrowedObject};
use filters::fault::{Fault, FaultKind};
use http::HeaderMap;

use super::context::DecisionContext;
use super::user_state::UserState;
use crate::decisions::DecisionService;
use crate::decisions::datafiles::loaded::LoadedDatafile;
use crate::decisions::datafiles::local::ProjectLookup;
use crate::proxy::handler::Request;

/// The decision of a flag for a user.
pub struct DecidedFlag {
    /// The key of the rule, or an empty text.
    pub rule: Box<str>,
    pub variation: Box<str>,
    /// The variables: key and value as JSON.
    pub variables: Vec<(Box<str>, Box<str>)>,
    /// The impressions for the queue of events: the heads of their batches, and their visitors.
    pub impressions: Vec<(EventHead, Vec<u8>)>,
}

/// The reason for which a flag decides nothing.
pub enum Undecided {
    NoProject,
    NoFlag,
    Off,
    Failed(Fault),
}

/// Decides a flag for a user without attributes. A user in a holdout gets the holdout's variation and the flag's own
/// values.
///
/// Only flags that are on, and holdouts, have impressions and are remembered.
pub async fn decide_flag(
    service: &DecisionService,
    sdk_key: &str,
    flag: &str,
    user_id: &str,
    now_ms: u64,
) -> Result<DecidedFlag, Undecided> {
    let loaded = find_flag(service, sdk_key, flag).await?;
    let headers = HeaderMap::new();
    let request = Request {
        headers: &headers,
        path: "",
        query: "",
        body: &[],
        caller: None,
        client_ip: None,
        now_ms,
    };
    let context = DecisionContext {
        request: &request,
        service,
        sdk_key: sdk_key.into(),
        loaded,
    };
    let user = DecisionUser {
        id: user_id.into(),
        attributes: BorrowedObject::default(),
    };
    let project = &context.loaded.project;
    let mut state = UserState::new(&context, &user, &[], Options::default()).await;
    let flags = [flag];
    let decided = state.decide(&flags, |flag, inputs| decide(project, flag, inputs));
    let decided = decided.await.map_err(Undecided::Failed)?.pop();
    let Some(one) = decided.as_ref().filter(|one| is_decided(one)) else {
        return Err(Undecided::Off);
    };
    state
        .remember(&one.remembers.into_iter().collect::<Vec<_>>())
        .await;
    let impressions = one.impressions.iter();
    let impressions = impressions.map(|it| (context.event_head(), context.visitor(&user, it)));
    context.publish(Topic::Decision, || {
        notice::flag(one, &user, state.segments(), !one.impressions.is_empty())
    });
    let variables = one.variables.iter();
    Ok(DecidedFlag {
        rule: one.rule_key.into(),
        variation: one.variation_key.into(),
        variables: variables
            .map(|(key, json)| ((*key).into(), (*json).into()))
            .collect(),
        impressions: impressions.collect(),
    })
}

async fn find_flag(
    service: &DecisionService,
    sdk_key: &str,
    flag: &str,
) -> Result<Arc<LoadedDatafile>, Undecided> {
    match service.find(sdk_key).await {
        ProjectLookup::Project(loaded) if loaded.project.has_flag(flag) => Ok(loaded),
        ProjectLookup::Project(_) => Err(Undecided::NoFlag),
        ProjectLookup::Unknown | ProjectLookup::Refused(_) => Err(Undecided::NoProject),
        ProjectLookup::Unusable => {
            let message = "the datafile of the project's experiments cannot be had";
            let fault = Fault::new(FaultKind::Unavailable, message);
            Err(Undecided::Failed(fault))
        }
    }
}

fn is_decided(decision: &Decision<'_>) -> bool {
    let is_held_out = decision.source == DecisionSource::Holdout;
    decision.is_enabled || is_held_out && !decision.variation_key.is_empty()
}
