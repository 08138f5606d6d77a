#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::proxy::InvalidPath;

fn built_in() -> Operations {
    Operations::parse([], &BTreeMap::new()).unwrap()
}

fn name(method: &str, path: &str) -> (String, bool) {
    let operations = built_in();
    let found = operations.find(method, &normalise(path).unwrap());
    (found.operation.name.to_string(), found.is_known)
}

fn known(name: &str) -> (String, bool) {
    (name.to_owned(), true)
}

fn unknown(name: &str) -> (String, bool) {
    (name.to_owned(), false)
}

/// Operations with their limits. Source: docs/graph-limits.md 8.2; docs/facts/graph-service.md 1.1.
const LIMITS: &[(&str, &str, u64)] = &[
    ("POST", "/content/v2", 1_500),
    ("GET", "/content/v2", 1_500),
    ("GET", "/api/content/v3/types", 1_500),
    ("POST", "/api/content/v3/types", 10),
    ("PUT", "/api/content/v3/types", 10),
    ("POST", "/api/content/v2/types", 10),
    ("GET", "/api/content/v3/sources", 1_500),
    ("POST", "/api/content/v3/sources", 10),
    ("DELETE", "/api/content/v3/sources", 10),
    ("POST", "/api/content/v2/data", 500),
    ("DELETE", "/api/content/v2/data", 500),
    ("GET", "/resources/synonyms", 1_500),
    ("PUT", "/resources/synonyms", 500),
    ("DELETE", "/resources/synonyms", 500),
    ("PUT", "/resources/stopwords", 500),
    ("DELETE", "/resources/stopwords", 500),
    ("GET", "/api/webhooks", 1_000),
    ("POST", "/api/webhooks", 1_000),
    ("PUT", "/api/webhooks/1", 1_000),
    ("DELETE", "/api/webhooks/1", 1_000),
    ("GET", "/api/pinned/collections", 1_000),
    ("POST", "/api/pinned/collections", 1_000),
    ("GET", "/api/pinned/collections/1", 1_000),
    ("PUT", "/api/pinned/collections/1", 1_000),
    ("DELETE", "/api/pinned/collections/1", 1_000),
    ("GET", "/api/pinned/collections/1/items", 1_000),
    ("POST", "/api/pinned/collections/1/items", 1_000),
    ("DELETE", "/api/pinned/collections/1/items", 1_000),
    ("GET", "/api/pinned/collections/1/items/2", 1_000),
    ("PUT", "/api/pinned/collections/1/items/2", 1_000),
    ("DELETE", "/api/pinned/collections/1/items/2", 1_000),
    ("POST", "/api/pinned/results", 1_000),
    ("GET", "/api/bestbets/collection", 1_000),
    ("POST", "/api/bestbets/collection", 1_000),
    ("PUT", "/api/bestbets/collection/1", 1_000),
    ("DELETE", "/api/bestbets/collection/1", 1_000),
    ("GET", "/api/logs/request", 1_000),
    ("PUT", "/api/config/oidc", 10),
    ("DELETE", "/api/config/oidc", 10),
    ("PUT", "/api/config/cache", 1_000),
    ("POST", "/api/account", 50),
    ("DELETE", "/api/account/1", 50),
    ("POST", "/api/accounts/1/swap", 50),
];

/// Contract: graph-limits 1 The service answers
/// Contract: graph-limits 1 A limit follows
/// Contract: graph-limits 8.2 configuration writes: content types, sources, OIDC
/// Contract: graph-limits 8.2 accounts: create, delete, swap
/// Contract: graph-limits 8.2 content indexing; writes of synonyms and stopwords
/// Contract: graph-limits 8.2 webhooks, pinned results, best bets, cache configuration, request logs
/// Contract: graph-limits 8.2 GraphQL queries; reads of content types, sources and synonyms
#[test]
fn every_operation_has_the_limit_of_its_category() {
    let operations = built_in();
    let mut seen = BTreeMap::new();
    for (method, path, limit) in LIMITS {
        let found = operations.find(method, path);
        assert!(found.is_known && !found.is_preflight, "{method} {path}");
        assert_eq!(found.operation.category.default, *limit, "{method} {path}");
        let twin = seen.insert(found.operation.id, (method, path));
        assert_eq!(twin, None, "{method} {path} shares a counter");
    }
}

/// Source: docs/graph-limits.md 8.2: `Configuration writes (content types, sources, OIDC)` 10; `Content indexing, synonyms
/// (write), stopwords (write)` 500. Paths below are no second counter.
/// Contract: graph-limits 8.2 configuration writes: content types, sources, OIDC
/// Contract: graph-limits 8.2 content indexing; writes of synonyms and stopwords
#[test]
fn every_write_below_a_path_of_writes_has_its_category_and_shares_its_counter() {
    let operations = built_in();
    for (path, limit) in [
        ("/api/content/v3/types", 10),
        ("/api/content/v2/types", 10),
        ("/api/content/v3/sources", 10),
        ("/api/config/oidc", 10),
        ("/api/content/v2/data", 500),
        ("/resources/synonyms", 500),
        ("/resources/stopwords", 500),
    ] {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let found = operations.find(method, path);
            let name = format!("{method} {path}");
            assert!(found.is_known && *found.operation.name == *name, "{name}");
            assert_eq!(found.operation.category.default, limit, "{name}");
            assert_eq!(found.operation.category.maximum, limit, "{name}");
            for below in ["/id", "/a/b"] {
                let below = operations.find(method, &format!("{path}{below}"));
                assert_eq!(below.operation.id, found.operation.id, "{name}");
            }
        }
    }
}

/// Source: docs/graph-limits.md 8.2: `GraphQL queries, content type reads, source reads, synonym reads` 1500 by default.
/// Contract: graph-limits 8.2 GraphQL queries; reads of content types, sources and synonyms
#[test]
fn reads_below_a_path_of_reads_are_reads() {
    for path in [
        "/api/content/v3/types",
        "/api/content/v2/types",
        "/api/content/v3/sources",
        "/resources/synonyms",
        "/resources/stopwords",
    ] {
        let row = known(&format!("GET {path}"));
        assert_eq!(name("GET", path), row);
        assert_eq!(name("GET", &format!("{path}/id")), row);
        let operations = built_in();
        let category = operations.find("GET", path).operation.category;
        assert_eq!(
            (category.default, category.maximum),
            (1_500, 3_000),
            "{path}"
        );
    }
}

#[test]
fn paths_that_differ_in_a_variable_share_a_row() {
    let row = known("DELETE /api/webhooks/{id}");
    assert_eq!(name("DELETE", "/api/webhooks/a"), row);
    assert_eq!(name("DELETE", "/api/webhooks/b"), row);
}

#[test]
fn spellings_of_a_path_share_a_row() {
    let row = known("POST /content/v2");
    for path in [
        "//content/v2",
        "/CONTENT/V2",
        "/x/../content/v2/",
        "/content/v2;a=b",
    ] {
        assert_eq!(name("POST", path), row, "{path}");
    }
    assert_eq!(name("POST", "/content/v2/tenant_id=t1"), row);
}

#[test]
fn head_counts_as_get_and_lower_case_as_upper_case() {
    assert_eq!(name("HEAD", "/content/v2"), known("GET /content/v2"));
    assert_eq!(name("post", "/content/v2"), known("POST /content/v2"));
    assert_eq!(name("head", "/nowhere"), unknown("GET /*"));
}

#[test]
fn a_preflight_counts_on_a_row_of_its_own() {
    let operations = built_in();
    let found = operations.find("OPTIONS", "/content/v2");
    assert!(found.is_preflight && found.is_known);
    assert_ne!(operations.preflights().id, found.operation.id);
    assert_eq!(found.operation.category.default, 1_500);
    assert!(!operations.find("OPTIONS", "/nowhere").is_known);
}

#[test]
fn unknown_paths_share_one_row_per_method() {
    assert_eq!(name("GET", "/a/b"), unknown("GET /*"));
    assert_eq!(name("GET", "/"), unknown("GET /*"));
    assert_eq!(name("POST", "/content/v3"), unknown("POST /*"));
    assert_eq!(name("PATCH", "/content/v2"), unknown("PATCH /*"));
}

#[test]
fn made_up_methods_share_one_row() {
    assert_eq!(name("BREW", "/content/v2"), unknown("ANY /*"));
    assert_eq!(name("STIR", "/a"), unknown("ANY /*"));
}

#[test]
fn public_keys_are_credentials_for_queries_only() {
    let operations = built_in();
    let takers = operations
        .all()
        .filter(|operation| operation.accepts_single_key);
    let mut takers: Vec<&str> = takers.map(|operation| &*operation.name).collect();
    takers.dedup();
    assert_eq!(takers, ["POST /content/v2", "GET /content/v2"]);
}

fn configured(methods: &[&str], path: &str, category: &str) -> Result<Operations, InvalidRow> {
    let methods: Vec<String> = methods.iter().map(|&method| method.to_owned()).collect();
    let bulk = Category {
        default: 5,
        maximum: 50,
    };
    let row = OperationRow {
        methods: &methods,
        path,
        category,
    };
    Operations::parse([row], &BTreeMap::from([("bulk".to_owned(), bulk)]))
}

#[test]
fn a_row_of_the_configuration_comes_before_the_built_in_ones() {
    let operations = configured(&["POST", "purge"], "/Content/{name}/", "bulk").unwrap();
    let found = operations.find("POST", "/content/v2");
    assert_eq!(&*found.operation.name, "POST /content/{name}");
    assert_eq!(found.operation.category.default, 5);
    assert!(operations.find("PURGE", "/content/v2").is_known);
    assert_eq!(
        &*operations.find("GET", "/content/v2").operation.name,
        "GET /content/v2"
    );
}

#[test]
fn a_category_of_the_configuration_replaces_the_built_in_one() {
    let query = Category {
        default: 7,
        maximum: 8,
    };
    let operations = Operations::parse([], &BTreeMap::from([("query".to_owned(), query)])).unwrap();
    assert_eq!(
        operations.find("POST", "/content/v2").operation.category,
        query
    );
}

#[test]
fn rows_that_cannot_be_are_refused() {
    let refused = |path, category| configured(&["GET"], path, category).err();
    assert_eq!(
        refused("/a", "bulky"),
        Some(InvalidRow::Category("bulky".to_owned()))
    );
    assert_eq!(
        refused("/*/a", "bulk"),
        Some(InvalidRow::Path("/*/a".to_owned()))
    );
    assert_eq!(
        refused("/a%2fb", "bulk"),
        Some(InvalidRow::Path("/a%2fb".to_owned()))
    );
}

#[test]
fn an_operation_is_found_by_its_name() {
    let operations = built_in();
    let id = |name| operations.find_by_name(name).map(|operation| operation.id);
    assert_eq!(
        id("post /Content/v2/"),
        Some(operations.find("POST", "/content/v2").operation.id)
    );
    assert_eq!(
        id("GET /*"),
        Some(operations.find("GET", "/nowhere").operation.id)
    );
    assert_eq!(id("PATCH /content/v2"), None);
    assert_eq!(id("POST"), None);
}

/// Spells a path differently, so that some reader takes it for the same path.
fn respelt(path: &str, choices: &[u8]) -> String {
    let mut choices = choices.iter().cycle();
    let mut next = || choices.next().copied().unwrap_or_default();
    let mut text = String::new();
    for segment in path.split('/').skip(1) {
        text += ["/", "//", "/./", "/x/../", "\\", "/%2e/", "/;a=b/"][usize::from(next() % 7)];
        for byte in segment.bytes() {
            match next() % 4 {
                0 => text += &format!("%{byte:02x}"),
                1 => text += &format!("%{byte:02X}"),
                2 => text.push(char::from(byte.to_ascii_uppercase())),
                _ => text.push(char::from(byte)),
            }
        }
        text += ["", ";", ";a=b", "%3bc"][usize::from(next() % 4)];
    }
    text + ["", "/", "/.", "//", "/y/.."][usize::from(next() % 5)]
}

proptest! {
    #[test]
    fn no_spelling_of_a_path_leaves_its_row(
        index in 0..LIMITS.len(),
        choices in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let (method, path, _) = LIMITS[index];
        let spelt = respelt(path, &choices);
        match normalise(&spelt) {
            Ok(_) => prop_assert_eq!(name(method, &spelt), name(method, path), "{}", spelt),
            Err(bad) => prop_assert_eq!(bad, InvalidPath::AmbiguousParent, "{}", spelt),
        }
    }
}
