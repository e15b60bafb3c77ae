//! Launches from the host.
//!
//! `#[kernel]` declares a struct with the name of the function, and
//! [`include_kernels!`](crate::include_kernels) a struct `Kernels` with one of them for each
//! kernel. Its method `launch` is safe: buffers are borrowed and their accesses tracked, as for
//! every operation of Curium, and the grid and the sizes of arguments are checked.
//!
//! Launches work on captured streams, so kernels become nodes of graphs.

mod argument;
mod grid;
mod image;
mod launch;
mod load;
mod tensor;

pub use curium_driver::{
    ByValue, Context, Device, Error, Kernel, LaunchAttributes, Library, Result, Stream, Untyped,
};

pub use self::argument::{Argument, ImageAccess, PreparedArgument, RowMajor, Words};
pub use self::grid::{Blocks, HostScope, Threads};
pub use self::image::{Conversion, ReadAs};
pub use self::launch::{Arguments, Call, launch};
pub use self::load::{Function, HostKernel, Image, is_same_table, load_library, select_image};
