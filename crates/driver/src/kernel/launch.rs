//! The size of a launch.

mod attribute;
mod explain;

use std::fmt;

pub use self::attribute::{ClusterPortability, EventTrigger, LaunchAttributes};
pub(crate) use self::explain::explain;

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

/// The size of a launch: blocks, threads per block, and dynamic shared memory per block.
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
    /// Returns the product of the three.
    #[must_use]
    #[inline]
    pub const fn total(self) -> u128 {
        self.x as u128 * self.y as u128 * self.z as u128
    }
}

impl LaunchConfig {
    /// `grid` blocks of `block` threads, without dynamic shared memory.
    #[inline]
    #[must_use]
    pub fn new(grid: impl Into<Dimensions>, block: impl Into<Dimensions>) -> Self {
        Self { grid: grid.into(), block: block.into(), shared_bytes: 0 }
    }

    /// At least one thread for each of `count` elements, in blocks of 256. The kernel guards its index with the count.
    #[inline]
    #[must_use]
    pub fn for_elements(count: u32) -> Self {
        Self::new(count.div_ceil(DEFAULT_BLOCK).max(1), DEFAULT_BLOCK)
    }

    /// Sets the dynamic shared memory per block in bytes.
    #[must_use]
    #[inline]
    pub const fn with_shared_bytes(mut self, shared_bytes: u32) -> Self {
        self.shared_bytes = shared_bytes;
        self
    }

    /// Returns `true` if there is no thread.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.grid.total() == 0 || self.block.total() == 0
    }
}

impl From<u32> for Dimensions {
    #[inline]
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dimensions {
    #[inline]
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dimensions {
    #[inline]
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

impl fmt::Display for Dimensions {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}×{}×{}", self.x, self.y, self.z)
    }
}

impl fmt::Display for LaunchConfig {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} blocks of {} threads", self.grid, self.block)?;
        if self.shared_bytes > 0 {
            write!(formatter, " with {} bytes of shared memory", self.shared_bytes)?;
        }
        Ok(())
    }
}
