//! Violations that remain. The lists only shrink: an entry without a violation fails its test.
//! `cargo test --test tidy leftovers -- --ignored --nocapture` prints the lists for the tree as it is.

use crate::findings::Leftover;

/// Imports that do not go downwards: the file, and the imported modules.
pub const LAYERS: &Leftover = &[
    ("filters/models/chat/check/mod.rs", "request"),
    ("filters/models/chat/check/top.rs", "request"),
    ("src/accounts/mod.rs", "models"),
    ("src/graph/admission.rs", "app"),
    ("src/graph/exchange.rs", "app"),
    ("src/models/exchange/billing.rs", "app"),
    ("src/models/exchange/failure.rs", "app graph"),
    ("src/models/exchange/feedback.rs", "app"),
    ("src/models/exchange/upstream_request.rs", "app graph"),
    ("src/models/exchange/upstream_response.rs", "app graph"),
    ("src/models/handler.rs", "app"),
    ("src/proxy/access_log.rs", "models"),
    ("src/proxy/admission.rs", "app"),
    ("src/proxy/buffered/state.rs", "ledger"),
    ("src/proxy/context.rs", "app decisions graph models"),
    ("src/proxy/finish.rs", "app models"),
    ("src/proxy/hooks.rs", "app models"),
    ("src/proxy/request.rs", "app decisions graph models"),
    ("src/proxy/response.rs", "decisions"),
];

/// Uses of Pingora outside its folders: the file, and the package.
pub const PINGORA: &Leftover = &[
    ("src/graph/admission.rs", "pingora_proxy"),
    ("src/graph/cache.rs", "pingora"),
    ("src/graph/exchange.rs", "pingora_proxy"),
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
    ("src/models/exchange/billing.rs", "circle"),
    ("src/models/exchange/mod.rs", "circle"),
    ("src/models/exchange/upstream_response.rs", "circle"),
    ("src/proxy/context.rs", "circle"),
];

/// Public types that share their name with another one of the crate.
pub const REPEATED: &Leftover = &[];

/// Definitions under retired names.
pub const RETIRED: &Leftover = &[
    ("filters/accounts/caller.rs", "word"),
    ("filters/auth/jwks.rs", "Written"),
    ("filters/graph/cache_key.rs", "of"),
    ("filters/graph/tenant.rs", "of"),
    ("filters/json/error.rs", "word"),
    ("filters/json/walk.rs", "word"),
    ("filters/json/write.rs", "truth"),
    ("filters/ledger/balance.rs", "lose"),
    ("filters/ledger/entry.rs", "word"),
    ("filters/ledger/journal/frame.rs", "put"),
    ("filters/limits/headers.rs", "MOST"),
    ("filters/limits/key.rs", "of"),
    ("filters/limits/quota.rs", "of word"),
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
    ("filters/money/period.rs", "word"),
    ("filters/money/usd.rs", "MOST of"),
    ("src/app/routes.rs", "Answers"),
    ("src/app/running.rs", "PATIENCE"),
    ("src/app/serve.rs", "LOOK"),
    ("src/cli/check.rs", "PATIENCE"),
    ("src/config/checked/plans.rs", "of"),
    ("src/config/origin.rs", "of"),
    ("src/config/problem.rs", "of"),
    ("src/graph/admission.rs", "look_up"),
    ("src/graph/cache.rs", "Answer is_for_nobody_else"),
    ("src/graph/call.rs", "word"),
    ("src/graph/exchange.rs", "midway"),
    ("src/ledger/account.rs", "lose"),
    ("src/ledger/flusher.rs", "CONFIRM IDLE LOOK"),
    ("src/ledger/journal/writer.rs", "GROUP LINGER begin_anew"),
    ("src/ledger/leases.rs", "LOOK begin_anew give_back"),
    ("src/ledger/mod.rs", "of"),
    ("src/ledger/reservation.rs", "NOTE_EVERY"),
    ("src/ledger/segments.rs", "SPARE_WITHIN"),
    ("src/limits/counters.rs", "SWEEP_EVERY"),
    ("src/limits/redis_windows.rs", "alone"),
    ("src/models/exchange/failure.rs", "of"),
    ("src/models/exchange/mod.rs", "envelope is_own worst"),
    ("src/models/handler.rs", "steps"),
    ("src/models/planner.rs", "seat"),
    ("src/models/providers/credentials.rs", "IN_A_ROW"),
    ("src/proxy/buffered/state.rs", "bills_anyway has_left"),
    ("src/proxy/connections.rs", "KEPT is_late"),
    ("src/proxy/origin.rs", "look_up"),
    ("src/proxy/request_id.rs", "of"),
    ("src/proxy/response.rs", "LOOK_UP"),
    ("src/redis/heartbeat.rs", "BEAT"),
    ("src/redis/mod.rs", "is_gone lose"),
    ("src/store/ledger/mod.rs", "PATIENCE"),
    ("src/store/ledger/usage.rs", "word"),
    ("src/store/mod.rs", "word"),
    ("src/store/open.rs", "of"),
];

/// Functions that are too long.
pub const LONG_FUNCTIONS: &Leftover = &[
    ("filters/models/wires/anthropic/request.rs", "encode"),
    ("src/proxy/request.rs", "handle"),
];
