//! Forms with files: never whole in memory, sent again to the next provider, gone with their request.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;

use crate::ledger::money::Place;
use crate::ledger::used;
use crate::models::fronts::transcriptions::{MODELS, gateway, gateway_with};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Client, ask};
use crate::support::script::Reply;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::{Received, Upstream};

const PATH: &str = "/v1/audio/transcriptions";

/// A second of silence: 8,000 samples of 16 bits.
pub const WAV: [u8; 16_044] = {
    let mut wav = [0; 16_044];
    let head = b"RIFF\xa4\x3e\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x80\x3e\0\0";
    let mut at = 0;
    while at < head.len() {
        wav[at] = head[at];
        at += 1;
    }
    wav
};

/// A form under construction, divided by `x`.
#[derive(Clone)]
pub struct Form(Vec<u8>);

impl Form {
    pub fn of(fields: &[(&str, &str)]) -> Form {
        let mut form = Vec::new();
        for (name, value) in fields {
            let part = format!(
                "--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
            form.extend_from_slice(part.as_bytes());
        }
        Form(form)
    }

    /// Adds the file.
    pub fn file(mut self, name: &str, bytes: &[u8]) -> Form {
        let head = format!(
            "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
        );
        self.0.extend_from_slice(head.as_bytes());
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    pub fn body(&self) -> Vec<u8> {
        [&self.0[..], b"--x--\r\n"].concat()
    }
}

/// A request that posts a form.
pub fn form_ask(gateway: &Gateway, path: &str, form: &Form) -> Ask {
    with_key(&gateway.key, path, form)
}

fn with_key(key: &str, path: &str, form: &Form) -> Ask {
    let ask = Ask::new("POST", path).key(key).body(form.body());
    ask.header("content-type", "multipart/form-data; boundary=x")
}

/// The head and the content of each part of a form that a provider got.
pub fn parts(request: &Received) -> Vec<(String, Vec<u8>)> {
    let media_type = request.header("content-type").unwrap();
    let boundary = media_type.split("boundary=").nth(1).unwrap();
    assert!(boundary.len() > 32, "{boundary}");
    let mut rest = &request.body[..];
    let mut parts = Vec::new();
    let delimiter = format!("\r\n--{boundary}");
    rest = rest.strip_prefix(&delimiter.as_bytes()[2..]).unwrap();
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let end = memchr::memmem::find(part, delimiter.as_bytes()).unwrap();
        let head = memchr::memmem::find(part, b"\r\n\r\n").unwrap();
        let text = String::from_utf8(part[..head].to_vec()).unwrap();
        parts.push((text, part[head + 4..end].to_vec()));
        rest = &part[end + delimiter.len()..];
    }
    assert_eq!(rest, b"--\r\n");
    parts
}

fn heard() -> Reply {
    let usage = json!({"type": "duration", "seconds": 1});
    Reply::json(200, json!({"text": "Hi", "usage": usage}).to_string())
}

/// An Ogg of this length, of bytes that differ.
fn ogg(bytes: usize) -> Vec<u8> {
    let mut ogg = b"OggS".to_vec();
    ogg.extend((4..bytes).map(|at| (at % 251) as u8 ^ (at / 65_536) as u8));
    ogg
}

pub fn spooled(gateway: &Gateway) -> usize {
    gateway.running.app.proxy.spool.reserved_bytes()
}

#[test]
fn every_provider_that_is_tried_gets_the_whole_file() {
    let file = ogg(3 << 20);
    let (first, second) = (
        Upstream::always(Reply::json(500, "{}")),
        Upstream::always(heard()),
    );
    // What is reserved for so many bytes is 8.4.
    let gateway = gateway_with([&first, &second], "100");
    let form = Form::of(&[("model", "ear")]).file("a.ogg", &file);
    for request in [
        form_ask(&gateway, PATH, &form),
        form_ask(&gateway, PATH, &form).chunked(10_007),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }
    for provider in [&first, &second] {
        for request in provider.requests() {
            let parts = parts(&request);
            assert!(parts[1].1 == file, "{} bytes arrived", parts[1].1.len());
            let length = request.header("content-length").unwrap();
            assert_eq!(length, request.body.len().to_string());
        }
    }
    // A provider that has failed may rest meanwhile.
    assert!(!first.requests().is_empty() && second.requests().len() == 2);
    until("the disk is given back", || spooled(&gateway) == 0);
}

/// Contract: model-gateway 2.16 file
#[test]
fn uploads_are_bounded_by_their_length_and_by_their_place_on_the_disk() {
    let first = Upstream::always(heard());
    let more = "[limits]\nspooled_bytes = 1048576\nbody_bytes = { audio = 1000000 }\n\
                [providers.first]\nkind = \"openai-compatible\"\nkeys = []\nbase_url = ";
    let toml = format!(
        "{more}\"{0}/v1\"\n[providers.second]\nkind = \"openai-compatible\"\nkeys = []\nbase_url = \"{0}/v1\"\n",
        first.url()
    );
    let gateway = Gateway::start(&toml, MODELS);
    let form = Form::of(&[("model", "ear")]).file("a.ogg", &ogg(1_000_000));
    for request in [
        form_ask(&gateway, PATH, &form)
            .body("")
            .header("content-length", "1000001"),
        form_ask(&gateway, PATH, &form).chunked(65_536),
    ] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(answer.status(), 413, "{}", answer.text());
    }
    let third = begin(&gateway.key, gateway.address(), 999_999);
    until("what has come of the first upload has its place", || {
        spooled(&gateway) == 333_333
    });
    let form = Form::of(&[("model", "ear")]).file("a.ogg", &ogg(600_000));
    let refused = ask(gateway.address(), &form_ask(&gateway, PATH, &form));
    assert_eq!(refused.status(), 529, "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    drop(third);
    until("the place is given back", || spooled(&gateway) == 0);
    let answer = ask(gateway.address(), &form_ask(&gateway, PATH, &form));
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

/// Sends the head of a form of this length, and a third of the form.
fn begin(key: &str, address: SocketAddr, bytes: usize) -> Client {
    let form = Form::of(&[("model", "ear")]).file("a.ogg", &ogg(bytes / 3));
    let mut client = Client::connect(address);
    client.send_bytes(format!(
        "POST {PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: multipart/form-data; boundary=x\r\n\
         Content-Length: {bytes}\r\nx-request-id: half\r\n\r\n"
    ));
    client.send_bytes(&form.body()[..bytes / 3]);
    client
}

#[test]
fn a_client_that_leaves_in_the_middle_of_an_upload_pays_nothing() {
    let first = Upstream::always(heard());
    let gateway = gateway(&first, &first);
    let client = begin(&gateway.key, gateway.address(), 3_000_000);
    until("the upload has begun", || spooled(&gateway) > 0);
    drop(client);
    let line = gateway.log_line("half");
    assert_eq!(
        (&line["status"], &line["route"]),
        (&json!(400), &json!("transcriptions")),
        "{line}"
    );
    until("the disk is given back", || spooled(&gateway) == 0);
    assert!(first.requests().is_empty());
    used(&gateway, "0");
}

/// The names in the folder of uploads.
fn left(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("uploads")).unwrap().count()
}

#[test]
fn a_process_killed_in_the_middle_of_an_upload_leaves_nothing_and_charges_nothing() {
    let first = Upstream::always(Reply::hang());
    let place = Place::new("", &first, MODELS);
    let key = place.fund("100");
    let server = Server::start(place.path());
    let _half = begin(&key, server.address, 3_000_000);
    // Another is with its provider.
    let mut whole = Client::connect(server.address);
    let form = Form::of(&[("model", "ear")]).file("a.ogg", &ogg(2_000_000));
    whole.send(&with_key(&key, PATH, &form));
    first.wait_requests(1);
    assert_eq!(left(place.path()), 0);
    server.kill();
    assert_eq!(left(place.path()), 0);
    let server = Server::start(place.path());
    server.stop();
    let credit = place.store(async |store| store.credit("acme").await.unwrap());
    assert_eq!(credit.used.to_string(), "0");
}

/// The most that an upload may take of the memory above that of an idle process.
const MAX_KIB: u64 = 5 << 10;

#[test]
fn an_upload_of_25_mb_takes_no_memory() {
    let first = Upstream::answering(|request| {
        let file = &parts(request)[1].1;
        let usage = json!({"type": "duration", "seconds": 1});
        Reply::json(
            200,
            json!({"text": file.len().to_string(), "usage": usage}).to_string(),
        )
    });
    assert_flat(&first, MODELS, 100_000, |address, key, bytes| {
        let form = Form::of(&[("model", "ear")]).file("a.ogg", &ogg(bytes));
        let answer = ask(address, &with_key(key, PATH, &form));
        assert_eq!(answer.json()["text"], bytes.to_string());
    });
}

/// Asserts that a large upload takes no more memory than one of `small` bytes. `upload` sends one of so many bytes to this
/// address, with this key.
pub fn assert_flat(
    provider: &Upstream,
    models: &str,
    small: usize,
    upload: impl Fn(SocketAddr, &str, usize),
) {
    let place = Place::new("", provider, models);
    let key = place.fund("1000");
    let server = Server::start(place.path());
    // What a process has made for its first requests stays.
    for _ in 0..8 {
        upload(server.address, &key, small);
    }
    let idle = server.memory_kib("VmRSS");
    server.reset_peak_memory();
    upload(server.address, &key, 26_000_000);
    let peak = server.memory_kib("VmHWM");
    assert!(peak <= idle + MAX_KIB, "{peak} KiB after {idle} KiB");
}
