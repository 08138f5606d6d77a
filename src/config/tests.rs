#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use std::time::Duration;

use http::HeaderName;

use super::*;

mod accounts;
mod changes;
mod cloud;
mod example;
mod golden;
mod overrides;
mod problems;
mod providers;
mod reference;
mod shipped;
mod values;

fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn good_with(toml: &str, pairs: &[(&str, &str)]) -> LoadedConfig {
    match from_str(toml, env(pairs)) {
        Ok(loaded) => loaded,
        Err(problems) => {
            let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
            panic!("refused:\n{}", shown.join("\n"))
        }
    }
}

fn good(toml: &str) -> LoadedConfig {
    good_with(toml, &[])
}

fn bad_with(toml: &str, pairs: &[(&str, &str)]) -> Vec<Problem> {
    from_str(toml, env(pairs))
        .err()
        .expect("a problem is found")
}

fn bad(toml: &str) -> Vec<Problem> {
    bad_with(toml, &[])
}

/// The only problem of a text.
fn only(toml: &str) -> Problem {
    let mut problems = bad(toml);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.remove(0)
}

/// Key, line and column of a problem in a file.
fn spot(problem: &Problem) -> (&str, usize, usize) {
    match &problem.place {
        Location::File(spot) => (&problem.key, spot.line, spot.column),
        other => panic!("{other:?}"),
    }
}

fn warned(loaded: &LoadedConfig) -> Vec<(&str, &str)> {
    loaded
        .warnings
        .iter()
        .map(|warning| (warning.key.as_str(), warning.message.as_str()))
        .collect()
}
