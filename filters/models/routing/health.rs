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

#[derive(Debug)]
struct Window {
    minutes: [Minute; MINUTES],
    failed_in_a_row: u32,
    cools_until_ms: u64,
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

    /// Returns the measurements of the last hour: the last minute counts ten times, the last five three times.
    pub fn metrics(&self, mapping: usize, now_ms: u64) -> Option<HealthStats> {
        let window = self
            .windows
            .get(mapping)?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = now_ms / 60_000;
        let (mut answered, mut failed, mut latency) = (0.0, 0.0, 0.0);
        let (mut throughput, mut throughputs) = (0.0, 0.0);
        for minute in &window.minutes {
            let age = now.saturating_sub(minute.number);
            if age >= MINUTES as u64 || minute.answered + minute.failed == 0 {
                continue;
            }
            let weight = match age {
                0 => 10.0,
                1..=4 => 3.0,
                _ => 1.0,
            };
            answered += weight * f64::from(minute.answered);
            failed += weight * f64::from(minute.failed);
            latency += weight * minute.latency_ms;
            throughput += weight * minute.throughput;
            throughputs += weight * f64::from(minute.throughputs);
        }
        if answered + failed == 0.0 {
            return None;
        }
        let default = HealthStats::default();
        Some(HealthStats {
            uptime: 100.0 * answered / (answered + failed),
            latency_ms: if answered > 0.0 {
                latency / answered
            } else {
                default.latency_ms
            },
            throughput: if throughputs > 0.0 {
                throughput / throughputs
            } else {
                default.throughput
            },
        })
    }

    /// Returns whether the mapping has just failed several times in a row.
    pub fn cools_down(&self, mapping: usize, now_ms: u64) -> bool {
        self.windows.get(mapping).is_some_and(|window| {
            window
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .cools_until_ms
                > now_ms
        })
    }
}
