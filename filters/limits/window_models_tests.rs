#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use loom::sync::Arc;
use loom::thread;

use super::super::key::{RowId, Subject};
use super::*;

const WINDOW_MS: u64 = 10;

fn key() -> WindowKey {
    WindowKey {
        subject: Subject::Named("t".into()),
        row: RowId::from_name("POST /content/v2"),
    }
}

/// Runs the threads in every order of their steps. Each thread reads its clocks before it requests. Calls `holds` with
/// the windows and their admissions for each order.
fn every_order(limit: u64, threads: &'static [&'static [u64]], holds: fn(&BTreeMap<u64, u64>)) {
    loom::model(move || {
        let windows = Arc::new(Windows::new(Algorithm::Fixed, WINDOW_MS));
        let spawn = |clocks: &'static [u64]| {
            let windows = Arc::clone(&windows);
            thread::spawn(move || {
                let verdicts = clocks.iter().map(|now| windows.admit(&key(), limit, *now));
                verdicts.collect::<Vec<_>>()
            })
        };
        let handles: Vec<_> = threads.iter().map(|clocks| spawn(clocks)).collect();
        let mut admitted = BTreeMap::new();
        for verdict in handles
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
        {
            *admitted.entry(verdict.refund_token.0).or_default() += u64::from(verdict.is_allowed);
        }
        assert!(
            admitted.values().all(|count| *count <= limit),
            "{admitted:?}"
        );
        holds(&admitted);
    });
}

#[test]
fn in_every_order_one_window_admits_its_limit() {
    every_order(3, &[&[0, 0], &[0, 1], &[1, 9]], |admitted| {
        assert_eq!(admitted.values().sum::<u64>(), 3);
    });
}

#[test]
fn in_every_order_no_window_admits_more_over_an_edge() {
    every_order(1, &[&[0, 9], &[9, 10], &[10, 11]], |admitted| {
        assert!(
            (1..=2).contains(&admitted.values().sum::<u64>()),
            "{admitted:?}"
        );
    });
}

#[test]
fn in_every_order_a_refund_frees_one_unit_and_a_sweep_none() {
    loom::model(|| {
        let windows = Arc::new(Windows::new(Algorithm::Fixed, WINDOW_MS));
        let first = windows.admit(&key(), 1, 0);
        let refund = {
            let windows = Arc::clone(&windows);
            thread::spawn(move || windows.refund(&key(), first.refund_token, 1))
        };
        let sweep = {
            let windows = Arc::clone(&windows);
            thread::spawn(move || windows.sweep(0, 9))
        };
        let second = windows.admit(&key(), 1, 2).is_allowed;
        assert!(refund.join().unwrap());
        sweep.join().unwrap();
        let third = windows.admit(&key(), 1, 3).is_allowed;
        assert!(first.is_allowed && second != third);
    });
}

#[test]
fn in_every_order_a_late_refund_leaves_the_next_window_whole() {
    loom::model(|| {
        let windows = Arc::new(Windows::new(Algorithm::Fixed, WINDOW_MS));
        let first = windows.admit(&key(), 1, 0);
        let refund = {
            let windows = Arc::clone(&windows);
            thread::spawn(move || windows.refund(&key(), first.refund_token, 9))
        };
        let sweep = {
            let windows = Arc::clone(&windows);
            thread::spawn(move || windows.sweep(0, 10))
        };
        let next = windows.admit(&key(), 1, 10).is_allowed;
        refund.join().unwrap();
        sweep.join().unwrap();
        assert!(next && !windows.admit(&key(), 1, 11).is_allowed);
    });
}
