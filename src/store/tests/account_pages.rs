//! Accounts as pages, what is left of their limits, and which limits are the nearest to their end.

use std::collections::BTreeSet;

use filters::accounts::TermsFile;
use filters::ledger::{CallOwner, Funding, LedgerEntry};
use filters::money::allowance::Allowance;
use filters::money::limit_use::LimitName;

use super::super::ledger::{LimitHolder, NearLimit};
use super::ledger::{entry, usd};
use super::*;
use crate::config::Plans;

on_both!(
    pages_of_organizations_are_joined_without_a_gap,
    a_search_is_for_the_beginning_of_a_name_as_it_is_written,
    an_organization_shows_its_credit_and_its_plan,
    a_member_shows_its_budget,
    keys_come_newest_first_and_are_found_by_what_people_know_of_them,
    a_key_shows_all_its_limits,
    projects_are_paged_and_unknown_organizations_refused,
    the_nearest_limit_of_each_holder_is_told,
    what_is_out_of_use_is_near_nothing,
    who_saw_something_else_changes_nothing,
);

pub(super) fn plans() -> Plans {
    let of = |cycle: &str| Allowance {
        cycle: usd(cycle),
        weekly_premium: usd("5"),
        daily: usd("2"),
    };
    Plans {
        lite: of("10"),
        pro: of("20"),
        max: of("40"),
    }
}

fn page(limit: usize) -> PageQuery<'static> {
    PageQuery {
        limit,
        ..PageQuery::default()
    }
}

fn terms(json: &str) -> TermsFile {
    serde_json::from_str(json).unwrap()
}

impl Fixture {
    async fn organization_names(&self, asked: PageQuery<'_>) -> (Vec<String>, Option<String>) {
        let page = self.store.organizations_page(asked, &plans(), NOW_MS).await;
        let page = page.unwrap();
        let names = page.rows.into_iter().map(|it| it.organization.name);
        (names.collect(), page.next)
    }

    async fn owner(&self, organization: &str, key: &IssuedKey) -> CallOwner {
        let id = self.store.organization(organization).await.unwrap().id;
        let member = match &key.member {
            Some(name) => Some(self.store.member(organization, name).await.unwrap().id),
            None => None,
        };
        CallOwner {
            organization_id: id.into(),
            key_id: (*key.id).into(),
            member_id: member.map(Into::into),
            ..CallOwner::default()
        }
    }

    async fn labelled(&self, label: &str, json: &str, member: Option<&str>) -> IssuedKey {
        let terms = terms(json);
        let new = NewKey {
            organization: "acme",
            label,
            terms: &terms,
            member,
            ..NewKey::default()
        };
        self.store
            .by(&PROGRAM)
            .create_key(&new, NOW_MS)
            .await
            .unwrap()
            .1
    }

    async fn key_labels(&self, filter: KeyFilter<'_>, asked: PageQuery<'_>) -> Vec<String> {
        let page = self.store.keys_page("acme", filter, asked, NOW_MS).await;
        let keys = page.unwrap().rows.into_iter();
        keys.map(|it| it.key.label).collect()
    }
}

async fn pages_of_organizations_are_joined_without_a_gap(fixture: Fixture) {
    for name in ["b", "a", "Zoë", "<script>", "d e", "c", "\u{4e2d}", "'; --"] {
        fixture.organization(name).await;
    }
    let (all, next) = fixture.organization_names(page(50)).await;
    assert_eq!((all.len(), next), (8, None));
    let (mut joined, mut after) = (Vec::new(), None);
    loop {
        let asked = PageQuery {
            after: after.as_deref(),
            ..page(3)
        };
        let (names, next) = fixture.organization_names(asked).await;
        assert!(names.len() <= 3);
        joined.extend(names);
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(joined, all);
    // A page that is full and the last has no other behind it.
    assert_eq!(fixture.organization_names(page(8)).await.1, None);
}

async fn a_search_is_for_the_beginning_of_a_name_as_it_is_written(fixture: Fixture) {
    for name in ["acme", "acme-eu", "Acme", "ac%me", "globex"] {
        fixture.organization(name).await;
    }
    let search = async |search: &str| {
        let asked = PageQuery { search, ..page(50) };
        let (names, _) = fixture.organization_names(asked).await;
        names.into_iter().collect::<BTreeSet<_>>()
    };
    let expected = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    assert_eq!(search("acme").await, expected(&["acme", "acme-eu"]));
    assert_eq!(search("ac%").await, expected(&["ac%me"]));
    assert_eq!(search("A").await, expected(&["Acme"]));
    assert_eq!(search("' OR 1 = 1 --").await, expected(&[]));
}

async fn an_organization_shows_its_credit_and_its_plan(fixture: Fixture) {
    fixture.organization("acme").await;
    fixture.organization("bare").await;
    let store = &fixture.store.by(&PROGRAM);
    store.set_plan("bare", Plan::None, NOW_MS).await.unwrap();
    store.add_credit("acme", usd("9"), NOW_MS).await.unwrap();
    let (_, key) = fixture.key("acme").await;
    let owner = fixture.owner("acme", &key).await;
    let calls = [(1, "2", Funding::Credit), (2, "1.5", Funding::Plan)];
    let calls = calls.map(|(n, cost, funding)| LedgerEntry {
        owner: owner.clone(),
        funding,
        ..entry(n, cost)
    });
    fixture.post("a", calls.to_vec()).await;
    let shown = store.organizations_page(page(9), &plans(), NOW_MS).await;
    let shown = shown.unwrap().rows;
    let acme = store.organization_use("acme", &plans(), NOW_MS).await;
    let acme = acme.unwrap();
    assert_eq!(shown[0], acme);
    assert_eq!(acme.credit, store.credit("acme").await.unwrap());
    assert_eq!(acme.credit.balance(), usd("7"));
    let uses = acme.limits.iter().map(|it| (it.name, it.left()));
    assert_eq!(
        uses.collect::<Vec<_>>(),
        [
            (LimitName::Cycle, usd("18.5")),
            (LimitName::Premium, usd("5")),
            (LimitName::Daily, usd("0.5")),
        ]
    );
    let bare = &shown[1];
    assert_eq!((&*bare.limits, bare.credit), (&[][..], Credit::default()));
    let absent = store.organization_use("none", &plans(), NOW_MS).await;
    assert!(matches!(absent, Err(StoreError::NotFound { .. })));
}

async fn a_member_shows_its_budget(fixture: Fixture) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    for name in ["ada", "bob", "cyd"] {
        store.add_member("acme", name, NOW_MS).await.unwrap();
    }
    store
        .set_budget("acme", "ada", Some(usd("4")))
        .await
        .unwrap();
    let key = fixture.labelled("one", "{}", Some("ada")).await;
    let call = LedgerEntry {
        owner: fixture.owner("acme", &key).await,
        ..entry(1, "1")
    };
    fixture.post("a", vec![call]).await;
    let first = store.members_page("acme", page(2), NOW_MS).await.unwrap();
    assert_eq!(first.next.as_deref(), Some("bob"));
    let budget = first.rows[0].limit.unwrap();
    assert_eq!((budget.name, budget.left()), (LimitName::Budget, usd("3")));
    assert_eq!(
        (first.rows[1].limit, first.rows[1].spent.total),
        (None, usd("0"))
    );
    let asked = PageQuery {
        after: first.next.as_deref(),
        ..page(2)
    };
    let second = store.members_page("acme", asked, NOW_MS).await.unwrap();
    assert_eq!((&*second.rows[0].member.name, second.next), ("cyd", None));
}

async fn keys_come_newest_first_and_are_found_by_what_people_know_of_them(fixture: Fixture) {
    fixture.organization("acme").await;
    fixture.organization("globex").await;
    let store = &fixture.store.by(&PROGRAM);
    store.add_member("acme", "ada", NOW_MS).await.unwrap();
    let project = NewProject {
        name: "app",
        mode: Mode::default(),
        cache_ttl_s: None,
    };
    store
        .create_project("acme", &project, NOW_MS)
        .await
        .unwrap();
    let mut made = Vec::new();
    for (label, member) in [("laptop", None), ("ci", Some("ada")), ("laptop 2", None)] {
        made.push(fixture.labelled(label, "{}", member).await);
    }
    let new = NewKey {
        organization: "acme",
        project: "app",
        label: "<i>app",
        ..NewKey::default()
    };
    store.create_key(&new, NOW_MS).await.unwrap();
    fixture.key("globex").await;
    let all = ["<i>app", "laptop 2", "ci", "laptop"];
    let none = KeyFilter::default();
    assert_eq!(fixture.key_labels(none, page(9)).await, all);
    let first = store
        .keys_page("acme", none, page(3), NOW_MS)
        .await
        .unwrap();
    let rest = PageQuery {
        after: first.next.as_deref(),
        ..page(3)
    };
    assert_eq!(fixture.key_labels(none, rest).await, all[3..]);
    let search = |search| PageQuery { search, ..page(9) };
    for (text, expected) in [
        ("lap", &["laptop 2", "laptop"][..]),
        (&made[1].last_four, &["ci"]),
        (&made[0].id, &["laptop"]),
        ("key_", &[]),
        ("%", &[]),
    ] {
        assert_eq!(
            fixture.key_labels(none, search(text)).await,
            expected,
            "{text}"
        );
    }
    let of_ada = KeyFilter {
        member: Some("ada"),
        ..none
    };
    assert_eq!(fixture.key_labels(of_ada, page(9)).await, ["ci"]);
    let of_app = KeyFilter {
        project: Some("app"),
        ..none
    };
    assert_eq!(fixture.key_labels(of_app, page(9)).await, ["<i>app"]);
    let absent = KeyFilter {
        project: Some("none"),
        ..none
    };
    let absent = store.keys_page("acme", absent, page(9), NOW_MS).await;
    assert!(matches!(
        absent,
        Err(StoreError::NotFound {
            kind: "project",
            ..
        })
    ));
}

async fn a_key_shows_all_its_limits(fixture: Fixture) {
    fixture.organization("acme").await;
    let limits = r#"{"limit":"10","limit_per":{"day":"2","hour":"1"}}"#;
    let key = fixture.labelled("one", limits, None).await;
    let yesterday = LedgerEntry {
        at_ms: NOW_MS - 24 * 3_600_000,
        owner: fixture.owner("acme", &key).await,
        ..entry(1, "3")
    };
    let now = LedgerEntry {
        at_ms: NOW_MS,
        ..LedgerEntry {
            id: entry(2, "0").id,
            usage: entry(2, "0.5").usage,
            ..yesterday.clone()
        }
    };
    fixture.post("a", vec![yesterday, now]).await;
    let (organization, shown) = fixture.store.key_use(&key.id, NOW_MS).await.unwrap();
    assert_eq!((&*organization, &shown.key), ("acme", &key));
    let left = shown
        .limits
        .iter()
        .map(|it| (it.name.to_string(), it.left()));
    let expected = [
        ("limit", "6.5"),
        ("limit per hour", "0.5"),
        ("limit per day", "1.5"),
    ];
    let expected = expected.map(|(name, left)| (name.to_owned(), usd(left)));
    assert_eq!(left.collect::<Vec<_>>(), expected);
    let absent = fixture.store.key_use("key_none", NOW_MS).await;
    assert!(matches!(
        absent,
        Err(StoreError::NotFound { kind: "key", .. })
    ));
}

async fn projects_are_paged_and_unknown_organizations_refused(fixture: Fixture) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    let first = store.projects_page("acme", page(1)).await.unwrap();
    assert_eq!((&*first.rows[0].name, first.next), ("default", None));
    let none = KeyFilter::default();
    let absent = [
        store.projects_page("none", page(1)).await.err(),
        store.members_page("none", page(1), NOW_MS).await.err(),
        store.keys_page("none", none, page(1), NOW_MS).await.err(),
    ];
    for error in absent {
        assert!(matches!(
            error,
            Some(StoreError::NotFound {
                kind: "organization",
                ..
            })
        ));
    }
}

impl Fixture {
    async fn nearest(&self, count: usize) -> Vec<NearLimit> {
        let nearest = self.store.nearest_limits(&plans(), NOW_MS, count).await;
        nearest.unwrap()
    }

    /// Makes a key, a member, a plan and credit, each with another share used.
    async fn with_limits(&self) -> IssuedKey {
        self.organization("acme").await;
        let store = &self.store.by(&PROGRAM);
        store.add_credit("acme", usd("100"), NOW_MS).await.unwrap();
        store.add_member("acme", "ada", NOW_MS).await.unwrap();
        store
            .set_budget("acme", "ada", Some(usd("8")))
            .await
            .unwrap();
        let limits = r#"{"limit":"100","limit_per":{"day":"5"}}"#;
        let key = self.labelled("one", limits, Some("ada")).await;
        let owner = self.owner("acme", &key).await;
        let calls = [(1, "3", Funding::Credit), (2, "1", Funding::Plan)];
        let calls = calls.map(|(n, cost, funding)| LedgerEntry {
            owner: owner.clone(),
            funding,
            ..entry(n, cost)
        });
        self.post("a", calls.to_vec()).await;
        key
    }
}

async fn the_nearest_limit_of_each_holder_is_told(fixture: Fixture) {
    let key = fixture.with_limits().await;
    let nearest = fixture.nearest(10).await;
    let told = nearest.iter().map(|near| {
        let share = (near.limit.share() * 100.0).round();
        (near.holder.clone(), near.limit.name, share as i64)
    });
    let holder = LimitHolder::Key {
        id: key.id,
        label: "one".to_owned(),
    };
    let day = LimitName::Per(filters::money::Period::Day);
    let organization = LimitHolder::Organization;
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            (holder, day, 80),
            (LimitHolder::Member("ada".to_owned()), LimitName::Budget, 50),
            (organization.clone(), LimitName::Daily, 50),
            (organization, LimitName::Credit, 3),
        ]
    );
    assert!(nearest.iter().all(|near| near.organization == "acme"));
    assert_eq!(fixture.nearest(2).await, nearest[..2]);
}

async fn what_is_out_of_use_is_near_nothing(fixture: Fixture) {
    let key = fixture.with_limits().await;
    let store = &fixture.store.by(&PROGRAM);
    store.disable_key(&key.id, Some(NOW_MS)).await.unwrap();
    let nearest = fixture.nearest(10).await;
    let is_key = |near: &NearLimit| matches!(near.holder, LimitHolder::Key { .. });
    assert!(nearest.len() == 3 && !nearest.iter().any(is_key));
    store.disable_organization("acme").await.unwrap();
    assert_eq!(fixture.nearest(10).await, []);
}

async fn who_saw_something_else_changes_nothing(fixture: Fixture) {
    fixture.organization("acme").await;
    let key = fixture.labelled("one", r#"{"limit":"5"}"#, None).await;
    let store = fixture.store.by(&PROGRAM);
    let seen = store.see(SeenKind::Key, &key.id).await.unwrap();
    let carried = SeenThing::parse(SeenKind::Key, &key.id, &seen.to_text());
    assert_eq!(carried.as_ref(), Some(&seen));
    let change = KeyChange {
        terms: Some(terms(r#"{"limit":"6"}"#)),
        ..KeyChange::default()
    };
    let mine = store.if_still(&seen);
    mine.update_key(&key.id, &change).await.unwrap();
    // The second of two who have seen the same.
    let refused = mine.disable_key(&key.id, Some(NOW_MS)).await;
    let Err(StoreError::ChangedMeanwhile { changes, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(changes, r#"limit was "5" and is "6""#);
    let key = store.key(&key.id).await.unwrap().1;
    assert_eq!(key.status(NOW_MS), "active");
    let id = store.organization("acme").await.unwrap().id;
    let seen = store.see(SeenKind::Credit, &id).await.unwrap();
    let mine = store.if_still(&seen);
    mine.add_credit("acme", usd("2"), NOW_MS).await.unwrap();
    let twice = mine.add_credit("acme", usd("2"), NOW_MS).await;
    assert!(matches!(twice, Err(StoreError::ChangedMeanwhile { .. })));
    assert_eq!(store.credit("acme").await.unwrap().granted, usd("2"));
    let absent = store.see(SeenKind::Key, "key_none").await;
    assert!(matches!(absent, Err(StoreError::NotFound { .. })));
}
