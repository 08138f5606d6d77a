//! Replays a day through the planner, as the gateway asks it: a plan for each call, one attempt after the other, and each
//! outcome recorded when it is known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::operation::Operation;
use filters::models::request::{ModelRequest, Strategy};
use filters::models::routing::affinity::{Binding, SessionAffinity, SessionKey, SessionKeys};
use filters::models::routing::catalog::Catalog;
use filters::models::routing::health::{Health, HealthStats, RunningAttempt};
use filters::models::routing::plan::{PlanInputs, WhatExplains, plan};
use filters::models::routing::providers::ProviderSet;
use filters::models::routing::resolve::{Candidate, resolve};
use filters::models::routing::score::{Facts, Weights, score_candidates};
use filters::models::routing::wire_limits::WireLimits;
use filters::models::wires::WireKind;
use filters::models::wires::rate_limit::{early_rest_ms, refused_rest_ms};
use filters::money::PricePoint;
use http::HeaderMap;
use serde_json::json;

use crate::day::{Call, MIDNIGHT_S, PRICE_CHANGE_MS, PROVIDERS, calls, chance, models, speed};
use crate::world::{Outcome, World};

/// The weights of the shipped configuration.
const WEIGHTS: Weights = Weights {
    price: 0.6,
    uptime: 0.5,
    throughput: 0.05,
    latency: 0.025,
};
const FIRST_EVENT_TIMEOUT_MS: u64 = 120_000;
const TOTAL_TIMEOUT_MS: u64 = 600_000;
/// Steps of an attempt, in the order in which they come at the same time.
const HEAD: u8 = 0;
const CONTENT: u8 = 1;
const END: u8 = 2;

/// One attempt of the day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) provider: &'static str,
    pub(crate) started_ms: u64,
    pub(crate) content_ms: Option<u64>,
    pub(crate) is_trial: bool,
    pub(crate) outcome: Outcome,
}

/// What became of one call, and what would have become of it if the future had been known.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) call: Call,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) is_answered: bool,
    pub(crate) cost: f64,
    /// From the call to its first content.
    pub(crate) latency_ms: u64,
    pub(crate) oracle: Option<Best>,
}

/// The best choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    pub(crate) provider: &'static str,
    pub(crate) cost: f64,
    pub(crate) latency_ms: u64,
    pub(crate) rate: f64,
}

/// A call that runs.
struct Flight {
    planned: Vec<Arc<Candidate>>,
    running: Option<RunningAttempt>,
    /// Of the running attempt's reply.
    head: HeaderMap,
    affinity_key: Option<SessionKey>,
    done: Done,
}

/// See the module.
pub(crate) struct Replay {
    strategy: Option<Strategy>,
    catalogs: [Catalog; 2],
    /// One of a whole reply, and one of a stream.
    requests: [ModelRequest; 2],
    health: Health,
    affinity: SessionAffinity,
    session_keys: SessionKeys,
    world: World,
    foreseen: World,
    /// When what happens to a call.
    steps: BinaryHeap<Reverse<(u64, usize, u8)>>,
    flights: Vec<Flight>,
}

impl Replay {
    /// Replays the day with one strategy.
    pub(crate) fn run(strategy: Option<Strategy>, mean_ms: u64) -> Vec<Done> {
        let catalog = |is_after| {
            let file = serde_json::from_value(models(is_after)).unwrap();
            Catalog::check(file, PROVIDERS.into_iter().collect()).unwrap()
        };
        let catalogs = [catalog(false), catalog(true)];
        let request = |is_stream| {
            let body = json!({"model": "large", "stream": is_stream, "messages": [{"role": "user", "content": "Hi"}]});
            let parsed = ChatCompletions.parse(body.to_string().into()).unwrap();
            ModelRequest { strategy, ..parsed }
        };
        let mut replay = Self {
            strategy,
            health: Health::new(catalogs[0].candidates().len()),
            catalogs,
            requests: [request(false), request(true)],
            affinity: SessionAffinity::new(3_600_000),
            session_keys: SessionKeys::new(&[1; 32]),
            world: World::default(),
            foreseen: World::default(),
            steps: BinaryHeap::new(),
            flights: Vec::new(),
        };
        for call in calls(mean_ms) {
            replay.run_until(call.at_ms);
            replay.arrive(call);
        }
        replay.run_until(u64::MAX);
        replay.flights.into_iter().map(|it| it.done).collect()
    }

    fn run_until(&mut self, until_ms: u64) {
        while let Some(Reverse((at_ms, at, step))) = self.steps.peek().copied() {
            if at_ms > until_ms {
                return;
            }
            self.steps.pop();
            match step {
                HEAD => self.head(at, at_ms),
                CONTENT => self.content(at, at_ms),
                _ => self.end(at, at_ms),
            }
        }
    }

    fn catalog(&self, at_ms: u64) -> &Catalog {
        &self.catalogs[usize::from(at_ms >= PRICE_CHANGE_MS)]
    }

    fn arrive(&mut self, call: Call) {
        let mut request = self.requests[usize::from(call.is_stream)].clone();
        request.text_bytes = 4 * call.prompt;
        if !call.is_free() {
            request.strategy = None;
        }
        let now_s = MIDNIGHT_S + call.at_ms / 1000;
        let mut on = ProviderSet::default();
        (0..PROVIDERS.len()).for_each(|number| on.insert(number));
        let resolved = resolve(
            call.model,
            Operation::Chat,
            self.catalog(call.at_ms),
            &on,
            &[],
            now_s,
        )
        .unwrap();
        let session = call.session.map(|session| session.to_string());
        let keys = &self.session_keys;
        let affinity_key = session.map(|session| keys.key("org", call.model, session.as_bytes()));
        let binding = affinity_key.and_then(|key| self.affinity.find(key, call.at_ms));
        let oracle = call
            .is_free()
            .then(|| self.foresee(&call, &resolved.candidates))
            .flatten();
        let inputs = PlanInputs {
            attempts: 3,
            weights: WEIGHTS,
            exploration: 0.01,
            random: (chance(call.number, 50), chance(call.number, 51)),
            spread: 0,
            health: &self.health,
            now_ms: call.at_ms,
            now_s,
            preferred: binding.map(|binding| binding.mapping),
            cached_tokens: 0,
            has_session: affinity_key.is_some(),
            no_fallback: false,
            is_billed: true,
            keyed: ProviderSet::EMPTY,
            explains: WhatExplains::Nothing,
        };
        let planned = plan(
            &request,
            resolved,
            &inputs,
            |_| Some(WireLimits::WIDEST),
            |_| 1.0,
        )
        .unwrap();
        self.flights.push(Flight {
            planned: planned.attempts,
            running: None,
            head: HeaderMap::new(),
            affinity_key,
            done: Done {
                call,
                attempts: Vec::new(),
                is_answered: false,
                cost: 0.0,
                latency_ms: 0,
                oracle,
            },
        });
        self.begin(self.flights.len() - 1, call.at_ms);
    }

    /// Begins the next attempt of a call, if there is one.
    fn begin(&mut self, at: usize, now_ms: u64) {
        let flight = &mut self.flights[at];
        let made = flight.done.attempts.len();
        let Some(candidate) = flight.planned.get(made) else {
            flight.done.latency_ms = now_ms - flight.done.call.at_ms;
            return;
        };
        let call = flight.done.call;
        let provider = PROVIDERS[candidate.mapping.provider_number];
        let running = self.health.begin(candidate.index, call.is_stream, now_ms);
        let outcome = self
            .world
            .attempt(&call, provider, candidate.region.as_deref(), now_ms);
        let patience_ms = match call.is_stream {
            true => FIRST_EVENT_TIMEOUT_MS,
            false => TOTAL_TIMEOUT_MS,
        };
        let has_next = made + 1 < flight.planned.len();
        let trial_ms = running.trial_patience_ms();
        let patience_ms = trial_ms
            .filter(|_| has_next)
            .unwrap_or(u64::MAX)
            .min(patience_ms);
        flight.done.attempts.push(Attempt {
            provider,
            started_ms: now_ms,
            content_ms: None,
            is_trial: trial_ms.is_some(),
            outcome,
        });
        flight.running = Some(running);
        flight.head = self.world.head(provider, now_ms);
        match outcome {
            Outcome::Refused { after_ms }
            | Outcome::Broken { after_ms }
            | Outcome::Throttled { after_ms } => {
                self.steps.push(Reverse((now_ms + after_ms, at, END)));
            }
            Outcome::Hung => self.steps.push(Reverse((now_ms + patience_ms, at, END))),
            Outcome::Answered {
                content_ms, end_ms, ..
            } => {
                // The head of a stream comes before its content.
                let head_ms = if call.is_stream {
                    content_ms / 2
                } else {
                    content_ms
                };
                self.steps.push(Reverse((now_ms + head_ms, at, HEAD)));
                self.steps.push(Reverse((now_ms + content_ms, at, CONTENT)));
                self.steps.push(Reverse((now_ms + end_ms, at, END)));
            }
        }
    }

    fn head(&mut self, at: usize, now_ms: u64) {
        let flight = &mut self.flights[at];
        let candidate = &flight.planned[flight.done.attempts.len() - 1];
        if let Some(running) = &mut flight.running {
            running.record_reply(now_ms);
        }
        let limits = WireKind::Compatible.wire().rate_limits;
        if let Some(rest_ms) = early_rest_ms(&flight.head, limits, now_ms) {
            self.health.rest(candidate.index, now_ms + rest_ms);
        }
    }

    fn content(&mut self, at: usize, now_ms: u64) {
        let flight = &mut self.flights[at];
        flight.done.latency_ms = now_ms - flight.done.call.at_ms;
        if let Some(attempt) = flight.done.attempts.last_mut() {
            attempt.content_ms = Some(now_ms);
        }
        if let Some(running) = &mut flight.running {
            running.record_content(now_ms);
        }
    }

    fn end(&mut self, at: usize, now_ms: u64) {
        let flight = &mut self.flights[at];
        let (Some(mut running), Some(attempt)) =
            (flight.running.take(), flight.done.attempts.last().copied())
        else {
            return;
        };
        let candidate = &flight.planned[flight.done.attempts.len() - 1];
        match attempt.outcome {
            Outcome::Answered { rate, .. } => {
                running.record_answer(flight.done.call.is_stream.then_some(rate), now_ms);
                flight.done.is_answered = true;
                flight.done.cost = cost(candidate, &flight.done.call);
                if let Some(key) = flight.affinity_key {
                    let binding = Binding {
                        mapping: candidate.mapping.id,
                        cached_tokens: 0,
                    };
                    self.affinity.bind(key, binding, now_ms);
                }
                return;
            }
            Outcome::Throttled { .. } => {
                running.record_reply(now_ms);
                let limits = WireKind::Compatible.wire().rate_limits;
                let told = refused_rest_ms(&flight.head, limits, now_ms);
                self.health.rest(candidate.index, now_ms + told.unwrap());
            }
            Outcome::Broken { .. } => {
                running.record_reply(now_ms);
                running.record_failure(now_ms);
            }
            Outcome::Refused { .. } | Outcome::Hung => running.record_failure(now_ms),
        }
        self.begin(at, now_ms);
    }

    /// Returns the best of the candidates that will answer, by the truth in place of measurements.
    fn foresee(&mut self, call: &Call, candidates: &[Arc<Candidate>]) -> Option<Best> {
        let provider = |it: &Candidate| PROVIDERS[it.mapping.provider_number];
        let answers = |it: &&Arc<Candidate>| {
            let outcome = self.foreseen.foresee(call, provider(it), None, call.at_ms);
            matches!(outcome, Outcome::Answered { .. })
        };
        let good: Vec<&Arc<Candidate>> = candidates.iter().filter(answers).collect();
        let point = PricePoint {
            start_s: MIDNIGHT_S + call.at_ms / 1000,
            ..PricePoint::default()
        };
        let facts = good.iter().map(|it| {
            let (latency_ms, throughput) = speed(provider(it), call.at_ms);
            Facts {
                price: it.short_prices(point).and_then(|prices| prices.mean()),
                metrics: Some(HealthStats {
                    uptime: 100.0,
                    latency_ms,
                    throughput,
                }),
                priority: 1.0,
            }
        });
        let facts: Vec<Facts> = facts.collect();
        let scores = score_candidates(&facts, WEIGHTS, self.strategy, call.is_stream);
        let price = |at: usize| facts[at].price.unwrap_or_default();
        let best = (0..good.len()).min_by(|a, b| {
            let by_score = scores[*a].total_cmp(&scores[*b]);
            by_score.then_with(|| price(*a).total_cmp(&price(*b)))
        });
        let chosen = good[best?];
        let outcome = self
            .foreseen
            .attempt(call, provider(chosen), None, call.at_ms);
        let Outcome::Answered {
            content_ms, rate, ..
        } = outcome
        else {
            return None;
        };
        Some(Best {
            provider: provider(chosen),
            cost: cost(chosen, call),
            latency_ms: content_ms,
            rate,
        })
    }
}

/// The units of a price in a dollar.
const UNITS: f64 = 1e18;

/// What a call costs. Units: USD.
fn cost(candidate: &Candidate, call: &Call) -> f64 {
    let point = PricePoint {
        start_s: MIDNIGHT_S + call.at_ms / 1000,
        ..PricePoint::default()
    };
    let prices = candidate.short_prices(point).unwrap();
    let units = call.prompt as f64 * prices.input.as_f64()
        + call.completion as f64 * prices.output.as_f64();
    units / UNITS
}
