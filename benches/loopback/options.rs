//! What a run measures and for how long: arguments and environment.

use std::time::Duration;

use crate::kind::Kind;

/// A section of the bench.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Section {
    /// Rates, CPU time and latencies of a closed loop.
    Rates,
    /// Latencies of one connection, and at half the knee.
    Latency,
    /// Instructions and allocations of a call, by callgrind.
    Instructions,
    /// System calls of a call, by strace.
    Syscalls,
    /// The same decisions by the public npm SDK.
    Sdk,
    /// Memory: idle, under load, with open streams, with large bodies.
    Memory,
    /// What the console costs.
    Console,
    /// The scenarios of an open benchmark.
    Rig,
}

impl Section {
    const ALL: [(Section, &str); 8] = [
        (Section::Rates, "rates"),
        (Section::Latency, "latency"),
        (Section::Instructions, "instructions"),
        (Section::Syscalls, "syscalls"),
        (Section::Sdk, "sdk"),
        (Section::Memory, "memory"),
        (Section::Console, "console"),
        (Section::Rig, "rig"),
    ];
}

/// The options of a run.
pub struct Options {
    /// The time of one round, without its warm-up.
    pub time: Duration,
    /// The number of rounds. Figures are medians over them.
    pub rounds: usize,
    /// Whether the line of the run is added to `RESULTS.md`.
    pub keeps_result: bool,
    /// Whether the gateway is loaded with all kinds and nothing is measured, so that its binary writes what it did.
    pub trains: bool,
    sections: Vec<Section>,
    kinds: Vec<Kind>,
}

impl Options {
    /// Reads them. `--only rates,json,stream` limits a run to sections and kinds of requests.
    pub fn from_process() -> Self {
        let mut options = Self {
            time: Duration::from_secs_f64(number("WEIRGATE_BENCH_SECONDS").unwrap_or(1.5)),
            rounds: number("WEIRGATE_BENCH_ROUNDS").map_or(5, |rounds| rounds as usize),
            keeps_result: variable("WEIRGATE_BENCH_KEEP").is_some_and(|value| value == "1"),
            trains: false,
            sections: Vec::new(),
            kinds: Vec::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            options.trains |= argument == "--train";
            let words = match argument.strip_prefix("--only") {
                Some("") => arguments.next().unwrap_or_default(),
                Some(words) => words.trim_start_matches('=').to_owned(),
                None => continue, // `cargo bench` adds `--bench`.
            };
            words.split(',').for_each(|word| options.limit_to(word));
        }
        options
    }

    fn limit_to(&mut self, word: &str) {
        let section = Section::ALL.iter().find(|(_, name)| *name == word);
        match (section, Kind::from_name(word)) {
            (Some((section, _)), _) => self.sections.push(*section),
            (None, Some(kind)) => self.kinds.push(kind),
            (None, None) => {
                let sections = Section::ALL.map(|(_, name)| name).join(", ");
                let kinds = Kind::ALL.map(Kind::name).join(", ");
                panic!("--only {word}: it knows the sections {sections} and the kinds {kinds}");
            }
        }
    }

    /// Returns whether this section is measured.
    pub fn has(&self, section: Section) -> bool {
        self.sections.is_empty() || self.sections.contains(&section)
    }

    /// Returns the kinds that are measured.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        let is_wanted = |kind: &Kind| self.kinds.is_empty() || self.kinds.contains(kind);
        Kind::ALL.into_iter().filter(is_wanted)
    }
}

/// Returns a variable of the environment.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns a variable that is a number.
pub fn number(name: &str) -> Option<f64> {
    variable(name).map(|value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number"))
    })
}
