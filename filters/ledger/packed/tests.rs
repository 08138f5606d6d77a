#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use proptest::prelude::*;

use super::*;
use crate::money::UnitCounts;

fn entry(n: u64) -> LedgerEntry {
    let usd = |units| Usd::from_units(i128::from(n) * units);
    LedgerEntry {
        id: EntryId([n as u8; 16]),
        at_ms: 1_800_000_000_000 + n as i64,
        owner: CallOwner {
            organization_id: "org_0190c3a2-0000-7000-8000-000000000001".into(),
            project_id: "proj_0190c3a2-0000-7000-8000-000000000002".into(),
            key_id: format!("key_0190c3a2-0000-7000-8000-{:012x}", n % 3)
                .as_str()
                .into(),
            member_id: (n % 2 == 1).then(|| "ada".into()),
            request_id: format!("{n:032x}").as_str().into(),
        },
        funding: FUNDINGS[n as usize % 4],
        usage: UsageRecord {
            model: "gpt-5-mini".into(),
            provider: "openai".into(),
            upstream_model: "gpt-5-mini-2026-01-01".into(),
            region: (n % 5 == 1).then(|| "eu".into()),
            prompt_tokens: 1000 + n,
            completion_tokens: 100,
            cached_tokens: n,
            cost: (!n.is_multiple_of(7)).then(|| CostParts {
                total: usd(3_500_000_000_000_000),
                input: usd(2_500_000_000_000_000),
                output: usd(1_000_000_000_000_000),
                ..CostParts::default()
            }),
            is_estimated: n.is_multiple_of(2),
            attempts: 1,
            ..UsageRecord::default()
        },
        outcome: OUTCOMES[n as usize / 4 % 4],
        reserved: usd(42_100_000_000_000_000),
        charged: usd(3_500_000_000_000_000),
        duration_ms: 812,
        first_event_ms: n.is_multiple_of(3).then_some(n),
        is_stream: n.is_multiple_of(3),
        ..LedgerEntry::default()
    }
}

/// A call of an experiment of three variations, every fifth of which failed.
fn of_experiment(n: u64) -> LedgerEntry {
    let experiment = ExperimentNames {
        flag: "models".into(),
        rule: "models_test".into(),
        variation: format!("v{}", n % 3).into(),
    };
    LedgerEntry {
        experiment: Some(Arc::new(experiment)),
        outcome: OUTCOMES[n as usize % 5],
        ..entry(n)
    }
}

/// A call of one of two sessions, by the session itself or by one of two agents.
fn of_session(n: u64) -> LedgerEntry {
    let session = SessionNames {
        session: format!("0190c3a2-0000-7000-8000-{:012x}", n % 2).into(),
        agent: ["", "a-1", "a-2"][n as usize % 3].into(),
        parent: ["", "", "a-1"][n as usize % 3].into(),
    };
    LedgerEntry {
        session: Some(Arc::new(session)),
        ..entry(n)
    }
}

fn pack_all(entries: &[LedgerEntry]) -> PackedCalls {
    pack(entries.iter().map(|entry| {
        let (charged, shortfall) = (entry.charged, entry.shortfall);
        (entry, Charge { charged, shortfall })
    }))
}

fn unpack_all(packed: &PackedCalls) -> Vec<LedgerEntry> {
    unpack(&packed.ids, &packed.calls, |_| true).unwrap()
}

#[test]
fn packed_calls_are_read_back() {
    let entries: Vec<_> = (0..200).map(entry).collect();
    assert_eq!(unpack_all(&pack_all(&entries)), entries);
}

#[test]
fn calls_of_experiments_are_read_back_and_others_are_packed_as_ever() {
    let plain: Vec<_> = (0..200).map(entry).collect();
    assert_eq!(pack_all(&plain).calls[0], VERSION);
    let mixed: Vec<_> = (0..200)
        .map(|n| {
            if n % 4 == 0 {
                of_experiment(n)
            } else {
                entry(n)
            }
        })
        .collect();
    let packed = pack_all(&mixed);
    assert_eq!(packed.calls[0], EXTENDED_VERSION);
    assert_eq!(unpack_all(&packed), mixed);
    // The first call of each variation names it.
    let of_experiments: Vec<_> = (0..200).map(of_experiment).collect();
    let (with, without) = (pack_all(&of_experiments), pack_all(&plain));
    let more = with.calls.len() - without.calls.len();
    assert!(more <= 200 * 4 + 3 * 21, "{more}");
    // Another reader's callers are skipped, with the names that they bring.
    let key = &of_experiments[1].owner.key_id;
    let read = unpack(&with.ids, &with.calls, |owner| owner.key_id == *key).unwrap();
    assert!(read.iter().all(|call| call.owner.key_id == *key));
    assert_eq!(read[0], of_experiments[1]);
}

#[test]
fn calls_of_sessions_are_read_back_and_take_a_few_bytes_more() {
    let of_sessions: Vec<_> = (0..200).map(of_session).collect();
    let plain: Vec<_> = (0..200).map(entry).collect();
    let packed = pack_all(&of_sessions);
    assert_eq!(packed.calls[0], SESSION_VERSION);
    assert_eq!(unpack_all(&packed), of_sessions);
    // The first call of each of the six names it.
    let more = packed.calls.len() - pack_all(&plain).calls.len();
    assert!(more <= 200 * 5 + 6 * 26, "{more}");
    let mixed: Vec<_> = (0..200)
        .map(|n| match n % 4 {
            0 => of_session(n),
            1 => of_experiment(n),
            2 => LedgerEntry {
                session: of_session(n).session,
                ..of_experiment(n)
            },
            _ => entry(n),
        })
        .collect();
    assert_eq!(unpack_all(&pack_all(&mixed)), mixed);
}

#[test]
fn calls_without_a_session_are_packed_as_earlier_versions_did() {
    let mut call = LedgerEntry {
        id: EntryId([7; 16]),
        at_ms: 5,
        owner: CallOwner {
            organization_id: "o".into(),
            project_id: "p".into(),
            key_id: "k".into(),
            member_id: None,
            request_id: "q".into(),
        },
        ..LedgerEntry::default()
    };
    call.usage.model = "m".into();
    call.usage.prompt_tokens = 3;
    let names = b"\0\x04o\x04p\x04k\0\0\x04m\0\0\0\x04q";
    // The kinds, the time, the mask of one count, and the count.
    let first = [&[1], &names[..], &[0, 10, 1, 3]].concat();
    // The same with the masks of the experiment and of the outcome, their numbers, and the names.
    let behind = b"\0\x0a\x81\x80\x80\x60\x03\x01\x01\x04f\x04r\x04v";
    let second = [&[2], &names[..], behind].concat();
    let with_experiment = LedgerEntry {
        experiment: Some(Arc::new(ExperimentNames {
            flag: "f".into(),
            rule: "r".into(),
            variation: "v".into(),
        })),
        outcome: CallOutcome::Failed,
        ..call.clone()
    };
    for (bytes, call) in [(first, call), (second, with_experiment)] {
        let packed = pack_all(std::slice::from_ref(&call));
        assert_eq!(packed.calls, bytes);
        assert_eq!(unpack(&[7; 16], &bytes, |_| true), Ok(vec![call]));
    }
}

#[test]
fn the_charge_of_the_store_replaces_that_of_the_journal() {
    let charge = Charge {
        charged: Usd::from_units(7),
        shortfall: Usd::from_units(5),
    };
    let packed = pack([(&entry(1), charge)].into_iter());
    let read = unpack_all(&packed).remove(0);
    assert_eq!(
        (read.charged, read.shortfall),
        (charge.charged, charge.shortfall)
    );
}

#[test]
fn a_call_takes_at_most_sixty_bytes() {
    let entries: Vec<_> = (0..600).map(entry).collect();
    let packed = pack_all(&entries);
    let bytes = (packed.ids.len() + packed.calls.len()) / entries.len();
    assert!(bytes <= 60, "{bytes}");
}

#[test]
fn calls_of_other_callers_are_skipped() {
    let entries: Vec<_> = (0..30).map(entry).collect();
    let packed = pack_all(&entries);
    let key = &entries[1].owner.key_id;
    let read = unpack(&packed.ids, &packed.calls, |owner| owner.key_id == *key).unwrap();
    let expected = entries.iter().filter(|entry| entry.owner.key_id == *key);
    assert_eq!(read, expected.cloned().collect::<Vec<_>>());
}

#[test]
fn calls_cut_at_any_byte_are_none() {
    for of in [of_experiment, of_session] {
        let packed = pack_all(&(0..5).map(of).collect::<Vec<_>>());
        for end in 0..packed.calls.len() {
            assert_eq!(
                unpack(&packed.ids, &packed.calls[..end], |_| true),
                Err(InvalidCalls),
                "{end}"
            );
        }
    }
}

proptest! {
    #[test]
    fn any_name_and_any_amount_is_read_back(
        name in "[a-f0-9_-]{0,80}|.{0,20}",
        units in prop_oneof![-1000..1000_i128, -10_i128.pow(35)..10_i128.pow(35)],
        zeros in 0..20_u32,
        at_ms: i64,
        tokens: u64,
    ) {
        let units = units.saturating_mul(10_i128.pow(zeros)).clamp(-10_i128.pow(30), 10_i128.pow(30));
        let amount = Usd::from_units(units);
        let mut entry = LedgerEntry { at_ms, ..LedgerEntry::default() };
        entry.owner.request_id = name.as_str().into();
        entry.owner.key_id = name.as_str().into();
        entry.usage.model = name.as_str().into();
        entry.usage.prompt_tokens = tokens;
        (entry.reserved, entry.shortfall, entry.charged) = (amount, amount, amount);
        entry.usage.cost = Some(CostParts { total: amount, input: amount, ..CostParts::default() });
        let entries = vec![entry.clone(), LedgerEntry { at_ms: 0, ..entry }];
        prop_assert_eq!(unpack_all(&pack_all(&entries)), entries);
    }

    #[test]
    fn no_bytes_panic(ids in prop::collection::vec(any::<u8>(), 0..64), calls in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut calls = calls;
        calls.insert(0, VERSION);
        _ = unpack(&ids, &calls, |_| true);
        for version in [EXTENDED_VERSION, SESSION_VERSION] {
            calls[0] = version;
            _ = unpack(&ids, &calls, |_| true);
        }
    }
}

#[test]
fn units_and_their_cost_are_read_back() {
    let mut read = entry(1);
    read.usage.units = UnitCounts::from_array([1, 2, 3, 4, 5, 600]);
    let cost = read.usage.cost.as_mut().unwrap();
    cost.units = Usd::from_units(4_000_000_000_000_000);
    cost.total = cost.total.plus(cost.units);
    let packed = pack_all(std::slice::from_ref(&read));
    assert_eq!(packed.calls[0], EXTENDED_VERSION);
    assert_eq!(unpack_all(&packed), [read]);
    let later = [&[SESSION_VERSION + 1][..], &packed.calls[1..]].concat();
    assert!(unpack(&packed.ids, &later, |_| true).is_err());
}
