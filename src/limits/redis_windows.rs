//! Windows in Redis: each call is one atomic step, by the clock of Redis.

use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::limits::{
    Algorithm, Leftover, SharedCount, WindowKey, lease_ms, lease_parts, outage_share,
};

use crate::config::OnOutage;
use crate::redis::{Redis, Script, ScriptCall, Unavailable};

/// The reply of a script: how many units were counted, how many are counted in all, the milliseconds until more is
/// available, and the time for a token.
type ScriptReply = (u64, u64, u64, u64);

/// The windows of one length.
pub(super) struct RedisWindows {
    redis: Redis,
    on_outage: OnOutage,
    /// The prefix of all keys. Windows of another length or algorithm have another prefix.
    prefix: String,
    length_ms: u64,
    take: Script,
    refund: Script,
}

impl RedisWindows {
    pub(super) fn new(
        redis: Redis,
        on_outage: OnOutage,
        algorithm: Algorithm,
        window: Duration,
    ) -> Self {
        let length_ms = super::counters::to_ms(window).max(1);
        let (algorithm_name, take, refund) = match algorithm {
            Algorithm::Fixed => (
                "fixed",
                include_str!("lua/take_fixed.lua"),
                include_str!("lua/refund_fixed.lua"),
            ),
            Algorithm::Sliding => (
                "sliding",
                include_str!("lua/take_sliding.lua"),
                include_str!("lua/refund_sliding.lua"),
            ),
        };
        Self {
            redis,
            on_outage,
            prefix: format!("weirgate:{algorithm_name}:{length_ms}:"),
            length_ms,
            take: Script::new(take),
            refund: Script::new(refund),
        }
    }

    /// Counts up to `wanted` units if the limit allows it, over all processes: at least one if there is one, and several
    /// only within this process's part of the rest.
    pub(super) async fn take(
        &self,
        key: &WindowKey,
        limit: u64,
        wanted: u64,
    ) -> Result<SharedCount, Unavailable> {
        let name = self.window_name(key);
        let parts = lease_parts(self.redis.processes());
        let args = [
            limit,
            self.length_ms,
            wanted,
            parts,
            lease_ms(self.length_ms),
        ];
        let call = ScriptCall {
            script: self.take.clone(),
            keys: vec![name.clone()],
            args: args.map(|number| number.to_string().into_bytes()).into(),
        };
        // A caller that stops waiting counts elsewhere, so a late count here must be undone.
        let (refund, length_ms) = (self.refund.clone(), self.length_ms);
        let undo = move |(units, _, _, at_ms): ScriptReply| {
            (units > 0).then(|| refund_call(&refund, name, Leftover { units, at_ms }, length_ms))
        };
        let (units, count, reset_ms, at_ms) = self.redis.eval_or_undo(call, undo).await?;
        Ok(SharedCount {
            units,
            count,
            reset_ms,
            at_ms,
        })
    }

    /// Returns units to the window that counted them. Returns how many it took, which are none while Redis is
    /// unavailable.
    pub(super) async fn refund(&self, key: &WindowKey, leftover: Leftover) -> u64 {
        let name = self.window_name(key);
        let call = refund_call(&self.refund, name, leftover, self.length_ms);
        self.redis.eval(call).await.unwrap_or(0)
    }

    /// Returns the limit of this process while Redis is unavailable.
    ///
    /// Errors: 503. Source: docs/interface.md, `shared.on_outage`.
    pub(super) fn outage_limit(&self, limit: u64) -> Result<u64, Fault> {
        match self.on_outage {
            OnOutage::Open => Ok(limit),
            OnOutage::Local => Ok(outage_share(limit, self.redis.processes())),
            OnOutage::Closed => {
                let message = "limits cannot be checked right now: try again in a second";
                Err(Fault::new(FaultKind::Unavailable, message)
                    .with_retry_after_s(1)
                    .with_detail("shared.redis does not answer"))
            }
        }
    }

    /// Runs a task that goes on when its request ends.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.redis.spawn(task);
    }

    /// Returns the name of a window in Redis. Its hash tag is the whole key, so that a Redis Cluster spreads windows, and
    /// holds what belongs to one window together.
    fn window_name(&self, key: &WindowKey) -> Vec<u8> {
        let mut name = Vec::with_capacity(self.prefix.len() + 64);
        name.extend_from_slice(self.prefix.as_bytes());
        name.push(b'{');
        key.write_name(&mut name);
        name.push(b'}');
        name
    }
}

fn refund_call(script: &Script, name: Vec<u8>, leftover: Leftover, length_ms: u64) -> ScriptCall {
    let args = [leftover.at_ms, length_ms, leftover.units];
    ScriptCall {
        script: script.clone(),
        keys: vec![name],
        args: args.map(|number| number.to_string().into_bytes()).into(),
    }
}
