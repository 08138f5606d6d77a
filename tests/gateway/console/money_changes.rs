//! Keys and credit that are changed on the console.

use filters::audit::PROGRAM;
use serde_json::json;
use weirgate::store::{AuditFilter, NewKey};

use super::money::{address, organization};
use super::{Browser, OpenForm, WRITE, form, plain};
use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::upstream::Upstream;

fn key_page(id: &str) -> String {
    address("/console/money/key", &[("id", id)])
}

fn gateway(upstream: &Upstream) -> Gateway {
    Gateway::with(&upstream.url(), &upstream.url(), WRITE)
}

/// Makes a key with a limit. Returns its id.
fn a_key(gateway: &Gateway) -> String {
    gateway.change(async |store| {
        let limits = json!({"limit": "5", "deny_models": ["other"]});
        let terms = serde_json::from_value(limits).unwrap();
        let new = NewKey {
            organization: "acme",
            label: "ci",
            terms: &terms,
            ..NewKey::default()
        };
        store.by(&PROGRAM).create_key(&new, 0).await.unwrap().1.id
    })
}

#[test]
fn a_key_made_in_the_console_works_and_is_shown_once() {
    let upstream = Upstream::always(reply());
    let gateway = gateway(&upstream);
    let mut browser = Browser::new(&gateway);
    let page = organization("acme", &[]);
    let open = OpenForm::open(
        &mut browser,
        &page,
        "/console/money/organization/create-key",
    );
    let made = open.send(&mut browser, &[("label", "<b>new"), ("limit_day", "2.50")]);
    assert_eq!(made.status(), 200, "{}", made.text());
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let text = made.text().split("id=\"key\"").nth(1).unwrap();
    let text = text
        .split("value=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    crate::support::every(crate::support::POLL, std::time::Duration::from_secs(5))
        .find(|_| gateway.asked(text, "chat", json!({})).status() == 200)
        .expect("the key works");
    let issued = gateway.beside(async |store| store.keys("acme").await.unwrap());
    let issued = issued.iter().find(|key| key.label == "<b>new").unwrap();
    assert_eq!(issued.terms.limit_per["day"], "2.50");
    for path in [page, key_page(&issued.id), "/console/money".to_owned()] {
        let shown = browser.page(&path);
        assert!(!shown.contains(text), "{path}");
    }
    // A page that is loaded again sends its form again.
    let again = open.send(&mut browser, &[("label", "<b>new"), ("limit_day", "2.50")]);
    assert_eq!(again.status(), 422);
    assert!(
        again.text().contains("made a key before"),
        "{}",
        again.text()
    );
    let issued = gateway.beside(async |store| store.keys("acme").await.unwrap());
    let made = issued.iter().filter(|key| key.label == "<b>new");
    assert_eq!(made.count(), 1);
}

#[test]
fn a_change_is_that_of_the_command_and_has_its_entry() {
    let gateway = Gateway::start(WRITE, "");
    let mut browser = Browser::new(&gateway);
    let id = a_key(&gateway);
    let open = OpenForm::open(&mut browser, &key_page(&id), "/console/money/key/update");
    let fields = [("label", "ci"), ("limit", "7"), ("limit_hour", "0.5")];
    let changed = open.send(&mut browser, &fields);
    assert_eq!(changed.status(), 303, "{}", changed.text());
    assert_eq!(changed.header("location"), Some(&*key_page(&id)));
    let terms = gateway.beside(async |store| store.key_terms(&id).await.unwrap());
    assert_eq!(
        (terms.limit.as_deref(), &*terms.limit_per["hour"]),
        (Some("7"), "0.5")
    );
    assert_eq!(
        terms.deny_models,
        ["other"],
        "what the form does not show stays"
    );
    for (path, status) in [
        ("/console/money/key/disable", "disabled"),
        ("/console/money/key/enable", "active"),
    ] {
        let open = OpenForm::open(&mut browser, &key_page(&id), path);
        assert_eq!(open.send(&mut browser, &[]).status(), 303);
        let key = gateway.beside(async |store| store.key(&id).await.unwrap().1);
        assert_eq!(key.status(0), status);
    }
    let open = OpenForm::open(&mut browser, &key_page(&id), "/console/money/key/revoke");
    let unconfirmed = open.send(&mut browser, &[]);
    assert_eq!(unconfirmed.status(), 422, "{}", unconfirmed.text());
    assert_eq!(open.send(&mut browser, &[("confirm", "yes")]).status(), 303);
    let page = browser.page(&key_page(&id));
    assert!(
        page.contains("revoked") && !page.contains("key/revoke"),
        "{page}"
    );
    let entries = gateway.beside(async |store| {
        let filter = AuditFilter::default();
        store.audit_entries(&filter, 10).await.unwrap()
    });
    let actions: Vec<_> = entries.entries.iter().map(|it| &*it.entry.action).collect();
    let expected = ["key.revoke", "key.enable", "key.disable", "key.update"];
    assert_eq!(actions[..4], expected);
    let origins = entries.entries[..4].iter();
    assert!(
        origins
            .clone()
            .all(|it| it.entry.origin.starts_with("console from 127.0.0.1"))
    );
}

#[test]
fn what_is_refused_is_said_beside_its_field_and_what_was_typed_stays() {
    let gateway = Gateway::start(WRITE, "");
    let mut browser = Browser::new(&gateway);
    let id = a_key(&gateway);
    let open = OpenForm::open(&mut browser, &key_page(&id), "/console/money/key/update");
    for (name, typed, said) in [
        ("limit", "<b>much", "limit-problem"),
        ("limit_day", "-1", "limit_day-problem"),
        ("expires", "tomorrow\"", "is no time"),
        ("expires", "2020-01-01T00:00:00Z", "not in the future"),
        ("member", "nobody", "there is no member `nobody`"),
        ("label", &"x".repeat(200), "1 to 128 characters"),
    ] {
        let refused = open.send(&mut browser, &[(name, typed)]);
        assert_eq!(refused.status(), 422, "{name}: {}", refused.text());
        let page = refused.text();
        let shown = typed.replace('<', "&lt;").replace('>', "&gt;");
        let shown = shown.replace('"', "&quot;");
        assert!(page.contains(said), "{name}: {page}");
        assert!(
            page.contains(&format!("value=\"{shown}\"")),
            "{name}: {page}"
        );
        assert!(page.contains("aria-invalid=\"true\""), "{name}: {page}");
    }
    let terms = gateway.beside(async |store| store.key_terms(&id).await.unwrap());
    assert_eq!(terms.limit.as_deref(), Some("5"));
}

#[test]
fn the_second_of_two_who_change_one_thing_is_told() {
    let gateway = Gateway::start(WRITE, "");
    let (mut ann, mut bob) = (Browser::new(&gateway), Browser::new(&gateway));
    let id = a_key(&gateway);
    let update = "/console/money/key/update";
    let of_ann = OpenForm::open(&mut ann, &key_page(&id), update);
    let of_bob = OpenForm::open(&mut bob, &key_page(&id), update);
    let changed = of_ann.send(&mut ann, &[("label", "ci"), ("limit", "6")]);
    assert_eq!(changed.status(), 303, "{}", changed.text());
    let refused = of_bob.send(&mut bob, &[("label", "ci"), ("limit", "9")]);
    assert_eq!(refused.status(), 409, "{}", refused.text());
    let page = plain(refused.text());
    assert!(page.contains("limit was \"5\" and is \"6\""), "{page}");
    assert!(page.contains("value=\"9\""), "what was typed stays: {page}");
    let terms = gateway.beside(async |store| store.key_terms(&id).await.unwrap());
    assert_eq!(terms.limit.as_deref(), Some("6"));
    // The page that told it has the newest state, so that the change can be meant again.
    let again = OpenForm::open(&mut bob, &key_page(&id), update);
    assert_eq!(again.send(&mut bob, &[("limit", "9")]).status(), 303);
}

#[test]
fn credit_is_given_once_and_taken_as_far_as_there_is_any() {
    let gateway = Gateway::start(WRITE, "");
    let mut browser = Browser::new(&gateway);
    let page = organization("acme", &[]);
    let granted = || gateway.beside(async |store| store.credit("acme").await.unwrap().granted);
    let before = granted();
    let open = OpenForm::open(
        &mut browser,
        &page,
        "/console/money/organization/add-credit",
    );
    assert_eq!(open.send(&mut browser, &[("amount", "2.50")]).status(), 303);
    // A second click, or a form that was sent again.
    let again = open.send(&mut browser, &[("amount", "2.50")]);
    assert_eq!(again.status(), 409, "{}", again.text());
    let after = granted().minus(before);
    assert_eq!(after.to_string(), "2.5");
    let open = OpenForm::open(
        &mut browser,
        &page,
        "/console/money/organization/take-credit",
    );
    for (amount, status, said) in [
        ("0", 422, "0 takes nothing"),
        ("", 422, "an amount is missing"),
        ("1e3", 422, "amount-problem"),
        ("999999999", 409, "at most"),
    ] {
        let refused = open.send(&mut browser, &[("amount", amount)]);
        assert_eq!(refused.status(), status, "{amount}: {}", refused.text());
        assert!(
            refused.text().contains(said),
            "{amount}: {}",
            refused.text()
        );
    }
    assert_eq!(open.send(&mut browser, &[("amount", "2.50")]).status(), 303);
    assert_eq!(granted(), before);
}

#[test]
fn without_admin_write_or_the_proof_of_the_session_nothing_changes() {
    let gateway = Gateway::start("", "");
    let mut browser = Browser::new(&gateway);
    let id = a_key(&gateway);
    let page = browser.page(&key_page(&id));
    assert!(!page.contains("<form class=\"stacked\""), "{page}");
    let path = address("/console/money/key/revoke", &[("id", &id)]);
    let refused = browser.send(&form(&path, &[("confirm", "yes"), ("seen", "{}")]));
    assert_eq!(refused.status(), 403);
    let writable = Gateway::start(WRITE, "");
    let id = a_key(&writable);
    let path = address("/console/money/key/revoke", &[("id", &id)]);
    let mut browser = Browser::new(&writable);
    let open = OpenForm::open(&mut browser, &key_page(&id), "/console/money/key/revoke");
    let seen = open.seen.as_deref().unwrap();
    for csrf in ["", "guessed"] {
        let fields = [("csrf", csrf), ("confirm", "yes"), ("seen", seen)];
        assert_eq!(browser.send(&form(&path, &fields)).status(), 403);
    }
    for seen in ["", "{}", "[]", "{\"label\":"] {
        let fields = [("csrf", &*open.csrf), ("confirm", "yes"), ("seen", seen)];
        let refused = browser.send(&form(&path, &fields));
        assert!(matches!(refused.status(), 409 | 422), "{}", refused.text());
    }
    let key = writable.beside(async |store| store.key(&id).await.unwrap().1);
    assert_eq!(key.status(0), "active");
    assert_eq!(
        browser
            .send(&Ask::get("/console/money/key/revoke"))
            .status(),
        404
    );
}
