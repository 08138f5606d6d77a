//! What reading and writing costs: memory and time have a bound for each byte of the input.
//!
//! Every parser and encoder that has a target here is a [`Reader`]. It gets the attacks of its table, and documents of its
//! grammar in which something is repeated or nested ([`grow`]). With `WEIRGATE_FUZZ`, which `make fuzz` sets in an optimised
//! build, inputs have 64 KiB, 512 KiB and 1 MiB. `cargo test` gives few and smaller inputs and more time, so what grows with
//! the square of its input, or faster, still fails there. What may cost more stands in [`exceptions`] with its reason.

mod attacks;
mod catalogue;
mod contents_attacks;
mod exceptions;
mod fronts;
mod grow;
mod meter;
mod others;
mod replies;

use bytes::Bytes;

use crate::choices::Choices;

/// Memory that any input may take.
const FLOOR_BYTES: u64 = 64 << 10;
/// Memory for each byte of the input.
const BYTES_PER_BYTE: u64 = 8;
/// Choices of a seed and of how it grows.
const CHOICES: usize = 512;
/// Measurements of an input whose time is doubted.
const MEASUREMENTS: usize = 5;

/// Something that reads a stranger's bytes, and what is made of them.
struct Reader {
    name: String,
    read: Box<dyn Fn(&Bytes)>,
    seed: Seed,
    attacks: Vec<Attack>,
}

/// What makes an ordinary input.
type Seed = Box<dyn Fn(&mut Choices<'_>) -> Vec<u8>>;

/// An input of a kind: what it is, and how it is made with about so many bytes.
type Attack = (&'static str, fn(usize) -> Vec<u8>);

impl Reader {
    fn new(
        name: impl Into<String>,
        seed: impl Fn(&mut Choices<'_>) -> Vec<u8> + 'static,
        read: impl Fn(&Bytes) + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            read: Box::new(read),
            seed: Box::new(seed),
            attacks: Vec::new(),
        }
    }

    fn with(mut self, attacks: &[Attack]) -> Self {
        self.attacks.extend_from_slice(attacks);
        self
    }
}

/// How much is tried, and what time it may take.
struct Scale {
    /// Grown inputs of a reader.
    inputs: usize,
    /// Sizes of an input, of which the last is twice the one before.
    sizes: &'static [usize],
    floor_ns: f64,
    ns_per_byte: f64,
    /// How many times as long twice the bytes may take.
    growth: f64,
    /// Shorter times are too short to be compared.
    compared_ns: f64,
}

impl Scale {
    fn of_run() -> Self {
        match std::env::var("WEIRGATE_FUZZ") {
            Ok(inputs) => Self {
                inputs: inputs.parse::<usize>().unwrap().div_ceil(20_000),
                sizes: &[64 << 10, 512 << 10, 1 << 20],
                floor_ns: 1e6,
                ns_per_byte: 300.0,
                growth: 2.5,
                compared_ns: 1e7,
            },
            // Unoptimised, and beside other tests.
            Err(_) => Self {
                inputs: 6,
                sizes: &[1 << 10, 32 << 10, 64 << 10],
                floor_ns: 1e8,
                ns_per_byte: 20_000.0,
                growth: 3.2,
                compared_ns: 1e8,
            },
        }
    }
}

/// Checks readers, and fails with all that cost too much.
fn check(readers: Vec<Reader>) {
    let scale = Scale::of_run();
    let mut failures = Vec::new();
    for reader in &readers {
        // What is made once is made before anything is measured.
        let seed = (reader.seed)(&mut Choices::new(&[]));
        (reader.read)(&seed.into());
        for (name, make) in &reader.attacks {
            failures.extend(check_input(reader, &scale, name, make));
        }
        for number in 0..scale.inputs {
            let choices = random(&reader.name, number);
            let (of_seed, of_growth) = choices.split_at(CHOICES);
            let seed = (reader.seed)(&mut Choices::new(of_seed));
            if seed.is_empty() {
                continue;
            }
            let grow = |bytes| grow::grow(&mut Choices::new(of_growth), &seed, bytes);
            let label = format!("input {number}");
            failures.extend(check_input(reader, &scale, &label, &grow));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns choices for an input, the same in every run.
fn random(name: &str, number: usize) -> Vec<u8> {
    let mut state = name.bytes().fold(number as u64 + 1, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(2 * CHOICES).collect()
}

/// Returns what costs too much of an input in its sizes; the first failure ends it.
fn check_input(
    reader: &Reader,
    scale: &Scale,
    label: &str,
    make: &dyn Fn(usize) -> Vec<u8>,
) -> Option<String> {
    let allowed = exceptions::allowance(&reader.name);
    let mut before: Option<(Bytes, f64)> = None;
    for size in scale.sizes {
        let input = Bytes::from(make(*size));
        let length = input.len() as u64;
        let cost = meter::measure(|| (reader.read)(&input));
        let fail = |what: String| {
            let start = String::from_utf8_lossy(&input[..input.len().min(160)]).into_owned();
            let name = &reader.name;
            Some(format!(
                "{name}, {label}, {length} bytes: {what}: {start:?}"
            ))
        };
        let most = FLOOR_BYTES + allowed.bytes + BYTES_PER_BYTE.max(allowed.per_byte) * length;
        if cost.bytes > most {
            return fail(format!("{} bytes of memory, {most} accepted", cost.bytes));
        }
        let most_ns = scale.floor_ns + allowed.ns + scale.ns_per_byte * length as f64;
        let mut ns = cost.cpu_ns as f64;
        if ns > most_ns {
            ns = shortest(reader, &input);
        }
        if ns > most_ns {
            return fail(format!("{ns} ns, {most_ns} accepted"));
        }
        if let Some((smaller, smaller_ns)) = &before {
            let times = length as f64 / smaller.len() as f64;
            let growth = scale.growth + allowed.growth;
            let grows = |ns: f64, smaller_ns: f64| ns > smaller_ns * times * growth / 2.0;
            if (1.9..2.2).contains(&times) && ns > scale.compared_ns && grows(ns, *smaller_ns) {
                let (ns, smaller_ns) = (shortest(reader, &input), shortest(reader, smaller));
                if grows(ns, smaller_ns) {
                    return fail(format!("{ns} ns, of half the bytes {smaller_ns}"));
                }
            }
        }
        before = Some((input, ns));
    }
    None
}

/// Returns the shortest time of some measurements.
fn shortest(reader: &Reader, input: &Bytes) -> f64 {
    let times = (0..MEASUREMENTS).map(|_| meter::measure(|| (reader.read)(input)).cpu_ns);
    times.min().unwrap() as f64
}

#[test]
fn requests_cost_what_their_bytes_allow() {
    check(fronts::chats());
    check(fronts::messages());
    check(fronts::responses());
    check(fronts::contents());
    check(fronts::others());
}

#[test]
fn forms_cost_what_their_bytes_allow() {
    check(fronts::forms());
}

#[test]
fn replies_of_providers_cost_what_their_bytes_allow() {
    check(replies::whole());
}

#[test]
fn events_of_providers_cost_what_their_bytes_allow() {
    check(replies::events());
}

#[test]
fn datafiles_and_decisions_cost_what_their_bytes_allow() {
    check(others::decisions());
}

#[test]
fn names_amounts_and_the_catalogue_cost_what_their_bytes_allow() {
    check(catalogue::catalogue());
}

#[test]
fn heads_cost_what_their_bytes_allow() {
    check(others::heads());
}

#[test]
fn texts_tokens_and_messages_cost_what_their_bytes_allow() {
    check(others::texts());
    check(others::tokens());
}
