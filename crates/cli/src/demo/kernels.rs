//! The kernel of the demo. The build script compiles it for GPUs.

use curium_kernel::prelude::*;

/// Counts the iterations for each pixel of an image, whose rows go down from the center. `pixel` is
/// the width of a pixel in the complex plane.
#[kernel]
pub fn mandelbrot(
    block: Block<32, 8>,
    center_x: f64,
    center_y: f64,
    pixel: f64,
    max_iterations: u32,
    mut image: PerBlockTile<u32, 8, 32>,
) {
    let width = image.columns() as f64;
    let height = image.rows() as f64;
    image.for_each(&block, |position, count| {
        let c_x = center_x + (position.column as f64 - 0.5 * width) * pixel;
        let c_y = center_y - (position.row as f64 - 0.5 * height) * pixel;
        *count = iterations(c_x, c_y, max_iterations);
    });
}

/// Returns the number of iterations of z = z² + c, from z = 0, until |z| > 2, at most
/// `max_iterations`.
///
/// The GPU and the CPU run this code. Their counts are equal bit for bit, because neither contracts
/// a multiplication and an addition to a fused multiply-add.
pub(super) fn iterations(c_x: f64, c_y: f64, max_iterations: u32) -> u32 {
    let mut x = 0.0;
    let mut y = 0.0;
    for count in 0..max_iterations {
        let xx = x * x;
        let yy = y * y;
        if xx + yy > 4.0 {
            return count;
        }
        y = 2.0 * (x * y) + c_y;
        x = xx - yy + c_x;
    }
    max_iterations
}
