//! What a window makes of its measurements and of those of other processes, for its readers.

use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;

use super::{Learned, NEVER, Window, forgiven};
use crate::models::routing::health::histogram::Histogram;

/// The shortest and the longest patience with silence: three times what 19 of 20 replies took.
const PATIENCE_MS: [u64; 2] = [5_000, 120_000];

impl Window {
    /// Publishes the shares of tokens.
    pub(super) fn publish_shares(&self, learned: &Learned, now_ms: u64) {
        let [cached, written, output_ratio] = &self.shares;
        let shares = match &learned.others {
            Some(others) => others.all_tokens(&learned.tokens, now_ms).shares(),
            None => learned.tokens.shares(),
        };
        match shares {
            Some(shares) => {
                written.store(shares.written);
                output_ratio.store(shares.output_ratio);
                cached.store(shares.cached);
            }
            // What others have told counts no longer than they say so.
            None if learned.others.is_some() => cached.store(f32::NAN),
            None => {}
        }
    }

    /// Publishes the patience with a kind of replies, and of streams the latency.
    pub(super) fn publish_times(&self, learned: &Learned, is_stream: bool) {
        let others = learned.others.as_deref();
        let [whole, stream] = &self.lanes;
        let (own, others, lane) = match is_stream {
            true => (&learned.latency_ms, others.map(|it| &it.latency_ms), stream),
            false => (
                &learned.duration_ms,
                others.map(|it| &it.duration_ms),
                whole,
            ),
        };
        let all = joined(own, others);
        let (Some(median), Some(slow_ms)) = (all.quantile(0.5), all.quantile(0.95)) else {
            if is_stream {
                self.latency_until_ms.store(0, Relaxed);
            }
            return;
        };
        let [least, most] = PATIENCE_MS;
        let patience_ms = (3.0 * slow_ms) as u64;
        lane.patience_ms
            .store(patience_ms.clamp(least, most), Relaxed);
        if is_stream {
            self.latency_ms.store(median);
            self.latency_until_ms.store(all.known_until_ms(), Relaxed);
        }
    }

    /// Publishes the throughput.
    pub(super) fn publish_throughput(&self, learned: &Learned) {
        let others = learned.others.as_deref();
        let all = joined(&learned.throughput, others.map(|it| &it.throughput));
        let median = all.quantile(0.5);
        self.throughput.store(median.unwrap_or_default());
        let until_ms = median.map_or(0, |_| all.known_until_ms());
        self.throughput_until_ms.store(until_ms, Relaxed);
    }

    /// Publishes the attempts: those of this process, and those that others have told, as far as they still count when
    /// the last of all was made.
    pub(super) fn publish_counts(&self, learned: &Learned) {
        let own_ms = learned.own_counted_ms();
        let own = (learned.answered, learned.failed);
        let others = learned.others.as_deref();
        let counted = |(answered, failed): (f32, f32), at_ms: Option<u64>, last_ms: u64| {
            let kept = at_ms.map_or(0.0, |at_ms| forgiven(last_ms.saturating_sub(at_ms)));
            (answered * kept, failed * kept)
        };
        let others_ms = others.and_then(|it| it.counted_ms);
        let Some(last_ms) = own_ms.max(others_ms) else {
            self.counted_ms.store(NEVER, Relaxed);
            return;
        };
        let own = counted(own, own_ms, last_ms);
        let others = others.map_or((0.0, 0.0), |it| (it.answered, it.failed));
        let others = counted(others, others_ms, last_ms);
        self.answered.store(own.0 + others.0);
        self.failed.store(own.1 + others.1);
        self.counted_ms.store(last_ms, Relaxed);
    }
}

/// Returns the values of this process and of others.
fn joined<'h>(own: &'h Histogram, others: Option<&Histogram>) -> Cow<'h, Histogram> {
    match others {
        Some(others) => Cow::Owned(own.joined(others)),
        None => Cow::Borrowed(own),
    }
}
