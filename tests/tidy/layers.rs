//! Who may use whom: the layers of both packages as two tables, read from `crate::` paths.

use crate::source::{Source, word_offsets};

/// A layer: its modules, and the modules its files may name after `crate::`.
struct Layer {
    modules: &'static [&'static str],
    may_use: &'static [&'static str],
}

/// Parts of the pure crate that know nothing but what went wrong.
const ISLANDS: &[&str] = &["flags", "headers", "limits", "money"];
/// The public shapes.
const SHAPES: &[&str] = &[
    "audio",
    "chat",
    "embeddings",
    "healing",
    "images",
    "prompts",
];

const FILTERS: &[Layer] = &[
    Layer {
        modules: &["fault"],
        may_use: &[],
    },
    Layer {
        modules: &["cidr", "form", "json", "sse", "ids"],
        may_use: &["fault"],
    },
    Layer {
        modules: ISLANDS,
        // Queries are read alike by who counts, who believes and who keeps answers.
        may_use: &["fault", "form", "json"],
    },
    Layer {
        // What a key may spend are amounts and prices.
        modules: &["auth"],
        may_use: &["cidr", "fault", "form", "json", "money"],
    },
    Layer {
        modules: SHAPES,
        may_use: &["fault", "json", "sse", "ids", "chat"],
    },
    Layer {
        modules: &["providers"],
        may_use: &[
            "fault",
            "json",
            "sse",
            "audio",
            "chat",
            "embeddings",
            "images",
        ],
    },
    Layer {
        // It reads what a request needs of a model, and compares prices; it never sees a wire.
        modules: &["routing"],
        may_use: &["fault", "ids", "chat", "money"],
    },
];

/// What every byte mover stands on.
const ORGANS: &[&str] = &[
    "cache",
    "choice",
    "config",
    "console",
    "counters",
    "events",
    "flags",
    "graph",
    "jwks",
    "ledger",
    "log",
    "metrics",
    "origin",
    "redis",
    "refresh",
    "reply",
    "sandbox",
    "store",
    "upstreams",
];
/// What both halves of the journey know: the one request's state, the held session, and its clock. The files stand in
/// `src/request`, and what they hold is of both halves.
const GROUND: &[&str] = &["context", "held", "watch"];
/// The turns between the halves, in `src/request`: one makes the attempts, the others tell how they went; the
/// attempts know none of them.
const TURNS: &[&str] = &["plan", "finish", "line"];
/// What all requests share, in one value: the handles of every organ.
const HOUSE: &[&str] = &["house"];

const SRC: &[(&[&str], &[&[&str]])] = &[
    (
        &["request", "attempt"],
        &[ORGANS, HOUSE, GROUND, &["routes", "endpoints"]],
    ),
    (
        GROUND,
        &[ORGANS, HOUSE, GROUND, &["routes", "request", "attempt"]],
    ),
    (
        &["routes", "endpoints"],
        &[ORGANS, HOUSE, &["routes", "endpoints"]],
    ),
    (
        TURNS,
        &[ORGANS, HOUSE, GROUND, &["routes", "attempt", "line"]],
    ),
    (HOUSE, &[ORGANS, GROUND, &["routes", "endpoints"]]),
    (ORGANS, &[ORGANS]),
];
/// May use everything.
const SHELL: &[&str] = &[
    "admin", "boot", "cli", "front", "gateway", "lib", "main", "serve",
];

/// Arrows of the pure crate that its table does not have.
pub fn filters_arrows(file: &Source) -> Vec<String> {
    let modules = file.modules();
    let own = modules.first().copied().unwrap_or_default();
    if own == "lib" {
        return Vec::new();
    }
    let layer = FILTERS.iter().find(|layer| layer.modules.contains(&own));
    arrows(file, own, layer.map(|layer| vec![layer.may_use]))
}

/// Arrows of the root package that its table does not have.
pub fn src_arrows(file: &Source) -> Vec<String> {
    let own = match file.modules().as_slice() {
        ["request", part, ..] if GROUND.contains(part) || TURNS.contains(part) => part,
        modules => modules.first().copied().unwrap_or_default(),
    };
    if SHELL.contains(&own) {
        return Vec::new();
    }
    let layer = SRC.iter().find(|(modules, _)| modules.contains(&own));
    arrows(file, own, layer.map(|(_, may_use)| may_use.to_vec()))
}

fn arrows(file: &Source, own: &str, may_use: Option<Vec<&[&str]>>) -> Vec<String> {
    if file.shipped.is_empty() {
        return Vec::new();
    }
    let Some(may_use) = may_use else {
        let message = format!("`{own}` is in no layer: give it one in tests/tidy/layers.rs");
        return vec![file.finding(0, &message)];
    };
    let is_wrong = |used: &str| used != own && !may_use.iter().any(|group| group.contains(&used));
    let wrong = crate_uses(&file.shipped)
        .into_iter()
        .filter(|(_, used)| is_wrong(used));
    wrong
        .map(|(at, used)| file.finding(at, &format!("`{own}` must not use `{used}`")))
        .collect()
}

/// The modules named after `crate::`, groups taken apart, with their offsets. A name beginning with a capital is
/// an item of the crate's root and no module.
fn crate_uses(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for at in word_offsets(code, "crate") {
        let Some(path) = code[at..].strip_prefix("crate::") else {
            continue;
        };
        let path = ground_path(path);
        for name in first_names(path) {
            if name.starts_with(|c: char| c.is_ascii_lowercase()) {
                found.push((at, name));
            }
        }
    }
    found
}

/// `held::X` of `request::held::X`: the ground counts as modules of its own.
fn ground_path(path: &str) -> &str {
    let inner = path.strip_prefix("request::").unwrap_or(path);
    if GROUND.contains(&first_names(inner).first().map_or("", String::as_str)) {
        inner
    } else {
        path
    }
}

/// `a` of `a::b`, or `a` and `c` of `{a::b, c::{d, e}}`.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        let text = text.trim_start();
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
            }
            '}' => {
                names.push(name(&group[start..at]));
                break;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Answers are plain values: batch and tool calls use them without a connection, so Pingora stays out.
pub fn pingora_in_answers(file: &Source) -> Vec<String> {
    let is_answer = matches!(file.modules().first(), Some(&"endpoints" | &"routes"));
    let offsets = if is_answer {
        word_offsets(&file.shipped, "pingora")
    } else {
        Vec::new()
    };
    let finding = |at: usize| file.finding(at, "answers must not know Pingora");
    offsets.into_iter().map(finding).collect()
}

/// Ways to the outside that the pure crate must not take.
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

/// Uses of I/O, clocks, randomness or async in the pure crate.
pub fn impurities(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for word in IMPURE {
        for at in word_offsets(&file.shipped, word) {
            found.push(file.finding(
                at,
                &format!("filters decide and do nothing else: no `{word}` here"),
            ));
        }
    }
    found
}
