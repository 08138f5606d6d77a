//! Measures reserving and settling: an account alone, and with the journal's record written to its file.
//!
//! `cargo bench --bench ledger` fails above 2 us, and above 6 us with the journal.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot run has to stop"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filters::ledger::{CallOwner, CostParts, Funding, LedgerEntry, UsageRecord};
use filters::money::Usd;
use filters::money::allowance::{KeyLimits, SpendingBounds};
use weirgate::config::Durability;
use weirgate::ledger::account::{Hold, OrganizationAccount, Spent};
use weirgate::ledger::journal::{Journal, MAX_SEGMENT_AGE};

const ITERATIONS: u32 = 200_000;
const MAX_DURATION: Duration = Duration::from_micros(2);
const MAX_JOURNAL_DURATION: Duration = Duration::from_micros(6);

fn main() {
    let account = OrganizationAccount::new("org_0190c3a2-0000-7000-8000-000000000000");
    account.add_lease(Usd::parse("1000000").unwrap());
    account.load(&[], |_| {});
    let key: Arc<str> = "key_0190c3a2-0000-7000-8000-000000000000".into();
    let hold = Hold {
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
        is_byok: false,
        is_premium: false,
        at_ms: now_ms,
    };
    for (name, bounds) in [
        ("unlimited", SpendingBounds::default()),
        ("limited", bounded),
    ] {
        let took = time(|| {
            account.reserve(&hold, &bounds, 0, now_ms).unwrap();
            black_box(account.settle(&hold, &cost, |charge| charge));
        });
        println!("reserve and settle, a key {name}: {took:?}");
        assert!(took < MAX_DURATION, "more than {MAX_DURATION:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let owner = [1; 16];
    let journal = Journal::start(folder.path(), owner, Durability::Process, MAX_SEGMENT_AGE);
    let (journal, entry) = (journal.unwrap(), entry());
    let took = time(|| {
        account.reserve(&hold, &bounded, 0, now_ms).unwrap();
        let end = account.settle(&hold, &cost, |_| journal.end(journal.lane(), &entry));
        black_box(end.write(false));
    });
    println!("the same with the journal: {took:?}");
    assert!(
        took < MAX_JOURNAL_DURATION,
        "more than {MAX_JOURNAL_DURATION:?}"
    );
}

/// Returns the best of five rounds, per call.
fn time(mut work: impl FnMut()) -> Duration {
    let round = |work: &mut dyn FnMut()| {
        let started = Instant::now();
        (0..ITERATIONS).for_each(|_| work());
        started.elapsed() / ITERATIONS
    };
    (0..5).map(|_| round(&mut work)).min().unwrap()
}

fn entry() -> LedgerEntry {
    let owner = CallOwner {
        organization_id: "org_0190c3a2-0000-7000-8000-000000000000".into(),
        project_id: "proj_0190c3a2-0000-7000-8000-000000000000".into(),
        key_id: "key_0190c3a2-0000-7000-8000-000000000000".into(),
        member_id: None,
        request_id: "0190c3a2000070008000000000000000".into(),
    };
    let usd = Usd::parse("0.0035").unwrap();
    LedgerEntry {
        owner,
        usage: UsageRecord {
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
    }
}
