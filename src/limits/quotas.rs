//! The quotas of the model gateway: requests per minute, by organization and group of endpoints.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::Fault;
use filters::limits::headers::Quota;
use filters::limits::quota::MINUTE_MS;
use filters::limits::{Algorithm, Payer, QuotaGroup, Quotas as Limits};
use prometheus::IntCounterVec;

use super::counters::{Sweeper, WindowCounters};
use super::shared_windows::Sharing;
use crate::config::Config;

/// The limits and their windows.
pub struct Quotas {
    limits: Limits,
    counters: Arc<WindowCounters>,
    decisions: IntCounterVec,
}

impl Quotas {
    /// Builds the quotas of a configuration.
    pub fn new(config: &Config, sharing: Option<&Sharing>, decisions: &IntCounterVec) -> Self {
        let window = Duration::from_millis(MINUTE_MS);
        Self {
            limits: Limits::new(config.limits.requests_per_minute.limits()),
            counters: Arc::new(WindowCounters::with_sharing(
                Algorithm::Fixed,
                window,
                sharing,
            )),
            decisions: decisions.clone(),
        }
    }

    /// Returns the task that drops ended windows.
    pub fn sweeper(&self) -> Sweeper {
        Sweeper(Arc::clone(&self.counters))
    }

    /// Counts a request against its quota, or returns `None` if its group has none.
    ///
    /// Errors: 503, see [`WindowCounters::admit`].
    pub async fn admit(&self, payer: Payer<'_>, group: QuotaGroup) -> Result<Option<Quota>, Fault> {
        let Some((key, limit)) = self.limits.find(payer, group) else {
            return Ok(None);
        };
        let verdict = self.counters.admit(&key, limit).await;
        let decision = match &verdict {
            Ok(verdict) if verdict.is_allowed => "admitted",
            Ok(_) => "refused",
            Err(_) => "unavailable",
        };
        let labels = [group.as_str(), decision];
        self.decisions.with_label_values(&labels).inc();
        Ok(Some(Quota {
            verdict: verdict?,
            window_ms: MINUTE_MS,
        }))
    }
}
