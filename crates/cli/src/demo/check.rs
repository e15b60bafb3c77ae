//! Whether the CPU computes the same picture.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::demo::progress::Progress;
use crate::demo::view::View;

/// What a comparison with the CPU found.
pub(super) struct Check {
    /// How many pixels differ.
    pub(super) wrong: usize,
    /// The first of them, in reading order.
    pub(super) first: Option<Difference>,
    /// How long it took.
    pub(super) time: Duration,
    /// On how many threads.
    pub(super) threads: usize,
}

/// A pixel that is not as the CPU has it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Difference {
    row: u32,
    column: u32,
    found: u32,
    expected: u32,
}

impl Check {
    /// An error that names the first wrong pixel, if there is one.
    pub(super) fn into_result(self) -> Result<()> {
        let Some(Difference { row, column, found, expected }) = self.first else {
            return Ok(());
        };
        let wrong = self.wrong;
        bail!(
            "{wrong} pixels differ from the CPU's; the first is column {column} of row {row}: the device counted {found} \
             iterations, the CPU {expected}"
        )
    }
}

/// Compares every pixel with the CPU's, on all its threads. `bands` are the views that were computed, from the top down.
pub(super) fn against_cpu(view: &View, bands: &[View], iterations: &[u32]) -> Check {
    let begin = Instant::now();
    let progress = Progress::new("checking", view.height);
    let rows = bands.iter().flat_map(|band| (0..band.height).map(move |row| (band, row)));
    let work = Mutex::new(iterations.chunks_exact(view.width as usize).zip(rows).zip(0..));
    let next = || work.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let compare = || {
        let (mut wrong, mut first) = (0, None);
        while let Some(((found, (band, band_row)), row)) = next() {
            let mut differences = differences(found, band, band_row).map(|of_row| Difference { row, ..of_row });
            let first_of_row = differences.next();
            wrong += usize::from(first_of_row.is_some()) + differences.count();
            first = first.or(first_of_row);
            progress.advance(1);
        }
        (wrong, first)
    };
    let found = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(compare)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    Check {
        wrong: found.iter().map(|(wrong, _)| wrong).sum(),
        first: found.iter().filter_map(|(_, first)| *first).min(),
        time: begin.elapsed(),
        threads,
    }
}

/// The pixels of one row that differ from the CPU's.
fn differences(found: &[u32], band: &View, row: u32) -> impl Iterator<Item = Difference> {
    (0..).zip(found).filter_map(move |(column, found)| {
        let expected = band.iterations_at(column, row);
        (*found != expected).then_some(Difference { row, column, found: *found, expected })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> (View, Vec<View>, Vec<u32>) {
        let view = View::new((33, 21), (-0.6, 0.1), 2.5, 150).expect("the view is valid");
        let bands = view.bands(33 * 4);
        let rows = bands.iter().flat_map(|band| (0..band.height).map(move |row| (band, row)));
        let iterations =
            rows.flat_map(|(band, row)| (0..33).map(move |column| band.iterations_at(column, row))).collect();
        (view, bands, iterations)
    }

    #[test]
    fn right_picture_passes() {
        let (view, bands, iterations) = picture();
        let check = against_cpu(&view, &bands, &iterations);
        assert_eq!((check.wrong, check.first), (0, None));
        assert!(check.into_result().is_ok());
    }

    #[test]
    fn wrong_pixels_are_counted_and_the_first_is_named_with_both_values() {
        let (view, bands, mut iterations) = picture();
        let right = iterations[33 * 7 + 5];
        for wrong in [33 * 20 + 32, 33 * 7 + 5, 33 * 7 + 6] {
            iterations[wrong] += 1;
        }
        let check = against_cpu(&view, &bands, &iterations);
        assert_eq!(check.wrong, 3);
        assert_eq!(check.first, Some(Difference { row: 7, column: 5, found: right + 1, expected: right }));
        let error = check.into_result().expect_err("the picture is wrong").to_string();
        let both = format!("column 5 of row 7: the device counted {} iterations, the CPU {right}", right + 1);
        assert!(error.contains(&both), "{error}");
    }
}
