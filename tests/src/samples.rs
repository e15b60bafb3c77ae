//! Samples of one measurement.

use std::fmt;
use std::time::Duration;

/// Samples of one measurement, or differences of two, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Samples {
    /// In ascending order.
    sorted: Vec<f64>,
}

impl Samples {
    /// Returns the quantile `part`, from 0 to 1.
    ///
    /// # Panics
    ///
    /// Panics if there is no sample.
    #[must_use]
    pub fn quantile(&self, part: f64) -> f64 {
        let last = self.sorted.len() - 1;
        self.sorted[(last as f64 * part).round() as usize]
    }

    /// Returns the median.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(nanoseconds: I) -> Self {
        let mut sorted: Vec<_> = nanoseconds.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Self { sorted }
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        times
            .into_iter()
            .map(|time| time.as_nanos() as f64)
            .collect()
    }
}

/// Formats the median with the quartiles in brackets.
impl fmt::Display for Samples {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, median, high] = [0.25, 0.5, 0.75].map(|part| time(self.quantile(part)));
        write!(formatter, "{median:>10} [{low:>10} {high:>10}]")
    }
}

/// Formats a time with a fitting unit.
fn time(nanoseconds: f64) -> String {
    match nanoseconds.abs() {
        ..1e4 => format!("{nanoseconds:.1} ns"),
        1e4..1e7 => format!("{:.2} µs", nanoseconds / 1e3),
        _ => format!("{:.2} ms", nanoseconds / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let samples: Samples = [5.0, 1.0, 3.0, -2.0, 4.0].into_iter().collect();
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| samples.quantile(part)),
            [-2.0, 1.0, 3.0, 4.0, 5.0]
        );
        assert_eq!(samples.median(), 3.0);
    }

    #[test]
    fn text_begins_with_the_median() {
        let samples: Samples = [1, 20, 300]
            .map(Duration::from_micros)
            .into_iter()
            .collect();
        assert_eq!(samples.to_string(), "  20.00 µs [  20.00 µs  300.00 µs]");
        assert_eq!(time(-1.25), "-1.2 ns");
        assert_eq!(time(2e7), "20.00 ms");
    }
}
