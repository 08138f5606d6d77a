//! Processes, a shared window, and the messages between them, in any order. Times are in microseconds, so that clocks
//! read in milliseconds are as wrong as they can be.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use proptest::sample::Index;

use super::super::key::{RowId, Subject};
use super::*;

const WINDOW_MS: u64 = 1_000;
const PROCESSES: usize = 3;

fn key() -> WindowKey {
    WindowKey {
        subject: Subject::Named("t".into()),
        row: RowId::from_name("POST /content/v2"),
    }
}

/// The scripts of `src/limits/lua`, written simply.
struct Shared {
    algorithm: Algorithm,
    start_ms: Option<u64>,
    /// The times of all units that count; those of a fixed window have its start.
    units: VecDeque<u64>,
}

impl Shared {
    fn drop_ended(&mut self, now_ms: u64) {
        self.units.retain(|at_ms| at_ms + WINDOW_MS > now_ms);
        self.start_ms = self
            .start_ms
            .filter(|start_ms| start_ms + WINDOW_MS > now_ms);
    }

    fn take(&mut self, limit: u64, wanted: u64, now_ms: u64) -> SharedCount {
        self.drop_ended(now_ms);
        let left = limit.saturating_sub(self.units.len() as u64);
        let part = left / lease_parts(PROCESSES as u64);
        let units = wanted.min(part).max(1).min(left);
        let at_ms = match self.algorithm {
            Algorithm::Fixed => *self.start_ms.get_or_insert(now_ms),
            Algorithm::Sliding if units > 1 => now_ms + lease_ms(WINDOW_MS),
            Algorithm::Sliding => self.units.back().map_or(now_ms, |last| now_ms.max(*last)),
        };
        self.units.extend((0..units).map(|_| at_ms));
        let first_ms = match self.algorithm {
            Algorithm::Fixed => at_ms,
            Algorithm::Sliding => self.units.front().copied().unwrap_or(now_ms),
        };
        SharedCount {
            units,
            count: self.units.len() as u64,
            reset_ms: first_ms + WINDOW_MS - now_ms,
            at_ms,
        }
    }

    fn refund_units(&mut self, leftover: Leftover, now_ms: u64) {
        self.drop_ended(now_ms);
        for _ in 0..leftover.units {
            if let Some(index) = self.units.iter().position(|at| *at == leftover.at_ms) {
                self.units.remove(index);
            }
        }
    }
}

/// A message on its way.
enum Travelling {
    Call {
        process: usize,
        /// The units of a lease, or `None` for a request that asks for itself.
        lease: Option<u64>,
        sent_ms: u64,
    },
    Reply {
        process: usize,
        is_lease: bool,
        sent_ms: u64,
        ran_us: u64,
        count: SharedCount,
    },
    Return(Leftover),
}

struct Process {
    leases: Leases,
    /// How far its clock is ahead.
    ahead_us: u64,
    /// The number of times it was killed. Replies to an earlier life are dropped.
    has_been_killed: bool,
}

/// An admitted request: the time in its token, and the time of its admission.
struct Admitted {
    process: usize,
    at_ms: u64,
    us: u64,
}

struct World {
    limit: u64,
    now_us: u64,
    shared: Shared,
    processes: Vec<Process>,
    travelling: Vec<Travelling>,
    admitted: Vec<Admitted>,
}

#[derive(Clone, Debug)]
enum Happening {
    Pass(u64),
    /// Time passes to the end of the oldest unit, or to just beside it.
    PassToEnd(i64),
    /// Requests to a process; whether all that travels then arrives.
    Burst(usize, usize, bool),
    Arrive(Index),
    GetLost(Index),
    End(usize),
    Refund(Index),
    Kill(usize),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    use Happening::{Arrive, Burst, End, GetLost, Kill, Pass, PassToEnd, Refund};
    let time = prop_oneof![
        3 => 0..3_000_u64,
        2 => 20_000..110_000_u64,
        1 => 850_000..1_000_000_u64,
    ];
    let one = prop_oneof![
        6 => time.prop_map(Pass),
        3 => (-60_000..2_000_i64).prop_map(PassToEnd),
        6 => (-1_000..1_000_i64).prop_map(PassToEnd),
        20 => (0..PROCESSES, 1..30_usize, any::<bool>())
            .prop_map(|(process, times, arrives)| Burst(process, times, arrives)),
        6 => any::<Index>().prop_map(Arrive),
        1 => any::<Index>().prop_map(GetLost),
        3 => (0..PROCESSES).prop_map(End),
        3 => any::<Index>().prop_map(Refund),
        1 => (0..PROCESSES).prop_map(Kill),
    ];
    prop::collection::vec(one, 0..300)
}

impl World {
    fn new(algorithm: Algorithm, limit: u64, ahead_us: [u64; PROCESSES]) -> Self {
        let process = |ahead_us| Process {
            leases: Leases::new(algorithm, WINDOW_MS),
            ahead_us,
            has_been_killed: false,
        };
        Self {
            limit,
            now_us: 5_000_000,
            shared: Shared {
                algorithm,
                start_ms: None,
                units: VecDeque::new(),
            },
            processes: ahead_us.map(process).into(),
            travelling: Vec::new(),
            admitted: Vec::new(),
        }
    }

    fn shared_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    fn clock_ms(&self, process: usize) -> u64 {
        (self.now_us + self.processes[process].ahead_us) / 1_000
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Pass(us) => self.now_us += us,
            Happening::Burst(process, times, arrives) => {
                (0..times).for_each(|_| self.ask(process));
                while arrives && let Some(one) = self.travelling.pop() {
                    self.arrive(one);
                }
            }
            Happening::PassToEnd(beside_us) => {
                let oldest_ms = self.shared.units.front().copied().unwrap_or_default();
                let end_us = (oldest_ms + WINDOW_MS) * 1_000;
                self.now_us = self.now_us.max(end_us.saturating_add_signed(beside_us));
            }
            Happening::Arrive(index) => self.with_one(index, Self::arrive),
            Happening::GetLost(index) => self.with_one(index, Self::lose),
            Happening::End(process) => {
                let now_ms = self.clock_ms(process);
                let leftover = self.processes[process].leases.end_lease(&key(), now_ms);
                self.travelling.extend(leftover.map(Travelling::Return));
            }
            Happening::Refund(index) if !self.admitted.is_empty() => {
                let unit = self.admitted.swap_remove(index.index(self.admitted.len()));
                self.refund(&unit);
            }
            Happening::Refund(_) => {}
            Happening::Kill(process) => {
                let algorithm = self.shared.algorithm;
                self.processes[process].leases = Leases::new(algorithm, WINDOW_MS);
                self.processes[process].has_been_killed = true;
                self.travelling.retain(|it| match it {
                    Travelling::Call { process: of, .. }
                    | Travelling::Reply { process: of, .. } => *of != process,
                    Travelling::Return(_) => true,
                });
            }
        }
    }

    fn with_one(&mut self, index: Index, act: impl FnOnce(&mut Self, Travelling)) {
        if !self.travelling.is_empty() {
            let one = self
                .travelling
                .swap_remove(index.index(self.travelling.len()));
            act(self, one);
        }
    }

    fn ask(&mut self, process: usize) {
        let sent_ms = self.clock_ms(process);
        let leases = &self.processes[process].leases;
        let lease = match leases.admit(&key(), self.limit, sent_ms) {
            LeaseStep::Decided(verdict) => {
                if verdict.is_allowed {
                    let at_ms = verdict.refund_token.shared_ms().unwrap();
                    self.admit(process, at_ms, self.now_us);
                }
                return;
            }
            LeaseStep::AskForOne => None,
            LeaseStep::AskForLease(units) => Some(units),
        };
        self.travelling.push(Travelling::Call {
            process,
            lease,
            sent_ms,
        });
    }

    fn admit(&mut self, process: usize, at_ms: u64, us: u64) {
        self.admitted.push(Admitted { process, at_ms, us });
    }

    fn arrive(&mut self, one: Travelling) {
        match one {
            Travelling::Call {
                process,
                lease,
                sent_ms,
            } => {
                let wanted = lease.unwrap_or(1);
                let now_ms = self.shared_ms();
                let count = self.shared.take(self.limit, wanted, now_ms);
                self.travelling.push(Travelling::Reply {
                    process,
                    is_lease: lease.is_some(),
                    sent_ms,
                    ran_us: self.now_us,
                    count,
                });
            }
            Travelling::Reply {
                process,
                is_lease,
                sent_ms,
                ran_us,
                count,
            } => {
                let times = (sent_ms, self.clock_ms(process));
                let leases = &self.processes[process].leases;
                if is_lease {
                    let (leftover, _) = leases.record_lease(&key(), self.limit, &count, times);
                    self.travelling.extend(leftover.map(Travelling::Return));
                } else {
                    leases.record_count(&key(), self.limit, &count, sent_ms);
                }
                if count.verdict(self.limit).is_allowed {
                    self.admit(process, count.at_ms, ran_us);
                }
            }
            Travelling::Return(leftover) => {
                let now_ms = self.shared_ms();
                self.shared.refund_units(leftover, now_ms);
            }
        }
    }

    /// A call that gets no answer in time: if the window counted, that is undone.
    fn lose(&mut self, one: Travelling) {
        let (process, leftover) = match one {
            Travelling::Call { process, .. } => (process, None),
            Travelling::Reply { process, count, .. } => (
                process,
                Some(Leftover {
                    units: count.units,
                    at_ms: count.at_ms,
                }),
            ),
            Travelling::Return(leftover) => {
                return self.travelling.push(Travelling::Return(leftover));
            }
        };
        self.processes[process].leases.record_failed_lease(&key());
        self.travelling.extend(leftover.map(Travelling::Return));
    }

    fn refund(&mut self, unit: &Admitted) {
        let now_ms = self.clock_ms(unit.process);
        let leases = &self.processes[unit.process].leases;
        if !leases.refund(&key(), unit.at_ms, now_ms) {
            self.travelling.push(Travelling::Return(Leftover {
                units: 1,
                at_ms: unit.at_ms,
            }));
        }
    }

    /// No window, or no span of its length, has admitted more than the limit.
    fn check(&self) -> Result<(), TestCaseError> {
        match self.shared.algorithm {
            Algorithm::Fixed => {
                let mut windows = BTreeMap::new();
                for unit in &self.admitted {
                    *windows.entry(unit.at_ms).or_insert(0_u64) += 1;
                    let end_us = (unit.at_ms + WINDOW_MS) * 1_000;
                    prop_assert!(unit.us < end_us, "{} is after {end_us}", unit.us);
                }
                prop_assert!(windows.values().all(|count| *count <= self.limit));
            }
            Algorithm::Sliding => {
                let mut us: Vec<u64> = self.admitted.iter().map(|unit| unit.us).collect();
                us.sort_unstable();
                let limit = self.limit as usize;
                // The clock of the window is read in milliseconds, so a unit may count for one less.
                let shortest = us
                    .windows(limit + 1)
                    .map(|span| span[limit] - span[0])
                    .min();
                prop_assert!(shortest.is_none_or(|us| us > (WINDOW_MS - 1) * 1_000));
            }
        }
        Ok(())
    }

    /// Lets all leases end and all messages arrive. Then the window counts the admitted requests, and nothing else.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        self.now_us += lease_ms(WINDOW_MS) * 1_000;
        while let Some(one) = self.travelling.pop() {
            match one {
                Travelling::Return(_) => self.arrive(one),
                one => self.lose(one),
            }
            (0..PROCESSES).for_each(|process| self.happen(Happening::End(process)));
        }
        (0..PROCESSES).for_each(|process| self.happen(Happening::End(process)));
        self.travelling
            .drain(..)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|one| self.arrive(one));
        let now_ms = self.shared_ms();
        self.shared.drop_ended(now_ms);
        if !self.processes.iter().any(|process| process.has_been_killed) {
            let admitted = self.admitted.iter();
            let mut counting: Vec<u64> = admitted
                .map(|unit| unit.at_ms)
                .filter(|at_ms| at_ms + WINDOW_MS > now_ms)
                .collect();
            counting.sort_unstable();
            let units: Vec<u64> = self.shared.units.iter().copied().collect();
            prop_assert_eq!(units, counting);
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn in_any_order_of_events_no_window_admits_more_than_its_limit_and_nothing_is_lost_but_by_a_kill(
        happenings in happenings(),
        limit in prop_oneof![1 => 0..8_u64, 3 => 8..100_u64],
        ahead_us in any::<[u16; PROCESSES]>(),
        is_fixed in any::<bool>(),
        has_kills in any::<bool>(),
    ) {
        let algorithm = if is_fixed { Algorithm::Fixed } else { Algorithm::Sliding };
        let mut world = World::new(algorithm, limit, ahead_us.map(u64::from));
        for happening in happenings {
            if matches!(happening, Happening::Kill(_)) && !has_kills {
                continue;
            }
            if matches!(happening, Happening::Refund(_)) {
                world.check()?;
            }
            world.happen(happening);
        }
        world.settle()?;
        world.check()?;
    }
}
