//! Who is let in, and what a page forbids a browser.

use super::{Browser, form};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;

const TOKEN: &str = "a-long-admin-token";

fn with_token() -> Gateway {
    let toml = "[admin]\ntoken = { env = \"ADMIN\" }";
    Gateway::start_with_env(toml, "", &[("ADMIN", TOKEN)])
}

fn sign_in(token: &str) -> Ask {
    form("/console/sign-in", &[("name", "Ann"), ("token", token)])
}

#[test]
fn without_a_token_this_machine_alone_is_answered_and_by_its_own_name() {
    let gateway = Gateway::start("", "");
    let mut browser = Browser::new(&gateway);
    let page = browser.page("/console");
    assert!(
        page.contains("<title>Overview · Weirgate</title>"),
        "{page}"
    );
    let admin = gateway.running.admin;
    for host in ["evil.example", "localhost.evil.example", "192.0.2.1"] {
        let request = Ask::get("/console").without("Host").header("Host", host);
        let refused = ask(admin, &request);
        assert_eq!(refused.status(), 403, "{host}");
        assert!(!refused.text().contains("Overview"), "{}", refused.text());
    }
    let root = ask(admin, &Ask::get("/"));
    assert_eq!(
        (root.status(), root.header("location")),
        (302, Some("/console"))
    );
    assert_eq!(ask(admin, &Ask::get("/console/nothing")).status(), 404);
    assert_eq!(ask(admin, &Ask::get("/consoles")).status(), 404);
    assert_eq!(ask(admin, &Ask::new("PUT", "/console")).status(), 405);
}

#[test]
fn with_a_token_nothing_is_shown_before_the_sign_in() {
    let gateway = with_token();
    let mut browser = Browser::new(&gateway);
    let sent = browser.send(&Ask::get("/console"));
    assert_eq!(
        (sent.status(), sent.header("location")),
        (303, Some("/console/sign-in"))
    );
    let script = Ask::get("/console").header("HX-Request", "true");
    assert_eq!(browser.send(&script).status(), 401);
    let page = browser.page("/console/sign-in");
    assert!(
        page.contains("name=\"token\"") && !page.contains(TOKEN),
        "{page}"
    );
    let refused = browser.send(&sign_in("wrong"));
    assert_eq!(refused.status(), 403);
    assert!(
        refused.text().contains("not the token"),
        "{}",
        refused.text()
    );
    assert!(refused.header("set-cookie").is_none());
    let signed_in = browser.send(&sign_in(TOKEN));
    assert_eq!(signed_in.status(), 303, "{}", signed_in.text());
    let cookie = signed_in.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/console"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(browser.page("/console").contains("Ann"));
    // Bearer credentials are for programs, cookies for people.
    let bearer = Ask::get("/console").key(TOKEN);
    assert_eq!(ask(gateway.running.admin, &bearer).status(), 303);
    let left = browser.submit("/console/sign-out", &[]);
    assert_eq!(left.status(), 303, "{}", left.text());
    assert_eq!(browser.send(&Ask::get("/console")).status(), 303);
}

#[test]
fn behind_tls_the_cookie_is_secure() {
    let gateway = with_token();
    let request = sign_in(TOKEN).header("X-Forwarded-Proto", "https");
    let answer = ask(gateway.running.admin, &request);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; Secure"), "{cookie}");
}

#[test]
fn a_form_of_another_site_changes_nothing() {
    let gateway = with_token();
    let mut browser = Browser::new(&gateway);
    browser.send(&sign_in(TOKEN));
    for fields in [&[][..], &[("csrf", "guessed")]] {
        let refused = browser.send(&form("/console/sign-out", fields));
        assert_eq!(refused.status(), 403);
    }
    let page = browser.page("/console");
    let csrf = super::field(&page, "csrf").unwrap();
    for site in ["cross-site", "same-site"] {
        let request = form("/console/sign-out", &[("csrf", &csrf)]);
        let refused = browser.send(&request.header("Sec-Fetch-Site", site));
        assert_eq!(refused.status(), 403, "{site}");
    }
    assert!(browser.page("/console").contains("Ann"), "still signed in");
}

#[test]
fn a_page_forbids_whatever_is_not_its_own() {
    let gateway = Gateway::start("", "");
    let answer = ask(gateway.running.admin, &Ask::get("/console"));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(
        !policy.contains("unsafe") && !policy.contains("http"),
        "{policy}"
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let page = answer.text();
    for forbidden in [
        " style=",
        "<style",
        " onclick",
        "hx-on",
        "javascript:",
        "://",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}: {page}");
    }
    // Each file that the page names is there, and may be kept.
    let files: Vec<&str> = page
        .split(['"'])
        .filter(|part| part.starts_with("/console/assets/"))
        .collect();
    assert_eq!(files.len(), 6, "{page}");
    for file in files {
        let answer = ask(gateway.running.admin, &Ask::get(file));
        assert_eq!(answer.status(), 200, "{file}");
        assert!(
            answer
                .header("cache-control")
                .unwrap()
                .contains("immutable")
        );
        assert!(answer.text().len() > 100, "{file}");
    }
}

#[test]
fn a_form_that_is_too_long_is_refused() {
    let gateway = with_token();
    let long = "x".repeat((1 << 20) + 1);
    let refused = ask(gateway.running.admin, &sign_in(&long));
    assert_eq!(refused.status(), 413);
}
