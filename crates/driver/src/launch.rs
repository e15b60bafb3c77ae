//! How many threads a kernel runs with, and what is wrong when it cannot be launched so.

use std::borrow::Cow;
use std::fmt;

use curium_sys::{CUdevice_attribute, CUresult};

use crate::{Error, Result, Stream};

/// A size in three dimensions. A number stands for `(x, 1, 1)`, a pair for `(x, y, 1)`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Dimensions {
    /// Along x.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

/// How many blocks of how many threads a kernel runs with, and how much shared memory each block gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LaunchConfig {
    /// The number of blocks.
    pub grid: Dimensions,
    /// The number of threads in each block.
    pub block: Dimensions,
    /// The dynamic shared memory of each block in bytes.
    pub shared_bytes: u32,
}

/// The threads of a block where the caller does not care.
const DEFAULT_BLOCK: u32 = 256;

impl Dimensions {
    /// The product of the three.
    #[must_use]
    pub const fn total(self) -> u128 {
        self.x as u128 * self.y as u128 * self.z as u128
    }
}

impl LaunchConfig {
    /// `grid` blocks of `block` threads, without dynamic shared memory.
    #[must_use]
    pub fn new(grid: impl Into<Dimensions>, block: impl Into<Dimensions>) -> Self {
        Self { grid: grid.into(), block: block.into(), shared_bytes: 0 }
    }

    /// At least one thread for each of `count` elements, in blocks of 256. The kernel guards its index with the count.
    #[must_use]
    pub fn for_elements(count: u32) -> Self {
        Self::new(count.div_ceil(DEFAULT_BLOCK).max(1), DEFAULT_BLOCK)
    }

    /// The same with this much dynamic shared memory for each block, in bytes.
    #[must_use]
    pub const fn with_shared_bytes(mut self, shared_bytes: u32) -> Self {
        self.shared_bytes = shared_bytes;
        self
    }

    /// An error if a dimension is zero.
    #[inline]
    pub(crate) fn check(self) -> Result<()> {
        let Self { grid, block, .. } = self;
        if [grid.x, grid.y, grid.z, block.x, block.y, block.z].contains(&0) { Err(self.empty()) } else { Ok(()) }
    }

    #[cold]
    fn empty(self) -> Error {
        Error::argument("Kernel::launch", format!("a dimension is zero: {self}"))
    }
}

impl From<u32> for Dimensions {
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dimensions {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dimensions {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

impl fmt::Display for Dimensions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}×{}×{}", self.x, self.y, self.z)
    }
}

impl fmt::Display for LaunchConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} blocks of {} threads", self.grid, self.block)?;
        if self.shared_bytes > 0 {
            write!(formatter, " with {} bytes of shared memory", self.shared_bytes)?;
        }
        Ok(())
    }
}

/// Adds to the error of a launch what was asked for, and which limit of the device it exceeds if it does.
#[cold]
pub(crate) fn explain(error: Error, kernel: &str, stream: &Stream, config: LaunchConfig) -> Error {
    error.about(format!("kernel `{kernel}`, {config}")).advised(|error| match error.code {
        CUresult::CUDA_ERROR_INVALID_VALUE => exceeded_limit(stream, config),
        CUresult::CUDA_ERROR_INVALID_HANDLE => Some(Cow::Borrowed("kernel and stream may be of different contexts")),
        _ => None,
    })
}

/// The first limit of the stream's device that `config` exceeds.
fn exceeded_limit(stream: &Stream, config: LaunchConfig) -> Option<Cow<'static, str>> {
    let LaunchConfig { grid, block, shared_bytes } = config;
    let asked = [
        (block.total(), "threads in a block", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        (block.x.into(), "threads of a block along x", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
        (block.y.into(), "threads of a block along y", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
        (block.z.into(), "threads of a block along z", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
        (grid.x.into(), "blocks along x", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
        (grid.y.into(), "blocks along y", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
        (grid.z.into(), "blocks along z", CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
        (
            shared_bytes.into(),
            "bytes of shared memory in a block",
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
        ),
    ];
    let device = stream.context().device();
    asked.into_iter().find_map(|(asked, what, attribute)| {
        let limit = u128::try_from(device.attribute(attribute).ok()?).ok()?;
        (asked > limit).then(|| Cow::Owned(format!("the device allows {limit} {what}, and {asked} are asked for")))
    })
}
