//! How each provider stands as a whole, for people. Plans look at candidates one by one.

use std::sync::Arc;

use filters::models::routing::health::{HealthStats, Readiness};
use filters::money::{Price, PricePoint};

use super::Planner;

/// How a provider stands.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderStanding {
    pub name: Arc<str>,
    /// Whether it is built in, for trials without keys.
    pub is_sandbox: bool,
    /// Ways to serve a model: its models, once for each region.
    pub candidates: usize,
    /// Those that are tried after all others, because they have failed or are at a limit.
    pub resting: usize,
    /// The averages of the candidates that were measured in the last hour; `None`: none was.
    pub stats: Option<HealthStats>,
    /// The prices of tokens of short prompts; `None`: none is known.
    pub input: Option<PriceSpan>,
    /// The prices of tokens of answers; `None`: none is known.
    pub output: Option<PriceSpan>,
}

/// The least and the greatest of prices.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PriceSpan {
    pub least: Price,
    pub greatest: Price,
}

impl Planner {
    /// Returns how each provider stands, in the order of the configuration. `point` says for which calls prices are. Cost: some loads
    /// for each candidate of the catalogue.
    pub fn standings(&self, now_ms: u64, point: PricePoint) -> Vec<ProviderStanding> {
        let mut standings: Vec<ProviderStanding> = self
            .providers
            .iter()
            .map(|provider| ProviderStanding {
                name: Arc::clone(&provider.name),
                is_sandbox: provider.is_sandbox,
                candidates: 0,
                resting: 0,
                stats: None,
                input: None,
                output: None,
            })
            .collect();
        let mut measured: Vec<Vec<HealthStats>> = vec![Vec::new(); standings.len()];
        for candidate in self.catalog.candidates() {
            let number = candidate.mapping.provider_number;
            let all = standings.get_mut(number).zip(measured.get_mut(number));
            let Some((standing, measured)) = all else {
                continue;
            };
            let of = self.health.standing(candidate.index, now_ms);
            standing.candidates += 1;
            standing.resting += usize::from(of.readiness != Readiness::Ready);
            measured.extend(of.stats);
            if let Some(prices) = candidate.short_prices(point) {
                PriceSpan::add(&mut standing.input, prices.input);
                PriceSpan::add(&mut standing.output, prices.output);
            }
        }
        for (standing, measured) in standings.iter_mut().zip(&measured) {
            standing.stats = average(measured);
        }
        standings
    }
}

impl PriceSpan {
    fn add(span: &mut Option<Self>, price: Price) {
        let (least, greatest) = match span {
            Some(span) => (span.least.min(price), span.greatest.max(price)),
            None => (price, price),
        };
        *span = Some(Self { least, greatest });
    }
}

fn average(measured: &[HealthStats]) -> Option<HealthStats> {
    if measured.is_empty() {
        return None;
    }
    let mean =
        |of: fn(&HealthStats) -> f64| measured.iter().map(of).sum::<f64>() / measured.len() as f64;
    Some(HealthStats {
        uptime: mean(|stats| stats.uptime),
        latency_ms: mean(|stats| stats.latency_ms),
        throughput: mean(|stats| stats.throughput),
    })
}
