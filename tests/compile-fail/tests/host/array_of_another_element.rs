//! The elements of an array are texels.

use curium_driver::Stream;
use curium_memory::{Array, ArrayFlags, ArrayShape};

fn array(stream: &Stream, shape: ArrayShape) -> Array<f64> {
    Array::new(stream, shape, ArrayFlags::empty()).unwrap()
}

fn main() {}
