//! A storage that speaks S3's API and checks signatures: moto, which botocore's signer stands behind.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::json;

use super::*;
use crate::support::sdk::{self, Script};

/// `s3_python.py`.
struct Moto {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Where it listens, and the keys that it takes.
    told: Value,
}

impl Moto {
    fn start() -> Moto {
        let mut child = sdk::start(Script::S3Python);
        let mut moto = Moto {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            told: Value::Null,
        };
        moto.told = moto.read();
        moto
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Returns all objects: a list of keys and texts.
    fn objects(&mut self) -> Vec<(String, String)> {
        writeln!(self.input).unwrap();
        serde_json::from_value(self.read()).unwrap()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Written keys, AWS's own sources, and a key that the storage does not know.
#[test]
fn a_storage_that_checks_signatures_takes_each_line_once() {
    let mut moto = Moto::start();
    let told = moto.told.clone();
    let text = |name: &str| told[name].as_str().unwrap().to_owned();
    let endpoint = text("endpoint");
    let written = bucket(&endpoint, "");
    let ambient = written
        .replace("access_key_id = { env = \"EXPORT_ID\" }\n", "")
        .replace("secret_access_key = { env = \"EXPORT_KEY\" }\n", "");
    let mut asked = Vec::new();
    for (section, names) in [
        (&written, ["EXPORT_ID", "EXPORT_KEY"]),
        (&ambient, ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]),
    ] {
        let provider = provider();
        let toml = format!(
            "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n{section}",
            provider.url()
        );
        let env = [
            (names[0], &*text("access_key_id")),
            (names[1], &*text("secret_access_key")),
        ];
        let gateway = Gateway::start_with_env(&toml, crate::support::boot::CENT, &env);
        asked.extend(call(gateway.address(), &gateway.key, CHAT, 3));
        wait_lines(&gateway, "exported", 3);
    }
    let objects = moto.objects();
    let found = objects.iter().flat_map(|(_, text)| lines(text.as_bytes()));
    let found: Vec<Value> = found.collect();
    asked.sort_unstable();
    assert_eq!(ids(&found), asked);
    for (key, _) in &objects {
        assert!(key.starts_with("a/b/date=2"), "{key}");
        assert!(
            key.contains("/hour=") && key.ends_with(".jsonl.gz"),
            "{key}"
        );
    }
    let provider = provider();
    let gateway = gateway(&provider, &written);
    call(gateway.address(), &gateway.key, CHAT, 1);
    let failures = "weirgate_log_export_failures_total";
    until("a failure", || metric(&gateway.metrics(), failures) > 0);
    assert_eq!(moto.objects().len(), objects.len());
    assert_eq!(json!(spooled(gateway.folder.path())), json!(1));
}
