//! Limits that providers report. A key without a remainder rests, so that its requests are not refused.

use filters::models::wires::rate_limit::{early_rest_ms, refused_rest_ms};
use filters::models::wires::{Failure, FailureKind};
use pingora::http::ResponseHeader;

use super::attempt::Attempt;
use super::call::Call;
use crate::models::Models;
use crate::proxy::context::RequestInfo;

/// The rest of a throttled key whose provider does not state one.
const THROTTLED_MS: u64 = 10_000;
/// The statuses whose `retry-after` is about a limit or an overload.
const TOLD_STATUSES: [u16; 3] = [429, 503, 529];

impl Attempt {
    /// Reads the limits of the key from the head of a reply, and lets the key rest if necessary.
    pub(super) fn read_limits(
        &self,
        call: &Call,
        models: &Models,
        info: &RequestInfo,
        head: &ResponseHeader,
    ) {
        let Some(deployment) = self.deployment(call) else {
            return;
        };
        let (limits, unix_ms) = (deployment.wire.rate_limits, info.unix_ms());
        let rest_ms = match head.status.as_u16() {
            status if TOLD_STATUSES.contains(&status) => {
                refused_rest_ms(&head.headers, limits, unix_ms)
            }
            _ => early_rest_ms(&head.headers, limits, unix_ms),
        };
        if let Some(rest_ms) = rest_ms {
            let now_ms = models.clock.ms_at(info.now);
            self.rest(call, models, now_ms, now_ms + rest_ms);
        }
    }

    /// Lets the key of a refused attempt rest if the head has not done so: as long as the body says, or for a while
    /// if the key was throttled. A limit is not a failure of the provider.
    pub(super) fn rest_refused(
        &self,
        call: &Call,
        models: &Models,
        failure: &Failure,
        now_ms: u64,
    ) {
        let FailureKind::Status(status) = failure.kind else {
            return;
        };
        let told_ms = failure.retry_after_ms.map(u64::from);
        let told_ms = told_ms.filter(|_| TOLD_STATUSES.contains(&status));
        let rest_ms = told_ms.or((status == 429).then_some(THROTTLED_MS));
        let Some((deployment, key)) = self.deployment(call).zip(self.credential(call)) else {
            return;
        };
        if let Some(rest_ms) = rest_ms
            && !key.rests(deployment.id, now_ms)
        {
            self.rest(call, models, now_ms, now_ms + rest_ms);
        }
    }

    /// Lets the key rest, and also the candidate if none of its platform keys is left.
    fn rest(&self, call: &Call, models: &Models, now_ms: u64, until_ms: u64) {
        let Some((attempt, key)) = self.planned(call).zip(self.credential(call)) else {
            return;
        };
        let deployment = &attempt.deployment;
        key.rest(deployment.id, until_ms);
        // The keys of one caller do not affect others.
        if attempt.is_byok() {
            return;
        }
        if let Some(until_ms) = attempt.keys.rest_until_ms(deployment.id, now_ms) {
            models.planner.rest(deployment.index, until_ms);
        }
    }
}
