//! The operations of the graph service as data. A new operation is a new row here or in the configuration.

use super::tiers::Category;

/// A row of the table. Each of its methods is an operation.
#[derive(Debug)]
pub(super) struct BuiltInOperation {
    /// Methods. Each is an operation of its own; `GET` includes `HEAD`.
    pub methods: &'static [&'static str],
    /// `{name}` stands for one segment, `*` at the end for any number of segments.
    pub path: &'static str,
    /// Other paths of the same operations. They share the counters of `path`.
    pub aliases: &'static [&'static str],
    /// A name of [`CATEGORIES`].
    pub category: &'static str,
    /// Whether public keys are credentials for these operations.
    pub accepts_single_key: bool,
}

/// Categories by name. Source: docs/graph-limits.md 8.2; docs/interface.md, `graph.categories`.
pub(super) const CATEGORIES: &[(&str, Category)] = &[
    (
        "configuration",
        Category {
            default: 10,
            maximum: 10,
        },
    ),
    (
        "account",
        Category {
            default: 50,
            maximum: 50,
        },
    ),
    (
        DATA,
        Category {
            default: 500,
            maximum: 500,
        },
    ),
    (
        "management",
        Category {
            default: 1_000,
            maximum: 1_000,
        },
    ),
    (
        "query",
        Category {
            default: 1_500,
            maximum: 3_000,
        },
    ),
    (
        OTHER,
        Category {
            default: 1_000,
            maximum: 1_000,
        },
    ),
];

/// The category of operations that upload content.
pub(super) const DATA: &str = "indexing";
/// The category of paths that no row names.
pub(super) const OTHER: &str = "other";

const fn row(
    methods: &'static [&'static str],
    path: &'static str,
    category: &'static str,
) -> BuiltInOperation {
    BuiltInOperation {
        methods,
        path,
        aliases: &[],
        category,
        accepts_single_key: false,
    }
}

/// Makes the same row with the paths `under` it as aliases, which share its counter.
const fn tree(
    methods: &'static [&'static str],
    path: &'static str,
    under: &'static [&'static str],
    category: &'static str,
) -> BuiltInOperation {
    BuiltInOperation {
        aliases: under,
        ..row(methods, path, category)
    }
}

/// The methods that change something. A category of writes has all of them. Otherwise one of them would count as an
/// unknown path, which has a higher limit.
const WRITES: &[&str] = &["POST", "PUT", "PATCH", "DELETE"];

/// The rows in the order in which they are tried; rows of the configuration come first.
///
/// The paths of the cache configuration and of the accounts are not published, so these rows are a guess that the
/// configuration can override. Source: docs/graph-limits.md 4, 8.2; docs/facts/graph-service.md 1.1.
#[rustfmt::skip]
pub(super) const ROWS: &[BuiltInOperation] = &[
    BuiltInOperation {
        methods: &["POST", "GET"],
        path: "/content/v2",
        // Clients for hosts with several tenants append `/tenant_id=…`, which the service ignores.
        aliases: &["/content/v2/{tenant}"],
        category: "query",
        accepts_single_key: true,
    },
    tree(&["GET"], "/api/content/v3/types", &["/api/content/v3/types/*"], "query"),
    tree(WRITES, "/api/content/v3/types", &["/api/content/v3/types/*"], "configuration"),
    tree(&["GET"], "/api/content/v2/types", &["/api/content/v2/types/*"], "query"),
    tree(WRITES, "/api/content/v2/types", &["/api/content/v2/types/*"], "configuration"),
    tree(&["GET"], "/api/content/v3/sources", &["/api/content/v3/sources/*"], "query"),
    tree(WRITES, "/api/content/v3/sources", &["/api/content/v3/sources/*"], "configuration"),
    tree(WRITES, "/api/content/v2/data", &["/api/content/v2/data/*"], "indexing"),
    tree(&["GET"], "/resources/synonyms", &["/resources/synonyms/*"], "query"),
    tree(WRITES, "/resources/synonyms", &["/resources/synonyms/*"], "indexing"),
    tree(&["GET"], "/resources/stopwords", &["/resources/stopwords/*"], "query"),
    tree(WRITES, "/resources/stopwords", &["/resources/stopwords/*"], "indexing"),
    row(&["GET", "POST"], "/api/webhooks", "management"),
    row(&["PUT", "DELETE"], "/api/webhooks/{id}", "management"),
    row(&["GET", "POST"], "/api/pinned/collections", "management"),
    row(&["GET", "PUT", "DELETE"], "/api/pinned/collections/{collection}", "management"),
    row(&["GET", "POST", "DELETE"], "/api/pinned/collections/{collection}/items", "management"),
    row(&["GET", "PUT", "DELETE"], "/api/pinned/collections/{collection}/items/{id}", "management"),
    row(&["POST"], "/api/pinned/results", "management"),
    row(&["GET", "POST"], "/api/bestbets/collection", "management"),
    row(&["PUT", "DELETE"], "/api/bestbets/collection/{id}", "management"),
    row(&["GET"], "/api/logs/request", "management"),
    tree(&["GET"], "/api/config/oidc", &["/api/config/oidc/*"], "management"),
    tree(WRITES, "/api/config/oidc", &["/api/config/oidc/*"], "configuration"),
    row(&["GET", "PUT", "DELETE"], "/api/config/cache", "management"),
    row(&["GET", "POST", "PUT", "PATCH", "DELETE"], "/api/account/*", "account"),
    row(&["GET", "POST", "PUT", "PATCH", "DELETE"], "/api/accounts/*", "account"),
];

/// The methods with a row of their own for unknown paths.
pub(super) const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];
/// The row that all other methods share on unknown paths. With a row per method, a client could invent methods to get
/// more limits.
pub(super) const ANY: &str = "ANY";
