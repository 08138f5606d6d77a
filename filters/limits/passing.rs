//! Windows as bytes, as they pass to the process that takes the place of this one.
//!
//! Times are ages, because the clocks of the processes differ. Shape, all numbers little-endian: the algorithm (a byte), the
//! length of windows (u64), then for each window its row (u64), a byte that says whether an address follows (u64) or a
//! name (u16 and its bytes), the number of its runs (u32), and for each run its age and its admissions (u64 each).

use super::counter::Counter;
use super::key::WindowKey;
use super::shards::{SHARD_COUNT, Shards};
use super::window::{Table, Verdict, Windows};

const FIXED: u8 = 0;
const SLIDING: u8 = 1;

impl Windows {
    /// Returns the windows that count now, as bytes, up to about this many. What is left out begins anew.
    pub fn to_bytes(&self, now_ms: u64, max_bytes: usize) -> Vec<u8> {
        let times = (now_ms, self.window_ms);
        let mut out = vec![self.algorithm()];
        out.extend(self.window_ms.to_le_bytes());
        match &self.table {
            Table::Fixed(shards) => write_windows(shards, times, max_bytes, &mut out),
            Table::Sliding(shards) => write_windows(shards, times, max_bytes, &mut out),
        }
        out
    }

    /// Takes in windows of another process, in place of those of the same keys. Returns how many; `None` if the bytes are
    /// of windows of another length or algorithm, or damaged. Those before the damage are taken.
    pub fn take_in(&self, bytes: &[u8], now_ms: u64) -> Option<usize> {
        let mut reader = Reader(bytes);
        if reader.byte()? != self.algorithm() || reader.number()? != self.window_ms {
            return None;
        }
        let mut taken = 0;
        while !reader.0.is_empty() {
            let (key, runs) = reader.window(now_ms)?;
            match &self.table {
                Table::Fixed(shards) => insert_window(shards, key, &runs),
                Table::Sliding(shards) => insert_window(shards, key, &runs),
            }
            taken += 1;
        }
        Some(taken)
    }

    fn algorithm(&self) -> u8 {
        match &self.table {
            Table::Fixed(_) => FIXED,
            Table::Sliding(_) => SLIDING,
        }
    }
}

impl WindowKey {
    /// Appends the key.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (row, address, name) = self.parts();
        out.extend(row.to_le_bytes());
        out.push(u8::from(address.is_some()));
        if let Some(address) = address {
            out.extend(address.to_le_bytes());
            return;
        }
        // Ids are shorter than this by far.
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        out.extend(length.to_le_bytes());
        out.extend(name.as_bytes().iter().take(usize::from(length)));
    }

    /// Reads a key, and returns it with the bytes behind it.
    pub fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut reader = Reader(bytes);
        let key = reader.key()?;
        Some((key, reader.0))
    }
}

impl Verdict {
    /// Returns the verdict as bytes, without the token: a unit of another process is not given back.
    pub fn to_bytes(&self) -> Vec<u8> {
        let numbers = [self.limit, self.remaining, self.reset_ms];
        let numbers = numbers.into_iter().flat_map(u64::to_le_bytes);
        std::iter::once(u8::from(self.is_allowed))
            .chain(numbers)
            .collect()
    }

    /// Reads a verdict of another process.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let verdict = Self {
            is_allowed: reader.byte()? == 1,
            limit: reader.number()?,
            remaining: reader.number()?,
            reset_ms: reader.number()?,
            refund_token: super::RefundToken::NONE,
        };
        reader.0.is_empty().then_some(verdict)
    }
}

fn write_windows<C: Counter>(
    shards: &Shards<C>,
    (now_ms, window_ms): (u64, u64),
    max_bytes: usize,
    out: &mut Vec<u8>,
) {
    for shard in 0..SHARD_COUNT {
        let Some(map) = shards.lock(shard) else {
            continue;
        };
        for (key, counter) in map.iter() {
            if out.len() >= max_bytes {
                return;
            }
            if counter.has_ended(now_ms, window_ms) {
                continue;
            }
            let runs = counter.runs();
            let runs = runs.iter().filter(|(_, count)| *count > 0);
            let runs: Vec<_> = runs.collect();
            key.write(out);
            out.extend(u32::try_from(runs.len()).unwrap_or(u32::MAX).to_le_bytes());
            for (at_ms, count) in runs {
                out.extend(now_ms.saturating_sub(*at_ms).to_le_bytes());
                out.extend(count.to_le_bytes());
            }
        }
    }
}

fn insert_window<C: Counter>(shards: &Shards<C>, key: WindowKey, runs: &[(u64, u64)]) {
    if let Some(mut map) = shards.lock(super::shards::shard_index(&key)) {
        map.insert(key, C::from_runs(runs));
    }
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn key(&mut self) -> Option<WindowKey> {
        let row = self.number()?;
        if self.byte()? == 1 {
            return Some(WindowKey::from_parts(row, Some(self.number()?), ""));
        }
        let length = self.take(2)?.try_into().ok().map(u16::from_le_bytes)?;
        let name = std::str::from_utf8(self.take(usize::from(length))?).ok()?;
        Some(WindowKey::from_parts(row, None, name))
    }

    /// Returns a window: its key, and the times of its admissions.
    fn window(&mut self, now_ms: u64) -> Option<(WindowKey, Vec<(u64, u64)>)> {
        let key = self.key()?;
        let count = self.take(4)?.try_into().ok().map(u32::from_le_bytes)?;
        let mut runs = Vec::new();
        for _ in 0..count {
            let age_ms = self.number()?;
            runs.push((now_ms.saturating_sub(age_ms), self.number()?));
        }
        Some((key, runs))
    }
}

#[cfg(test)]
#[cfg(not(model))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::{Algorithm, RowId, Subject};
    use super::*;

    const WINDOW_MS: u64 = 1_000;

    fn key(name: &str) -> WindowKey {
        WindowKey {
            subject: Subject::Named(name.into()),
            row: RowId::from_name("POST /"),
        }
    }

    fn address() -> WindowKey {
        WindowKey {
            subject: Subject::from("192.0.2.1".parse::<core::net::IpAddr>().unwrap()),
            ..key("")
        }
    }

    #[test]
    fn a_window_goes_on_with_its_count_and_its_end_whatever_the_clocks_are() {
        for algorithm in [Algorithm::Fixed, Algorithm::Sliding] {
            let old = Windows::new(algorithm, WINDOW_MS);
            for now_ms in [5_000, 5_400, 5_400] {
                for key in [key("a"), address()] {
                    assert!(old.admit(&key, 5, now_ms).is_allowed);
                }
            }
            let bytes = old.to_bytes(5_500, usize::MAX);
            let new = Windows::new(algorithm, WINDOW_MS);
            assert_eq!(new.take_in(&bytes, 90_500), Some(2), "{algorithm:?}");
            for key in [key("a"), address()] {
                for (at_ms, key_count) in [(0, 3), (499, 3), (500, old.count(&key, 6_000))] {
                    assert_eq!(
                        new.count(&key, 90_500 + at_ms),
                        key_count,
                        "{algorithm:?} {at_ms}"
                    );
                }
                assert!(new.admit(&key, 5, 90_500).is_allowed);
                assert!(new.admit(&key, 5, 90_500).is_allowed);
                assert!(!new.admit(&key, 5, 90_500).is_allowed);
            }
        }
    }

    #[test]
    fn ended_windows_do_not_pass_and_bytes_have_a_bound() {
        let old = Windows::new(Algorithm::Fixed, WINDOW_MS);
        for number in 0..1_000 {
            old.admit(&key(&number.to_string()), 1, 0);
        }
        let new = Windows::new(Algorithm::Fixed, WINDOW_MS);
        assert_eq!(new.take_in(&old.to_bytes(1_000, usize::MAX), 0), Some(0));
        let bytes = old.to_bytes(10, 1_000);
        assert!(bytes.len() < 1_100);
        assert!(new.take_in(&bytes, 0).unwrap() < 50);
    }

    #[test]
    fn other_windows_and_damage_are_refused() {
        let old = Windows::new(Algorithm::Sliding, WINDOW_MS);
        old.admit(&key("a"), 1, 0);
        let bytes = old.to_bytes(0, usize::MAX);
        for other in [
            Windows::new(Algorithm::Fixed, WINDOW_MS),
            Windows::new(Algorithm::Sliding, WINDOW_MS + 1),
        ] {
            assert_eq!(other.take_in(&bytes, 0), None);
        }
        for end in 0..bytes.len() {
            let cut = bytes.get(..end).unwrap();
            let new = Windows::new(Algorithm::Sliding, WINDOW_MS);
            let whole = new.take_in(cut, 0);
            assert!(whole.is_none() || whole == Some(0), "cut at {end}");
        }
    }

    #[test]
    fn a_verdict_passes_without_its_token() {
        let windows = Windows::new(Algorithm::Fixed, WINDOW_MS);
        let verdict = windows.admit(&key("a"), 3, 0);
        let passed = Verdict::from_bytes(&verdict.to_bytes()).unwrap();
        let expected = Verdict {
            refund_token: super::super::RefundToken::NONE,
            ..verdict
        };
        assert_eq!(passed, expected);
        assert_eq!(Verdict::from_bytes(&[1]), None);
        let mut bytes = Vec::new();
        address().write(&mut bytes);
        bytes.push(7);
        let read = WindowKey::read(&bytes).unwrap();
        assert_eq!(read, (address(), &[7][..]));
    }
}
