//! A progress bar for long operations.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::Colors;

/// Shorter operations show no bar.
const PATIENCE: Duration = Duration::from_secs(1);

const PLAIN: &str = "{msg:>9} {bar:40} {percent:>3} %, {eta} left";

/// A progress bar on the terminal's standard error, which appears after a second. Any thread may
/// advance it.
pub(crate) struct Progress {
    bar: ProgressBar,
    begin: Instant,
}

impl Progress {
    /// Creates a bar of `steps` steps for an activity, such as `computing`.
    pub(crate) fn new(activity: &'static str, steps: u32, colors: Colors) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps.into()), ProgressDrawTarget::hidden());
        let template = if colors.are_on() {
            "{msg:>9} {bar:40.cyan/blue} {percent:>3} %, {eta} left"
        } else {
            PLAIN
        };
        let style = ProgressStyle::with_template(template);
        bar.set_style(
            style
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("━╸─"),
        );
        bar.set_message(activity);
        Self {
            bar,
            begin: Instant::now(),
        }
    }

    /// Advances the bar by `steps` steps.
    pub(crate) fn advance(&self, steps: u32) {
        if self.bar.is_hidden() && self.begin.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(steps.into());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
