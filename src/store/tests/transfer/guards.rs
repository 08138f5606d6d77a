//! Secrets, servers and stores that are in use.

use super::content::filled;
use super::*;

on_both![
    a_store_on_which_a_server_works_is_exported_on_demand_alone,
    a_store_that_is_not_empty_stays_as_it_is,
    a_file_comes_into_a_store_once,
];

/// Whether a server may be seen to work on a store: with SQLite by its lock.
async fn serve(fixture: &Fixture) -> Option<StoreLock> {
    fixture.begin("server").await;
    StoreLock::acquire(&fixture.settings.url).unwrap()
}

async fn a_store_on_which_a_server_works_is_exported_on_demand_alone(fixture: Fixture) {
    let desk = Desk::new();
    let server = serve(&fixture).await;
    let path = desk.path("file");
    let tried = export_to_file(&fixture.settings, false, &path, &mut |_| {}).await;
    let said = tried.unwrap_err().to_string();
    assert!(
        said.contains("stop it first, or say --while-running"),
        "{said}"
    );
    assert!(!path.exists());
    let exported = export_to_file(&fixture.settings, true, &path, &mut |_| {}).await;
    assert!(exported.unwrap().has_server);
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    let again = export_to_file(&fixture.settings, true, &path, &mut |_| {}).await;
    assert!(again.unwrap_err().to_string().contains("exists"));
    // What a process held comes with the copy, and goes as that of a dead process.
    let error = import_file(&fixture.settings, &path).await.unwrap_err();
    let is_refused = matches!(
        error,
        StoreError::InUse { .. } | StoreError::Transfer(TransferError::TargetRuns)
    );
    assert!(is_refused, "{error}");
    drop(server);
    fixture.store.unregister_process("server").await.unwrap();
    let path = desk.path("stopped");
    let exported = export_to_file(&fixture.settings, false, &path, &mut |_| {}).await;
    assert!(!exported.unwrap().has_server);
    let names = std::fs::read_dir(desk.folder.path()).unwrap();
    assert_eq!(names.count(), 2, "no draft is left");
}

async fn a_store_that_is_not_empty_stays_as_it_is(fixture: Fixture) {
    let desk = Desk::new();
    let source = desk.like(&fixture, "source").await;
    let of_source = Fixture::open(source, TempDir::new().unwrap()).await;
    of_source.organization("other").await;
    let file = desk.export(&of_source.settings, "file").await;
    let target = desk.like(&fixture, "target").await;
    let of_target = Fixture::open(target, TempDir::new().unwrap()).await;
    of_target.organization("acme").await;
    let before = of_target.rows().await;
    let said = refused(&of_target.settings, &file).await.to_string();
    for part in ["organizations, projects, account_changes", "store.url"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(of_target.rows().await, before);
    let names = of_target.store.organizations().await.unwrap();
    assert_eq!(names[0].name, "acme");
    // It is as usable as it was.
    Store::open(&of_target.settings).await.unwrap();
}

async fn a_file_comes_into_a_store_once(fixture: Fixture) {
    let desk = Desk::new();
    let (_source, _, file) = filled(&desk, 3).await;
    let target = desk.like(&fixture, "target").await;
    import_file(&target, &file).await.unwrap();
    let again = refused(&target, &file).await;
    assert!(matches!(again, TransferError::AlreadyImported), "{again}");
    let other = Fixture::open(desk.sqlite("other"), TempDir::new().unwrap()).await;
    other.organization("acme").await;
    let other = desk.export(&other.settings, "other.jsonl").await;
    let refused = refused(&target, &other).await;
    assert!(matches!(refused, TransferError::NotEmpty(_)), "{refused}");
    let third = desk.export(&target, "third.jsonl").await;
    assert_eq!(std::fs::read(third).unwrap(), std::fs::read(&file).unwrap());
}

#[tokio::test]
async fn another_secret_is_noticed_before_anything_is_made() {
    let desk = Desk::new();
    let (_source, _, file) = filled(&desk, 3).await;
    let other = StoreSettings {
        secret: Some(vec![8; 32]),
        ..desk.sqlite("other")
    };
    let none = StoreSettings {
        secret: None,
        ..desk.sqlite("none")
    };
    for (target, parts) in [
        (other, ["another secret", "store.secret = { file"]),
        (none, ["copy secret.key", "state/secret.key"]),
    ] {
        let error = StoreError::from(refused(&target, &file).await);
        assert!(error.is_configuration());
        let said = error.to_string();
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        let StoreUrl::Sqlite(database) = &target.url else {
            panic!("not a file");
        };
        assert!(!database.exists() && !target.state_dir.exists());
    }
}

#[tokio::test]
async fn a_store_that_is_not_there_is_not_made_by_an_export() {
    let desk = Desk::new();
    let absent = desk.sqlite("absent");
    let tried = export_to_file(&absent, false, &desk.path("file"), &mut |_| {}).await;
    assert!(matches!(tried.unwrap_err(), StoreError::File { .. }));
    assert_eq!(std::fs::read_dir(desk.folder.path()).unwrap().count(), 0);
}
