//! Who may import whom: the layers of both crates as data, checked on the arrows between files.
//!
//! A unit is a module that the tables name. Its files import units of lower levels only; the units of one level
//! do not know each other, unless the level says so.

use crate::findings::Finding;
use crate::graph::Arrow;
use crate::source::{Source, word_offsets};
use crate::tokens::{imports, inline_paths, tokens};

/// Units that may be imported by the same levels.
struct Level {
    units: &'static [&'static str],
    know_each_other: bool,
}

const fn level(units: &'static [&'static str]) -> Level {
    Level {
        units,
        know_each_other: false,
    }
}

/// `src`, from low to high. `sandbox` stands between wiring, which starts it, and config, all that it knows.
const SRC: &[Level] = &[
    level(&[
        "config",
        "thread_number",
        "priority",
        "durable",
        "owned_file",
        "periodic",
        "shared_wait",
        "single_flight",
        "tasks",
        "outbound",
        "encryption",
        "json_schema",
    ]),
    level(&[
        "telemetry",
        "redis",
        "jwks",
        "store",
        "control",
        "cloud_credentials",
    ]),
    level(&["accounts", "limits", "ledger", "log_export"]),
    level(&["proxy", "sandbox"]),
    level(&["models", "decisions", "graph"]),
    level(&["mcp"]),
    Level {
        units: &["app", "admin", "console", "cli"],
        know_each_other: true,
    },
];

/// `filters`, from low to high.
const FILTERS: &[Level] = &[
    level(&["fault_code"]),
    level(&["fault"]),
    level(&[
        "json",
        "form",
        "multipart",
        "spooled_json",
        "sse",
        "event_frames",
        "cidr",
        "public_address",
        "secret_ref",
        "trace_context",
    ]),
    level(&["money"]),
    level(&["auth", "limits", "proxy"]),
    level(&["accounts", "ledger"]),
    level(&["models", "decisions", "graph"]),
    level(&["manifest", "mcp", "audit", "reconcile"]),
];

/// `filters/models`, from low to high. A unit that no level names holds the facts of one operation.
const MODELS: &[Level] = &[
    Level {
        units: &[
            "operation",
            "usage",
            "metadata",
            "errors",
            "key_shape",
            "parameter",
            "dialects",
        ],
        know_each_other: true,
    },
    level(&["chat"]),
    level(&[FACTS]),
    Level {
        units: &[
            "request",
            "reply",
            "front",
            "check",
            "managed",
            "stateful",
            "stored_responses",
            "search_loop",
            "search_words",
            "judge_words",
            "sink_event",
        ],
        know_each_other: true,
    },
    level(&["routing"]),
    level(&["reply_cache", "exported_content"]),
    level(&["fronts", "wires"]),
    level(&["hosts"]),
];
/// Stands for every operation except chat: embeddings, images, speech and so on.
const FACTS: &str = "(facts)";

/// Exceptions: a unit, and the lower units that it must not import.
const NEVER: &[(&str, &[&str])] = &[
    ("proxy", &["ledger", "redis", "store"]),
    (
        "sandbox",
        &[
            "telemetry",
            "redis",
            "jwks",
            "store",
            "accounts",
            "limits",
            "ledger",
        ],
    ),
];

/// Imports in `src` that do not go downwards.
pub fn src_layers(arrows: &[Arrow]) -> Vec<Finding> {
    arrows
        .iter()
        .filter_map(|arrow| against(arrow, SRC, 0))
        .collect()
}

/// Imports in `filters` and in `filters/models` that do not go downwards, and imports between wires or fronts.
pub fn filters_layers(arrows: &[Arrow]) -> Vec<Finding> {
    let rule = |arrow: &Arrow| {
        let sibling = |folder| between_siblings(arrow, folder);
        against(arrow, FILTERS, 0)
            .or_else(|| inside_models(arrow))
            .or_else(|| sibling(["models", "wires"]))
            .or_else(|| sibling(["models", "fronts"]))
    };
    arrows.iter().filter_map(rule).collect()
}

/// Files that belong to no unit.
pub fn unplaced(file: &Source) -> Vec<String> {
    let levels = if file.is_under("src/") { SRC } else { FILTERS };
    let unit = unit(file, 0);
    let is_placed = matches!(unit, "lib" | "main") || level_index(levels, unit).is_some();
    if is_placed || file.shipped.is_empty() {
        return Vec::new();
    }
    let message = format!("`{unit}` is in no layer: give it one in tests/tidy/layers.rs");
    vec![file.finding(0, &message)]
}

fn inside_models(arrow: &Arrow) -> Option<Finding> {
    let is_inner = |file: &Source| matches!(file.modules().as_slice(), ["models", _, ..]);
    let is_inside = is_inner(arrow.from) && is_inner(arrow.to);
    is_inside.then(|| against(arrow, MODELS, 1)).flatten()
}

/// A wire that knows another wire, or a front that knows another front. Each is a folder; all of them share the
/// files beside the folders.
fn between_siblings(arrow: &Arrow, folder: [&str; 2]) -> Option<Finding> {
    let sibling = |file: &'_ Source| -> Option<String> {
        let modules = file.modules();
        let inner = modules.strip_prefix(folder.as_slice())?;
        let is_folder = file.path.split('/').count() > folder.len() + 2;
        is_folder.then(|| inner.first().map(|name| (*name).to_owned()))?
    };
    let (from, to) = (sibling(arrow.from)?, sibling(arrow.to)?);
    let key = format!("{}::{to}", folder[1]);
    (from != to).then(|| {
        let message = format!("`{from}` must not import `{key}`");
        Finding::new(arrow.from, arrow.at, &key, message)
    })
}

fn against(arrow: &Arrow, levels: &[Level], depth: usize) -> Option<Finding> {
    let (from, to) = (unit(arrow.from, depth), unit(arrow.to, depth));
    if from == to {
        return None;
    }
    let (own, other) = (level_index(levels, from), level_index(levels, to));
    let is_downwards = match (own, other) {
        (Some(own), Some(other)) if own == other => levels[own].know_each_other,
        (own, other) => own > other,
    };
    let is_never = NEVER
        .iter()
        .any(|(unit, never)| *unit == from && never.contains(&to));
    let message = format!("`{from}` must not import `{to}` ({})", arrow.to.path);
    (!is_downwards || is_never).then(|| Finding::new(arrow.from, arrow.at, to, message))
}

/// The level of a unit; in `filters/models` a unit without a level holds the facts of an operation.
fn level_index(levels: &[Level], unit: &str) -> Option<usize> {
    let named = |unit| levels.iter().position(|level| level.units.contains(&unit));
    named(unit).or_else(|| named(FACTS))
}

fn unit(file: &Source, depth: usize) -> &str {
    file.modules().get(depth).copied().unwrap_or_default()
}

/// Parts of Pingora that every module may know: background services and the shutdown signal.
const BACKGROUND: &[&str] = &["server", "services"];
/// Folders that may know Pingora's heads and errors; `exchange` folders and files may, too. `admin` and `sandbox`
/// are servers of their own.
const HEADS: &[&str] = &["src/proxy/", "src/app/", "src/admin/", "src/sandbox/"];
/// Folders that may know the sessions of Pingora's proxy.
const SESSIONS: &[&str] = &["src/proxy/", "src/app/"];

/// Uses of Pingora outside its folders. Handlers see no session and return plain values, so that batch requests
/// and tool calls use them without a connection.
pub fn pingora(file: &Source) -> Vec<Finding> {
    let words = tokens(&file.shipped);
    let imported = imports(&words).into_iter().map(|it| (it.at, it.path));
    let mut found = Vec::new();
    for (at, path) in imported.chain(inline_paths(&words)) {
        let Some(package) = path.first().filter(|it| it.starts_with("pingora")) else {
            continue;
        };
        let is_background = path
            .get(1)
            .is_some_and(|it| BACKGROUND.contains(&it.as_str()));
        let is_exchange = file
            .modules()
            .iter()
            .skip(1)
            .any(|it| it.starts_with("exchange"));
        let is_at = |places: &[&str]| places.iter().any(|folder| file.is_under(folder));
        let is_allowed = match package.as_str() {
            "pingora_proxy" => is_at(SESSIONS),
            _ => is_background || is_exchange || is_at(HEADS),
        };
        if !is_allowed {
            let message = format!("`{}` must not be known here", path.join("::"));
            found.push(Finding::new(file, at, package, message));
        }
    }
    found
}

/// I/O, clocks, randomness and async, which the pure crate must not use.
const IMPURE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime::now",
    "async",
    "tokio",
    "pingora",
    "getrandom",
    "rand",
];

/// Uses of [`IMPURE`] names in the pure crate.
pub fn impurities(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for word in IMPURE {
        for at in word_offsets(&file.shipped, word) {
            let message = format!("filters decide and do nothing else: no `{word}` here");
            found.push(file.finding(at, &message));
        }
    }
    found
}
