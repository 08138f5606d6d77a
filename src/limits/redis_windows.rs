//! Windows that processes share: each question is one step in Redis, by the clock of Redis.

use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::limits::{Algorithm, RefundToken, Verdict, WindowKey, outage_share};

use crate::config::OnOutage;
use crate::redis::{PROCESSES, Redis, Script, ScriptCall, Unavailable};

/// What a script answers: whether the request was counted, how many are, milliseconds until there is more room, the
/// moment for a ticket, how many processes there are.
type ScriptReply = (u64, u64, u64, u64, u64);

/// The windows of one length.
pub(super) struct RedisWindows {
    redis: Redis,
    on_outage: OnOutage,
    /// What the names of windows begin with: two lengths or two ways of counting have windows apart.
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
        let length_ms = super::counters::milliseconds(window).max(1);
        let (word, admit, refund) = match algorithm {
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
            prefix: format!("weirgate:{word}:{length_ms}:"),
            length_ms,
            admit: Script::new(admit),
            refund: Script::new(refund),
        }
    }

    /// Counts one request if its limit has room for it, over all processes.
    pub(super) async fn admit(&self, key: &WindowKey, limit: u64) -> Result<Verdict, Unavailable> {
        let name = self.name(key);
        let call = ScriptCall {
            script: self.admit.clone(),
            keys: vec![name.clone(), PROCESSES.to_vec()],
            args: vec![limit.to_string(), self.length_ms.to_string()],
        };
        // Who waits no longer asks elsewhere: what was counted here meanwhile must not count twice.
        let (refund, length_ms) = (self.refund.clone(), self.length_ms);
        let undo = move |(is_admitted, _, _, at_ms, _): ScriptReply| {
            (is_admitted == 1).then(|| refund_of(&refund, name, at_ms, length_ms))
        };
        let answer: ScriptReply = self.redis.eval_or_undo(call, undo).await?;
        let (is_admitted, count, reset_ms, at_ms, processes) = answer;
        self.redis.saw(processes);
        Ok(Verdict {
            is_allowed: is_admitted == 1,
            limit,
            remaining: limit.saturating_sub(count),
            reset_ms,
            ticket: RefundToken::shared(at_ms),
        })
    }

    /// Gives back what was counted at a moment, and answers whether it did. While Redis is gone nothing is.
    pub(super) async fn refund(&self, key: &WindowKey, at_ms: u64) -> bool {
        let call = refund_of(&self.refund, self.name(key), at_ms, self.length_ms);
        self.redis.eval::<u64>(call).await == Ok(1)
    }

    /// The limit that this process holds requests to while Redis is gone.
    ///
    /// Errors: 503. Source: docs/interface.md, `shared.on_outage`.
    pub(super) fn alone(&self, limit: u64) -> Result<u64, Fault> {
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

    fn name(&self, key: &WindowKey) -> Vec<u8> {
        let mut name = Vec::with_capacity(self.prefix.len() + 64);
        name.extend_from_slice(self.prefix.as_bytes());
        key.write(&mut name);
        name
    }
}

fn refund_of(script: &Script, name: Vec<u8>, at_ms: u64, length_ms: u64) -> ScriptCall {
    ScriptCall {
        script: script.clone(),
        keys: vec![name],
        args: vec![at_ms.to_string(), length_ms.to_string()],
    }
}
