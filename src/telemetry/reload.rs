//! What became of the reloads of the configuration, for metrics, the log, `/readyz?verbose` and commands.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use prometheus::{IntCounterVec, IntGauge, IntGaugeVec};
use serde::{Serialize, Serializer};

/// The most problems of a reload that are kept.
const MAX_PROBLEMS: usize = 20;
/// The most characters of a problem that are kept.
const MAX_PROBLEM_CHARS: usize = 2000;

/// The metrics of reloads.
pub struct ReloadMetrics {
    /// Reloads by result.
    pub reloads: IntCounterVec,
    /// When the configuration was last read.
    pub last_reload: IntGauge,
    /// 1 if the configuration that was last read is in force.
    pub is_last_successful: IntGauge,
    /// Since when the configuration in force is in force.
    pub loaded: IntGauge,
    /// 1 for the hash of the configuration in force.
    pub info: IntGaugeVec,
}

/// The result of a reload.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadResult {
    /// Another configuration is in force.
    Ok,
    /// The configuration is the one in force.
    Unchanged,
    /// The configuration has problems, or needs a restart.
    Refused,
    /// The configuration is valid and could not be put in force.
    Failed,
}

impl ReloadResult {
    /// Returns the label of metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }

    fn is_successful(self) -> bool {
        matches!(self, Self::Ok | Self::Unchanged)
    }
}

/// The configuration in force, and the last reload.
///
/// Shape: `{"hash", "loaded_at", "last"?: {"at", "result", "problems"}}`. As text: one line, or one and the problems.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ConfigStatus {
    /// The hash of the configuration in force, or an empty text before the start has ended.
    pub hash: String,
    /// Since when it is in force.
    #[serde(serialize_with = "as_text")]
    pub loaded_at: Timestamp,
    /// The last reload, or `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastReload>,
}

/// The last reload.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LastReload {
    #[serde(serialize_with = "as_text")]
    pub at: Timestamp,
    pub result: ReloadResult,
    /// The reasons for which it had no success, with file, line and column: at most 20.
    pub problems: Vec<String>,
}

/// Records reloads. Readers get the [`ConfigStatus`].
pub struct ReloadStatus {
    metrics: ReloadMetrics,
    status: Mutex<ConfigStatus>,
}

impl ReloadStatus {
    /// Starts without a configuration.
    pub fn new(metrics: ReloadMetrics) -> Self {
        metrics.is_last_successful.set(1);
        let status = ConfigStatus {
            hash: String::new(),
            loaded_at: Timestamp::UNIX_EPOCH,
            last: None,
        };
        Self {
            metrics,
            status: Mutex::new(status),
        }
    }

    /// Records the configuration of the start.
    pub fn start(&self, hash: &str, now: Timestamp) {
        self.metrics.last_reload.set(now.as_second());
        self.put_in_force(&mut self.lock(), hash, now);
    }

    /// Records a reload that put the configuration with this hash in force.
    pub fn record_ok(&self, hash: &str, now: Timestamp) {
        let mut status = self.lock();
        self.put_in_force(&mut status, hash, now);
        self.record(&mut status, ReloadResult::Ok, Vec::new(), now);
        log::info!("the configuration was reloaded: {hash}");
    }

    /// Records a reload of the configuration that is in force.
    pub fn record_unchanged(&self, now: Timestamp) {
        self.record(&mut self.lock(), ReloadResult::Unchanged, Vec::new(), now);
        log::info!("the configuration is unchanged");
    }

    /// Records a reload without success: refused or failed. The configuration in force stays.
    pub fn record_problems(&self, result: ReloadResult, problems: &[String], now: Timestamp) {
        let problems = bound(problems);
        log::error!(
            "the configuration was not reloaded, and stays as it is: {}",
            problems.join("\n")
        );
        self.record(&mut self.lock(), result, problems, now);
    }

    /// Returns the configuration in force, and the last reload.
    pub fn status(&self) -> ConfigStatus {
        self.lock().clone()
    }

    fn put_in_force(&self, status: &mut ConfigStatus, hash: &str, now: Timestamp) {
        if status.hash != hash {
            // The series of the hash before ends. Without a series there is nothing to remove.
            _ = self.metrics.info.remove_label_values(&[&status.hash]);
            hash.clone_into(&mut status.hash);
        }
        self.metrics.info.with_label_values(&[hash]).set(1);
        self.metrics.loaded.set(now.as_second());
        status.loaded_at = now;
    }

    fn record(
        &self,
        status: &mut ConfigStatus,
        result: ReloadResult,
        problems: Vec<String>,
        now: Timestamp,
    ) {
        let metrics = &self.metrics;
        metrics.reloads.with_label_values(&[result.as_str()]).inc();
        metrics.last_reload.set(now.as_second());
        metrics
            .is_last_successful
            .set(i64::from(result.is_successful()));
        status.last = Some(LastReload {
            at: now,
            result,
            problems,
        });
    }

    fn lock(&self) -> MutexGuard<'_, ConfigStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for ConfigStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "configuration {} since {}",
            self.hash,
            whole_second(self.loaded_at)
        )?;
        let Some(last) = &self.last else {
            return writeln!(f);
        };
        let (result, at) = (last.result.as_str(), whole_second(last.at));
        writeln!(f, "; last reload {at}: {result}")?;
        for line in last.problems.iter().flat_map(|problem| problem.lines()) {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

fn as_text<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&whole_second(*time))
}

/// Returns a time without fractions of a second.
pub fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Returns the first problems, cut to a length, and the number of the others.
fn bound(problems: &[String]) -> Vec<String> {
    let kept = problems.iter().take(MAX_PROBLEMS);
    let kept = kept.map(|problem| problem.chars().take(MAX_PROBLEM_CHARS).collect());
    let mut kept: Vec<String> = kept.collect();
    if problems.len() > MAX_PROBLEMS {
        kept.push(format!("and {} more", problems.len() - MAX_PROBLEMS));
    }
    kept
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;
    use crate::telemetry::metrics::Metrics;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn has(metrics: &Metrics, line: &str) -> bool {
        let text = String::from_utf8(metrics.render()).unwrap();
        text.lines().any(|other| other == line)
    }

    #[test]
    fn a_good_reload_is_one_line_and_replaces_the_hash() {
        let metrics = Metrics::new().unwrap();
        metrics.reloads.start("aa", at(1));
        assert_eq!(
            metrics.reloads.status().to_string(),
            "configuration aa since 1970-01-01T00:00:01Z\n"
        );
        metrics.reloads.record_ok("bb", at(2));
        assert_eq!(
            metrics.reloads.status().to_string(),
            "configuration bb since 1970-01-01T00:00:02Z; last reload 1970-01-01T00:00:02Z: ok\n"
        );
        for line in [
            "weirgate_config_info{hash=\"bb\"} 1",
            "weirgate_config_reloads_total{result=\"ok\"} 1",
            "weirgate_config_last_reload_successful 1",
            "weirgate_config_last_reload_timestamp_seconds 2",
            "weirgate_config_loaded_timestamp_seconds 2",
        ] {
            assert!(has(&metrics, line), "{line}");
        }
        assert!(!has(&metrics, "weirgate_config_info{hash=\"aa\"} 1"));
    }

    #[test]
    fn a_bad_reload_says_its_problems_and_leaves_the_configuration_in_force() {
        let metrics = Metrics::new().unwrap();
        metrics.reloads.start("aa", at(1));
        let problems = ["listen.http2: must be true\n --> f:1:2\n".to_owned()];
        let refused = ReloadResult::Refused;
        metrics.reloads.record_problems(refused, &problems, at(3));
        assert_eq!(
            metrics.reloads.status().to_string(),
            "configuration aa since 1970-01-01T00:00:01Z; last reload 1970-01-01T00:00:03Z: refused\n  \
             listen.http2: must be true\n   --> f:1:2\n"
        );
        for line in [
            "weirgate_config_info{hash=\"aa\"} 1",
            "weirgate_config_reloads_total{result=\"refused\"} 1",
            "weirgate_config_last_reload_successful 0",
            "weirgate_config_last_reload_timestamp_seconds 3",
            "weirgate_config_loaded_timestamp_seconds 1",
        ] {
            assert!(has(&metrics, line), "{line}");
        }
        metrics.reloads.record_unchanged(at(4));
        assert!(has(&metrics, "weirgate_config_last_reload_successful 1"));
        let json = serde_json::to_value(metrics.reloads.status()).unwrap();
        assert_eq!(json["last"]["result"], "unchanged");
        assert_eq!(json["loaded_at"], "1970-01-01T00:00:01Z");
    }

    #[test]
    fn of_many_and_long_problems_a_part_is_kept() {
        let metrics = Metrics::new().unwrap();
        let problems = vec!["x".repeat(MAX_PROBLEM_CHARS + 1); MAX_PROBLEMS + 3];
        let failed = ReloadResult::Failed;
        metrics.reloads.record_problems(failed, &problems, at(1));
        let kept = metrics.reloads.status().last.unwrap().problems;
        assert_eq!(kept.len(), MAX_PROBLEMS + 1);
        assert_eq!(kept[0].len(), MAX_PROBLEM_CHARS);
        assert_eq!(kept[MAX_PROBLEMS], "and 3 more");
    }
}
