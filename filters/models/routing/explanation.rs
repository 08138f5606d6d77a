//! Why a plan is what it is: all candidates with what decides their order, and those that were left out, with the reasons.

use std::sync::Arc;

use super::health::{HealthStats, Readiness, Standing};
use super::plan::{LeftOut, RoutePlan};
use super::resolve::Candidate;
use crate::json::Object;

/// The units of a price in a millionth of a dollar per token.
const UNITS: f64 = 1e12;

/// A candidate that can serve the request, and what decides its place.
#[derive(Clone, Debug)]
pub struct Considered {
    /// The candidate.
    pub candidate: Arc<Candidate>,
    /// Whether it is among the attempts.
    pub is_tried: bool,
    /// Its score; lower is better.
    pub score: f64,
    /// The price that it is compared by; `None`: unknown.
    pub price: Option<f64>,
    /// Its measurements.
    pub standing: Standing,
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

    /// Writes it as a JSON object. `now_ms` is the clock that the plan was made by.
    fn write(&self, now_ms: u64, out: &mut Vec<u8>) {
        let mut object = Object::open(out);
        object.text("provider", &self.candidate.mapping.provider);
        object.text("model", &self.candidate.model.id);
        object.optional_text("region", self.candidate.region.as_deref());
        object.bool("is_tried", self.is_tried);
        object.raw("score", &rounded(self.score, 3));
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
            object.number("ready_in_ms", self.standing.due_ms.saturating_sub(now_ms));
        }
        object.close();
    }
}

impl RoutePlan {
    /// Writes the explanation as a JSON object: `candidates` in the order of the plan, then `left_out`. It is complete only
    /// if the plan was made to be explained.
    pub fn write_explanation(&self, now_ms: u64, out: &mut Vec<u8>) {
        let mut object = Object::open(out);
        object.array("candidates", &self.considered, |it, out| {
            it.write(now_ms, out)
        });
        let left_out: Vec<&LeftOut> = self.barred.iter().chain(&self.left_out).collect();
        object.array("left_out", &left_out, |it, out| it.write(out));
        object.close();
    }
}

/// Returns a finite number with so many decimals, and without zeros at its end.
fn rounded(number: f64, decimals: usize) -> String {
    if !number.is_finite() {
        return "null".to_owned();
    }
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
