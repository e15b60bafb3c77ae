//! The operations that every crate is measured with.

use crate::Result;
use crate::libraries::{Libraries, Operation};

/// A crate, as its users call it.
///
/// Each operation does its work and waits for it, and returns what a single one of it took, in
/// nanoseconds; `None` if the crate has no such operation.
pub(crate) trait Subject {
    fn name(&self) -> &'static str;

    /// Launches of an empty kernel with three parameters, without their end.
    fn launches(&mut self, count: u32) -> Result<Option<f64>>;

    /// Such launches, each waited for.
    fn awaited_launches(&mut self, count: u32) -> Result<Option<f64>>;

    /// Allocations of so many bytes and their frees.
    fn allocations(&mut self, source: Source, bytes: usize, count: u32) -> Result<Option<f64>>;

    /// Makes both sides of copies of so many bytes, in place of those that were there.
    fn set_sides(&mut self, bytes: usize) -> Result<()>;

    /// One copy, waited for.
    fn copy(&mut self, copy: Copy) -> Result<Option<f64>>;

    /// Creates handles and memory for calls of NVIDIA's libraries.
    fn set_libraries(&mut self, _libraries: &Libraries) -> Result<()> {
        Ok(())
    }

    /// Calls of an operation of NVIDIA's libraries, without their end.
    fn library_calls(&mut self, _operation: Operation, _count: u32) -> Result<Option<f64>> {
        Ok(None)
    }
}

/// Where memory comes from.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Source {
    /// The stream-ordered pool, or what a crate has in its place.
    Stream,
    /// The driver at once.
    Plain,
}

/// Between which memories a copy is.
#[derive(Clone, Copy)]
pub(crate) struct Copy {
    pub(crate) name: &'static str,
    pub(crate) is_pinned: bool,
    pub(crate) to_device: bool,
}

impl Copy {
    pub(crate) const ALL: [Self; 4] = [
        Self {
            name: "copy/pageable-to-device",
            is_pinned: false,
            to_device: true,
        },
        Self {
            name: "copy/device-to-pageable",
            is_pinned: false,
            to_device: false,
        },
        Self {
            name: "copy/pinned-to-device",
            is_pinned: true,
            to_device: true,
        },
        Self {
            name: "copy/device-to-pinned",
            is_pinned: true,
            to_device: false,
        },
    ];
}
