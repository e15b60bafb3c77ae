//! Tiles of matrices.

use core::ops::Index;

use bytemuck::{Pod, Zeroable};

use crate::block::Block;
use crate::operand::ThreadOperand;
use crate::shared::Shared;
use crate::thread::Thread;

/// A matrix of constant size in shared memory. Each row ends with `PADDING` unused elements, which avoid bank conflicts.
///
/// `tile[row][column]` is an element. A thread owns the elements whose number, row by row, is its index in the block modulo the number of
/// threads.
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
    thread: usize,
    threads: usize,
}

impl<T, const ROWS: usize, const COLUMNS: usize, const PADDING: usize>
    TileElements<'_, T, ROWS, COLUMNS, PADDING>
{
    /// Passes each element of the thread with its row and column.
    #[inline(always)]
    pub fn for_each(&mut self, mut code: impl FnMut((usize, usize), &mut T)) {
        let count = ROWS * COLUMNS;
        let start = self.tile.as_ptr().cast::<Row<T, COLUMNS, PADDING>>();
        for round in 0..count.div_ceil(self.threads) {
            let index = self.thread + round * self.threads;
            if count.is_multiple_of(self.threads) || index < count {
                let row = index / COLUMNS;
                let column = index % COLUMNS;
                // SAFETY: the row is in bounds.
                let elements = unsafe { &raw mut (*start.add(row)).elements };
                // SAFETY: the column is in bounds, and the element belongs to the thread.
                code((row, column), unsafe {
                    &mut *elements.cast::<T>().add(column)
                });
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
            thread: unsafe { crate::thread::index_in_block::<X, Y, Z>() },
            threads: Block::<X, Y, Z>::THREADS,
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
