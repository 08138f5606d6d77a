//! How far long work has come, as a bar on a terminal.

use std::fmt::Arguments;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar: what is done, the bar, the share and the time since the beginning.
const TEMPLATE: &str = "{msg} [{bar:30}] {percent:>3}% {elapsed}";

/// A bar on stderr, which goes away when it is dropped.
pub struct WorkProgress(ProgressBar);

impl WorkProgress {
    /// Makes a bar. Without `is_shown` nothing is ever written.
    pub(super) fn new(is_shown: bool) -> Self {
        let target = match is_shown {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style =
            ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        Self(bar)
    }

    /// Shows that `done` of `total` is done. Cost: nothing while the bar is hidden.
    pub fn show(&self, work: Arguments<'_>, done: u64, total: u64) {
        if self.0.is_hidden() {
            return;
        }
        self.0.set_length(total);
        self.0.set_position(done.min(total));
        self.0.set_message(work.to_string());
    }

    /// Takes the bar away, so that other lines can be written.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for WorkProgress {
    fn drop(&mut self) {
        self.end();
    }
}
