//! The tasks without which the process does not work as it should, and whether they run.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;

/// The tasks that must run until the process stops. Clones share them.
#[derive(Clone, Default)]
pub struct Tasks(Arc<Mutex<Vec<Task>>>);

struct Task {
    name: &'static str,
    is_running: Box<dyn Fn() -> bool + Send>,
}

impl Tasks {
    /// Starts a task on the current runtime.
    pub fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.watch_task(name, &tokio::spawn(work));
    }

    /// Adds a task that was started.
    pub fn watch_task<T>(&self, name: &'static str, task: &JoinHandle<T>) {
        let task = task.abort_handle();
        self.watch(name, move || !task.is_finished());
    }

    /// Adds a task with what says whether it runs. It replaces the one of its name, which may end from then on.
    pub fn watch(&self, name: &'static str, is_running: impl Fn() -> bool + Send + 'static) {
        let is_running = Box::new(is_running);
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let task = Task { name, is_running };
        match tasks.iter_mut().find(|known| known.name == name) {
            Some(known) => *known = task,
            None => tasks.push(task),
        }
    }

    /// Removes a task, which may end from then on.
    pub fn forget(&self, name: &str) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| task.name != name);
    }

    /// Returns the name of a task that has ended. Ask only before the process stops.
    pub fn find_ended(&self) -> Option<&'static str> {
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = tasks.iter().find(|task| !(task.is_running)());
        ended.map(|task| task.name)
    }

    /// Returns whether a task of this name runs.
    pub fn is_running(&self, name: &str) -> bool {
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut named = tasks.iter().filter(|task| task.name == name);
        named.any(|task| (task.is_running)())
    }

    /// Returns the names of all tasks.
    pub fn names(&self) -> Vec<&'static str> {
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().map(|task| task.name).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_found() {
        let tasks = Tasks::default();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        tasks.spawn("first", std::future::pending());
        tasks.spawn("second", async {
            _ = stopped.await;
            panic!("as a defect would");
        });
        tokio::task::yield_now().await;
        assert_eq!(tasks.find_ended(), None);
        drop(stop);
        while tasks.find_ended().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(tasks.find_ended(), Some("second"));
        assert_eq!(tasks.names(), ["first", "second"]);
    }

    #[tokio::test]
    async fn a_task_that_was_replaced_may_end() {
        let tasks = Tasks::default();
        let (replace, replaced) = tokio::sync::oneshot::channel::<()>();
        let old = tokio::spawn(async { _ = replaced.await });
        tasks.watch_task("videos", &old);
        let new = tokio::spawn(std::future::pending::<()>());
        tasks.watch_task("videos", &new);
        drop(replace);
        old.await.ok();
        assert_eq!((tasks.find_ended(), tasks.names()), (None, vec!["videos"]));
        new.abort();
        new.await.err();
        assert_eq!(tasks.find_ended(), Some("videos"));
        tasks.forget("videos");
        assert_eq!(tasks.find_ended(), None);
    }
}
