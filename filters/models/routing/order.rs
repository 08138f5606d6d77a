//! The order of the candidates that can serve a request: by score, with trials and exploration.
//!
//! At most one candidate of a plan is uncertain, and it goes first, so that the known ones are left if it fails.

use std::cmp::Ordering;
use std::sync::Arc;

use super::affinity::{MIN_SESSION_UPTIME, expected_cost, pays_to_move};
use super::expected_price::{assume_shares, blend, expects_cache};
use super::explanation::{Considered, Explanation, FirstBy};
use super::health::{Readiness, Standing};
use super::places::RegionTurn;
use super::plan::{PlanInputs, WhatExplains};
use super::resolve::Candidate;
use super::score::{Facts, ScoreParts, score_candidates, split_scores, tolerance};
use crate::models::request::{ModelRequest, Strategy};
use crate::money::{BilledTokens, PricePoint, PriceSet, Rates, UnitCounts};

/// A candidate that costs more than this many times the best one is never explored.
const MAX_EXPLORED_PRICE: f64 = 3.0;
/// What exploration may save up: the cost of this many calls.
const MAX_SAVED_CALLS: f64 = 10.0;
/// Completion tokens that are assumed of a call, for the share that exploration may cost.
const ASSUMED_COMPLETION: u64 = 500;

/// Where a candidate stands, before its score counts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Precedence {
    /// The session's own, a trial, or an explored one.
    Front,
    Usual,
    /// It cools down or rests.
    Last,
}

/// A candidate and all that decides its place.
#[derive(Clone, Copy, Debug)]
struct Ranked {
    /// Its place among the candidates.
    at: usize,
    /// Its number in the catalogue.
    index: usize,
    /// The caller has no key of its own for it.
    is_keyless: bool,
    /// It answered the session last.
    is_preferred: bool,
    precedence: Precedence,
    score: f64,
    price: Option<f64>,
    /// What the call is expected to cost, if it belongs to a session.
    cost: Option<f64>,
    standing: Standing,
    /// Its number among the mappings: its regions stand together.
    mapping: usize,
    /// What is compared of its mapping.
    of_mapping: MappingRank,
    /// Its turn among the regions of the mapping, and the number that sorts those of one order.
    turn: (u32, f64),
}

/// What is compared of a mapping, whichever of its regions comes first.
#[derive(Clone, Copy, Debug)]
struct MappingRank {
    score: f64,
    price: f64,
    /// The place of the first of its candidates.
    first_at: usize,
}

impl MappingRank {
    /// Returns the rank of a mapping with this candidate alone.
    fn alone(score: f64, price: Option<f64>, first_at: usize) -> Self {
        let price = price.unwrap_or(f64::INFINITY);
        Self {
            score,
            price,
            first_at,
        }
    }
}

impl Ranked {
    fn is(&self, readiness: Readiness) -> bool {
        self.standing.readiness == readiness
    }

    /// Compares by the callers' own keys first, then by score, then by price. Equals keep the catalogue's order, and regions
    /// of a mapping have their turns.
    fn compare(&self, other: &Self) -> Ordering {
        let (own, others) = (self.of_mapping, other.of_mapping);
        let by_key = self.is_keyless.cmp(&other.is_keyless);
        by_key
            .then_with(|| own.score.total_cmp(&others.score))
            .then_with(|| own.price.total_cmp(&others.price))
            .then(own.first_at.cmp(&others.first_at))
            .then(self.turn.0.cmp(&other.turn.0))
            .then_with(|| self.turn.1.total_cmp(&other.turn.1))
            .then(self.at.cmp(&other.at))
    }

    fn compare_precedence(&self, other: &Self) -> Ordering {
        let due_ms = |it: &Self| match it.precedence {
            Precedence::Last => it.standing.due_ms,
            _ => 0,
        };
        let by_key = self.is_keyless.cmp(&other.is_keyless);
        by_key
            .then(self.precedence.cmp(&other.precedence))
            .then_with(|| due_ms(self).cmp(&due_ms(other)))
            .then_with(|| self.compare(other))
    }
}

/// Returns the first `most` candidates in the order in which they are tried, and the reasons if the plan is to be
/// explained.
pub(super) fn order_candidates(
    request: &ModelRequest,
    candidates: Vec<Arc<Candidate>>,
    inputs: &PlanInputs<'_>,
    (point, is_auto, most): (PricePoint, bool, usize),
    priority: &impl Fn(usize) -> f64,
) -> (Vec<Arc<Candidate>>, Option<Box<Explanation>>) {
    if candidates.len() < 2 && inputs.explains == WhatExplains::Nothing {
        return (candidates, None);
    }
    // If the gateway chooses the model, the cheapest that can serve the request wins.
    let strategy = request.strategy.or(is_auto.then_some(Strategy::Price));
    let (mut ranked, parts) = rank(request, &candidates, inputs, (point, strategy), priority);
    // To explain a request that leaves no choice changes nothing for those that come after it.
    let has_choice = ranked.len() > 1;
    let lane = (has_choice && !is_auto).then(|| lane(request, strategy));
    if let Some(lane) = lane {
        favour_leader(
            &mut ranked,
            lane,
            tolerance(inputs.weights, strategy, request.is_stream),
        );
    }
    join_regions(&mut ranked);
    if let Some(lane) = lane {
        note_leader(&ranked, lane, inputs);
    }
    let front = match most {
        _ if !has_choice => None,
        // Without a fallback nothing is tried out.
        0 | 1 => find_preferred(&ranked).filter(|it| it.is(Readiness::Ready)),
        _ => find_front(request, &ranked, inputs, is_auto),
    };
    let front = front.map(|it| it.at);
    for it in &mut ranked {
        it.precedence = match it.standing.readiness {
            _ if front == Some(it.at) => Precedence::Front,
            Readiness::Ready => Precedence::Usual,
            Readiness::TrialDue | Readiness::Later => Precedence::Last,
        };
    }
    ranked.sort_unstable_by(Ranked::compare_precedence);
    let explanation = (inputs.explains != WhatExplains::Nothing).then(|| {
        Box::new(Explanation {
            strategy,
            max_attempts: most,
            first_by: find_reason(&ranked, front),
            session: None,
            considered: consider(&ranked, &candidates, &parts, most),
            barred: Vec::new(),
            planned_ms: inputs.now_ms,
        })
    });
    let first = ranked.iter().take(most);
    let attempts = first.filter_map(|it| candidates.get(it.at).cloned());
    (attempts.collect(), explanation)
}

/// Returns what has put the first candidate first. `front` was to be tried first, though another one may come before it,
/// because the caller has a key of its own for that one.
fn find_reason(ranked: &[Ranked], front: Option<usize>) -> FirstBy {
    match ranked.first() {
        Some(first) if front != Some(first.at) => FirstBy::Score,
        Some(first) if first.is_preferred => FirstBy::Session,
        Some(first) if first.is(Readiness::TrialDue) => FirstBy::Trial,
        Some(_) => FirstBy::Exploration,
        None => FirstBy::Score,
    }
}

/// Returns the candidates in their order, with what decides it. `parts` are those of their scores, by their own places.
fn consider(
    ranked: &[Ranked],
    candidates: &[Arc<Candidate>],
    parts: &[ScoreParts],
    most: usize,
) -> Vec<Considered> {
    let considered = ranked.iter().enumerate().filter_map(|(rank, it)| {
        Some(Considered {
            candidate: candidates.get(it.at).cloned()?,
            is_tried: rank < most,
            has_own_key: !it.is_keyless,
            score: it.score,
            parts: parts.get(it.at).copied()?,
            price: it.price,
            standing: it.standing,
        })
    });
    considered.collect()
}

/// Scores the candidates, in their own order. Returns the parts of the scores too, if the plan is to be explained.
fn rank(
    request: &ModelRequest,
    candidates: &[Arc<Candidate>],
    inputs: &PlanInputs<'_>,
    (point, strategy): (PricePoint, Option<Strategy>),
    priority: &impl Fn(usize) -> f64,
) -> (Vec<Ranked>, Vec<ScoreParts>) {
    let standings = candidates.iter();
    let standings = standings.map(|it| inputs.health.standing(it.index, inputs.now_ms));
    let standings: Vec<Standing> = standings.collect();
    let prompt_tokens = request.text_bytes.div_ceil(4);
    let facts = list_facts(
        (candidates, standings.as_slice()),
        (prompt_tokens, request.units, point),
        inputs,
        priority,
    );
    let scores = score_candidates(&facts, inputs.weights, strategy, request.is_stream);
    let parts = match inputs.explains != WhatExplains::Nothing {
        true => split_scores(&facts, inputs.weights, strategy, request.is_stream),
        false => Vec::new(),
    };
    let tokens = [prompt_tokens, ASSUMED_COMPLETION];
    let cost = |candidate: &Candidate, is_preferred| {
        let prices = candidate
            .short_prices(point)
            .filter(|_| inputs.has_session)?;
        let cached_tokens = if is_preferred {
            inputs.cached_tokens
        } else {
            0
        };
        Some(expected_cost(prices, tokens, cached_tokens))
    };
    let all = candidates.iter().zip(standings).zip(&facts).zip(scores);
    let ranked = all
        .enumerate()
        .map(|(at, (((candidate, standing), facts), score))| {
            let is_preferred = inputs.preferred == Some(candidate.mapping.id);
            Ranked {
                mapping: candidate.mapping.index,
                of_mapping: MappingRank::alone(score, facts.price, at),
                turn: draw_turn(candidate, inputs.spread),
                at,
                index: candidate.index,
                is_keyless: !inputs.keyed.contains(candidate.mapping.provider_number),
                is_preferred,
                precedence: Precedence::Usual,
                score,
                price: facts.price,
                cost: cost(candidate, is_preferred),
                standing,
            }
        })
        .collect();
    (ranked, parts)
}

/// Returns the turn of a candidate among the regions of its mapping. Only regions share an order.
fn draw_turn(candidate: &Candidate, spread: u64) -> (u32, f64) {
    let turn = candidate.turn.unwrap_or(RegionTurn::LAST);
    let drawn = match candidate.region {
        Some(_) => turn.draw(spread, candidate.id),
        None => 0.0,
    };
    (turn.order, drawn)
}

/// Returns what the scores compare, in the candidates' own order.
fn list_facts(
    (candidates, standings): (&[Arc<Candidate>], &[Standing]),
    (prompt_tokens, units, point): (u64, UnitCounts, PricePoint),
    inputs: &PlanInputs<'_>,
    priority: &impl Fn(usize) -> f64,
) -> Vec<Facts> {
    let assumed = expects_cache(prompt_tokens, inputs.has_session).then(|| {
        let measured = standings.iter().filter_map(|it| it.shares);
        assume_shares(measured, inputs.has_session)
    });
    let facts = candidates.iter().zip(standings);
    let facts = facts.map(|(candidate, standing)| {
        let rates = candidate.prices.as_ref().map(|it| it.at(point));
        let prices = rates.map(|it| it.for_prompt(prompt_tokens));
        Facts {
            price: match assumed {
                // Some bill these by the unit, others by the token.
                _ if !units.is_zero() => rates.map(|it| spread_cost(it, prompt_tokens, units)),
                Some(assumed) => {
                    prices.and_then(|prices| blend(prices, standing.shares.unwrap_or(assumed)))
                }
                None => prices.and_then(PriceSet::mean),
            },
            metrics: standing.stats,
            priority: priority(candidate.mapping.provider_number),
        }
    });
    facts.collect()
}

/// Returns the cost of a request that takes other units than tokens, divided by its tokens: so it compares like a price.
fn spread_cost(rates: &Rates, prompt: u64, units: UnitCounts) -> f64 {
    let tokens = BilledTokens {
        prompt,
        units,
        ..BilledTokens::default()
    };
    rates.cost(&tokens).total.units() as f64 / prompt.max(1) as f64
}

/// Returns the bit of requests that are ordered alike, in the notes of who comes first.
fn lane(request: &ModelRequest, strategy: Option<Strategy>) -> u8 {
    let lane = match strategy {
        None => 1,
        Some(Strategy::Price) => 2,
        Some(Strategy::Throughput) => 4,
        Some(Strategy::Latency) => 8,
    };
    if request.is_stream { lane << 4 } else { lane }
}

/// Lets the candidate that came first last time stay there until another one is better by more than chance.
fn favour_leader(ranked: &mut [Ranked], lane: u8, tolerance: f64) {
    for it in ranked {
        if it.standing.leads & lane != 0 {
            it.score -= tolerance;
            it.of_mapping.score = it.score;
        }
    }
}

/// Gives all regions of a mapping the rank of the best of them, of those that are ready if there are some. They stand behind each
/// other.
fn join_regions(ranked: &mut [Ranked]) {
    let is_joined = |a: &Ranked, b: &Ranked| a.mapping == b.mapping && a.mapping != usize::MAX;
    for regions in ranked.chunk_by_mut(is_joined).filter(|it| it.len() > 1) {
        let has_ready = regions.iter().any(|it| it.is(Readiness::Ready));
        let counted = regions
            .iter()
            .filter(|it| !has_ready || it.is(Readiness::Ready));
        let best = counted
            .map(|it| it.of_mapping)
            .reduce(|best, it| MappingRank {
                score: best.score.min(it.score),
                price: best.price.min(it.price),
                first_at: best.first_at,
            });
        let first_at = regions.first().map(|it| it.at);
        let joined = best.zip(first_at);
        let joined = joined.map(|(best, first_at)| MappingRank { first_at, ..best });
        for it in regions {
            it.of_mapping = joined.unwrap_or(it.of_mapping);
        }
    }
}

/// Notes who comes first now. Of a mapping with several regions the first one stands for all.
fn note_leader(ranked: &[Ranked], lane: u8, inputs: &PlanInputs<'_>) {
    let ready = ranked.iter().filter(|it| it.is(Readiness::Ready));
    let leader = ready.min_by(|a, b| a.compare(b));
    let Some(leader) = leader.map(|it| it.of_mapping.first_at) else {
        return;
    };
    for it in ranked.iter() {
        let (led, leads) = (it.standing.leads & lane != 0, it.at == leader);
        if led != leads {
            inputs.health.set_leading(it.index, lane, leads);
        }
    }
}

/// Returns the candidate that answered the session last, unless it has to wait or fails too often.
fn find_preferred(ranked: &[Ranked]) -> Option<&Ranked> {
    let own = ranked
        .iter()
        .filter(|it| it.is_preferred && !it.is(Readiness::Later));
    let own = own.min_by(|a, b| a.compare(b))?;
    let stats = own.standing.stats;
    let is_sound = stats.is_none_or(|stats| stats.uptime >= MIN_SESSION_UPTIME);
    (is_sound || own.is(Readiness::TrialDue)).then_some(own)
}

/// Returns whether a session stays with its own candidate though another one is the best by now.
///
/// Only prices move it: a strategy for speed would leave what is fast for what is faster by chance.
fn stays(own: &Ranked, best: &Ranked, strategy: Option<Strategy>) -> bool {
    let is_about_speed = matches!(strategy, Some(Strategy::Throughput | Strategy::Latency));
    let is_alike = best.is(Readiness::Ready) && best.is_keyless == own.is_keyless;
    is_about_speed || !is_alike || !pays_to_move(own.cost, best.cost)
}

/// Returns the candidate that goes first though its score is not the best, or though it is uncertain.
fn find_front<'r>(
    request: &ModelRequest,
    ranked: &'r [Ranked],
    inputs: &PlanInputs<'_>,
    is_auto: bool,
) -> Option<&'r Ranked> {
    let tried = ranked.iter().filter(|it| !it.is(Readiness::Later));
    let best = tried.min_by(|a, b| a.compare(b))?;
    if let Some(own) = find_preferred(ranked).filter(|own| stays(own, best, request.strategy)) {
        return Some(own);
    }
    if best.is(Readiness::TrialDue) {
        return Some(best);
    }
    let is_explorable = !is_auto && !inputs.has_session;
    is_explorable.then(|| explore(request, ranked, best, inputs))?
}

/// Sometimes chooses another candidate, so that it is measured.
///
/// It costs no more than its share: each call earns the share of its own expected cost, and an explored call spends its
/// whole one. Candidates far above the best one's price are never explored.
fn explore<'r>(
    request: &ModelRequest,
    ranked: &'r [Ranked],
    best: &Ranked,
    inputs: &PlanInputs<'_>,
) -> Option<&'r Ranked> {
    if inputs.exploration <= 0.0 {
        return None;
    }
    let tokens = (request.text_bytes.div_ceil(4) + ASSUMED_COMPLETION) as f64;
    let others = || {
        let ready = ranked.iter().filter(|it| it.is(Readiness::Ready));
        let others = ready.filter(|it| it.of_mapping.first_at != best.of_mapping.first_at);
        // Of the regions of a mapping only the one whose turn it is.
        let alike = others.filter(|it| {
            let mut ready = ranked.iter().filter(|other| other.is(Readiness::Ready));
            let comes_before = |other: &Ranked| {
                other.of_mapping.first_at == it.of_mapping.first_at && other.compare(it).is_lt()
            };
            it.is_keyless == best.is_keyless && !ready.any(comes_before)
        });
        alike.filter(|it| match (it.price, best.price) {
            (Some(price), Some(best)) => price <= best * MAX_EXPLORED_PRICE,
            (price, best) => price == best,
        })
    };
    // Where no price is known, all prices count as equal.
    let cost = |it: &Ranked| it.price.unwrap_or(1.0) * tokens;
    let share = inputs.exploration.min(1.0);
    let max = MAX_SAVED_CALLS * cost(best);
    let saved = inputs.health.earn(best.index, share * cost(best), max);
    let (draw, which) = inputs.random;
    if draw >= share {
        return None;
    }
    let count = others().count();
    let chosen = others().nth(((which * count as f64) as usize).min(count.checked_sub(1)?))?;
    if cost(chosen) > saved {
        return None;
    }
    inputs.health.earn(best.index, -cost(chosen), max);
    Some(chosen)
}
