//! Announces datafiles that come in force: to the subscribers of notifications, and to the streams of OpenFeature's clients.
//!
//! A stream needs only the last datafile, because its client asks for all flags again. So an SDK key has one value that each
//! datafile overwrites, and a slow client holds no memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use filters::decisions::notice;
use filters::decisions::notice::Topic;
use tokio::sync::watch::{Receiver, Sender};

use super::loaded::LoadedDatafile;
use crate::decisions::mutex::lock;
use crate::decisions::notifications::Notifications;

/// Announces datafiles.
#[derive(Clone, Default)]
pub struct Announcer {
    notifications: Option<Notifications>,
    channels: Arc<Mutex<Channels>>,
}

/// The tag of the last datafile of each SDK key that has streams.
type Channels = HashMap<Box<str>, Sender<Arc<str>>>;

impl Announcer {
    /// Returns an announcer to the same streams, with these subscribers of notifications.
    pub fn with_notifications(&self, notifications: Option<Notifications>) -> Self {
        Self {
            notifications,
            channels: Arc::clone(&self.channels),
        }
    }

    /// Announces a datafile that is in force now.
    pub(super) fn announce(&self, sdk_key: &str, loaded: &LoadedDatafile) {
        if let Some(notifications) = &self.notifications {
            notifications.publish(sdk_key, Topic::Project, || notice::project(&loaded.project));
        }
        if let Some(channel) = lock(&self.channels).get(sdk_key) {
            channel.send_replace(Arc::clone(&loaded.etag));
        }
    }

    /// Returns the tags of the datafiles of an SDK key from now on.
    pub fn subscribe(&self, sdk_key: &str) -> Receiver<Arc<str>> {
        let mut channels = lock(&self.channels);
        channels.retain(|_, channel| channel.receiver_count() > 0);
        let channel = channels.entry(sdk_key.into()).or_default();
        channel.subscribe()
    }
}
