//! The priority of background threads.
//!
//! A thread that stores calls or writes lines has some milliseconds for it. A request that waits for the same core
//! notices each of them, so such threads give way to those that serve requests.

use rustix::process::{getpid, getpriority_process, setpriority_process};

/// How far below that of the workers the priority is, in steps of niceness. Our choice: a thread still gets a quarter of a
/// core whose workers are busy all the time, so its work is not put off without bound.
const STEPS: i32 = 5;

/// Lowers the priority of this thread, and of the threads that it starts later. Calling it again changes nothing.
pub fn lower() {
    // Elsewhere the niceness is that of the whole process.
    if cfg!(target_os = "linux") {
        // That of the process is its first thread's, which serves nobody. A system that refuses leaves the priority as it
        // was: nothing depends on it but latency.
        let of_process = getpriority_process(Some(getpid()));
        _ = of_process.and_then(|niceness| setpriority_process(None, niceness + STEPS));
    }
}
