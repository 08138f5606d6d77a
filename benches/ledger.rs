//! Measures reserving and settling: an account alone, and with the journal's record written to its file. Then posting: the
//! CPU time of all threads and the bytes of SQLite's file, by call.
//!
//! `cargo bench --bench ledger` fails above 2 us, above 5 us with two budgets, and above 6 us with the journal.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench that cannot run has to stop"
)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filters::ledger::{
    CallOwner, CostParts, EntryId, Funding, LedgerEntry, LimitState, Room, UsageRecord,
};
use filters::money::Usd;
use filters::money::allowance::{KeyLimits, LimitReached, SpendingBounds};
use filters::money::budgets::{Budget, BudgetNames, BudgetTerms};
use weirgate::config::Durability;
use weirgate::ledger::account::{Hold, LimitedCall, OrganizationAccount, Spent};
use weirgate::ledger::journal::{Journal, MAX_SEGMENT_AGE};
use weirgate::store::{Store, StoreSettings, StoreUrl};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ITERATIONS: u32 = 200_000;
const NOW_MS: i64 = 1_800_000_000_000;
const MAX_DURATION: Duration = Duration::from_micros(2);
const MAX_BUDGET_DURATION: Duration = Duration::from_micros(5);
const MAX_JOURNAL_DURATION: Duration = Duration::from_micros(6);

fn main() {
    let account = OrganizationAccount::new("org_0190c3a2-0000-7000-8000-000000000000");
    account.add_lease(Usd::parse("1000000").unwrap());
    let key: Arc<str> = "key_0190c3a2-0000-7000-8000-000000000000".into();
    let hold = Hold {
        key_id: &key,
        member_id: None,
        funding: Funding::Credit,
        amount: Usd::parse("0.0421").unwrap(),
        is_premium: false,
        budgets: &[],
    };
    let limits = KeyLimits {
        lifetime: Some(Usd::parse("1000000").unwrap()),
        ..KeyLimits::default()
    };
    let bounded = SpendingBounds {
        key: limits,
        ..SpendingBounds::default()
    };
    let cost = Spent {
        cost: Usd::parse("0.0035").unwrap(),
        funding: Funding::Credit,
        is_premium: false,
        is_stored: true,
    };
    lease_limits(&account, &call(hold, &bounded));
    for (name, bounds) in [
        ("unlimited", SpendingBounds::default()),
        ("limited", bounded),
    ] {
        let took = time(|| {
            account.reserve(&call(hold, &bounds)).unwrap();
            black_box(account.settle(&hold, &cost, |charge| charge));
        });
        println!("reserve and settle, a key {name}: {took:?}");
        assert!(took < MAX_DURATION, "more than {MAX_DURATION:?}");
    }
    time_budgets(&account, hold, &cost);
    let folder = tempfile::tempdir().unwrap();
    let owner = [1; 16];
    let journal = Journal::start(folder.path(), owner, Durability::Process, MAX_SEGMENT_AGE);
    let (journal, entry) = (journal.unwrap(), entry());
    let took = time(|| {
        account.reserve(&call(hold, &bounded)).unwrap();
        let end = account.settle(&hold, &cost, |_| journal.end(journal.lane(), &entry));
        black_box(end.write(false));
    });
    println!("the same with the journal: {took:?}");
    assert!(
        took < MAX_JOURNAL_DURATION,
        "more than {MAX_JOURNAL_DURATION:?}"
    );
    drop(journal);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(post(folder.path()));
}

/// Measures a call under the budgets of its session and its agent: their names are made, they are reserved and settled.
fn time_budgets(account: &OrganizationAccount, hold: Hold<'_>, cost: &Spent) {
    let lasting = KeyLimits {
        lifetime: Some(Usd::parse("1000000").unwrap()),
        ..KeyLimits::default()
    };
    let terms = BudgetTerms {
        session: lasting,
        agent: lasting,
        ..BudgetTerms::default()
    };
    let names = BudgetNames {
        session: "0190c3a2-0000-7000-8000-000000000000",
        agent: "0190c3a2-0000-7000-8000-000000000001",
        tags: &[],
    };
    let key = &**hold.key_id;
    let budgets = || Budget::of_call([(key, Some(&terms)), ("", None)], key, names);
    let (first, bounds) = (budgets(), SpendingBounds::default());
    let held = Hold {
        budgets: &first,
        ..hold
    };
    lease_limits(account, &call(held, &bounds));
    let took = time(|| {
        let budgets = budgets();
        let held = Hold {
            budgets: &budgets,
            ..hold
        };
        account.reserve(&call(held, &bounds)).unwrap();
        black_box(account.settle(&held, cost, |charge| charge));
    });
    println!("the same under the budgets of a session and an agent: {took:?}");
    assert!(
        took < MAX_BUDGET_DURATION,
        "more than {MAX_BUDGET_DURATION:?}"
    );
}

fn call<'a>(hold: Hold<'a>, bounds: &'a SpendingBounds) -> LimitedCall<'a> {
    LimitedCall {
        hold,
        bounds,
        plan_since_ms: 0,
        now_ms: NOW_MS,
        needs_lease: true,
    }
}

/// Leases the limits of a call, of which a million dollars are left.
fn lease_limits(account: &OrganizationAccount, call: &LimitedCall<'_>) {
    let left = Usd::parse("1000000").unwrap();
    let state = LimitState {
        room: Some(Room {
            left,
            reached: LimitReached::Key(left),
            resets_ms: i64::MAX,
        }),
        processes: 1,
        ..LimitState::default()
    };
    let wanted = account.missing_limits(call);
    let requests = account.offer_limits(&wanted, call.hold.amount, (1, NOW_MS), |_| false);
    let requests = requests.unwrap_or_default();
    let grants = requests.iter().map(|request| request.offer.decide(&state));
    account.apply_limits(&requests, &grants.collect::<Vec<_>>());
}

/// Posts batches of 20 keys of 5 organizations, and of as many organizations as calls.
async fn post(folder: &Path) {
    let settings = StoreSettings {
        url: StoreUrl::parse(&format!("sqlite:{}/post.db", folder.display()))
            .ok()
            .unwrap(),
        state_dir: folder.to_owned(),
        secret: None,
    };
    let store = Store::open(&settings).await.unwrap().store;
    store.register_process("bench").await.unwrap();
    let bytes = || std::fs::metadata(folder.join("post.db")).unwrap().len();
    let mut number = 0;
    for (batch, organizations, keys, rounds) in [
        (600, 5, 20, 100),
        (4096, 5, 20, 20),
        (5, 1, 2, 200),
        (4096, 4096, 4096, 2),
    ] {
        let (mut cpu, before) = (Duration::ZERO, bytes());
        for _ in 0..rounds {
            let entries: Vec<LedgerEntry> = (0..batch)
                .map(|_| {
                    number += 1;
                    posted_entry(number, organizations, keys)
                })
                .collect();
            let started = cpu_time();
            store.post("bench", &entries, false).await.unwrap();
            cpu += cpu_time() - started;
        }
        let calls = batch * rounds;
        println!(
            "posting {batch} calls of {keys} keys: {:.2} us CPU and {:.1} bytes a call",
            cpu.as_secs_f64() * 1e6 / calls as f64,
            (bytes() - before) as f64 / calls as f64,
        );
    }
}

/// Returns a call of one of so many keys, with figures that compress as badly as those of real calls.
fn posted_entry(number: u64, organizations: u64, keys: u64) -> LedgerEntry {
    let at_ms = 1_800_000_000_000 + i64::try_from(number).unwrap() / 3;
    let mut id = [0; 16];
    fastrand::fill(&mut id);
    let began = u64::try_from(at_ms - 150).unwrap() << 16;
    id[..6].copy_from_slice(&began.to_be_bytes()[..6]);
    let mut entry = entry();
    let owner = |kind: &str, n: u64| format!("{kind}_0190c3a2-0000-7000-8000-{n:012x}").into();
    entry.owner.organization_id = owner("org", number % organizations);
    entry.owner.project_id = owner("proj", number % organizations);
    entry.owner.key_id = owner("key", number % keys);
    entry.owner.request_id = format!("{:032x}", fastrand::u128(..)).into();
    (entry.id, entry.at_ms, entry.funding) = (EntryId(id), at_ms, Funding::Credit);
    entry.usage.model = ["gpt-5-mini", "gpt-5", "claude-sonnet-4-5"][number as usize % 3].into();
    entry.usage.prompt_tokens = fastrand::u64(100..3000);
    entry.usage.completion_tokens = fastrand::u64(20..500);
    entry.duration_ms = fastrand::u64(200..4000);
    let total = Usd::from_units(fastrand::i128(1..50_000) * 100_000_000_000);
    entry.usage.cost = Some(CostParts {
        total,
        input: total,
        ..CostParts::default()
    });
    entry.charged = total;
    entry
}

/// Returns the CPU time of all threads of this process.
fn cpu_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let on_cpu = |thread: std::fs::DirEntry| {
        let times = std::fs::read_to_string(thread.path().join("schedstat"));
        // A thread may end meanwhile.
        times.map_or(0, |times| times.split(' ').next().unwrap().parse().unwrap())
    };
    Duration::from_nanos(threads.map(|thread| on_cpu(thread.unwrap())).sum())
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
