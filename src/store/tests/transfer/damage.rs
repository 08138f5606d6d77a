//! Files that are not whole, or not ours: nothing is changed.

use super::content::filled;
use super::*;

/// Writes a file, imports it, and returns why that was refused.
async fn said(desk: &Desk, target: &StoreSettings, file: impl AsRef<[u8]>) -> String {
    let path = desk.path("damaged.jsonl");
    std::fs::write(&path, file).unwrap();
    refused(target, &path).await.to_string()
}

#[tokio::test]
async fn a_file_that_is_cut_or_has_another_byte_changes_nothing() {
    let desk = Desk::new();
    let (_source, _, file) = filled(&desk, 3).await;
    let bytes = std::fs::read(&file).unwrap();
    let target = desk.sqlite("target");
    for length in (0..bytes.len()).step_by(41) {
        let said = said(&desk, &target, &bytes[..length]).await;
        assert!(said.contains("nothing was changed"), "{length}: {said}");
    }
    for place in (0..bytes.len()).step_by(17) {
        let mut bytes = bytes.clone();
        bytes[place] ^= 1;
        let said = said(&desk, &target, &bytes).await;
        let has_cure = said.contains("nothing was changed") || said.contains("Start the newer");
        assert!(has_cure, "{place}: {said}");
    }
    let StoreUrl::Sqlite(database) = &target.url else {
        panic!("not a file");
    };
    assert!(!database.exists(), "no file of a store was made");
    // Whole, the same file is taken.
    import_file(&target, &file).await.unwrap();
}

#[tokio::test]
async fn a_line_that_is_wrong_is_named() {
    let desk = Desk::new();
    let (_source, _, file) = filled(&desk, 3).await;
    let target = desk.sqlite("target");
    let text = std::fs::read_to_string(&file).unwrap();
    let line_of = |begin: &str| {
        let place = text.lines().position(|line| line.starts_with(begin));
        place.unwrap() + 1
    };
    let table = line_of("{\"table\":\"organizations\"");
    let cases = [
        ("", "after 0 lines"),
        (
            "hello\n",
            "line 1 of the file is not the beginning of an export",
        ),
        (
            "{\"weirgate_export\":2,\"more\":1}\n",
            "says format 2, and this version reads 1",
        ),
    ];
    for (file, expected) in cases {
        let said = said(&desk, &target, file).await;
        assert!(said.contains(expected), "{said}");
    }
    let more = format!("{text}\n");
    let said_of_more = said(&desk, &target, more).await;
    assert!(said_of_more.contains("and more follows"), "{said_of_more}");
    let twice = text.replacen("{\"table\":\"projects\"", "{\"table\":\"organizations\"", 1);
    let said_of_twice = said(&desk, &target, twice).await;
    let expected = format!("line {} of the file", line_of("{\"table\":\"projects\""));
    assert!(said_of_twice.contains(&expected), "{said_of_twice}");
    assert!(said_of_twice.contains("comes twice"), "{said_of_twice}");
    let row = text.lines().nth(table).unwrap();
    let no_row = text.replacen(row, "[1]", 1);
    let said_of_row = said(&desk, &target, no_row).await;
    let expected = format!("line {} of the file has 1 values", table + 1);
    assert!(said_of_row.contains(&expected), "{said_of_row}");
}

#[tokio::test]
async fn a_line_of_any_length_takes_no_more_memory_than_one_may() {
    let desk = Desk::new();
    let (_source, _, file) = filled(&desk, 3).await;
    let target = desk.sqlite("target");
    let mut lines = unsealed(&file);
    lines[2] = format!("[\"{}\"]", "a".repeat(64 << 20));
    let said = said(&desk, &target, lines.join("\n")).await;
    assert!(
        said.contains("line 3 of the file is longer than 64 MiB"),
        "{said}"
    );
}

#[tokio::test]
async fn a_table_or_a_column_that_is_unknown_is_named() {
    let desk = Desk::new();
    let (_source, _, file) = filled(&desk, 3).await;
    let lines = unsealed(&file);
    for (from, to, expected) in [
        (
            "\"table\":\"oauth_revocations\"",
            "\"table\":\"oauth_pardons\"",
            "the table oauth_pardons",
        ),
        (
            "[\"plan_since\",",
            "[\"plan_until\",",
            "the column organizations.plan_until",
        ),
        (
            "[\"held_at\",\"integer\"]",
            "[\"held_at\",\"text\"]",
            "the column organizations.held_at",
        ),
    ] {
        let changed: Vec<String> = lines
            .iter()
            .map(|line| line.replacen(from, to, 1))
            .collect();
        assert_ne!(changed, lines);
        for target in [
            desk.sqlite("target"),
            postgres_settings(&desk.path("target")).await,
        ] {
            let said = said(&desk, &target, sealed(&changed)).await;
            assert!(
                said.contains(expected) && said.contains("does not know"),
                "{said}"
            );
            let fixture = Fixture::open(target, TempDir::new().unwrap()).await;
            assert_eq!(fixture.rows().await, 0);
        }
    }
}

#[tokio::test]
async fn sums_that_differ_from_the_rows_are_noticed() {
    let desk = Desk::new();
    let (_source, _, file) = filled(&desk, 3).await;
    let lines = unsealed(&file);
    let changed: Vec<String> = lines
        .iter()
        .map(|line| line.replacen("\"granted\":\"1020.25\"", "\"granted\":\"1020.26\"", 1))
        .collect();
    assert_ne!(changed, lines);
    let said = said(&desk, &desk.sqlite("target"), sealed(&changed)).await;
    assert!(said.contains("has other sums than the rows"), "{said}");
}

#[tokio::test]
async fn a_text_that_postgresql_cannot_hold_is_named_before_anything_is_written() {
    let desk = Desk::new();
    let source = Fixture::open(desk.sqlite("source"), TempDir::new().unwrap()).await;
    source.organization("acme").await;
    source
        .run_sql("UPDATE projects SET experiments = 'a' || char(0) || 'b'")
        .await;
    let file = desk.export(&source.settings, "file").await;
    let target = postgres_settings(&desk.path("target")).await;
    let said = refused(&target, &file).await.to_string();
    assert!(said.contains("U+0000 in the column experiments"), "{said}");
    import_file(&desk.sqlite("target"), &file).await.unwrap();
}
