//! Tiles of matrices.

use core::ops::Index;

use bytemuck::{Pod, Zeroable};

use crate::address::Address;
use crate::block::Block;
use crate::matrix::Matrix;
use crate::operand::ThreadOperand;
use crate::ptx;
use crate::shared::Shared;
use crate::thread::Thread;

/// A matrix of constant size in shared memory. Each row ends with `PADDING` unused elements, which
/// avoid bank conflicts.
///
/// `tile[row][column]` is an element. A thread owns the elements whose number, row by row, is its
/// index in the block modulo the number of threads.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Tile<T, const ROWS: usize, const COLUMNS: usize, const PADDING: usize = 0> {
    rows: [Row<T, COLUMNS, PADDING>; ROWS],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Row<T, const COLUMNS: usize, const PADDING: usize> {
    elements: [T; COLUMNS],
    padding: [T; PADDING],
}

// SAFETY: zeros are a value of the elements.
unsafe impl<T: Zeroable, const COLUMNS: usize, const PADDING: usize> Zeroable
    for Row<T, COLUMNS, PADDING>
{
}
// SAFETY: two arrays of one element type have no padding between them.
unsafe impl<T: Pod, const COLUMNS: usize, const PADDING: usize> Pod for Row<T, COLUMNS, PADDING> {}
// SAFETY: zeros are a value of the elements.
unsafe impl<T: Zeroable, const ROWS: usize, const COLUMNS: usize, const PADDING: usize> Zeroable
    for Tile<T, ROWS, COLUMNS, PADDING>
{
}
// SAFETY: an array of rows, which have no padding.
unsafe impl<T: Pod, const ROWS: usize, const COLUMNS: usize, const PADDING: usize> Pod
    for Tile<T, ROWS, COLUMNS, PADDING>
{
}

impl<T, const ROWS: usize, const COLUMNS: usize, const PADDING: usize> Index<usize>
    for Tile<T, ROWS, COLUMNS, PADDING>
{
    type Output = [T; COLUMNS];

    #[inline(always)]
    fn index(&self, row: usize) -> &[T; COLUMNS] {
        &self.rows[row].elements
    }
}

/// The elements of a tile that a thread owns.
pub struct TileElements<'a, T, const ROWS: usize, const COLUMNS: usize, const PADDING: usize> {
    tile: &'a mut Shared<Tile<T, ROWS, COLUMNS, PADDING>>,
    thread: u32,
    threads: u32,
}

impl<T, const ROWS: usize, const COLUMNS: usize, const PADDING: usize>
    TileElements<'_, T, ROWS, COLUMNS, PADDING>
{
    /// Passes each element of the thread with its row and column.
    #[inline(always)]
    pub fn for_each(&mut self, mut code: impl FnMut((usize, usize), &mut T)) {
        const {
            assert!(
                ROWS <= 1 << 31 && COLUMNS <= 1 << 31 && ROWS as u64 * COLUMNS as u64 <= 1 << 31,
                "a tile has at most 2^31 elements"
            );
        };
        let count = (ROWS * COLUMNS) as u32;
        let rows = Address(self.tile.as_ptr().cast::<Row<T, COLUMNS, PADDING>>());
        for round in 0..count.div_ceil(self.threads) {
            let index = self.thread + round * self.threads;
            if count.is_multiple_of(self.threads) || index < count {
                let row = (index / COLUMNS as u32) as usize;
                let column = (index % COLUMNS as u32) as usize;
                // SAFETY: the row is in bounds.
                let row_address = unsafe { rows.add(row) };
                // SAFETY: the row is in bounds, and this is the address of a field.
                let elements = unsafe { &raw mut (*row_address.0).elements };
                // SAFETY: the column is in bounds, and the element belongs to the thread.
                let element = unsafe { Address(elements.cast::<T>()).get_mut(column) };
                code((row, column), element);
            }
        }
    }
}

// SAFETY: threads own different elements, by their number modulo the number of threads.
unsafe impl<
    'a,
    T,
    const ROWS: usize,
    const COLUMNS: usize,
    const PADDING: usize,
    const X: u32,
    const Y: u32,
    const Z: u32,
> ThreadOperand<X, Y, Z> for &'a mut Shared<Tile<T, ROWS, COLUMNS, PADDING>>
{
    type Part = TileElements<'a, T, ROWS, COLUMNS, PADDING>;

    #[inline(always)]
    unsafe fn thread_part(self) -> Self::Part {
        TileElements {
            tile: self,
            // SAFETY: the caller guarantees the dimensions.
            thread: unsafe { crate::thread::index_in_block::<X, Y, Z>() } as u32,
            threads: Block::<X, Y, Z>::THREADS as u32,
        }
    }
}

impl<T: Pod, const ROWS: usize, const COLUMNS: usize, const PADDING: usize>
    Shared<Tile<T, ROWS, COLUMNS, PADDING>>
{
    /// Writes each element, in the thread that owns it. No barrier.
    ///
    /// `value` receives the row and the column in the tile.
    #[inline(always)]
    pub fn fill<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        value: impl Fn(&Thread, (usize, usize)) -> T + Sync,
    ) {
        block.threads_with(self, |t, mut elements| {
            elements.for_each(|position, element| *element = value(t, position));
        });
    }
}

impl<T: Pod, const ROWS: usize, const COLUMNS: usize, const PADDING: usize>
    Shared<Tile<T, ROWS, COLUMNS, PADDING>>
{
    /// Copies a part of a matrix to the tile, while `code` runs: asynchronous copies, `code`, and a
    /// wait for the copies (`cp.async`). No barrier, except those of `code`. Needs compute
    /// capability 8.0.
    ///
    /// `first` is the row and the column of the tile's first element in the matrix. Elements beyond
    /// the matrix are zero. The size of an element is 4, 8 or 16 bytes.
    ///
    /// The tile is borrowed until the copies have completed, so that no thread reads them earlier.
    /// With two tiles, one is copied while the other is used. Exchange the tiles by value: behind
    /// references or `mem::swap`, loads would be generic instead of loads of shared memory.
    ///
    /// ```
    /// # use curium_kernel::prelude::*;
    /// #[kernel]
    /// pub fn row_sums(
    ///     block: Block<32, 8>,
    ///     mut current: Shared<Tile<f32, 8, 32>>,
    ///     mut next: Shared<Tile<f32, 8, 32>>,
    ///     x: Matrix<f32>,
    ///     mut y: PerBlockTile<f32, 8, 32>,
    /// ) {
    ///     let first_row = block.index_y() * 8;
    ///     let mut sums = Registers::new(0.0_f32);
    ///     current.copy_during(&block, &x, (first_row, 0), || ());
    ///     for column in (0..x.columns()).step_by(32) {
    ///         next.copy_during(&block, &x, (first_row, column + 32), || {
    ///             current.synced(&block, |tile| {
    ///                 block.threads_with(&mut sums, |t, sum| *sum += tile[t.y()].iter().sum::<f32>());
    ///             });
    ///         });
    ///         (current, next) = (next, current);
    ///     }
    ///     y.for_each_with(&block, &sums, |_, y, sum| *y = **sum);
    /// }
    /// ```
    #[doc(alias = "cp.async")]
    #[doc(alias = "__pipeline_memcpy_async")]
    #[inline(always)]
    pub fn copy_during<const X: u32, const Y: u32, const Z: u32, R>(
        &mut self,
        block: &Block<X, Y, Z>,
        source: &Matrix<T>,
        first: (usize, usize),
        code: impl FnOnce() -> R,
    ) -> R {
        block.threads_with(&mut *self, |_, mut elements| {
            elements.for_each(|(row, column), element| {
                let element = core::ptr::from_mut(element);
                let source_row = first.0.wrapping_add(row);
                let source_column = first.1.wrapping_add(column);
                match source.get(source_row, source_column) {
                    // SAFETY: the element belongs to this thread, which accesses it after the wait
                    // below, and the source is not written.
                    Some(source) => unsafe { copy_async(element, source, size_of::<T>()) },
                    // SAFETY: nothing is read; the element belongs to this thread, which accesses
                    // it after the wait below.
                    None => unsafe { copy_async(element, source.as_ptr(), 0) },
                }
            });
        });
        let result = code();
        // SAFETY: the wait has no requirements. There is no unwinding, so it follows the copies.
        unsafe { ptx!("cp.async.wait_all;") };
        result
    }
}

/// Starts a copy of `bytes` bytes to an element in shared memory, whose other bytes become zero.
///
/// # Safety
///
/// The element is in shared memory and the source in global memory. The thread does not access the
/// element before it has waited.
#[inline(always)]
pub(crate) unsafe fn copy_async<T>(element: *mut T, source: *const T, bytes: usize) {
    const {
        assert!(
            matches!(size_of::<T>(), 4 | 8 | 16) && align_of::<T>() == size_of::<T>(),
            "an asynchronous copy is of 4, 8 or 16 bytes, which are aligned to their size"
        );
    };
    let target = element as usize as u64;
    let source = source as usize as u64;
    let bytes = bytes as u32;
    match size_of::<T>() {
        // SAFETY: the caller guarantees the memory, and the size is that of an element.
        4 => unsafe {
            ptx!(
                "{{ .reg .b64 to, from; cvta.to.shared.u64 to, {0}; cvta.to.global.u64 from, {1}; cp.async.ca.shared.global [to], [from], 4, {2}; }}",
                in(l) target, in(l) source, in(r) bytes
            );
        },
        // SAFETY: the caller guarantees the memory, and the size is that of an element.
        8 => unsafe {
            ptx!(
                "{{ .reg .b64 to, from; cvta.to.shared.u64 to, {0}; cvta.to.global.u64 from, {1}; cp.async.ca.shared.global [to], [from], 8, {2}; }}",
                in(l) target, in(l) source, in(r) bytes
            );
        },
        // SAFETY: the caller guarantees the memory, and the size is that of an element.
        _ => unsafe {
            ptx!(
                "{{ .reg .b64 to, from; cvta.to.shared.u64 to, {0}; cvta.to.global.u64 from, {1}; cp.async.cg.shared.global [to], [from], 16, {2}; }}",
                in(l) target, in(l) source, in(r) bytes
            );
        },
    }
}
