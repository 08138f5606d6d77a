//! The parts of a running gateway. Only wiring and tests see them together; a handler owns its product alone.

use std::sync::Arc;

use crate::decisions::DecisionService;
use crate::graph::Graph;
use crate::ledger::Ledger;
use crate::models::Models;
use crate::proxy::state::ProxyState;

/// See the module.
pub struct AppState {
    /// What the core of every request shares.
    pub proxy: Arc<ProxyState>,
    /// The model gateway.
    pub models: Arc<Models>,
    /// The flag decisions; none: they are off.
    pub decisions: Option<Arc<DecisionService>>,
    /// The graph service; none: it is off.
    pub graph: Option<Arc<Graph>>,
    /// What calls cost, and who pays.
    pub ledger: Arc<Ledger>,
}
