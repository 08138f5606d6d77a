//! The state in memory that passes to the process which takes the place of this one.
//!
//! State that does not arrive is lost, as in a restart, and never an error.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::watch;

use super::handover::peer::{AnswerPeer, Peer};
use super::handover::successor::StatePart;
use super::state::AppState;
use crate::ledger::Ledger;
use crate::limits::counters::WindowCounters;

/// What the two processes tell each other about leases of credit and limits.
const LEASES: &str = "leases";
/// The windows of the quotas of organizations, and those of the graph's tenants.
const QUOTAS: &str = "quotas";
const GRAPH: &str = "graph";
/// What was measured of providers, and where sessions are bound.
const HEALTH: &str = "health";
const SESSIONS: &str = "sessions";
/// Replies of models that are replayed.
const REPLIES: &str = "replies";
/// Forced decisions and profiles of flags, and responses of the graph service.
const OVERRIDES: &str = "overrides";
const PROFILES: &str = "profiles";
const GRAPH_RESPONSES: &str = "graph responses";
/// How long a request waits for the other process to be there.
const PEER_TIMEOUT: Duration = Duration::from_secs(2);

/// The other process, once it can be asked.
pub(super) type LatePeer = watch::Receiver<Option<Arc<Peer>>>;

/// Returns the state. From here on the other process counts for both.
pub(super) fn pass_on(app: &AppState, peer: &LatePeer) -> Vec<StatePart> {
    let windows = counters(app).map(|(name, counters)| {
        let peer = peer.clone();
        let ask = move |request: Vec<u8>| {
            let mut peer = peer.clone();
            async move {
                let there = peer.wait_for(Option::is_some);
                let there = tokio::time::timeout(PEER_TIMEOUT, there).await.ok()?;
                let peer = Arc::clone(there.ok()?.as_ref()?);
                peer.ask(name, &request).await
            }
            .boxed()
        };
        (name.to_owned(), counters.pass_on(Arc::new(ask)))
    });
    let replies = app.models.reply_cache.as_ref().map(|it| it.to_bytes());
    let of_models = [
        (HEALTH, app.models.health_to_bytes()),
        (SESSIONS, app.models.sessions_to_bytes()),
        (REPLIES, replies.unwrap_or_default()),
    ];
    let others = of_models.into_iter().chain(of_others(app));
    let others = others.map(|(name, bytes)| (name.to_owned(), bytes));
    windows.chain(others).collect()
}

/// Returns the state of the flag decisions and of the graph limits.
fn of_others(app: &AppState) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let decisions = app.decisions.iter().flat_map(|decisions| {
        [
            (OVERRIDES, decisions.overrides_to_bytes()),
            (PROFILES, decisions.profiles_to_bytes()),
        ]
    });
    let cache = app.graph.as_ref().and_then(|graph| graph.cache.as_ref());
    decisions.chain(cache.map(|cache| (GRAPH_RESPONSES, cache.to_bytes())))
}

/// Counts here again, because no other process serves.
pub(super) fn keep(app: &AppState) {
    counters(app).for_each(|(_, counters)| counters.keep());
}

/// Takes in the state of the process before this one.
pub(super) fn take_in(app: &AppState, parts: Vec<StatePart>) {
    for (name, bytes) in parts {
        let byte_count = bytes.len();
        let count = match name.as_str() {
            HEALTH => app.models.take_in_health(&bytes),
            SESSIONS => app.models.take_in_sessions(&bytes),
            REPLIES => {
                let replies = app.models.reply_cache.as_ref();
                replies.map_or(0, |it| it.take_in(bytes))
            }
            OVERRIDES => {
                let decisions = app.decisions.as_ref();
                decisions.map_or(0, |it| it.take_in_overrides(&bytes))
            }
            PROFILES => {
                let decisions = app.decisions.as_ref();
                decisions.map_or(0, |it| it.take_in_profiles(&bytes))
            }
            GRAPH_RESPONSES => {
                let cache = app.graph.as_ref().and_then(|graph| graph.cache.as_ref());
                cache.map_or(0, |it| it.take_in(&bytes))
            }
            name => {
                let counters = counters(app).find(|(known, _)| *known == name);
                counters.map_or(0, |(_, counters)| counters.take_in(&bytes))
            }
        };
        log::info!("{count} of `{name}` were taken over, {byte_count} bytes");
    }
}

/// Answers what the other process asks.
pub(super) fn answer_peer(app: &Arc<AppState>) -> Arc<AnswerPeer> {
    let app = Arc::clone(app);
    Arc::new(move |about: &str, body: Vec<u8>| {
        if about == LEASES {
            if let Ok(text) = std::str::from_utf8(&body) {
                app.ledger.hear_peer(text);
            }
            return async { Vec::new() }.boxed();
        }
        let found = counters(&app).find(|(name, _)| *name == about);
        let counters = found.map(|(_, counters)| Arc::clone(counters));
        async move {
            match counters {
                Some(counters) => counters.admit_for_predecessor(&body).await,
                None => Vec::new(),
            }
        }
        .boxed()
    })
}

/// Begins to share the store with the other process.
pub(super) fn share_store(ledger: &Ledger, peer: &Arc<Peer>) {
    let peer = Arc::downgrade(peer);
    ledger.begin_sharing(move |text| {
        if let Some(peer) = peer.upgrade() {
            peer.tell(LEASES, text.as_bytes());
        }
    });
}

/// Returns the windows by their names.
fn counters(app: &AppState) -> impl Iterator<Item = (&'static str, &Arc<WindowCounters>)> {
    let quotas = (QUOTAS, app.proxy.quotas.counters());
    let graph = app.graph.as_ref().map(|graph| (GRAPH, &graph.counters));
    std::iter::once(quotas).chain(graph)
}
