//! Runs a target.

use std::io::Write;
use std::time::Instant;

use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};

use crate::choices::Choices;

/// How many inputs of each target `cargo test` runs.
const INPUTS: u32 = 400;
/// How many choices an input has at most.
const CHOICES: usize = 512;

/// Runs a target with the inputs that `WEIRGATE_FUZZ` asks for, and fails with the smallest input that fails.
pub fn run(name: &str, target: impl Fn(&mut Choices<'_>)) {
    let asked = std::env::var("WEIRGATE_FUZZ").ok();
    let inputs = asked
        .as_ref()
        .map_or(INPUTS, |inputs| inputs.parse().unwrap());
    let config = Config {
        cases: inputs,
        failure_persistence: None,
        ..Config::default()
    };
    let started = Instant::now();
    let choices = proptest::collection::vec(any::<u8>(), 0..CHOICES);
    let ran = TestRunner::new(config).run(&choices, |bytes| {
        target(&mut Choices::new(&bytes));
        Ok(())
    });
    if let Err(failure) = ran {
        panic!("{name}: {failure}");
    }
    if asked.is_some() {
        let seconds = started.elapsed().as_secs_f64();
        let line = format!("{name}: {inputs} inputs, {seconds:.1} s, no failure\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
}
