//! What processes share: one connection to Redis, and the word on whether it answers.
//!
//! A request waits for Redis [`COMMAND_TIMEOUT`] at most; then Redis counts as gone for the whole process, so that no other
//! request waits in vain, until the [`heart`] has reached it again. Who asks is told [`Unavailable`] and does what is right
//! without Redis; nothing is kept back here and sent later.
//!
//! The connection lives on a thread of its own: what the other organs do must not look like silence.

mod heartbeat;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures::future::BoxFuture;
use prometheus::IntGauge;
use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, FromRedisValue, RedisResult};
use tokio::runtime::Handle;
use tokio::sync::Notify;

pub use self::heartbeat::{Heartbeat, PROCESSES};

/// How long one request waits. Source: docs/interface.md, `shared.redis`.
pub const COMMAND_TIMEOUT: Duration = Duration::from_millis(50);
/// Parts in which it is waited. A process that was not scheduled for a while finds timer and answer both due when it
/// wakes up; only one part is lost to that, and the connection's task has the others to read the answer.
const PARTS: u32 = 4;
/// What a timer takes longer than it is told.
const TIMER: Duration = Duration::from_millis(1);
/// How long an answer is waited for that nobody needs any more, to undo what it did.
const UNDO_TIMEOUT: Duration = Duration::from_secs(10);

/// Redis does not answer, or refuses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unavailable;

/// A script that Redis runs as one step; sent whole only where Redis does not know it yet.
#[derive(Clone)]
pub struct Script(Arc<redis::Script>);

impl Script {
    /// A script in Lua.
    pub fn new(code: &str) -> Self {
        Self(Arc::new(redis::Script::new(code)))
    }
}

/// One call of a script.
#[derive(Clone)]
pub struct ScriptCall {
    /// What is run.
    pub script: Script,
    /// What it may touch: `KEYS`.
    pub keys: Vec<Vec<u8>>,
    /// `ARGV`.
    pub args: Vec<String>,
}

/// A handle to the connection; see the module.
#[derive(Clone)]
pub struct Redis(Arc<RedisShared>);

struct RedisShared {
    link: ArcSwapOption<Link>,
    lost: Notify,
    processes: AtomicU64,
    is_degraded: IntGauge,
    /// Where undoing goes on after its request has ended.
    handle: Handle,
}

/// A connection as long as it answers.
struct Link(MultiplexedConnection);

impl Redis {
    fn new(handle: Handle, is_degraded: IntGauge) -> Self {
        is_degraded.set(1);
        Self(Arc::new(RedisShared {
            link: ArcSwapOption::empty(),
            lost: Notify::new(),
            processes: AtomicU64::new(1),
            is_degraded,
            handle,
        }))
    }

    /// Whether Redis counts as gone.
    pub fn is_gone(&self) -> bool {
        self.0.link.load().is_none()
    }

    /// How many processes share this Redis, as last seen; at least 1.
    pub fn processes(&self) -> u64 {
        self.0.processes.load(Ordering::Relaxed).max(1)
    }

    /// Takes note of how many processes a script saw: one that has just come is heard of before the next beat.
    pub fn record_processes(&self, processes: u64) {
        self.0.processes.fetch_max(processes, Ordering::Relaxed);
    }

    /// The value of a key. Errors: [`Unavailable`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Unavailable> {
        let mut command = redis::cmd("GET");
        command.arg(key);
        self.command(command).await
    }

    /// Gives a key a value; without a `ttl` it stays. Errors: [`Unavailable`].
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

    /// Runs a script. Errors: [`Unavailable`]; it may have run nevertheless.
    pub async fn eval<T: FromRedisValue + Send + 'static>(
        &self,
        call: ScriptCall,
    ) -> Result<T, Unavailable> {
        self.eval_or_undo(call, |_| None).await
    }

    /// Runs a script. Where its answer comes too late to count, `undo` is told and says what puts it right.
    ///
    /// Errors: [`Unavailable`]; then it has not run, or `undo` will be called with its answer, or the connection broke and
    /// nobody can know.
    pub async fn eval_or_undo<T: FromRedisValue + Send + 'static>(
        &self,
        call: ScriptCall,
        undo: impl FnOnce(T) -> Option<ScriptCall> + Send + 'static,
    ) -> Result<T, Unavailable> {
        let link = self.0.link.load_full().ok_or(Unavailable)?;
        let mut asked: BoxFuture<'static, RedisResult<T>> = Box::pin(run(link.0.clone(), call));
        if let Some(answer) = within(COMMAND_TIMEOUT, &mut asked).await {
            return self.heard(&link, answer);
        }
        self.lose(&link);
        self.0.handle.spawn(async move {
            let late = tokio::time::timeout(UNDO_TIMEOUT, asked).await;
            if let Ok(Ok(answer)) = late
                && let Some(call) = undo(answer)
            {
                _ = run::<()>(link.0.clone(), call).await;
            }
        });
        Err(Unavailable)
    }

    async fn command<T: FromRedisValue + Send + 'static>(
        &self,
        command: redis::Cmd,
    ) -> Result<T, Unavailable> {
        let link = self.0.link.load_full().ok_or(Unavailable)?;
        let mut connection = link.0.clone();
        let mut asked: BoxFuture<'static, RedisResult<T>> =
            Box::pin(async move { command.query_async(&mut connection).await });
        match within(COMMAND_TIMEOUT, &mut asked).await {
            Some(answer) => self.heard(&link, answer),
            None => {
                self.lose(&link);
                Err(Unavailable)
            }
        }
    }

    fn heard<T>(&self, link: &Arc<Link>, answer: RedisResult<T>) -> Result<T, Unavailable> {
        answer.map_err(|error| {
            // A refusal of one command is an answer: whether it is one of all, the next beat finds out.
            if !matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) {
                self.lose(link);
            }
            Unavailable
        })
    }

    /// Redis is gone, as far as this connection can tell: another one may have taken its place already.
    fn lose(&self, link: &Arc<Link>) {
        let current = self.0.link.load();
        if current.as_ref().is_some_and(|it| Arc::ptr_eq(it, link)) {
            let before = self.0.link.compare_and_swap(&current, None);
            if before.as_ref().is_some_and(|it| Arc::ptr_eq(it, link)) {
                self.0.is_degraded.set(1);
                self.0.lost.notify_one();
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

/// What came in time.
async fn within<T>(
    patience: Duration,
    asked: &mut BoxFuture<'static, RedisResult<T>>,
) -> Option<RedisResult<T>> {
    let part = (patience / PARTS).saturating_sub(TIMER);
    for _ in 0..PARTS {
        tokio::select! {
            biased;
            answer = &mut *asked => return Some(answer),
            () = tokio::time::sleep(part) => {}
        }
    }
    None
}
