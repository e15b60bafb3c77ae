//! The first parameter of a kernel: its scope.

use crate::block::Block;
use crate::cluster::Cluster;
use crate::grid::Grid;
use crate::launch::Launch;
use crate::thread::Thread;

/// The first parameter of a kernel.
///
/// # Safety
///
/// The constants describe the blocks for which `enter` is sound.
#[diagnostic::on_unimplemented(
    message = "the first parameter of a kernel is a `Thread` or a `Block`, not `{Self}`",
    label = "expected `Thread` or `Block<X, Y, Z>`",
    note = "`Thread`: code of each thread, for element-wise kernels; `Block<256>`: code of a block of 256 threads",
    note = "`Grid<Block<256>>`: code of a cooperative grid; `Cluster<Block<256>, 2>`: code of a cluster of two blocks"
)]
#[doc(hidden)]
pub unsafe trait Scope {
    /// The scope, for the lifetime of a launch.
    type In<'k>;

    /// The dimensions of a block.
    const BLOCK: [u32; 3];

    /// The dimensions of a cluster, or zeros if the kernel requires none.
    const CLUSTER: [u32; 3] = [0; 3];

    /// `true` if all blocks of the grid wait for each other.
    const IS_COOPERATIVE: bool = false;

    /// The kind of code: 0 for threads, 1 for blocks, 2 for a grid and 3 for clusters.
    const KIND: u32;

    /// # Safety
    ///
    /// This is called once in each thread of a launch with blocks of these dimensions.
    unsafe fn enter(launch: &Launch) -> Self::In<'_>;
}

// SAFETY: a block with these dimensions.
unsafe impl<const X: u32, const Y: u32, const Z: u32> Scope for Block<X, Y, Z> {
    type In<'k> = Block<X, Y, Z>;

    const BLOCK: [u32; 3] = {
        // Evaluates the limits.
        assert!(Block::<X, Y, Z>::THREADS > 0);
        [X, Y, Z]
    };
    const KIND: u32 = 1;

    #[inline(always)]
    unsafe fn enter(_: &Launch) -> Block<X, Y, Z> {
        // SAFETY: the kernel calls this once in each thread, in blocks of these dimensions.
        unsafe { Block::new() }
    }
}

// SAFETY: a cooperative grid of blocks with these dimensions.
unsafe impl<const X: u32, const Y: u32, const Z: u32> Scope for Grid<Block<X, Y, Z>> {
    type In<'k> = Grid<Block<X, Y, Z>>;

    const BLOCK: [u32; 3] = <Block<X, Y, Z> as Scope>::BLOCK;
    const IS_COOPERATIVE: bool = true;
    const KIND: u32 = 2;

    #[inline(always)]
    unsafe fn enter(_: &Launch) -> Self {
        // SAFETY: the kernel calls this once in each thread, in a cooperative grid of such blocks.
        unsafe { Grid::new() }
    }
}

// SAFETY: blocks and clusters with these dimensions.
unsafe impl<const X: u32, const Y: u32, const Z: u32, const CX: u32, const CY: u32, const CZ: u32>
    Scope for Cluster<Block<X, Y, Z>, CX, CY, CZ>
{
    type In<'k> = Cluster<Block<X, Y, Z>, CX, CY, CZ>;

    const BLOCK: [u32; 3] = <Block<X, Y, Z> as Scope>::BLOCK;
    const CLUSTER: [u32; 3] = {
        // Evaluates the limits.
        assert!(Self::BLOCKS > 0);
        [CX, CY, CZ]
    };
    const KIND: u32 = 3;

    #[inline(always)]
    unsafe fn enter(_: &Launch) -> Self {
        // SAFETY: the kernel calls this once in each thread, in clusters of these dimensions.
        unsafe { Cluster::new() }
    }
}

/// The number of threads in a block of an element-wise kernel.
pub(crate) const ELEMENT_WISE_BLOCK: u32 = 256;

// SAFETY: the dimensions are those of a block of an element-wise kernel.
unsafe impl Scope for Thread {
    type In<'k> = Thread;

    const BLOCK: [u32; 3] = [ELEMENT_WISE_BLOCK, 1, 1];
    const KIND: u32 = 0;

    #[inline(always)]
    unsafe fn enter(_: &Launch) -> Thread {
        // SAFETY: the kernel calls this once in each thread, in blocks of this size.
        unsafe { Thread::new::<ELEMENT_WISE_BLOCK, 1, 1>() }
    }
}
