//! The windows that are nearest to their limits, for people who look. Looking counts no request and begins no window.

use std::sync::Arc;

use filters::limits::{NearestWindows, RefusedCount, RowId, WindowKey, WindowUse};
use futures::future::join_all;

use super::counters::WindowCounters;
use super::shared_windows::SharedWindows;

/// The maximum number of windows in each list.
pub const MAX_WINDOWS: usize = 50;

/// The windows that are nearest to their limits, and those that refused most.
#[derive(Clone, Debug, Default)]
pub struct NearLimits {
    /// The fullest first, at most [`MAX_WINDOWS`].
    pub near: Vec<NearWindow>,
    /// Those that refused most since the start of the process first, at most [`MAX_WINDOWS`].
    pub refused: Vec<NearWindow>,
    /// Whether the windows are in Redis. Then `near` are windows that this process has asked for lately.
    pub is_shared: bool,
    /// How many windows were compared, of how many.
    pub compared: usize,
    pub count: usize,
    /// The refused requests of all windows since the start of the process.
    pub refused_in_all: u64,
    /// How many windows with refused requests are not known any more, because others refused later.
    pub dropped_windows: u64,
}

/// A window and its limit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NearWindow {
    /// The tenant, the organization or the address.
    pub subject: String,
    /// The operation or the group of endpoints.
    pub name: String,
    /// `None`: there is no limit any more.
    pub limit: Option<u64>,
    /// `None`: Redis has not answered.
    pub usage: Option<LimitUsage>,
    pub refused: RefusedCount,
}

/// How much of a limit is used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LimitUsage {
    pub used: u64,
    /// The time until more requests are available.
    pub reset_ms: u64,
}

impl WindowCounters {
    /// Returns the windows that are nearest to their limits. `limit` returns the limit of a window, `name` the name of a kind
    /// of requests; what has none is left out.
    ///
    /// Cost: every lock of the table, one at a time, on a thread for blocking work; for shared windows [`MAX_WINDOWS`] calls
    /// to Redis.
    pub async fn near_limits(
        &self,
        limit: impl Fn(&WindowKey) -> Option<u64> + Clone + Send + Sync + 'static,
        name: impl Fn(RowId) -> Option<String> + Send,
    ) -> NearLimits {
        let now_ms = self.now_ms();
        let most_refused = self.refusals.most(MAX_WINDOWS, now_ms);
        let mut found = NearLimits {
            is_shared: self.shared.is_some(),
            refused_in_all: self.refusals.all(),
            dropped_windows: self.refusals.dropped_windows(),
            ..NearLimits::default()
        };
        let windows: Vec<(WindowKey, u64, Option<LimitUsage>)> = match &self.shared {
            None => {
                let nearest = self.nearest(limit.clone(), now_ms).await;
                (found.compared, found.count) = (nearest.compared, nearest.count);
                let windows = nearest.windows.into_iter();
                windows.map(into_parts).collect()
            }
            Some(shared) => {
                let refused = most_refused.iter().map(|(key, _)| key.clone());
                let windows = nearest_shared(shared, refused, &limit).await;
                (found.compared, found.count) = (windows.len(), windows.len());
                windows
            }
        };
        let describe = |key: &WindowKey, limit, usage, refused| {
            Some(NearWindow {
                subject: key.subject.to_string(),
                name: name(key.row)?,
                limit,
                usage,
                refused,
            })
        };
        let near = windows.into_iter().filter_map(|(key, limit, usage)| {
            let refused = self.refusals.count(&key, now_ms);
            describe(&key, Some(limit), usage, refused)
        });
        found.near = near.collect();
        let refused = most_refused.into_iter();
        let refused = refused.filter_map(|(key, count)| describe(&key, limit(&key), None, count));
        found.refused = refused.collect();
        found
    }

    async fn nearest(
        &self,
        limit: impl Fn(&WindowKey) -> Option<u64> + Send + 'static,
        now_ms: u64,
    ) -> NearestWindows {
        let windows = Arc::clone(&self.windows);
        let found =
            tokio::task::spawn_blocking(move || windows.nearest(now_ms, MAX_WINDOWS, limit));
        // The panic of a task is already logged.
        found.await.unwrap_or_default()
    }
}

fn into_parts(window: WindowUse) -> (WindowKey, u64, Option<LimitUsage>) {
    let usage = LimitUsage {
        used: window.used,
        reset_ms: window.reset_ms,
    };
    (window.key, window.limit, Some(usage))
}

/// Returns the windows in Redis that this process has asked for lately, the fullest first.
async fn nearest_shared(
    shared: &SharedWindows,
    refused: impl Iterator<Item = WindowKey>,
    limit: &impl Fn(&WindowKey) -> Option<u64>,
) -> Vec<(WindowKey, u64, Option<LimitUsage>)> {
    let mut keys = shared.busiest(MAX_WINDOWS);
    for key in refused {
        if keys.len() < MAX_WINDOWS && !keys.contains(&key) {
            keys.push(key);
        }
    }
    let limited = keys.into_iter().filter_map(|key| {
        let limit = limit(&key)?;
        Some((key, limit))
    });
    let calls: Vec<_> = limited
        .map(|(key, limit)| async move {
            let usage = shared.usage(&key).await.ok();
            let usage = usage.map(|count| LimitUsage {
                used: count.count,
                reset_ms: count.reset_ms,
            });
            (key, limit, usage)
        })
        .collect();
    let mut found = join_all(calls).await;
    found.sort_by(|one, other| share(other).total_cmp(&share(one)));
    found
}

/// Returns the used part of a limit, or a negative number if it is not known.
fn share((_, limit, usage): &(WindowKey, u64, Option<LimitUsage>)) -> f64 {
    match usage {
        None => -1.0,
        Some(_) if *limit == 0 => 1.0,
        Some(usage) => usage.used as f64 / *limit as f64,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use std::time::Duration;

    use filters::limits::{Algorithm, Subject};

    use super::*;

    const ROW: &str = "POST /content/v2";

    fn key(subject: &str) -> WindowKey {
        WindowKey {
            subject: Subject::Named(subject.into()),
            row: RowId::from_name(ROW),
        }
    }

    fn name(row: RowId) -> Option<String> {
        (row == RowId::from_name(ROW)).then(|| ROW.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn the_fullest_windows_are_shown_with_what_they_refused() {
        let counters = WindowCounters::new(Algorithm::Fixed, Duration::from_secs(10));
        for subject in ["one", "two", "two", "two", "two"] {
            counters.admit(&key(subject), 2).await.unwrap();
        }
        let unnamed = WindowKey {
            row: RowId::from_name("another"),
            ..key("two")
        };
        counters.admit(&unnamed, 1).await.unwrap();
        tokio::time::sleep(Duration::from_secs(4)).await;
        let found = counters.near_limits(|_| Some(2), name).await;
        let near: Vec<_> = found.near.iter().map(|one| &*one.subject).collect();
        assert_eq!(near, ["two", "one"]);
        let two = &found.near[0];
        assert_eq!((&*two.name, two.limit), (ROW, Some(2)));
        let usage = LimitUsage {
            used: 2,
            reset_ms: 6_000,
        };
        assert_eq!(two.usage, Some(usage));
        assert_eq!((two.refused.in_window, two.refused.in_all), (2, 2));
        assert_eq!(
            (found.compared, found.count, found.is_shared),
            (3, 3, false)
        );
        assert_eq!((found.refused.len(), found.refused_in_all), (1, 2));
        // The window is over, and what it refused stays known.
        tokio::time::sleep(Duration::from_secs(6)).await;
        let later = counters.near_limits(|_| None, name).await;
        assert!(later.near.is_empty());
        let refused = &later.refused[0];
        assert_eq!((&*refused.subject, refused.limit), ("two", None));
        assert_eq!((refused.refused.in_window, refused.refused.in_all), (0, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_has_a_bound_and_the_next_configuration_knows_what_was_refused() {
        let (algorithm, length) = (Algorithm::Sliding, Duration::from_secs(10));
        let old = WindowCounters::new(algorithm, length);
        for subject in 0..200 {
            for _ in 0..2 {
                old.admit(&key(&subject.to_string()), 1).await.unwrap();
            }
        }
        let found = old.near_limits(|_| Some(1), name).await;
        assert_eq!((found.near.len(), found.compared), (50, 200));
        assert_eq!(found.refused[0].refused.in_window, 1);
        // The window is over when the next configuration comes.
        tokio::time::sleep(length).await;
        let shorter = Duration::from_secs(9);
        let new = WindowCounters::with_sharing(algorithm, shorter, None, Some(&old));
        let found = new.near_limits(|_| Some(1), name).await;
        assert_eq!((found.near.len(), found.count), (0, 0));
        assert_eq!((found.refused.len(), found.refused_in_all), (50, 200));
        assert_eq!(found.refused[0].refused.in_window, 0);
    }
}
