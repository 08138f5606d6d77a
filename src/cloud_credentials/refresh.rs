//! Keeps the operator's credentials fresh, also while no call needs them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;

use super::CredentialSource;
use crate::periodic::Ticks;

/// How often sources are looked at. A look costs nothing.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Refreshes sources before what they gave ends.
pub struct CredentialRefresh(pub Vec<Arc<CredentialSource>>);

#[async_trait]
impl BackgroundService for CredentialRefresh {
    async fn start(&self, stop: ShutdownWatch) {
        let mut ticks = Ticks::new(LOOK_INTERVAL, stop);
        while ticks.next().await {
            for source in &self.0 {
                source.refresh_if_due();
            }
        }
    }
}
