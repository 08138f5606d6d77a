//! Notices of decisions, published to subscribers. A decision never waits for a subscriber.
//!
//! A subscriber that reads too slowly loses the oldest notices. The numbers of the others show the gap.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use filters::decisions::notice::Topic;
use filters::decisions::protocol::Protocol;
use futures::future::BoxFuture;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio::time::Instant;

use super::mutex::lock;
use crate::proxy::response::EventSource;

/// How many notices a subscriber may be behind.
const MAX_LAG: usize = 1024;
/// After how long without a notice a comment shows that the stream is alive.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// A channel per SDK key that has subscribers.
#[derive(Clone, Default)]
pub struct Notifications(Arc<Subscribers>);

#[derive(Default)]
struct Subscribers {
    channels: ArcSwap<Channels>,
    /// Locked while a subscriber is added.
    adding: Mutex<()>,
}

type Channels = HashMap<Box<str>, Sender<Arc<Notice>>>;

#[derive(Debug)]
struct Notice {
    topic: Topic,
    json: Vec<u8>,
}

impl Notifications {
    /// Publishes a notice. `json` is only called for an SDK key with subscribers. Cost: no lock.
    pub fn publish(&self, sdk_key: &str, topic: Topic, json: impl FnOnce() -> Vec<u8>) {
        let channels = self.0.channels.load();
        let channel = channels.get(sdk_key);
        if let Some(channel) = channel.filter(|channel| channel.receiver_count() > 0) {
            // This fails if the last subscriber has just left.
            _ = channel.send(Arc::new(Notice {
                topic,
                json: json(),
            }));
        }
    }

    /// Subscribes to the notices of an SDK key. Without topics, all of them count.
    pub fn subscribe(
        &self,
        sdk_key: &str,
        topics: Vec<Topic>,
        is_raw: bool,
        protocol: &'static dyn Protocol,
    ) -> Subscription {
        let notices = self.receiver(sdk_key);
        Subscription {
            notices,
            topics,
            is_raw,
            protocol,
            number: 0,
            quiet_until: Instant::now() + HEARTBEAT_INTERVAL,
        }
    }

    fn receiver(&self, sdk_key: &str) -> Receiver<Arc<Notice>> {
        let _one_at_a_time = lock(&self.0.adding);
        let mut channels = Channels::clone(&self.0.channels.load());
        channels.retain(|_, channel| channel.receiver_count() > 0);
        let channel = channels.entry(sdk_key.into());
        let notices = channel
            .or_insert_with(|| broadcast::channel(MAX_LAG).0)
            .subscribe();
        self.0.channels.store(Arc::new(channels));
        notices
    }
}

/// The notices of one subscriber.
pub struct Subscription {
    notices: Receiver<Arc<Notice>>,
    topics: Vec<Topic>,
    is_raw: bool,
    protocol: &'static dyn Protocol,
    number: u64,
    quiet_until: Instant,
}

impl EventSource for Subscription {
    fn next(&mut self) -> BoxFuture<'_, Option<Bytes>> {
        Box::pin(self.next_bytes())
    }
}

impl Subscription {
    /// Waits for the next bytes of the stream. Returns `None` at its end. Cancel safety: a dropped call loses nothing.
    async fn next_bytes(&mut self) -> Option<Bytes> {
        loop {
            // Raw streams have no comments.
            let is_silent = self.is_raw || !self.protocol.endpoint_rules().has_heartbeats;
            let notice = tokio::select! {
                notice = self.notices.recv() => notice,
                () = tokio::time::sleep_until(self.quiet_until), if !is_silent => {
                    self.quiet_until = Instant::now() + HEARTBEAT_INTERVAL;
                    return Some(Bytes::from_static(b": alive\n\n"));
                }
            };
            match notice {
                Ok(notice) => {
                    self.number += 1;
                    if self.topics.is_empty() || self.topics.contains(&notice.topic) {
                        self.quiet_until = Instant::now() + HEARTBEAT_INTERVAL;
                        let bytes = self.protocol.frame(&notice.json, self.number, self.is_raw);
                        return Some(bytes.into());
                    }
                }
                Err(RecvError::Lagged(missed)) => self.number += missed,
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
