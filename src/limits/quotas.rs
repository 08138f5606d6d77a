//! The quotas of the model gateway: requests of a minute, by organization and group of endpoints.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::Fault;
use filters::limits::headers::Quota;
use filters::limits::quota::{MINUTE_MS, UnknownGroup};
use filters::limits::{Algorithm, QuotaGroup, Quotas as Limits};
use prometheus::IntCounterVec;

use super::counters::{Sweeper, WindowCounters};
use crate::config::Config;
use crate::redis::Redis;

/// Their limits, and where they are counted.
pub struct Quotas {
    limits: Limits,
    counters: Arc<WindowCounters>,
    decisions: IntCounterVec,
}

impl Quotas {
    /// The quotas of a configuration. Errors: a group that is none.
    pub fn new(
        config: &Config,
        redis: Option<&Redis>,
        decisions: &IntCounterVec,
    ) -> Result<Self, UnknownGroup> {
        let groups = config.limits.requests_per_minute.iter();
        let on_outage = config.shared.on_outage;
        let window = Duration::from_millis(MINUTE_MS);
        Ok(Self {
            limits: Limits::parse(groups.map(|(group, limit)| (group.as_str(), *limit)))?,
            counters: Arc::new(WindowCounters::shared(
                Algorithm::Fixed,
                window,
                redis,
                on_outage,
            )),
            decisions: decisions.clone(),
        })
    }

    /// Who drops the windows that have ended.
    pub fn sweeper(&self) -> Sweeper {
        Sweeper(Arc::clone(&self.counters))
    }

    /// Counts a request against its quota if there is room; nothing where its group has none.
    ///
    /// Errors: 503, where nobody can say whether there is room.
    pub async fn admit(
        &self,
        organization: &Arc<str>,
        group: QuotaGroup,
    ) -> Result<Option<Quota>, Fault> {
        let Some((key, limit)) = self.limits.of(organization, group) else {
            return Ok(None);
        };
        let verdict = self.counters.admit(&key, limit).await;
        let decision = match &verdict {
            Ok(verdict) if verdict.is_allowed => "admitted",
            Ok(_) => "refused",
            Err(_) => "unavailable",
        };
        let labels = [group.word(), decision];
        self.decisions.with_label_values(&labels).inc();
        Ok(Some(Quota {
            verdict: verdict?,
            window_ms: MINUTE_MS,
        }))
    }
}
