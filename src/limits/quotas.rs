//! The quotas of the model gateway: requests per minute, by organization and group of endpoints.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::Fault;
use filters::limits::headers::Quota;
use filters::limits::quota::MINUTE_MS;
use filters::limits::{Algorithm, Payer, QuotaGroup, Quotas as Limits, WindowKey};
use prometheus::IntCounterVec;

use super::counters::{Sweeper, WindowCounters};
use super::near_limits::NearLimits;
use super::shared_windows::Sharing;
use crate::config::Config;

/// The limits and their windows.
pub struct Quotas {
    limits: Limits,
    counters: Arc<WindowCounters>,
    decisions: IntCounterVec,
}

impl Quotas {
    /// Builds the quotas of a configuration. The windows of the previous one go on.
    pub fn new(
        config: &Config,
        sharing: Option<&Sharing>,
        decisions: &IntCounterVec,
        previous: Option<&Self>,
    ) -> Self {
        let window = Duration::from_millis(MINUTE_MS);
        Self {
            limits: Limits::new(config.limits.requests_per_minute.limits()),
            counters: Arc::new(WindowCounters::with_sharing(
                Algorithm::Fixed,
                window,
                sharing,
                previous.map(|previous| &*previous.counters),
            )),
            decisions: decisions.clone(),
        }
    }

    /// Returns the windows.
    pub fn counters(&self) -> &Arc<WindowCounters> {
        &self.counters
    }

    /// Returns the task that drops ended windows.
    pub fn sweeper(&self) -> Sweeper {
        Sweeper(Arc::clone(&self.counters))
    }

    /// Returns the quotas of organizations that are nearest to their limits, and those that refused most.
    pub async fn near_limits(&self) -> NearLimits {
        let limits = self.limits.clone();
        let terms = move |key: &WindowKey| limits.find_limit(key.row);
        let name = |row| {
            let group = self.limits.find_group(row);
            group.map(|group| group.as_str().to_owned())
        };
        self.counters.near_limits(terms, name).await
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::{Source, load};
    use crate::telemetry::metrics::Metrics;

    fn config(chat: u64) -> Config {
        let text = format!("[limits.requests_per_minute]\nchat = {chat}\n");
        let name = "weirgate.toml".into();
        load(&Source::Text { name, text }, []).unwrap().config
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_limit_counts_what_the_old_one_has_admitted() {
        let decisions = Metrics::new().unwrap().limiter_decisions;
        let quotas = |chat, previous| Quotas::new(&config(chat), None, &decisions, previous);
        let payer = Payer {
            organization: &"acme".into(),
            is_first_run: false,
        };
        let left = async |quotas: &Quotas| {
            let quota = quotas.admit(payer, QuotaGroup::Chat).await.unwrap();
            let verdict = quota.unwrap().verdict;
            verdict.is_allowed.then_some(verdict.remaining)
        };
        let old = quotas(2, None);
        assert_eq!(left(&old).await, Some(1));
        let new = quotas(3, Some(&old));
        assert_eq!(left(&new).await, Some(1));
        assert_eq!(left(&old).await, None, "its limit is reached");
        assert_eq!(left(&new).await, Some(0));
    }
}
