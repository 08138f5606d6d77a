//! Limits concurrent work on jobs, in total and per organization, so that one slow provider or callback does not
//! delay the others.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::{Id, JoinSet};

use crate::store::ledger::DueJobs;

/// The maximum number of jobs of a lane that are worked on at once, and of one organization. Our choice.
const MAX_AT_ONCE: usize = 64;
const MAX_OF_ORGANIZATION: usize = 16;

/// Work of one kind: polling providers, sending callbacks, or making responses.
pub struct WorkLane {
    is_open: bool,
    tasks: JoinSet<()>,
    organizations: HashMap<Id, Arc<str>>,
}

impl WorkLane {
    /// Creates an empty lane: for jobs that are still running, or for those whose end is to be reported.
    pub fn new(is_open: bool) -> Self {
        Self {
            is_open,
            tasks: JoinSet::new(),
            organizations: HashMap::new(),
        }
    }

    /// Returns the kind and number of jobs to claim, or `None` if there is no room.
    pub fn room(&mut self) -> Option<DueJobs> {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
            self.organizations.remove(&id);
        }
        let mut running: HashMap<&Arc<str>, usize> = HashMap::new();
        for organization in self.organizations.values() {
            *running.entry(organization).or_default() += 1;
        }
        let room = |(organization, count): (&Arc<str>, usize)| {
            let left = MAX_OF_ORGANIZATION.saturating_sub(count);
            (Arc::clone(organization), left)
        };
        let most = MAX_AT_ONCE - self.tasks.len();
        (most > 0).then(|| DueJobs {
            is_open: self.is_open,
            most,
            of_organization: MAX_OF_ORGANIZATION,
            of_others: running.into_iter().map(room).collect(),
        })
    }

    /// Waits until all work has ended. Dropping the lane would abort it.
    pub async fn finish(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Starts work on a job of an organization.
    pub fn begin(
        &mut self,
        organization: &Arc<str>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(work);
        self.organizations
            .insert(task.id(), Arc::clone(organization));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn an_organization_gets_its_room_back_however_its_work_ends() {
        let mut lane = WorkLane::new(true);
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        assert!(lane.room().unwrap().of_others.is_empty());
        lane.begin(&one, std::future::pending());
        lane.begin(&one, async {});
        lane.begin(&two, async { panic!("a task that fails") });
        let mut room = lane.room().unwrap();
        while room.of_others.len() > 1 || room.most < MAX_AT_ONCE - 1 {
            tokio::task::yield_now().await;
            room = lane.room().unwrap();
        }
        assert_eq!(room.of_others, [(one, MAX_OF_ORGANIZATION - 1)]);
        for _ in 1..MAX_AT_ONCE {
            lane.begin(&two, std::future::pending());
        }
        assert!(lane.room().is_none());
    }

    #[tokio::test]
    async fn work_that_runs_goes_on_until_it_has_ended() {
        let mut lane = WorkLane::new(true);
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let (done, is_done) = tokio::sync::oneshot::channel();
        lane.begin(&"one".into(), async move {
            ended.await.unwrap();
            done.send(()).unwrap();
        });
        let finishing = tokio::spawn(lane.finish());
        tokio::task::yield_now().await;
        assert!(!finishing.is_finished());
        end.send(()).unwrap();
        is_done.await.unwrap();
        finishing.await.unwrap();
    }
}
