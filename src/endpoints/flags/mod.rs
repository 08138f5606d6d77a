//! The decision endpoints. Each answers from values, so that a batch can call any of them.
//!
//! Source: decision-agent 4; where it is silent, facts D and E.

mod activate;
pub mod batch;
mod decide;
mod ofrep;
mod overrides;
mod profiles;
pub mod token;
mod track;
pub mod webhook;

use std::collections::HashMap;
use std::sync::Arc;

use filters::auth::sdk;
use filters::fault::{Fault, Kind};
use filters::flags::ask::Body;
use filters::flags::event::{self, Head, Moment};
use filters::flags::inputs::Predicted;
use filters::flags::{Compat, encode};
use filters::form;
use http::HeaderMap;

use crate::flags::Flags;
use crate::flags::projects::{Found, Loaded};
use crate::reply::Answer;

/// Seconds after which a project without a datafile may have one.
const RETRY_AFTER_S: u32 = 5;

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
    /// `POST /ofrep/v1/evaluate/flags/{key}`.
    OfrepFlag,
    /// `POST /ofrep/v1/evaluate/flags`.
    OfrepFlags,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The path as it came.
    pub path: &'a str,
    /// The query, undecoded.
    pub query: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// Unix time.
    pub now_ms: u64,
}

impl Call<'_> {
    /// Values of a query parameter, in order.
    fn values(&self, name: &str) -> Vec<String> {
        form::pairs(self.query)
            .filter(|pair| pair.plain_name() == name)
            .map(|pair| pair.plain_value().into_owned())
            .collect()
    }

    fn is_true(&self, name: &str) -> bool {
        self.values(name)
            .last()
            .is_some_and(|value| value == "true")
    }
}

/// A call whose caller is known.
struct Asked<'a> {
    call: &'a Call<'a>,
    flags: &'a Flags,
    sdk_key: Box<str>,
    loaded: Arc<Loaded>,
}

/// Answers a call.
///
/// Errors: 400, 401, 403, 404, 415, 503 as the specification and the decisions say.
pub async fn answer(flags: &Flags, endpoint: Endpoint, call: &Call<'_>) -> Result<Answer, Fault> {
    let sdk_key = sdk::sdk_key(call.headers, &flags.credentials, call.now_ms / 1000)?;
    let loaded = project(flags, &sdk_key).await?;
    media_type(call)?;
    let asked = Asked {
        call,
        flags,
        sdk_key,
        loaded,
    };
    match endpoint {
        Endpoint::Config => Ok(Answer::json(asked.loaded.project.overview())),
        Endpoint::Datafile => Ok(asked.datafile()),
        Endpoint::Decide => decide::answer(&asked),
        Endpoint::Activate => activate::answer(&asked),
        Endpoint::Track => track::answer(&asked),
        Endpoint::Override => overrides::answer(&asked),
        Endpoint::Lookup => profiles::lookup(&asked),
        Endpoint::Save => profiles::save(&asked),
        Endpoint::OfrepFlag => Ok(ofrep::flag(&asked)),
        Endpoint::OfrepFlags => Ok(ofrep::flags(&asked)),
    }
}

/// The project of an SDK key.
async fn project(flags: &Flags, sdk_key: &str) -> Result<Arc<Loaded>, Fault> {
    let name = sdk_key.split(':').next().unwrap_or_default();
    match flags.find(sdk_key).await {
        Found::Project(loaded) => Ok(loaded),
        Found::Unknown => Err(Fault::new(Kind::Forbidden, "the SDK key is not known here")),
        Found::Unusable if flags.compat == Compat::Agent => {
            let message = format!("failed to instantiate Optimizely for SDK Key: {name}");
            Err(Fault::new(Kind::Internal, message))
        }
        Found::Unusable => {
            let message = "the project's datafile cannot be read at the moment";
            Err(Fault::new(Kind::Unavailable, message).with_retry_after_s(RETRY_AFTER_S))
        }
    }
}

/// A body has to be JSON; where there is none, nothing has to be said of it.
fn media_type(call: &Call<'_>) -> Result<(), Fault> {
    let is_json = form::media_type(call.headers).eq_ignore_ascii_case(b"application/json");
    if call.body.is_empty() || is_json {
        return Ok(());
    }
    Err(Fault::new(
        Kind::MediaType,
        "`Content-Type` is missing or not JSON; `application/json` is accepted",
    ))
}

impl Asked<'_> {
    fn compat(&self) -> Compat {
        self.flags.compat
    }

    fn body(&self) -> Result<Body, Fault> {
        Body::parse(self.call.body, self.compat())
    }

    /// As it came; the agent of old writes it anew.
    fn datafile(&self) -> Answer {
        let text = &self.loaded.text;
        match (self.compat(), serde_json::from_slice(text)) {
            (Compat::Agent, Ok(value)) => Answer::json(encode::value(&value, Compat::Agent)),
            _ => Answer::json(text.clone()),
        }
    }

    /// Queues impressions of a user.
    fn tell<'i>(
        &self,
        user: &filters::flags::ask::User,
        impressions: impl IntoIterator<Item = &'i filters::flags::decide::Impression<'i>>,
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

    fn moment<'m>(&self, user: &'m filters::flags::ask::User, uuid: &'m str) -> Moment<'m> {
        Moment {
            user_id: &user.id,
            attributes: &user.attributes,
            now_ms: self.call.now_ms,
            uuid,
        }
    }
}

/// An event's id. It is a name and no secret.
fn new_uuid() -> String {
    let mut random = [0; 16];
    fastrand::fill(&mut random);
    uuid::Builder::from_random_bytes(random)
        .into_uuid()
        .to_string()
}

/// No predictor is asked yet: a bandit's decision ends as one that could not be predicted.
fn no_prediction(experiment_id: &str) -> HashMap<Box<str>, Predicted> {
    [(experiment_id.into(), Predicted::Failed)].into()
}
