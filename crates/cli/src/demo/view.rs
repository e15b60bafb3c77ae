//! The section of the complex plane that a picture shows.

use std::ops::Range;

use anyhow::{Result, ensure};

use crate::demo::kernels;

/// A rectangle of the complex plane, its size in pixels, and the iteration limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) center_x: f64,
    pub(crate) center_y: f64,
    /// The size of a pixel in the complex plane.
    pub(crate) pixel: f64,
    pub(crate) max_iterations: u32,
}

impl View {
    /// Creates a view of `size` pixels whose width in the complex plane is `scale`.
    ///
    /// # Errors
    ///
    /// Returns an error if the pixels are smaller than the precision of `f64`.
    pub(crate) fn new(
        size: (u32, u32),
        center: (f64, f64),
        scale: f64,
        max_iterations: u32,
    ) -> Result<Self> {
        let ((width, height), (center_x, center_y)) = (size, center);
        let pixel = scale / f64::from(width);
        let largest = center_x.abs().max(center_y.abs());
        ensure!(
            pixel.is_normal() && largest + pixel > largest,
            "a scale of {scale:e} around ({center_x}, {center_y}) is below the resolution of double precision"
        );
        Ok(Self {
            width,
            height,
            center_x,
            center_y,
            pixel,
            max_iterations,
        })
    }

    /// Returns the number of pixels.
    pub(crate) fn pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }

    /// Splits the rows into bands of about `pixels` pixels at most, each a view, from the top down.
    pub(crate) fn bands(&self, pixels: usize) -> Vec<View> {
        let rows = (pixels / self.width as usize).clamp(1, self.height as usize);
        let firsts = (0..self.height).step_by(rows);
        firsts
            .map(|first| self.band(first..self.height.min(first.saturating_add(rows as u32))))
            .collect()
    }

    /// Returns the number of iterations of z = z² + c until |z| > 2 for the center c of a pixel, at
    /// most `max_iterations`.
    ///
    /// The operations and their order are the kernel's, so that the counts are identical.
    pub(crate) fn iterations_at(&self, column: u32, row: u32) -> u32 {
        let c_x = self.center_x + (f64::from(column) - 0.5 * f64::from(self.width)) * self.pixel;
        let c_y = self.center_y - (f64::from(row) - 0.5 * f64::from(self.height)) * self.pixel;
        kernels::iterations(c_x, c_y, self.max_iterations)
    }

    fn band(&self, rows: Range<u32>) -> View {
        let middle = 0.5 * (f64::from(rows.start) + f64::from(rows.end));
        let center_y = self.center_y - (middle - 0.5 * f64::from(self.height)) * self.pixel;
        View {
            height: rows.end - rows.start,
            center_y,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        // Powers of two, so that bands contain exactly the points of the whole.
        View::new((64, 50), (-0.5, 0.0), 4.0, 200).expect("the view is valid")
    }

    #[test]
    fn points_outside_escape_and_points_inside_do_not() {
        let view = view();
        assert_eq!(view.iterations_at(0, 0), 1, "-2.5 + 1.5625i");
        assert_eq!(view.iterations_at(32, 25), 200, "-0.5");
        assert_eq!(view.iterations_at(8, 25), 200, "-2, the tip of the set");
        assert_eq!(view.iterations_at(7, 25), 1, "-2.0625, left of the tip");
    }

    #[test]
    fn bands_cover_every_row_once() {
        let view = view();
        for pixels in [1, 64, 200, 1000, 3200, usize::MAX] {
            let bands = view.bands(pixels);
            let rows = bands
                .iter()
                .flat_map(|band| (0..band.height).map(move |row| (band, row)));
            let whole = 0..view.height;
            assert_eq!(rows.clone().count(), whole.len(), "{pixels} pixels a band");
            for (row, (band, band_row)) in whole.zip(rows) {
                for column in 0..64 {
                    assert_eq!(
                        view.iterations_at(column, row),
                        band.iterations_at(column, band_row),
                        "column {column} of row {row} with {pixels} pixels a band"
                    );
                }
            }
        }
    }

    /// A band has at least one row.
    #[test]
    fn band_has_at_most_the_requested_pixels() {
        assert_eq!(view().bands(200).len(), 17);
        assert_eq!(view().bands(1).len(), 50);
        assert_eq!(view().bands(usize::MAX), [view()]);
    }

    #[test]
    fn pixels_below_the_precision_are_refused() {
        assert!(View::new((1000, 1), (-0.5, 0.0), 1e-12, 10).is_ok());
        let error = View::new((1000, 1), (-0.5, 0.0), 1e-14, 10).expect_err("the pixels coincide");
        assert!(error.to_string().contains("double precision"), "{error}");
    }
}
