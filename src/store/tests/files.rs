//! Tests of SQLite files.

use super::*;

fn database(settings: &StoreSettings) -> std::path::PathBuf {
    match &settings.url {
        StoreUrl::Sqlite(path) => path.clone(),
        StoreUrl::Postgres(_) => panic!("not a file"),
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn no_issued_key_is_in_any_file_of_the_store() {
    let fixture = on_sqlite().await;
    fixture.organization("acme-the-witness").await;
    let mut keys = Vec::new();
    for _ in 0..5 {
        keys.push(fixture.key("acme-the-witness").await.0);
    }
    let folder = database(&fixture.settings).parent().unwrap().to_owned();
    let mut has_witness = false;
    for folder in [folder, fixture.settings.state_dir.clone()] {
        for file in std::fs::read_dir(folder).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            has_witness |= contains(&bytes, "acme-the-witness");
            for key in &keys {
                // The random part alone is not stored either.
                assert!(!contains(&bytes, &key.reveal()[3..40]));
            }
        }
    }
    // The search finds a text that is stored, so it reads the right files.
    assert!(has_witness);
}

#[tokio::test]
async fn files_are_readable_by_their_owner_alone() {
    let fixture = on_sqlite().await;
    fixture.organization("acme").await;
    let secret = fixture.settings.state_dir.join("secret.key");
    let database = database(&fixture.settings);
    let wal = format!("{}-wal", database.display());
    assert_eq!(std::fs::read(&secret).unwrap().len(), 32);
    for file in [secret.as_path(), &database, Path::new(&wal)] {
        let mode = file.metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn the_file_is_new_once() {
    let folder = TempDir::new().unwrap();
    let settings = sqlite_settings(folder.path());
    let first = Store::open(&settings).await.unwrap();
    let second = Store::open(&settings).await.unwrap();
    assert!(first.is_new_file && !second.is_new_file);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn one_of_many_that_open_at_once_made_the_file_and_all_share_the_pepper() {
    let folder = TempDir::new().unwrap();
    let settings = sqlite_settings(folder.path());
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let settings = settings.clone();
            tokio::spawn(async move { Store::open(&settings).await })
        })
        .collect();
    let mut new_files = 0;
    let mut marks = Vec::new();
    for opener in openers {
        let opened = opener.await.unwrap().unwrap();
        new_files += usize::from(opened.is_new_file);
        marks.push(opened.store.pepper().fingerprint());
    }
    assert_eq!(new_files, 1);
    assert!(marks.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn the_first_start_with_a_sandbox_makes_one_organization_and_one_key() {
    let folder = TempDir::new().unwrap();
    let settings = sqlite_settings(folder.path());
    let opened = Store::open(&settings).await.unwrap();
    let made = first_run(&opened, true, NOW_MS).await.unwrap().unwrap();
    let fixture = Fixture {
        store: opened.store,
        settings: settings.clone(),
        _folder: folder,
    };
    let caller = fixture.admit(&made.key).await.unwrap();
    assert_eq!(
        (&*caller.organization, &*caller.project),
        ("default", "default")
    );
    let opened = Store::open(&settings).await.unwrap();
    assert!(first_run(&opened, true, NOW_MS).await.unwrap().is_none());
}

#[tokio::test]
async fn a_first_start_without_a_sandbox_makes_nothing() {
    let folder = TempDir::new().unwrap();
    let opened = Store::open(&sqlite_settings(folder.path())).await.unwrap();
    assert!(first_run(&opened, false, NOW_MS).await.unwrap().is_none());
    assert!(opened.store.organizations().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_path_with_odd_characters_is_opened() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a b%20#é/w;1.db");
    let settings = StoreSettings {
        url: StoreUrl::parse(&format!("sqlite:{}", file.display())).unwrap(),
        ..sqlite_settings(folder.path())
    };
    Store::open(&settings).await.unwrap();
    assert!(file.metadata().unwrap().len() > 0);
}

#[tokio::test]
async fn a_short_secret_is_a_problem_of_the_configuration() {
    let folder = TempDir::new().unwrap();
    let settings = StoreSettings {
        secret: Some(vec![7; 31]),
        ..sqlite_settings(folder.path())
    };
    let error = Store::open(&settings).await.err().unwrap();
    assert!(error.is_configuration());
}

#[tokio::test]
async fn postgresql_without_a_secret_is_a_problem_of_the_configuration() {
    let folder = TempDir::new().unwrap();
    let settings = StoreSettings {
        url: StoreUrl::parse("postgres://nobody@127.0.0.1:1/none").unwrap(),
        ..sqlite_settings(folder.path())
    };
    let error = Store::open(&settings).await.err().unwrap();
    assert!(error.is_configuration());
    assert!(!settings.state_dir.join("secret.key").exists());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_as_the_cause() {
    let folder = TempDir::new().unwrap();
    // Bound and never listened on: the port refuses connections, and no other test gets it.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let port = closed.local_addr().unwrap().port();
    let settings = StoreSettings {
        url: StoreUrl::parse(&format!("postgres://me:hunter2@127.0.0.1:{port}/none")).unwrap(),
        secret: Some(vec![7; 32]),
        ..sqlite_settings(folder.path())
    };
    let error = Store::open(&settings).await.err().unwrap().to_string();
    assert!(error.contains("refused"), "{error}");
    assert!(!error.contains("hunter2"));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_an_error() {
    let folder = TempDir::new().unwrap();
    let settings = sqlite_settings(folder.path());
    let file = database(&settings);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(
        &file,
        "this is not a database, and long enough to be looked at".repeat(20),
    )
    .unwrap();
    assert!(Store::open(&settings).await.is_err());
}

#[tokio::test]
async fn the_snapshot_follows_until_it_is_stopped() {
    let fixture = on_sqlite().await;
    let accounts = accounts::AccountsHandle::load(&fixture.store, |_| {})
        .await
        .unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let follower = tokio::spawn(accounts.clone().run_refresh(fixture.store.clone(), stopped));
    fixture.organization("acme").await;
    let made = std::time::Instant::now();
    fixture.key("acme").await;
    while accounts.current().is_empty() {
        tokio::task::yield_now().await;
        assert!(made.elapsed().as_secs() < 30, "the snapshot never followed");
    }
    assert_eq!(accounts.failures(), 0);
    stop.send(true).unwrap();
    follower.await.unwrap();
}
