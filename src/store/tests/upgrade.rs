//! Tables of a newer version.

use super::*;

on_both![a_version_starts_on_tables_to_which_a_newer_one_has_added_and_refuses_what_it_cannot_know];

async fn a_version_starts_on_tables_to_which_a_newer_one_has_added_and_refuses_what_it_cannot_know(
    fixture: Fixture,
) {
    let sql = "INSERT INTO _sqlx_migrations \
               (version, description, success, checksum, execution_time) \
               SELECT 9999, 'of a newer version', success, checksum, 0 \
               FROM _sqlx_migrations WHERE version = 1";
    let pool = fixture.store.pool.unlimited();
    sqlx::query(sql).execute(pool).await.unwrap();
    Store::open(&fixture.settings)
        .await
        .unwrap()
        .store
        .close()
        .await;
    let sql = "UPDATE store_state SET needs_migration = 9999";
    sqlx::query(sql).execute(pool).await.unwrap();
    let refused = Store::open(&fixture.settings).await.err().unwrap();
    assert!(!refused.is_unavailable(), "{refused}");
    let said = refused.to_string();
    for part in [
        "need migration 9999",
        "this version knows",
        "Start the newer version",
        "docs/upgrade.md",
    ] {
        assert!(said.contains(part), "{said}");
    }
}
