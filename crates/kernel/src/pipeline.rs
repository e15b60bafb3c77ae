//! Pipelines of asynchronous copies to shared memory.

use core::marker::PhantomData;

use bytemuck::Pod;

use crate::block::{Block, BlockCodeOnly};
use crate::cache::is_global;
use crate::matrix::Matrix;
use crate::ptx;
use crate::shared::{Shared, SharedType};
use crate::thread::Thread;
use crate::tile::{Tile, copy_async};
use crate::vector::U32x4;

/// Memory with stages, for [`Block::pipeline`]: `&mut Shared<[T; N]>`, and tuples of up to four of
/// them with the same `N`.
///
/// # Safety
///
/// `slots` and `views` are the memory of one stage. Different stages do not overlap, and nothing
/// else accesses the memory while the value exists.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory with stages",
    label = "expected `&mut Shared<[T; N]>`, or a tuple of them"
)]
pub unsafe trait Stages {
    /// The stage that is loaded next.
    type Slots<'s>;
    /// The stage that all threads read.
    type Views<'s>;

    /// The number of stages.
    const STAGES: usize;

    /// Returns the memory of a stage, to write it.
    ///
    /// # Safety
    ///
    /// The stage exists, and no thread reads it before a barrier after the last use of the slots.
    #[doc(hidden)]
    unsafe fn slots<'s>(&self, stage: usize) -> Self::Slots<'s>;

    /// Returns the memory of a stage, to read it.
    ///
    /// # Safety
    ///
    /// The stage exists, and no thread writes it for `'s`.
    #[doc(hidden)]
    unsafe fn views<'s>(&self, stage: usize) -> Self::Views<'s>;
}

/// A stage of a pipeline that is loaded: by one copy, or by values. See [`Block::pipeline`].
///
/// Loading consumes it, so that no element is written by two threads.
pub struct Slot<'s, T> {
    memory: *mut T,
    _memory: PhantomData<&'s mut T>,
    _not_sync: BlockCodeOnly,
}

// SAFETY: stages are different elements of the array, which is borrowed mutably.
unsafe impl<T: SharedType, const N: usize> Stages for &mut Shared<[T; N]>
where
    [T; N]: SharedType,
{
    type Slots<'s> = Slot<'s, T>;
    type Views<'s> = &'s T;

    const STAGES: usize = N;

    #[inline(always)]
    unsafe fn slots<'s>(&self, stage: usize) -> Slot<'s, T> {
        Slot {
            // SAFETY: the caller guarantees that the stage exists.
            memory: unsafe { self.as_ptr().cast::<T>().add(stage) },
            _memory: PhantomData,
            _not_sync: BlockCodeOnly::NEW,
        }
    }

    #[inline(always)]
    unsafe fn views<'s>(&self, stage: usize) -> &'s T {
        // SAFETY: the caller guarantees that the stage exists.
        let memory = unsafe { self.as_ptr().cast::<T>().add(stage) };
        // SAFETY: any bytes are a `T`, and the caller guarantees that nobody writes them.
        unsafe { &*memory }
    }
}

macro_rules! tuples {
    ($first:ident $($memory:ident)*) => {
        // SAFETY: each part upholds the contract.
        unsafe impl<$first: Stages, $($memory: Stages),*> Stages for ($first, $($memory,)*) {
            type Slots<'s> = ($first::Slots<'s>, $($memory::Slots<'s>,)*);
            type Views<'s> = ($first::Views<'s>, $($memory::Views<'s>,)*);

            const STAGES: usize = {
                $(assert!($first::STAGES == $memory::STAGES, "all parts of a pipeline have the same number of stages");)*
                $first::STAGES
            };

            #[inline(always)]
            #[allow(non_snake_case, reason = "the names are those of the types")]
            unsafe fn slots<'s>(&self, stage: usize) -> Self::Slots<'s> {
                let ($first, $($memory,)*) = self;
                // SAFETY: the stage exists in each memory, and the caller keeps readers away until
                // a barrier.
                (unsafe { $first.slots(stage) }, $(unsafe { $memory.slots(stage) },)*)
            }

            #[inline(always)]
            #[allow(non_snake_case, reason = "the names are those of the types")]
            unsafe fn views<'s>(&self, stage: usize) -> Self::Views<'s> {
                let ($first, $($memory,)*) = self;
                // SAFETY: the stage exists in each memory, and the caller keeps writers away for
                // `'s`.
                (unsafe { $first.views(stage) }, $(unsafe { $memory.views(stage) },)*)
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);

impl<const X: u32, const Y: u32, const Z: u32> Block<X, Y, Z> {
    /// Runs a loop whose data is copied to shared memory while earlier steps compute (`cp.async`).
    ///
    /// For each step from 0 to `steps - 1`, in order, `load` starts to fill a stage, and later
    /// `compute` reads it. With `N` stages, the copies of the next `N - 1` steps run while a step
    /// computes. Before `compute` gets the stage, each thread has waited for its copies
    /// (`cp.async.wait_group`), and a barrier has made them visible to the others; the same barrier
    /// separates the step from the next copy to that memory. Each step has one barrier, and the
    /// loop has one before and one after it.
    ///
    /// A stage that `load` does not fill keeps what an earlier step left. Asynchronous copies need
    /// compute capability 8.0.
    ///
    /// ```
    /// # use curium_kernel::prelude::*;
    /// /// y = a * b, where the columns of `a` and the rows of `b` arrive in steps of 16 and in three stages.
    /// #[kernel]
    /// pub fn multiply(
    ///     block: Block<16, 16>,
    ///     mut a_stages: Shared<[Tile<f32, 16, 16>; 3]>,
    ///     mut b_stages: Shared<[Tile<f32, 16, 16>; 3]>,
    ///     a: Matrix<f32>,
    ///     b: Matrix<f32>,
    ///     mut y: PerBlockTile<f32, 16, 16>,
    /// ) {
    ///     let first_row = block.index_y() * 16;
    ///     let first_column = block.index_x() * 16;
    ///     let mut sums = Registers::new(0.0_f32);
    ///     block.pipeline(
    ///         (&mut a_stages, &mut b_stages),
    ///         a.columns().div_ceil(16),
    ///         |step, (a_slot, b_slot)| {
    ///             a_slot.copy(&block, &a, (first_row, step * 16));
    ///             b_slot.copy(&block, &b, (step * 16, first_column));
    ///         },
    ///         |_, (a_tile, b_tile)| {
    ///             block.threads_with(&mut sums, |t, sum| {
    ///                 for k in 0..16 {
    ///                     *sum = a_tile[t.y()][k].mul_add(b_tile[k][t.x()], *sum);
    ///                 }
    ///             });
    ///         },
    ///     );
    ///     y.for_each_with(&block, &sums, |_, y, sum| *y = **sum);
    /// }
    /// ```
    #[doc(alias = "cp.async")]
    #[doc(alias = "cuda::pipeline")]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the stages are borrowed mutably until the pipeline ends"
    )]
    #[inline(always)]
    pub fn pipeline<S: Stages>(
        &self,
        stages: S,
        steps: usize,
        mut load: impl for<'s> FnMut(usize, S::Slots<'s>),
        mut compute: impl for<'s> FnMut(usize, S::Views<'s>),
    ) {
        const {
            assert!(
                S::STAGES >= 2 && S::STAGES <= 8,
                "a pipeline has 2 to 8 stages"
            );
        };
        let ahead = S::STAGES - 1;
        // The owners of elements may have written them, and copies divide the memory in another
        // way.
        self.barrier();
        for step in 0..ahead {
            if step < steps {
                // SAFETY: the stage exists, and its step computes after a barrier.
                load(step, unsafe { stages.slots(step) });
            }
            commit_copies();
        }
        let mut stage = 0;
        let mut free = ahead;
        for step in 0..steps {
            // Each step has a group of copies, even if it is empty: all but the last ones have
            // completed.
            wait_for_copies(S::STAGES - 2);
            // The copies of all threads are visible, and no thread reads the stage of the previous
            // step any longer.
            self.barrier();
            if steps - step > ahead {
                // SAFETY: the stage exists, no thread reads it, and its step computes after a
                // barrier.
                load(step + ahead, unsafe { stages.slots(free) });
            }
            commit_copies();
            // SAFETY: the stage exists, and it is loaded again after the barrier of the next step.
            compute(step, unsafe { stages.views(stage) });
            stage = next_stage(stage, S::STAGES);
            free = next_stage(free, S::STAGES);
        }
        self.barrier();
    }
}

#[inline(always)]
fn next_stage(stage: usize, stages: usize) -> usize {
    if stage + 1 == stages { 0 } else { stage + 1 }
}

/// Ends a group of asynchronous copies.
#[inline(always)]
fn commit_copies() {
    // SAFETY: the instruction has no requirements.
    unsafe { ptx!("cp.async.commit_group;") };
}

/// Waits until at most `pending` of the thread's groups of copies have not completed.
#[inline(always)]
fn wait_for_copies(pending: usize) {
    match pending {
        // SAFETY: the instruction has no requirements.
        1 => unsafe { ptx!("cp.async.wait_group 1;") },
        // SAFETY: the instruction has no requirements.
        2 => unsafe { ptx!("cp.async.wait_group 2;") },
        // SAFETY: the instruction has no requirements.
        3 => unsafe { ptx!("cp.async.wait_group 3;") },
        // SAFETY: the instruction has no requirements.
        4 => unsafe { ptx!("cp.async.wait_group 4;") },
        // SAFETY: the instruction has no requirements.
        5 => unsafe { ptx!("cp.async.wait_group 5;") },
        // SAFETY: the instruction has no requirements.
        6 => unsafe { ptx!("cp.async.wait_group 6;") },
        // SAFETY: the instruction has no requirements.
        _ => unsafe { ptx!("cp.async.wait_group 0;") },
    }
}

/// Passes the numbers below `count` that belong to the running thread.
#[inline(always)]
fn for_each_number<const X: u32, const Y: u32, const Z: u32>(
    block: &Block<X, Y, Z>,
    count: usize,
    mut code: impl FnMut(usize),
) {
    let threads = Block::<X, Y, Z>::THREADS;
    let thread = block.index_in_block();
    for round in 0..count.div_ceil(threads) {
        let number = thread + round * threads;
        if count.is_multiple_of(threads) || number < count {
            code(number);
        }
    }
}

/// Returns `true` if `count` elements from `first` on are among the first `len`.
#[inline(always)]
fn is_inside(first: usize, count: usize, len: usize) -> bool {
    count <= len && first <= len - count
}

/// The number of elements that are copied at once: 16 bytes, if rows of `columns` elements at
/// distances of `stride` elements consist of such groups, and otherwise one.
const fn group<T>(columns: usize, stride: usize) -> usize {
    let size = size_of::<T>();
    if size == 0 || size >= 16 || !16_usize.is_multiple_of(size) {
        return 1;
    }
    let group = 16 / size;
    if columns.is_multiple_of(group) && stride.is_multiple_of(group) {
        group
    } else {
        1
    }
}

/// Starts a copy of `LEN` elements, or makes them zero without a source. The copy is synchronous
/// for sizes that `cp.async` lacks.
///
/// # Safety
///
/// `target` has `LEN` elements in shared memory, which no other thread accesses before a barrier;
/// `source` has `LEN` elements that nobody writes; and `any` is an address in global memory. A
/// group of more than one element has 16 bytes, and both addresses are aligned to 16 bytes.
#[inline(always)]
unsafe fn copy_group<T: Pod, const IS_GROUP: bool>(
    target: *mut T,
    source: Option<*const T>,
    any: *const T,
) {
    if IS_GROUP {
        // SAFETY: the caller guarantees that both addresses have 16 bytes, aligned to their size.
        unsafe { copy_element::<T, U32x4>(target, source, any) };
        return;
    }
    if align_of::<T>() == size_of::<T>() {
        match size_of::<T>() {
            // SAFETY: the caller guarantees one element at both addresses, which has 4 bytes.
            4 => return unsafe { copy_element::<T, u32>(target, source, any) },
            // SAFETY: the caller guarantees one element at both addresses, which has 8 bytes.
            8 => return unsafe { copy_element::<T, u64>(target, source, any) },
            // SAFETY: the caller guarantees one element at both addresses, which has 16 bytes.
            16 => return unsafe { copy_element::<T, U32x4>(target, source, any) },
            _ => {}
        }
    }
    let value = match source {
        // SAFETY: the caller guarantees the memory.
        Some(source) => unsafe { *source },
        None => T::zeroed(),
    };
    // SAFETY: the caller guarantees the memory.
    unsafe { target.write(value) };
}

/// Starts a copy of the size of `W`.
///
/// # Safety
///
/// As for [`copy_group`], for a group of the size and alignment of `W`.
#[inline(always)]
unsafe fn copy_element<T, W>(target: *mut T, source: Option<*const T>, any: *const T) {
    let (source, bytes) = match source {
        Some(source) => (source, size_of::<W>()),
        // Nothing is read.
        None => (any, 0),
    };
    // SAFETY: the caller guarantees the memory and the alignment.
    unsafe { copy_async(target.cast::<W>(), source.cast(), bytes) };
}

/// Values of `IS_GROUP` of `copy_groups`: copies of single elements, or of groups of 16 bytes.
const ELEMENTS: bool = false;
const GROUPS: bool = true;
/// Values of `IS_INSIDE` of `copy_groups`: copies with a check of the bounds, or of a tile that is
/// in the matrix.
const CHECKED: bool = false;
const INSIDE: bool = true;

impl<T: Pod, const ROWS: usize, const COLUMNS: usize, const PADDING: usize>
    Slot<'_, Tile<T, ROWS, COLUMNS, PADDING>>
{
    /// Starts to copy a part of a matrix to the tile. `first` is the row and the column of the
    /// tile's first element in the matrix. Elements beyond the matrix are zero.
    ///
    /// The copies have 16 bytes if the rows of the tile consist of whole groups of 16 bytes, with
    /// the padding, and those of the matrix as well, and `first` begins one; otherwise each is of
    /// one element. Elements whose size is not 4, 8 or 16 bytes are then copied synchronously.
    #[inline(always)]
    pub fn copy<const X: u32, const Y: u32, const Z: u32>(
        self,
        block: &Block<X, Y, Z>,
        source: &Matrix<T>,
        first: (usize, usize),
    ) {
        const {
            assert!(
                ROWS <= 1 << 20 && COLUMNS <= 1 << 20,
                "the sizes of a tile are at most 2^20"
            );
        };
        let group = const { group::<T>(COLUMNS, COLUMNS + PADDING) };
        let is_aligned = (source.as_ptr() as usize).is_multiple_of(16)
            && source.columns().is_multiple_of(group)
            && first.1.is_multiple_of(group);
        let is_inside = is_inside(first.0, ROWS, source.rows())
            && is_inside(first.1, COLUMNS, source.columns());
        if group == 1 || !is_aligned {
            self.copy_groups::<X, Y, Z, ELEMENTS, CHECKED>(block, source, first, 1);
        } else if is_inside {
            self.copy_groups::<X, Y, Z, GROUPS, INSIDE>(block, source, first, group);
        } else {
            self.copy_groups::<X, Y, Z, GROUPS, CHECKED>(block, source, first, group);
        }
    }

    /// Copies groups of 16 bytes or elements. The whole tile is in the matrix if `IS_INSIDE`.
    #[inline(always)]
    fn copy_groups<
        const X: u32,
        const Y: u32,
        const Z: u32,
        const IS_GROUP: bool,
        const IS_INSIDE: bool,
    >(
        self,
        block: &Block<X, Y, Z>,
        source: &Matrix<T>,
        first: (usize, usize),
        group: usize,
    ) {
        let target = self.memory.cast::<T>();
        let groups = COLUMNS / group;
        // It is in bounds if the tile is.
        let corner = source
            .as_ptr()
            .wrapping_add(first.0.wrapping_mul(source.columns()).wrapping_add(first.1));
        for_each_number(block, ROWS * groups, |number| {
            let row = number / groups;
            let column = number % groups * group;
            // SAFETY: the element is in bounds, and rows end with padding.
            let target = unsafe { target.add(row * (COLUMNS + PADDING) + column) };
            let element = if IS_INSIDE {
                // The row and the number of columns have 32 bits.
                let offset = u64::from(row as u32) * u64::from(source.columns() as u32);
                // SAFETY: the tile is in the matrix.
                Some(unsafe { corner.add(offset as usize + column) })
            } else {
                let source_row = first.0.wrapping_add(row);
                let source_column = first.1.wrapping_add(column);
                // The matrix consists of whole groups, so a group is in bounds with its first
                // element.
                source
                    .get(source_row, source_column)
                    .map(core::ptr::from_ref)
            };
            // SAFETY: the group is in bounds, this thread alone writes it, and the stage is read
            // after a barrier. Shared memory is aligned to 16 bytes, and the rows and the stages
            // are multiples of it if there are groups.
            unsafe { copy_group::<T, IS_GROUP>(target, element, source.as_ptr()) };
        });
    }

    /// Writes each element. `value` receives the row and the column in the tile, in one thread for
    /// each element.
    #[inline(always)]
    pub fn fill<const X: u32, const Y: u32, const Z: u32>(
        self,
        block: &Block<X, Y, Z>,
        value: impl Fn(&Thread, (usize, usize)) -> T + Sync,
    ) {
        let target = self.memory.cast::<T>();
        // SAFETY: the thread is passed to its own code.
        let thread = unsafe { block.thread() };
        for_each_number(block, ROWS * COLUMNS, |number| {
            let row = number / COLUMNS;
            let column = number % COLUMNS;
            // SAFETY: the element is in bounds.
            let target = unsafe { target.add(row * (COLUMNS + PADDING) + column) };
            // SAFETY: this thread alone writes the element, and the stage is read after a barrier.
            unsafe { target.write(value(&thread, (row, column))) };
        });
    }
}

impl<T: Pod, const LEN: usize> Slot<'_, [T; LEN]> {
    /// Starts to copy a part of a slice to the array. `first` is the index in the slice of the
    /// array's first element. Elements beyond the slice are zero.
    ///
    /// The copies have 16 bytes if the array consists of whole groups of 16 bytes, and the slice as
    /// well, and `first` begins one; otherwise each is of one element. Elements whose size is not
    /// 4, 8 or 16 bytes are then copied synchronously, and so are slices that are not in global
    /// memory.
    #[inline(always)]
    pub fn copy<const X: u32, const Y: u32, const Z: u32>(
        self,
        block: &Block<X, Y, Z>,
        source: &[T],
        first: usize,
    ) where
        T: Sync,
    {
        let group = const { group::<T>(LEN, LEN) };
        let is_aligned = (source.as_ptr() as usize).is_multiple_of(16)
            && source.len().is_multiple_of(group)
            && first.is_multiple_of(group);
        if !is_global(source.as_ptr()) {
            self.fill(block, |_, index| {
                match source.get(first.wrapping_add(index)) {
                    Some(element) => *element,
                    None => T::zeroed(),
                }
            });
        } else if group > 1 && is_aligned {
            self.copy_groups::<X, Y, Z, true>(block, source, first, group);
        } else {
            self.copy_groups::<X, Y, Z, false>(block, source, first, 1);
        }
    }

    #[inline(always)]
    fn copy_groups<const X: u32, const Y: u32, const Z: u32, const IS_GROUP: bool>(
        self,
        block: &Block<X, Y, Z>,
        source: &[T],
        first: usize,
        group: usize,
    ) {
        let target = self.memory.cast::<T>();
        for_each_number(block, LEN / group, |number| {
            // SAFETY: the element is in bounds.
            let target = unsafe { target.add(number * group) };
            // The slice consists of whole groups, so a group is in bounds with its first element.
            let element = source
                .get(first.wrapping_add(number * group))
                .map(core::ptr::from_ref);
            // SAFETY: the group is in bounds, this thread alone writes it, and the stage is read
            // after a barrier. The slice is in global memory. Shared memory is aligned to 16 bytes,
            // and the stages are multiples of it if there are groups.
            unsafe { copy_group::<T, IS_GROUP>(target, element, source.as_ptr()) };
        });
    }

    /// Writes each element. `value` receives the index, in one thread for each element.
    #[inline(always)]
    pub fn fill<const X: u32, const Y: u32, const Z: u32>(
        self,
        block: &Block<X, Y, Z>,
        value: impl Fn(&Thread, usize) -> T + Sync,
    ) {
        let target = self.memory.cast::<T>();
        // SAFETY: the thread is passed to its own code.
        let thread = unsafe { block.thread() };
        for_each_number(block, LEN, |number| {
            // SAFETY: the element is in bounds.
            let target = unsafe { target.add(number) };
            // SAFETY: this thread alone writes the element, and the stage is read after a barrier.
            unsafe { target.write(value(&thread, number)) };
        });
    }
}
