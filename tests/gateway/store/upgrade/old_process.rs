//! A process of the version before: it keeps its calls and leases with the statements that such a process sends.

use std::collections::HashMap;

use filters::ledger::packed::pack;
use filters::ledger::{Charge, EntryId, LedgerEntry};
use filters::money::Usd;
use serde_json::{Value, json};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Connection, Row};

use super::Version;

/// How long a process may be silent before it loses its leases, in milliseconds.
const LEASE_TTL_MS: i64 = 30_000;

/// The key that the process serves, and whose credit it spends.
#[derive(Clone)]
pub struct Spender {
    pub organization_id: String,
    pub key_id: String,
}

/// What it holds of the limit of its key.
#[derive(Default)]
struct LimitPart {
    left: Usd,
    stored: Usd,
}

/// The process.
pub struct OldProcess {
    connection: AnyConnection,
    statements: HashMap<String, String>,
    owner: String,
    spender: Spender,
    turn: i64,
    limit: LimitPart,
    last_id: u8,
}

fn usd(row: &AnyRow, column: &str) -> Usd {
    Usd::parse_signed(row.get(column)).unwrap()
}

fn cost_of(row: &AnyRow) -> Usd {
    let (nano, rest): (i64, i64) = (row.get("cost_nano"), row.get("cost_rest"));
    Usd::from_units(i128::from(nano) * 1_000_000_000 + i128::from(rest))
}

impl OldProcess {
    /// Starts and registers.
    pub async fn start(version: &Version, url: &str, spender: &Spender) -> Self {
        sqlx::any::install_default_drivers();
        let mut old = Self {
            connection: AnyConnection::connect(url).await.unwrap(),
            statements: version.statements(),
            owner: "0f".repeat(16),
            spender: spender.clone(),
            turn: 0,
            limit: LimitPart::default(),
            last_id: 0,
        };
        old.run("register", |sql| sql).await;
        old.run("drop_own_leases", |sql| sql).await;
        old
    }

    /// Runs a statement whose first parameter is this process. Returns the rows.
    async fn run<'q>(
        &'q mut self,
        name: &str,
        bind: impl FnOnce(Query<'q, Any, AnyArguments>) -> Query<'q, Any, AnyArguments>,
    ) -> Vec<AnyRow> {
        let sql = AssertSqlSafe(self.statements[name].clone());
        let query = bind(sqlx::query(sql).bind(&*self.owner));
        query.fetch_all(&mut self.connection).await.unwrap()
    }

    /// Runs a statement whose first parameter is rows.
    async fn run_rows(&mut self, name: &str, rows: &Value, owner: bool) -> Vec<AnyRow> {
        let sql = AssertSqlSafe(self.statements[name].clone());
        let mut query = sqlx::query(sql).bind(rows.to_string());
        if owner {
            query = query.bind(&*self.owner);
        }
        query.fetch_all(&mut self.connection).await.unwrap()
    }

    async fn begin(&mut self) {
        sqlx::query("BEGIN")
            .execute(&mut self.connection)
            .await
            .unwrap();
        if self.statements.contains_key("lock_process") {
            let found = self.run("lock_process", |sql| sql).await;
            assert_eq!(found.len(), 1, "it is registered");
        } else {
            self.run("heartbeat", |sql| sql).await;
        }
    }

    async fn commit(&mut self) {
        sqlx::query("COMMIT")
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    /// Tells that it lives. Returns whether it is registered.
    pub async fn heartbeat(&mut self) -> bool {
        let sql = AssertSqlSafe(self.statements["heartbeat"].clone());
        let done = sqlx::query(sql).bind(&*self.owner);
        done.execute(&mut self.connection)
            .await
            .unwrap()
            .rows_affected()
            == 1
    }

    /// The beginning of every change of leases. Returns the number of processes.
    async fn begin_leases(&mut self) -> i64 {
        self.begin().await;
        self.run("expire_processes", |sql| sql.bind(LEASE_TTL_MS))
            .await;
        let sql = AssertSqlSafe(self.statements["count_processes"].clone());
        let row = sqlx::query(sql)
            .fetch_one(&mut self.connection)
            .await
            .unwrap();
        let ids = json!([[self.spender.organization_id]]);
        self.run_rows("lock_balances", &ids, false).await;
        row.get(0)
    }

    /// Leases this much credit. Returns whether there was so much.
    pub async fn lease_credit(&mut self, need: Usd) -> bool {
        self.begin_leases().await;
        let ids = json!([[self.spender.organization_id]]);
        let mut free = Usd::ZERO;
        for row in self.run_rows("read_accounts", &ids, false).await {
            let amount = usd(&row, "amount");
            free = match row.get("part") {
                "granted" => free.plus(amount),
                "shortfall" => free,
                _ => free.minus(amount),
            };
        }
        let held = self.run_rows("read_leases", &ids, true).await;
        let held = held.first().map_or(Usd::ZERO, |row| usd(row, "amount"));
        let is_granted = free >= need;
        if is_granted {
            self.turn += 1;
            let (amount, taken) = (held.plus(need).to_string(), need.to_string());
            let lease = json!([[self.spender.organization_id, amount, self.turn, taken]]);
            self.run_rows("write_leases", &lease, true).await;
        }
        self.commit().await;
        is_granted
    }

    fn limit_scope(&self) -> Value {
        json!([[
            self.spender.organization_id,
            format!("key/{}", self.spender.key_id)
        ]])
    }

    /// What processes hold of the limit, by process: the amount, and what they have stored.
    async fn held(&mut self) -> HashMap<String, (Usd, Usd)> {
        let scope = self.limit_scope();
        let rows = self.run_rows("read_limits", &scope, false).await;
        let held = |row: &AnyRow| {
            let amounts = (usd(row, "amount"), usd(row, "stored"));
            (row.get("owner"), amounts)
        };
        rows.iter().map(held).collect()
    }

    /// What the key has spent, as every process of that version reads it.
    pub async fn spent(&mut self) -> Usd {
        let sql = AssertSqlSafe(self.statements["read_spent"].clone());
        let query = sqlx::query(sql).bind(&*self.spender.organization_id);
        let query = query.bind(0_i64).bind(&*self.owner);
        let rows = query.fetch_all(&mut self.connection).await.unwrap();
        let of_key = rows
            .iter()
            .filter(|row| row.get::<&str, _>("key_id") == self.spender.key_id);
        of_key.map(cost_of).fold(Usd::ZERO, Usd::plus)
    }

    /// Leases a part of the key's limit for calls of this cost, and tells what it has stored. Returns whether it has one.
    pub async fn lease_limit(&mut self, limit: Usd, cost: Usd) -> bool {
        let seen = self.held().await;
        let room = limit.minus(self.spent().await);
        let processes = self.begin_leases().await;
        let (mut others, mut stored_since) = (Usd::ZERO, Usd::ZERO);
        for (owner, (amount, stored)) in self.held().await {
            if owner != self.owner {
                let (_, before) = seen.get(&owner).copied().unwrap_or_default();
                others = others.plus(amount);
                stored_since = stored_since.plus(stored.minus(before).max(Usd::ZERO));
            }
        }
        let free = room
            .minus(others)
            .minus(stored_since)
            .minus(self.limit.left);
        let share = Usd::from_units(free.units() / (2 * i128::from(processes)));
        let part = share.max(cost).min(free).max(Usd::ZERO);
        self.limit.left = self.limit.left.plus(part);
        let amounts = (self.limit.left.to_string(), self.limit.stored.to_string());
        let mut lease = self.limit_scope();
        let lease_row = lease[0].as_array_mut().unwrap();
        lease_row.extend([json!(amounts.0), json!(amounts.1)]);
        self.run_rows("write_limits", &lease, true).await;
        self.commit().await;
        self.limit.left > Usd::ZERO
    }

    /// Stores a call of this cost, as after a failed try: first it looks whether the store has it.
    pub async fn post(&mut self, cost: Usd, at_ms: i64) {
        self.last_id += 1;
        let call = LedgerEntry {
            id: EntryId([self.last_id; 16]),
            at_ms,
            charged: cost,
            ..LedgerEntry::default()
        };
        self.begin().await;
        self.run("lock_journal", |sql| sql.bind(at_ms)).await;
        assert!(!self.is_stored(&call).await);
        self.add_sums(cost, at_ms).await;
        self.charge(cost).await;
        let charge = Charge {
            charged: cost,
            shortfall: Usd::ZERO,
        };
        let packed = pack(std::iter::once((&call, charge)));
        let began_ms = call.id.made_ms();
        self.run("insert_calls", |sql| {
            let sql = sql.bind(began_ms).bind(began_ms).bind(at_ms).bind(at_ms);
            sql.bind(packed.ids).bind(packed.calls)
        })
        .await;
        assert!(self.is_stored(&call).await);
        self.commit().await;
        assert_eq!(self.run("posts", |sql| sql).await.len(), 1);
        self.limit.left = self.limit.left.minus(cost);
        self.limit.stored = self.limit.stored.plus(cost);
    }

    async fn is_stored(&mut self, call: &LedgerEntry) -> bool {
        let began_ms = call.id.made_ms();
        let sql = AssertSqlSafe(self.statements["stored_ids"].clone());
        let query = sqlx::query(sql).bind(began_ms).bind(began_ms);
        let batches = query.fetch_all(&mut self.connection).await.unwrap();
        let earlier = json!([[call.id.to_string()]]);
        assert!(
            self.run_rows("stored_rows", &earlier, false)
                .await
                .is_empty()
        );
        batches
            .iter()
            .any(|row| row.get::<Vec<u8>, _>("ids") == call.id.0)
    }

    /// Adds a call to the hour in which it ended.
    async fn add_sums(&mut self, cost: Usd, at_ms: i64) {
        let Spender {
            organization_id: organization,
            key_id: key,
        } = self.spender.clone();
        let hour = at_ms / 3_600_000;
        let nano = i64::try_from(cost.units() / 1_000_000_000).unwrap();
        let spent = json!([[
            organization,
            key,
            hour,
            "credit",
            0,
            "",
            at_ms,
            at_ms,
            nano,
            0
        ]]);
        self.run_rows("add_spent", &spent, false).await;
        let hours = json!([[
            organization,
            hour,
            key,
            "chat",
            "first",
            "completed",
            1,
            10,
            0,
            0,
            5,
            0,
            0,
            nano,
            0
        ]]);
        self.run_rows("add_hours", &hours, false).await;
    }

    /// Charges a call to the balance and to its lease.
    async fn charge(&mut self, cost: Usd) {
        let id = self.spender.organization_id.clone();
        let locked = self.run_rows("lock_balances", &json!([[id]]), false).await;
        let settled = usd(&locked[0], "settled").plus(cost).to_string();
        let shortfall = usd(&locked[0], "shortfall").to_string();
        let leases = self.run_rows("read_leases", &json!([[id]]), true).await;
        let left = usd(&leases[0], "amount").minus(cost).to_string();
        self.run_rows("write_balances", &json!([[id, settled, shortfall]]), false)
            .await;
        self.run_rows("shrink_leases", &json!([[id, left]]), true)
            .await;
    }

    /// Does what such a process does at intervals.
    pub async fn clean(&mut self, before_hour: i64) {
        let sql = AssertSqlSafe(self.statements["join_past_spent"].clone());
        let query = sqlx::query(sql).bind(-1_i64).bind(before_hour);
        query
            .bind(2000_i64)
            .fetch_all(&mut self.connection)
            .await
            .unwrap();
        let sql = AssertSqlSafe(self.statements["delete_old_calls"].clone());
        let query = sqlx::query(sql).bind(0_i64).bind(&*self.owner).bind(0_i64);
        query
            .bind(64_i64)
            .execute(&mut self.connection)
            .await
            .unwrap();
        let sql = AssertSqlSafe(self.statements["delete_old_rows"].clone());
        let query = sqlx::query(sql).bind(0_i64).bind(2000_i64);
        query.execute(&mut self.connection).await.unwrap();
    }

    /// Ends and gives its leases back.
    pub async fn stop(mut self) {
        for name in ["unregister", "drop_own_leases", "forget_journal"] {
            self.run(name, |sql| sql).await;
        }
        assert!(!self.heartbeat().await);
        self.connection.close().await.unwrap();
    }
}
