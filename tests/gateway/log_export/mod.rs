//! The export of logs, in front of scripted destinations: what arrives, once, whatever fails.

mod clickhouse;
mod content;
mod failures;
mod lines;
mod restarts;
mod settings;
mod storage;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use filters::audit::PROGRAM;
use serde_json::Value;

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::{Received, Upstream};

/// A provider whose answers are these.
fn provider() -> Upstream {
    Upstream::always(crate::models::fronts::chat_completions::reply())
}

/// The section for a bucket at this address, whose batches go after a second.
fn bucket(url: &str, more: &str) -> String {
    format!(
        "[log_export]\nkind = \"s3\"\nendpoint = \"{url}\"\nbucket = \"calls\"\nprefix = \"a/b\"\n\
         access_key_id = {{ env = \"EXPORT_ID\" }}\nsecret_access_key = {{ env = \"EXPORT_KEY\" }}\n\
         batch_interval_s = 1\n{more}\n"
    )
}

/// The keys of [`bucket`].
const KEYS: [(&str, &str); 2] = [
    ("EXPORT_ID", "AKIDEXAMPLE"),
    ("EXPORT_KEY", "hunter2secret"),
];

/// A gateway in front of a provider, with this section.
fn gateway(provider: &Upstream, section: &str) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n{section}",
        provider.url()
    );
    Gateway::start_with_env(&toml, crate::support::boot::CENT, &KEYS)
}

/// Sets whether the export has the content of the organization's calls.
fn allow(gateway: &Gateway, allows: bool) {
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .set_export_content("acme", allows)
            .await
            .unwrap();
    });
}

const CHAT: &str = r#"{"model":"chat","messages":[{"role":"user","content":"Hi é"}]}"#;

fn is_ok() -> Reply {
    Reply::whole(200, &[], "")
}

/// Returns the lines of a batch.
fn lines(batch: &[u8]) -> Vec<Value> {
    let mut text = String::new();
    match batch {
        [0x1f, 0x8b, ..] => {
            let mut decoder = flate2::read::GzDecoder::new(batch);
            decoder.read_to_string(&mut text).unwrap();
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let bytes = zstd::bulk::decompress(batch, 64 << 20).unwrap();
            text = String::from_utf8(bytes).unwrap();
        }
        _ => text = String::from_utf8(batch.to_vec()).unwrap(),
    }
    assert!(text.ends_with('\n'), "the last line is whole");
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// Returns the lines of objects, each object as it was put last.
pub fn objects(puts: &[Received]) -> Vec<Value> {
    let objects: BTreeMap<&str, &[u8]> = puts
        .iter()
        .filter(|put| put.is_complete)
        .map(|put| (put.path.as_str(), put.body.as_slice()))
        .collect();
    objects.values().flat_map(|body| lines(body)).collect()
}

/// Returns the ids of the requests of lines, sorted.
pub fn ids(lines: &[Value]) -> Vec<String> {
    let ids = lines
        .iter()
        .map(|line| line["request_id"].as_str().unwrap());
    let mut ids: Vec<String> = ids.map(str::to_owned).collect();
    ids.sort_unstable();
    ids
}

fn id_of(answer: &Answer) -> String {
    answer.header("x-request-id").expect("an id").to_owned()
}

/// The segments of a state folder.
pub fn segments(state_dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state_dir.join("log_export"));
    let paths = entries.into_iter().flatten().map(|it| it.unwrap().path());
    paths.collect()
}

/// How many whole lines a state folder holds.
fn spooled(state_dir: &Path) -> usize {
    let texts = segments(state_dir).into_iter().map(std::fs::read);
    let texts = texts.map(Result::unwrap_or_default);
    texts
        .map(|text| text.iter().filter(|&&b| b == b'\n').count())
        .sum()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.flat_map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    paths.collect()
}

/// The lines of all files below a folder.
fn folder_lines(folder: &Path) -> Vec<Value> {
    let files = files(folder).into_iter();
    let whole = files.filter(|path| path.extension().is_some_and(|it| it != "new"));
    whole
        .flat_map(|path| lines(&std::fs::read(path).unwrap()))
        .collect()
}

/// The value of a metric.
fn metric(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |value| value.trim().parse::<f64>().unwrap() as u64)
}

/// Waits until this many lines with this outcome are counted.
fn wait_lines(gateway: &Gateway, outcome: &str, count: u64) {
    let name = format!("weirgate_log_export_lines_total{{outcome=\"{outcome}\"}}");
    until(&format!("{count} lines {outcome}"), || {
        metric(&gateway.metrics(), &name) >= count
    });
}

/// Makes calls. Returns their ids, sorted.
fn call(address: std::net::SocketAddr, key: &str, body: &str, count: usize) -> Vec<String> {
    let calls = (0..count).map(|_| {
        let answer = ask(address, &Ask::post("/v1/chat/completions", body).key(key));
        assert_eq!(answer.status(), 200, "{}", answer.text());
        id_of(&answer)
    });
    let mut ids: Vec<String> = calls.collect();
    ids.sort_unstable();
    ids
}
