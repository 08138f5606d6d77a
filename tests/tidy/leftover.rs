//! Violations that remain. The lists only shrink: an entry without a violation fails its test.
//! `cargo test --test tidy leftovers -- --ignored --nocapture` prints the lists for the tree as it is.

use crate::findings::Leftover;

/// Imports that do not go downwards: the file, and the imported modules.
pub const LAYERS: &Leftover = &[
    ("filters/models/chat/check/mod.rs", "request"),
    ("filters/models/chat/check/top.rs", "request"),
    ("src/decisions/endpoints/batch.rs", "app"),
    ("src/models/exchange/billing.rs", "app"),
    ("src/models/exchange/failure.rs", "app graph"),
    ("src/models/exchange/feedback.rs", "app"),
    ("src/models/exchange/upstream_request.rs", "app graph"),
    ("src/models/exchange/upstream_response.rs", "app graph"),
    ("src/models/handler.rs", "app"),
];

/// Uses of Pingora outside its folders: the file, and the package.
pub const PINGORA: &Leftover = &[
    ("src/graph/admission.rs", "pingora"),
    ("src/graph/cache.rs", "pingora"),
    ("src/graph/mod.rs", "pingora"),
    ("src/models/exchange/failure.rs", "pingora_proxy"),
    ("src/models/handler.rs", "pingora_proxy"),
    ("src/models/providers/mod.rs", "pingora"),
];

/// Files in circles across folders.
pub const CIRCLES: &Leftover = &[
    ("filters/models/wires/anthropic/messages.rs", "circle"),
    ("filters/models/wires/anthropic/mod.rs", "circle"),
    ("filters/models/wires/anthropic/reply.rs", "circle"),
    ("filters/models/wires/anthropic/request.rs", "circle"),
    ("filters/models/wires/google/mod.rs", "circle"),
    ("filters/models/wires/google/reply.rs", "circle"),
    ("filters/models/wires/google/request.rs", "circle"),
    ("filters/models/wires/mod.rs", "circle"),
    ("filters/models/wires/openai/messages.rs", "circle"),
    ("filters/models/wires/openai/mod.rs", "circle"),
    ("filters/models/wires/openai/reply.rs", "circle"),
    ("filters/models/wires/openai/request.rs", "circle"),
    ("filters/models/wires/openai/stream.rs", "circle"),
    ("src/decisions/cmab.rs", "circle"),
    ("src/decisions/datafiles/cache.rs", "circle"),
    ("src/decisions/datafiles/local.rs", "circle"),
    ("src/decisions/datafiles/negative_cache.rs", "circle"),
    ("src/decisions/datafiles/remote.rs", "circle"),
    ("src/decisions/mod.rs", "circle"),
    ("src/decisions/notifications.rs", "circle"),
    ("src/decisions/overrides.rs", "circle"),
    ("src/decisions/profiles.rs", "circle"),
    ("src/decisions/segments.rs", "circle"),
    ("src/models/exchange/billing.rs", "circle"),
    ("src/models/exchange/mod.rs", "circle"),
    ("src/models/exchange/upstream_response.rs", "circle"),
];

/// Public types that share their name with another one of the crate.
pub const REPEATED: &Leftover = &[];

/// Definitions under retired names.
pub const RETIRED: &Leftover = &[
    ("filters/accounts/caller.rs", "word"),
    ("filters/decisions/ask.rs", "truth"),
    ("filters/decisions/decide.rs", "of word"),
    ("filters/decisions/encode.rs", "EXACT as_agent"),
    ("filters/decisions/event.rs", "EXACT of"),
    ("filters/decisions/holdout.rs", "held"),
    ("filters/decisions/matcher.rs", "EXACT"),
    ("filters/decisions/variable.rs", "word"),
    ("filters/graph/cache_key.rs", "of"),
    ("filters/graph/tenant.rs", "of"),
    ("filters/json/error.rs", "word"),
    ("filters/json/walk.rs", "word"),
    ("filters/json/write.rs", "truth"),
    ("filters/models/chat/delta.rs", "word"),
    ("filters/models/fronts/chat_completions/members.rs", "of"),
    (
        "filters/models/fronts/chat_completions/mod.rs",
        "envelope fold",
    ),
    ("filters/models/request.rs", "word"),
    ("filters/models/routing/capable.rs", "of"),
    ("filters/models/routing/catalog.rs", "worst"),
    ("filters/models/routing/health.rs", "IN_A_ROW"),
    ("filters/models/routing/score.rs", "of"),
    ("filters/models/wires/anthropic/mod.rs", "output_bound"),
    ("filters/models/wires/anthropic/request.rs", "of"),
    ("filters/models/wires/google/mod.rs", "output_bound"),
    ("filters/models/wires/google/schema.rs", "KEPT word"),
    ("filters/models/wires/mod.rs", "output_bound"),
    ("filters/models/wires/openai/alike.rs", "of"),
    ("filters/models/wires/openai/mod.rs", "alike output_bound"),
    ("src/cli/check.rs", "PATIENCE"),
    ("src/config/checked/plans.rs", "of"),
    ("src/config/origin.rs", "of"),
    ("src/config/problem.rs", "of"),
    ("src/decisions/datafiles/cache.rs", "MOST_TOKENS"),
    ("src/decisions/datafiles/deferred_drop.rs", "LOOK_EVERY"),
    ("src/decisions/datafiles/disk_cache.rs", "of"),
    ("src/decisions/datafiles/negative_cache.rs", "of"),
    ("src/decisions/endpoints/old_operations.rs", "put"),
    ("src/decisions/events/queue.rs", "last_words"),
    ("src/decisions/notifications.rs", "BEHIND"),
    ("src/decisions/overrides.rs", "of"),
    ("src/decisions/profiles.rs", "of"),
    ("src/decisions/segments.rs", "of put"),
    ("src/models/exchange/failure.rs", "of"),
    ("src/models/exchange/mod.rs", "envelope is_own worst"),
    ("src/models/handler.rs", "steps"),
    ("src/models/providers/credentials.rs", "IN_A_ROW"),
];

/// Functions that are too long.
pub const LONG_FUNCTIONS: &Leftover = &[("filters/models/wires/anthropic/request.rs", "encode")];
