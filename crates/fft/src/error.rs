//! Errors: the operation that failed, the reason, and a hint.

use curium_driver::declare_library_error;

use crate::sys::cufftResult;

declare_library_error! {
    library: "cuFFT",
    status: cufftResult,
    /// A shape is invalid, or does not fit the memory. The library was not called.
    Shape(ShapeError),
}
