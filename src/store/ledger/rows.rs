//! Inserts rows of the ledger.

use std::sync::LazyLock;

use filters::json::Object;
use filters::ledger::{CostParts, LedgerEntry};
use filters::money::Usd;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe};

use super::super::StoreError;
use super::split_cost;

const COLUMNS: [&str; 32] = [
    "id",
    "at",
    "organization_id",
    "project_id",
    "key_id",
    "member_id",
    "request_id",
    "model",
    "provider",
    "upstream_model",
    "region",
    "funding",
    "outcome",
    "prompt_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "web_searches",
    "is_estimated",
    "is_premium",
    "is_stream",
    "is_priced",
    "cost_nano",
    "cost_rest",
    "parts",
    "reserved",
    "charged",
    "shortfall",
    "attempts",
    "duration_ms",
    "first_event_ms",
];
/// The numbers of rows per statement: few, so that each statement is built and prepared once.
const ROW_COUNTS: [usize; 3] = [64, 8, 1];

static NUMBERED_SQL: LazyLock<[String; 3]> = LazyLock::new(|| {
    let place = |at: usize| format!("${}", at + 1);
    ROW_COUNTS.map(|rows| statement(rows, place))
});
/// SQLite searches the name of each parameter from the first on. With two thousand parameters that costs more than all
/// else. It does not search unnamed parameters.
static UNNAMED_SQL: LazyLock<[String; 3]> =
    LazyLock::new(|| ROW_COUNTS.map(|rows| statement(rows, |_| "?".to_owned())));

/// Inserts rows that must not exist yet.
pub(super) async fn insert(
    change: &mut AnyConnection,
    entries: &[LedgerEntry],
) -> Result<(), StoreError> {
    let statements = match change.backend_name() {
        "SQLite" => &*UNNAMED_SQL,
        _ => &*NUMBERED_SQL,
    };
    let mut rest = entries;
    for (length, sql) in ROW_COUNTS.into_iter().zip(statements) {
        while let Some((chunk, others)) = rest.split_at_checked(length) {
            let query = sqlx::query(AssertSqlSafe(sql.as_str()));
            let query = chunk.iter().fold(query, bind);
            query.execute(&mut *change).await?;
            rest = others;
        }
    }
    Ok(())
}

fn statement(rows: usize, place: impl Fn(usize) -> String) -> String {
    let row = |row: usize| {
        let first = row * COLUMNS.len();
        let placeholders: Vec<String> = (first..first + COLUMNS.len()).map(&place).collect();
        format!("({})", placeholders.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    let (columns, rows) = (COLUMNS.join(", "), rows.join(", "));
    format!("INSERT INTO ledger ({columns}) VALUES {rows}")
}

/// Binds a row in the order of [`COLUMNS`].
fn bind<'a>(
    query: Query<'a, Any, AnyArguments>,
    entry: &'a LedgerEntry,
) -> Query<'a, Any, AnyArguments> {
    let (owner, usage) = (&entry.owner, &entry.usage);
    let (nano, rest) = split_cost(usage.total());
    query
        .bind(entry.id.to_string())
        .bind(entry.at_ms)
        .bind(&*owner.organization_id)
        .bind(&*owner.project_id)
        .bind(&*owner.key_id)
        .bind(owner.member_id.as_deref())
        .bind(&*owner.request_id)
        .bind(&*usage.model)
        .bind(&*usage.provider)
        .bind(&*usage.upstream_model)
        .bind(usage.region.as_deref())
        .bind(entry.funding.as_str())
        .bind(entry.outcome.as_str())
        .bind(to_i64(usage.prompt_tokens))
        .bind(to_i64(usage.cached_tokens))
        .bind(to_i64(usage.cache_write_tokens))
        .bind(to_i64(usage.completion_tokens))
        .bind(to_i64(usage.reasoning_tokens))
        .bind(to_i64(usage.web_searches))
        .bind(i64::from(usage.is_estimated))
        .bind(i64::from(usage.is_premium))
        .bind(i64::from(entry.is_stream))
        .bind(i64::from(usage.cost.is_some()))
        .bind(nano)
        .bind(rest)
        .bind(cost_parts(usage.cost.as_ref()))
        .bind(entry.reserved.to_string())
        .bind(entry.charged.to_string())
        .bind(entry.shortfall.to_string())
        .bind(i64::from(usage.attempts))
        .bind(to_i64(entry.duration_ms))
        .bind(entry.first_event_ms.map(to_i64))
}

fn to_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns the nonzero parts of a cost as a JSON object of decimals.
fn cost_parts(cost: Option<&CostParts>) -> String {
    let cost = cost.copied().unwrap_or_default();
    let parts = [
        ("input", cost.input),
        ("cached_input", cost.cached_input),
        ("cache_write", cost.cache_write),
        ("output", cost.output),
        ("request", cost.request),
        ("web_search", cost.web_search),
    ];
    let mut out = Vec::with_capacity(64);
    let mut object = Object::open(&mut out);
    for (name, part) in parts.into_iter().filter(|(_, part)| *part != Usd::ZERO) {
        object.text(name, &part.to_string());
    }
    object.close();
    String::from_utf8(out).unwrap_or_default()
}
