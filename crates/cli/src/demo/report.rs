//! The report of the demo.

use std::fmt;
use std::time::Duration;

use comfy_table::{Table, presets};

use crate::count::counted;
use crate::demo::check::Check;
use crate::demo::picture::Written;
use crate::demo::render::Rendering;
use crate::demo::stage::Stage;
use crate::demo::view::View;

/// The device, the result and the times, displayed as a table.
pub(super) struct Report<'a> {
    pub(super) view: &'a View,
    pub(super) stage: &'a Stage,
    pub(super) rendering: &'a Rendering,
    /// The time from opening the driver until the picture is on the host.
    pub(super) total: Duration,
    pub(super) check: Option<&'a Check>,
    pub(super) picture: Written,
}

impl Report<'_> {
    fn rows(&self) -> Vec<[String; 2]> {
        let mut rows = self.place_rows();
        rows.extend(self.work_rows());
        rows.extend(self.result_rows());
        rows
    }

    fn place_rows(&self) -> Vec<[String; 2]> {
        let mut rows = vec![row("device", self.stage.name())];
        if let Some(reason) = self.stage.simulated() {
            rows.push(row("simulated", reason.in_brief()));
        }
        rows.push(row(
            "driver",
            format!("CUDA {}", self.stage.driver().version()),
        ));
        rows.push(row(
            "compute capability",
            self.stage.compute_capability().to_string(),
        ));
        rows
    }

    fn work_rows(&self) -> [[String; 2]; 7] {
        let View {
            width,
            height,
            max_iterations,
            ..
        } = *self.view;
        let Rendering {
            kernel,
            transfer,
            preparation,
            ..
        } = *self.rendering;
        let pixels = self.view.pixels() as f64;
        let bytes = size_of_val(self.rendering.iterations()) as f64;
        let launches = self.rendering.bands().len();
        [
            row(
                "picture",
                format!("{width} × {height}, at most {max_iterations} iterations"),
            ),
            row("preparation", duration(preparation)),
            row(
                "kernel",
                format!(
                    "{} in {}",
                    duration(kernel),
                    counted(launches, "launch", "launches")
                ),
            ),
            row(
                "transfer",
                format!("{}, {}", duration(transfer), rate(bytes, transfer, "B/s")),
            ),
            row("total", duration(self.total)),
            row("pixel rate", rate(pixels, kernel, "pixel/s")),
            row("iteration rate", rate(self.steps(), kernel, "iteration/s")),
        ]
    }

    fn result_rows(&self) -> [[String; 2]; 2] {
        let pixels = self.view.pixels();
        let check = match self.check {
            None => "skipped (--no-check)".to_owned(),
            Some(Check {
                wrong: 0,
                time,
                threads,
                ..
            }) => {
                format!(
                    "all {pixels} pixels equal the CPU's ({threads} threads, {})",
                    duration(*time)
                )
            }
            Some(Check { wrong, .. }) => {
                format!("FAILED: {wrong} of {pixels} pixels differ from the CPU's")
            }
        };
        let Written { path, bytes, time } = &self.picture;
        [
            row("check", check),
            row(
                "written",
                format!(
                    "{}, {} in {}",
                    path.display(),
                    scaled(*bytes as f64, "B"),
                    duration(*time)
                ),
            ),
        ]
    }

    fn steps(&self) -> f64 {
        self.rendering
            .iterations()
            .iter()
            .map(|count| u64::from(*count))
            .sum::<u64>() as f64
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table
            .load_style(presets::UTF8_BORDERS_ONLY.with_rounded_corners())
            .add_rows(self.rows());
        table.fmt(formatter)
    }
}

fn row(name: &str, value: impl Into<String>) -> [String; 2] {
    [name.to_owned(), value.into()]
}

/// Formats a time with a fitting unit.
fn duration(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds @ 1.0.. => format!("{seconds:.1} s"),
        seconds @ 1e-3.. => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{:.1} µs", seconds * 1e6),
    }
}

/// Formats `amount` per `time`. The time may be zero if the clock is too coarse.
fn rate(amount: f64, time: Duration, unit: &str) -> String {
    if time.is_zero() {
        "too fast to measure".to_owned()
    } else {
        scaled(amount / time.as_secs_f64(), unit)
    }
}

/// Formats a number with a metric prefix.
fn scaled(number: f64, unit: &str) -> String {
    let prefixes = ["", "k", "M", "G", "T", "P"];
    let power = (number.max(1.0).log10() / 3.0) as usize;
    let power = power.min(prefixes.len() - 1);
    let digits = if power == 0 { 0 } else { 2 };
    format!(
        "{:.digits$} {}{unit}",
        number / 1e3_f64.powi(power as i32),
        prefixes[power]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_prefix_that_keeps_them_short() {
        assert_eq!(scaled(0.0, "B"), "0 B");
        assert_eq!(scaled(999.0, "B"), "999 B");
        assert_eq!(scaled(2_073_600.0, "pixel/s"), "2.07 Mpixel/s");
        assert_eq!(scaled(5.5e10, "B/s"), "55.00 GB/s");
        assert_eq!(scaled(2e19, "B"), "20000.00 PB");
    }

    #[test]
    fn durations_take_the_unit_that_suits_them() {
        let texts =
            [14_900, 22, 0].map(|milliseconds| duration(Duration::from_millis(milliseconds)));
        assert_eq!(texts, ["14.9 s", "22.0 ms", "0.0 µs"]);
    }

    #[test]
    fn rate_without_time_is_not_infinite() {
        assert_eq!(rate(1.0, Duration::ZERO, "B/s"), "too fast to measure");
        assert_eq!(rate(3e6, Duration::from_millis(1500), "B/s"), "2.00 MB/s");
    }
}
