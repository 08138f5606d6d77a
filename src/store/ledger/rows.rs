//! Rows of the ledger on their way in.

use std::sync::LazyLock;

use filters::json::Object;
use filters::ledger::{CostParts, LedgerEntry};
use filters::money::Usd;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe};

use super::super::StoreError;
use super::split;

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
/// Rows of one statement: few lengths, so that the statements are made and prepared once.
const LENGTHS: [usize; 3] = [64, 8, 1];

static NUMBERED: LazyLock<[String; 3]> = LazyLock::new(|| {
    let place = |at: usize| format!("${}", at + 1);
    LENGTHS.map(|rows| statement(rows, place))
});
/// For SQLite, which looks for the name of each place from the first on: with two thousand that costs more than all
/// else. Places without a name it does not look for.
static UNNAMED: LazyLock<[String; 3]> =
    LazyLock::new(|| LENGTHS.map(|rows| statement(rows, |_| "?".to_owned())));

/// Writes rows, none of which may be there already.
pub(super) async fn insert(
    change: &mut AnyConnection,
    entries: &[LedgerEntry],
) -> Result<(), StoreError> {
    let statements = match change.backend_name() {
        "SQLite" => &*UNNAMED,
        _ => &*NUMBERED,
    };
    let mut rest = entries;
    for (length, sql) in LENGTHS.into_iter().zip(statements) {
        while let Some((some, others)) = rest.split_at_checked(length) {
            let query = sqlx::query(AssertSqlSafe(sql.as_str()));
            let query = some.iter().fold(query, bind);
            query.execute(&mut *change).await?;
            rest = others;
        }
    }
    Ok(())
}

fn statement(rows: usize, place: impl Fn(usize) -> String) -> String {
    let row = |row: usize| {
        let first = row * COLUMNS.len();
        let places: Vec<String> = (first..first + COLUMNS.len()).map(&place).collect();
        format!("({})", places.join(", "))
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
    let (nano, rest) = split(usage.total());
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
        .bind(integer(usage.prompt_tokens))
        .bind(integer(usage.cached_tokens))
        .bind(integer(usage.cache_write_tokens))
        .bind(integer(usage.completion_tokens))
        .bind(integer(usage.reasoning_tokens))
        .bind(integer(usage.web_searches))
        .bind(i64::from(usage.is_estimated))
        .bind(i64::from(usage.is_premium))
        .bind(i64::from(entry.is_stream))
        .bind(i64::from(usage.cost.is_some()))
        .bind(nano)
        .bind(rest)
        .bind(parts(usage.cost.as_ref()))
        .bind(entry.reserved.to_string())
        .bind(entry.charged.to_string())
        .bind(entry.shortfall.to_string())
        .bind(i64::from(usage.attempts))
        .bind(integer(entry.duration_ms))
        .bind(entry.first_event_ms.map(integer))
}

fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The parts of a cost that are not nothing, as a JSON object of decimals.
fn parts(cost: Option<&CostParts>) -> String {
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
