//! Rules of keys, members and settings of organizations that are changed on the console.

use filters::audit::PROGRAM;
use weirgate::store::{AuditFilter, NewKey};

use super::money::{address, organization};
use super::{Browser, OpenForm, WRITE, plain, table_rows};
use crate::support::boot::Gateway;

const HOSTILE: &str = "a\"'><script>alert(1)</script>&b=c/d?e#f%";
const UPDATE_KEY: &str = "/console/money/key/update";

fn member(name: &str) -> String {
    let pairs = [("name", "acme"), ("member", name)];
    address("/console/money/member", &pairs)
}

fn key_page(id: &str) -> String {
    address("/console/money/key", &[("id", id)])
}

fn a_key(gateway: &Gateway) -> String {
    gateway.change(async |store| {
        let new = NewKey {
            organization: "acme",
            label: "ci",
            ..NewKey::default()
        };
        store.by(&PROGRAM).create_key(&new, 0).await.unwrap().1.id
    })
}

/// The actions of the newest entries of the audit log, which were made on the console.
fn last_actions(gateway: &Gateway, count: u32) -> Vec<String> {
    let page = gateway.beside(async |store| {
        let filter = AuditFilter::default();
        store.audit_entries(&filter, count).await.unwrap()
    });
    let entries = page.entries.into_iter();
    entries
        .map(|it| {
            assert!(it.entry.origin.starts_with("console from 127.0.0.1"));
            it.entry.action
        })
        .collect()
}

#[test]
fn rules_of_a_key_are_changed_and_a_name_that_nobody_knows_is_told() {
    // Nothing is asked of the providers.
    let nobody = "http://127.0.0.1:9";
    let gateway = Gateway::with(nobody, nobody, WRITE);
    let mut browser = Browser::new(&gateway);
    let id = a_key(&gateway);
    let open = OpenForm::open(&mut browser, &key_page(&id), UPDATE_KEY);
    let rules = [
        ("label", "ci"),
        ("allow_models", "chat\r\n <b>typo \n\n"),
        ("deny_providers", "nobody\r\nfirst"),
        ("allow_ips", "203.0.113.0/24\r\n2001:db8::/32"),
        ("max_input_price", "1.50"),
        ("debug", "yes"),
    ];
    let changed = open.send(&mut browser, &rules);
    assert_eq!(changed.status(), 303, "{}", changed.text());
    let key = gateway.beside(async |store| store.key(&id).await.unwrap().1);
    let terms = &key.terms;
    assert_eq!(terms.allow_models, ["chat", "<b>typo"]);
    assert_eq!(terms.deny_providers, ["nobody", "first"]);
    assert_eq!(terms.allow_ips, ["203.0.113.0/24", "2001:db8::/32"]);
    assert_eq!(terms.max_input_price.as_deref(), Some("1.50"));
    assert!(key.is_debug);
    assert_eq!(last_actions(&gateway, 1), ["key.update"]);
    let page = plain(&browser.page(&key_page(&id)));
    for said in [
        "the catalogue has no model `<b>typo`",
        "the configuration has no provider `nobody`",
        "chat\n<b>typo</textarea>",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert_eq!(page.matches("A rule has no effect").count(), 2, "{page}");
    // What is sent empty is taken away, and what is not sent stays.
    let open = OpenForm::open(&mut browser, &key_page(&id), UPDATE_KEY);
    let fields = [("label", "ci"), ("allow_models", ""), ("debug", "no")];
    assert_eq!(open.send(&mut browser, &fields).status(), 303);
    let key = gateway.beside(async |store| store.key(&id).await.unwrap().1);
    assert!(key.terms.allow_models.is_empty() && !key.is_debug);
    assert_eq!(key.terms.deny_providers, ["nobody", "first"]);
}

#[test]
fn a_rule_that_cannot_be_is_said_beside_its_field() {
    let gateway = Gateway::start(WRITE, "");
    let mut browser = Browser::new(&gateway);
    let id = a_key(&gateway);
    let open = OpenForm::open(&mut browser, &key_page(&id), UPDATE_KEY);
    for (name, typed) in [
        ("allow_ips", "10.0.0.0/8\n<b>here"),
        ("deny_ips", "10.0.0.1/8/9"),
        ("max_output_price", "-1"),
        ("max_input_price", "much"),
        ("allow_models", "a\0b"),
        ("deny_models", "\u{1}"),
        ("member", "a\0b"),
        ("debug", "perhaps"),
    ] {
        let refused = open.send(&mut browser, &[("label", "ci"), (name, typed)]);
        let page = refused.text();
        assert_eq!(refused.status(), 422, "{name}: {page}");
        let problem = format!("id=\"key-update-{name}-problem\"");
        assert!(page.contains(&problem), "{name}: {page}");
        // A rule is behind a title, which is opened.
        let is_shown = name == "member" || page.contains("<details open");
        assert!(is_shown, "{name}: {page}");
        assert!(!page.contains("<b>"), "{name}: {page}");
    }
    let terms = gateway.beside(async |store| store.key_terms(&id).await.unwrap());
    assert!(terms.is_empty());
}

#[test]
fn a_new_key_has_its_rules_and_says_what_has_no_effect() {
    let gateway = Gateway::start(WRITE, "");
    let mut browser = Browser::new(&gateway);
    let path = "/console/money/organization/create-key";
    let open = OpenForm::open(&mut browser, &organization("acme", &[]), path);
    for (name, typed) in [
        ("project", "a\0b"),
        ("member", "a\0b"),
        ("deny_models", "\0"),
    ] {
        let refused = open.send(&mut browser, &[("label", "new"), (name, typed)]);
        assert_eq!(refused.status(), 422, "{name}: {}", refused.text());
        assert!(refused.text().contains("control character"), "{name}");
    }
    let fields = [("label", "new"), ("deny_models", "typo"), ("debug", "yes")];
    let made = open.send(&mut browser, &fields);
    assert_eq!(made.status(), 200, "{}", made.text());
    assert!(made.text().contains("no model `typo`"), "{}", made.text());
    let keys = gateway.beside(async |store| store.keys("acme").await.unwrap());
    let key = keys.iter().find(|key| key.label == "new").unwrap();
    assert_eq!(key.terms.deny_models, ["typo"]);
    assert!(key.is_debug);
}

#[test]
fn a_member_is_added_limited_renamed_and_deleted() {
    let gateway = Gateway::start(WRITE, "");
    let mut browser = Browser::new(&gateway);
    let add = "/console/money/organization/add-member";
    let open = OpenForm::open(&mut browser, &organization("acme", &[]), add);
    let added = open.send(&mut browser, &[("name", HOSTILE)]);
    assert_eq!(added.status(), 303, "{}", added.text());
    assert_eq!(added.header("location"), Some(&*member(HOSTILE)));
    for (name, said) in [
        (HOSTILE, "exists"),
        ("", "is empty"),
        ("a\0b", "control character"),
    ] {
        let refused = open.send(&mut browser, &[("name", name)]);
        assert_eq!(refused.status(), 422, "{name}: {}", refused.text());
        let page = refused.text();
        assert!(page.contains(said), "{name}: {page}");
        assert!(page.contains("add-member-name-problem"), "{name}: {page}");
    }
    let budget = "/console/money/member/budget";
    let open = OpenForm::open(&mut browser, &member(HOSTILE), budget);
    for wrong in ["-1", "<b>much"] {
        let refused = open.send(&mut browser, &[("budget", wrong)]);
        assert_eq!(refused.status(), 422, "{wrong}: {}", refused.text());
        assert!(refused.text().contains("member-budget-budget-problem"));
        assert!(!refused.text().contains("<b>"));
    }
    assert_eq!(open.send(&mut browser, &[("budget", "2.50")]).status(), 303);
    // Another who saw the member without a budget.
    let refused = open.send(&mut browser, &[("budget", "9")]);
    assert_eq!(refused.status(), 409, "{}", refused.text());
    let page = plain(refused.text());
    assert!(page.contains("budget was null and is \"2.5\""), "{page}");
    let page = browser.page(&member(HOSTILE));
    let rows = table_rows(&page);
    assert!(rows.iter().any(|row| row[1] == "$2.50"), "{rows:?}");
    let open = OpenForm::open(&mut browser, &member(HOSTILE), budget);
    assert_eq!(open.send(&mut browser, &[("budget", "")]).status(), 303);
    let rename = "/console/money/member/rename";
    let open = OpenForm::open(&mut browser, &member(HOSTILE), rename);
    let renamed = open.send(&mut browser, &[("name", "ida")]);
    assert_eq!(
        renamed.header("location"),
        Some(&*member("ida")),
        "{}",
        renamed.text()
    );
    let delete = "/console/money/member/delete";
    let open = OpenForm::open(&mut browser, &member("ida"), delete);
    let unconfirmed = open.send(&mut browser, &[]);
    assert_eq!(unconfirmed.status(), 422, "{}", unconfirmed.text());
    let deleted = open.send(&mut browser, &[("confirm", "yes")]);
    assert_eq!(
        deleted.header("location"),
        Some(&*organization("acme", &[]))
    );
    let expected = [
        "member.delete",
        "member.rename",
        "member.update",
        "member.update",
        "member.create",
    ];
    assert_eq!(last_actions(&gateway, 5), expected);
    assert_eq!(
        browser
            .send(&crate::support::ask::Ask::get(&member("ida")))
            .status(),
        404
    );
}

#[test]
fn a_member_with_keys_is_kept_and_says_why() {
    let gateway = Gateway::start(WRITE, "");
    gateway.change(async |store| {
        let editor = store.by(&PROGRAM);
        editor.add_member("acme", "ada", 0).await.unwrap();
        let new = NewKey {
            organization: "acme",
            member: Some("ada"),
            ..NewKey::default()
        };
        store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
    });
    let mut browser = Browser::new(&gateway);
    let delete = "/console/money/member/delete";
    let open = OpenForm::open(&mut browser, &member("ada"), delete);
    let refused = open.send(&mut browser, &[("confirm", "yes")]);
    assert_eq!(refused.status(), 409, "{}", refused.text());
    assert!(
        refused.text().contains("1 keys belong to it"),
        "{}",
        refused.text()
    );
}

#[test]
fn settings_of_an_organization_are_those_of_the_command() {
    let gateway = Gateway::start(WRITE, "");
    let mut browser = Browser::new(&gateway);
    let page = organization("acme", &[]);
    let path = |form: &str| format!("/console/money/organization/{form}");
    for (form, name, wrong) in [
        ("plan", "plan", "huge"),
        ("plan", "plan", ""),
        ("regions", "regions", "<b>,eu"),
        ("export-content", "export_content", "perhaps"),
    ] {
        let open = OpenForm::open(&mut browser, &page, &path(form));
        let refused = open.send(&mut browser, &[(name, wrong)]);
        assert_eq!(refused.status(), 422, "{form}: {}", refused.text());
        let problem = format!("organization-{form}-{name}-problem");
        assert!(
            refused.text().contains(&problem),
            "{form}: {}",
            refused.text()
        );
        assert!(!refused.text().contains("<b>"), "{form}");
    }
    let stale = OpenForm::open(&mut browser, &page, &path("plan"));
    for (form, name, value) in [
        ("plan", "plan", "max"),
        ("regions", "regions", "eu, us-east-1"),
        ("export-content", "export_content", "on"),
    ] {
        let open = OpenForm::open(&mut browser, &page, &path(form));
        let changed = open.send(&mut browser, &[(name, value)]);
        assert_eq!(changed.status(), 303, "{form}: {}", changed.text());
    }
    let refused = stale.send(&mut browser, &[("plan", "lite")]);
    assert_eq!(refused.status(), 409, "{}", refused.text());
    let found = gateway.beside(async |store| store.organization("acme").await.unwrap());
    assert_eq!(found.plan.as_str(), "max");
    assert_eq!(found.regions.unwrap().to_string(), "eu,us-east-1");
    assert!(found.exports_content);
    assert_eq!(last_actions(&gateway, 3), ["organization.update"; 3]);
    let shown = browser.page(&page);
    assert!(shown.contains("eu,us-east-1"), "{shown}");
    let open = OpenForm::open(&mut browser, &page, &path("regions"));
    assert_eq!(open.send(&mut browser, &[("regions", "")]).status(), 303);
    let found = gateway.beside(async |store| store.organization("acme").await.unwrap());
    assert_eq!(found.regions, None);
}
