//! The audit log on a page.

use filters::audit::Actor;

use super::Browser;
use crate::support::boot::Gateway;

const HOSTILE: &str = "<script>alert(1)</script>";

#[test]
fn entries_are_found_by_who_what_and_whose_and_their_texts_are_text() {
    let gateway = Gateway::start("", "");
    let actor = Actor::on_command_line(HOSTILE, HOSTILE);
    gateway.change(async |store| {
        for number in 0..60 {
            let name = format!("{HOSTILE}{number}");
            let editor = store.by(&actor);
            editor.add_member("acme", &name, number).await.unwrap();
        }
    });
    let mut browser = Browser::new(&gateway);
    let first = browser.page("/console/audit");
    assert!(!first.contains(HOSTILE), "{first}");
    assert_eq!(first.matches("member.create").count(), 50, "{first}");
    let next = first.split("rel=\"next\"").next().unwrap();
    let next = next.rsplit("href=\"").next().unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    let second = browser.page(&next);
    assert_eq!(second.matches("member.create").count(), 10, "{second}");
    for (query, is_found) in [
        ("organization=acme&action=member.create", true),
        ("action=member", true),
        ("action=key.revoke", false),
        ("actor=%3Cscript%3Ealert(1)%3C%2Fscript%3E", true),
        ("actor=nobody", false),
    ] {
        let page = browser.page(&format!("/console/audit?{query}"));
        assert_eq!(
            page.contains(">member.create<"),
            is_found,
            "{query}: {page}"
        );
    }
    let unknown = browser.page("/console/audit?organization=nobody");
    assert!(unknown.contains("there is no organization"), "{unknown}");
}
