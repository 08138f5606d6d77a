//! Money: who spends it, on what, and what is left.

use filters::audit::PROGRAM;
use filters::money::Usd;
use serde_json::json;
use weirgate::store::NewKey;

use super::Browser;
use crate::ledger::used;
use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::upstream::Upstream;

const HOSTILE: &str = "a\"'><script>alert(1)</script>&b=c/d?e#f%";

/// An address with parameters.
pub(super) fn address(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs);
    format!("{path}?{}", query.finish())
}

pub(super) fn organization(name: &str, more: &[(&str, &str)]) -> String {
    let pairs = [&[("name", name)][..], more].concat();
    address("/console/money/organization", &pairs)
}

#[test]
fn the_figures_of_an_organization_are_those_of_the_commands() {
    let upstream = Upstream::always(reply());
    let (gateway, _) = Gateway::with_calls(&upstream, "");
    let mut browser = Browser::new(&gateway);
    let credit = used(&gateway, "0.0071");
    let all = browser.page("/console/money?part=spend") + &browser.page("/console/money");
    for part in ["$0.0071", ">acme</a>"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let one = browser.page(&organization("acme", &[]));
    let left = credit.balance().to_string();
    for part in [&*format!("${left}"), "$0.0071", "laptop", "ada", "default"] {
        assert!(one.contains(part), "{part}: {one}");
    }
    for by in ["model", "provider", "key"] {
        let usage = gateway.beside(async |store| {
            let by = match by {
                "model" => weirgate::store::ledger::By::Model,
                "provider" => weirgate::store::ledger::By::Provider,
                _ => weirgate::store::ledger::By::Key,
            };
            store.usage("acme", 0, Some(by)).await.unwrap()
        });
        let spend = browser.page(&organization("acme", &[("by", by), ("part", "spend")]));
        for row in usage {
            let cost = format!("${}", row.cost);
            assert!(spend.contains(&cost), "{by}: {cost}: {spend}");
        }
    }
}

#[test]
fn a_key_shows_what_is_left_of_its_limits() {
    let upstream = Upstream::always(reply());
    let gateway = Gateway::with(&upstream.url(), &upstream.url(), "");
    let (text, id) = gateway.change(async |store| {
        let limits = json!({"limit": "10", "limit_per": {"day": "2"}, "deny_models": ["<b>none"]});
        let terms = serde_json::from_value(limits).unwrap();
        let new = NewKey {
            organization: "acme",
            label: "ci",
            terms: &terms,
            ..NewKey::default()
        };
        let (text, issued) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
        (text.reveal().to_owned(), issued.id)
    });
    assert_eq!(gateway.asked(&text, "chat", json!({})).status(), 200);
    let spent = gateway.beside(async |store| {
        for _ in 0..100 {
            let usage = store.usage("acme", 0, None).await.unwrap();
            if usage[0].requests > 0 {
                return usage[0].cost;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("nothing was stored");
    });
    let page = Browser::new(&gateway).page(&address("/console/money/key", &[("id", &id)]));
    let left = |limit: &str| format!("${}", Usd::parse(limit).unwrap().minus(spent));
    for part in [
        &*left("10"),
        &left("2"),
        "limit per day",
        "&lt;b&gt;none",
        &format!("${spent}"),
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains(&text), "the text of a key is nowhere");
}

#[test]
fn names_are_text_on_every_page_and_lead_to_what_they_name() {
    let gateway = Gateway::start("", "");
    let id = gateway.change(async |store| {
        let plan = filters::accounts::Plan::None;
        store
            .by(&PROGRAM)
            .create_organization(HOSTILE, plan, 0)
            .await
            .unwrap();
        store
            .by(&PROGRAM)
            .add_member(HOSTILE, HOSTILE, 0)
            .await
            .unwrap();
        let project = weirgate::store::NewProject {
            name: HOSTILE,
            mode: filters::accounts::Mode::Platform,
            cache_ttl_s: None,
        };
        store
            .by(&PROGRAM)
            .create_project(HOSTILE, &project, 0)
            .await
            .unwrap();
        let terms = serde_json::from_value(json!({"allow_models": [HOSTILE]})).unwrap();
        let new = NewKey {
            organization: HOSTILE,
            project: HOSTILE,
            label: HOSTILE,
            member: Some(HOSTILE),
            terms: &terms,
            ..NewKey::default()
        };
        store.by(&PROGRAM).create_key(&new, 0).await.unwrap().1.id
    });
    let mut browser = Browser::new(&gateway);
    let pages = [
        "/console/money".to_owned(),
        address("/console/money", &[("search", HOSTILE)]),
        organization(HOSTILE, &[]),
        organization(HOSTILE, &[("search", HOSTILE), ("member", HOSTILE)]),
        organization(HOSTILE, &[("project", HOSTILE), ("by", "key")]),
        address("/console/money/key", &[("id", &id)]),
    ];
    for address in &pages {
        let page = browser.page(address);
        assert!(page.contains("&lt;script&gt;"), "{address}: {page}");
        assert!(!page.contains("<script>alert"), "{address}: {page}");
        for link in page.split("href=\"").skip(1) {
            let link = link.split('"').next().unwrap().replace("&amp;", "&");
            if link.starts_with("/console/money/") {
                browser.page(link.split('#').next().unwrap());
            }
        }
    }
}

#[test]
fn lists_are_paged_and_what_is_not_there_is_said() {
    let gateway = Gateway::start("", "");
    gateway.change(async |store| {
        for n in 0..120 {
            let new = NewKey {
                organization: "acme",
                label: &format!("key {n:03}"),
                ..NewKey::default()
            };
            store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
        }
    });
    let mut browser = Browser::new(&gateway);
    let (mut seen, mut next) = (0, Some(organization("acme", &[("search", "key ")])));
    while let Some(address) = next {
        let page = browser.page(&address);
        seen += page.matches(">key ").count();
        let link = page.split("rel=\"next\"").next().unwrap();
        let link = link.rsplit("href=\"").next().unwrap().split('"').next();
        next = page
            .contains("rel=\"next\"")
            .then(|| link.unwrap().replace("&amp;", "&"));
    }
    assert_eq!(seen, 120);
    let one = browser.page(&organization("acme", &[("search", "key 007")]));
    assert_eq!(one.matches(">key 007<").count(), 1, "{one}");
    for (path, status) in [
        (organization("nobody", &[]), 404),
        (organization("acme", &[("project", "none")]), 404),
        (address("/console/money/key", &[("id", "key_none")]), 404),
        ("/console/money/key".to_owned(), 400),
        (address("/console/money/key", &[("id", "a\0b")]), 400),
        (organization("a\0b", &[]), 400),
        (organization("acme", &[("member", "a\0b")]), 400),
        ("/console/money/organization".to_owned(), 400),
        ("/console/money/other".to_owned(), 404),
        (address("/console/money", &[("search", "a\0")]), 400),
        (address("/console/money", &[("after", "a\u{1}b")]), 400),
        (address("/console/money", &[("period", "year")]), 400),
    ] {
        let answer = browser.send(&Ask::get(&path));
        assert_eq!(answer.status(), status, "{path}: {}", answer.text());
    }
    let form = super::form("/console/money/key", &[]);
    assert_eq!(browser.send(&form).status(), 403, "nothing is changed here");
}
