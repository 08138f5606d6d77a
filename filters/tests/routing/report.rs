//! What a replayed day comes to.

use std::fmt;

use crate::day::{DAY_MS, EVENTS, Event, PROVIDERS, Trouble};
use crate::replay::{Attempt, Best, Done};
use crate::world::Outcome;

/// The slices of which shares are told.
pub(crate) const SLICE_MS: u64 = 15 * 60_000;
const SLICES: usize = (DAY_MS / SLICE_MS) as usize;
const MINUTE_MS: u64 = 60_000;

/// The share of each provider.
pub(crate) type Shares = [f64; PROVIDERS.len()];

/// An event, as the calls of one model met it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    pub(crate) event: Event,
    pub(crate) model: &'static str,
    /// Calls of the model meanwhile.
    pub(crate) calls: usize,
    /// Failed attempts that were no trials.
    pub(crate) failed: usize,
    /// Failed trials.
    pub(crate) trials: usize,
    /// Milliseconds from its end to the first good call for which the provider is the best; `None`: it is the best of less
    /// than five in the first minute.
    pub(crate) back_after_ms: Option<u64>,
    /// The share of such calls, from the second to the sixth minute after the end, that it gets.
    pub(crate) share_after: f64,
}

/// See the module. Pairs are what the planner reached, and what the oracle did.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) calls: usize,
    pub(crate) failed_calls: usize,
    pub(crate) failed_attempts: usize,
    /// Units: USD.
    pub(crate) cost: (f64, f64),
    /// Of streams, to the first content, with failed attempts before it. Units: mean milliseconds.
    pub(crate) latency_ms: (f64, f64),
    /// The same of the streams that began while nothing happened.
    pub(crate) calm_latency_ms: (f64, f64),
    /// Of streams. Units: mean tokens a second.
    pub(crate) rate: (f64, f64),
    /// How often most streams of a slice went elsewhere than those of the slice before, though nothing happened.
    pub(crate) flips: usize,
    pub(crate) met: Vec<Met>,
    /// Where streams of the large model were answered, by slice.
    pub(crate) shares: Vec<Shares>,
}

impl Summary {
    /// Sums up the calls for which providers compete.
    pub(crate) fn new(all: &[Done]) -> Self {
        let free: Vec<&Done> = all.iter().filter(|it| it.call.is_free()).collect();
        let answered = free.iter().filter(|it| it.is_answered);
        let pairs: Vec<(&Done, Best)> = answered.filter_map(|it| Some((*it, it.oracle?))).collect();
        let streams: Vec<(&Done, Best)> = pairs
            .iter()
            .filter(|(it, _)| it.call.is_stream)
            .copied()
            .collect();
        let latency = |(it, best): &(&Done, Best)| (it.latency_ms as f64, best.latency_ms as f64);
        let calm = streams.iter().filter(|(it, _)| is_calm(slice(it)));
        let rates = streams
            .iter()
            .filter_map(|(it, best)| match it.attempts.last()?.outcome {
                Outcome::Answered { rate, .. } => Some((rate, best.rate)),
                _ => None,
            });
        let failed = free
            .iter()
            .map(|it| it.attempts.len() - usize::from(it.is_answered));
        let shares = shares(&free, |it| it.attempts.last().map(|it| it.provider));
        let best = shares_of_oracle(&free);
        let (cost, count) = (
            pairs.iter().map(|(it, best)| (it.cost, best.cost)),
            pairs.len() as f64,
        );
        let cost = mean(cost);
        Self {
            calls: free.len(),
            failed_calls: free.iter().filter(|it| !it.is_answered).count(),
            failed_attempts: failed.sum(),
            cost: (cost.0 * count, cost.1 * count),
            latency_ms: mean(streams.iter().map(latency)),
            calm_latency_ms: mean(calm.map(latency)),
            rate: mean(rates),
            flips: count_flips(&shares, &best),
            met: meet(&free),
            shares,
        }
    }
}

fn mean(pairs: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let add = |(one, other, count), it: (f64, f64)| (one + it.0, other + it.1, count + 1.0);
    let (one, other, count) = pairs.fold((0.0, 0.0, 0.0), add);
    let count = f64::max(count, 1.0);
    (one / count, other / count)
}

fn slice(done: &Done) -> usize {
    (done.call.at_ms / SLICE_MS) as usize
}

fn shares(free: &[&Done], chosen: impl Fn(&Done) -> Option<&'static str>) -> Vec<Shares> {
    let mut shares = vec![[0.0; PROVIDERS.len()]; SLICES];
    let is_counted = |it: &&&Done| it.call.model == "large" && it.call.is_stream;
    for done in free.iter().filter(is_counted) {
        let chosen = chosen(done).and_then(|name| PROVIDERS.iter().position(|it| *it == name));
        if let Some(provider) = chosen {
            shares[slice(done)][provider] += 1.0;
        }
    }
    for slice in &mut shares {
        let sum = slice.iter().sum::<f64>().max(1.0);
        slice.iter_mut().for_each(|it| *it /= sum);
    }
    shares
}

fn shares_of_oracle(free: &[&Done]) -> Vec<Shares> {
    shares(free, |it| it.oracle.map(|it| it.provider))
}

fn leader(slice: &Shares) -> usize {
    let shares = slice.iter().enumerate();
    let leader = shares.max_by(|a, b| a.1.total_cmp(b.1));
    leader.map_or(0, |it| it.0)
}

/// Returns whether nothing happens in a slice, nor in the two before.
fn is_calm(slice: usize) -> bool {
    let (from_ms, until_ms) = (
        slice.saturating_sub(2) as u64 * SLICE_MS,
        (slice as u64 + 1) * SLICE_MS,
    );
    let mut events = EVENTS.iter();
    events.all(|it| it.until_ms <= from_ms || it.from_ms >= until_ms)
}

fn count_flips(shares: &[Shares], best: &[Shares]) -> usize {
    let has_flipped = |at: &usize| {
        let is_wanted = leader(&best[at - 1]) != leader(&best[*at]);
        is_calm(*at) && !is_wanted && leader(&shares[at - 1]) != leader(&shares[*at])
    };
    (1..shares.len()).filter(has_flipped).count()
}

fn meet(free: &[&Done]) -> Vec<Met> {
    let met = |event: Event| ["large", "small"].map(|model| Met::new(free, event, model));
    EVENTS.into_iter().flat_map(met).collect()
}

impl Met {
    fn new(free: &[&Done], event: Event, model: &'static str) -> Self {
        let of_model: Vec<&Done> = free
            .iter()
            .filter(|it| it.call.model == model)
            .copied()
            .collect();
        let is_during = |at_ms: u64| (event.from_ms..event.until_ms).contains(&at_ms);
        let attempts = of_model.iter().flat_map(|it| &it.attempts);
        let bad = attempts.filter(|it| {
            let is_good = matches!(it.outcome, Outcome::Answered { .. });
            it.provider == event.provider && is_during(it.started_ms) && !is_good
        });
        let (trials, failed) = bad.partition::<Vec<&Attempt>, _>(|it| it.is_trial);
        let wanted = |from_ms: u64, until_ms: u64| {
            let after = event.until_ms + from_ms..event.until_ms + until_ms;
            let calls = of_model
                .iter()
                .filter(move |it| after.contains(&it.call.at_ms));
            let alone = calls.filter(|it| it.call.session.is_none());
            alone.filter(|it| it.oracle.is_some_and(|it| it.provider == event.provider))
        };
        let first = |it: &&&Done| {
            it.attempts
                .first()
                .copied()
                .filter(|it| it.provider == event.provider)
        };
        let back = wanted(0, 10 * MINUTE_MS).find_map(|it| {
            let first = first(&it)?;
            first.content_ms.and(Some(first.started_ms))
        });
        let (count, there) = wanted(MINUTE_MS, 6 * MINUTE_MS)
            .fold((0.0, 0.0), |(count, there), it| {
                (count + 1.0, there + f64::from(first(&it).is_some()))
            });
        let is_wanted = wanted(0, MINUTE_MS).nth(4).is_some() && count > 0.0;
        Self {
            event,
            model,
            calls: of_model
                .iter()
                .filter(|it| is_during(it.call.at_ms))
                .count(),
            failed: failed.len(),
            trials: trials.len(),
            back_after_ms: is_wanted.then(|| back.map_or(u64::MAX, |at| at - event.until_ms)),
            share_after: there / f64::max(count, 1.0),
        }
    }

    /// Returns whether the provider answers nothing at all meanwhile.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self.event.trouble, Trouble::Refuses | Trouble::Hangs)
    }
}

/// Writes how far the first lies above the second.
pub(crate) fn above((ours, best): (f64, f64)) -> String {
    format!("{:+.1} %", 100.0 * (ours / best - 1.0))
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cost,
            latency_ms,
            calm_latency_ms,
            rate,
            ..
        } = *self;
        writeln!(
            f,
            "{} calls, {} failed, {} failed attempts, {} flips",
            self.calls, self.failed_calls, self.failed_attempts, self.flips
        )?;
        writeln!(f, "  {:.2} USD ({})", cost.0, above(cost))?;
        writeln!(
            f,
            "  first content after {:.0} ms ({}), in calm {:.0} ms ({})",
            latency_ms.0,
            above(latency_ms),
            calm_latency_ms.0,
            above(calm_latency_ms)
        )?;
        writeln!(f, "  {:.1} tokens a second ({})", rate.0, above(rate))?;
        for met in self.met.iter().filter(|met| met.failed + met.trials > 0) {
            let Met {
                event,
                model,
                calls,
                failed,
                trials,
                ..
            } = met;
            write!(
                f,
                "  {} {:?}, {model}: {failed} attempts of {calls} calls failed, and {trials} trials",
                event.provider, event.trouble
            )?;
            match met.back_after_ms {
                Some(ms) => writeln!(
                    f,
                    "; back after {} s with {:.2} of the calls",
                    ms / 1000,
                    met.share_after
                )?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}
