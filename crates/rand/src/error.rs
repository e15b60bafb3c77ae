//! Errors: the operation that failed, the reason, and a hint.

use curium_driver::declare_library_error;

use crate::sys::curandStatus_t;

declare_library_error! {
    library: "cuRAND",
    status: curandStatus_t,
    /// An argument is out of range, or invalid for the generator. The library was not called.
    Argument(ArgumentError),
}
