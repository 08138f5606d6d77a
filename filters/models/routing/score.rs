//! The order in which providers are tried. Source: docs/facts/model-gateway.md 3.3, 3.4.

use super::health::HealthStats;
use crate::models::request::Strategy;

/// Weights of the factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    pub price: f64,
    pub uptime: f64,
    pub throughput: f64,
    /// Of the latency; streams only.
    pub latency: f64,
}

impl Weights {
    /// Returns the weights that hold for a request.
    fn for_request(self, strategy: Option<Strategy>, is_stream: bool) -> Self {
        let weights = strategy.map_or(self, Self::from_strategy);
        match is_stream {
            true => weights,
            false => Self {
                latency: 0.0,
                ..weights
            },
        }
    }

    fn sum(self) -> f64 {
        self.price + self.uptime + self.throughput + self.latency
    }

    /// Returns the weights as shares of their sum.
    fn shares_of(self, sum: f64) -> Self {
        Self {
            price: self.price / sum,
            uptime: self.uptime / sum,
            throughput: self.throughput / sum,
            latency: self.latency / sum,
        }
    }

    /// Returns the weights of a named strategy: 0.9 for its factor, 0.1 for uptime.
    fn from_strategy(strategy: Strategy) -> Self {
        let none = Self {
            price: 0.0,
            uptime: 0.1,
            throughput: 0.0,
            latency: 0.0,
        };
        match strategy {
            Strategy::Price => Self { price: 0.9, ..none },
            Strategy::Throughput => Self {
                throughput: 0.9,
                ..none
            },
            Strategy::Latency => Self {
                latency: 0.9,
                ..none
            },
        }
    }
}

/// The facts about one candidate.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The mean price; `None` where unknown.
    pub price: Option<f64>,
    /// The measurements; `None`: none yet.
    pub metrics: Option<HealthStats>,
    /// The provider's preference; 1 is neutral.
    pub priority: f64,
}

/// The parts of a score: what each factor adds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScoreParts {
    /// The price, as far as it lies above the lowest.
    pub price: f64,
    /// The uptime, as far as it lies below the highest.
    pub uptime: f64,
    /// The throughput, as far as it lies below the highest.
    pub throughput: f64,
    /// The latency, as far as it lies above the lowest.
    pub latency: f64,
    pub priority: f64,
    pub penalty: f64,
}

impl ScoreParts {
    /// Returns the score: the sum of the parts.
    pub(super) fn sum(&self) -> f64 {
        let factors = self.price + self.uptime + self.throughput + self.latency;
        factors + self.priority + self.penalty
    }
}

/// How much better than the best one so far, as a share of what is measured, another candidate has to be.
const TOLERATED: f64 = 0.1;

/// Returns the difference of scores that chance may make: speeds within a tenth are the same.
pub(super) fn tolerance(weights: Weights, strategy: Option<Strategy>, is_stream: bool) -> f64 {
    let weights = weights.for_request(strategy, is_stream);
    let sum = weights.sum();
    if sum <= 0.0 {
        return 0.0;
    }
    TOLERATED * (weights.throughput + weights.latency) / sum
}

/// Returns the scores in the order of `facts`; lower is better.
pub fn score_candidates(
    facts: &[Facts],
    weights: Weights,
    strategy: Option<Strategy>,
    is_stream: bool,
) -> Vec<f64> {
    score_with(facts, weights, (strategy, is_stream), |parts| parts.sum())
}

/// Returns the parts of the scores of [`score_candidates`].
pub(super) fn split_scores(
    facts: &[Facts],
    weights: Weights,
    strategy: Option<Strategy>,
    is_stream: bool,
) -> Vec<ScoreParts> {
    score_with(facts, weights, (strategy, is_stream), |parts| parts)
}

/// Returns what `take` makes of the parts of each score.
fn score_with<T>(
    facts: &[Facts],
    weights: Weights,
    (strategy, is_stream): (Option<Strategy>, bool),
    take: impl Fn(ScoreParts) -> T,
) -> Vec<T> {
    let weights = weights.for_request(strategy, is_stream);
    let sum = weights.sum();
    let prices = compare_prices(facts);
    let has_metrics = facts.iter().any(|fact| fact.metrics.is_some());
    if sum <= 0.0 || !has_metrics && strategy.is_none_or(|strategy| strategy == Strategy::Price) {
        let by_priority = |(price, fact): (&f64, &Facts)| ScoreParts {
            price: price / fact.priority.max(f64::EPSILON),
            ..ScoreParts::default()
        };
        let parts = prices.iter().zip(facts).map(by_priority);
        return parts.map(take).collect();
    }
    let weights = weights.shares_of(sum);
    let metrics = || facts.iter().map(|fact| fact.metrics.unwrap_or_default());
    let best = |value: fn(HealthStats) -> f64, pick: fn(f64, f64) -> f64| {
        metrics().map(value).reduce(pick).unwrap_or(1.0)
    };
    let uptime = best(|m| m.uptime, f64::max);
    let throughput = best(|m| m.throughput, f64::max);
    let latency = best(|m| m.latency_ms, f64::min);
    let score = |((metrics, price), fact): ((HealthStats, &f64), &Facts)| {
        let throughput = lag_behind(throughput, metrics.throughput).min(3.0);
        let latency = metrics.latency_ms / latency.max(f64::EPSILON) - 1.0;
        take(ScoreParts {
            price: weights.price * price,
            uptime: weights.uptime * lag_behind(uptime, metrics.uptime),
            throughput: weights.throughput * throughput,
            latency: weights.latency * latency,
            priority: 1.0 - fact.priority,
            penalty: penalise(metrics.uptime),
        })
    };
    metrics().zip(&prices).zip(facts).map(score).collect()
}

/// Returns how far each price lies above the lowest. If some prices are 0, the others are compared with the lowest that
/// is not. An unknown price counts as the highest known one.
fn compare_prices(facts: &[Facts]) -> Vec<f64> {
    let known = || facts.iter().filter_map(|fact| fact.price);
    let highest = known().fold(0.0, f64::max);
    let lowest = known().fold(f64::INFINITY, f64::min);
    let positive = known()
        .filter(|price| *price > 0.0)
        .fold(f64::INFINITY, f64::min);
    let sub = |price: f64| {
        if lowest > 0.0 && lowest.is_finite() {
            price / lowest - 1.0
        } else if price == 0.0 || !positive.is_finite() {
            0.0
        } else {
            price / positive
        }
    };
    facts
        .iter()
        .map(|fact| sub(fact.price.unwrap_or(highest)))
        .collect()
}

fn lag_behind(best: f64, own: f64) -> f64 {
    if own <= 0.0 { 1.0 } else { best / own - 1.0 }
}

/// Returns the penalty of an uptime below 95 %; it grows with the square.
fn penalise(uptime: f64) -> f64 {
    if uptime >= 95.0 {
        0.0
    } else {
        ((95.0 - uptime) / 95.0 * 5.0).powi(2)
    }
}
