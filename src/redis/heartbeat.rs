//! The heart: connects, tells the other processes that this one lives, and hears how many there are.

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

/// Between two beats. Source: docs/interface.md, `shared.on_outage`.
const BEAT: Duration = Duration::from_secs(1);
/// For how many beats a process counts that is not heard any more. Source: the same.
const BEATS_REMEMBERED: usize = 5;
/// Between two tries to reach a Redis that is gone.
const RETRY: Duration = Duration::from_millis(200);
/// How long one try may take.
const CONNECT: Duration = Duration::from_secs(1);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_millis(200);

/// The key under which processes are kept: a sorted set by the moment of their last beat.
pub const PROCESSES: &[u8] = b"weirgate:processes";

/// Counts this process as alive and answers how many are, by the clock of Redis.
const ALIVE: &str = "
local time = redis.call('TIME')
local now, ttl = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ttl)
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + ttl, '+inf')
redis.call('PEXPIRE', KEYS[1], ttl)
return redis.call('ZCARD', KEYS[1])";

const GONE_FOR_GOOD: &str = "return redis.call('ZREM', KEYS[1], ARGV[1])";

/// The thread of the connection.
pub struct Heartbeat {
    runtime: Runtime,
    beating: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Redis {
    /// Connects to `url` and stays connected. One that cannot be reached now is looked for on and on.
    ///
    /// Errors: a URL that is none, in words without the URL; no thread.
    pub fn start(url: &str, is_degraded: IntGauge) -> Result<(Self, Heartbeat), String> {
        let client = Client::open(url).map_err(|error| error.category().to_owned())?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("redis")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let redis = Self::new(runtime.handle().clone(), is_degraded);
        let mut life = Life {
            redis: redis.clone(),
            client,
            me: uuid::Uuid::now_v7().simple().to_string(),
            alive: Script::new(ALIVE),
            seen: Seen::default(),
        };
        // The first requests are to be counted with the other processes' already.
        if let Err(why) = runtime.block_on(life.connect()) {
            log::warn!("shared.redis ({why}): each process goes on alone");
        }
        let (stop, stopped) = watch::channel(false);
        let beating = runtime.spawn(life.run(stopped));
        let heart = Heartbeat {
            runtime,
            beating,
            stop,
        };
        Ok((redis, heart))
    }
}

impl Heartbeat {
    /// Says goodbye, so that the others need not wait until this process is forgotten.
    pub fn stop(self) {
        self.stop.send_replace(true);
        let ended = async { tokio::time::timeout(GOODBYE, self.beating).await };
        _ = self.runtime.block_on(ended);
        self.runtime.shutdown_background();
    }
}

struct Life {
    redis: Redis,
    client: Client,
    me: String,
    alive: Script,
    seen: Seen,
}

impl Life {
    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let pause = if self.redis.is_gone() { RETRY } else { BEAT };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.redis.0.lost.notified() => {
                    log::warn!("shared.redis is gone: each process goes on alone");
                    continue;
                }
                _ = stop.changed() => break,
            }
            if !self.redis.is_gone() {
                self.beat().await;
            } else if self.connect().await.is_ok() {
                log::warn!("shared.redis is back");
            }
        }
        let goodbye = ScriptCall {
            script: Script::new(GONE_FOR_GOOD),
            keys: vec![PROCESSES.to_vec()],
            args: vec![self.me],
        };
        _ = self.redis.eval::<u64>(goodbye).await;
    }

    /// A connection counts once a beat has been heard on it: one that refuses to write is of no use.
    ///
    /// Errors: why, in the words of the system or of Redis, which hold neither address nor password.
    async fn connect(&mut self) -> Result<(), String> {
        let silent = || "no answer in time".to_owned();
        let said = |error: RedisError| error.to_string();
        let link = tokio::time::timeout(CONNECT, self.open()).await;
        let link = link.map_err(|_| silent())?.map_err(said)?;
        let mut beat: BoxFuture<'static, _> = Box::pin(super::run(link.0.clone(), self.alive()));
        let count = super::within(COMMAND_TIMEOUT, &mut beat)
            .await
            .ok_or_else(silent)?;
        self.hear(count.map_err(said)?);
        self.redis.0.link.store(Some(Arc::new(link)));
        self.redis.0.is_degraded.set(0);
        Ok(())
    }

    async fn open(&self) -> RedisResult<Link> {
        // Who asks keeps time; an answer that comes too late is still of interest.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(None);
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        connection.await.map(Link)
    }

    async fn beat(&mut self) {
        let link = self.redis.0.link.load_full();
        match self.redis.eval(self.alive()).await {
            Ok(count) => self.hear(count),
            Err(Unavailable) => {
                // Also a Redis that answers, but does not take what is written, is of no use.
                if let Some(link) = link {
                    self.redis.lose(&link);
                }
            }
        }
    }

    fn alive(&self) -> ScriptCall {
        let ttl = BEAT * u32::try_from(BEATS_REMEMBERED).unwrap_or(u32::MAX);
        ScriptCall {
            script: self.alive.clone(),
            keys: vec![PROCESSES.to_vec()],
            args: vec![self.me.clone(), ttl.as_millis().to_string()],
        }
    }

    fn hear(&mut self, count: u64) {
        let processes = self.seen.add(count);
        self.redis.0.processes.store(processes, Ordering::Relaxed);
    }
}

/// What the last beats heard.
///
/// A Redis that comes back empty has heard of one process first and of the others within a second. If it went again
/// meanwhile, each would take itself for the only one; so the highest of the last beats counts.
#[derive(Default)]
struct Seen {
    counts: [u64; BEATS_REMEMBERED],
    next: usize,
}

impl Seen {
    fn add(&mut self, count: u64) -> u64 {
        if let Some(place) = self.counts.get_mut(self.next) {
            *place = count;
        }
        self.next = (self.next + 1) % BEATS_REMEMBERED;
        self.counts.iter().copied().max().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_for_five_beats_after_it_was_last_heard() {
        let mut seen = Seen::default();
        assert_eq!(seen.add(3), 3);
        assert_eq!([1, 1, 1, 1].map(|count| seen.add(count)), [3, 3, 3, 3]);
        assert_eq!(seen.add(1), 1);
    }
}
