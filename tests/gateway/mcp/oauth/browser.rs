//! The consent page in Chromium. `make test-browser` installs it and runs these tests, which the rest of the suite leaves out.

use std::path::Path;
use std::process::Command;

use crate::support::boot::Gateway;
use crate::support::oauth::{authorization, client, page, resealed};

const CHECKS: usize = 10;

#[test]
#[ignore = "needs Chromium: make test-browser"]
fn a_person_walks_through_the_consent_page() {
    let toml = "[providers.sandbox]\nkind = \"sandbox\"\n";
    let models = "[[models]]\nid = \"sandbox-chat\"\n[[models.providers]]\nprovider = \"sandbox\"\nname = \"sandbox-chat\"\n";
    let gateway = Gateway::start(toml, models);
    let base = format!("http://{}", gateway.address());
    let request = authorization(&client(gateway.address()), "models", &[]);
    let old = resealed(&gateway, &page(gateway.address(), &request), |opened| {
        opened["issuer"] = base.as_str().into();
        opened["expires_at_ms"] = 0.into();
    });
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/browser");
    let output = Command::new("node")
        .current_dir(&folder)
        .arg(root.join("tests/browser/consent.mjs"))
        .env("GATEWAY", &base)
        .env("OLD_REQUEST", &old.request)
        .env("OLD_COOKIE", &old.cookie)
        .env("API_KEY", &gateway.key)
        .env("CHROMIUM", "/usr/bin/chromium")
        .env("SCREENSHOTS", &folder)
        .output()
        .unwrap_or_else(|error| panic!("running consent.mjs in {}: {error}", folder.display()));
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    // A script that ran nothing would succeed, too.
    let passed = out.lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!(passed, CHECKS, "{out}");
}
