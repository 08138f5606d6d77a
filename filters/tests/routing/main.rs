//! A day of outages, brown-outs, limits, slow hours and changing prices, replayed through the planner of the gateway, beside
//! an oracle that knows which attempts will be answered and how fast providers really are.
//!
//! The day is the same in every run: chance is a function of the number of a call. `cargo test -p filters --test routing --
//! --ignored --nocapture` replays ten times as many calls and prints what they came to; with `WRITE_GOLDEN=1` it draws
//! docs/routing-day.svg anew.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests"
)]

mod day;
mod plot;
mod replay;
mod report;
mod world;

use std::sync::LazyLock;

use filters::models::request::Strategy;

use crate::day::Trouble;
use crate::replay::Replay;
use crate::report::{Met, Summary};

/// The strategies, by their names.
const STRATEGIES: [(&str, Option<Strategy>); 4] = [
    ("auto", None),
    ("price", Some(Strategy::Price)),
    ("throughput", Some(Strategy::Throughput)),
    ("latency", Some(Strategy::Latency)),
];

/// Milliseconds between two calls, in the test that always runs.
const USUAL_MS: u64 = 3000;

static DAYS: LazyLock<Vec<(&str, Summary)>> = LazyLock::new(|| replay_days(USUAL_MS));

fn replay_days(mean_ms: u64) -> Vec<(&'static str, Summary)> {
    let days = STRATEGIES.map(|(name, strategy)| {
        std::thread::spawn(move || (name, Summary::new(&Replay::run(strategy, mean_ms))))
    });
    days.into_iter().map(|day| day.join().unwrap()).collect()
}

/// Returns the events that were met, each with its strategy, of the model that has a call in some seconds.
fn met() -> impl Iterator<Item = (&'static str, Met)> {
    let all = DAYS
        .iter()
        .flat_map(|(name, day)| day.met.iter().map(|met| (*name, *met)));
    all.filter(|(_, met)| met.model == "large")
}

fn day(name: &str) -> &'static Summary {
    &DAYS.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn no_call_fails_while_a_provider_works() {
    for (name, day) in &*DAYS {
        assert!(day.calls > 20_000);
        assert_eq!(day.failed_calls, 0, "{name}: {day}");
    }
}

#[test]
fn an_outage_costs_three_failed_attempts_and_then_trials_alone() {
    for (name, met) in met().filter(|(_, met)| met.is_outage()) {
        // A provider that says nothing is known to be silent after a few seconds; who was sent there meanwhile waits.
        let most = if met.event.trouble == Trouble::Hangs {
            6
        } else {
            3
        };
        assert!(met.failed <= most, "{name}: {met:?}");
        // After 5, 15, 35 and 75 s, then every 50 s.
        let seconds = (met.event.until_ms - met.event.from_ms) as usize / 1000;
        assert!(met.trials <= 4 + (seconds - 75) / 50, "{name}: {met:?}");
    }
}

#[test]
fn a_provider_is_back_within_a_minute_after_its_outage() {
    let mut count = 0;
    for (name, met) in met().filter(|(_, met)| met.event.trouble != Trouble::IsSlow) {
        if let Some(back_after_ms) = met.back_after_ms {
            assert!(
                back_after_ms <= 60_000 && met.share_after >= 0.9,
                "{name}: {met:?}"
            );
            count += 1;
        }
    }
    assert!(count >= 10, "{count}");
}

#[test]
fn a_provider_that_fails_three_of_ten_loses_most_calls_and_gets_them_back() {
    let mut count = 0;
    for (name, met) in
        met().filter(|(_, met)| met.event.trouble == Trouble::BrownsOut && met.failed > 20)
    {
        // If nothing were learned, three of ten would fail.
        let share = met.failed as f64 / met.calls as f64;
        assert!(share < 0.17, "{name}: {share} {met:?}");
        count += 1;
    }
    assert!(count >= 2);
}

#[test]
fn a_limit_that_is_told_is_seldom_run_into() {
    let throttled = met().filter(|(_, met)| matches!(met.event.trouble, Trouble::Throttles(_)));
    for (name, met) in throttled {
        // Calls that begin before the first reply of a minute tells.
        assert!(met.failed <= met.calls / 50, "{name}: {met:?}");
    }
}

/// Contract: model-gateway 2.1 routing
/// Contract: model-gateway 2.1 routing 1
#[test]
fn each_strategy_comes_close_to_what_it_wants() {
    for name in ["price", "auto"] {
        let (ours, best) = day(name).cost;
        assert!(ours <= 1.05 * best, "{name}: {}", day(name));
    }
    let (ours, best) = day("throughput").rate;
    assert!(ours >= 0.95 * best, "{}", day("throughput"));
    // Attempts that fail come before the first content, and a provider that has become slow is known only afterwards.
    let (ours, best) = day("latency").latency_ms;
    assert!(ours <= 1.3 * best, "{}", day("latency"));
    // One call of a hundred, here one in six minutes, finds out that a slow provider is fast again.
    let (ours, best) = day("latency").calm_latency_ms;
    assert!(ours <= 1.12 * best, "{}", day("latency"));
}

#[test]
fn nothing_swings_while_nothing_happens() {
    for (name, day) in &*DAYS {
        assert!(day.flips <= 1, "{name}: {day}");
    }
}

#[test]
#[ignore = "takes a minute; `WRITE_GOLDEN=1` draws docs/routing-day.svg"]
fn a_busy_day_in_figures() {
    for (name, day) in replay_days(USUAL_MS / 10) {
        println!("{name}: {day}");
        assert_eq!(day.failed_calls, 0);
    }
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/routing-day.svg");
        std::fs::write(path, plot::draw(&DAYS)).unwrap();
    }
}
