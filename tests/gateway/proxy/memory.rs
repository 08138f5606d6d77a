//! Memory of the process while large files pass through it.

use std::time::Duration;

use crate::models::fronts::videos::{studio, there};
use crate::support::ask::Ask;
use crate::support::client::{Client, ask};
use crate::support::process::Process;
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};
use crate::support::{stays, until};

const MODELS: &str = r#"
[[models]]
id = "sandbox-chat"
[[models.providers]]
provider = "sandbox"
name = "sandbox-chat"
[[models]]
id = "voice"
type = "speech"
[[models.providers]]
provider = "first"
name = "voice-at-first"
[[models]]
id = "small"
type = "speech"
[[models.providers]]
provider = "small"
name = "small"
[[models]]
id = "film"
type = "video"
[[models.providers]]
provider = "first"
name = "film"
"#;

const FILE_BYTES: usize = 25 << 20;
/// Enough to fill the buffers of a connection.
const SMALL_FILE_BYTES: usize = 1 << 20;
/// What a file may take beside what the process holds at rest.
const SPARE_BYTES: u64 = 5 << 20;

#[test]
fn a_large_file_comes_down_in_little_memory_and_waits_for_a_slow_reader() {
    let file = |bytes| Reply::whole(200, &[("content-type", "audio/mpeg")], vec![7; bytes]);
    let (large, small) = (
        Upstream::always(file(FILE_BYTES)),
        Upstream::always(file(SMALL_FILE_BYTES)),
    );
    let provider = |name, upstream: &Upstream| {
        let url = upstream.url();
        format!(
            "[providers.{name}]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\n"
        )
    };
    let toml = provider("first", &large) + &provider("small", &small);
    let process = Process::start_with(&toml, MODELS);
    let speak = |model: &str| {
        let body = format!(r#"{{"model":"{model}","input":"hello"}}"#);
        Ask::post("/v1/audio/speech", body).key(process.key())
    };
    // Every worker has its buffers once it has served.
    for _ in 0..16 {
        assert_eq!(ask(process.address, &speak("small")).status(), 200);
    }

    let at_rest = process.memory();
    process.forget_most_memory();
    let taken = || process.most_memory().saturating_sub(at_rest);
    assert_eq!(ask(process.address, &speak("voice")).body.len(), FILE_BYTES);
    assert!(taken() < SPARE_BYTES, "{} bytes", taken());

    let mut slow = Client::connect(process.address);
    slow.send(&speak("voice"));
    assert_eq!(slow.head().status, 200);
    let is_little = || taken() < SPARE_BYTES;
    stays("memory is little", Duration::from_millis(300), is_little);
    let chunks = std::iter::from_fn(|| slow.chunk());
    let bytes: usize = chunks.map(|chunk| chunk.bytes.len()).sum();
    assert_eq!(bytes, FILE_BYTES);
}

#[test]
fn a_large_video_comes_down_in_little_memory_and_waits_for_a_slow_reader() {
    let file =
        |_: &Received| Reply::whole(200, &[("content-type", "video/mp4")], vec![7; FILE_BYTES]);
    let large = studio(|_| there(), file);
    let url = large.url();
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\n\
         [providers.small]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\n"
    );
    let process = Process::start_with(&toml, MODELS);
    let body = r#"{"model":"film","prompt":"a cat","seconds":4}"#;
    let order = Ask::post("/v1/videos", body).key(process.key());
    let job = ask(process.address, &order).json();
    let path = format!("/v1/videos/{}", job["id"].as_str().unwrap());
    let look = Ask::get(&path).key(process.key());
    until("the video is there", || {
        ask(process.address, &look).json()["status"] == "completed"
    });
    let content = Ask::get(&format!("{path}/content")).key(process.key());
    // Every worker has its buffers once it has served a part.
    for _ in 0..16 {
        let part = content.clone().header("range", "bytes=0-1048575");
        assert_eq!(ask(process.address, &part).status(), 206);
    }

    let at_rest = process.memory();
    process.forget_most_memory();
    let taken = || process.most_memory().saturating_sub(at_rest);
    assert_eq!(ask(process.address, &content).body.len(), FILE_BYTES);
    assert!(taken() < SPARE_BYTES, "{} bytes", taken());

    let mut slow = Client::connect(process.address);
    slow.send(&content);
    assert_eq!(slow.head().status, 200);
    let is_little = || taken() < SPARE_BYTES;
    stays("memory is little", Duration::from_millis(300), is_little);
    let chunks = std::iter::from_fn(|| slow.chunk());
    let bytes: usize = chunks.map(|chunk| chunk.bytes.len()).sum();
    assert_eq!(bytes, FILE_BYTES);
}
