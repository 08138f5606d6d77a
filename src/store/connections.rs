//! Connections to the database: who gets how many, and how long each may take.
//!
//! Every query has a time limit here, and one on PostgreSQL itself, which ends first. So a query that waits for a lock
//! leaves nothing behind on the server; a process that is frozen or lost in a transaction holds its locks for
//! [`IDLE_TRANSACTION_S`]; and a server that is gone without a word costs a query its time limit and not its connection
//! for ever.

use std::fmt;
use std::io::ErrorKind;
use std::str::FromStr;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use sqlx::any::{
    AnyConnectOptions, AnyPoolOptions, AnyQueryResult, AnyRow, AnyStatement, AnyTypeInfo,
};
use sqlx::pool::PoolConnection;
use sqlx::{
    Any, AnyConnection, AnyPool, ConnectOptions, Connection, Either, Execute, Executor, Row, SqlStr,
};
use tokio::time::timeout;

use super::StoreError;

/// The time limit for getting a connection.
pub(super) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(4);
/// The time limit of a sign of life. A connection without it is closed.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// How long PostgreSQL keeps a transaction whose process sends nothing. Units: seconds.
const IDLE_TRANSACTION_S: u32 = 5;
/// A setting that PostgreSQL knows only if the options of the connection have reached it.
const MARK: (&str, &str) = ("weirgate.options", "sent");
/// What to do where they have not.
const POOLER: &str = "store.url leads to a pooler in front of PostgreSQL that does not pass the options of a connection \
                      on: name PostgreSQL itself. A process takes few connections (docs/scale.md), and needs sessions \
                      of its own";

/// What a process does with connections.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// Calls are stored and leases change. Nothing else can take these connections away.
    Ledger,
    Heartbeat,
    /// Everything else, by requests, commands and background work.
    Rest,
    /// Tables are migrated, copied or moved, as long as it takes.
    Migration,
}

impl Purpose {
    /// Returns the maximum number of connections. Source: docs/scale.md.
    fn connections(self) -> u32 {
        match self {
            Self::Ledger | Self::Rest => 4,
            Self::Heartbeat | Self::Migration => 1,
        }
    }

    /// Returns the time limit of a query, and within it of the wait for a lock. Units: seconds; 0: none.
    fn limits_s(self) -> (u32, u32) {
        match self {
            Self::Ledger => (6, 2),
            Self::Heartbeat => (3, 2),
            Self::Rest => (30, 5),
            Self::Migration => (0, 0),
        }
    }

    /// Returns how long this process waits for the next piece of an answer: a little longer than the server works.
    fn timeout(self) -> Duration {
        let (query_s, _) = self.limits_s();
        Duration::from_secs(u64::from(query_s) + 1)
    }

    /// Returns the options of a PostgreSQL session.
    fn options(self) -> String {
        let (query_s, lock_s) = self.limits_s();
        let (idle_s, (mark, value)) = (IDLE_TRANSACTION_S, MARK);
        let idle_s = if query_s == 0 { 0 } else { idle_s };
        let settings = [
            format!("statement_timeout={query_s}s"),
            format!("lock_timeout={lock_s}s"),
            format!("idle_in_transaction_session_timeout={idle_s}s"),
            // The server notices within 12 seconds that a host is gone, and within 2 that a process has hung up.
            "tcp_keepalives_idle=6".to_owned(),
            "tcp_keepalives_interval=2".to_owned(),
            "tcp_keepalives_count=3".to_owned(),
            "tcp_user_timeout=12000".to_owned(),
            "client_connection_check_interval=2s".to_owned(),
            format!("{mark}={value}"),
        ];
        settings.map(|setting| format!("-c {setting}")).join(" ")
    }
}

/// The connections for one purpose. Clones share them.
#[derive(Clone)]
pub(super) struct Connections {
    pool: AnyPool,
    timeout: Duration,
}

impl Connections {
    /// Makes the connections when they are needed.
    ///
    /// Errors: [`StoreError::Configuration`] for an invalid URL.
    pub(super) fn new(url: &str, purpose: Purpose) -> Result<Self, StoreError> {
        // A connection that was idle may be dead, and the network does not always say so.
        let pool = AnyPoolOptions::new()
            .max_connections(purpose.connections())
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .test_before_acquire(false)
            .before_acquire(|connection, _| {
                Box::pin(async move {
                    let alive = timeout(PING_TIMEOUT, connection.ping()).await;
                    alive.map_err(|_| timed_out())?.map(|()| true)
                })
            });
        Ok(Self {
            pool: pool.connect_lazy_with(options(url, purpose)?),
            timeout: purpose.timeout(),
        })
    }

    /// Returns a free connection, as soon as there is one.
    pub(super) async fn acquire(&self) -> Result<Connected, StoreError> {
        let connection = self.pool.acquire().await?;
        Ok(Connected {
            timeout: self.timeout,
            has_transaction: false,
            is_postgres: connection.is_postgres(),
            connection: Some(connection),
        })
    }

    /// Returns a connection on which a transaction has begun. Dropped without a commit, it has changed nothing.
    pub(super) async fn begin(&self) -> Result<Connected, StoreError> {
        let mut connection = self.acquire().await?;
        connection.has_transaction = true;
        connection.execute("BEGIN").await?;
        Ok(connection)
    }

    /// Closes the connections after their running queries.
    pub(super) async fn close(&self) {
        _ = timeout(self.timeout, self.pool.close()).await;
    }

    /// The connections without time limits: for migrations, and tests.
    pub(super) fn unlimited(&self) -> &AnyPool {
        &self.pool
    }
}

/// A connection that goes back when it is dropped, if it still answers then.
pub(super) struct Connected {
    /// `None` once it is closed.
    connection: Option<PoolConnection<Any>>,
    timeout: Duration,
    has_transaction: bool,
    is_postgres: bool,
}

impl Connected {
    /// Returns the connection itself. Its queries have no time limit: the caller sets one for all of them together, and
    /// passes what comes of it to [`Self::finish`].
    pub(super) fn unlimited(&mut self) -> Result<&mut AnyConnection, StoreError> {
        let connection = self.connection.as_deref_mut();
        connection.ok_or(StoreError::TimedOut)
    }

    /// Gives the connection back after a successful change, and closes it after a failed one.
    ///
    /// A failed commit can leave its transaction open. The next change on that connection would be part of it:
    /// confirmed, but lost with the process. Seen on a full disk with SQLite.
    pub(super) fn finish<T>(mut self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if done.is_err() {
            self.hang_up();
        }
        done
    }

    /// Ends the transaction: it has changed everything.
    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        self.execute("COMMIT").await?;
        self.has_transaction = false;
        Ok(())
    }

    /// Closes the connection without a word, which ends its transaction.
    fn hang_up(&mut self) {
        drop(self.connection.take().map(PoolConnection::detach));
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        if self.has_transaction {
            self.hang_up();
        }
        // The server may be silent from here on, and a connection that waits for it would be missing in the pool.
        if let Some(mut connection) = self.connection.take() {
            let back = connection.return_to_pool();
            tokio::spawn(timeout(PING_TIMEOUT, back));
        }
    }
}

/// Says which SQL a connection speaks.
pub(super) trait Dialect {
    /// Whether it is PostgreSQL's.
    fn is_postgres(&self) -> bool;
}

impl Dialect for AnyConnection {
    fn is_postgres(&self) -> bool {
        self.backend_name() == "PostgreSQL"
    }
}

impl Dialect for Connected {
    fn is_postgres(&self) -> bool {
        self.is_postgres
    }
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connected")
    }
}

impl<'c> Executor<'c> for &'c mut Connected {
    type Database = Any;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<AnyQueryResult, AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        let limit = self.timeout;
        match self.connection.as_deref_mut() {
            Some(connection) => in_time(connection.fetch_many(query), limit),
            None => stream::once(async { Err(timed_out()) }).boxed(),
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<AnyRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        Box::pin(async move {
            let connection = self.connection.as_deref_mut().ok_or_else(timed_out)?;
            let fetched = timeout(self.timeout, connection.fetch_optional(query));
            fetched.await.map_err(|_| timed_out())?
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [AnyTypeInfo],
    ) -> BoxFuture<'e, Result<AnyStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let connection = self.connection.as_deref_mut().ok_or_else(timed_out)?;
            let prepared = timeout(self.timeout, connection.prepare_with(sql, parameters));
            prepared.await.map_err(|_| timed_out())?
        })
    }
}

/// Waits this long for each piece.
fn in_time<'e, T: Send + 'e>(
    pieces: BoxStream<'e, Result<T, sqlx::Error>>,
    limit: Duration,
) -> BoxStream<'e, Result<T, sqlx::Error>> {
    let next = move |pieces: Option<BoxStream<'e, _>>| async move {
        let mut pieces = pieces?;
        match timeout(limit, pieces.next()).await {
            Ok(piece) => piece.map(|piece| (piece, Some(pieces))),
            Err(_) => Some((Err(timed_out()), None)),
        }
    };
    stream::unfold(Some(pieces), next).boxed()
}

fn timed_out() -> sqlx::Error {
    sqlx::Error::Io(ErrorKind::TimedOut.into())
}

/// Makes a connection of its own.
///
/// Errors: [`StoreError::Configuration`] for an invalid URL, or a pooler in front of PostgreSQL; the database.
pub(super) async fn connect(url: &str, purpose: Purpose) -> Result<AnyConnection, StoreError> {
    let options = options(url, purpose)?;
    // A pool retries until its time is over and then reports only a timeout; a single connection reports the cause.
    let connected = timeout(ACQUIRE_TIMEOUT, options.connect());
    let connected = connected.await.map_err(|_| StoreError::TimedOut)?;
    let mut connection = connected.map_err(|error| match is_of_pooler(&error) {
        true => StoreError::Configuration(POOLER.to_owned()),
        false => error.into(),
    })?;
    if connection.is_postgres() {
        let marked = timeout(ACQUIRE_TIMEOUT, check_mark(&mut connection));
        marked.await.map_err(|_| StoreError::TimedOut)??;
    }
    Ok(connection)
}

/// Returns whether a pooler has refused the options of a connection, as PgBouncer does.
fn is_of_pooler(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.is_some_and(|error| error.message().contains("startup parameter"))
}

/// Checks that the options of the connection have reached PostgreSQL.
async fn check_mark(connection: &mut AnyConnection) -> Result<(), StoreError> {
    let (mark, value) = MARK;
    let query = sqlx::query("SELECT current_setting($1, true)").bind(mark);
    let row = query.fetch_one(connection).await?;
    let found: Option<String> = row.try_get(0)?;
    match found.as_deref() == Some(value) {
        true => Ok(()),
        false => Err(StoreError::Configuration(POOLER.to_owned())),
    }
}

/// Returns how to connect, with the options of a session. Options of the operator come last, and so they hold.
///
/// Errors: [`StoreError::Configuration`] for an invalid URL.
pub(super) fn options(url: &str, purpose: Purpose) -> Result<AnyConnectOptions, StoreError> {
    sqlx::any::install_default_drivers();
    // The driver's message may repeat the URL with its password.
    let mut options = AnyConnectOptions::from_str(url)
        .map_err(|_| StoreError::Configuration("store.url is not a URL".to_owned()))?;
    let url = &mut options.database_url;
    if url.scheme() != "sqlite" {
        let theirs = url.query().unwrap_or_default().to_owned();
        let mut query = url.query_pairs_mut();
        query.clear().append_pair("options", &purpose.options());
        drop(query);
        let both = format!("{}&{theirs}", url.query().unwrap_or_default());
        url.set_query(Some(both.trim_end_matches('&')));
    }
    Ok(options.disable_statement_logging())
}
