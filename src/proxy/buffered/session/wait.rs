//! Waits while the provider is silent: for the client, the timers, a hedge, and the cancellation of the request.

use std::future::{pending, poll_fn};
use std::time::Duration;

use bytes::Bytes;
use pingora::Result;
use tokio::time::Instant;

use super::BufferedSession;
use crate::proxy::buffered::interim::Interim;
use crate::proxy::buffered::state::{Stage, Wake};
use crate::proxy::hedge::Race;

/// How long a wait goes without a look at the time of its end, which the start of a drain brings nearer. Our choice: a
/// needless wake-up in two seconds costs less than a signal that every wait would have to listen to.
pub(in crate::proxy) const MAX_SLEEP: Duration = Duration::from_secs(2);

/// The reason for which a wait for the client ended.
pub(super) enum Waited {
    Client(Result<Option<Bytes>>),
    /// The timer fired and this step is due.
    Due(Wake),
    /// The client has cancelled its request.
    Cancelled,
    /// There is news of the hedge.
    News,
    /// No step is due: events have postponed the deadline, or the reply is still read for a client that has
    /// disconnected or may return.
    Again,
}

impl BufferedSession {
    /// Waits until the client disconnects or the timer fires.
    pub(super) async fn wait_for_client(&mut self) -> Waited {
        let (at, wake) = self.state.next_wake();
        let soon = || at.min(Instant::now() + MAX_SLEEP);
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(soon())));
        // The timer is reset only if it has fired or must fire earlier. Every event postpones the deadline, and a reset
        // for each costs more than one needless wake-up.
        if at < sleep.deadline() {
            sleep.as_mut().reset(at);
        } else if sleep.is_elapsed() {
            sleep.as_mut().reset(soon());
        }
        let Some(inner) = &mut self.inner else {
            return Waited::Client(Ok(None));
        };
        let is_disconnected = self.state.is_disconnected();
        let is_lost = self.state.is_lost();
        let interim = self.state.interim();
        let interim = interim.filter(|_| !is_disconnected && self.state.stage() != Stage::Complete);
        // Before the request is sent, Pingora would take the returned value for a piece of the body.
        let race = self.state.race().filter(|_| self.state.is_sent());
        tokio::select! {
            biased;
            end = inner.read_body_or_idle(true), if !is_lost => {
                if self.state.lose_client(Instant::now()) {
                    Waited::Again
                } else {
                    Waited::Client(end)
                }
            }
            () = news(race), if race.is_some() => Waited::News,
            () = cancelled(interim), if interim.is_some() => Waited::Cancelled,
            () = sleep.as_mut() => {
                if Instant::now() >= at {
                    Waited::Due(wake)
                } else {
                    Waited::Again
                }
            }
        }
    }
}

/// Waits for news of a running hedge.
async fn news(race: Option<&Race>) {
    match race {
        Some(race) => poll_fn(|context| race.poll_news(context)).await,
        None => pending().await,
    }
}

/// Waits until the client cancels its request.
async fn cancelled(interim: Option<&Interim>) {
    match interim {
        Some(interim) => interim.cancellation.cancelled().await,
        None => pending().await,
    }
}
