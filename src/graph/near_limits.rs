//! The windows of tenants and operations that are nearest to their limits, for people who look.

use std::collections::HashMap;
use std::sync::Arc;

use filters::graph::GraphOperation;
use filters::limits::{RowId, Subject, WindowKey};

use super::Graph;
use crate::limits::near_limits::NearLimits;

impl Graph {
    /// Returns the windows that are nearest to their limits, and those that refused most. Clients without a credential of a
    /// tenant count by their address.
    pub async fn near_limits(self: &Arc<Self>) -> NearLimits {
        let operations = self.operations.all();
        let operations = operations.map(|operation| (operation.id, Arc::clone(operation)));
        let operations: Arc<HashMap<RowId, Arc<GraphOperation>>> = Arc::new(operations.collect());
        let (known, graph) = (Arc::clone(&operations), Arc::clone(self));
        let limit = move |key: &WindowKey| {
            let operation = known.get(&key.row)?;
            let tenant = match &key.subject {
                Subject::Named(tenant) => Some(&**tenant),
                Subject::Address(_) => None,
            };
            Some(graph.limits.limit(tenant, operation))
        };
        let name = |row| {
            operations
                .get(&row)
                .map(|operation| operation.name.to_string())
        };
        self.counters.near_limits(limit, name).await
    }
}
