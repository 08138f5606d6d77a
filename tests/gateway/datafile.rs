//! `GET /v1/datafile`, and files that change while they are served.

use std::time::Instant;

use serde_json::json;

use crate::support::PATIENCE;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::flags;

fn get(gateway: &Gateway, key: &str) -> Answer {
    ask(
        gateway.address(),
        &Ask::get("/v1/datafile").header("X-Platform-SDK-Key", key),
    )
}

#[test]
fn the_datafile_comes_as_it_is() {
    let gateway = flags::gateway("");
    let answer = get(&gateway, "sandbox");
    assert_eq!(
        (answer.status(), &answer.json()["version"]),
        (200, &"4".into())
    );
    let unknown = get(&gateway, "other");
    assert_eq!(
        flags::refused(&unknown),
        (403, "the SDK key is not known here".to_owned())
    );
}

#[test]
fn a_file_is_read_again_and_a_bad_one_leaves_the_last_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flags.json");
    let datafile = |revision: &str| json!({"version": "4", "revision": revision}).to_string();
    let toml = format!(
        "[[decisions.projects]]\nsdk_key = \"file\"\ndatafile = {:?}\n",
        path.display().to_string()
    );
    let gateway = Gateway::start(&toml, "");
    let missing = get(&gateway, "file");
    assert_eq!(
        (missing.status(), missing.header("retry-after")),
        (503, Some("5"))
    );
    let until = |expected: &str| {
        let started = Instant::now();
        while get(&gateway, "file").json()["revision"] != expected {
            assert!(
                started.elapsed() < PATIENCE,
                "revision {expected} never came"
            );
        }
    };
    std::fs::write(&path, datafile("1")).unwrap();
    until("1");
    std::fs::write(&path, "{\"version\": \"5\"}").unwrap();
    let refused = "weirgate_datafiles_total{outcome=\"refused\"} 2";
    let started = Instant::now();
    while !gateway.metrics().contains(refused) {
        assert!(started.elapsed() < PATIENCE, "{}", gateway.metrics());
    }
    assert_eq!(get(&gateway, "file").json()["revision"], "1");
    std::fs::write(&path, datafile("longer")).unwrap();
    until("longer");
}
