//! The columns of the table for ClickHouse: one for each member that a line may have.
//!
//! `tests/gateway/log_export` holds them to the lines. A member without a column is left out by ClickHouse, and no insert fails for it.

/// A column: the name of the member, and its type.
pub struct Column {
    pub name: &'static str,
    pub sql: &'static str,
}

const fn column(name: &'static str, sql: &'static str) -> Column {
    Column { name, sql }
}

/// A word of few.
const WORD: &str = "LowCardinality(String)";
const TEXT: &str = "String";
const COUNT: &str = "UInt64";
const FLAG: &str = "Bool";
const MS: &str = "Nullable(Float64)";
const USD: &str = "Nullable(Decimal(38, 18))";
/// An object or a list, as JSON.
const JSON: &str = "String";

/// The columns, in the order of lines.
pub const COLUMNS: &[Column] = &[
    column("time", "DateTime64(6, 'UTC')"),
    column("level", WORD),
    column("request_id", TEXT),
    column("route", WORD),
    column("method", WORD),
    column("path", TEXT),
    column("client_ip", TEXT),
    column("user_agent", TEXT),
    column("organization", WORD),
    column("project", WORD),
    column("key_id", TEXT),
    column("client_id", TEXT),
    column("tool", WORD),
    column("status", "UInt16"),
    column("outcome", WORD),
    column("duration_ms", MS),
    column("shared_wait_ms", MS),
    column("request_bytes", COUNT),
    column("response_bytes", COUNT),
    column("model", TEXT),
    column("prompt", JSON),
    column("experiment", JSON),
    column("log_id", TEXT),
    column("session_id", TEXT),
    column("agent_id", TEXT),
    column("parent_agent_id", TEXT),
    column("used_model", WORD),
    column("provider", WORD),
    column("deprecated_at", TEXT),
    column("stream", FLAG),
    column("cached", FLAG),
    column("attempts", JSON),
    column("left_out", JSON),
    column("left_out_state", COUNT),
    column("left_out_format", FLAG),
    column("parts", COUNT),
    column("first_event_ms", MS),
    column("healed", WORD),
    column("fits_schema", "Nullable(Bool)"),
    column("prompt_tokens", COUNT),
    column("completion_tokens", COUNT),
    column("cached_tokens", COUNT),
    column("pages", COUNT),
    column("input_ms", COUNT),
    column("output_ms", COUNT),
    column("characters", COUNT),
    column("searches", COUNT),
    column("documents", COUNT),
    column("estimated", FLAG),
    column("requested_service_tier", WORD),
    column("used_service_tier", WORD),
    column("price_period", WORD),
    column("abandoned_cost", USD),
    column("cost", USD),
    column("error", JSON),
    column("request", TEXT),
    column("answer", TEXT),
    column("content_cut", FLAG),
];

/// Returns the statement that makes the table. Parts of months are dropped as a whole, and a second insert of a batch is known.
pub fn create_table(database: &str, table: &str) -> String {
    let mut columns = String::new();
    for column in COLUMNS {
        let (name, sql) = (column.name, column.sql);
        columns.push_str(&format!("    `{name}` {sql},\n"));
    }
    let columns = columns.trim_end_matches(",\n");
    format!(
        "CREATE TABLE IF NOT EXISTS `{database}`.`{table}`\n(\n{columns}\n)\nENGINE = MergeTree\n\
         PARTITION BY toYYYYMM(time)\nORDER BY (organization, time)\n\
         SETTINGS non_replicated_deduplication_window = 10000;\n"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_column_has_a_name_of_its_own_and_stands_in_the_statement() {
        let names: BTreeSet<&str> = COLUMNS.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), COLUMNS.len());
        let statement = create_table("logs", "calls");
        assert!(statement.starts_with("CREATE TABLE IF NOT EXISTS `logs`.`calls`\n(\n"));
        for name in names {
            assert!(statement.contains(&format!("    `{name}` ")), "{name}");
        }
        assert!(statement.contains("`content_cut` Bool\n)\n"), "{statement}");
    }
}
