//! A number of each thread: what workers write apart from each other is found by it.

use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of this thread, from 0 in the order in which threads first ask. Cost: one read of thread-local memory.
pub fn thread_number() -> usize {
    NUMBER.with(|number| *number)
}
