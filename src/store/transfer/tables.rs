//! The tables that are moved.

/// The table whose one row every store has from its beginning. An import changes that row.
pub(super) const STATE_TABLE: &str = "store_state";

/// All tables of the store, each behind those to which its rows refer.
pub(in super::super) const TABLES: [&str; 36] = [
    STATE_TABLE,
    "organizations",
    "deleted_organizations",
    "projects",
    "members",
    "api_keys",
    "account_changes",
    "provider_keys",
    "prompts",
    "prompt_versions",
    "prompt_labels",
    "credit_grants",
    "balances",
    "ledger_processes",
    "leases",
    "limit_leases",
    "limit_counters",
    "budget_states",
    "spent",
    "journal_owners",
    "call_batches",
    "ledger",
    "usage_hours",
    "variation_hours",
    "session_hours",
    "tag_hours",
    "video_jobs",
    "response_jobs",
    "response_totals",
    "responses",
    "oauth_clients",
    "oauth_answers",
    "oauth_grants",
    "oauth_codes",
    "oauth_revocations",
    "audit_log",
];

/// The tables that stay: they say how the tables were made and filled, and what a running server is asked for.
#[cfg(test)]
pub(in super::super) const KEPT_TABLES: [&str; 3] =
    ["_sqlx_migrations", "imports", "return_requests"];

/// The column that stays: which tables a store has does not follow from what they hold.
pub(super) const KEPT_COLUMN: (&str, &str) = (STATE_TABLE, "needs_migration");

/// Returns the table of this name, and its place among all.
pub(super) fn find(name: &str) -> Option<(usize, &'static str)> {
    let mut tables = TABLES.into_iter().enumerate();
    tables.find(|(_, table)| *table == name)
}
