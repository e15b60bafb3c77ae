//! Kernels of several fields, on the simulator with all checks, against sequential references on
//! the host.

use bytemuck::Pod;
use curium_driver::{Result, Stream};
use curium_memory::DeviceBuffer;

mod gemm;
mod learning;
mod numeric;
mod signal;
mod sorting;
mod sparse;

/// Returns a buffer with these elements, and one more, because a buffer is never empty: tests pass
/// a view.
fn upload<T: Pod>(stream: &Stream, elements: &[T]) -> Result<DeviceBuffer<T>> {
    let mut padded = elements.to_vec();
    padded.push(T::zeroed());
    DeviceBuffer::from_slice(stream, &padded)
}

/// Returns a buffer for `len` elements and one more.
fn output<T: Pod>(stream: &Stream, len: usize) -> Result<DeviceBuffer<T>> {
    upload(stream, &vec![T::zeroed(); len])
}

/// Returns the first elements of a buffer.
fn download<T: Pod>(buffer: &DeviceBuffer<T>, len: usize) -> Result<Vec<T>> {
    let mut elements = buffer.to_vec()?;
    elements.truncate(len);
    Ok(elements)
}

/// Returns numbers from -0.5 to 0.5.
fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| random.f32() - 0.5).collect()
}

/// Returns integers of all sizes.
fn integers(len: usize, seed: u64) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| random.u32(..)).collect()
}

#[track_caller]
fn assert_close(actual: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(actual.len(), expected.len());
    for (index, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        assert!(
            (actual - expected).abs() <= tolerance * expected.abs().max(1.0),
            "element {index} is {actual} and not {expected}"
        );
    }
}
