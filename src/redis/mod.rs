//! One connection to Redis, and whether Redis responds.
//!
//! A request waits at most [`COMMAND_TIMEOUT`] for Redis, all its waits together ([`crate::shared_wait`]). A command that
//! took so long makes Redis unavailable for the whole process, so that no other request waits without success, until the
//! [`heartbeat`] has reached it again. Callers get
//! [`Unavailable`] and fall back. Nothing is queued here and sent later.
//!
//! The connection has its own thread, so that slow background tasks do not look like a silent Redis.

mod heartbeat;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures::FutureExt;
use futures::future::BoxFuture;
use prometheus::IntGauge;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, FromRedisValue, RedisResult};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::shared_wait;

pub use self::heartbeat::{Heartbeat, Purpose};

/// How long a command is awaited: what a request may wait in all.
pub const COMMAND_TIMEOUT: Duration = shared_wait::BUDGET;
/// The number of parts of a wait. A process that was descheduled finds its timer and the reply both due when it
/// resumes. It then loses only one part, and the connection's task reads the reply during the next.
const WAIT_PARTS: u32 = 4;
/// The most parts of a wait during which the process is descheduled again and again.
const MAX_WAIT_PARTS: u32 = 2 * WAIT_PARTS;
/// The delay of a timer beyond its duration.
const TIMER_MARGIN: Duration = Duration::from_millis(1);
/// How long a late reply is awaited to undo its effect.
const UNDO_TIMEOUT: Duration = Duration::from_secs(10);

/// Redis does not respond, or refuses the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unavailable;

/// A script that Redis runs as one atomic step. Its text is sent only if Redis does not know it yet.
#[derive(Clone)]
pub struct Script(Arc<redis::Script>);

impl Script {
    /// Makes a script of Lua code.
    pub fn new(code: &str) -> Self {
        Self(Arc::new(redis::Script::new(code)))
    }
}

/// One call of a script.
#[derive(Clone)]
pub struct ScriptCall {
    pub script: Script,
    /// The keys that it may use: `KEYS`.
    pub keys: Vec<Vec<u8>>,
    /// The arguments: `ARGV`.
    pub args: Vec<Vec<u8>>,
}

/// A handle to the connection. Clones share it.
#[derive(Clone)]
pub struct Redis(Arc<RedisShared>);

struct RedisShared {
    link: ArcSwapOption<Link>,
    connection_lost: Notify,
    processes: AtomicU64,
    is_degraded: IntGauge,
    /// The runtime on which an undo continues after its request has ended.
    handle: Handle,
}

/// A connection that responds.
struct Link(MultiplexedConnection);

impl Redis {
    fn new(handle: Handle, is_degraded: IntGauge) -> Self {
        is_degraded.set(1);
        Self(Arc::new(RedisShared {
            link: ArcSwapOption::empty(),
            connection_lost: Notify::new(),
            processes: AtomicU64::new(1),
            is_degraded,
            handle,
        }))
    }

    /// Returns whether Redis is unavailable.
    pub fn is_unavailable(&self) -> bool {
        self.0.link.load().is_none()
    }

    /// Returns the last known number of processes that share this Redis; at least 1.
    pub fn processes(&self) -> u64 {
        self.0.processes.load(Ordering::Relaxed).max(1)
    }

    /// Returns the value of a key. Errors: [`Unavailable`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Unavailable> {
        let mut command = redis::cmd("GET");
        command.arg(key);
        self.command(command).await
    }

    /// Returns the first `max_bytes` of the value of a key; empty: the key does not exist. It waits at most `timeout`; a wait
    /// without success does not make Redis unavailable for others, because a large value takes time.
    ///
    /// Errors: [`Unavailable`].
    pub async fn get_start(
        &self,
        key: &[u8],
        max_bytes: usize,
        timeout: Duration,
    ) -> Result<Vec<u8>, Unavailable> {
        let mut command = redis::cmd("GETRANGE");
        command.arg(key).arg(0).arg(max_bytes.saturating_sub(1));
        self.command_within(command, timeout).await
    }

    /// Returns the score of a member of a sorted set; `None`: the set does not have it. It waits as [`Self::get_start`] does.
    ///
    /// Errors: [`Unavailable`].
    pub async fn score(
        &self,
        key: &[u8],
        member: &[u8],
        timeout: Duration,
    ) -> Result<Option<f64>, Unavailable> {
        let mut command = redis::cmd("ZSCORE");
        command.arg(key).arg(member);
        self.command_within(command, timeout).await
    }

    async fn command_within<T: FromRedisValue + Send + 'static>(
        &self,
        command: redis::Cmd,
        timeout: Duration,
    ) -> Result<T, Unavailable> {
        let link = self.0.link.load_full().ok_or(Unavailable)?;
        let mut connection = link.0.clone();
        let mut pending: BoxFuture<'static, RedisResult<T>> =
            Box::pin(async move { command.query_async(&mut connection).await });
        let reply = await_in_budget(timeout, &mut pending).await;
        self.check_reply(&link, reply.map_err(|_| Unavailable)?)
    }

    /// Sets the value of a key, which stays forever without a `ttl`. Errors: [`Unavailable`].
    pub async fn set(
        &self,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<(), Unavailable> {
        let mut command = redis::cmd("SET");
        command.arg(key).arg(value);
        if let Some(ttl) = ttl {
            command.arg("PX").arg(ttl.as_millis().max(1).to_string());
        }
        self.command(command).await
    }

    /// Removes a key. Errors: [`Unavailable`].
    pub async fn remove(&self, key: &[u8]) -> Result<(), Unavailable> {
        let mut command = redis::cmd("DEL");
        command.arg(key);
        self.command(command).await
    }

    /// Runs a script. Errors: [`Unavailable`]; the script may have run nevertheless.
    pub async fn eval<T: FromRedisValue + Send + 'static>(
        &self,
        call: ScriptCall,
    ) -> Result<T, Unavailable> {
        self.eval_or_undo(call, |_| None).await
    }

    /// Runs a script. If the reply comes too late, `undo` gets it and returns a call that reverts the effect.
    ///
    /// Errors: [`Unavailable`]. Then the script has not run, or `undo` will get its reply, or the connection broke and
    /// the effect is unknown.
    pub async fn eval_or_undo<T: FromRedisValue + Send + 'static>(
        &self,
        call: ScriptCall,
        undo: impl FnOnce(T) -> Option<ScriptCall> + Send + 'static,
    ) -> Result<T, Unavailable> {
        let link = self.0.link.load_full().ok_or(Unavailable)?;
        let mut pending: BoxFuture<'static, RedisResult<T>> = Box::pin(run(link.0.clone(), call));
        match await_in_budget(COMMAND_TIMEOUT, &mut pending).await {
            Ok(reply) => return self.check_reply(&link, reply),
            Err(waited) => self.mark_silent(&link, waited),
        }
        self.0.handle.spawn(async move {
            let late = tokio::time::timeout(UNDO_TIMEOUT, pending).await;
            if let Ok(Ok(reply)) = late
                && let Some(call) = undo(reply)
            {
                _ = run::<()>(link.0.clone(), call).await;
            }
        });
        Err(Unavailable)
    }

    /// Runs a script in the background, for at most `timeout`. One that takes longer does not make Redis unavailable for
    /// requests.
    ///
    /// Errors: [`Unavailable`]; the script may have run nevertheless.
    pub async fn eval_in_background<T: FromRedisValue + Send + 'static>(
        &self,
        call: ScriptCall,
        timeout: Duration,
    ) -> Result<T, Unavailable> {
        let link = self.0.link.load_full().ok_or(Unavailable)?;
        let pending = run(link.0.clone(), call);
        match tokio::time::timeout(timeout, pending).await {
            Ok(reply) => self.check_reply(&link, reply),
            Err(_) => Err(Unavailable),
        }
    }

    /// Runs a task beside the connection. It ends with the process at the latest.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.handle.spawn(task);
    }

    async fn command<T: FromRedisValue + Send + 'static>(
        &self,
        command: redis::Cmd,
    ) -> Result<T, Unavailable> {
        let link = self.0.link.load_full().ok_or(Unavailable)?;
        let mut connection = link.0.clone();
        let mut pending: BoxFuture<'static, RedisResult<T>> =
            Box::pin(async move { command.query_async(&mut connection).await });
        match await_in_budget(COMMAND_TIMEOUT, &mut pending).await {
            Ok(reply) => self.check_reply(&link, reply),
            Err(waited) => {
                self.mark_silent(&link, waited);
                Err(Unavailable)
            }
        }
    }

    /// Marks Redis as unavailable if it was silent for as long as a command is awaited. A request that had waited before
    /// knows no such thing.
    fn mark_silent(&self, link: &Arc<Link>, waited: Duration) {
        if waited >= COMMAND_TIMEOUT {
            self.mark_unavailable(link);
        }
    }

    fn check_reply<T>(&self, link: &Arc<Link>, reply: RedisResult<T>) -> Result<T, Unavailable> {
        reply.map_err(|error| {
            // Redis responded, so it is available. If it refuses all commands, the next heartbeat notices.
            if !matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) {
                self.mark_unavailable(link);
            }
            Unavailable
        })
    }

    /// Marks Redis as unavailable, unless another connection has replaced this one.
    fn mark_unavailable(&self, link: &Arc<Link>) {
        let current = self.0.link.load();
        if current
            .as_ref()
            .is_some_and(|other| Arc::ptr_eq(other, link))
        {
            let before = self.0.link.compare_and_swap(&current, None);
            if before
                .as_ref()
                .is_some_and(|other| Arc::ptr_eq(other, link))
            {
                self.0.is_degraded.set(1);
                self.0.connection_lost.notify_one();
            }
        }
    }
}

async fn run<T: FromRedisValue>(
    mut connection: MultiplexedConnection,
    call: ScriptCall,
) -> RedisResult<T> {
    let mut invocation = call.script.0.prepare_invoke();
    invocation.key(call.keys).arg(call.args);
    invocation.invoke_async(&mut connection).await
}

/// Returns the reply if it arrives in time and before the request has waited long enough for Redis. A command is sent also
/// if its reply is not awaited any more.
///
/// Errors: how long it waited without success.
async fn await_in_budget<T>(
    timeout: Duration,
    pending: &mut BoxFuture<'static, RedisResult<T>>,
) -> Result<RedisResult<T>, Duration> {
    let timeout = timeout.min(shared_wait::left());
    if timeout <= TIMER_MARGIN * WAIT_PARTS {
        return pending.now_or_never().ok_or(timeout);
    }
    let _wait = shared_wait::begin();
    await_reply(timeout, pending).await.ok_or(timeout)
}

/// Returns the reply if it arrives in time.
async fn await_reply<T>(
    timeout: Duration,
    pending: &mut BoxFuture<'static, RedisResult<T>>,
) -> Option<RedisResult<T>> {
    let part = timeout / WAIT_PARTS;
    let end = Instant::now() + timeout.saturating_sub(TIMER_MARGIN);
    let mut was_descheduled = false;
    for _ in 0..MAX_WAIT_PARTS {
        let started = Instant::now();
        let left = end.saturating_duration_since(started);
        let pause = match left.is_zero() {
            true if was_descheduled => part,
            true => break,
            false => part.min(left),
        };
        tokio::select! {
            biased;
            reply = &mut *pending => return Some(reply),
            () = tokio::time::sleep(pause) => {}
        }
        was_descheduled = started.elapsed() > 2 * part;
    }
    None
}
