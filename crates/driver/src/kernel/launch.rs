//! Launch configurations.

mod attribute;
mod explain;

use std::fmt;

pub use self::attribute::{ClusterPortability, EventTrigger, LaunchAttributes};
pub(crate) use self::explain::explain;

/// Dimensions of a grid, a block or a cluster. Converts from `x`, `(x, y)` and `(x, y, z)`; omitted
/// dimensions are 1.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Dimensions {
    /// The x dimension.
    pub x: u32,
    /// The y dimension.
    pub y: u32,
    /// The z dimension.
    pub z: u32,
}

/// A launch configuration: grid dimensions, block dimensions, and dynamic shared memory per block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LaunchConfig {
    /// The grid dimensions in blocks.
    pub grid: Dimensions,
    /// The block dimensions in threads.
    pub block: Dimensions,
    /// The dynamic shared memory per block in bytes.
    pub shared_bytes: u32,
}

/// The default number of threads per block.
const DEFAULT_BLOCK: u32 = 256;

impl Dimensions {
    /// Returns the product of the dimensions.
    #[must_use]
    #[inline]
    pub const fn total(self) -> u128 {
        self.x as u128 * self.y as u128 * self.z as u128
    }
}

impl LaunchConfig {
    /// Creates a configuration of `grid` blocks with `block` threads each, without dynamic shared
    /// memory.
    #[inline]
    #[must_use]
    pub fn new(grid: impl Into<Dimensions>, block: impl Into<Dimensions>) -> Self {
        Self {
            grid: grid.into(),
            block: block.into(),
            shared_bytes: 0,
        }
    }

    /// Creates a configuration with at least one thread for each of `count` elements, in blocks of
    /// 256 threads. The kernel must compare its index with the count. A count of 0 gives one block,
    /// because a launch has at least one.
    ///
    /// A grid has at most 2³¹ − 1 blocks. The launch of a larger configuration is an error.
    #[inline]
    #[must_use]
    pub fn for_elements(count: usize) -> Self {
        Self::with_block(count, DEFAULT_BLOCK)
    }

    /// Creates a configuration with at least one thread for each of `count` elements, in blocks of
    /// `block` threads.
    #[inline]
    pub(crate) fn with_block(count: usize, block: u32) -> Self {
        let blocks = count.div_ceil(block as usize).max(1);
        // No device supports `u32::MAX` blocks: the launch fails.
        Self::new(u32::try_from(blocks).unwrap_or(u32::MAX), block)
    }

    /// Sets the dynamic shared memory per block in bytes.
    #[must_use]
    #[inline]
    pub const fn with_shared_bytes(mut self, shared_bytes: u32) -> Self {
        self.shared_bytes = shared_bytes;
        self
    }

    /// Returns `true` if the configuration has no threads.
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
    fn from(dimensions: (u32, u32)) -> Self {
        let (x, y) = dimensions;
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dimensions {
    #[inline]
    fn from(dimensions: (u32, u32, u32)) -> Self {
        let (x, y, z) = dimensions;
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
            write!(
                formatter,
                " with {} bytes of shared memory",
                self.shared_bytes
            )?;
        }
        Ok(())
    }
}
