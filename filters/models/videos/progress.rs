//! What becomes of a job by what its provider says, and when it is asked again.

use super::order::{JobError, JobState, JobStatus};

/// The first pause between two polls, and the longest.
const POLL_MS: [u64; 2] = [1_000, 20_000];
/// The pause after the first failed poll, and the longest.
const RETRY_MS: [u64; 2] = [2_000, 60_000];
/// A job that the provider does not know is lost after so many polls that say so: its lists may be behind.
const MAX_UNKNOWN: u32 = 3;

/// What a provider says of a job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VideoReport {
    Running {
        has_begun: bool,
        progress: Option<u8>,
    },
    Completed {
        /// How long it is, where that is told. Units: milliseconds.
        output_ms: Option<u64>,
        /// Where it is, if not at the path of the job.
        link: Option<Box<str>>,
        /// Until when the provider keeps it.
        expires: Expiry,
    },
    Failed(JobError),
}

/// Until when a provider keeps a video.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expiry {
    Unknown,
    /// Until this time, in unix milliseconds.
    At(u64),
    /// For so many milliseconds.
    After(u64),
}

impl Expiry {
    /// Returns the time, in unix milliseconds, where it is known.
    fn at(self, now_ms: u64) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::At(ms) => Some(ms),
            Self::After(ms) => Some(now_ms.saturating_add(ms)),
        }
    }
}

/// Why a poll told nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PollFailure {
    /// The provider says that it has no such job.
    Unknown,
    /// It did not answer, or not in its own words.
    Failed,
}

/// What follows from a poll.
#[derive(Clone, Debug, PartialEq)]
pub enum JobStep {
    /// It goes on: the state, and the pause until the next poll in milliseconds.
    Wait(JobState, u64),
    /// It has ended: the state but for its cost, and how long the video is where it has to be paid, in milliseconds.
    /// `None`: it costs nothing.
    End(JobState, Option<u64>),
}

/// Returns what follows from a poll at `now_ms`. `asked_ms` is how long the video is to be, `expires_ms` when the job is
/// given up.
pub fn step(
    before: &JobState,
    said: Result<VideoReport, PollFailure>,
    asked_ms: u64,
    (now_ms, expires_ms): (u64, u64),
) -> JobStep {
    let polled = JobState {
        polls: before.polls.saturating_add(1),
        failures: match said {
            Ok(_) => 0,
            Err(_) => before.failures.saturating_add(1),
        },
        ..before.clone()
    };
    match said {
        Ok(VideoReport::Completed {
            output_ms,
            link,
            expires,
        }) => {
            let state = JobState {
                link,
                progress: 100,
                expires_ms: expires.at(now_ms),
                ..ended(polled, JobStatus::Completed, now_ms)
            };
            JobStep::End(state, Some(output_ms.unwrap_or(asked_ms)))
        }
        Ok(VideoReport::Failed(error)) => fail(polled, JobStatus::Failed, error, now_ms),
        Err(PollFailure::Unknown) if polled.failures >= MAX_UNKNOWN => {
            let error = JobError::new("video_lost", "the provider does not know the job any more");
            fail(polled, JobStatus::Failed, error, now_ms)
        }
        _ if now_ms >= expires_ms => {
            let error = JobError::new("video_expired", "the video did not come in time");
            fail(polled, JobStatus::Expired, error, now_ms)
        }
        Ok(VideoReport::Running {
            has_begun,
            progress,
        }) => go_on(polled, has_begun, progress.unwrap_or(0)),
        Err(_) => {
            let pause = pause(RETRY_MS, polled.failures, 4);
            JobStep::Wait(polled, pause)
        }
    }
}

/// Neither status nor progress goes back, whatever a provider says.
fn go_on(before: JobState, has_begun: bool, progress: u8) -> JobStep {
    let progress = progress.min(99).max(before.progress);
    let pause = pause(POLL_MS, before.polls, 3);
    let status = match has_begun || progress > 0 {
        true => JobStatus::InProgress,
        false => before.status,
    };
    let state = JobState {
        status,
        progress,
        ..before
    };
    JobStep::Wait(state, pause)
}

fn fail(before: JobState, status: JobStatus, error: JobError, now_ms: u64) -> JobStep {
    let state = JobState {
        error: Some(error),
        ..ended(before, status, now_ms)
    };
    JobStep::End(state, None)
}

fn ended(state: JobState, status: JobStatus, now_ms: u64) -> JobState {
    JobState {
        status,
        ended_ms: Some(now_ms),
        ..state
    }
}

/// Returns the pause after so many polls: each is `halves / 2` times as long as the one before.
fn pause([first, most]: [u64; 2], count: u32, halves: u64) -> u64 {
    let grown = (1..count.min(64)).fold(first, |pause, _| most.min(pause * halves / 2));
    grown.min(most)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "tests")]
    use super::*;

    const TIMES: (u64, u64) = (5_000, 3_600_000);

    fn waits(before: &JobState, said: Result<VideoReport, PollFailure>) -> (JobState, u64) {
        match step(before, said, 8_000, TIMES) {
            JobStep::Wait(state, pause) => (state, pause),
            JobStep::End(..) => panic!("it has ended"),
        }
    }

    fn ends(said: Result<VideoReport, PollFailure>, times: (u64, u64)) -> (JobState, Option<u64>) {
        match step(&JobState::default(), said, 8_000, times) {
            JobStep::End(state, output_ms) => (state, output_ms),
            JobStep::Wait(..) => panic!("it goes on"),
        }
    }

    fn running(has_begun: bool, progress: Option<u8>) -> Result<VideoReport, PollFailure> {
        Ok(VideoReport::Running {
            has_begun,
            progress,
        })
    }

    #[test]
    fn a_running_job_is_asked_for_less_and_less_often() {
        let mut state = JobState::default();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            let pause;
            (state, pause) = waits(&state, running(true, None));
            pauses.push(pause);
        }
        assert_eq!(pauses[..4], [1_000, 1_500, 2_250, 3_375]);
        assert_eq!(pauses.last(), Some(&20_000));
        assert!(pauses.is_sorted());
    }

    #[test]
    fn progress_never_goes_back_and_is_whole_at_the_end_alone() {
        let (state, _) = waits(&JobState::default(), running(false, None));
        assert_eq!((state.status, state.progress), (JobStatus::Queued, 0));
        let (state, _) = waits(&state, running(false, Some(40)));
        assert_eq!((state.status, state.progress), (JobStatus::InProgress, 40));
        let (state, _) = waits(&state, running(false, Some(10)));
        assert_eq!((state.status, state.progress), (JobStatus::InProgress, 40));
        let (state, _) = waits(&state, running(true, Some(100)));
        assert_eq!(state.progress, 99);
    }

    #[test]
    fn a_provider_that_does_not_answer_is_asked_later_and_a_lost_job_fails() {
        let (state, pause) = waits(&JobState::default(), Err(PollFailure::Failed));
        assert_eq!((state.failures, pause), (1, 2_000));
        let (state, pause) = waits(&state, Err(PollFailure::Failed));
        assert_eq!((state.failures, pause), (2, 4_000));
        let JobStep::End(lost, cost) = step(&state, Err(PollFailure::Unknown), 8_000, TIMES) else {
            panic!("it goes on");
        };
        assert_eq!((lost.status, cost), (JobStatus::Failed, None));
        let (state, _) = waits(&state, running(true, None));
        assert_eq!(state.failures, 0);
    }

    #[test]
    fn what_is_there_costs_what_came_else_what_was_asked() {
        let completed = |output_ms| {
            Ok(VideoReport::Completed {
                output_ms,
                link: Some("a".into()),
                expires: Expiry::After(1_000),
            })
        };
        let (state, output_ms) = ends(completed(None), TIMES);
        assert_eq!(
            (state.status, output_ms),
            (JobStatus::Completed, Some(8_000))
        );
        assert_eq!(
            (state.ended_ms, state.expires_ms),
            (Some(5_000), Some(6_000))
        );
        assert_eq!(ends(completed(Some(4_000)), TIMES).1, Some(4_000));
        // One that is there counts, also if it comes late.
        assert_eq!(ends(completed(None), (9, 9)).1, Some(8_000));
    }

    #[test]
    fn what_fails_or_does_not_come_costs_nothing() {
        let error = JobError {
            code: "a".into(),
            message: "b".into(),
        };
        let (state, cost) = ends(Ok(VideoReport::Failed(error.clone())), TIMES);
        assert_eq!(
            (state.status, state.error, cost),
            (JobStatus::Failed, Some(error), None)
        );
        for said in [running(true, Some(50)), Err(PollFailure::Failed)] {
            let (state, cost) = ends(said, (9, 9));
            assert_eq!((state.status, cost), (JobStatus::Expired, None));
        }
    }
}
