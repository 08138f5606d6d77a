//! Closes HTTP/2 connections whose client abandons many streams. Each abandoned stream costs the client two small
//! frames, and the gateway a request.
//!
//! Streams run on their own tasks, so a connection is identified by the address and port of its client.
//!
//! Source: docs/hostile-input.md 18.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The maximum number of streams that a client may abandon within a window.
const MAX_RESETS: u32 = 1_000;
/// The length of a window.
const WINDOW: Duration = Duration::from_secs(10);

/// The open HTTP/2 connections and their abandoned streams.
#[derive(Default)]
pub struct StreamResets(Mutex<HashMap<SocketAddr, Resets>>);

/// The abandoned streams of one connection.
struct Resets {
    count: u32,
    window_start: Instant,
    is_over: Arc<Notify>,
}

/// One connection, counted until it is dropped.
pub struct CountedConnection<'r> {
    resets: &'r StreamResets,
    client: SocketAddr,
    is_over: Arc<Notify>,
}

impl StreamResets {
    /// Starts to count the abandoned streams of a client's connection.
    pub fn open(&self, client: SocketAddr) -> CountedConnection<'_> {
        let is_over = Arc::new(Notify::new());
        let resets = Resets {
            count: 0,
            window_start: Instant::now(),
            is_over: Arc::clone(&is_over),
        };
        self.lock().insert(client, resets);
        CountedConnection {
            resets: self,
            client,
            is_over,
        }
    }

    /// Counts one abandoned stream, and closes the connection beyond the maximum.
    pub fn count(&self, client: SocketAddr, now: Instant) {
        let mut connections = self.lock();
        let Some(resets) = connections.get_mut(&client) else {
            return;
        };
        if now.saturating_duration_since(resets.window_start) >= WINDOW {
            resets.window_start = now;
            resets.count = 0;
        }
        resets.count += 1;
        if resets.count > MAX_RESETS {
            resets.is_over.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, Resets>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CountedConnection<'_> {
    /// Returns once the client has abandoned too many streams.
    pub async fn is_over(&self) {
        self.is_over.notified().await;
    }
}

impl Drop for CountedConnection<'_> {
    fn drop(&mut self) {
        self.resets.lock().remove(&self.client);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_connection_is_over_after_too_many_resets_within_a_window() {
        let resets = StreamResets::default();
        let client = SocketAddr::from(([192, 0, 2, 1], 1000));
        let other = SocketAddr::from(([192, 0, 2, 1], 1001));
        let (counted, neighbour) = (resets.open(client), resets.open(other));
        let now = Instant::now();
        (0..MAX_RESETS).for_each(|_| resets.count(client, now));
        assert!(counted.is_over().now_or_never().is_none());
        (0..MAX_RESETS).for_each(|_| resets.count(client, now + WINDOW));
        assert!(counted.is_over().now_or_never().is_none());
        resets.count(client, now + WINDOW);
        assert!(counted.is_over().now_or_never().is_some());
        assert!(neighbour.is_over().now_or_never().is_none());
        drop((counted, neighbour));
        resets.count(client, now);
        assert!(resets.lock().is_empty());
    }
}
