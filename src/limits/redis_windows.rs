//! Windows in Redis: each call is one atomic step, by the clock of Redis.

use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::limits::{Algorithm, RefundToken, Verdict, WindowKey, outage_share};

use crate::config::OnOutage;
use crate::redis::{Redis, Script, ScriptCall, Unavailable};

/// The reply of a script: whether the request was counted, how many are counted, the milliseconds until more is
/// available, and the time for a token.
type ScriptReply = (u64, u64, u64, u64);

/// The windows of one length.
pub(super) struct RedisWindows {
    redis: Redis,
    on_outage: OnOutage,
    /// The prefix of all keys. Windows of another length or algorithm have another prefix.
    prefix: String,
    length_ms: u64,
    admit: Script,
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
        let (algorithm_name, admit, refund) = match algorithm {
            Algorithm::Fixed => (
                "fixed",
                include_str!("lua/admit_fixed.lua"),
                include_str!("lua/refund_fixed.lua"),
            ),
            Algorithm::Sliding => (
                "sliding",
                include_str!("lua/admit_sliding.lua"),
                include_str!("lua/refund_sliding.lua"),
            ),
        };
        Self {
            redis,
            on_outage,
            prefix: format!("weirgate:{algorithm_name}:{length_ms}:"),
            length_ms,
            admit: Script::new(admit),
            refund: Script::new(refund),
        }
    }

    /// Counts one request if its limit allows it, over all processes.
    pub(super) async fn admit(&self, key: &WindowKey, limit: u64) -> Result<Verdict, Unavailable> {
        let name = self.window_name(key);
        let call = ScriptCall {
            script: self.admit.clone(),
            keys: vec![name.clone()],
            args: vec![limit.to_string(), self.length_ms.to_string()],
        };
        // A caller that stops waiting counts elsewhere, so a late count here must be undone.
        let (refund, length_ms) = (self.refund.clone(), self.length_ms);
        let undo = move |(is_admitted, _, _, at_ms): ScriptReply| {
            (is_admitted == 1).then(|| refund_call(&refund, name, at_ms, length_ms))
        };
        let reply: ScriptReply = self.redis.eval_or_undo(call, undo).await?;
        let (is_admitted, count, reset_ms, at_ms) = reply;
        Ok(Verdict {
            is_allowed: is_admitted == 1,
            limit,
            remaining: limit.saturating_sub(count),
            reset_ms,
            refund_token: RefundToken::from_shared_ms(at_ms),
        })
    }

    /// Returns a unit that was counted at this time. Returns whether it did, which fails while Redis is unavailable.
    pub(super) async fn refund(&self, key: &WindowKey, at_ms: u64) -> bool {
        let call = refund_call(&self.refund, self.window_name(key), at_ms, self.length_ms);
        self.redis.eval::<u64>(call).await == Ok(1)
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

fn refund_call(script: &Script, name: Vec<u8>, at_ms: u64, length_ms: u64) -> ScriptCall {
    ScriptCall {
        script: script.clone(),
        keys: vec![name],
        args: vec![at_ms.to_string(), length_ms.to_string()],
    }
}
