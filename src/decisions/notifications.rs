//! The stream of notices: who listens is told what is decided, and nobody who decides ever waits for them.
//!
//! A listener that reads too slowly loses the oldest notices, which the numbers of the rest show.

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

use crate::proxy::response::EventSource;

/// How many notices a listener may be behind.
const BEHIND: usize = 1024;
/// After how long without a notice a comment shows that the stream lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The source of all notices: a channel per SDK key that somebody listens to.
#[derive(Clone, Default)]
pub struct Notifications(Arc<Subscribers>);

#[derive(Default)]
struct Subscribers {
    channels: ArcSwap<Channels>,
    /// Held while listeners are added.
    changing: Mutex<()>,
}

type Channels = HashMap<Box<str>, Sender<Arc<Notice>>>;

#[derive(Debug)]
struct Notice {
    topic: Topic,
    json: Vec<u8>,
}

impl Notifications {
    /// Tells all who listen. `json` is only called where somebody does. Cost: no lock where nobody does.
    pub fn publish(&self, sdk_key: &str, topic: Topic, json: impl FnOnce() -> Vec<u8>) {
        let channels = self.0.channels.load();
        let channel = channels.get(sdk_key);
        if let Some(channel) = channel.filter(|channel| channel.receiver_count() > 0) {
            // Who has left meanwhile need not be told.
            _ = channel.send(Arc::new(Notice {
                topic,
                json: json(),
            }));
        }
    }

    /// Listens to an SDK key's notices of these topics; none: all.
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
            quiet_until: Instant::now() + HEARTBEAT,
        }
    }

    fn receiver(&self, sdk_key: &str) -> Receiver<Arc<Notice>> {
        let _one_at_a_time = super::lock(&self.0.changing);
        let mut channels = Channels::clone(&self.0.channels.load());
        channels.retain(|_, channel| channel.receiver_count() > 0);
        let channel = channels.entry(sdk_key.into());
        let notices = channel
            .or_insert_with(|| broadcast::channel(BEHIND).0)
            .subscribe();
        self.0.channels.store(Arc::new(channels));
        notices
    }
}

/// Who listens.
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
    /// The next bytes of the stream; none: there will be no more. May be dropped while it waits: nothing is lost.
    async fn next_bytes(&mut self) -> Option<Bytes> {
        loop {
            // Raw streams have no comments.
            let is_still = self.is_raw || !self.protocol.endpoint_rules().has_heartbeats;
            let notice = tokio::select! {
                notice = self.notices.recv() => notice,
                () = tokio::time::sleep_until(self.quiet_until), if !is_still => {
                    self.quiet_until = Instant::now() + HEARTBEAT;
                    return Some(Bytes::from_static(b": alive\n\n"));
                }
            };
            match notice {
                Ok(notice) => {
                    self.number += 1;
                    if self.topics.is_empty() || self.topics.contains(&notice.topic) {
                        self.quiet_until = Instant::now() + HEARTBEAT;
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
