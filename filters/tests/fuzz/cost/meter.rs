//! What a piece of work takes: memory by a counting allocator, time by the clock of the thread's own CPU time.

use rustix::time::{ClockId, clock_gettime};

/// What a piece of work took.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The most memory that it held at once. Units: bytes.
    pub bytes: u64,
    /// CPU time of this thread. Units: nanoseconds.
    pub cpu_ns: u64,
}

/// Measures a piece of work of this thread.
pub fn measure(work: impl FnOnce()) -> Cost {
    let started = cpu_ns();
    let allocated = allocation_counter::measure(work);
    Cost {
        bytes: allocated.bytes_max,
        cpu_ns: cpu_ns() - started,
    }
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}
