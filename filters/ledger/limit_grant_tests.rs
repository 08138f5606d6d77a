use std::collections::HashMap;

use proptest::prelude::*;

use super::{HeldLimit, HeldLimits, LimitGrant, LimitOffer};
use crate::ledger::{LimitLease, LimitTerms};
use crate::money::Usd;

fn usd(units: i128) -> Usd {
    Usd::from_units(units)
}

fn held(rows: &[(&str, i128, i128)]) -> HeldLimits {
    let row = |(owner, amount, stored): &(&str, i128, i128)| {
        let held = HeldLimit {
            amount: usd(*amount),
            stored: usd(*stored),
        };
        ((*owner).to_owned(), held)
    };
    rows.iter().map(row).collect()
}

fn asks(room: i128, kept: i128, need: i128) -> LimitOffer {
    LimitOffer {
        room: usd(room),
        kept: usd(kept),
        need: Some(usd(need)),
        ..LimitOffer::default()
    }
}

#[test]
fn parts_are_large_while_much_is_left_and_small_near_the_end() {
    let left = |offer: LimitOffer, others, processes| {
        let seen = held(&[("b", others, 0)]);
        offer.decide("a", &seen, &seen, processes).left
    };
    assert_eq!(left(asks(1200, 0, 1), 0, 3), Some(usd(200)));
    assert_eq!(left(asks(1200, 0, 1), 1140, 3), Some(usd(10)));
    assert_eq!(left(asks(1200, 40, 1), 0, 3), Some(usd(40 + 1160 / 6)));
    // What a call needs, as far as there is so much.
    assert_eq!(left(asks(1200, 0, 30), 1140, 3), Some(usd(30)));
    assert_eq!(left(asks(1200, 0, 100), 1140, 3), Some(usd(60)));
    assert_eq!(left(asks(1200, 0, 1), 1200, 3), Some(usd(0)));
    assert_eq!(left(asks(1200, 0, 0), 1198, 3), Some(usd(2)));
    // A process that is alone takes all.
    assert_eq!(left(asks(1200, 0, 1), 0, 1), Some(usd(1200)));
}

#[test]
fn a_lowered_limit_shrinks_a_lease_and_the_store_holds_it_until_the_process_knows() {
    let none = HeldLimits::new();
    let mut offer = asks(30, 100, 1);
    offer.held = usd(5);
    let grant = offer.decide("a", &none, &none, 3);
    assert_eq!((grant.left, grant.amount), (Some(usd(30)), usd(105)));
    offer.room = usd(-10);
    assert_eq!(offer.decide("a", &none, &none, 3).left, Some(usd(-10)));
}

#[test]
fn what_others_have_stored_since_counts_against_the_room() {
    let seen = held(&[("a", 7, 9), ("b", 50, 10)]);
    let now = held(&[("a", 7, 9), ("b", 20, 45), ("c", 5, 3)]);
    // 100 − 25 of others − 38 that may be missing in the room.
    let grant = asks(100, 0, 100).decide("a", &seen, &now, 3);
    assert_eq!((grant.left, grant.others), (Some(usd(37)), usd(25)));
    // A view that leaves nothing for that reason is old.
    let grant = asks(60, 0, 1).decide("a", &seen, &now, 3);
    assert_eq!((grant.left, grant.amount), (None, Usd::ZERO));
    // So is one of a process that is gone, whatever it leaves.
    let gone = held(&[("a", 7, 9)]);
    assert_eq!(asks(100, 0, 1).decide("a", &seen, &gone, 3).left, None);
}

#[test]
fn what_is_returned_leaves_what_runs_or_is_not_stored() {
    let offer = LimitOffer {
        held: usd(12),
        ..LimitOffer::default()
    };
    let now = held(&[("a", 80, 0), ("b", 20, 0)]);
    let grant = offer.decide("a", &HeldLimits::new(), &now, 2);
    assert_eq!((grant.left, grant.amount), (Some(Usd::ZERO), usd(12)));
}

/// The number of processes, and the maximum cost of a call.
const PROCESSES: usize = 3;
const MAX_COST: i128 = 3;
const TERMS: fn(i128) -> LimitTerms = |limit| LimitTerms::Member(Usd::from_units(limit));

/// A process that spends on the limit.
#[derive(Default)]
struct Process {
    lease: LimitLease,
    running: Vec<i128>,
    unstored: i128,
    stored: i128,
    /// What others had stored when it read.
    others_stored: i128,
    seen: Option<HeldLimits>,
    has_read: bool,
    /// What it offered, and what the store answered.
    answer: Option<(LimitOffer, LimitGrant)>,
}

/// The store, and its processes.
struct World {
    limit: i128,
    rows: HeldLimits,
    processes: Vec<Process>,
}

impl World {
    fn new(limit: i128) -> World {
        World {
            limit,
            rows: HashMap::new(),
            processes: (0..PROCESSES).map(|_| Process::default()).collect(),
        }
    }

    fn reserved(&self, n: usize) -> i128 {
        self.processes[n].running.iter().sum()
    }

    fn known(&self, n: usize) -> i128 {
        let process = &self.processes[n];
        process.others_stored + process.stored + process.unstored
    }

    /// All that is spent or may be.
    fn total(&self) -> i128 {
        let spent = |of: &Process| of.stored + of.unstored + of.running.iter().sum::<i128>();
        self.processes.iter().map(spent).sum()
    }

    fn begin(&mut self, n: usize, amount: i128) -> bool {
        let terms = TERMS(self.limit);
        let process = &mut self.processes[n];
        let may = process.lease.is_of(&terms, 0) && process.lease.admits();
        if may {
            process.lease.reserve(usd(amount));
            process.running.push(amount);
        }
        may
    }

    fn end(&mut self, n: usize, cost: i128) {
        let process = &mut self.processes[n];
        if let Some(reserved) = process.running.pop() {
            let cost = cost.min(reserved);
            process.lease.reserve(usd(-reserved));
            process.lease.charge(usd(cost));
            process.unstored += cost;
        }
    }

    fn post(&mut self, n: usize) {
        let process = &mut self.processes[n];
        process.stored += std::mem::take(&mut process.unstored);
    }

    fn look(&mut self, n: usize) {
        self.processes[n].seen = Some(self.rows.clone());
        self.processes[n].has_read = false;
    }

    fn read(&mut self, n: usize) {
        let others = (0..PROCESSES).filter(|other| *other != n);
        let others = others.map(|other| self.processes[other].stored).sum();
        let process = &mut self.processes[n];
        process.others_stored = others;
        process.lease.forget_unstored();
        process.lease.add_unstored(usd(process.unstored));
        process.has_read = true;
    }

    /// Changes the lease in the store. The process does not know it yet.
    fn change(&mut self, n: usize, need: Option<i128>) {
        let (reserved, known) = (self.reserved(n), self.known(n));
        let process = &mut self.processes[n];
        // One change after another, and each from a view of its own.
        process.answer = None;
        let Some(seen) = process.seen.take().filter(|_| process.has_read) else {
            return;
        };
        let owner = n.to_string();
        let lease = &mut process.lease;
        lease.continue_from(seen.get(&owner).copied().unwrap_or_default().stored);
        let room = self.limit - known - reserved;
        let offer = lease.offer(usd(reserved), usd(room), need.map(usd));
        let grant = offer.decide(&owner, &seen, &self.rows, PROCESSES as i64);
        process.answer = need.map(|_| (offer, grant));
        let row = HeldLimit {
            amount: grant.amount,
            stored: offer.stored,
        };
        self.rows.insert(owner, row);
    }

    fn learn(&mut self, n: usize) {
        let (terms, process) = (TERMS(self.limit), &mut self.processes[n]);
        if let Some((offer, grant)) = process.answer.take()
            && let Some(left) = grant.left
        {
            process.lease.apply(&offer, left, terms, 0);
        }
    }

    /// Spends all that is left of the lease.
    fn use_up(&mut self, n: usize, amount: i128) {
        while self.begin(n, amount) {
            self.end(n, amount);
        }
        self.post(n);
    }

    fn renew(&mut self, n: usize, need: Option<i128>) {
        self.look(n);
        self.read(n);
        self.change(n, need);
        self.learn(n);
    }

    fn step(&mut self, kind: u8, n: usize, amount: i128) {
        match kind {
            0 | 1 => _ = self.begin(n, amount),
            2 => self.end(n, amount),
            3 => self.post(n),
            4 => self.use_up(n, amount),
            5 => self.look(n),
            6 => self.read(n),
            // Where the next change comes before it learns of this one, the answer was lost.
            7 => self.change(n, Some(amount * 20)),
            8 => self.learn(n),
            9 => self.change(n, None),
            10 => self.renew(n, None),
            _ => self.renew(n, Some(amount)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn no_order_of_steps_exceeds_a_limit_by_more_than_a_call_of_each_process_or_strands_a_part(
        limit in 0..80i128,
        steps in proptest::collection::vec((0..13u8, 0..PROCESSES, 1..=MAX_COST), 0..200),
    ) {
        let mut world = World::new(limit);
        for (kind, n, amount) in steps {
            world.step(kind, n, amount);
            let most = limit + PROCESSES as i128 * MAX_COST;
            prop_assert!(world.total() <= most, "{} of {limit}", world.total());
        }
        // All calls end, and two processes return what they do not need.
        for n in 0..PROCESSES {
            while !world.processes[n].running.is_empty() {
                world.end(n, 1);
            }
            world.post(n);
        }
        for n in 1..PROCESSES {
            world.renew(n, None);
        }
        // The other one can spend all that is left.
        let mut renewals = 0;
        while world.total() < limit {
            if world.begin(0, 1) {
                world.end(0, 1);
                world.post(0);
            } else {
                renewals += 1;
                prop_assert!(renewals < 200, "{} of {limit}", world.total());
                world.renew(0, Some(1));
            }
        }
        world.renew(0, Some(1));
        prop_assert!(!world.begin(0, 1));
    }
}

#[test]
fn a_limit_that_is_spent_whole_takes_few_changes() {
    let mut world = World::new(1_000_000_000);
    let (mut calls, mut changes) = (0_u64, 0_u64);
    while world.total() < world.limit {
        let n = (calls % PROCESSES as u64) as usize;
        if world.begin(n, 1_000) {
            world.end(n, 1_000);
            world.post(n);
            calls += 1;
        } else {
            changes += 1;
            world.renew(n, Some(1_000));
        }
        if changes > 10_000 {
            break;
        }
        if world.processes[n].lease.admits() {
            continue;
        }
        // Another process may hold what is left.
        for other in (0..PROCESSES).filter(|other| *other != n) {
            if world.total() + 10_000 > world.limit {
                world.renew(other, None);
                changes += 1;
            }
        }
    }
    assert_eq!(calls, 1_000_000);
    assert!(changes < 150, "{changes}");
}
