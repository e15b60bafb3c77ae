//! Comparison of the picture with the CPU's result.

use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use parking_lot::Mutex;

use crate::demo::view::View;
use crate::progress::Progress;
use crate::terminal::Colors;

/// The result of the comparison.
pub(super) struct Check {
    /// The number of pixels that differ.
    pub(super) wrong: usize,
    /// The first of them, in reading order.
    pub(super) first: Option<Difference>,
    /// The elapsed time.
    pub(super) time: Duration,
    /// The number of threads.
    pub(super) threads: usize,
}

/// A pixel that differs from the CPU's.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Difference {
    row: u32,
    column: u32,
    found: u32,
    expected: u32,
}

/// A row of the picture, and the row of the view from which the CPU computes it.
struct Row<'a> {
    index: u32,
    counts: &'a [u32],
    band: &'a View,
    band_row: u32,
}

impl Check {
    /// Returns an error that names the first wrong pixel, if there is one.
    pub(super) fn into_result(self) -> Result<()> {
        let Some(Difference {
            row,
            column,
            found,
            expected,
        }) = self.first
        else {
            return Ok(());
        };
        let wrong = self.wrong;
        bail!(
            "{wrong} pixels differ from the CPU's; the first is column {column} of row {row}: the device counted {found} \
             iterations, the CPU {expected}"
        )
    }

    /// Adds the differences of one row.
    fn add(&mut self, differences: &[Difference]) {
        self.wrong += differences.len();
        self.first = self
            .first
            .into_iter()
            .chain(differences.first().copied())
            .min();
    }
}

impl Row<'_> {
    /// Returns the pixels that differ from the CPU's.
    fn differences(&self) -> impl Iterator<Item = Difference> {
        (0..).zip(self.counts).filter_map(|(column, found)| {
            let expected = self.band.iterations_at(column, self.band_row);
            let difference = Difference {
                row: self.index,
                column,
                found: *found,
                expected,
            };
            (*found != expected).then_some(difference)
        })
    }
}

/// Compares every pixel with the CPU's, on all its threads. `bands` are the views that were
/// computed, from the top down.
pub(super) fn against_cpu(
    view: &View,
    bands: &[View],
    iterations: &[u32],
    colors: Colors,
) -> Check {
    assert_eq!(iterations.len(), view.pixels(), "the picture is complete");
    let begin = Instant::now();
    let progress = Progress::new("checking", view.height, colors);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let work = Mutex::new(rows(view, bands, iterations));
    let result = Mutex::new(Check {
        wrong: 0,
        first: None,
        time: Duration::ZERO,
        threads,
    });
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(row) = next(&work) {
                    let differences: Vec<_> = row.differences().collect();
                    result.lock().add(&differences);
                    progress.advance(1);
                }
            });
        }
    });
    Check {
        time: begin.elapsed(),
        ..result.into_inner()
    }
}

/// Returns all rows of the picture, from the top down.
fn rows<'a>(
    view: &View,
    bands: &'a [View],
    iterations: &'a [u32],
) -> impl Iterator<Item = Row<'a>> + Send {
    let in_bands = bands
        .iter()
        .flat_map(|band| (0..band.height).map(move |row| (band, row)));
    let rows = iterations.chunks_exact(view.width as usize);
    (0..)
        .zip(rows)
        .zip(in_bands)
        .map(|((index, counts), (band, band_row))| Row {
            index,
            counts,
            band,
            band_row,
        })
}

/// Takes the next row. The lock is not held during the comparison.
fn next<'a>(work: &Mutex<impl Iterator<Item = Row<'a>>>) -> Option<Row<'a>> {
    work.lock().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> (View, Vec<View>, Vec<u32>) {
        let view = View::new((33, 21), (-0.6, 0.1), 2.5, 150).expect("the view is valid");
        let bands = view.bands(33 * 4);
        let rows = bands
            .iter()
            .flat_map(|band| (0..band.height).map(move |row| (band, row)));
        let iterations = rows
            .flat_map(|(band, row)| (0..33).map(move |column| band.iterations_at(column, row)))
            .collect();
        (view, bands, iterations)
    }

    #[test]
    fn right_picture_passes() {
        let (view, bands, iterations) = picture();
        let check = against_cpu(&view, &bands, &iterations, Colors::NONE);
        assert_eq!((check.wrong, check.first), (0, None));
        assert!(check.into_result().is_ok());
    }

    /// The error names the first wrong pixel and both values.
    #[test]
    fn wrong_pixels_are_counted() {
        let (view, bands, mut iterations) = picture();
        let right = iterations[33 * 7 + 5];
        for wrong in [33 * 20 + 32, 33 * 7 + 5, 33 * 7 + 6] {
            iterations[wrong] += 1;
        }
        let check = against_cpu(&view, &bands, &iterations, Colors::NONE);
        assert_eq!(check.wrong, 3);
        assert_eq!(
            check.first,
            Some(Difference {
                row: 7,
                column: 5,
                found: right + 1,
                expected: right
            })
        );
        let error = check
            .into_result()
            .expect_err("the picture is wrong")
            .to_string();
        let both = format!(
            "column 5 of row 7: the device counted {} iterations, the CPU {right}",
            right + 1
        );
        assert!(error.contains(&both), "{error}");
    }
}
