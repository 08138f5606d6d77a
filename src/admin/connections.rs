//! The connections of the listener. There are so many and no more: whoever comes then takes the place of the connection that has waited
//! longest for its client. So probes and metrics are answered however many connections stand open. A stream keeps its place: the
//! console bounds how many there are, and they are fewer than connections.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pingora::apps::ServerApp;
use pingora::protocols::Stream;
use pingora::server::ShutdownWatch;
use tokio::sync::Notify;

use super::Admin;

/// The maximum number of connections. Our choice: streams take less than half of them, and a browser opens six.
const MAX_CONNECTIONS: usize = 128;

tokio::task_local! {
    /// The connection that the task serves.
    static CONNECTION: AdmittedConnection;
}

/// The endpoints behind the bound of connections.
pub struct AdminListener {
    admin: Arc<Admin>,
    connections: Arc<AdminConnections>,
}

/// The connections that are open.
#[derive(Default)]
struct AdminConnections(Mutex<OpenConnections>);

#[derive(Default)]
struct OpenConnections {
    /// The number of the last change, by which changes have an order.
    last: u64,
    open: Vec<OpenConnection>,
}

struct OpenConnection {
    /// The number of the change that opened it.
    number: u64,
    state: ConnectionUse,
    /// The number of the change since which it is in this state.
    since: u64,
    closing: Arc<Notify>,
}

/// What a connection does, in the order in which connections are closed for others.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum ConnectionUse {
    /// It waits for the head of a request.
    Waits,
    /// It reads the rest of a request, or answers it.
    Answers,
    /// It sends a stream, and is closed for nobody.
    Streams,
}

/// One connection, which counts until this is dropped.
struct AdmittedConnection {
    connections: Arc<AdminConnections>,
    number: u64,
    /// Tells that another one has its place.
    closing: Arc<Notify>,
}

impl AdminListener {
    /// Returns the endpoints, without any connection.
    pub fn new(admin: Admin) -> Self {
        Self {
            admin: Arc::new(admin),
            connections: Arc::default(),
        }
    }
}

#[async_trait]
impl ServerApp for AdminListener {
    async fn process_new(
        self: &Arc<Self>,
        stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let connection = self.connections.admit()?;
        let closing = Arc::clone(&connection.closing);
        let served = CONNECTION.scope(connection, self.admin.process_new(stream, shutdown));
        tokio::select! {
            biased;
            () = closing.notified() => None,
            reused = served => reused,
        }
    }
}

/// Says what the connection of this task does from now on.
pub(super) fn note_use(state: ConnectionUse) {
    // Outside of a connection there is none to note it of.
    _ = CONNECTION.try_with(|it| it.connections.change(it.number, state));
}

impl AdminConnections {
    /// Admits a connection, in place of another one if there are too many. `None`: all are streams.
    ///
    /// Cost: a lock for a look at all connections.
    fn admit(self: &Arc<Self>) -> Option<AdmittedConnection> {
        let mut connections = self.lock();
        let OpenConnections { last, open } = &mut *connections;
        if open.len() >= MAX_CONNECTIONS {
            let closable = open.iter().enumerate();
            let closable = closable.filter(|(_, it)| it.state != ConnectionUse::Streams);
            let closed = closable.min_by_key(|(_, it)| (it.state, it.since));
            let closed = closed.map(|(index, _)| index)?;
            open.swap_remove(closed).closing.notify_one();
        }
        *last += 1;
        let closing = Arc::new(Notify::new());
        open.push(OpenConnection {
            number: *last,
            state: ConnectionUse::Waits,
            since: *last,
            closing: Arc::clone(&closing),
        });
        Some(AdmittedConnection {
            connections: Arc::clone(self),
            number: *last,
            closing,
        })
    }

    fn change(&self, number: u64, state: ConnectionUse) {
        let mut connections = self.lock();
        connections.last += 1;
        let since = connections.last;
        // Another one may have its place already.
        if let Some(it) = connections.open.iter_mut().find(|it| it.number == number) {
            (it.state, it.since) = (state, since);
        }
    }

    fn leave(&self, number: u64) {
        self.lock().open.retain(|it| it.number != number);
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AdmittedConnection {
    fn drop(&mut self) {
        self.connections.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use futures::FutureExt;

    use super::*;

    fn full() -> (Arc<AdminConnections>, Vec<AdmittedConnection>) {
        let all = Arc::<AdminConnections>::default();
        let admitted = (0..MAX_CONNECTIONS).map(|_| all.admit().unwrap());
        let admitted = admitted.collect();
        (all, admitted)
    }

    fn closed(admitted: &[AdmittedConnection]) -> Vec<usize> {
        let is_closed = |it: &AdmittedConnection| it.closing.notified().now_or_never().is_some();
        let closed = admitted.iter().enumerate().filter(|(_, it)| is_closed(it));
        closed.map(|(index, _)| index).collect()
    }

    #[test]
    fn the_next_connection_has_the_place_of_the_one_that_has_waited_longest() {
        let (all, admitted) = full();
        // The first one has asked meanwhile and waits again, the second one is answered.
        for state in [ConnectionUse::Answers, ConnectionUse::Waits] {
            all.change(admitted[0].number, state);
        }
        all.change(admitted[1].number, ConnectionUse::Answers);
        let late = all.admit().unwrap();
        assert_eq!(closed(&admitted), [2]);
        assert_eq!(all.lock().open.len(), MAX_CONNECTIONS);
        // What the closed one still says changes nothing, and its end frees nobody else's place.
        all.change(admitted[2].number, ConnectionUse::Streams);
        drop(admitted);
        assert_eq!(all.lock().open.len(), 1);
        drop(late);
        assert!(all.lock().open.is_empty());
    }

    #[test]
    fn an_answer_is_cut_after_all_that_wait_and_a_stream_never() {
        let (all, admitted) = full();
        for it in &admitted[1..] {
            all.change(it.number, ConnectionUse::Streams);
        }
        all.change(admitted[0].number, ConnectionUse::Answers);
        let late = all.admit().unwrap();
        assert_eq!(closed(&admitted), [0]);
        all.change(late.number, ConnectionUse::Streams);
        assert!(all.admit().is_none());
        drop(late);
        assert!(all.admit().is_some());
    }
}
