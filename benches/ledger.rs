//! What reserving and settling cost without files and sockets: an organization's account alone, and with the records of
//! the journal put into bytes.
//!
//! `cargo bench --bench ledger`. It fails over 2 us.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot run has to stop"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filters::ledger::journal::{Record, Reserve, put};
use filters::ledger::{CallOwner, CostParts, Funding, LedgerEntry, UsageRecord};
use filters::money::Usd;
use filters::money::allowance::{KeyLimits, SpendingBounds};
use weirgate::ledger::account::{Hold, OrganizationAccount, Spent};

const TIMES: u32 = 200_000;
const MOST: Duration = Duration::from_micros(2);

fn main() {
    let account = OrganizationAccount::new("org_0190c3a2-0000-7000-8000-000000000000");
    account.lend(Usd::parse("1000000").unwrap());
    account.load(&[], |_| {});
    let key: Arc<str> = "key_0190c3a2-0000-7000-8000-000000000000".into();
    let want = Hold {
        key_id: &key,
        member_id: None,
        funding: Funding::Credit,
        amount: Usd::parse("0.0421").unwrap(),
        is_premium: false,
    };
    let limits = KeyLimits {
        lifetime: Some(Usd::parse("1000000").unwrap()),
        ..KeyLimits::default()
    };
    let bounded = SpendingBounds {
        key: limits,
        ..SpendingBounds::default()
    };
    let now_ms = 1_800_000_000_000;
    let cost = Spent {
        cost: Usd::parse("0.0035").unwrap(),
        is_own: false,
        is_premium: false,
        at_ms: now_ms,
    };
    for (name, bounds) in [
        ("unlimited", SpendingBounds::default()),
        ("limited", bounded),
    ] {
        let took = time(|| {
            account.reserve(&want, &bounds, 0, now_ms).unwrap();
            black_box(account.settle(&want, &cost, |charge| charge));
        });
        println!("reserve and settle, a key {name}: {took:?}");
        assert!(took < MOST, "more than {MOST:?}");
    }
    let (reserve, settle) = records();
    let mut bytes = Vec::with_capacity(4096);
    let took = time(|| {
        account.reserve(&want, &bounded, 0, now_ms).unwrap();
        black_box(account.settle(&want, &cost, |charge| charge));
        bytes.clear();
        put(&reserve, &mut bytes);
        put(&settle, &mut bytes);
        black_box(&bytes);
    });
    println!(
        "the same with both records in bytes ({}): {took:?}",
        bytes.len()
    );
    assert!(took < MOST, "more than {MOST:?}");
}

/// The best of some rounds, for one.
fn time(mut work: impl FnMut()) -> Duration {
    let round = |work: &mut dyn FnMut()| {
        let begun = Instant::now();
        (0..TIMES).for_each(|_| work());
        begun.elapsed() / TIMES
    };
    (0..5).map(|_| round(&mut work)).min().unwrap()
}

fn records() -> (Record, Record) {
    let who = CallOwner {
        organization_id: "org_0190c3a2-0000-7000-8000-000000000000".into(),
        project_id: "proj_0190c3a2-0000-7000-8000-000000000000".into(),
        key_id: "key_0190c3a2-0000-7000-8000-000000000000".into(),
        member_id: None,
        request_id: "0190c3a2000070008000000000000000".into(),
    };
    let usd = Usd::parse("0.0035").unwrap();
    let entry = LedgerEntry {
        who: who.clone(),
        taken: UsageRecord {
            model: "gpt-5-mini".into(),
            provider: "openai".into(),
            upstream_model: "gpt-5-mini-2026-01-01".into(),
            prompt_tokens: 1000,
            completion_tokens: 100,
            cost: Some(CostParts {
                total: usd,
                input: usd,
                ..CostParts::default()
            }),
            ..UsageRecord::default()
        },
        charged: usd,
        ..LedgerEntry::default()
    };
    let reserve = Reserve {
        who,
        ..Reserve::default()
    };
    (Record::Reserve(reserve), Record::Settle(Box::new(entry)))
}
