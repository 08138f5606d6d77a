//! The calls of clients' sessions and of their agents, summed for a month.

use filters::ledger::usage_query::{BreakdownQuery, UsageGroup, UsageHours, UsageOrder};
use filters::ledger::{CallOutcome, EntryId, Funding, LedgerEntry, SessionNames};
use filters::money::Usd;

use super::super::ledger::{AgentOrigin, OldCalls, UsagePart, UsageScope};
use super::ledger::{ORG, entry, usd};
use super::*;

on_both!(
    sessions_and_agents_have_their_calls_and_costs,
    a_key_sees_the_sessions_of_its_own_calls,
    calls_of_two_processes_are_one_session,
    of_a_cut_hour_the_later_calls_of_sessions_count_or_all,
    an_hour_has_room_for_so_many_sessions_and_no_cost_is_lost,
    sessions_are_kept_for_a_month_and_deleted_in_steps,
    a_call_without_a_session_makes_no_statement,
);

const HOUR_MS: i64 = 3_600_000;
const NOW_HOUR: i64 = NOW_MS / HOUR_MS;

/// A call of a session: session, agent, and the agent that has asked that one.
fn of([session, agent, parent]: [&str; 3], call: LedgerEntry) -> LedgerEntry {
    let names = SessionNames {
        session: session.into(),
        agent: agent.into(),
        parent: parent.into(),
    };
    LedgerEntry {
        session: Some(Arc::new(names)),
        funding: Funding::Byok,
        ..call
    }
}

fn by_key(key: &str, mut call: LedgerEntry) -> LedgerEntry {
    call.owner.key_id = key.into();
    call
}

fn in_hour(hour: i64, call: LedgerEntry) -> LedgerEntry {
    LedgerEntry {
        at_ms: hour * HOUR_MS + 5,
        ..call
    }
}

/// As many calls as there are numbers, each of a session of its own.
fn many(numbers: std::ops::Range<u32>) -> impl Iterator<Item = LedgerEntry> {
    numbers.map(|n| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&(n + 1).to_be_bytes());
        LedgerEntry {
            id: EntryId(id),
            ..of([&format!("s-{n}"), "", ""], entry(0, "0.001"))
        }
    })
}

/// Session, agent and parent of a part, its calls and its cost.
type Told = (String, String, String, i64, Usd);

fn told(parts: Vec<UsagePart>) -> Vec<Told> {
    let parts = parts.into_iter().map(|part| {
        let (usage, origin) = (part.usage, part.origin);
        let (session, agent, parent) = match origin {
            Some(AgentOrigin { session, parent }) => (session, usage.name, parent),
            None => (usage.name, String::new(), String::new()),
        };
        (session, agent, parent, usage.requests, usage.cost)
    });
    parts.collect()
}

fn expected(parts: &[([&str; 3], i64, &str)]) -> Vec<Told> {
    let parts = parts.iter().map(|([session, agent, parent], count, cost)| {
        let [session, agent, parent] = [session, agent, parent].map(|name| (*name).to_owned());
        (session, agent, parent, *count, usd(cost))
    });
    parts.collect()
}

impl Fixture {
    /// The parts of all hours by cost.
    async fn by(&self, group: UsageGroup, key_id: Option<&str>) -> Vec<Told> {
        let scope = UsageScope {
            organization_id: ORG.into(),
            key_id: key_id.map(Into::into),
        };
        let asked = BreakdownQuery {
            hours: UsageHours {
                from: 0,
                until: 2 * NOW_HOUR,
            },
            group,
            order: UsageOrder::Cost,
            limit: 100,
            offset: 0,
        };
        told(self.store.usage_parts(&scope, asked).await.unwrap())
    }

    async fn since(&self, since_ms: i64, group: UsageGroup) -> Vec<Told> {
        let usage = self.store.usage_by_session("acme", since_ms, group).await;
        told(usage.unwrap())
    }

    async fn session_rows(&self) -> i64 {
        let sql = "SELECT COUNT(*) FROM session_hours";
        let rows = sqlx::query_scalar(sql).fetch_one(self.store.pool.unlimited());
        rows.await.unwrap()
    }
}

async fn sessions_and_agents_have_their_calls_and_costs(fixture: Fixture) {
    fixture.grant("1").await;
    let failed = LedgerEntry {
        outcome: CallOutcome::Failed,
        ..entry(6, "0")
    };
    let calls = vec![
        of(["s", "", ""], entry(1, "0.1")),
        of(["s", "a", ""], entry(2, "0.2")),
        of(["s", "b", "a"], in_hour(NOW_HOUR, entry(3, "0.5"))),
        of(["s", "b", "a"], in_hour(NOW_HOUR + 1, entry(4, "0.25"))),
        of(["t", "a", "z"], entry(5, "0.01")),
        of(["s", "c", ""], failed),
        entry(7, "0.4"),
    ];
    fixture.post("x", calls).await;
    let agents = [
        (["s", "", ""], 1, "0.1"),
        (["s", "a", ""], 1, "0.2"),
        (["s", "b", "a"], 2, "0.75"),
        (["t", "a", "z"], 1, "0.01"),
    ];
    let sessions = expected(&[(["s", "", ""], 4, "1.05"), (["t", "", ""], 1, "0.01")]);
    let by_name = expected(&agents);
    assert_eq!(fixture.since(0, UsageGroup::Agent).await, by_name);
    assert_eq!(fixture.since(0, UsageGroup::Session).await, sessions);
    assert_eq!(fixture.by(UsageGroup::Session, None).await, sessions);
    let by_cost = [2, 1, 0, 3].map(|at: usize| by_name[at].clone());
    assert_eq!(fixture.by(UsageGroup::Agent, None).await, by_cost);
    // An agent that is said to have another parent is the same.
    let again = of(["s", "b", ""], entry(8, "0.25"));
    fixture.post("x", vec![again]).await;
    let agent = expected(&[(["s", "b", "a"], 3, "1")]).remove(0);
    assert_eq!(fixture.by(UsageGroup::Agent, None).await[0], agent);
    assert_eq!(fixture.since(0, UsageGroup::Agent).await[2], agent);
}

async fn a_key_sees_the_sessions_of_its_own_calls(fixture: Fixture) {
    fixture.grant("1").await;
    let calls = vec![
        by_key("key_1", of(["s", "", ""], entry(1, "0.1"))),
        by_key("key_2", of(["s", "", ""], entry(2, "0.2"))),
        by_key("key_2", of(["t", "", ""], entry(3, "0.01"))),
    ];
    fixture.post("x", calls).await;
    let own = fixture.by(UsageGroup::Session, Some("key_1")).await;
    assert_eq!(own, expected(&[(["s", "", ""], 1, "0.1")]));
    let all = fixture.by(UsageGroup::Agent, None).await;
    let both = [(["s", "", ""], 2, "0.3"), (["t", "", ""], 1, "0.01")];
    assert_eq!(all, expected(&both));
}

async fn calls_of_two_processes_are_one_session(fixture: Fixture) {
    fixture.grant("1").await;
    fixture
        .post("x", vec![of(["s", "a", ""], entry(1, "0.1"))])
        .await;
    let second = vec![of(["s", "a", ""], entry(2, "0.2"))];
    fixture.post("y", second.clone()).await;
    // A journal that comes back adds nothing.
    fixture.post("y", second).await;
    let sum = expected(&[(["s", "a", ""], 2, "0.3")]);
    assert_eq!(fixture.by(UsageGroup::Agent, None).await, sum);
}

async fn of_a_cut_hour_the_later_calls_of_sessions_count_or_all(fixture: Fixture) {
    fixture.grant("1").await;
    let at = |later_ms, call| LedgerEntry {
        at_ms: NOW_MS + later_ms,
        ..call
    };
    let calls = vec![
        at(5, of(["s", "a", ""], entry(1, "0.1"))),
        at(10, of(["s", "a", "b"], entry(2, "0.2"))),
        at(11, entry(3, "0.1")),
        at(HOUR_MS, of(["t", "", ""], entry(4, "0.1"))),
    ];
    fixture.post("x", calls).await;
    let next = (["t", "", ""], 1, "0.1");
    let whole = expected(&[(["s", "a", "b"], 2, "0.3"), next]);
    assert_eq!(fixture.since(NOW_MS + 1, UsageGroup::Agent).await, whole);
    let part = expected(&[(["s", "a", "b"], 1, "0.2"), next]);
    assert_eq!(fixture.since(NOW_MS + 6, UsageGroup::Agent).await, part);
    let sessions = expected(&[(["s", "", ""], 1, "0.2"), next]);
    assert_eq!(
        fixture.since(NOW_MS + 6, UsageGroup::Session).await,
        sessions
    );
    fixture.store.forget_journal("x").await.unwrap();
    let old = OldCalls {
        before_ms: NOW_MS + 2 * HOUR_MS,
        owner: "other",
        own_before_ms: NOW_MS + 2 * HOUR_MS,
    };
    fixture.store.delete_old_calls(&old).await.unwrap();
    assert_eq!(fixture.since(NOW_MS + 6, UsageGroup::Agent).await, whole);
}

async fn an_hour_has_room_for_so_many_sessions_and_no_cost_is_lost(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.post("x", many(0..9_999).collect()).await;
    assert_eq!(fixture.session_rows().await, 9_999);
    // Two are known, one finds the last room, and two of two keys find none.
    let known = [
        of(["s-3", "", ""], entry(1, "1")),
        of(["s-4", "", ""], entry(2, "2")),
    ];
    let new = [
        of(["new", "", ""], entry(3, "4")),
        by_key("key_2", of(["other", "a", "b"], entry(4, "8"))),
        by_key("key_2", of(["other", "c", ""], entry(5, "16"))),
    ];
    let later = in_hour(NOW_HOUR + 1, of(["later", "", ""], entry(6, "32")));
    let mut elsewhere = of(["elsewhere", "", ""], entry(7, "64"));
    elsewhere.owner.organization_id = "org_2".into();
    let calls = known.into_iter().chain(new).chain([later, elsewhere]);
    fixture.post("x", calls.collect()).await;
    assert_eq!(fixture.session_rows().await, 9_999 + 1 + 1 + 2);
    let by_cost = fixture.by(UsageGroup::Agent, None).await;
    let greatest = [
        (["later", "", ""], 1, "32"),
        (["", "", ""], 2, "24"),
        (["new", "", ""], 1, "4"),
        (["s-4", "", ""], 2, "2.001"),
        (["s-3", "", ""], 2, "1.001"),
        (["s-0", "", ""], 1, "0.001"),
    ];
    assert_eq!(by_cost[..6], expected(&greatest));
    let own = fixture.by(UsageGroup::Session, Some("key_2")).await;
    assert_eq!(own, expected(&[(["", "", ""], 2, "24")]));
    // A full hour takes no row more, however many come.
    fixture.post("x", many(20_000..20_050).collect()).await;
    assert_eq!(fixture.session_rows().await, 10_000 + 2 + 2);
    let all = fixture.since(0, UsageGroup::Agent).await;
    let cost = all.iter().fold(Usd::ZERO, |sum, part| sum.plus(part.4));
    assert_eq!(cost, usd("73.049"));
}

async fn sessions_are_kept_for_a_month_and_deleted_in_steps(fixture: Fixture) {
    fixture.grant("1").await;
    let hour = |day: i64| NOW_HOUR - day * 24;
    let days = (0..40).zip(many(0..40));
    let calls = days.map(|(day, call)| in_hour(hour(day), call));
    fixture.post("x", calls.collect()).await;
    let of_old_day = many(100..2_600).map(|call| in_hour(hour(40), call));
    fixture.post("x", of_old_day.collect()).await;
    assert_eq!(fixture.session_rows().await, 2_540);
    let delete = async || {
        let deleted = fixture.store.delete_old_named_hours(hour(30)).await;
        (deleted.unwrap(), fixture.session_rows().await)
    };
    assert_eq!(delete().await, (true, 540));
    assert_eq!(delete().await, (false, 31));
    assert_eq!(delete().await, (false, 31));
    let kept = fixture.by(UsageGroup::Session, None).await;
    assert_eq!(kept.len(), 31);
    // All else is as it was.
    let all = fixture.store.usage("acme", 0, None).await.unwrap();
    assert_eq!(all[0].requests, 2_540);
}

async fn a_call_without_a_session_makes_no_statement(fixture: Fixture) {
    fixture.grant("1").await;
    let drop = sqlx::query("DROP TABLE session_hours").execute(fixture.store.pool.unlimited());
    drop.await.unwrap();
    fixture.post("x", vec![entry(1, "0.1")]).await;
    assert_eq!(fixture.account().await.settled, usd("0.1"));
    let of_session = of(["s", "", ""], entry(2, "0.1"));
    let refused = fixture.store.post("x", &[of_session], true).await;
    assert!(refused.is_err(), "the table is gone");
}
