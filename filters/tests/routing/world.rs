//! How providers behave: what an attempt at one of them comes to.

use std::collections::HashMap;

use http::HeaderMap;

use crate::day::{Call, FAR, Trouble, chance, speed, troubles};

/// What an attempt comes to. Units: milliseconds since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    Refused {
        after_ms: u64,
    },
    Hung,
    Broken {
        after_ms: u64,
    },
    Throttled {
        after_ms: u64,
    },
    Answered {
        content_ms: u64,
        end_ms: u64,
        rate: f64,
    },
}

/// The providers, and how many calls they have had in the minute.
#[derive(Default)]
pub(crate) struct World {
    counted: HashMap<(&'static str, u64), u32>,
}

impl World {
    /// Returns what an attempt comes to that starts now, without making it.
    pub(crate) fn foresee(
        &self,
        call: &Call,
        provider: &'static str,
        region: Option<&str>,
        at_ms: u64,
    ) -> Outcome {
        let draw = |what: u64| {
            chance(
                call.number,
                100 * (1 + provider.as_bytes()[0] as u64) + what,
            )
        };
        for trouble in troubles(provider, at_ms) {
            match trouble {
                Trouble::Refuses => return Outcome::Refused { after_ms: 5 },
                Trouble::Hangs => return Outcome::Hung,
                Trouble::BrownsOut if draw(0) < 0.3 => return Outcome::Broken { after_ms: 300 },
                Trouble::Throttles(most) if self.counted(provider, at_ms) >= most => {
                    return Outcome::Throttled { after_ms: 50 };
                }
                _ => {}
            }
        }
        let (latency_ms, rate) = speed(provider, at_ms);
        // About a bell curve, of logarithms.
        let bell = |what: u64| (0..4).map(|n| draw(what + n)).sum::<f64>() - 2.0;
        let far = if region == Some(FAR) { 8.0 } else { 1.0 };
        let latency_ms = far * latency_ms * (0.7 * bell(10)).exp();
        let rate = rate * (0.3 * bell(20)).exp();
        let stream_ms = 1000.0 * call.completion as f64 / rate;
        let end_ms = (latency_ms + stream_ms) as u64;
        Outcome::Answered {
            content_ms: if call.is_stream {
                latency_ms as u64
            } else {
                end_ms
            },
            end_ms,
            rate,
        }
    }

    /// Returns what an attempt comes to that starts now.
    pub(crate) fn attempt(
        &mut self,
        call: &Call,
        provider: &'static str,
        region: Option<&str>,
        at_ms: u64,
    ) -> Outcome {
        let outcome = self.foresee(call, provider, region, at_ms);
        *self.counted.entry((provider, at_ms / 60_000)).or_default() += 1;
        outcome
    }

    /// Returns what the head of a reply tells of the limit, at the count after this attempt.
    pub(crate) fn head(&self, provider: &'static str, at_ms: u64) -> HeaderMap {
        let mut head = HeaderMap::new();
        for trouble in troubles(provider, at_ms) {
            let Trouble::Throttles(most) = trouble else {
                continue;
            };
            let reset_s = 60 - at_ms / 1000 % 60;
            let left = most.saturating_sub(self.counted(provider, at_ms));
            let mut tell = |name: &'static str, value: String| {
                head.insert(name, value.parse().unwrap());
            };
            tell("x-ratelimit-limit-requests", most.to_string());
            tell("x-ratelimit-remaining-requests", left.to_string());
            tell("x-ratelimit-reset-requests", format!("{reset_s}s"));
            if self.counted(provider, at_ms) > most {
                tell("retry-after", reset_s.to_string());
            }
        }
        head
    }

    fn counted(&self, provider: &'static str, at_ms: u64) -> u32 {
        let minute = (provider, at_ms / 60_000);
        self.counted.get(&minute).copied().unwrap_or_default()
    }
}
