//! The parts of a running gateway. Only wiring and tests see all of them, and a handler owns only its product.

use std::sync::Arc;

use super::openapi::OpenApi;
use crate::decisions::DecisionService;
use crate::graph::Graph;
use crate::ledger::Ledger;
use crate::models::Models;
use crate::proxy::state::ProxyState;

/// All parts of a running gateway.
pub struct AppState {
    /// The state that all requests share in the core.
    pub proxy: Arc<ProxyState>,
    pub models: Arc<Models>,
    /// The flag decisions, or `None` if they are off.
    pub decisions: Option<Arc<DecisionService>>,
    /// The graph limits, or `None` if they are off.
    pub graph: Option<Arc<Graph>>,
    pub ledger: Arc<Ledger>,
    /// The description of the listener's operations.
    pub openapi: Arc<OpenApi>,
}
