//! The audit log: an entry for each change, in its transaction, and a chain that shows what was done to it.

use std::time::{Duration, Instant};

use filters::audit::{Actor, AuditHead, ChainBreak};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::*;

mod applied;

on_both![
    an_entry_says_who_changed_what_and_from_what_to_what,
    what_fails_or_changes_nothing_has_no_entry,
    entries_cannot_be_changed_deleted_or_replaced,
    what_is_done_to_the_log_is_found,
    writers_at_once_make_one_chain,
    hostile_names_are_kept_as_they_are,
    a_page_of_very_many_entries_is_read_within_its_time,
    what_is_deleted_is_still_found,
];

impl Fixture {
    fn ada(&self) -> Actor {
        Actor::on_command_line("ada", "host")
    }

    /// All entries, oldest first: action, name, before and after.
    async fn entries(&self) -> Vec<(String, String, Value, Value)> {
        let filter = AuditFilter::default();
        let page = self.store.audit_entries(&filter, 1000).await.unwrap();
        let json = |text: &Option<String>| {
            text.as_ref()
                .map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
        };
        let entries = page.entries.iter().rev().map(|HashedEntry { entry, .. }| {
            let (before, after) = (json(&entry.before), json(&entry.after));
            (entry.action.clone(), entry.name.clone(), before, after)
        });
        entries.collect()
    }

    async fn last(&self) -> HashedEntry {
        let filter = AuditFilter::default();
        let page = self.store.audit_entries(&filter, 1).await;
        page.unwrap().entries.remove(0)
    }

    async fn verified(&self) -> AuditHead {
        self.store.verify_audit_log(None).await.unwrap().unwrap()
    }

    async fn sql(&self, sql: &str) -> Result<(), sqlx::Error> {
        let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        query.execute(self.store.pool.unlimited()).await.map(|_| ())
    }

    fn is_postgres(&self) -> bool {
        matches!(self.settings.url, StoreUrl::Postgres(_))
    }

    /// Lets anybody change the log, as somebody can who owns the database.
    async fn unlock_log(&self) {
        let sql = match self.is_postgres() {
            true => "ALTER TABLE audit_log DISABLE TRIGGER USER",
            false => {
                "DROP TRIGGER audit_log_keeps_changed; DROP TRIGGER audit_log_keeps_deleted; \
                 DROP TRIGGER audit_log_keeps_replaced"
            }
        };
        self.sql(sql).await.unwrap();
    }
}

async fn an_entry_says_who_changed_what_and_from_what_to_what(fixture: Fixture) {
    let actor = fixture.ada();
    let store = fixture.store.by(&actor);
    store
        .create_organization("acme", Plan::Pro, NOW_MS)
        .await
        .unwrap();
    let (text, key) = {
        let new = NewKey {
            organization: "acme",
            label: "ci",
            ..NewKey::default()
        };
        store.create_key(&new, NOW_MS).await.unwrap()
    };
    let update = KeyChange {
        label: Some("laptop".to_owned()),
        is_debug: Some(true),
        ..KeyChange::default()
    };
    store.update_key(&key.id, &update).await.unwrap();
    let page = store
        .audit_entries(&AuditFilter::default(), 10)
        .await
        .unwrap();
    let HashedEntry { entry, hash } = &page.entries[0];
    let organization = store.organization("acme").await.unwrap();
    assert_eq!(entry.number, 4);
    assert_eq!(
        (entry.actor.as_str(), entry.origin.as_str()),
        ("ada", "command line at host")
    );
    assert_eq!(
        (entry.action.as_str(), entry.kind.as_str()),
        ("key.update", "key")
    );
    assert_eq!(
        (&entry.subject_id, entry.name.as_str()),
        (&key.id, "laptop")
    );
    assert_eq!(
        (&entry.organization_id, entry.organization.as_str()),
        (&organization.id, "acme")
    );
    assert_eq!(
        entry.before.as_deref(),
        Some(r#"{"debug":false,"label":"ci"}"#)
    );
    assert_eq!(
        entry.after.as_deref(),
        Some(r#"{"debug":true,"label":"laptop"}"#)
    );
    let head = store.verify_audit_log(None).await.unwrap().unwrap();
    assert_eq!(head.to_string(), format!("4:{hash}"));
    assert_eq!(head, store.audit_head().await.unwrap());
    let [made, project, created, _] = &fixture.entries().await[..] else {
        panic!("four entries");
    };
    let expected =
        json!({"name": "acme", "plan": "pro", "export_content": false, "status": "active"});
    assert_eq!(
        made,
        &(
            "organization.create".into(),
            "acme".into(),
            Value::Null,
            expected
        )
    );
    assert_eq!(
        (project.0.as_str(), &project.3["name"]),
        ("project.create", &json!("default"))
    );
    let expected = json!({
        "label": "ci", "project": "default", "last_four": key.last_four, "debug": false, "status": "active",
    });
    assert_eq!(
        created,
        &("key.create".into(), "ci".into(), Value::Null, expected)
    );
    assert!(!format!("{page:?}").contains(text.reveal()));
}

async fn what_fails_or_changes_nothing_has_no_entry(fixture: Fixture) {
    let store = fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    let (_, key) = fixture.key("acme").await;
    store.add_member("acme", "bob", NOW_MS).await.unwrap();
    store.disable_key(&key.id, Some(NOW_MS)).await.unwrap();
    let head = fixture.verified().await;
    assert!(
        store
            .create_organization("acme", Plan::Pro, NOW_MS)
            .await
            .is_err()
    );
    assert!(store.rename_member(("acme", "bob"), " ").await.is_err());
    assert!(
        store
            .delete_organization("acme", true, NOW_MS)
            .await
            .is_err()
    );
    assert!(
        store
            .take_credit("acme", ledger::usd("1"), NOW_MS)
            .await
            .is_err()
    );
    store.disable_key(&key.id, Some(NOW_MS + 1)).await.unwrap();
    store.set_plan("acme", Plan::Pro, NOW_MS).await.unwrap();
    store.set_regions("acme", None, None).await.unwrap();
    store.set_export_content("acme", false).await.unwrap();
    store.set_budget("acme", "bob", None).await.unwrap();
    store.rename_member(("acme", "bob"), "bob").await.unwrap();
    store.enable_organization("acme").await.unwrap();
    store.hold_organization("acme", None).await.unwrap();
    store
        .update_key(&key.id, &KeyChange::default())
        .await
        .unwrap();
    store.delete_key(&key.id, false, NOW_MS).await.unwrap();
    assert!(!store.give_up_journal("nobody").await.unwrap());
    assert_eq!(fixture.verified().await, head);
}

async fn entries_cannot_be_changed_deleted_or_replaced(fixture: Fixture) {
    fixture.organization("acme").await;
    let before = fixture.entries().await;
    let row = "(1, 1, 'eve', '', 'a.b', 'a', '', '', '', '', '')";
    let into = "audit_log (number, at, actor, origin, action, kind, subject_id, name, organization_id, organization, hash)";
    let replacing = match fixture.is_postgres() {
        true => format!(
            "INSERT INTO {into} VALUES {row} ON CONFLICT (number) DO UPDATE SET actor = 'eve'"
        ),
        false => format!("INSERT OR REPLACE INTO {into} VALUES {row}"),
    };
    let mut all = vec![
        "UPDATE audit_log SET actor = 'eve'".to_owned(),
        "UPDATE audit_log SET number = 9 WHERE number = 1".to_owned(),
        "DELETE FROM audit_log WHERE number = 1".to_owned(),
        replacing,
    ];
    all.extend(
        fixture
            .is_postgres()
            .then(|| "TRUNCATE audit_log".to_owned()),
    );
    for sql in all {
        let refused = fixture.sql(&sql).await.unwrap_err().to_string();
        assert!(refused.contains("append-only"), "{sql}: {refused}");
    }
    assert_eq!(fixture.entries().await, before);
    fixture.verified().await;
}

async fn what_is_done_to_the_log_is_found(fixture: Fixture) {
    for number in 0..250 {
        fixture.organization(&format!("org {number}")).await;
    }
    let head = fixture.verified().await;
    assert_eq!(head.number, 500);
    fixture.unlock_log().await;
    let broken = async |expected| {
        let verified = fixture.store.verify_audit_log(expected).await.unwrap();
        let broken = verified.unwrap_err();
        (broken.number, broken.how)
    };
    let swap = |to: &str| format!("UPDATE audit_log SET actor = '{to}' WHERE number = 300");
    fixture.sql(&swap("eve")).await.unwrap();
    assert_eq!(broken(None).await, (300, ChainBreak::Changed));
    fixture.sql(&swap("weirgate")).await.unwrap();
    assert_eq!(fixture.verified().await, head);
    let long = "UPDATE audit_log SET after = CAST('\"' AS TEXT) || replace(hash, 'a', hash) || '\"' WHERE number = 3";
    fixture.sql(long).await.unwrap();
    assert_eq!(broken(None).await, (3, ChainBreak::Changed));
    // The end is cut: only a head that was kept shows it. What comes later builds on what is left.
    fixture
        .sql("DELETE FROM audit_log WHERE number = 3")
        .await
        .unwrap();
    assert_eq!(broken(None).await, (3, ChainBreak::Missing(4)));
    fixture
        .sql("DELETE FROM audit_log WHERE number >= 3")
        .await
        .unwrap();
    assert_eq!(fixture.verified().await.number, 2);
    assert_eq!(broken(Some(head)).await, (3, ChainBreak::Cut { last: 2 }));
    fixture.organization("later").await;
    assert_eq!(fixture.verified().await.number, 4);
    // A hash that nobody can read keeps no change from being made.
    fixture
        .sql("UPDATE audit_log SET hash = 'x' WHERE number = 4")
        .await
        .unwrap();
    fixture.organization("still").await;
    assert_eq!(broken(None).await, (4, ChainBreak::Changed));
    if !fixture.is_postgres() {
        fixture
            .sql("UPDATE audit_log SET at = 'noon' WHERE number = 2")
            .await
            .unwrap();
        assert_eq!(broken(None).await, (2, ChainBreak::Unreadable));
    }
}

async fn writers_at_once_make_one_chain(fixture: Fixture) {
    let other = Store::open(&fixture.settings).await.unwrap().store;
    let writers = [
        ("a", fixture.store.clone()),
        ("b", other.clone()),
        ("c", fixture.store.clone()),
    ];
    let writers = writers.map(|(writer, store)| {
        tokio::spawn(async move {
            for number in 0..25 {
                let name = format!("{writer} {number}");
                let actor = Actor::on_command_line(writer, "host");
                let made = store
                    .by(&actor)
                    .create_organization(&name, Plan::Pro, NOW_MS);
                made.await.unwrap();
            }
        })
    });
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(fixture.verified().await.number, 150);
    let by = async |actor: &str| {
        let filter = AuditFilter {
            actor: Some(actor.to_owned()),
            ..AuditFilter::default()
        };
        fixture
            .store
            .audit_entries(&filter, 1000)
            .await
            .unwrap()
            .entries
            .len()
    };
    assert_eq!((by("a").await, by("b").await, by("c").await), (50, 50, 50));
    other.close().await;
}

async fn hostile_names_are_kept_as_they_are(fixture: Fixture) {
    let names = [
        "'; DROP TABLE audit_log; --",
        "<script>alert(1)</script>",
        "{\"a\":\"\\u0000\"}",
        "Ärger & \"Söhne\" 🦀\u{202e}\u{feff}",
        &"é".repeat(128),
    ];
    for name in names {
        fixture.organization(name).await;
        let entry = &fixture.entries().await.pop().unwrap();
        assert_eq!(entry.0, "project.create");
        let HashedEntry { entry, .. } = fixture.last().await;
        assert_eq!(entry.organization, name);
        let id = fixture.store.audited_organization(name).await.unwrap();
        assert_eq!(id, entry.organization_id);
    }
    let hostile = json!({
        "client_name": format!("\u{1b}[31m{}", "x".repeat(500)), "secret": "hidden",
    });
    let hostile = hostile.to_string();
    let client = fixture
        .store
        .register_oauth_client(&hostile, &[9; 32], NOW_MS);
    let client = client.await.unwrap();
    let head = fixture.verified().await;
    fixture
        .store
        .by(&PROGRAM)
        .revoke_oauth_client(&client, NOW_MS)
        .await
        .unwrap();
    let HashedEntry { entry, .. } = fixture.last().await;
    assert_eq!(
        entry.number,
        head.number + 1,
        "who registers writes no entry"
    );
    assert!(entry.name.starts_with(" [31mx") && entry.name.chars().count() == 128);
    let sides = (entry.before.unwrap(), entry.after.unwrap());
    assert_eq!(
        sides,
        (
            r#"{"status":"active"}"#.into(),
            r#"{"status":"revoked"}"#.into()
        )
    );
    fixture.verified().await;
}

async fn a_page_of_very_many_entries_is_read_within_its_time(fixture: Fixture) {
    fixture.organization("acme").await;
    // Rows of no chain: only how long reading takes is asked.
    let sql = "INSERT INTO audit_log (number, at, actor, origin, action, kind, subject_id, name, organization_id, \
               organization, before, after, hash) \
               WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) \
               SELECT i, 1800000000000 + i, 'actor ' || (i % 50), 'command line at host', \
               CASE WHEN i % 1000 = 0 THEN 'key.revoke' ELSE 'key.create' END, 'key', 'key_' || i, 'ci', \
               'org_' || (i % 500), 'name ' || (i % 500), NULL, '{\"label\":\"ci\"}', 'x' FROM n";
    fixture.sql(sql).await.unwrap();
    let some = |text: &str| Some(text.to_owned());
    let filter = AuditFilter::default;
    let filters = [
        filter(),
        AuditFilter {
            below: Some(50_000),
            ..filter()
        },
        AuditFilter {
            organization_id: some("org_7"),
            ..filter()
        },
        AuditFilter {
            actor: some("actor 7"),
            below: Some(400),
            ..filter()
        },
        AuditFilter {
            action: some("key.revoke"),
            ..filter()
        },
        AuditFilter {
            action: some("key"),
            since_ms: Some(1_800_000_050_000),
            ..filter()
        },
        // Nobody: all that could be is looked at.
        AuditFilter {
            actor: some("nobody"),
            action: some("key"),
            ..filter()
        },
        AuditFilter {
            organization_id: some("org_7"),
            action: some("key"),
            subject_id: some("key_none"),
            ..filter()
        },
        AuditFilter {
            since_ms: Some(i64::MAX),
            ..filter()
        },
    ];
    for (filter, expected) in filters.iter().zip([50, 50, 50, 8, 50, 50, 0, 0, 0]) {
        let started = Instant::now();
        let page = fixture.store.audit_entries(filter, 50).await.unwrap();
        let took = started.elapsed();
        assert_eq!(page.entries.len(), expected, "{filter:?}");
        assert!(
            took < Duration::from_millis(300),
            "{filter:?} took {took:?}"
        );
        assert!(
            page.entries
                .is_sorted_by(|a, b| a.entry.number > b.entry.number)
        );
    }
    // Page by page, each entry is listed once.
    let mut filter = AuditFilter {
        actor: some("actor 7"),
        ..filter()
    };
    let mut numbers = Vec::new();
    loop {
        let page = fixture.store.audit_entries(&filter, 400).await.unwrap();
        numbers.extend(page.entries.iter().map(|it| it.entry.number));
        filter.below = numbers.last().copied();
        if !page.has_more {
            break;
        }
    }
    let expected: Vec<i64> = (0..2000).rev().map(|n| n * 50 + 7).collect();
    assert_eq!(numbers, expected);
    let filter = AuditFilter::default();
    let most = fixture.store.audit_entries(&filter, u32::MAX);
    assert_eq!(most.await.unwrap().entries.len(), 1000);
}

async fn what_is_deleted_is_still_found(fixture: Fixture) {
    let store = fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    fixture.key("acme").await;
    let id = store.organization("acme").await.unwrap().id;
    store
        .add_credit("acme", ledger::usd("2.5"), NOW_MS)
        .await
        .unwrap();
    store.rename_organization("acme", "globex").await.unwrap();
    store.disable_organization("globex").await.unwrap();
    store
        .delete_organization("globex", true, NOW_MS)
        .await
        .unwrap();
    let (action, name, before, after) = fixture.entries().await.pop().unwrap();
    assert_eq!(
        (action.as_str(), name.as_str()),
        ("organization.delete", "globex")
    );
    assert_eq!(
        (&before["status"], &before["balance"]),
        (&json!("disabled"), &json!("2.5"))
    );
    assert_eq!(before["with"], json!({"projects": 1, "keys": 1}));
    assert_eq!(after, Value::Null);
    for name in ["acme", "globex", id.as_str()] {
        assert_eq!(store.audited_organization(name).await.unwrap(), id);
    }
    let absent = store.audited_organization("nobody").await;
    assert!(matches!(absent, Err(StoreError::NotFound { .. })));
    let filter = AuditFilter {
        organization_id: Some(id),
        ..AuditFilter::default()
    };
    let page = store.audit_entries(&filter, 50).await.unwrap();
    assert_eq!((page.entries.len(), page.has_more), (7, false));
}
