//! Why a plan is what it is: all candidates with what decides their order, and those that were left out, with the reasons.
//!
//! It tells the caller what concerns its own request: no secrets, no addresses, nothing of other callers. What is measured
//! of a candidate is of all calls together.

use std::sync::Arc;

use super::health::{HealthStats, Readiness, Standing};
use super::plan::LeftOut;
use super::resolve::{Candidate, shown};
use super::score::ScoreParts;
use crate::fault::Fault;
use crate::json::Object;
use crate::models::request::Strategy;

/// The units of a price in a millionth of a dollar per token.
const UNITS: f64 = 1e12;
/// The header by which a request asks for the explanation.
const DEBUG: &str = "x-weirgate-debug";
/// The only value that it takes.
const ROUTE: &str = "route";

/// Why a plan is what it is.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What the scores compare first; `None`: all factors, by their weights.
    pub strategy: Option<Strategy>,
    /// How many candidates are tried at most.
    pub max_attempts: usize,
    pub first_by: FirstBy,
    pub session: Option<SessionNote>,
    /// All candidates that can serve the request, in order.
    pub considered: Vec<Considered>,
    /// The candidates that the caller may not use.
    pub barred: Vec<LeftOut>,
    /// The process's clock when the plan was made.
    pub planned_ms: u64,
}

/// What has put a candidate first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FirstBy {
    Score,
    Session,
    /// It had failed, and one request tries whether it works again.
    Trial,
    /// It was drawn to be measured.
    Exploration,
}

/// Where a session is bound.
#[derive(Clone, Debug)]
pub struct SessionNote {
    /// The candidate that answered it last; `None`: none is known.
    pub bound_to: Option<Arc<Candidate>>,
    /// The tokens of its prompt that were cached there.
    pub cached_tokens: u64,
}

/// A candidate that can serve the request, and what decides its place.
#[derive(Clone, Debug)]
pub struct Considered {
    pub candidate: Arc<Candidate>,
    /// Whether it is among the attempts.
    pub is_tried: bool,
    /// Whether the caller has a key of its own for it. Such candidates come before all others.
    pub has_own_key: bool,
    /// Its score; lower is better.
    pub score: f64,
    /// What the score is made of. If it was first in the plan before, the score is lower than their sum.
    pub parts: ScoreParts,
    /// The price that it is compared by; `None`: unknown.
    pub price: Option<f64>,
    /// Its measurements.
    pub standing: Standing,
}

/// Checks the value of the header by which a request asks for the explanation.
///
/// Errors: 400 for any other value.
pub fn check_debug(value: &[u8]) -> Result<(), Fault> {
    if value == ROUTE.as_bytes() {
        return Ok(());
    }
    let came = String::from_utf8_lossy(value);
    let message = format!("`{DEBUG}` is `{}`; `{ROUTE}` is accepted", shown(&came));
    Err(Fault::invalid(DEBUG, message))
}

/// Adds to the fault of a request that could not be planned what was left out, as [`Explanation::add_to`] does.
pub fn explain_unplanned(fault: Fault, barred: &[LeftOut], left_out: &[LeftOut]) -> Fault {
    with_route(fault, |out| {
        let mut object = Object::open(out);
        write_lists(&[], (barred, left_out), 0, &mut object);
        object.close();
    })
}

fn with_route(fault: Fault, write: impl FnOnce(&mut Vec<u8>)) -> Fault {
    let mut metadata = Vec::new();
    let mut object = Object::open(&mut metadata);
    object.value(ROUTE, write);
    object.close();
    fault.with_metadata(metadata)
}

fn write_lists(
    considered: &[Considered],
    (barred, left_out): (&[LeftOut], &[LeftOut]),
    planned_ms: u64,
    object: &mut Object<'_>,
) {
    object.array("candidates", considered, |it, out| {
        it.write(planned_ms, out);
    });
    let left_out: Vec<&LeftOut> = barred.iter().chain(left_out).collect();
    object.array("left_out", &left_out, |it, out| it.write(out));
}

impl Explanation {
    /// Writes it as a JSON object, with those that cannot serve the request.
    ///
    /// Shape: docs/routing.md.
    pub fn write(&self, left_out: &[LeftOut], out: &mut Vec<u8>) {
        let mut object = Object::open(out);
        object.text(
            "strategy",
            self.strategy.map_or("auto", |strategy| strategy.as_str()),
        );
        object.number("max_attempts", self.max_attempts as u64);
        object.text("first_by", self.first_by.as_str());
        if let Some(session) = &self.session {
            object.object("session", |object| session.write(object));
        }
        let left_out = (&*self.barred, left_out);
        write_lists(&self.considered, left_out, self.planned_ms, &mut object);
        object.close();
    }

    /// Adds it to the fault of a call, as `metadata.route`.
    pub fn add_to(&self, fault: Fault, left_out: &[LeftOut]) -> Fault {
        with_route(fault, |out| self.write(left_out, out))
    }
}

impl FirstBy {
    /// Returns the word for people and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::Session => "session",
            Self::Trial => "trial",
            Self::Exploration => "exploration",
        }
    }
}

impl SessionNote {
    fn write(&self, object: &mut Object<'_>) {
        let bound_to = self.bound_to.as_deref();
        object.text_or_null("provider", bound_to.map(|it| &*it.mapping.provider));
        if let Some(bound_to) = bound_to {
            object.text("model", &bound_to.model.id);
            object.number("cached_tokens", self.cached_tokens);
        }
    }
}

impl Readiness {
    /// Returns the word for people and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::TrialDue => "trial_due",
            Self::Later => "later",
        }
    }
}

impl Considered {
    /// Returns the price in USD per million tokens, as decimal text.
    pub fn price_per_million(&self) -> Option<String> {
        self.price.map(|price| rounded(price / UNITS, 6))
    }

    /// Writes it as a JSON object. `planned_ms` is the clock when the plan was made.
    fn write(&self, planned_ms: u64, out: &mut Vec<u8>) {
        let mut object = Object::open(out);
        object.text("provider", &self.candidate.mapping.provider);
        object.text("model", &self.candidate.model.id);
        object.optional_text("region", self.candidate.region.as_deref());
        object.bool("is_tried", self.is_tried);
        object.bool("has_own_key", self.has_own_key);
        object.raw("score", &rounded(self.score, 3));
        object.object("score_parts", |object| self.write_parts(object));
        let price = self.price_per_million();
        object.raw("price", price.as_deref().unwrap_or("null"));
        if let Some(HealthStats {
            uptime,
            latency_ms,
            throughput,
        }) = self.standing.stats
        {
            object.raw("uptime", &rounded(uptime, 1));
            object.raw("latency_ms", &rounded(latency_ms, 0));
            object.raw("throughput", &rounded(throughput, 1));
        }
        object.text("readiness", self.standing.readiness.as_str());
        if self.standing.readiness == Readiness::Later {
            let due_ms = self.standing.due_ms;
            object.number("ready_in_ms", due_ms.saturating_sub(planned_ms));
        }
        object.close();
    }

    fn write_parts(&self, object: &mut Object<'_>) {
        let ScoreParts {
            price,
            uptime,
            throughput,
            latency,
            priority,
            penalty,
        } = self.parts;
        let was_first = self.score - self.parts.sum();
        for (name, part) in [
            ("price", price),
            ("uptime", uptime),
            ("throughput", throughput),
            ("latency", latency),
            ("priority", priority),
            ("penalty", penalty),
            ("was_first", was_first),
        ] {
            object.raw(name, &rounded(part, 3));
        }
    }
}

/// Returns a finite number with so many decimals, and without zeros at its end.
fn rounded(number: f64, decimals: usize) -> String {
    if !number.is_finite() {
        return "null".to_owned();
    }
    let text = format!("{number:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &*text,
    };
    match text {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}
