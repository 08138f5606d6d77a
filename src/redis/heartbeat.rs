//! The heartbeat: connects to Redis, registers this process and counts the others.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::BoxFuture;
use prometheus::IntGauge;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{COMMAND_TIMEOUT, Link, Redis, Script, ScriptCall, Unavailable};

/// The interval between two heartbeats. Source: docs/interface.md, `shared.on_outage`.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// For how many heartbeats a silent process still counts. Source: the same.
const REMEMBERED_HEARTBEATS: usize = 5;
/// The interval between two tries to reach an unavailable Redis.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(200);
/// The time limit of one try.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The time limit for removing this process from the set at shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// The key of the processes: a sorted set by the time of their last heartbeat.
const PROCESSES: &[u8] = b"weirgate:processes";

/// Registers this process as alive and returns the number of live processes, by the clock of Redis.
const HEARTBEAT_SCRIPT: &str = "
local time = redis.call('TIME')
local now, ttl = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ttl)
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + ttl, '+inf')
redis.call('PEXPIRE', KEYS[1], ttl)
return redis.call('ZCARD', KEYS[1])";

const UNREGISTER_SCRIPT: &str = "return redis.call('ZREM', KEYS[1], ARGV[1])";

/// What keeps a connection known to work where this process may not write: it touches no key.
const PING_SCRIPT: &str = "return 1";

/// What a Redis is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Processes share limits in it, so each registers there.
    Shared,
    /// Its keys are those of the original agent. This process writes no key of its own there, because users name keys.
    Agent,
}

impl Purpose {
    /// Returns the setting that has its URL.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Shared => "shared.redis",
            Self::Agent => "decisions.agent_redis",
        }
    }

    /// Returns what happens without it.
    fn consequence(self) -> &'static str {
        match self {
            Self::Shared => "each process goes on alone",
            Self::Agent => "profiles and segments are not kept",
        }
    }
}

/// The thread of the connection.
pub struct Heartbeat {
    runtime: Runtime,
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Redis {
    /// Connects to `url` and reconnects when needed, even if Redis is unavailable now.
    ///
    /// Errors: an invalid URL, in words without the URL; no thread.
    pub fn start(
        url: &str,
        purpose: Purpose,
        is_degraded: IntGauge,
    ) -> Result<(Self, Heartbeat), String> {
        let client = Client::open(url).map_err(|error| error.category().to_owned())?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("redis")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let redis = Self::new(runtime.handle().clone(), is_degraded);
        let mut heartbeat_task = HeartbeatTask {
            redis: redis.clone(),
            client,
            process_id: uuid::Uuid::now_v7().simple().to_string(),
            script: Script::new(match purpose {
                Purpose::Shared => HEARTBEAT_SCRIPT,
                Purpose::Agent => PING_SCRIPT,
            }),
            purpose,
            counts: ProcessCounts::default(),
        };
        // Connect before the first request, which must count with the other processes.
        if let Err(reason) = runtime.block_on(heartbeat_task.connect()) {
            let (setting, consequence) = (purpose.setting(), purpose.consequence());
            log::warn!("{setting} ({reason}): {consequence}");
        }
        let (stop, stopped) = watch::channel(false);
        let task = runtime.spawn(heartbeat_task.run(stopped));
        let heartbeat = Heartbeat {
            runtime,
            task,
            stop,
        };
        Ok((redis, heartbeat))
    }
}

impl Heartbeat {
    /// Removes this process from the set, so that the others need not wait for its expiry.
    pub fn stop(self) {
        self.stop.send_replace(true);
        let ended = async { tokio::time::timeout(CLOSE_TIMEOUT, self.task).await };
        _ = self.runtime.block_on(ended);
        self.runtime.shutdown_background();
    }
}

struct HeartbeatTask {
    redis: Redis,
    client: Client,
    process_id: String,
    script: Script,
    purpose: Purpose,
    counts: ProcessCounts,
}

impl HeartbeatTask {
    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let (setting, consequence) = (self.purpose.setting(), self.purpose.consequence());
        loop {
            let pause = if self.redis.is_unavailable() {
                RECONNECT_INTERVAL
            } else {
                HEARTBEAT_INTERVAL
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.redis.0.connection_lost.notified() => {
                    log::warn!("{setting} is gone: {consequence}");
                    continue;
                }
                _ = stop.changed() => break,
            }
            if !self.redis.is_unavailable() {
                self.send_heartbeat().await;
            } else if self.connect().await.is_ok() {
                log::warn!("{setting} is back");
            }
        }
        if self.purpose == Purpose::Agent {
            return;
        }
        let unregister = ScriptCall {
            script: Script::new(UNREGISTER_SCRIPT),
            keys: vec![PROCESSES.to_vec()],
            args: vec![self.process_id.into_bytes()],
        };
        _ = self.redis.eval::<u64>(unregister).await;
    }

    /// Connects. A connection counts only after a heartbeat on it, because a Redis that refuses writes is useless.
    ///
    /// Errors: the reason, in words of the system or of Redis, which contain neither address nor password.
    async fn connect(&mut self) -> Result<(), String> {
        let timed_out = || "no answer in time".to_owned();
        let message = |error: RedisError| error.to_string();
        let link = tokio::time::timeout(CONNECT_TIMEOUT, self.open_link()).await;
        let link = link.map_err(|_| timed_out())?.map_err(message)?;
        let mut pending: BoxFuture<'static, _> =
            Box::pin(super::run(link.0.clone(), self.heartbeat_call()));
        let count = super::await_reply(COMMAND_TIMEOUT, &mut pending)
            .await
            .ok_or_else(timed_out)?;
        self.record_count(count.map_err(message)?);
        self.redis.0.link.store(Some(Arc::new(link)));
        self.redis.0.is_degraded.set(0);
        Ok(())
    }

    async fn open_link(&self) -> RedisResult<Link> {
        // Callers have their own timeout, and a late reply is still needed for the undo.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(None);
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        connection.await.map(Link)
    }

    async fn send_heartbeat(&mut self) {
        let link = self.redis.0.link.load_full();
        match self.redis.eval(self.heartbeat_call()).await {
            Ok(count) => self.record_count(count),
            Err(Unavailable) => {
                // A Redis that responds but refuses writes is unavailable too.
                if let Some(link) = link {
                    self.redis.mark_unavailable(&link);
                }
            }
        }
    }

    fn heartbeat_call(&self) -> ScriptCall {
        let ttl = HEARTBEAT_INTERVAL * u32::try_from(REMEMBERED_HEARTBEATS).unwrap_or(u32::MAX);
        ScriptCall {
            script: self.script.clone(),
            keys: match self.purpose {
                Purpose::Shared => vec![PROCESSES.to_vec()],
                Purpose::Agent => Vec::new(),
            },
            args: [self.process_id.clone(), ttl.as_millis().to_string()]
                .map(String::into_bytes)
                .into(),
        }
    }

    fn record_count(&mut self, count: u64) {
        let processes = self.counts.add(count);
        self.redis.0.processes.store(processes, Ordering::Relaxed);
    }
}

/// The counts of the last heartbeats.
///
/// A Redis that comes back empty first knows one process, and the others within a second. If it fails again before that,
/// each process would take itself for the only one. So the highest recent count is used.
#[derive(Default)]
struct ProcessCounts {
    counts: [u64; REMEMBERED_HEARTBEATS],
    next_index: usize,
}

impl ProcessCounts {
    fn add(&mut self, count: u64) -> u64 {
        if let Some(slot) = self.counts.get_mut(self.next_index) {
            *slot = count;
        }
        self.next_index = (self.next_index + 1) % REMEMBERED_HEARTBEATS;
        self.counts.iter().copied().max().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_for_five_beats_after_it_was_last_heard() {
        let mut counts = ProcessCounts::default();
        assert_eq!(counts.add(3), 3);
        assert_eq!([1, 1, 1, 1].map(|count| counts.add(count)), [3, 3, 3, 3]);
        assert_eq!(counts.add(1), 1);
    }
}
