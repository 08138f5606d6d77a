//! Frees datafiles that are no longer in force.

use std::sync::Arc;
use std::time::Duration;

/// The interval at which the number of owners is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Frees a value once it has no other owner, on a thread for blocking work. Freeing a large datafile takes time, and
/// a request that decides with it may be its last owner.
///
/// The value must not get new owners. Panics: outside of a runtime.
pub(super) fn drop_later<T: Send + Sync + 'static>(one: Arc<T>) {
    tokio::spawn(async move {
        while Arc::strong_count(&one) > 1 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        tokio::task::spawn_blocking(move || drop(one));
    });
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::ThreadId;

    use super::*;

    struct Large(mpsc::Sender<ThreadId>);

    impl Drop for Large {
        fn drop(&mut self) {
            _ = self.0.send(std::thread::current().id());
        }
    }

    #[tokio::test]
    async fn who_lets_go_last_does_not_free_it() {
        let (freed, by) = mpsc::channel();
        let large = Arc::new(Large(freed));
        let held = Arc::clone(&large);
        drop_later(large);
        tokio::task::yield_now().await;
        let me = std::thread::current().id();
        drop(held);
        let by = tokio::task::spawn_blocking(move || by.recv()).await;
        assert!(matches!(by, Ok(Ok(thread)) if thread != me));
    }
}
