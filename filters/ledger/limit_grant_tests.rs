use proptest::prelude::*;

use super::{LimitGrant, LimitOffer, LimitState};
use crate::ledger::{LimitLease, LimitTerms, Room};
use crate::money::Usd;
use crate::money::allowance::{KeyLimits, LimitReached};
use crate::money::budgets::BudgetKind;

fn usd(units: i128) -> Usd {
    Usd::from_units(units)
}

fn room(left: i128) -> Option<Room> {
    Some(Room {
        left: usd(left),
        reached: LimitReached::Member(Usd::ZERO),
        resets_ms: i64::MAX,
    })
}

/// A process that has a lease of so much, of which all is left, and needs more.
fn asks(granted: i128, need: i128) -> LimitOffer {
    LimitOffer {
        granted: Some(usd(granted)),
        left: usd(granted),
        wanted: Some((TERMS(0), usd(need))),
        ..LimitOffer::default()
    }
}

fn state(left: i128, others: i128, processes: i64) -> LimitState {
    LimitState {
        others: usd(others),
        room: room(left),
        processes,
        ..LimitState::default()
    }
}

#[test]
fn parts_are_large_while_much_is_left_and_small_near_the_end() {
    let held = |offer: LimitOffer, others, processes| {
        let grant = offer.decide(&state(1200, others, processes));
        assert_eq!(grant.added.plus(offer.left), grant.held);
        grant.held
    };
    assert_eq!(held(asks(0, 1), 0, 3), usd(200));
    assert_eq!(held(asks(0, 1), 1140, 3), usd(10));
    assert_eq!(held(asks(40, 1), 0, 3), usd(40 + 1160 / 6));
    // What a call needs, as far as there is so much.
    assert_eq!(held(asks(0, 30), 1140, 3), usd(30));
    assert_eq!(held(asks(0, 100), 1140, 3), usd(60));
    assert_eq!(held(asks(0, 1), 1200, 3), usd(0));
    assert_eq!(held(asks(0, 0), 1198, 3), usd(2));
    // A process that is alone takes all.
    assert_eq!(held(asks(0, 1), 0, 1), usd(1200));
}

#[test]
fn a_lowered_limit_takes_back_what_is_left_and_no_more() {
    let mut offer = asks(105, 1);
    (offer.reserved, offer.left) = (usd(5), usd(100));
    let grant = offer.decide(&state(35, 0, 3));
    assert_eq!((grant.added, grant.held), (usd(-70), usd(35)));
    let grant = offer.decide(&state(-10, 0, 3));
    assert_eq!((grant.added, grant.held), (usd(-100), usd(5)));
}

#[test]
fn what_was_spent_beyond_a_lease_and_is_stored_is_owed_no_more() {
    let mut offer = asks(10, 1);
    offer.left = usd(0);
    let stored = LimitState {
        stored: usd(13),
        ..state(60, 0, 3)
    };
    let grant = offer.decide(&stored);
    assert_eq!((grant.held, grant.added), (usd(10), usd(13)));
}

#[test]
fn what_runs_without_a_lease_is_held_from_the_first_one_on() {
    let offer = LimitOffer {
        reserved: usd(7),
        wanted: Some((TERMS(0), usd(1))),
        ..LimitOffer::default()
    };
    let stored = LimitState {
        stored: usd(90),
        ..state(30, 0, 1)
    };
    let grant = offer.decide(&stored);
    assert_eq!((grant.added, grant.held), (usd(23), usd(30)));
    assert_eq!(grant.granted, usd(120));
}

/// The number of processes, and the maximum cost of a call.
const PROCESSES: usize = 3;
const MAX_COST: i128 = 3;
const TERMS: fn(i128) -> LimitTerms = |limit| LimitTerms::Member(Usd::from_units(limit));
/// The terms of a budget, which no call may exceed.
const BUDGET: fn(i128) -> LimitTerms = |limit| {
    let limits = KeyLimits {
        lifetime: Some(Usd::from_units(limit)),
        periods: [None; 4],
    };
    LimitTerms::Budget(BudgetKind::Session, limits)
};

/// A process that spends on the limit.
#[derive(Default)]
struct Process {
    lease: LimitLease,
    running: Vec<i128>,
    unstored: i128,
    /// What it offered, and what the store answered.
    answer: Option<(LimitOffer, LimitGrant)>,
}

/// What the store knows of a process.
#[derive(Clone, Copy, Default)]
struct Row {
    granted: i128,
    stored: i128,
}

/// The store, and its processes.
struct World {
    terms: LimitTerms,
    limit: i128,
    spent: i128,
    rows: [Row; PROCESSES],
    processes: Vec<Process>,
}

impl Row {
    fn held(self) -> i128 {
        (self.granted - self.stored).max(0)
    }
}

impl World {
    fn new(terms: fn(i128) -> LimitTerms, limit: i128) -> World {
        World {
            terms: terms(limit),
            limit,
            spent: 0,
            rows: [Row::default(); PROCESSES],
            processes: (0..PROCESSES).map(|_| Process::default()).collect(),
        }
    }

    fn reserved(&self, n: usize) -> i128 {
        self.processes[n].running.iter().sum()
    }

    /// All that is spent or may be.
    fn total(&self) -> i128 {
        let unstored = |n: usize| self.processes[n].unstored + self.reserved(n);
        self.spent + (0..PROCESSES).map(unstored).sum::<i128>()
    }

    fn begin(&mut self, n: usize, amount: i128) -> bool {
        let need = self.terms.need(usd(amount));
        let process = &mut self.processes[n];
        let may = process.lease.is_of(&self.terms, 0) && process.lease.admits(need);
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

    /// Ends a call that is not going to be stored.
    fn drop_call(&mut self, n: usize) {
        let process = &mut self.processes[n];
        if let Some(reserved) = process.running.pop() {
            process.lease.reserve(usd(-reserved));
            process.lease.charge_unstored(usd(reserved));
        }
    }

    fn post(&mut self, n: usize) {
        let cost = std::mem::take(&mut self.processes[n].unstored);
        self.spent += cost;
        self.rows[n].stored += cost;
    }

    /// Changes the lease in the store. The process does not know it yet.
    fn change(&mut self, n: usize, need: Option<i128>) {
        let reserved = self.reserved(n);
        let others = (0..PROCESSES).filter(|other| *other != n);
        let others: i128 = others.map(|other| self.rows[other].held()).sum();
        let wanted = need.map(|need| (self.terms, usd(need)));
        let offer = self.processes[n].lease.offer(usd(reserved), wanted, 0);
        let grant = offer.decide(&LimitState {
            stored: usd(self.rows[n].stored),
            others: usd(others),
            room: wanted.and_then(|_| room(self.limit - self.spent)),
            processes: PROCESSES as i64,
        });
        self.rows[n].granted = grant.granted.units();
        self.processes[n].answer = Some((offer, grant));
    }

    fn learn(&mut self, n: usize) {
        let process = &mut self.processes[n];
        if let Some((offer, grant)) = process.answer.take() {
            process.lease.apply(&offer, &grant);
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
        self.change(n, need);
        self.learn(n);
    }

    /// Ends all calls, returns what two processes do not need, and lets the third one spend all that is left.
    fn spend_what_is_left(&mut self) -> Result<(), TestCaseError> {
        for n in 0..PROCESSES {
            while !self.processes[n].running.is_empty() {
                self.end(n, 1);
            }
            self.post(n);
        }
        for n in 1..PROCESSES {
            self.renew(n, None);
        }
        let mut renewals = 0;
        while self.total() < self.limit {
            if self.begin(0, 1) {
                self.end(0, 1);
                self.post(0);
            } else {
                renewals += 1;
                prop_assert!(renewals < 200, "{} of {}", self.total(), self.limit);
                self.renew(0, Some(1));
            }
        }
        self.renew(0, Some(1));
        prop_assert!(!self.begin(0, 1));
        Ok(())
    }

    fn step(&mut self, kind: u8, n: usize, amount: i128) {
        match kind {
            0 | 1 => _ = self.begin(n, amount),
            2 => self.end(n, amount),
            3 => self.post(n),
            4 => self.use_up(n, amount),
            // Where the next change comes before it learns of this one, the answer was lost.
            5 => self.change(n, Some(amount * 20)),
            6 => self.learn(n),
            7 => self.change(n, None),
            8 => self.renew(n, None),
            9 => self.drop_call(n),
            _ => self.renew(n, Some(amount)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn no_order_of_steps_exceeds_a_limit_by_more_than_a_call_of_each_process_or_strands_a_part(
        limit in 0..80i128,
        steps in proptest::collection::vec((0..12u8, 0..PROCESSES, 1..=MAX_COST), 0..200),
    ) {
        let mut world = World::new(TERMS, limit);
        for (kind, n, amount) in steps {
            world.step(kind, n, amount);
            let most = limit + PROCESSES as i128 * MAX_COST;
            prop_assert!(world.total() <= most, "{} of {limit}", world.total());
        }
        world.spend_what_is_left()?;
    }

    #[test]
    fn no_order_of_steps_exceeds_a_budget_or_strands_a_part(
        limit in 0..80i128,
        steps in proptest::collection::vec((0..12u8, 0..PROCESSES, 1..=MAX_COST), 0..200),
    ) {
        let mut world = World::new(BUDGET, limit);
        for (kind, n, amount) in steps {
            world.step(kind, n, amount);
            prop_assert!(world.total() <= limit, "{} of {limit}", world.total());
        }
        world.spend_what_is_left()?;
    }
}

#[test]
fn calls_of_one_cost_use_up_a_budget_without_a_rest() {
    let mut world = World::new(BUDGET, 1_000);
    let mut calls = 0;
    for n in (0..PROCESSES).cycle().take(10_000) {
        if !world.begin(n, 10) {
            world.renew(n, Some(10));
            if !world.begin(n, 10) {
                continue;
            }
        }
        world.end(n, 10);
        world.post(n);
        calls += 1;
    }
    assert_eq!(calls, 100);
}

#[test]
fn a_limit_that_is_spent_whole_takes_few_changes() {
    let mut world = World::new(TERMS, 1_000_000_000);
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
        if world.processes[n].lease.admits(Usd::ZERO) {
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
