//! Grids of launches.

use std::fmt;

use curium_driver::{Dimensions, LaunchConfig};

use crate::block::Block;
use crate::cluster::Cluster;
use crate::grid::Grid;
use crate::scope::{ELEMENT_WISE_BLOCK, Scope};
use crate::thread::Thread;

/// The grid of an element-wise kernel: the number of threads.
///
/// A `usize` converts to it: `kernels.saxpy.launch(&stream, x.len(), …)`. The grid is rounded up to
/// blocks of 256 threads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Threads(pub usize);

/// The grid of a kernel of blocks: the number of blocks along x, y and z.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Blocks {
    dimensions: Dimensions,
}

impl From<usize> for Threads {
    fn from(threads: usize) -> Self {
        Self(threads)
    }
}

impl Blocks {
    /// Creates a grid from its dimensions: `x`, `(x, y)` or `(x, y, z)`.
    #[must_use]
    pub fn new(dimensions: impl Into<Dimensions>) -> Self {
        Self {
            dimensions: dimensions.into(),
        }
    }
}

impl From<Dimensions> for Blocks {
    fn from(dimensions: Dimensions) -> Self {
        Self { dimensions }
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dimensions.fmt(formatter)
    }
}

/// The first parameter of a kernel, for launches. The trait is sealed by [`Scope`].
#[doc(hidden)]
pub trait HostScope: Scope {
    /// The type of the grid.
    type Grid;

    /// Returns the launch configuration, or a reason why there is none. `None` if the grid is
    /// empty.
    fn configuration(grid: Self::Grid) -> Result<Option<LaunchConfig>, String>;
}

/// The maximum number of blocks along x.
const MAX_BLOCKS: usize = i32::MAX as usize;

impl HostScope for Thread {
    type Grid = Threads;

    fn configuration(Threads(threads): Threads) -> Result<Option<LaunchConfig>, String> {
        if threads == 0 {
            return Ok(None);
        }
        let blocks = threads.div_ceil(ELEMENT_WISE_BLOCK as usize);
        match u32::try_from(blocks) {
            Ok(x) if blocks <= MAX_BLOCKS => Ok(Some(LaunchConfig::new(x, ELEMENT_WISE_BLOCK))),
            _ => Err(format!(
                "{threads} threads are more than a grid can have ({MAX_BLOCKS} blocks of {ELEMENT_WISE_BLOCK})"
            )),
        }
    }
}

impl<const X: u32, const Y: u32, const Z: u32> HostScope for Block<X, Y, Z> {
    type Grid = Blocks;

    fn configuration(grid: Blocks) -> Result<Option<LaunchConfig>, String> {
        if grid.dimensions.total() == 0 {
            return Ok(None);
        }
        Ok(Some(LaunchConfig::new(grid.dimensions, (X, Y, Z))))
    }
}

impl<const X: u32, const Y: u32, const Z: u32> HostScope for Grid<Block<X, Y, Z>> {
    type Grid = Blocks;

    fn configuration(grid: Blocks) -> Result<Option<LaunchConfig>, String> {
        Block::<X, Y, Z>::configuration(grid)
    }
}

impl<const X: u32, const Y: u32, const Z: u32, const CX: u32, const CY: u32, const CZ: u32>
    HostScope for Cluster<Block<X, Y, Z>, CX, CY, CZ>
{
    type Grid = Blocks;

    fn configuration(grid: Blocks) -> Result<Option<LaunchConfig>, String> {
        let Dimensions { x, y, z } = grid.dimensions;
        if !(x.is_multiple_of(CX) && y.is_multiple_of(CY) && z.is_multiple_of(CZ)) {
            let cluster = Dimensions::from((CX, CY, CZ));
            return Err(format!(
                "the grid is {grid}, which is not a multiple of the cluster {cluster}"
            ));
        }
        Block::<X, Y, Z>::configuration(grid)
    }
}
