//! What one process has measured of one candidate, as processes tell each other.
//!
//! A state, not an event: it replaces what the same process told before, so that telling it twice counts once. Times are
//! ages, because the clocks of processes differ.
//!
//! Shape: a version byte, a byte of flags, then little-endian numbers. Whoever can write to Redis can write such bytes, so
//! every number has bounds, and what exceeds one is refused as a whole.

use super::histogram::{MAX_WEIGHT, Weights};

/// The form of the bytes. Other versions are refused.
const VERSION: u8 = 1;
/// The largest state: three histograms of 64 buckets, and what stands before them.
pub const MAX_BYTES: usize = 1024;
/// Older than this is nothing. It fits an age of four bytes.
const MAX_AGE_MS: u32 = 7 * 24 * 3_600_000;
/// No window has counted more attempts than it remembers.
const MAX_ATTEMPTS: f32 = 31.0;
/// No process has seen more calls or tokens.
const MAX_CALLS: f32 = 1e12;
const MAX_TOKENS: f32 = 1e18;
/// The longest time until a trial.
const MAX_DUE_MS: u32 = 120_000;

const IS_COUNTED: u8 = 1;
const COOLS_DOWN: u8 = 2;
const HAS_RECOVERED: u8 = 4;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements {
    pub(super) latency_ms: Weights,
    pub(super) throughput: Weights,
    pub(super) duration_ms: Weights,
    /// Calls, and their tokens: of prompts, cached, written, of completions.
    pub(super) tokens: [f32; 5],
    pub(super) answered: f32,
    pub(super) failed: f32,
    /// Since the last attempt that counted.
    pub(super) counted_age_ms: Option<u32>,
    pub(super) cool_down: Option<CoolDown>,
    /// Since the attempt began that last showed its recovery.
    pub(super) recovered_age_ms: Option<u32>,
}

/// A candidate that fails.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct CoolDown {
    /// Since it began.
    pub(super) opened_age_ms: u32,
    /// Since the attempt began that failed first.
    pub(super) failing_age_ms: u32,
    /// Until the next trial.
    pub(super) due_in_ms: u32,
}

/// Returns the age of a time, within bounds.
pub(super) fn age_ms(at_ms: u64, now_ms: u64) -> u32 {
    let age = u32::try_from(now_ms.saturating_sub(at_ms));
    age.unwrap_or(MAX_AGE_MS).min(MAX_AGE_MS)
}

/// Returns the time until a later one, within bounds.
pub(super) fn due_in_ms(due_ms: u64, now_ms: u64) -> u32 {
    let due = u32::try_from(due_ms.saturating_sub(now_ms));
    due.unwrap_or(MAX_DUE_MS).min(MAX_DUE_MS)
}

impl Measurements {
    /// Returns whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the bytes, at most [`MAX_BYTES`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION, self.flags()];
        let sums = self.tokens.into_iter().chain([self.answered, self.failed]);
        sums.for_each(|sum| out.extend(sum.to_le_bytes()));
        let cool_down = self.cool_down.map(|it| {
            let CoolDown {
                opened_age_ms,
                failing_age_ms,
                due_in_ms,
            } = it;
            [opened_age_ms, failing_age_ms, due_in_ms]
        });
        let times = self.counted_age_ms.into_iter();
        let times = times.chain(cool_down.into_iter().flatten());
        let times = times.chain(self.recovered_age_ms);
        times.for_each(|time| out.extend(time.to_le_bytes()));
        for weights in [&self.latency_ms, &self.throughput, &self.duration_ms] {
            weights.write(&mut out);
        }
        out
    }

    fn flags(&self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(self.counted_age_ms.is_some(), IS_COUNTED)
            | flag(self.cool_down.is_some(), COOLS_DOWN)
            | flag(self.recovered_age_ms.is_some(), HAS_RECOVERED)
    }

    /// Reads bytes; `None`: they are of another version, damaged, or say what no process can have measured.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[version, flags], rest) = bytes.split_first_chunk()?;
        let is_known = version == VERSION && flags <= (IS_COUNTED | COOLS_DOWN | HAS_RECOVERED);
        if !is_known || bytes.len() > MAX_BYTES {
            return None;
        }
        let mut reader = Reader(rest);
        let measured = reader.measurements(flags)?;
        let is_whole = reader.0.is_empty() && measured.is_possible();
        is_whole.then_some(measured)
    }

    /// Returns whether a process can have measured this.
    fn is_possible(&self) -> bool {
        let [calls, prompt, cached, written, completion] = self.tokens;
        let within = |number: f32, most: f32| (0.0..=most).contains(&number);
        let ages = [self.counted_age_ms, self.recovered_age_ms];
        let cool_down = self.cool_down.unwrap_or_default();
        let cool_down_ages = [cool_down.opened_age_ms, cool_down.failing_age_ms];
        let mut ages = ages.into_iter().flatten().chain(cool_down_ages);
        within(calls, MAX_CALLS)
            && within(prompt, MAX_TOKENS)
            && within(completion, MAX_TOKENS)
            && within(cached, prompt)
            && within(written, prompt)
            // The sums are rounded.
            && within(cached + written, prompt * 1.0001)
            && within(self.answered, MAX_ATTEMPTS)
            && within(self.failed, MAX_ATTEMPTS - self.answered)
            && ages.all(|age_ms| age_ms <= MAX_AGE_MS)
            && cool_down.due_in_ms <= MAX_DUE_MS
            && [&self.latency_ms, &self.throughput, &self.duration_ms]
                .into_iter()
                .all(|weights| weights.sum() <= MAX_WEIGHT + 1.0)
    }
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn measurements(&mut self, flags: u8) -> Option<Measurements> {
        let mut tokens = [0.0; 5];
        for sum in &mut tokens {
            *sum = f32::from_le_bytes(self.number()?);
        }
        let (answered, failed) = (self.number()?, self.number()?);
        let counted_age_ms = self.time_if(flags & IS_COUNTED != 0)?;
        let cool_down = match flags & COOLS_DOWN {
            0 => None,
            _ => Some(CoolDown {
                opened_age_ms: u32::from_le_bytes(self.number()?),
                failing_age_ms: u32::from_le_bytes(self.number()?),
                due_in_ms: u32::from_le_bytes(self.number()?),
            }),
        };
        let recovered_age_ms = self.time_if(flags & HAS_RECOVERED != 0)?;
        Some(Measurements {
            tokens,
            answered: f32::from_le_bytes(answered),
            failed: f32::from_le_bytes(failed),
            counted_age_ms,
            cool_down,
            recovered_age_ms,
            latency_ms: Weights::read(&mut self.0)?,
            throughput: Weights::read(&mut self.0)?,
            duration_ms: Weights::read(&mut self.0)?,
        })
    }

    fn number(&mut self) -> Option<[u8; 4]> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*number)
    }

    fn time_if(&mut self, is_there: bool) -> Option<Option<u32>> {
        match is_there {
            true => Some(Some(u32::from_le_bytes(self.number()?))),
            false => Some(None),
        }
    }
}
