//! The decision endpoints. Each answers from values, so that a batch can call any of them.
//!
//! Source: docs/decision-agent.md 4; where it is silent, docs/facts/decision-engine.md D and E.

mod activate;
mod agent;
pub mod batch;
mod decide;
pub mod event_stream;
mod ofrep;
mod old_operations;
mod operations;
mod overrides;
mod profiles;
mod segment_event;
pub mod token;
mod track;
mod user_state;
pub mod webhook;

use std::sync::Arc;

use filters::decisions::ask::{DecisionBody, DecisionUser};
use filters::decisions::credentials;
use filters::decisions::event;
use filters::decisions::event::{Head, Moment};
use filters::decisions::notice::Topic;
use filters::decisions::{Compat, encode};
use filters::fault::{Fault, FaultKind};
use filters::form;

use crate::decisions::datafiles::local::{LoadedDatafile, ProjectLookup, RETRY_AFTER_S};
use crate::decisions::{DecisionService, new_uuid};
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Who answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Endpoint {
    /// `GET /v1/config`.
    Config,
    /// `GET /v1/datafile`.
    Datafile,
    /// `POST /v1/decide`.
    Decide,
    /// `POST /v1/activate`.
    Activate,
    /// `POST /v1/track`.
    Track,
    /// `POST /v1/override`.
    Override,
    /// `POST /v1/lookup`.
    Lookup,
    /// `POST /v1/save`.
    Save,
    /// `POST /v1/send-odp-event`.
    SegmentEvent,
    /// `POST /ofrep/v1/evaluate/flags/{key}`.
    OfrepFlag,
    /// `POST /ofrep/v1/evaluate/flags`.
    OfrepFlags,
}

impl Endpoint {
    /// Whether it reads a body; the agent of old does not look at others'.
    fn has_body(self) -> bool {
        !matches!(self, Self::Config | Self::Datafile)
    }
}

/// A call whose caller is known.
struct DecisionContext<'a> {
    call: &'a Request<'a>,
    flags: &'a DecisionService,
    sdk_key: Box<str>,
    loaded: Arc<LoadedDatafile>,
}

/// Answers a call.
///
/// Errors: 400, 401, 403, 404, 413, 415, 503 as docs/decision-agent.md 7 and docs/decisions.md 20 say.
pub async fn answer(
    flags: &DecisionService,
    endpoint: Endpoint,
    call: &Request<'_>,
) -> Result<Response, Fault> {
    let (sdk_key, loaded) = caller(flags, call).await?;
    if endpoint.has_body() || flags.compat == Compat::Document {
        media_type(call)?;
    }
    let asked = DecisionContext {
        call,
        flags,
        sdk_key,
        loaded,
    };
    match endpoint {
        Endpoint::Config => Ok(Response::json(asked.loaded.project.overview())),
        Endpoint::Datafile => Ok(asked.datafile()),
        Endpoint::Decide => decide::answer(&asked).await,
        Endpoint::Activate => activate::answer(&asked).await,
        Endpoint::Track => track::answer(&asked),
        Endpoint::Override => overrides::answer(&asked),
        Endpoint::Lookup => profiles::lookup(&asked).await,
        Endpoint::Save => profiles::save(&asked).await,
        Endpoint::SegmentEvent => segment_event::answer(&asked),
        Endpoint::OfrepFlag => ofrep::flag(&asked).await,
        Endpoint::OfrepFlags => ofrep::flags(&asked).await,
    }
}

/// The SDK key that a call is made with, and its project.
async fn caller(
    flags: &DecisionService,
    call: &Request<'_>,
) -> Result<(Box<str>, Arc<LoadedDatafile>), Fault> {
    let sdk_key = sdk_key(flags, call).await?;
    let loaded = project(flags, &sdk_key).await?;
    Ok((sdk_key, loaded))
}

/// The project of an SDK key.
async fn project(flags: &DecisionService, sdk_key: &str) -> Result<Arc<LoadedDatafile>, Fault> {
    let name = || sdk_key.split(':').next().unwrap_or_default();
    let is_agent = flags.compat == Compat::Agent;
    match flags.find(sdk_key).await {
        ProjectLookup::Project(loaded) => Ok(loaded),
        ProjectLookup::Refused(status) if is_agent => Err(agent::refused_by_source(status)),
        ProjectLookup::Unknown | ProjectLookup::Refused(_) => Err(Fault::new(
            FaultKind::Forbidden,
            "the SDK key is not known here",
        )),
        ProjectLookup::Unusable if is_agent => Err(agent::no_client(name())),
        ProjectLookup::Unusable => {
            let message = "the project's datafile cannot be read at the moment";
            Err(Fault::new(FaultKind::Unavailable, message).with_retry_after_s(RETRY_AFTER_S))
        }
    }
}

/// A fault in the words of the decision endpoints.
pub fn error_response(compat: Compat, fault: &Fault) -> Response {
    match compat {
        Compat::Document => Response {
            body: fault.plain_body().into(),
            ..Response::from(fault)
        },
        Compat::Agent => agent::refusal(fault),
    }
}

/// An answer as `compat` sends it.
pub fn to_agent_response(compat: Compat, answer: Response) -> Response {
    if compat == Compat::Document || answer.body.bytes().is_empty() {
        return answer;
    }
    Response {
        body: encode::as_agent(answer.body.bytes()).into(),
        ..answer
    }
}

/// The SDK key that a call is made with.
///
/// Errors: 400, 401, 403 as the decisions say.
async fn sdk_key(flags: &DecisionService, call: &Request<'_>) -> Result<Box<str>, Fault> {
    let foreign = match &flags.foreign {
        Some(published) => match credentials::token(call.headers, &flags.credentials) {
            Some(token) => published.find_for_token(token).await,
            None => None,
        },
        None => None,
    };
    let now_s = call.now_ms / 1000;
    credentials::sdk_key(call.headers, &flags.credentials, foreign.as_deref(), now_s)
}

/// A body has to be JSON; where there is none, nothing has to be said of it.
fn media_type(call: &Request<'_>) -> Result<(), Fault> {
    let is_json = form::media_type(call.headers).eq_ignore_ascii_case(b"application/json");
    if call.body.is_empty() || is_json {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::MediaType,
        "`Content-Type` is missing or not JSON; `application/json` is accepted",
    ))
}

impl<'a> DecisionContext<'a> {
    fn compat(&self) -> Compat {
        self.flags.compat
    }

    fn body(&self) -> Result<DecisionBody<'a>, Fault> {
        DecisionBody::parse(self.call.body, self.compat())
    }

    /// As it came; the agent of old writes it anew.
    fn datafile(&self) -> Response {
        let text = &self.loaded.text;
        match (self.compat(), serde_json::from_slice(text)) {
            (Compat::Agent, Ok(value)) => Response::json(encode::value(&value)),
            _ => Response::json(text.clone()),
        }
    }

    /// Tells who listens.
    fn notify(&self, topic: Topic, json: impl FnOnce() -> Vec<u8>) {
        if let Some(notices) = &self.flags.notices {
            notices.tell(&self.sdk_key, topic, json);
        }
    }

    /// Queues impressions of a user.
    fn tell<'i>(
        &self,
        user: &DecisionUser<'_>,
        impressions: impl IntoIterator<Item = &'i filters::decisions::decide::Impression<'i>>,
    ) {
        let (project, events) = (&self.loaded.project, &self.flags.events);
        if !events.is_on() {
            return events.off(impressions.into_iter().count() as u64);
        }
        for impression in impressions {
            let uuid = new_uuid();
            let moment = self.moment(user, &uuid);
            let visitor = event::impression(project, impression, &moment);
            events.send(Head::of(project), visitor);
        }
    }

    fn moment<'m>(&self, user: &'m DecisionUser<'m>, uuid: &'m str) -> Moment<'m> {
        Moment {
            user_id: &user.id,
            attributes: &user.attributes,
            now_ms: self.call.now_ms,
            uuid,
        }
    }
}
