//! Outputs: buffers that are divided between threads, warps and blocks.

use core::marker::PhantomData;

use bytemuck::AnyBitPattern;

use crate::address::Address;
use crate::block::{Block, BlockCodeOnly};
use crate::elements::{Elements, ElementsIter};
use crate::intrinsics as device;
use crate::launch::Launch;
use crate::operand::{LaneOperand, ThreadOperand, WarpOperand};
use crate::parameter::{Description, GridRule, Kind, Parameter, Word};
use crate::registers::Registers;
use crate::shared::{Shared, slice_memory};
use crate::thread::{Thread, block_index, block_index_y, coordinates, index_in_block};
use crate::vector::F32x2;
use crate::warp::{Lanes, Warp};

/// A buffer of which each thread of a grid along x owns the elements `index_in_grid`,
/// `index_in_grid + threads_in_grid`, …
///
/// A launch passes `&mut buffer` or a mutable view.
pub struct PerThread<T> {
    start: Address<T>,
    len: usize,
    _not_sync: BlockCodeOnly,
}

/// A buffer of which each thread of a grid along x owns `N` adjacent elements, from
/// `N * index_in_grid` on.
///
/// A launch passes `&mut buffer` or a mutable view.
pub struct PerThreadChunk<T, const N: usize> {
    start: Address<T>,
    len: usize,
    _not_sync: BlockCodeOnly,
}

/// A buffer of which each block of a grid along x owns the element with its index.
///
/// A launch passes `&mut buffer` or a mutable view.
pub struct PerBlock<T> {
    start: Address<T>,
    len: usize,
    _not_sync: BlockCodeOnly,
}

/// A buffer of which each block of a grid along x owns `N` adjacent elements, from `N * blockIdx.x`
/// on.
///
/// A launch passes `&mut buffer` or a mutable view. The last chunks can be shorter than `N` or
/// empty.
pub struct PerBlockChunk<T, const N: usize> {
    start: Address<T>,
    len: usize,
    _not_sync: BlockCodeOnly,
}

/// A matrix of which each block of a grid along x owns the row with its index, and the rows at
/// distances of the number of blocks.
///
/// A launch passes a `RowMajor` of a mutable buffer or view.
pub struct PerBlockRow<T> {
    start: Address<T>,
    rows: u32,
    columns: u32,
    _not_sync: BlockCodeOnly,
}

/// A matrix of which each block owns a tile of `ROWS` rows and `COLUMNS` columns: the block with
/// `blockIdx` (x, y) the one in column x and row y of tiles.
///
/// Within a tile, the thread with `threadIdx` (x, y) owns the elements of the rows y, y + Y, … and
/// columns x, x + X, …
///
/// A launch passes a `RowMajor` of a mutable buffer or view.
pub struct PerBlockTile<T, const ROWS: usize, const COLUMNS: usize> {
    start: Address<T>,
    rows: u32,
    columns: u32,
    _not_sync: BlockCodeOnly,
}

/// A buffer of which each warp of a grid along x owns `N` adjacent elements, and its lane `l` the
/// elements `l`, `l + 32`, … of them.
///
/// A launch passes `&mut buffer` or a mutable view. The last chunks can be shorter than `N` or
/// empty.
pub struct PerWarpChunk<T, const N: usize> {
    start: Address<T>,
    len: usize,
    _not_sync: BlockCodeOnly,
}

/// A matrix with `COLUMNS` columns, of which each warp of a grid along x owns `ROWS` rows.
///
/// A launch passes `&mut buffer` or a mutable view; the number of rows follows from the length.
pub struct PerWarpTile<T, const ROWS: usize, const COLUMNS: usize> {
    start: Address<T>,
    len: usize,
    _not_sync: BlockCodeOnly,
}

/// A matrix of which each warp of a grid along x and y owns a tile of `ROWS` rows and `COLUMNS`
/// columns.
///
/// In a block, `ACROSS` warps are next to each other: warp `w` has the tile in row `w / ACROSS` and
/// column `w % ACROSS` of the block's tiles. The block with `blockIdx` (x, y) has the tiles in
/// column x and row y of blocks.
///
/// A launch passes a `RowMajor` of a mutable buffer or view.
pub struct PerWarpPlaneTile<T, const ROWS: usize, const COLUMNS: usize, const ACROSS: usize> {
    start: Address<T>,
    rows: u32,
    columns: u32,
    _not_sync: BlockCodeOnly,
}

macro_rules! linear {
    ($output:ident [$($constants:tt)*] [$($names:tt)*], $kind:ident, $word:ident, $sizes:expr) => {
        // SAFETY: the launcher passes memory of that many elements, which is borrowed mutably, so
        // that only this launch accesses it, and a grid along x, whose threads have different
        // indices.
        unsafe impl<T: AnyBitPattern, $($constants)*> Parameter for $output<T, $($names)*> {
            type In<'k> = $output<T, $($names)*>;
            type First = *mut T;
            type Second = usize;
            type Third = ();

            const DESCRIPTION: Description =
                Description::new::<T>(Kind::$kind, [Word::$word::<T>(), Word::value::<usize>(), Word::ABSENT])
                    .on(GridRule::Line)
                    .with_sizes($sizes);

            #[inline(always)]
            unsafe fn from_words<'k>(_: &'k Launch, start: *mut T, len: usize, (): ()) -> Self::In<'k> {
                $output {
                    start: Address(start),
                    len,
                    _not_sync: BlockCodeOnly::NEW,
                }
            }
        }

        impl<T, $($constants)*> $output<T, $($names)*> {
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
        }
    };
}

linear!(PerThread [] [], PerThread, exclusive, [0; 3]);
linear!(PerThreadChunk [const N: usize] [N], PerThreadChunk, exclusive, [size(N), 0, 0]);
linear!(PerBlock [] [], PerBlock, exclusive, [0; 3]);
// Other threads of the block can read a chunk after a barrier, so its accesses alias.
linear!(PerBlockChunk [const N: usize] [N], PerBlockChunk, pointer, [size(N), 0, 0]);
linear!(PerWarpChunk [const N: usize] [N], PerWarpChunk, exclusive, [size(N), 0, 0]);
linear!(PerWarpTile [const ROWS: usize, const COLUMNS: usize] [ROWS, COLUMNS], PerWarpTile, exclusive, [size(ROWS), size(COLUMNS), 0]);

macro_rules! matrix {
    ($output:ident [$($constants:tt)*] [$($names:tt)*], $word:ident, $grid:ident, $sizes:expr, $limit:expr) => {
        // SAFETY: the launcher passes memory of `rows * columns` elements, which is borrowed
        // mutably, so that only this launch accesses it, and a grid in which blocks have different
        // indices.
        unsafe impl<T: AnyBitPattern, $($constants)*> Parameter for $output<T, $($names)*> {
            type In<'k> = $output<T, $($names)*>;
            type First = *mut T;
            type Second = u32;
            type Third = u32;

            const DESCRIPTION: Description =
                Description::new::<T>(Kind::$output, [Word::$word::<T>(), Word::value::<u32>(), Word::value::<u32>()])
                    .on(GridRule::$grid)
                    .with_sizes($sizes);

            #[allow(clippy::no_effect, reason = "some parameters have no limit")]
            #[inline(always)]
            unsafe fn from_words<'k>(_: &'k Launch, start: *mut T, rows: u32, columns: u32) -> Self::In<'k> {
                $limit;
                $output {
                    start: Address(start),
                    rows,
                    columns,
                    _not_sync: BlockCodeOnly::NEW,
                }
            }
        }

        impl<T, $($constants)*> $output<T, $($names)*> {
            /// Returns the number of rows of the matrix.
            #[inline(always)]
            #[must_use]
            pub fn rows(&self) -> usize {
                self.rows as usize
            }

            /// Returns the number of columns of the matrix.
            #[inline(always)]
            #[must_use]
            pub fn columns(&self) -> usize {
                self.columns as usize
            }
        }
    };
}

// Other threads of the block can read a row after a barrier, so its accesses alias.
matrix!(PerBlockRow [] [], pointer, Line, [0; 3], ());
matrix!(PerBlockTile [const ROWS: usize, const COLUMNS: usize] [ROWS, COLUMNS], exclusive, Plane, [size(ROWS), size(COLUMNS), 0],
    // SAFETY: the launcher checked the grid.
    unsafe { assume_tiles(ROWS, COLUMNS) });
matrix!(PerWarpPlaneTile [const ROWS: usize, const COLUMNS: usize, const ACROSS: usize] [ROWS, COLUMNS, ACROSS], exclusive, Plane, [size(ROWS), size(COLUMNS), size(ACROSS)], ());

/// Lets the compiler compute the rows and columns of tiles with 32 bits.
///
/// # Safety
///
/// The grid's tiles of these sizes have at most 2³¹ rows and 2³¹ columns.
#[inline(always)]
unsafe fn assume_tiles(rows: usize, columns: usize) {
    // SAFETY: reads a special register.
    let x = unsafe { device::ctaid_x() } as usize;
    // SAFETY: reads a special register.
    let y = unsafe { device::ctaid_y() } as usize;
    // SAFETY: an index is below the number of blocks, and the caller guarantees the products.
    unsafe { core::hint::assert_unchecked(x < (1 << 31) / columns && y < (1 << 31) / rows) };
}

/// Converts a constant of a type, which is limited so that products of an index and a constant do
/// not overflow.
const fn size(size: usize) -> u32 {
    assert!(
        size > 0 && size <= 1 << 20,
        "the sizes of an output are from 1 to 2^20"
    );
    size as u32
}

impl<T> PerThread<T> {
    /// Returns the element with the index of the thread, unless it is out of bounds.
    #[inline(always)]
    #[must_use]
    pub fn get(&mut self, thread: &Thread) -> Option<&mut T> {
        let index = thread.index_in_grid();
        if index >= self.len {
            return None;
        }
        // SAFETY: the index is in bounds, and belongs to this thread.
        Some(unsafe { self.start.get_mut(index) })
    }

    /// Returns all elements of the thread with their indices, as a grid-stride loop.
    #[inline(always)]
    pub fn iter_mut(&mut self, thread: &Thread) -> ElementsIter<'_, T> {
        // SAFETY: the buffer is borrowed mutably, and other threads own other elements.
        unsafe { Elements::in_grid(self.start.0, self.len, thread) }.into_iter()
    }
}

// SAFETY: threads of a grid along x have different indices.
unsafe impl<'a, T, const X: u32, const Y: u32, const Z: u32> ThreadOperand<X, Y, Z>
    for &'a mut PerThread<T>
{
    type Part = Elements<'a, T>;

    #[inline(always)]
    unsafe fn thread_part(self) -> Elements<'a, T> {
        // SAFETY: the caller guarantees the dimensions.
        let thread = unsafe { Thread::new::<X, Y, Z>() };
        // SAFETY: the buffer is borrowed mutably, and other threads own other elements.
        unsafe { Elements::in_grid(self.start.0, self.len, &thread) }
    }
}

impl<T, const N: usize> PerThreadChunk<T, N> {
    /// Returns the elements of the thread. The last chunks of the buffer can be shorter than `N` or
    /// empty.
    #[inline(always)]
    #[must_use]
    pub fn get(&mut self, thread: &Thread) -> &mut [T] {
        // SAFETY: the chunk belongs to the thread, and the buffer is borrowed mutably.
        unsafe { self.chunk(thread.index_in_grid()) }
    }

    /// # Safety
    ///
    /// The chunk belongs to the running thread, and is not accessed in another way for `'a`.
    #[inline(always)]
    unsafe fn chunk<'a>(&self, index: usize) -> &'a mut [T] {
        // The index is below 2⁴² and `N` at most 2²⁰, so the product does not overflow.
        const { assert!(N > 0 && N <= 1 << 20) };
        let first = (index * N).min(self.len);
        // SAFETY: the index is at most the length.
        let start = unsafe { self.start.add(first) }.0;
        // SAFETY: the chunk is in bounds, and the caller guarantees the rest.
        unsafe { core::slice::from_raw_parts_mut(start, (self.len - first).min(N)) }
    }
}

// SAFETY: threads of a grid along x have different indices, and chunks of different indices do not
// overlap.
unsafe impl<'a, T, const N: usize, const X: u32, const Y: u32, const Z: u32> ThreadOperand<X, Y, Z>
    for &'a mut PerThreadChunk<T, N>
{
    type Part = &'a mut [T];

    #[inline(always)]
    unsafe fn thread_part(self) -> &'a mut [T] {
        // SAFETY: the caller guarantees the dimensions.
        let thread = unsafe { Thread::new::<X, Y, Z>() };
        // SAFETY: the chunk belongs to the thread, and the buffer is borrowed mutably.
        unsafe { self.chunk(thread.index_in_grid()) }
    }
}

impl<T: AnyBitPattern> PerBlock<T> {
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

impl<T: AnyBitPattern> PerBlockRow<T> {
    /// Returns the row of the block, unless it is out of bounds. It is used like shared memory.
    #[inline(always)]
    #[must_use]
    pub fn row<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
    ) -> Option<BlockRow<'_, T>> {
        self.nth_row(block, 0)
    }

    /// Returns the row `blockIdx.x + n * gridDim.x`, unless it is out of bounds. It is used like
    /// shared memory.
    #[inline(always)]
    #[must_use]
    pub fn nth_row<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        n: usize,
    ) -> Option<BlockRow<'_, T>> {
        let row = n
            .checked_mul(block.grid()[0])
            .and_then(|first| first.checked_add(block.index_x()))?;
        if row >= self.rows() {
            return None;
        }
        // The launcher checked that the product of the sizes is the number of elements, so the
        // product does not overflow.
        // SAFETY: the row is in bounds.
        let start = unsafe { self.start.add(row * self.columns()) }.0;
        let elements = core::ptr::slice_from_raw_parts_mut(start, self.columns());
        Some(BlockRow {
            // SAFETY: the row is in bounds, only this block accesses it, and `self` is borrowed.
            memory: unsafe { Shared::new(elements) },
            _row: PhantomData,
        })
    }
}

impl<T: AnyBitPattern, const N: usize> PerBlockChunk<T, N> {
    /// Returns the elements of the block, which are used like shared memory. The last chunks of the
    /// buffer can be shorter than `N` or empty.
    #[inline(always)]
    #[must_use]
    pub fn chunk<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
    ) -> BlockRow<'_, T> {
        // The index is below 2³¹ and `N` at most 2²⁰, so the product does not overflow.
        const { assert!(N > 0 && N <= 1 << 20) };
        let first = (block.index_x() * N).min(self.len);
        // SAFETY: the index is at most the length.
        let start = unsafe { self.start.add(first) }.0;
        let elements = core::ptr::slice_from_raw_parts_mut(start, (self.len - first).min(N));
        BlockRow {
            // SAFETY: the chunk is in bounds, only this block accesses it, and `self` is borrowed.
            memory: unsafe { Shared::new(elements) },
            _row: PhantomData,
        }
    }
}

/// A row of a [`PerBlockRow`] or a chunk of a [`PerBlockChunk`], which is used like [`Shared`]
/// memory.
pub struct BlockRow<'a, T> {
    memory: Shared<[T]>,
    _row: PhantomData<&'a mut [T]>,
}

slice_memory!(BlockRow<'_, T>);

/// The position of an element in a [`PerBlockTile`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Position {
    /// The row in the matrix.
    pub row: usize,
    /// The column in the matrix.
    pub column: usize,
    /// The row in the tile.
    pub row_in_tile: usize,
    /// The column in the tile.
    pub column_in_tile: usize,
    /// The first index of the element among those of its thread, `[i][j]`.
    pub i: usize,
    /// The second index of the element among those of its thread, `[i][j]`.
    pub j: usize,
}

impl<T, const ROWS: usize, const COLUMNS: usize> PerBlockTile<T, ROWS, COLUMNS> {
    /// Passes each element of the block's tile to the thread that owns it. No barrier.
    ///
    /// The tile has a multiple of the block's rows and columns. Elements beyond the matrix are left
    /// out.
    #[inline(always)]
    pub fn for_each<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        code: impl Fn(Position, &mut T) + Sync,
    ) {
        self.for_each_with(block, (), |position, element, _: &mut ()| {
            code(position, element);
        });
    }

    /// Stores the values of each thread: `values[i][j]` to the element with these indices among
    /// those of the thread (see [`Position`]). No barrier.
    ///
    /// The values are arrays of `ROWS / Y` rows and `COLUMNS / X` columns. Elements beyond the
    /// matrix are left out.
    #[inline(always)]
    pub fn store<const I: usize, const J: usize, const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        values: &Registers<[[T; J]; I]>,
    ) where
        T: Copy,
    {
        const {
            assert!(
                Z == 1 && ROWS == I * Y as usize && COLUMNS == J * X as usize,
                "the values of a thread are those of its elements: ROWS / Y rows and COLUMNS / X columns"
            );
        };
        // A block index is below 2³¹ and a size at most 2²⁰, so the products do not overflow.
        let first_row = block.index_y() * ROWS;
        let first_column = block.index_x() * COLUMNS;
        // SAFETY: the block has these dimensions.
        let [x, y, _] = unsafe { coordinates::<X, Y, Z>() };
        let row = first_row + y as usize;
        let column = first_column + x as usize;
        if first_row + ROWS <= self.rows() && first_column + COLUMNS <= self.columns() {
            for (i, values) in values.0.iter().enumerate() {
                for (j, value) in values.iter().enumerate() {
                    let index = (row + i * Y as usize) * self.columns() + column + j * X as usize;
                    // SAFETY: the whole tile is in bounds, and the element belongs to this thread.
                    unsafe { self.start.write(index, *value) };
                }
            }
            return;
        }
        for (i, values) in values.0.iter().enumerate() {
            for (j, value) in values.iter().enumerate() {
                let row = row + i * Y as usize;
                let column = column + j * X as usize;
                if row < self.rows() && column < self.columns() {
                    // SAFETY: the element is in bounds, and belongs to this thread.
                    unsafe { self.start.write(row * self.columns() + column, *value) };
                }
            }
        }
    }

    /// Passes each element of the block's tile to the thread that owns it, with the thread's part
    /// of the operands. No barrier.
    #[inline(always)]
    pub fn for_each_with<A: ThreadOperand<X, Y, Z>, const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        operands: A,
        code: impl Fn(Position, &mut T, &mut A::Part) + Sync,
    ) {
        const {
            assert!(
                Z == 1 && ROWS.is_multiple_of(Y as usize) && COLUMNS.is_multiple_of(X as usize),
                "the tile of a block has a multiple of the block's rows (Y) and columns (X), and Z is 1"
            );
        };
        // SAFETY: the part is passed to code of this thread.
        let mut part = unsafe { operands.thread_part() };
        // SAFETY: the block has these dimensions.
        let [x, y, _] = unsafe { coordinates::<X, Y, Z>() };
        // SAFETY: the launcher checked that the grid's tiles have at most 2³¹ rows.
        let first_row = unsafe { (block.index_y() as u32).unchecked_mul(ROWS as u32) };
        // SAFETY: the launcher checked that the grid's tiles have at most 2³¹ columns.
        let first_column = unsafe { (block.index_x() as u32).unchecked_mul(COLUMNS as u32) };
        for i in 0..ROWS as u32 / Y {
            let row_in_tile = y + i * Y;
            // SAFETY: the row is in the tile, whose rows are below 2³¹.
            let row = unsafe { first_row.unchecked_add(row_in_tile) };
            for j in 0..COLUMNS as u32 / X {
                let column_in_tile = x + j * X;
                // SAFETY: the column is in the tile, whose columns are below 2³¹.
                let column = unsafe { first_column.unchecked_add(column_in_tile) };
                if row < self.rows && column < self.columns {
                    let index = row as usize * self.columns() + column as usize;
                    // SAFETY: the element is in bounds, and belongs to this thread.
                    let element = unsafe { self.start.get_mut(index) };
                    let position = Position {
                        row: row as usize,
                        column: column as usize,
                        row_in_tile: row_in_tile as usize,
                        column_in_tile: column_in_tile as usize,
                        i: i as usize,
                        j: j as usize,
                    };
                    code(position, element, &mut part);
                }
            }
        }
    }
}

// SAFETY: there is nothing to divide.
unsafe impl<const X: u32, const Y: u32, const Z: u32> ThreadOperand<X, Y, Z> for () {
    type Part = ();

    #[inline(always)]
    unsafe fn thread_part(self) {}
}

/// The elements of a warp in a [`PerWarpChunk`]: an operand of [`Warp::lanes_with`].
pub struct WarpChunk<'a, T> {
    start: Address<T>,
    len: usize,
    /// The index of the running lane, which only code of lanes learns.
    lane: u32,
    _elements: PhantomData<&'a mut [T]>,
    _not_sync: BlockCodeOnly,
}

// SAFETY: warps of a grid along x have different indices, and their chunks do not overlap. All
// lanes receive the same values.
unsafe impl<'a, T, const N: usize, const X: u32, const Y: u32, const Z: u32> WarpOperand<X, Y, Z>
    for &'a mut PerWarpChunk<T, N>
{
    type Part = WarpChunk<'a, T>;

    #[inline(always)]
    unsafe fn warp_part(self) -> Self::Part {
        // SAFETY: the caller guarantees the dimensions.
        let thread = unsafe { index_in_block::<X, Y, Z>() };
        let warp = block_index() * Block::<X, Y, Z>::WARPS + thread / 32;
        // The index is below 2³⁶ and `N` at most 2²⁰, so the product does not overflow.
        const { assert!(N > 0 && N <= 1 << 20) };
        let first = (warp * N).min(self.len);
        WarpChunk {
            // SAFETY: the index is at most the length.
            start: unsafe { self.start.add(first) },
            len: (self.len - first).min(N),
            lane: thread as u32 % 32,
            _elements: PhantomData,
            _not_sync: BlockCodeOnly::NEW,
        }
    }
}

// SAFETY: lanes own different elements, by their index modulo 32.
unsafe impl<'a, T> LaneOperand for &'a mut WarpChunk<'_, T> {
    type Part = Elements<'a, T>;

    #[inline(always)]
    unsafe fn lane_part(self) -> Elements<'a, T> {
        // SAFETY: the chunk is borrowed mutably, and other lanes own other elements.
        unsafe { Elements::new(self.start.0, self.len, self.lane as usize, 32, false) }
    }
}

/// The tile of a warp in a [`PerWarpTile`].
pub struct WarpTile<'a, T, const ROWS: usize, const COLUMNS: usize> {
    start: Address<T>,
    first_row: usize,
    rows: usize,
    _elements: PhantomData<&'a mut [T]>,
    _not_sync: BlockCodeOnly,
}

// SAFETY: warps of a grid along x have different indices, and their tiles do not overlap. All lanes
// receive the same values.
unsafe impl<
    'a,
    T,
    const ROWS: usize,
    const COLUMNS: usize,
    const X: u32,
    const Y: u32,
    const Z: u32,
> WarpOperand<X, Y, Z> for &'a mut PerWarpTile<T, ROWS, COLUMNS>
{
    type Part = WarpTile<'a, T, ROWS, COLUMNS>;

    #[inline(always)]
    unsafe fn warp_part(self) -> Self::Part {
        const { assert!(ROWS > 0 && ROWS <= 1 << 20 && COLUMNS > 0 && COLUMNS <= 1 << 20) };
        // SAFETY: the caller guarantees the dimensions.
        let warp_in_block = unsafe { index_in_block::<X, Y, Z>() } / 32;
        let warp = block_index() * Block::<X, Y, Z>::WARPS + warp_in_block;
        WarpTile {
            start: self.start,
            first_row: warp * ROWS,
            rows: self.len / COLUMNS,
            _elements: PhantomData,
            _not_sync: BlockCodeOnly::NEW,
        }
    }
}

impl<T, const ROWS: usize, const COLUMNS: usize> WarpTile<'_, T, ROWS, COLUMNS> {
    /// Returns the first row of the tile, in the matrix. It can be beyond the end of the matrix.
    #[inline(always)]
    #[must_use]
    pub fn first_row(&self) -> usize {
        self.first_row
    }

    /// Returns the number of rows of the matrix.
    #[inline(always)]
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }
}

impl<const COLUMNS: usize> WarpTile<'_, f32, 16, COLUMNS> {
    /// Stores the accumulators of [`Warp::mma_bf16`] to the columns `8 * n` to `8 * n + 7`. Rows
    /// beyond the matrix are left out.
    ///
    /// It takes `&self`, because code of a warp is `Fn`; each lane writes elements of its own.
    ///
    /// # Panics
    ///
    /// If the columns are out of bounds.
    #[inline(always)]
    pub fn store_accumulators(&self, warp: &Warp, n: usize, values: &Lanes<[f32; 4]>) {
        assert!(n < COLUMNS / 8, "the columns are out of bounds");
        let lane = warp.lane_index() as usize;
        for half in 0..2 {
            let row = self.first_row + lane / 4 + 8 * half;
            if row < self.rows {
                let first = row * COLUMNS + 8 * n + 2 * (lane % 4);
                for i in 0..2 {
                    // SAFETY: the row and the columns are in bounds, and no other lane has these
                    // elements.
                    unsafe { self.start.write(first + i, values.0[2 * half + i]) };
                }
            }
        }
    }
}

/// The tile of a warp in a [`PerWarpPlaneTile`].
pub struct WarpPlaneTile<'a, T, const ROWS: usize, const COLUMNS: usize> {
    start: Address<T>,
    first_row: usize,
    first_column: usize,
    rows: usize,
    columns: usize,
    _elements: PhantomData<&'a mut [T]>,
    _not_sync: BlockCodeOnly,
}

// SAFETY: blocks of a grid along x and y have different indices, warps of a block have different
// tiles of the block, and tiles do not overlap. All lanes receive the same values.
unsafe impl<
    'a,
    T,
    const ROWS: usize,
    const COLUMNS: usize,
    const ACROSS: usize,
    const X: u32,
    const Y: u32,
    const Z: u32,
> WarpOperand<X, Y, Z> for &'a mut PerWarpPlaneTile<T, ROWS, COLUMNS, ACROSS>
{
    type Part = WarpPlaneTile<'a, T, ROWS, COLUMNS>;

    #[inline(always)]
    unsafe fn warp_part(self) -> Self::Part {
        const {
            assert!(
                ACROSS > 0 && Block::<X, Y, Z>::WARPS.is_multiple_of(ACROSS),
                "a block has a multiple of the number of warps that are next to each other"
            );
        };
        // SAFETY: the caller guarantees the dimensions.
        let warp = unsafe { index_in_block::<X, Y, Z>() } / 32;
        // A block index is below 2³¹, a block has at most 32 warps and a size is at most 2²⁰, so
        // the products do not overflow.
        let tile_row = block_index_y() * (Block::<X, Y, Z>::WARPS / ACROSS) + warp / ACROSS;
        let tile_column = block_index() * ACROSS + warp % ACROSS;
        WarpPlaneTile {
            start: self.start,
            first_row: tile_row * ROWS,
            first_column: tile_column * COLUMNS,
            rows: self.rows(),
            columns: self.columns(),
            _elements: PhantomData,
            _not_sync: BlockCodeOnly::NEW,
        }
    }
}

impl<T, const ROWS: usize, const COLUMNS: usize> WarpPlaneTile<'_, T, ROWS, COLUMNS> {
    /// Returns the first row of the tile, in the matrix. It can be beyond the end of the matrix.
    #[inline(always)]
    #[must_use]
    pub fn first_row(&self) -> usize {
        self.first_row
    }

    /// Returns the first column of the tile, in the matrix. It can be beyond the end of the matrix.
    #[inline(always)]
    #[must_use]
    pub fn first_column(&self) -> usize {
        self.first_column
    }
}

impl<const ROWS: usize, const COLUMNS: usize> WarpPlaneTile<'_, F32x2, ROWS, COLUMNS> {
    /// Stores the accumulators of [`Warp::mma_bf16`] to the rows `16 * m` to `16 * m + 15` and the
    /// pairs `4 * n` to `4 * n + 3` of columns of the tile. Elements beyond the matrix are left
    /// out.
    ///
    /// It takes `&self`, because code of a warp is `Fn`; each lane writes elements of its own.
    ///
    /// # Panics
    ///
    /// If the rows or the columns are out of the tile's bounds.
    #[inline(always)]
    pub fn store_accumulators(&self, warp: &Warp, m: usize, n: usize, values: &Lanes<[f32; 4]>) {
        assert!(
            m < ROWS / 16 && n < COLUMNS / 4,
            "the fragment is out of bounds"
        );
        let lane = warp.lane_index() as usize;
        let column = self.first_column + 4 * n + lane % 4;
        for half in 0..2 {
            let row = self.first_row + 16 * m + 8 * half + lane / 4;
            if row < self.rows && column < self.columns {
                let pair = F32x2::new(values.0[2 * half], values.0[2 * half + 1]);
                // SAFETY: the element is in bounds, and no other lane has it.
                unsafe { self.start.write(row * self.columns + column, pair) };
            }
        }
    }
}
