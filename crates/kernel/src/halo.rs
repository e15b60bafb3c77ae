//! Tiles with a border, for stencils and convolutions.

use core::ops::Index;

use bytemuck::{Pod, Zeroable};

use crate::address::Address;
use crate::block::Block;
use crate::matrix::Matrix;
use crate::operand::ThreadOperand;
use crate::output::Position;
use crate::shared::{Shared, SharedType};
use crate::thread::Thread;

/// A tile of `ROWS` × `COLUMNS` cells in shared memory, with a border of further cells:
/// `ROW_RADIUS` rows above and below, and `COLUMN_RADIUS` columns to the left and to the right.
///
/// `tile[(row, column)]` is a cell. The inner cells begin at (0, 0); the border has negative
/// indices, and those from `ROWS` and `COLUMNS` on. A thread owns the cells whose number, row by
/// row with the border, is its index in the block modulo the number of threads.
///
/// ```
/// # use curium_kernel::prelude::*;
/// use curium_kernel::{Border, HaloTile};
///
/// /// The mean of each element and its eight neighbors.
/// #[kernel]
/// pub fn blur(
///     block: Block<32, 8>,
///     mut tile: Shared<HaloTile<f32, 32, 32, 1>>,
///     x: Matrix<f32>,
///     mut y: PerBlockTile<f32, 32, 32>,
/// ) {
///     let first = (block.index_y() * 32, block.index_x() * 32);
///     tile.fill_from(&block, &x, first, Border::Clamp);
///     tile.synced(&block, |tile| {
///         y.for_each(&block, |position, y| {
///             let (row, column) = position.cell();
///             let mut sum = 0.0;
///             for i in -1..2 {
///                 for j in -1..2 {
///                     sum += tile[(row + i, column + j)];
///                 }
///             }
///             *y = sum / 9.0;
///         });
///     });
/// }
/// ```
///
/// The compiler removes the comparison with the bounds where it knows them, as here:
/// [`Position::cell`] is an inner cell, and the offsets are constants.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct HaloTile<
    T,
    const ROWS: usize,
    const COLUMNS: usize,
    const ROW_RADIUS: usize,
    const COLUMN_RADIUS: usize = ROW_RADIUS,
> {
    above: [HaloRow<T, COLUMNS, COLUMN_RADIUS>; ROW_RADIUS],
    rows: [HaloRow<T, COLUMNS, COLUMN_RADIUS>; ROWS],
    below: [HaloRow<T, COLUMNS, COLUMN_RADIUS>; ROW_RADIUS],
}

/// `LEN` cells in shared memory with a border of `RADIUS` further cells on both sides.
///
/// `row[index]` is a cell. The inner cells begin at 0; the border has negative indices, and those
/// from `LEN` on. A thread owns the cells whose number with the border is its index in the block
/// modulo the number of threads.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct HaloRow<T, const LEN: usize, const RADIUS: usize> {
    before: [T; RADIUS],
    cells: [T; LEN],
    after: [T; RADIUS],
}

/// The values of cells beyond the edges of a matrix or a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Border<T> {
    /// This value.
    Constant(T),
    /// The nearest element: `aaa|abcd|ddd`.
    Clamp,
    /// The element on the other side: `bcd|abcd|abc`.
    Wrap,
    /// The element that is mirrored at the edge, which is not repeated: `dcb|abcd|cba`.
    Mirror,
}

// SAFETY: zeros are a value of the elements.
unsafe impl<T: Zeroable, const LEN: usize, const RADIUS: usize> Zeroable
    for HaloRow<T, LEN, RADIUS>
{
}
// SAFETY: arrays of one element type have no padding between them.
unsafe impl<T: Pod, const LEN: usize, const RADIUS: usize> Pod for HaloRow<T, LEN, RADIUS> {}
// SAFETY: any bytes are a value, and the type has no interior mutability.
unsafe impl<T: Pod, const LEN: usize, const RADIUS: usize> SharedType for HaloRow<T, LEN, RADIUS> {}

// SAFETY: zeros are a value of the elements.
unsafe impl<T: Zeroable, const R: usize, const C: usize, const RR: usize, const CR: usize> Zeroable
    for HaloTile<T, R, C, RR, CR>
{
}
// SAFETY: arrays of one type have no padding between them.
unsafe impl<T: Pod, const R: usize, const C: usize, const RR: usize, const CR: usize> Pod
    for HaloTile<T, R, C, RR, CR>
{
}
// SAFETY: any bytes are a value, and the type has no interior mutability.
unsafe impl<T: Pod, const R: usize, const C: usize, const RR: usize, const CR: usize> SharedType
    for HaloTile<T, R, C, RR, CR>
{
}

impl<T> Border<T> {
    /// Returns the index of the element for a position, which can be beyond the edges, or `None`
    /// for the constant. `len` is not 0.
    #[inline(always)]
    fn index(&self, position: isize, len: usize) -> Option<usize> {
        // A length is below 2⁶³, because it is that of memory.
        let end = len as isize;
        if position >= 0 && position < end {
            return Some(position.cast_unsigned());
        }
        let index = match self {
            Self::Constant(_) => return None,
            Self::Clamp => position.clamp(0, end - 1),
            Self::Wrap => position.rem_euclid(end),
            Self::Mirror if end == 1 => 0,
            Self::Mirror => {
                // The period of the mirrored sequence is at most 2⁶⁴ - 4 as an unsigned number.
                let period = 2 * (end - 1).cast_unsigned();
                let offset = position.unsigned_abs() % period;
                offset.min(period - offset).cast_signed()
            }
        };
        Some(index.cast_unsigned())
    }
}

impl<T, const LEN: usize, const RADIUS: usize> HaloRow<T, LEN, RADIUS> {
    /// The number of cells with the border.
    pub const CELLS: usize = {
        assert!(
            LEN > 0 && LEN <= 1 << 20 && RADIUS <= 1 << 20,
            "the sizes of a tile are at most 2^20"
        );
        LEN + 2 * RADIUS
    };
}

impl<T, const LEN: usize, const RADIUS: usize> Index<isize> for HaloRow<T, LEN, RADIUS> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: isize) -> &T {
        let cell = index.wrapping_add(RADIUS.cast_signed()).cast_unsigned();
        assert!(cell < Self::CELLS, "the cell is out of bounds");
        let cells = (&raw const *self).cast::<T>();
        // SAFETY: the struct consists of that many elements.
        let element = unsafe { cells.add(cell) };
        // SAFETY: the element is in bounds of the struct, which is borrowed.
        unsafe { &*element }
    }
}

impl<T, const R: usize, const C: usize, const RR: usize, const CR: usize>
    HaloTile<T, R, C, RR, CR>
{
    /// The number of rows with the border.
    pub const ALL_ROWS: usize = HaloRow::<T, R, RR>::CELLS;

    /// The number of columns with the border.
    pub const ALL_COLUMNS: usize = HaloRow::<T, C, CR>::CELLS;
}

impl<T, const R: usize, const C: usize, const RR: usize, const CR: usize> Index<(isize, isize)>
    for HaloTile<T, R, C, RR, CR>
{
    type Output = T;

    #[inline(always)]
    fn index(&self, (row, column): (isize, isize)) -> &T {
        let row = row.wrapping_add(RR.cast_signed()).cast_unsigned();
        let column = column.wrapping_add(CR.cast_signed()).cast_unsigned();
        assert!(
            row < Self::ALL_ROWS && column < Self::ALL_COLUMNS,
            "the cell is out of bounds"
        );
        let cells = (&raw const *self).cast::<T>();
        // SAFETY: the struct consists of rows of that many elements.
        let element = unsafe { cells.add(row * Self::ALL_COLUMNS + column) };
        // SAFETY: the element is in bounds of the struct, which is borrowed.
        unsafe { &*element }
    }
}

impl Position {
    /// Returns the row and the column in the tile, to which offsets of neighbors are added.
    #[inline(always)]
    #[must_use]
    pub fn cell(&self) -> (isize, isize) {
        // A tile has at most 2²⁰ rows and columns.
        (
            self.row_in_tile.cast_signed(),
            self.column_in_tile.cast_signed(),
        )
    }
}

/// The cells of a [`HaloTile`] or a [`HaloRow`] that a thread owns.
pub struct HaloCells<'a, T: ?Sized> {
    tile: &'a mut Shared<T>,
    thread: usize,
    threads: usize,
}

/// Passes the numbers below `count` that belong to a thread.
#[inline(always)]
fn for_each_number(thread: usize, threads: usize, count: usize, mut code: impl FnMut(usize)) {
    for round in 0..count.div_ceil(threads) {
        let number = thread + round * threads;
        if count.is_multiple_of(threads) || number < count {
            code(number);
        }
    }
}

impl<T, const LEN: usize, const RADIUS: usize> HaloCells<'_, HaloRow<T, LEN, RADIUS>> {
    /// Passes each cell of the thread with its index.
    #[inline(always)]
    pub fn for_each(&mut self, mut code: impl FnMut(isize, &mut T)) {
        let cells = Address(self.tile.as_ptr().cast::<T>());
        let count = HaloRow::<T, LEN, RADIUS>::CELLS;
        for_each_number(self.thread, self.threads, count, |number| {
            // SAFETY: the number is in bounds, and the cell belongs to the thread.
            let cell = unsafe { cells.get_mut(number) };
            code(number.cast_signed() - RADIUS.cast_signed(), cell);
        });
    }
}

impl<T, const R: usize, const C: usize, const RR: usize, const CR: usize>
    HaloCells<'_, HaloTile<T, R, C, RR, CR>>
{
    /// Passes each cell of the thread with its row and column.
    #[inline(always)]
    pub fn for_each(&mut self, mut code: impl FnMut((isize, isize), &mut T)) {
        let cells = Address(self.tile.as_ptr().cast::<T>());
        let columns = HaloTile::<T, R, C, RR, CR>::ALL_COLUMNS;
        let count = HaloTile::<T, R, C, RR, CR>::ALL_ROWS * columns;
        for_each_number(self.thread, self.threads, count, |number| {
            // The numbers are below 2⁴⁴, and usually below 2³², in which division is faster.
            let row = number / columns;
            let column = number % columns;
            // SAFETY: the number is in bounds, and the cell belongs to the thread.
            let cell = unsafe { cells.get_mut(number) };
            let position = (
                row.cast_signed() - RR.cast_signed(),
                column.cast_signed() - CR.cast_signed(),
            );
            code(position, cell);
        });
    }
}

// SAFETY: threads own different cells, by their number modulo the number of threads.
unsafe impl<'a, T, const LEN: usize, const RADIUS: usize, const X: u32, const Y: u32, const Z: u32>
    ThreadOperand<X, Y, Z> for &'a mut Shared<HaloRow<T, LEN, RADIUS>>
{
    type Part = HaloCells<'a, HaloRow<T, LEN, RADIUS>>;

    #[inline(always)]
    unsafe fn thread_part(self) -> Self::Part {
        HaloCells {
            tile: self,
            // SAFETY: the caller guarantees the dimensions.
            thread: unsafe { crate::thread::index_in_block::<X, Y, Z>() },
            threads: Block::<X, Y, Z>::THREADS,
        }
    }
}

// SAFETY: threads own different cells, by their number modulo the number of threads.
unsafe impl<
    'a,
    T,
    const R: usize,
    const C: usize,
    const RR: usize,
    const CR: usize,
    const X: u32,
    const Y: u32,
    const Z: u32,
> ThreadOperand<X, Y, Z> for &'a mut Shared<HaloTile<T, R, C, RR, CR>>
{
    type Part = HaloCells<'a, HaloTile<T, R, C, RR, CR>>;

    #[inline(always)]
    unsafe fn thread_part(self) -> Self::Part {
        HaloCells {
            tile: self,
            // SAFETY: the caller guarantees the dimensions.
            thread: unsafe { crate::thread::index_in_block::<X, Y, Z>() },
            threads: Block::<X, Y, Z>::THREADS,
        }
    }
}

impl<T: Pod, const LEN: usize, const RADIUS: usize> Shared<HaloRow<T, LEN, RADIUS>> {
    /// Writes each cell, in the thread that owns it. No barrier. `value` receives the index of the
    /// cell.
    #[inline(always)]
    pub fn fill<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        value: impl Fn(&Thread, isize) -> T + Sync,
    ) {
        block.threads_with(self, |t, mut cells| {
            cells.for_each(|index, cell| *cell = value(t, index));
        });
    }

    /// Copies a part of a slice with its surroundings, in the threads that own the cells. No
    /// barrier.
    ///
    /// `first` is the index of the first inner cell in the slice. Cells beyond the slice have the
    /// value that `border` states; an empty slice has no nearest element, and all cells are the
    /// zeros of the type or the constant.
    #[inline(always)]
    pub fn fill_from<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        source: &[T],
        first: usize,
        border: Border<T>,
    ) where
        T: Sync,
    {
        if let Some(start) = inner_range(first, LEN, RADIUS, source.len()) {
            // All cells are elements, as for most blocks.
            let cells = &source[start..start + HaloRow::<T, LEN, RADIUS>::CELLS];
            self.fill(block, |_, index| {
                let number = (index + RADIUS.cast_signed()).cast_unsigned();
                // SAFETY: the cell is in bounds.
                unsafe { *cells.get_unchecked(number) }
            });
            return;
        }
        self.fill(block, |_, index| {
            let index = border_index(&border, first, index, source.len());
            match (index, border) {
                // SAFETY: the index is in bounds.
                (Some(index), _) => unsafe { *source.get_unchecked(index) },
                (None, Border::Constant(value)) => value,
                (None, _) => T::zeroed(),
            }
        });
    }
}

/// Returns the index of the first cell of the border, if all cells are elements.
#[inline(always)]
fn inner_range(first: usize, cells: usize, radius: usize, len: usize) -> Option<usize> {
    let start = first.checked_sub(radius)?;
    // The sum does not overflow, because the sizes of a tile are at most 2²⁰.
    let all = cells + 2 * radius;
    (all <= len && start <= len - all).then_some(start)
}

/// Returns the index of the element for a cell, unless it has the value of the border.
#[inline(always)]
fn border_index<T>(border: &Border<T>, first: usize, cell: isize, len: usize) -> Option<usize> {
    if len == 0 {
        return None;
    }
    // Every position has an element, also one that has wrapped.
    border.index(first.wrapping_add_signed(cell).cast_signed(), len)
}

impl<T: Pod + Sync, const R: usize, const C: usize, const RR: usize, const CR: usize>
    Shared<HaloTile<T, R, C, RR, CR>>
{
    /// Writes each cell, in the thread that owns it. No barrier. `value` receives the row and the
    /// column of the cell.
    #[inline(always)]
    pub fn fill<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        value: impl Fn(&Thread, (isize, isize)) -> T + Sync,
    ) {
        block.threads_with(self, |t, mut cells| {
            cells.for_each(|position, cell| *cell = value(t, position));
        });
    }

    /// Copies a part of a matrix with its surroundings, in the threads that own the cells. No
    /// barrier.
    ///
    /// `first` is the row and the column of the first inner cell in the matrix. Cells beyond the
    /// matrix have the value that `border` states; a matrix without elements has no nearest one,
    /// and all cells are the zeros of the type or the constant.
    ///
    /// For a three-dimensional stencil, a tile for each of the adjacent planes is filled from
    /// [`Matrix::plane`].
    #[inline(always)]
    pub fn fill_from<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        source: &Matrix<T>,
        first: (usize, usize),
        border: Border<T>,
    ) {
        let rows = inner_range(first.0, R, RR, source.rows());
        let columns = inner_range(first.1, C, CR, source.columns());
        if let (Some(first_row), Some(first_column)) = (rows, columns) {
            // All cells are elements, as for most blocks.
            // SAFETY: the first cell is in bounds.
            let corner = unsafe {
                source
                    .as_ptr()
                    .add(first_row * source.columns() + first_column)
            };
            let corner = Address(corner.cast_mut());
            let stride = source.columns() as u32;
            self.fill(block, |_, (row, column)| {
                // The border has at most 2²⁰ cells, so the sums are not negative and have 32 bits.
                let row = (row + RR.cast_signed()) as u32;
                let column = (column + CR.cast_signed()) as u32;
                let offset = u64::from(row) * u64::from(stride) + u64::from(column);
                // SAFETY: the cell is in bounds, and nobody writes the matrix.
                unsafe { corner.read(offset as usize) }
            });
            return;
        }
        self.fill(block, |_, (row, column)| {
            let row = border_index(&border, first.0, row, source.rows());
            let column = border_index(&border, first.1, column, source.columns());
            match (row, column, border) {
                // SAFETY: the row and the column are in bounds.
                (Some(row), Some(column), _) => unsafe { source.get_unchecked(row, column) },
                (_, _, Border::Constant(value)) => value,
                _ => T::zeroed(),
            }
        });
    }
}
