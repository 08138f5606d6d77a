//! Checks the keys of `[graph]`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use filters::graph::operation::{InvalidRow, OperationRow};
use filters::graph::tenant::{InvalidTenant, Tenant};
use filters::graph::tiers::InvalidAllocation;
use filters::graph::{Category, Operations, TenantLimits, Tiers};

use super::Rules;
use super::decisions::check_optional;
use crate::config::checked::{self, GraphUpstream};
use crate::config::file::File;
use crate::config::file::graph as file;
use crate::config::file::graph::{Algorithm, GraphConfig, UnknownPaths};
use crate::config::walk::join_key;
use crate::config::{secret, suggest};

/// The built-in categories.
const BUILT_IN: [&str; 6] = [
    "configuration",
    "account",
    "indexing",
    "management",
    "query",
    "other",
];

/// Checks the section. Returns `None` without a section or an upstream.
pub(super) fn check(rules: &mut Rules<'_>, file: &File) -> Option<checked::GraphConfig> {
    let graph = file.graph.as_ref()?;
    check_levels(rules, graph);
    check_categories(rules, graph);
    check_credentials(rules, graph);
    let operations = parse_operations(rules, graph)?;
    let limits = collect_limits(rules, graph, &operations);
    let tenants = graph.tenants.iter().enumerate();
    let tenants = tenants.map(|(index, tenant)| to_tenant(rules, index, tenant));
    let tenants = tenants.collect();
    Some(checked::GraphConfig {
        upstream: parse_upstream(graph)?,
        rejects_unknown: graph.unknown_paths == UnknownPaths::Reject,
        in_flight: graph.in_flight,
        window_s: graph.window_s,
        algorithm: match graph.algorithm {
            Algorithm::Fixed => filters::limits::Algorithm::Fixed,
            Algorithm::Sliding => filters::limits::Algorithm::Sliding,
        },
        operations,
        limits,
        tenants,
        cache: (graph.cache.ttl_s > 0 && graph.cache.max_bytes > 0).then(|| {
            let ttl = Duration::from_secs(graph.cache.ttl_s);
            (ttl, graph.cache.max_bytes)
        }),
    })
}

/// Parses the upstream, which the walk has checked.
fn parse_upstream(graph: &GraphConfig) -> Option<GraphUpstream> {
    match graph.upstream.as_str() {
        "" => None,
        "sandbox" => Some(GraphUpstream::Sandbox),
        url => url.parse().ok().map(GraphUpstream::At),
    }
}

/// Builds the table of operations. Returns `None` if a row of the file is wrong.
fn parse_operations(rules: &mut Rules<'_>, graph: &GraphConfig) -> Option<Operations> {
    let categories: BTreeMap<String, Category> = graph
        .categories
        .iter()
        .map(|(name, category)| {
            let (default, maximum) = (category.default, category.maximum);
            (name.clone(), Category { default, maximum })
        })
        .collect();
    let rows = graph.operations.iter().map(|operation| OperationRow {
        methods: &operation.methods,
        path: &operation.path,
        category: &operation.category,
    });
    Operations::parse(rows, &categories)
        .inspect_err(|invalid| refuse_row(rules, graph, invalid))
        .ok()
}

fn refuse_row(rules: &mut Rules<'_>, graph: &GraphConfig, invalid: &InvalidRow) {
    let (InvalidRow::Path(text) | InvalidRow::Category(text) | InvalidRow::Collision(text)) =
        invalid;
    let names_path = |path: &str| path == text || text.ends_with(path);
    let mut rows = graph.operations.iter();
    let index = rows.position(|operation| names_path(&operation.path));
    let key = format!("graph.operations[{}]", index.unwrap_or(0));
    match invalid {
        // This problem is already reported, with a suggestion.
        InvalidRow::Category(_) => {}
        InvalidRow::Path(path) => {
            let message = format!("no request could have the path {path:?}");
            let cure = "write plain segments, {name} for any one, and * at the end alone";
            rules.refuse(&format!("{key}.path"), message, cure);
        }
        InvalidRow::Collision(name) => {
            let message = format!("{name:?} has the number of another operation");
            rules.refuse(&format!("{key}.path"), message, "name a segment otherwise");
        }
    }
}

/// Collects the limits of the valid tenants.
fn collect_limits(
    rules: &mut Rules<'_>,
    graph: &GraphConfig,
    operations: &Operations,
) -> TenantLimits {
    let tiers = Tiers::parse(&graph.levels).unwrap_or_default();
    let mut limits = TenantLimits::new(tiers, graph.window_s);
    for (index, tenant) in graph.tenants.iter().enumerate() {
        let key = format!("graph.tenants[{index}]");
        let fixed_limits: Vec<(String, u64)> = tenant
            .limits
            .iter()
            .map(|(name, limit)| (name.clone(), *limit))
            .collect();
        let terms = Tenant {
            id: &tenant.id,
            allocation_qps: tenant.allocation_qps,
            limits: &fixed_limits,
        };
        match limits.add(&terms, operations) {
            Ok(()) => {}
            Err(InvalidTenant::Allocation(InvalidAllocation)) => rules.refuse(
                &format!("{key}.allocation_qps"),
                "must be above 0",
                "give requests per second, or take the key out for the usual limits",
            ),
            Err(InvalidTenant::Operation(name)) => refuse_limit(rules, &key, &name, operations),
        }
    }
    limits
}

fn refuse_limit(rules: &mut Rules<'_>, tenant: &str, name: &str, operations: &Operations) {
    let known: Vec<&str> = operations.all().map(|operation| &*operation.name).collect();
    let cure = match suggest::nearest(name, &known) {
        Some(suggestion) => format!("did you mean {suggestion:?}?"),
        None => "name an operation as METHOD and path, such as \"POST /content/v2\"".to_owned(),
    };
    let message = format!("there is no operation {name:?}");
    rules.refuse_name(&join_key(&format!("{tenant}.limits"), name), message, cure);
}

/// Converts a tenant. A key whose secret is missing is left out, because the configuration does not ask for
/// unverified keys.
fn to_tenant(rules: &mut Rules<'_>, index: usize, raw: &file::Tenant) -> checked::Tenant {
    let mut app_keys = Vec::new();
    for (place, app) in raw.app_keys.iter().enumerate() {
        let key = format!("graph.tenants[{index}].app_keys[{place}].secret");
        let without = "requests with this key count for the client's address";
        check_optional(rules, &key, app.secret.as_ref(), without);
        match app
            .secret
            .as_ref()
            .map(|reference| secret::find_text(reference, rules.env))
        {
            None => app_keys.push((app.key.clone(), None)),
            Some(Ok(found)) => app_keys.push((app.key.clone(), Some(found))),
            Some(Err(_)) => {}
        }
    }
    let bearer = raw.bearer.iter().map(|bearer| checked::Bearer {
        issuer: bearer.issuer.clone(),
        audience: bearer.audience.clone(),
        jwks_url: bearer.jwks_url.clone(),
    });
    checked::Tenant {
        id: raw.id.as_str().into(),
        single_keys: raw.single_keys.clone(),
        app_keys,
        bearer: bearer.collect(),
    }
}

fn check_levels(rules: &mut Rules<'_>, graph: &GraphConfig) {
    let pairs = graph.levels.iter().zip(graph.levels.iter().skip(1));
    let descending = pairs
        .enumerate()
        .find(|(_, (lower, higher))| lower >= higher);
    if let Some((index, (lower, higher))) = descending {
        let key = format!("graph.levels[{}]", index + 1);
        let message = format!("{higher} does not rise above {lower}");
        rules.refuse(&key, message, "list the levels in ascending order");
    }
}

fn check_categories(rules: &mut Rules<'_>, graph: &GraphConfig) {
    for (name, category) in &graph.categories {
        if category.default > category.maximum {
            let key = format!("{}.default", join_key("graph.categories", name));
            let message = format!(
                "{} is above the maximum {}",
                category.default, category.maximum
            );
            rules.refuse(&key, message, "lower the default, or raise the maximum");
        }
    }
    let mut known: Vec<&str> = BUILT_IN.to_vec();
    known.extend(graph.categories.keys().map(String::as_str));
    for (index, operation) in graph.operations.iter().enumerate() {
        if known.contains(&operation.category.as_str()) {
            continue;
        }
        let message = format!("there is no category {:?}", operation.category);
        let cure = match suggest::nearest(&operation.category, &known) {
            Some(suggestion) => format!("did you mean {suggestion:?}?"),
            None => format!(
                "use one of: {}; or add it to [graph.categories]",
                known.join(", ")
            ),
        };
        rules.refuse(
            &format!("graph.operations[{index}].category"),
            message,
            cure,
        );
    }
}

/// Checks that each key belongs to only one tenant. With two owners the tenant of a request would be ambiguous.
fn check_credentials(rules: &mut Rules<'_>, graph: &GraphConfig) {
    let mut ids = BTreeSet::new();
    let mut owners = BTreeMap::new();
    for (index, tenant) in graph.tenants.iter().enumerate() {
        let key = format!("graph.tenants[{index}]");
        if !ids.insert(&tenant.id) {
            let message = format!("a second tenant has the id {:?}", tenant.id);
            rules.refuse(&format!("{key}.id"), message, "take one of them out");
        }
        for (place, name) in list_keys(&key, tenant) {
            if let Some(owner) = owners.insert(name, &tenant.id) {
                let message = format!("this key belongs to the tenant {owner:?} already");
                rules.refuse(&place, message, "give each tenant keys of its own");
            }
        }
        for (place, bearer) in tenant.bearer.iter().enumerate() {
            if let Some(owner) = find_issuer_owner(graph, index, bearer) {
                let message = format!("these tokens belong to the tenant {owner:?} already");
                let cure = "give each tenant an audience of its own";
                rules.refuse(&format!("{key}.bearer[{place}].issuer"), message, cure);
            }
        }
    }
}

/// Returns the keys of a tenant with their positions.
fn list_keys<'a>(key: &str, tenant: &'a file::Tenant) -> Vec<(String, &'a str)> {
    let single = tenant.single_keys.iter().enumerate();
    let single = single.map(|(index, name)| (format!("{key}.single_keys[{index}]"), name.as_str()));
    let app = tenant.app_keys.iter().enumerate();
    let app = app.map(|(index, app)| (format!("{key}.app_keys[{index}].key"), app.key.as_str()));
    single.chain(app).collect()
}

/// Returns an earlier tenant to which the same tokens belong.
fn find_issuer_owner<'a>(
    graph: &'a GraphConfig,
    index: usize,
    bearer: &file::Bearer,
) -> Option<&'a str> {
    let is_same =
        |other: &file::Bearer| other.issuer == bearer.issuer && other.audience == bearer.audience;
    let mut earlier = graph.tenants.iter().take(index);
    let owner = earlier.find(|tenant| tenant.bearer.iter().any(is_same));
    owner.map(|tenant| tenant.id.as_str())
}
