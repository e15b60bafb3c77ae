//! A progress bar for what takes long.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What takes no longer than this shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A progress bar on the terminal's standard error, which appears after a second. Any thread may advance it.
pub(super) struct Progress {
    bar: ProgressBar,
    begin: Instant,
}

impl Progress {
    /// A bar of `rows` steps for an activity, such as `computing`.
    pub(super) fn new(activity: &'static str, rows: u32) -> Self {
        let bar = ProgressBar::with_draw_target(Some(rows.into()), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg:>9} {bar:40.cyan/blue} {percent:>3} %, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─"));
        bar.set_message(activity);
        Self { bar, begin: Instant::now() }
    }

    /// Counts `rows` more rows as done.
    pub(super) fn advance(&self, rows: u32) {
        if self.bar.is_hidden() && self.begin.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(rows.into());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
