//! Blocks.

use crate::intrinsics as device;
use crate::operand::{ThreadOperand, WarpOperand};
use crate::registers::Registers;
use crate::thread::{self, Thread};
use crate::warp::{PerWarp, Warp};

/// The threads of a block, which execute the same code with the same values.
///
/// The dimensions are those of CUDA's `dim3`: `X` threads along x, `Y` along y and `Z` along z.
/// Neighboring threads along x are in the same warp, so x is usually the column of a matrix and y
/// its row.
pub struct Block<const X: u32, const Y: u32 = 1, const Z: u32 = 1> {
    _not_sync: BlockCodeOnly,
}

/// The reason why a type is not `Sync`, as errors name it: its operations belong to code of a
/// block, or of a warp.
pub(crate) struct BlockCodeOnly {
    _not_sync: [&'static dyn NotForCodeOfSingleThreads; 0],
}

impl BlockCodeOnly {
    pub(crate) const NEW: Self = Self { _not_sync: [] };
}

/// Operations that all threads of a block or a warp execute together.
pub(crate) trait NotForCodeOfSingleThreads {}

/// The reason why a token of a single thread is not `Sync`, as errors name it.
pub(crate) struct ThreadCodeOnly {
    _not_sync: [&'static dyn OnlyForCodeOfOneThread; 0],
}

impl ThreadCodeOnly {
    pub(crate) const NEW: Self = Self { _not_sync: [] };
}

/// Operations of one thread, in its own code.
pub(crate) trait OnlyForCodeOfOneThread {}

impl<const X: u32, const Y: u32, const Z: u32> Block<X, Y, Z> {
    /// The number of threads in the block.
    pub const THREADS: usize = {
        assert!(
            X > 0 && Y > 0 && Z > 0 && Z <= 64 && X as u64 * Y as u64 * Z as u64 <= 1024,
            "a block has 1 to 1024 threads, and at most 64 along z"
        );
        (X * Y * Z) as usize
    };

    /// The number of warps in the block.
    pub(crate) const WARPS: usize = {
        assert!(
            Self::THREADS.is_multiple_of(32),
            "operations of warps need a block whose number of threads is a multiple of 32"
        );
        Self::THREADS / 32
    };

    /// # Safety
    ///
    /// The kernel is launched with blocks of these dimensions, and calls this once in each thread.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        const { assert!(Self::THREADS > 0) };
        Self {
            _not_sync: BlockCodeOnly::NEW,
        }
    }

    /// Returns the index of the block in a grid along x. The same as [`Block::index_x`].
    #[inline(always)]
    #[must_use]
    pub fn index(&self) -> usize {
        thread::block_index()
    }

    /// Returns `blockIdx.x`.
    #[doc(alias = "blockIdx")]
    #[inline(always)]
    #[must_use]
    pub fn index_x(&self) -> usize {
        thread::block_index()
    }

    /// Returns `blockIdx.y`.
    #[inline(always)]
    #[must_use]
    pub fn index_y(&self) -> usize {
        // SAFETY: reads a special register, which is the same in all threads of the block.
        unsafe { device::ctaid_y() as usize }
    }

    /// Returns `blockIdx.z`.
    #[inline(always)]
    #[must_use]
    pub fn index_z(&self) -> usize {
        // SAFETY: reads a special register, which is the same in all threads of the block.
        unsafe { device::ctaid_z() as usize }
    }

    /// Returns the dimensions of the grid in blocks: `gridDim`.
    #[doc(alias = "gridDim")]
    #[inline(always)]
    #[must_use]
    pub fn grid(&self) -> [usize; 3] {
        // SAFETY: reads a special register, which is the same in all threads.
        let x = unsafe { device::nctaid_x() };
        // SAFETY: reads a special register, which is the same in all threads.
        let y = unsafe { device::nctaid_y() };
        // SAFETY: reads a special register, which is the same in all threads.
        let z = unsafe { device::nctaid_z() };
        [x as usize, y as usize, z as usize]
    }

    /// Runs code in each thread. No barrier.
    ///
    /// The closure is `Fn + Sync`, so that nothing that differs between threads reaches code of the
    /// block, except in [`Registers`].
    #[inline(always)]
    pub fn threads<R>(&self, code: impl Fn(&Thread) -> R + Sync) -> Registers<R> {
        // SAFETY: this runs once in each thread.
        Registers(code(&unsafe { self.thread() }))
    }

    /// Runs code in each thread, which receives its part of the operands. No barrier.
    ///
    /// Operands are `&Registers<T>` and `&mut Registers<T>`, shared memory and outputs by `&mut`,
    /// and tuples of them.
    #[inline(always)]
    pub fn threads_with<A: ThreadOperand<X, Y, Z>, R>(
        &self,
        operands: A,
        code: impl Fn(&Thread, A::Part) -> R + Sync,
    ) -> Registers<R> {
        // SAFETY: this runs once in each thread, and the operands are borrowed while the part
        // exists.
        let part = unsafe { operands.thread_part() };
        // SAFETY: this runs once in each thread.
        Registers(code(&unsafe { self.thread() }, part))
    }

    /// Runs code in each warp. No barrier.
    #[inline(always)]
    pub fn warps<R>(&self, code: impl Fn(&Warp) -> R + Sync) -> PerWarp<R> {
        // SAFETY: all lanes of each warp run this.
        PerWarp(code(&unsafe { self.warp() }))
    }

    /// Runs code in each warp, which receives its part of the operands. No barrier.
    ///
    /// Operands are `&Registers<T>` and `&mut Registers<T>`, which become [`Lanes`](crate::Lanes),
    /// `&PerWarp<T>`, `&mut PerWarp<T>`, `&mut PerWarpTile<…>`, and tuples of them.
    #[inline(always)]
    pub fn warps_with<A: WarpOperand<X, Y, Z>, R>(
        &self,
        operands: A,
        code: impl Fn(&Warp, A::Part) -> R + Sync,
    ) -> PerWarp<R> {
        // SAFETY: all lanes of each warp run this, and the operands are borrowed while the part
        // exists.
        let part = unsafe { operands.warp_part() };
        // SAFETY: all lanes of each warp run this.
        PerWarp(code(&unsafe { self.warp() }, part))
    }

    /// Waits for all threads of the block (`__syncthreads()`). Their accesses before it happen
    /// before those after it.
    ///
    /// Memory that threads own or share needs no such barrier, because
    /// [`Synced::synced`](crate::Synced::synced) has them. Atomic numbers in shared memory need it
    /// where all threads have to see what all have stored.
    #[doc(alias = "__syncthreads")]
    #[inline(always)]
    pub fn sync(&self) {
        self.barrier();
    }

    /// Returns `true` if the condition holds in any thread. One barrier.
    #[doc(alias = "__syncthreads_or")]
    #[inline(always)]
    #[must_use]
    pub fn any(&self, condition: &Registers<bool>) -> bool {
        // SAFETY: all threads of the block get here, and the barrier returns the same result to
        // each.
        unsafe { device::barrier_or(u32::from(condition.0)) != 0 }
    }

    /// Returns `true` if the condition holds in all threads. One barrier.
    #[doc(alias = "__syncthreads_and")]
    #[inline(always)]
    #[must_use]
    pub fn all(&self, condition: &Registers<bool>) -> bool {
        // SAFETY: all threads of the block get here, and the barrier returns the same result to
        // each.
        unsafe { device::barrier_and(u32::from(condition.0)) != 0 }
    }

    /// Returns the number of threads in which the condition holds. One barrier.
    #[doc(alias = "__syncthreads_count")]
    #[inline(always)]
    #[must_use]
    pub fn count(&self, condition: &Registers<bool>) -> usize {
        // SAFETY: all threads of the block get here, and the barrier returns the same result to
        // each.
        unsafe { device::barrier_count(u32::from(condition.0)) as usize }
    }

    /// # Safety
    ///
    /// The code that receives the thread runs once in each thread.
    #[inline(always)]
    pub(crate) unsafe fn thread(&self) -> Thread {
        // SAFETY: the block has these dimensions, and the caller guarantees the rest.
        unsafe { Thread::new::<X, Y, Z>() }
    }

    /// # Safety
    ///
    /// The code that receives the warp runs in all lanes of each warp.
    #[inline(always)]
    unsafe fn warp(&self) -> Warp {
        const { assert!(Self::WARPS > 0) };
        // SAFETY: the caller guarantees it.
        unsafe { Warp::new(self.index_in_block()) }
    }

    /// Returns the index of the running thread. The caller must not pass it to code of the block.
    #[inline(always)]
    pub(crate) fn index_in_block(&self) -> usize {
        // SAFETY: the block has these dimensions.
        unsafe { thread::index_in_block::<X, Y, Z>() }
    }

    #[inline(always)]
    pub(crate) fn barrier(&self) {
        // SAFETY: all threads of the block get here, because code of a block depends only on values
        // that they have in common.
        unsafe { device::barrier(0) }
    }
}
