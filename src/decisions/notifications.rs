//! Notices of decisions, published to subscribers. Decisions never wait for a subscriber.
//!
//! A slow subscriber loses the oldest notices. The gap in the numbers of the others shows that.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::mutex::lock;
use crate::proxy::response::EventSource;

/// The maximum number of notices that a subscriber may lag behind.
const MAX_LAG: usize = 1024;
/// The maximum bytes of notices of one SDK key that a subscriber has not read. Further notices are lost for all of
/// its subscribers, which their numbers show.
const MAX_UNREAD_BYTES: usize = 4 << 20;
/// The time without a notice after which a comment shows that the stream is alive.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// A channel per SDK key that has subscribers.
#[derive(Clone, Default)]
pub struct Notifications(Arc<Subscribers>);

#[derive(Default)]
struct Subscribers {
    channels: ArcSwap<Channels>,
    adding: Mutex<()>,
}

type Channels = HashMap<Box<str>, Channel>;

#[derive(Clone)]
struct Channel {
    sender: Sender<Arc<PublishedNotice>>,
    /// The free bytes.
    free: Arc<Semaphore>,
}

impl Default for Channel {
    fn default() -> Self {
        Self {
            sender: broadcast::channel(MAX_LAG).0,
            free: Arc::new(Semaphore::new(MAX_UNREAD_BYTES)),
        }
    }
}

#[derive(Debug)]
struct PublishedNotice {
    topic: Topic,
    /// The notice, or `None` if the channel had no room for it.
    content: Option<Content>,
}

#[derive(Debug)]
struct Content {
    json: Vec<u8>,
    /// The bytes that the notice takes until the last subscriber has read it.
    _permits: OwnedSemaphorePermit,
}

impl Notifications {
    /// Publishes a notice. `json` is only called for an SDK key with subscribers. Cost: no lock.
    pub fn publish(&self, sdk_key: &str, topic: Topic, json: impl FnOnce() -> Vec<u8>) {
        let channels = self.0.channels.load();
        let channel = channels.get(sdk_key);
        if let Some(channel) = channel.filter(|channel| channel.sender.receiver_count() > 0) {
            let json = json();
            let bytes = u32::try_from(json.len()).unwrap_or(u32::MAX);
            let permits = Arc::clone(&channel.free).try_acquire_many_owned(bytes);
            let content = permits.ok().map(|permits| Content {
                json,
                _permits: permits,
            });
            // This fails if the last subscriber has just left.
            _ = channel
                .sender
                .send(Arc::new(PublishedNotice { topic, content }));
        }
    }

    /// Subscribes to the notices of an SDK key. Without topics, all of them are sent.
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

    fn receiver(&self, sdk_key: &str) -> Receiver<Arc<PublishedNotice>> {
        let _one_at_a_time = lock(&self.0.adding);
        let mut channels = Channels::clone(&self.0.channels.load());
        channels.retain(|_, channel| channel.sender.receiver_count() > 0);
        let channel = channels.entry(sdk_key.into());
        let notices = channel.or_default().sender.subscribe();
        self.0.channels.store(Arc::new(channels));
        notices
    }
}

/// The notices of one subscriber.
pub struct Subscription {
    notices: Receiver<Arc<PublishedNotice>>,
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
                    let is_wanted = self.topics.is_empty() || self.topics.contains(&notice.topic);
                    if let Some(content) = notice.content.as_ref().filter(|_| is_wanted) {
                        self.quiet_until = Instant::now() + HEARTBEAT_INTERVAL;
                        let bytes = self.protocol.frame(&content.json, self.number, self.is_raw);
                        return Some(bytes.into());
                    }
                }
                Err(RecvError::Lagged(missed)) => self.number += missed,
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use filters::decisions::protocol::Document;
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_subscriber_that_does_not_read_holds_so_many_bytes() {
        let notifications = Notifications::default();
        let mut slow = notifications.subscribe("k", Vec::new(), false, &Document);
        for _ in 0..10 {
            notifications.publish("k", Topic::Decision, || vec![b'1'; 1 << 20]);
        }
        let read: Vec<_> = std::iter::from_fn(|| slow.next_bytes().now_or_never()).collect();
        assert_eq!(read.len(), MAX_UNREAD_BYTES >> 20);
        // What was lost shows in the numbers, and there is room again.
        notifications.publish("k", Topic::Decision, || b"{}".to_vec());
        let next = slow.next_bytes().now_or_never().flatten().unwrap();
        assert!(next.starts_with(b"id: 11\n"), "{next:?}");
    }
}
