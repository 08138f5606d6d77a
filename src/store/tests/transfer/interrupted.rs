//! Imports that are cut, frozen, or meet each other.

use super::content::filled;
use super::*;

on_both![
    a_cut_import_goes_on_where_it_was_and_nothing_else_begins,
    two_imports_at_once_are_refused,
    what_something_else_has_written_meanwhile_is_noticed,
];

/// A store whose largest table takes some portions, and the file of it.
async fn large(desk: &Desk) -> PathBuf {
    let (source, _, _) = filled(desk, 500).await;
    let sql = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000) \
               INSERT INTO oauth_answers (id, expires_at) SELECT 'page ' || n, n FROM numbers";
    source.run_sql(sql).await;
    desk.export(&source.settings, "large.jsonl").await
}

/// Returns how many portions an import writes.
async fn count_portions(settings: &StoreSettings, path: &Path) -> usize {
    let mut portions = 0;
    let mut on_progress = |step: TransferProgress<'_>| {
        portions += usize::from(step.phase == TransferPhase::Write);
    };
    let done = import(settings, path, NOW_MS, &mut on_progress).await;
    done.unwrap();
    portions
}

/// Imports as soon as the connection of a cut import is gone.
async fn import_again(settings: &StoreSettings, path: &Path) -> ImportedStore {
    loop {
        match import_file(settings, path).await {
            Err(StoreError::Transfer(TransferError::ImportRuns)) => {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            done => return done.unwrap(),
        }
    }
}

async fn a_cut_import_goes_on_where_it_was_and_nothing_else_begins(fixture: Fixture) {
    let desk = Desk::new();
    let file = large(&desk).await;
    let expected = std::fs::read(&file).unwrap();
    let other = desk.like(&fixture, "empty").await;
    Store::open(&other).await.unwrap();
    let other = desk.export(&other, "empty.jsonl").await;
    let total = count_portions(&desk.like(&fixture, "counted").await, &file).await;
    assert!(total > 20, "the largest table takes many portions: {total}");
    // Before the largest table, within it, and behind it.
    for portions in [1, 3, total / 2, total - 2, total - 1] {
        let name = format!("target {portions}");
        let target = desk.like(&fixture, &name).await;
        let frozen = freeze(&target, &file, portions).await;
        drop(frozen.unwrap_or_else(|| panic!("{portions} portions were all")));
        let error = Store::open(&target).await.err().unwrap();
        assert!(!error.is_unavailable());
        let said = error.to_string();
        assert!(said.contains("run `weirgate import FILE` again"), "{said}");
        let refused = loop {
            match refused(&target, &other).await {
                TransferError::ImportRuns => tokio::task::yield_now().await,
                refused => break refused,
            }
        };
        assert!(
            matches!(refused, TransferError::OtherImport(_)),
            "{refused}"
        );
        let imported = import_again(&target, &file).await;
        let place = imported.resumed_at.expect("it went on");
        assert!(
            place.rows > 0 && said.contains(&place.table),
            "{place}: {said}"
        );
        let again = desk.export(&target, &format!("{name}.jsonl")).await;
        assert!(std::fs::read(again).unwrap() == expected, "{portions}");
    }
}

async fn two_imports_at_once_are_refused(fixture: Fixture) {
    let desk = Desk::new();
    let file = large(&desk).await;
    let target = desk.like(&fixture, "target").await;
    let first = freeze(&target, &file, 3).await.expect("it is not done");
    for _ in 0..2 {
        let error = import_file(&target, &file).await.unwrap_err();
        let is_refused = matches!(
            error,
            StoreError::InUse { .. } | StoreError::Transfer(TransferError::ImportRuns)
        );
        assert!(is_refused, "{error}");
    }
    let imported = first.import.await.unwrap();
    assert_eq!(imported.resumed_at, None);
    Store::open(&target).await.unwrap();
}

async fn what_something_else_has_written_meanwhile_is_noticed(fixture: Fixture) {
    let desk = Desk::new();
    let file = large(&desk).await;
    let target = desk.like(&fixture, "target").await;
    let mut portions = 0;
    // Between two portions nothing is locked, and the import waits until the intruder has written.
    let mut on_progress = |step: TransferProgress<'_>| {
        portions += usize::from(step.phase == TransferPhase::Write);
        if portions == 3 && step.phase == TransferPhase::Write {
            let target = &target;
            std::thread::scope(|scope| scope.spawn(|| intrude(target)).join().unwrap());
        }
    };
    let error = import(&target, &file, NOW_MS, &mut on_progress).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("in oauth_revocations: something else"),
        "{error}"
    );
    assert!(Store::open(&target).await.is_err());
}

/// Writes a row as another program does: commands refuse such a store.
fn intrude(settings: &StoreSettings) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::prepare(settings).await.unwrap().store;
        let row = "INSERT INTO oauth_revocations (id, revoked_at) VALUES ('intruder', 1)";
        let query = sqlx::query(row).execute(store.pool.unlimited());
        query.await.unwrap();
    });
}
