//! Kernels for tests of launches.

use curium_kernel::prelude::*;

/// A linear function.
#[derive(Clone, Copy, Debug, PartialEq, ByValue)]
#[repr(C)]
pub struct Line {
    pub slope: f32,
    pub offset: f32,
    pub corner: F32x2,
}

/// Adds the values of a linear function at 0, 1, …
#[kernel]
pub fn add_line(t: Thread, line: Line, mut y: PerThread<f32>) {
    if let Some(y) = y.get(&t) {
        *y += line.slope * t.index() as f32 + line.offset;
    }
}

/// Adds two inputs, which may be the same memory.
#[kernel]
pub fn add(t: Thread, a: &[f32], b: &[f32], mut y: PerThread<f32>) {
    if let Some(y) = y.get(&t) {
        *y = a[t.index()] + b[t.index()];
    }
}

/// Writes the lengths of both buffers, and the last element of the first.
#[kernel]
pub fn lengths(t: Thread, x: &[u8], rows: Matrix<u8>, mut y: PerThread<u64>) {
    let values = [
        x.len(),
        rows.rows(),
        rows.columns(),
        usize::from(x[x.len() - 1]),
    ];
    if let (Some(y), Some(value)) = (y.get(&t), values.get(t.index())) {
        *y = *value as u64;
    }
}
