//! Barriers in shared memory (mbarrier), whose phases are types.

use core::cell::UnsafeCell;

use crate::block::{Block, BlockCodeOnly};
use crate::intrinsics as device;
use crate::shared::{Shared, SharedType};
use crate::synced::Synced;
use crate::tma::{LoadTarget, RingStage, fence_proxy_async};

/// The memory of a [`Barrier`], as a parameter: `Shared<Mbarrier>`.
#[repr(transparent)]
pub struct Mbarrier {
    _bits: UnsafeCell<u64>,
}

// SAFETY: there is no access through `&`.
unsafe impl Sync for Mbarrier {}

// SAFETY: there is no access through `&`, and any bytes are a `u64`.
unsafe impl SharedType for Mbarrier {}

/// A barrier in shared memory (`cuda::barrier`), at which no thread has arrived in the current
/// phase. Needs compute capability 9.0.
///
/// A phase is a sequence of types: [`Barrier::arrive`] consumes the `Barrier` and returns an
/// [`Arrived`], and [`Arrived::synced`] waits and returns the `Barrier` of the next phase. Memory
/// that is passed to `arrive` is borrowed until then. So no thread arrives twice in a phase, waits
/// for a wrong phase, or reads before the wait.
///
/// Between `arrive` and `synced` a block does other work, while slower threads catch up:
///
/// ```
/// # use curium_kernel::prelude::*;
/// #[kernel]
/// pub fn kernel(
///     block: Block<256>,
///     barrier: Shared<Mbarrier>,
///     mut tile: Shared<[u32; 256]>,
///     x: &[u32],
///     mut y: PerThread<u32>,
/// ) {
///     let barrier = barrier.init(&block);
///     tile.fill(&block, |t, _| x[t.index_in_grid()]);
///     let arrived = barrier.arrive(&block, &mut tile);
///     let other = block.threads(|t| x[t.index_in_grid()].count_ones());
///     arrived.synced(&block, |tile| {
///         block.threads_with((&mut y, &other), |t, (y, other)| {
///             if let Some(y) = y.first() {
///                 *y = tile[255 - t.index_in_block()] + *other;
///             }
///         });
///     });
/// }
/// ```
#[doc(alias = "cuda::barrier")]
#[must_use = "a barrier that is dropped cannot be used again"]
pub struct Barrier<const X: u32, const Y: u32 = 1, const Z: u32 = 1> {
    /// The address in shared memory.
    address: u32,
    /// The parity of the current phase.
    parity: u32,
    _not_sync: BlockCodeOnly,
}

/// A phase of a [`Barrier`] at which all threads arrive. The memory `M` is borrowed until
/// [`Arrived::synced`].
#[must_use = "without `synced` nobody waits for the phase"]
pub struct Arrived<M, const X: u32, const Y: u32 = 1, const Z: u32 = 1> {
    barrier: Barrier<X, Y, Z>,
    memory: M,
}

impl Shared<Mbarrier> {
    /// Initializes the barrier, for all threads of the block. One barrier (`__syncthreads`).
    ///
    /// PTX: `mbarrier.init`, `fence.mbarrier_init`.
    #[inline(always)]
    pub fn init<const X: u32, const Y: u32, const Z: u32>(
        self,
        block: &Block<X, Y, Z>,
    ) -> Barrier<X, Y, Z> {
        // SAFETY: the memory is in shared memory.
        let address = unsafe { device::shared_address(self.as_ptr() as usize as u64) };
        if block.index_in_block() == 0 {
            // SAFETY: the memory belongs to this value, which is consumed, so it is initialized
            // once.
            unsafe { init(address, Block::<X, Y, Z>::THREADS as u32) };
        }
        block.barrier();
        Barrier {
            address,
            parity: 0,
            _not_sync: BlockCodeOnly::NEW,
        }
    }
}

impl<const X: u32, const Y: u32, const Z: u32> Barrier<X, Y, Z> {
    /// Arrives at the barrier, in each thread, without waiting for the others.
    ///
    /// `memory` is `&mut Shared<…>`, or a tuple of up to four of them: what the threads wrote to it
    /// before is what [`Arrived::synced`] shows to all. It is `()` if there is none.
    ///
    /// PTX: `mbarrier.arrive`.
    #[inline(always)]
    pub fn arrive<M: Synced>(self, _: &Block<X, Y, Z>, memory: M) -> Arrived<M, X, Y, Z> {
        // SAFETY: the barrier was initialized for all threads of the block, and the type guarantees
        // that each arrives once in a phase.
        unsafe { device::mbarrier_arrive(self.address) };
        Arrived {
            barrier: self,
            memory,
        }
    }

    /// Copies boxes of tensors to tiles (TMA), runs `during` while the copies go on, waits for
    /// them, and runs `code` with the tiles. A barrier stands before, and another after.
    ///
    /// `tiles` is a tile in shared memory or a tuple of tiles, and `sources` are their boxes, such
    /// as `map.at(row, column)`.
    ///
    /// PTX: `mbarrier.arrive.expect_tx`, `cp.async.bulk.tensor`, `mbarrier.try_wait`.
    #[doc(alias = "cp.async.bulk.tensor")]
    #[doc(alias = "expect_tx")]
    #[inline(always)]
    pub fn load<L: LoadTarget, R>(
        mut self,
        block: &Block<X, Y, Z>,
        tiles: L,
        sources: <L::Stage as RingStage>::Sources<'_>,
        during: impl FnOnce(),
        code: impl for<'v> FnOnce(<L::Stage as RingStage>::View<'v>) -> R,
    ) -> (Self, R) {
        let addresses = tiles.addresses();
        // What the threads wrote to the tiles comes before the copies.
        fence_proxy_async();
        block.barrier();
        if block.index_in_block() == 0 {
            // SAFETY: the barrier was initialized for all threads of the block, and each arrives
            // once.
            unsafe { device::mbarrier_arrive_expect(self.address, L::Stage::COPIED_BYTES) };
            // SAFETY: the tiles are borrowed mutably, all threads have finished with them, and wait
            // for the copies below.
            unsafe { L::Stage::copy(addresses, self.address, sources) };
        } else {
            // SAFETY: the barrier was initialized for all threads of the block, and each arrives
            // once.
            unsafe { device::mbarrier_arrive(self.address) };
        }
        converge_warp();
        during();
        self.wait();
        // SAFETY: the copies are complete, and the tiles are borrowed until the barrier below.
        let result = code(unsafe { L::Stage::view(addresses) });
        block.barrier();
        (self, result)
    }

    /// Waits for the end of the current phase, and enters the next one.
    #[inline(always)]
    fn wait(&mut self) {
        // SAFETY: all threads have arrived or will arrive, because code of the block is the same in
        // all of them.
        unsafe { device::mbarrier_wait(self.address, self.parity) };
        converge_warp();
        self.parity ^= 1;
    }
}

impl<M: Synced, const X: u32, const Y: u32, const Z: u32> Arrived<M, X, Y, Z> {
    /// Waits until all threads have arrived, runs `code` with a shared view of the memory, and ends
    /// with a barrier (`__syncthreads`).
    ///
    /// Returns the barrier of the next phase, and the result of `code`.
    ///
    /// PTX: `mbarrier.try_wait`.
    #[inline(always)]
    pub fn synced<R>(
        self,
        block: &Block<X, Y, Z>,
        code: impl for<'v> FnOnce(M::View<'v>) -> R,
    ) -> (Barrier<X, Y, Z>, R) {
        let mut barrier = self.barrier;
        barrier.wait();
        // SAFETY: all threads have arrived after their last write. The memory was borrowed since,
        // and is until the barrier below.
        let result = code(unsafe { self.memory.view() });
        block.barrier();
        (barrier, result)
    }
}

/// Initializes a barrier, and makes it known to asynchronous copies.
///
/// # Safety
///
/// The memory is in shared memory, is not in use as a barrier, and a block barrier follows before
/// its first use.
#[inline(always)]
pub(crate) unsafe fn init(address: u32, count: u32) {
    // SAFETY: the caller guarantees the memory.
    unsafe { device::mbarrier_init(address, count) };
    // SAFETY: a fence has no requirements.
    unsafe { device::fence_mbarrier_init() };
}

/// Waits until all lanes of the warp get here, after code of one of them.
#[inline(always)]
pub(crate) fn converge_warp() {
    // SAFETY: all lanes get here, because the callers are code of the block or of the warp.
    unsafe { device::warp_sync(crate::warp::ALL) };
}
