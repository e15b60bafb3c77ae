//! Clusters of blocks, and distributed shared memory.

use bytemuck::{AnyBitPattern, Pod};

use crate::atomic::{Atomic, AtomicNumber, ClusterScope, DeviceScope, MemoryScope, SystemScope};
use crate::block::{Block, BlockCodeOnly};
use crate::blocks::code_of_blocks;
use crate::intrinsics as device;
use crate::shared::{Shared, SharedType};
use crate::tile::Tile;

/// The blocks of a cluster, which execute the same code with the same values. Needs compute
/// capability 9.0.
///
/// `Cluster<Block<256>, 2>` is the first parameter of a kernel with clusters of two blocks of 256
/// threads (`__cluster_dims__(2, 1, 1)`). The model is that of a [`Block`], one level up: **code of
/// the cluster** has the same values in all blocks of the cluster, and closures run code of blocks
/// ([`Cluster::blocks`]) and of threads ([`Cluster::threads`]).
///
/// The blocks read the [`Shared`] memory of each other between two cluster barriers
/// ([`Shared::cluster_synced`]):
///
/// ```
/// # use curium_kernel::prelude::*;
/// /// The sum of 512 elements, by two blocks of 256 threads.
/// #[kernel]
/// pub fn sums(
///     cluster: Cluster<Block<256>, 2>,
///     mut scratch: Scratch<f32>,
///     mut partial: Shared<[f32; 1]>,
///     x: &[f32],
///     mut y: PerBlock<f32>,
/// ) {
///     cluster.blocks_with((&mut scratch, &mut partial), |block, (scratch, partial)| {
///         let own = block.threads(|t| x.get(t.index_in_grid()).copied().unwrap_or(0.0));
///         let sum = block.sum(&own, scratch);
///         partial.fill(block, |_, _| sum);
///     });
///     partial.cluster_synced(&cluster, |partial| {
///         let sum = partial.block(0)[0] + partial.block(1)[0];
///         cluster.blocks_with(&mut y, |block, y| y.set(block, sum));
///     });
/// }
/// ```
///
/// The grid is a multiple of the cluster. `suggested_blocks` of the kernel returns the number of
/// blocks of all clusters that are resident at the same time.
#[doc(alias = "cluster_group")]
#[doc(alias = "this_cluster")]
#[doc(alias = "__cluster_dims__")]
pub struct Cluster<B, const CX: u32, const CY: u32 = 1, const CZ: u32 = 1> {
    _block: core::marker::PhantomData<B>,
    _not_sync: BlockCodeOnly,
}

code_of_blocks!([const CX: u32, const CY: u32, const CZ: u32] Cluster<Block<X, Y, Z>, CX, CY, CZ>);

impl<B, const CX: u32, const CY: u32, const CZ: u32> Cluster<B, CX, CY, CZ> {
    /// The number of blocks in the cluster.
    pub const BLOCKS: usize = {
        assert!(
            CX > 0 && CY > 0 && CZ > 0 && CX as u64 * CY as u64 * CZ as u64 <= 8,
            "a cluster has 1 to 8 blocks"
        );
        (CX * CY * CZ) as usize
    };
}

impl<const X: u32, const Y: u32, const Z: u32, const CX: u32, const CY: u32, const CZ: u32>
    Cluster<Block<X, Y, Z>, CX, CY, CZ>
{
    /// # Safety
    ///
    /// The kernel is launched with blocks and clusters of these dimensions, and calls this once in
    /// each thread.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        const { assert!(Block::<X, Y, Z>::THREADS > 0 && Self::BLOCKS > 0) };
        Self {
            _block: core::marker::PhantomData,
            _not_sync: BlockCodeOnly::NEW,
        }
    }

    /// Returns the index of the cluster along x.
    #[doc(alias = "clusterIdx")]
    #[inline(always)]
    #[must_use]
    pub fn index_x(&self) -> usize {
        // SAFETY: reads a special register, which is the same in all threads of the cluster.
        unsafe { device::clusterid_x() as usize }
    }

    /// Returns the index of the cluster along y.
    #[inline(always)]
    #[must_use]
    pub fn index_y(&self) -> usize {
        // SAFETY: reads a special register, which is the same in all threads of the cluster.
        unsafe { device::clusterid_y() as usize }
    }

    /// Returns the index of the cluster along z.
    #[inline(always)]
    #[must_use]
    pub fn index_z(&self) -> usize {
        // SAFETY: reads a special register, which is the same in all threads of the cluster.
        unsafe { device::clusterid_z() as usize }
    }

    /// Returns the dimensions of the grid in blocks: `gridDim`.
    #[doc(alias = "gridDim")]
    #[inline(always)]
    #[must_use]
    pub fn grid(&self) -> [usize; 3] {
        // SAFETY: all threads of each block run this, in a launch with these dimensions.
        unsafe { Block::<X, Y, Z>::new() }.grid()
    }

    /// Waits until all threads of the cluster have arrived. Their writes before it are visible to
    /// all threads of the cluster after it.
    #[inline(always)]
    pub(crate) fn barrier(&self) {
        // SAFETY: all threads of the cluster get here, because code of the cluster depends only on
        // values that they have in common.
        unsafe { device::cluster_barrier() };
    }
}

impl<const X: u32, const Y: u32, const Z: u32> Block<X, Y, Z> {
    /// Returns the index of the block in its cluster, and 0 without clusters. Needs compute
    /// capability 9.0.
    #[doc(alias = "cluster_ctarank")]
    #[doc(alias = "block_rank")]
    #[inline(always)]
    #[must_use]
    pub fn index_in_cluster(&self) -> usize {
        // SAFETY: reads a special register, which is the same in all threads of the block.
        unsafe { device::cluster_ctarank() as usize }
    }
}

/// Types of shared memory that the other blocks of a cluster can access.
///
/// # Safety
///
/// All threads of a cluster may access the type through `&` at the same time.
#[diagnostic::on_unimplemented(
    message = "the other blocks of a cluster cannot access `{Self}`",
    label = "not a type of distributed shared memory",
    note = "atomics need a scope that includes the cluster: `Atomic<T, ClusterScope>` in place of `Atomic<T, BlockScope>` and `Counters`"
)]
pub unsafe trait ClusterType: SharedType {}

// SAFETY: the type has no interior mutability.
unsafe impl<T: AnyBitPattern, const N: usize> ClusterType for [T; N] {}

// SAFETY: the type has no interior mutability.
unsafe impl<T: Pod, const ROWS: usize, const COLUMNS: usize, const PADDING: usize> ClusterType
    for Tile<T, ROWS, COLUMNS, PADDING>
{
}

/// A scope that includes all threads of a cluster. The trait is sealed by [`MemoryScope`].
pub trait AtLeastClusterScope: MemoryScope {}

impl AtLeastClusterScope for ClusterScope {}
impl AtLeastClusterScope for DeviceScope {}
impl AtLeastClusterScope for SystemScope {}

// SAFETY: all accesses through `&` are atomic for the threads of a cluster.
unsafe impl<T: AtomicNumber, S: AtLeastClusterScope, const N: usize> ClusterType
    for [Atomic<T, S>; N]
{
}

/// The shared memory of all blocks of a cluster, which nobody writes except atomically. See
/// [`Shared::cluster_synced`].
pub struct ClusterView<'a, T> {
    /// The memory of the running block.
    own: &'a T,
    blocks: usize,
}

impl<'a, T: ClusterType> ClusterView<'a, T> {
    /// Returns the memory of the block with this index in the cluster (distributed shared memory).
    ///
    /// PTX: `mapa`.
    ///
    /// # Panics
    ///
    /// If the cluster has no such block.
    #[doc(alias = "map_shared_rank")]
    #[doc(alias = "mapa")]
    #[inline(always)]
    #[must_use]
    pub fn block(&self, index: usize) -> &'a T {
        assert!(index < self.blocks, "the cluster has no such block");
        let address = core::ptr::from_ref(self.own) as usize as u64;
        // SAFETY: the block exists.
        let address = unsafe { device::map_shared(address, index as u32) };
        // SAFETY: the variable has the same offset in the memory of each block. All blocks have
        // arrived at a cluster barrier, none writes the memory before the next one, and none exits
        // before it.
        unsafe { &*(address as usize as *const T) }
    }

    /// Returns the memory of each block of the cluster, in the order of their indices.
    #[inline(always)]
    pub fn blocks(&self) -> impl Iterator<Item = &'a T> + use<'a, '_, T> {
        (0..self.blocks).map(|index| self.block(index))
    }
}

impl<T> Clone for ClusterView<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ClusterView<'_, T> {}

impl<T: ClusterType> Shared<T> {
    /// Lets all threads of a cluster access the memory of all its blocks: a cluster barrier, then
    /// `code` with the shared view, then another cluster barrier (`cluster.sync()`).
    ///
    /// `code` is code of the cluster. What it reads of a block is the same in all blocks. Arrays of
    /// `Atomic<T, ClusterScope>` can be changed through the view, by code of threads.
    ///
    /// PTX: `barrier.cluster.arrive.release`, `barrier.cluster.wait.acquire`.
    #[doc(alias = "cluster.sync")]
    #[doc(alias = "cluster_group::sync")]
    #[inline(always)]
    pub fn cluster_synced<
        const X: u32,
        const Y: u32,
        const Z: u32,
        const CX: u32,
        const CY: u32,
        const CZ: u32,
        R,
    >(
        &mut self,
        cluster: &Cluster<Block<X, Y, Z>, CX, CY, CZ>,
        code: impl for<'v> FnOnce(ClusterView<'v, T>) -> R,
    ) -> R {
        cluster.barrier();
        let view = ClusterView {
            // SAFETY: any bytes are a `T`. The memory is borrowed mutably in the code of the
            // cluster, which is the same in all its blocks, so no thread of the cluster writes it
            // until the second barrier.
            own: unsafe { &*self.as_ptr() },
            blocks: Cluster::<Block<X, Y, Z>, CX, CY, CZ>::BLOCKS,
        };
        let result = code(view);
        cluster.barrier();
        result
    }
}
