//! What the process has had to do in the last hour: differences between states of its counters, one for each minute.
//!
//! Counters and histograms only ever grow. So what they have counted between two times is known exactly, and a percentile as exactly
//! as the steps of its histogram are fine. Routes and providers are bounded by the code and the configuration, and so is the memory:
//! some hundred bytes for each that is in use, 61 times.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus::core::Collector;
use prometheus::proto::{Metric, MetricFamily};

use super::metrics::STATUS_CLASSES;

/// How often a state is kept.
pub const SAMPLE_INTERVAL_MS: i64 = 60_000;
/// The time of which states are kept.
pub const HISTORY_MS: i64 = 3_600_000;
/// The number of states that are kept: of each minute its beginning, and of the last one its end.
const MAX_SAMPLES: usize = 61;

/// What was counted, since the start or between two times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadSample {
    /// By the name of the route.
    pub routes: BTreeMap<String, RouteLoad>,
    pub providers: BTreeMap<String, ProviderLoad>,
}

/// What was counted of a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteLoad {
    /// Ended requests without a response, and those with 2xx, 3xx, 4xx and 5xx.
    pub by_class: [u64; 5],
    /// From the request's head to the end of the answer.
    pub seconds: Durations,
}

/// What was counted of a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderLoad {
    pub attempts: u64,
    /// Those that failed.
    pub failed: u64,
    /// From the request's head to the first content of the answer.
    pub first_content: Durations,
    /// From the beginning of an attempt to the first byte of its answer.
    pub first_byte: Durations,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Units: USD, rounded as metrics are.
    pub cost: f64,
}

/// How long things took: how many took at most so long, for each step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Durations {
    /// A step in seconds, and how many were not longer.
    steps: Vec<(f64, u64)>,
    count: u64,
}

/// The metrics that are looked at.
pub(super) struct LoadMetrics<'a> {
    pub(super) requests: &'a dyn Collector,
    pub(super) request_seconds: &'a dyn Collector,
    pub(super) attempts: &'a dyn Collector,
    pub(super) first_event_seconds: &'a dyn Collector,
    pub(super) first_byte_seconds: &'a dyn Collector,
    pub(super) tokens: &'a dyn Collector,
    pub(super) cost: &'a dyn Collector,
}

/// The states of the last hour.
#[derive(Default)]
pub struct LoadHistory(Mutex<VecDeque<(i64, LoadSample)>>);

/// What was counted in a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadPeriod {
    /// When it begins, in unix milliseconds: an hour ago, or at the start of the process.
    pub since_ms: i64,
    pub until_ms: i64,
    pub load: LoadSample,
    /// The same minute by minute. The last one is not over.
    pub minutes: Vec<MinuteLoad>,
}

/// What was counted in about a minute, of all routes and providers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MinuteLoad {
    /// When it ends, in unix milliseconds.
    pub until_ms: i64,
    pub length_ms: i64,
    pub requests: u64,
    /// Requests with 5xx.
    pub failed: u64,
    /// Requests with 4xx.
    pub refused: u64,
    pub first_content: Durations,
    /// Units: USD, rounded as metrics are.
    pub cost: f64,
}

impl LoadHistory {
    /// Keeps a state, unless the last one was just kept: a reload begins to keep them anew. The oldest is dropped where there are
    /// too many.
    pub fn keep(&self, now_ms: i64, sample: LoadSample) {
        let mut samples = self.lock();
        let last_ms = samples.back().map(|(at_ms, _)| *at_ms);
        if last_ms.is_some_and(|last_ms| (0..SAMPLE_INTERVAL_MS / 2).contains(&(now_ms - last_ms)))
        {
            return;
        }
        let is_old =
            |(at_ms, _): &(i64, LoadSample)| now_ms - at_ms > HISTORY_MS + SAMPLE_INTERVAL_MS / 2;
        while samples.len() >= MAX_SAMPLES || samples.front().is_some_and(is_old) {
            samples.pop_front();
        }
        samples.push_back((now_ms, sample));
    }

    /// Returns what was counted since the oldest state, of which `now` is the newest.
    pub fn until(&self, now_ms: i64, now: LoadSample) -> LoadPeriod {
        let samples = self.lock();
        let Some((since_ms, first)) = samples.front() else {
            return LoadPeriod {
                since_ms: now_ms,
                until_ms: now_ms,
                ..LoadPeriod::default()
            };
        };
        let last = (now_ms, now);
        let ends = samples.iter().skip(1).chain([&last]);
        let minutes = samples.iter().zip(ends).filter(|(from, to)| from.0 < to.0);
        LoadPeriod {
            since_ms: *since_ms,
            until_ms: now_ms,
            minutes: minutes
                .map(|(from, to)| MinuteLoad::between(from, to))
                .collect(),
            load: last.1.minus(first),
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(i64, LoadSample)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MinuteLoad {
    fn between((from_ms, from): &(i64, LoadSample), (until_ms, to): &(i64, LoadSample)) -> Self {
        let load = to.minus(from);
        let (all, providers) = (load.all_routes(), load.all_providers());
        Self {
            until_ms: *until_ms,
            length_ms: until_ms - from_ms,
            requests: all.requests(),
            failed: all.failed(),
            refused: all.refused(),
            first_content: providers.first_content,
            cost: providers.cost,
        }
    }
}

impl LoadSample {
    /// Reads the present state.
    pub(super) fn read(metrics: &LoadMetrics<'_>) -> Self {
        let mut sample = Self::default();
        each(metrics.requests, |series| {
            let status = label(series, "status");
            let classes = STATUS_CLASSES
                .iter()
                .zip(&mut sample.route(series).by_class);
            for (_, count) in classes.filter(|(name, _)| **name == status) {
                *count += count_of(series);
            }
        });
        each(metrics.request_seconds, |series| {
            sample.route(series).seconds.add(&Durations::read(series));
        });
        each(metrics.attempts, |series| {
            let provider = sample.provider(series);
            provider.attempts += count_of(series);
            if label(series, "outcome") != "ok" {
                provider.failed += count_of(series);
            }
        });
        each(metrics.first_event_seconds, |series| {
            let measured = Durations::read(series);
            sample.provider(series).first_content.add(&measured);
        });
        each(metrics.first_byte_seconds, |series| {
            let measured = Durations::read(series);
            sample.provider(series).first_byte.add(&measured);
        });
        each(metrics.tokens, |series| {
            let provider = sample.provider(series);
            match label(series, "kind") {
                "prompt" => provider.prompt_tokens += count_of(series),
                "completion" => provider.completion_tokens += count_of(series),
                _ => {}
            }
        });
        each(metrics.cost, |series| {
            sample.provider(series).cost += series.get_counter().get_value();
        });
        sample
    }

    /// Returns the sum of all routes.
    pub fn all_routes(&self) -> RouteLoad {
        let mut sum = RouteLoad::default();
        for route in self.routes.values() {
            for (sum, count) in sum.by_class.iter_mut().zip(route.by_class) {
                *sum += count;
            }
            sum.seconds.add(&route.seconds);
        }
        sum
    }

    /// Returns the sum of all providers.
    pub fn all_providers(&self) -> ProviderLoad {
        let mut sum = ProviderLoad::default();
        for of in self.providers.values() {
            sum.attempts += of.attempts;
            sum.failed += of.failed;
            sum.first_content.add(&of.first_content);
            sum.first_byte.add(&of.first_byte);
            sum.prompt_tokens += of.prompt_tokens;
            sum.completion_tokens += of.completion_tokens;
            sum.cost += of.cost;
        }
        sum
    }

    /// Returns what was counted after an earlier state. Routes and providers of which nothing was are left out.
    pub fn minus(&self, before: &Self) -> Self {
        let routes = self.routes.iter().map(|(name, route)| {
            let none = RouteLoad::default();
            (
                name.clone(),
                route.minus(before.routes.get(name).unwrap_or(&none)),
            )
        });
        let providers = self.providers.iter().map(|(name, provider)| {
            let none = ProviderLoad::default();
            let before = before.providers.get(name).unwrap_or(&none);
            (name.clone(), provider.minus(before))
        });
        Self {
            routes: routes.filter(|(_, it)| it.requests() > 0).collect(),
            providers: providers.filter(|(_, it)| it.is_used()).collect(),
        }
    }

    fn route(&mut self, series: &Metric) -> &mut RouteLoad {
        self.routes
            .entry(label(series, "route").to_owned())
            .or_default()
    }

    fn provider(&mut self, series: &Metric) -> &mut ProviderLoad {
        let provider = label(series, "provider").to_owned();
        self.providers.entry(provider).or_default()
    }
}

impl RouteLoad {
    /// Returns the number of ended requests.
    pub fn requests(&self) -> u64 {
        self.by_class.iter().sum()
    }

    /// Returns how many of them have 4xx.
    pub fn refused(&self) -> u64 {
        let [_, _, _, refused, _] = self.by_class;
        refused
    }

    /// Returns how many of them have 5xx.
    pub fn failed(&self) -> u64 {
        let [_, _, _, _, failed] = self.by_class;
        failed
    }

    fn minus(&self, before: &Self) -> Self {
        let mut by_class = self.by_class;
        for (count, before) in by_class.iter_mut().zip(before.by_class) {
            *count = count.saturating_sub(before);
        }
        Self {
            by_class,
            seconds: self.seconds.minus(&before.seconds),
        }
    }
}

impl ProviderLoad {
    fn is_used(&self) -> bool {
        self.attempts > 0 || self.prompt_tokens + self.completion_tokens > 0 || self.cost > 0.0
    }

    fn minus(&self, before: &Self) -> Self {
        Self {
            attempts: self.attempts.saturating_sub(before.attempts),
            failed: self.failed.saturating_sub(before.failed),
            first_content: self.first_content.minus(&before.first_content),
            first_byte: self.first_byte.minus(&before.first_byte),
            prompt_tokens: self.prompt_tokens.saturating_sub(before.prompt_tokens),
            completion_tokens: self
                .completion_tokens
                .saturating_sub(before.completion_tokens),
            cost: (self.cost - before.cost).max(0.0),
        }
    }
}

impl Durations {
    fn read(series: &Metric) -> Self {
        let histogram = series.get_histogram();
        let steps = histogram.get_bucket().iter();
        Self {
            steps: steps
                .map(|it| (it.upper_bound(), it.cumulative_count()))
                .collect(),
            count: histogram.get_sample_count(),
        }
    }

    /// Returns how many were measured.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the time, in seconds, that a share of them did not exceed, as if those within a step were spread over it evenly. Of
    /// those beyond the last step it is that step. `None`: nothing was measured.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let rank = share.clamp(0.0, 1.0) * self.count as f64;
        let (mut from, mut before) = (0.0, 0);
        for &(step, count) in &self.steps {
            if count as f64 >= rank && count > before {
                let part = (rank - before as f64) / (count - before) as f64;
                return Some(from + (step - from) * part.clamp(0.0, 1.0));
            }
            (from, before) = (step, count);
        }
        self.steps.last().map(|(step, _)| *step)
    }

    fn add(&mut self, other: &Self) {
        if self.steps.is_empty() {
            self.steps.clone_from(&other.steps);
        } else {
            for ((_, sum), (_, count)) in self.steps.iter_mut().zip(&other.steps) {
                *sum += count;
            }
        }
        self.count += other.count;
    }

    fn minus(&self, before: &Self) -> Self {
        let mut rest = self.clone();
        for ((_, count), (_, before)) in rest.steps.iter_mut().zip(&before.steps) {
            *count = count.saturating_sub(*before);
        }
        rest.count = rest.count.saturating_sub(before.count);
        rest
    }
}

/// Visits the series of a metric.
fn each(metric: &dyn Collector, visit: impl FnMut(&Metric)) {
    let families = metric.collect();
    families
        .iter()
        .flat_map(MetricFamily::get_metric)
        .for_each(visit);
}

/// Returns the value of a label.
fn label<'a>(series: &'a Metric, name: &str) -> &'a str {
    let mut labels = series.get_label().iter();
    labels
        .find(|it| it.name() == name)
        .map_or("", |it| it.value())
}

fn count_of(series: &Metric) -> u64 {
    series.get_counter().get_value() as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::super::metrics::{Metrics, RouteMetrics};
    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn request(metrics: &Metrics, status: u16, seconds: f64) {
        let routes = RouteMetrics::new(0);
        metrics.record_request((&routes, 0), "chat_completions", status, seconds);
    }

    #[test]
    fn a_state_has_the_sums_of_each_route_and_provider() {
        let metrics = Metrics::new().unwrap();
        request(&metrics, 200, 0.2);
        request(&metrics, 404, 0.001);
        request(&metrics, 503, 0.001);
        for (model, outcome) in [("small", "ok"), ("large", "ok"), ("large", "timeout")] {
            metrics
                .attempts
                .with_label_values(&["first", model, outcome])
                .inc();
        }
        for (kind, count) in [("prompt", 7), ("completion", 5), ("cached", 3)] {
            metrics
                .tokens
                .with_label_values(&["first", "small", kind])
                .inc_by(count);
        }
        metrics
            .cost
            .with_label_values(&["first", "small"])
            .inc_by(0.5);
        let sample = metrics.load_sample();
        let route = &sample.routes["chat_completions"];
        assert_eq!(route.by_class, [0, 1, 0, 1, 1]);
        assert_eq!(
            (route.requests(), route.refused(), route.failed()),
            (3, 1, 1)
        );
        assert_eq!(route.seconds.count(), 3);
        let first = &sample.providers["first"];
        assert_eq!((first.attempts, first.failed), (3, 1));
        assert_eq!((first.prompt_tokens, first.completion_tokens), (7, 5));
        assert!((first.cost - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_last_hour_is_the_difference_to_the_state_an_hour_ago() {
        let metrics = Metrics::new().unwrap();
        let history = LoadHistory::default();
        let minute = |n: i64| NOW_MS + n * SAMPLE_INTERVAL_MS;
        for n in 0..100 {
            history.keep(minute(n), metrics.load_sample());
            request(&metrics, 200, 0.02);
        }
        let now_ms = minute(99) + 1_000;
        let hour = history.until(now_ms, metrics.load_sample());
        assert_eq!(hour.since_ms, minute(39));
        assert_eq!(hour.load.all_routes().requests(), 61);
        assert_eq!(hour.minutes.len(), 61);
        assert!(hour.minutes.iter().all(|it| it.requests == 1));
        let last = hour.minutes.last().unwrap();
        assert_eq!((last.until_ms, last.length_ms), (now_ms, 1_000));
        assert_eq!(history.lock().len(), MAX_SAMPLES);
    }

    #[test]
    fn states_of_before_a_pause_are_dropped() {
        let history = LoadHistory::default();
        let metrics = Metrics::new().unwrap();
        history.keep(NOW_MS, metrics.load_sample());
        request(&metrics, 200, 0.02);
        let later_ms = NOW_MS + 3 * HISTORY_MS;
        history.keep(later_ms, metrics.load_sample());
        let hour = history.until(later_ms + 5, metrics.load_sample());
        assert_eq!(
            (hour.since_ms, hour.load),
            (later_ms, LoadSample::default())
        );
    }

    #[test]
    fn without_a_state_nothing_is_known() {
        let sample = Metrics::new().unwrap().load_sample();
        let none = LoadHistory::default().until(NOW_MS, sample);
        assert_eq!((none.since_ms, none.minutes.len()), (NOW_MS, 0));
    }

    #[test]
    fn a_quantile_lies_within_its_step_and_ends_at_the_last_one() {
        let metrics = Metrics::new().unwrap();
        for _ in 0..90 {
            request(&metrics, 200, 0.03);
        }
        for _ in 0..10 {
            request(&metrics, 200, 0.8);
        }
        let seconds = metrics.load_sample().all_routes().seconds;
        let quantile = |share: f64| seconds.quantile(share).unwrap();
        assert!((0.025..=0.05).contains(&quantile(0.5)), "{}", quantile(0.5));
        assert!((0.5..=1.0).contains(&quantile(0.95)), "{}", quantile(0.95));
        assert!(quantile(0.5) < quantile(0.8));
        request(&metrics, 200, 9_999.0);
        let seconds = metrics.load_sample().all_routes().seconds;
        assert_eq!(seconds.quantile(1.0), Some(600.0));
        assert_eq!(Durations::default().quantile(0.5), None);
    }
}
