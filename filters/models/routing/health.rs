//! The health of each mapping, as real requests measure it. Source: docs/facts/model-gateway.md 3.5.

use std::sync::{Mutex, PoisonError};

/// How many minutes are remembered.
const MINUTES: usize = 60;
/// Failures in a row after which a candidate goes to the end of the list.
const MAX_FAILURES: u32 = 3;
/// How long the candidate stays there.
const COOL_DOWN_MS: u64 = 30_000;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttemptOutcome {
    /// It answered.
    Answered {
        /// To the first content.
        latency_ms: f64,
        /// Completion tokens a second, where they were measured.
        throughput: Option<f64>,
    },
    /// It failed, and the provider is to blame.
    Failed,
    /// It was refused, and the caller is to blame. This does not lower the provider's health.
    CallersFault,
}

/// Measurements of one mapping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HealthStats {
    /// Percent of attempts that answered.
    pub uptime: f64,
    /// To the first content.
    pub latency_ms: f64,
    /// Completion tokens a second.
    pub throughput: f64,
}

impl Default for HealthStats {
    /// The assumption about a provider without measurements.
    fn default() -> Self {
        Self {
            uptime: 100.0,
            latency_ms: 1000.0,
            throughput: 50.0,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Minute {
    number: u64,
    answered: u32,
    failed: u32,
    latency_ms: f64,
    throughput: f64,
    throughputs: u32,
}

/// Weighted sums of minutes.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    answered: f64,
    failed: f64,
    latency_ms: f64,
    throughput: f64,
    throughputs: f64,
}

#[derive(Debug)]
struct Window {
    minutes: [Minute; MINUTES],
    /// The sums of the minutes before [`Self::summed_for`], so that a reading adds up the hour once a minute.
    earlier: Sums,
    /// The number of the minute that [`Self::earlier`] precedes; `u64::MAX`: it has to be added up.
    summed_for: u64,
    failed_in_a_row: u32,
    cools_until_ms: u64,
}

/// What the plan of a request needs to know of a mapping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// The measurements of the last hour: the last minute counts ten times, the last five three times. `None`: none yet.
    pub stats: Option<HealthStats>,
    /// Whether the mapping has just failed several times in a row.
    pub cools_down: bool,
}

/// The windows of all mappings, by their index. Memory is bounded by the catalogue.
#[derive(Debug)]
pub struct Health {
    windows: Vec<Mutex<Window>>,
}

impl Health {
    /// Empty windows for this many mappings.
    pub fn new(mappings: usize) -> Self {
        let empty = || Window {
            minutes: [Minute::default(); MINUTES],
            earlier: Sums::default(),
            summed_for: u64::MAX,
            failed_in_a_row: 0,
            cools_until_ms: 0,
        };
        Self {
            windows: (0..mappings).map(|_| Mutex::new(empty())).collect(),
        }
    }

    /// Records an outcome. Cost: one short lock.
    pub fn record(&self, mapping: usize, outcome: AttemptOutcome, now_ms: u64) {
        let Some(window) = self.windows.get(mapping) else {
            return;
        };
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now_ms / 60_000;
        if window.summed_for != number {
            window.summed_for = u64::MAX;
        }
        let slot = (number % MINUTES as u64) as usize;
        let Some(minute) = window.minutes.get_mut(slot) else {
            return;
        };
        if minute.number != number {
            *minute = Minute {
                number,
                ..Minute::default()
            };
        }
        match outcome {
            AttemptOutcome::CallersFault => {}
            AttemptOutcome::Failed => {
                minute.failed += 1;
                window.failed_in_a_row += 1;
                if window.failed_in_a_row >= MAX_FAILURES {
                    window.cools_until_ms = now_ms + COOL_DOWN_MS;
                }
            }
            AttemptOutcome::Answered {
                latency_ms,
                throughput,
            } => {
                minute.answered += 1;
                minute.latency_ms += latency_ms;
                if let Some(throughput) = throughput {
                    minute.throughput += throughput;
                    minute.throughputs += 1;
                }
                window.failed_in_a_row = 0;
                window.cools_until_ms = 0;
            }
        }
    }

    /// Returns the standing of a mapping. Cost: one short lock; the hour is added up once a minute.
    pub fn standing(&self, mapping: usize, now_ms: u64) -> Standing {
        let Some(window) = self.windows.get(mapping) else {
            return Standing {
                stats: None,
                cools_down: false,
            };
        };
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        Standing {
            stats: window.sums(now_ms / 60_000).stats(),
            cools_down: window.cools_until_ms > now_ms,
        }
    }
}

impl Window {
    /// Returns the sums of the hour that ends with the minute `now`.
    fn sums(&mut self, now: u64) -> Sums {
        if self.summed_for != now {
            self.earlier = Sums::default();
            for minute in &self.minutes {
                let weight = match now.saturating_sub(minute.number) {
                    1..=4 => 3.0,
                    5..=59 => 1.0,
                    _ => continue,
                };
                self.earlier.add(minute, weight);
            }
            self.summed_for = now;
        }
        let mut sums = self.earlier;
        let current = self.minutes.get((now % MINUTES as u64) as usize);
        if let Some(current) = current.filter(|minute| minute.number == now) {
            sums.add(current, 10.0);
        }
        sums
    }
}

impl Sums {
    fn add(&mut self, minute: &Minute, weight: f64) {
        self.answered += weight * f64::from(minute.answered);
        self.failed += weight * f64::from(minute.failed);
        self.latency_ms += weight * minute.latency_ms;
        self.throughput += weight * minute.throughput;
        self.throughputs += weight * f64::from(minute.throughputs);
    }

    fn stats(self) -> Option<HealthStats> {
        let attempts = self.answered + self.failed;
        if attempts == 0.0 {
            return None;
        }
        let mut stats = HealthStats {
            uptime: 100.0 * self.answered / attempts,
            ..HealthStats::default()
        };
        if self.answered > 0.0 {
            stats.latency_ms = self.latency_ms / self.answered;
        }
        if self.throughputs > 0.0 {
            stats.throughput = self.throughput / self.throughputs;
        }
        Some(stats)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    /// Adds up an hour of outcomes one by one.
    fn add_up(outcomes: &[(u64, f64)], now: u64) -> Option<HealthStats> {
        let mut sums = Sums::default();
        for (minute, latency_ms) in outcomes {
            let weight = match now - minute {
                0 => 10.0,
                1..=4 => 3.0,
                5..=59 => 1.0,
                _ => continue,
            };
            if *latency_ms == 0.0 {
                sums.failed += weight;
            } else {
                sums.answered += weight;
                sums.latency_ms += weight * latency_ms;
            }
        }
        sums.stats()
    }

    proptest! {
        #[test]
        fn a_reading_is_the_sum_of_the_hour(
            steps in proptest::collection::vec((0..7_u64, 0..4_u32, any::<bool>()), 1..200),
        ) {
            let health = Health::new(1);
            let (mut now, mut outcomes) = (0, Vec::new());
            for (minutes, latency, reads_first) in steps {
                now += minutes.saturating_sub(3) * 11;
                if reads_first {
                    _ = health.standing(0, now * 60_000);
                }
                let latency_ms = f64::from(latency);
                let outcome = if latency == 0 {
                    AttemptOutcome::Failed
                } else {
                    AttemptOutcome::Answered { latency_ms, throughput: None }
                };
                health.record(0, outcome, now * 60_000);
                outcomes.push((now, latency_ms));
                let (read, sum) = (health.standing(0, now * 60_000).stats, add_up(&outcomes, now));
                let (read, sum) = (read.unwrap(), sum.unwrap());
                prop_assert!((read.uptime - sum.uptime).abs() < 1e-6);
                prop_assert!((read.latency_ms - sum.latency_ms).abs() < 1e-6);
            }
        }
    }
}
