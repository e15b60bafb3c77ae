//! Cooperative grids.

use bytemuck::AnyBitPattern;

use crate::address::Address;
use crate::atomic::{AtomicNumber, DEVICE, device_fence};
use crate::block::{Block, BlockCodeOnly};
use crate::blocks::{code_of_blocks, handles};
use crate::elements::Elements;
use crate::intrinsics as device;
use crate::launch::Launch;
use crate::operand::ThreadOperand;
use crate::parameter::{Description, GridRule, Kind, Parameter, Word};
use crate::thread::Thread;

/// The blocks of a cooperative grid, which execute the same code with the same values.
///
/// `Grid<Block<256>>` is the first parameter of a kernel whose blocks wait for each other
/// (`cooperative_groups::this_grid()`). The model is that of a [`Block`], one level up: **code of
/// the grid** has the same values in all blocks, and closures run code of blocks ([`Grid::blocks`])
/// and of threads ([`Grid::threads`]). A grid barrier stands in code of the grid only, so all
/// blocks reach it.
///
/// ```
/// # use curium_kernel::prelude::*;
/// /// Steps of a diffusion along a line, in one launch.
/// #[kernel]
/// pub fn diffuse(
///     grid: Grid<Block<256>>,
///     steps: u32,
///     mut even: GridShared<f32>,
///     mut odd: GridShared<f32>,
/// ) {
///     let (mut current, mut next) = (&mut even, &mut odd);
///     for _ in 0..steps {
///         current.synced(&grid, |current| {
///             grid.threads_with(&mut *next, |_, elements| {
///                 for (i, element) in elements {
///                     let left = current[i.saturating_sub(1)];
///                     let right = current[(i + 1).min(current.len() - 1)];
///                     *element = 0.25 * left + 0.5 * current[i] + 0.25 * right;
///                 }
///             });
///         });
///         core::mem::swap(&mut current, &mut next);
///     }
/// }
/// ```
///
/// All blocks of the grid are resident at the same time: the launch fails if the grid is too large,
/// and names the maximum. `suggested_blocks` of the kernel returns that maximum.
#[doc(alias = "grid_group")]
#[doc(alias = "this_grid")]
pub struct Grid<B> {
    _block: core::marker::PhantomData<B>,
    _not_sync: BlockCodeOnly,
}

/// A buffer that the threads of a cooperative grid own together.
///
/// The thread with index `t` in the grid owns the elements `t`, `t + threads_in_grid`, … All
/// threads of the grid read all elements only within [`GridShared::synced`]. It is
/// [`Shared`](crate::Shared) memory, one level up.
///
/// Code of the grid may decide by what it reads:
///
/// ```
/// # use curium_kernel::prelude::*;
/// /// Doubles the elements until one is above the limit.
/// #[kernel]
/// pub fn double(grid: Grid<Block<64>>, limit: u32, mut x: GridShared<u32>) {
///     while x.synced(&grid, |x| x.iter().all(|x| *x <= limit)) {
///         grid.threads_with(&mut x, |_, x| {
///             for (_, x) in x {
///                 *x *= 2;
///             }
///         });
///     }
/// }
/// ```
///
/// A launch passes `&mut buffer` or a mutable view. The elements have their previous values when
/// the kernel begins.
pub struct GridShared<T> {
    start: Address<T>,
    len: usize,
    _not_sync: BlockCodeOnly,
}

/// A buffer of which each block of a cooperative grid along x owns the element with its index.
///
/// All threads of the grid read all elements only within [`GridPerBlock::synced`]. It is a
/// [`PerBlock`](crate::PerBlock) whose elements the other blocks read, such as partial sums.
///
/// A launch passes `&mut buffer` or a mutable view. The elements have their previous values when
/// the kernel begins.
pub struct GridPerBlock<T> {
    start: Address<T>,
    len: usize,
    _not_sync: BlockCodeOnly,
}

/// The bit of the counter that changes when all blocks have arrived.
const PHASE: u32 = 1 << 31;

code_of_blocks!([] Grid<Block<X, Y, Z>>);

impl<const X: u32, const Y: u32, const Z: u32> Grid<Block<X, Y, Z>> {
    /// # Safety
    ///
    /// The kernel is launched cooperatively, with blocks of these dimensions, and calls this once
    /// in each thread.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        const { assert!(Block::<X, Y, Z>::THREADS > 0) };
        Self {
            _block: core::marker::PhantomData,
            _not_sync: BlockCodeOnly::NEW,
        }
    }

    /// Returns the dimensions of the grid in blocks: `gridDim`.
    #[doc(alias = "gridDim")]
    #[inline(always)]
    #[must_use]
    pub fn dimensions(&self) -> [usize; 3] {
        // SAFETY: all threads of each block run this, in a launch with these dimensions.
        unsafe { Block::<X, Y, Z>::new() }.grid()
    }

    /// Returns the number of threads in the grid.
    #[inline(always)]
    #[must_use]
    pub fn threads_in_grid(&self) -> usize {
        let [x, y, z] = self.dimensions();
        x * y * z * Self::THREADS
    }

    /// Waits until all threads of the grid have arrived. Their writes before it are visible to all
    /// threads after it.
    ///
    /// The counter is that of CUDA's cooperative groups: the driver reserves it for cooperative
    /// launches, initially zero. The first block adds 2³¹ - (blocks - 1) and every other block 1,
    /// so that the sum of one round is 2³¹: the highest bit changes when the last block arrives,
    /// and the other bits are zero again.
    #[inline(always)]
    pub(crate) fn barrier(&self) {
        // SAFETY: all threads of the block get here, because code of the grid depends only on
        // values that they have in common.
        unsafe { device::barrier(0) };
        // SAFETY: the block has these dimensions.
        if unsafe { crate::thread::index_in_block::<X, Y, Z>() } == 0 {
            // SAFETY: this is a cooperative launch, and all blocks get here.
            unsafe { self.arrive_and_wait() };
        }
        // SAFETY: all threads of the block get here.
        unsafe { device::barrier(0) };
    }

    /// # Safety
    ///
    /// One thread of each block calls this, in a cooperative launch.
    #[inline(always)]
    unsafe fn arrive_and_wait(&self) {
        // SAFETY: reads special registers.
        let workspace = unsafe { device::grid_workspace() };
        // The size of the workspace comes first.
        let counter = (workspace as usize as *mut u32).wrapping_add(1);
        let [x, y, z] = self.dimensions();
        let blocks = (x * y * z) as u32;
        // SAFETY: reads a special register.
        let block_x = unsafe { device::ctaid_x() };
        // SAFETY: reads a special register.
        let block_y = unsafe { device::ctaid_y() };
        // SAFETY: reads a special register.
        let block_z = unsafe { device::ctaid_z() };
        let is_first = block_x | block_y | block_z == 0;
        let arrival = if is_first {
            PHASE.wrapping_sub(blocks - 1)
        } else {
            1
        };
        device_fence();
        // SAFETY: the driver reserved the counter, which all blocks access atomically.
        let before = unsafe { u32::fetch_add(counter, arrival, DEVICE) };
        // SAFETY: the driver reserved the counter, which all blocks access atomically.
        while (unsafe { u32::load(counter, DEVICE) } ^ before) & PHASE == 0 {}
        device_fence();
    }
}

/// Implements a buffer whose elements all threads of a grid read after a grid barrier.
macro_rules! buffer {
    ($buffer:ident) => {
        // SAFETY: the launcher passes memory of that many elements, which is borrowed mutably, so
        // that only this launch accesses it, and a grid along x, whose threads have different
        // indices. Threads exchange elements, so the pointer is not exclusive.
        unsafe impl<T: AnyBitPattern> Parameter for $buffer<T> {
            type In<'k> = $buffer<T>;
            type First = *mut T;
            type Second = usize;
            type Third = ();

            const DESCRIPTION: Description = Description::new::<T>(
                Kind::$buffer,
                [Word::pointer::<T>(), Word::value::<usize>(), Word::ABSENT],
            )
            .on(GridRule::Line);

            #[inline(always)]
            unsafe fn from_words(_: &Launch, start: *mut T, len: usize, (): ()) -> $buffer<T> {
                $buffer {
                    start: Address(start),
                    len,
                    _not_sync: BlockCodeOnly::NEW,
                }
            }
        }

        impl<T: AnyBitPattern> $buffer<T> {
            /// Returns the number of elements of the buffer.
            #[inline(always)]
            #[must_use]
            pub fn len(&self) -> usize {
                self.len
            }

            /// Returns `true` if the buffer has no elements.
            #[inline(always)]
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// Lets all threads of the grid read the memory: a grid barrier, then `code` with a
            /// shared view, then another grid barrier (`grid.sync()`).
            ///
            /// `code` is code of the grid. What it reads is the same in all blocks, so it may
            /// decide by it.
            #[doc(alias = "grid.sync")]
            #[doc(alias = "grid_group::sync")]
            #[inline(always)]
            pub fn synced<const X: u32, const Y: u32, const Z: u32, R>(
                &mut self,
                grid: &Grid<Block<X, Y, Z>>,
                code: impl FnOnce(&[T]) -> R,
            ) -> R {
                grid.barrier();
                // SAFETY: any bytes are a `T`. The memory is borrowed mutably in the code of the
                // grid, which is the same in all blocks, so no thread of the grid writes it until
                // the second barrier.
                let view = unsafe { core::slice::from_raw_parts(self.start.0, self.len) };
                let result = code(view);
                grid.barrier();
                result
            }
        }
    };
}

buffer!(GridShared);
buffer!(GridPerBlock);

impl<T: AnyBitPattern> GridShared<T> {
    /// Writes each element, in the thread that owns it. No barrier.
    #[inline(always)]
    pub fn fill<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        grid: &Grid<Block<X, Y, Z>>,
        value: impl Fn(&Thread, usize) -> T + Sync,
    ) {
        grid.threads_with(self, |t, elements| {
            for (index, element) in elements {
                *element = value(t, index);
            }
        });
    }
}

// SAFETY: threads of a grid along x own different elements, by their index modulo the number of
// threads of the grid.
unsafe impl<'a, T, const X: u32, const Y: u32, const Z: u32> ThreadOperand<X, Y, Z>
    for &'a mut GridShared<T>
{
    type Part = Elements<'a, T>;

    #[inline(always)]
    unsafe fn thread_part(self) -> Elements<'a, T> {
        // SAFETY: the caller guarantees the dimensions.
        let thread = unsafe { Thread::new::<X, Y, Z>() };
        // SAFETY: the memory is borrowed mutably, and other threads own other elements.
        unsafe { Elements::in_grid(self.start.0, self.len, &thread) }
    }
}

handles! {
    [T: AnyBitPattern] GridShared<T>, "Threads of different blocks own different elements.";
    [T: AnyBitPattern] GridPerBlock<T>, "Blocks own different elements.";
}

impl<T: AnyBitPattern> GridPerBlock<T> {
    /// Writes the element of the block, unless it is out of bounds. One thread writes it.
    #[inline(always)]
    pub fn set<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        value: T,
    ) {
        let index = block.index_x();
        if block.index_in_block() == 0 && index < self.len {
            // SAFETY: the index is in bounds, and only this thread of this block writes the
            // element.
            unsafe { self.start.write(index, value) };
        }
    }
}
