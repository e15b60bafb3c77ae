//! Fragments of matrices, which warps load from tiles in shared memory.

use core::marker::PhantomData;

use crate::ptx;
use crate::shared::Shared;
use crate::synced::Synced;
use crate::tile::Tile;
use crate::vector::U32x4;
use crate::warp::{Lanes, Warp};

/// A tile of 16-bit elements, eight in each `U32x4`, for [`Synced::synced`](crate::Synced::synced):
/// the view loads fragments.
///
/// [`Shared::fragments`](Shared#method.fragments) creates it.
pub struct FragmentTile<'a, const ROWS: usize, const COLUMNS: usize, const PADDING: usize> {
    tile: &'a mut Shared<Tile<U32x4, ROWS, COLUMNS, PADDING>>,
}

/// A tile of 16-bit elements in shared memory, of which warps load fragments (`ldmatrix`).
///
/// A matrix of 8 × 8 elements consists of eight rows of one `U32x4` each. Loads have no bank
/// conflicts if `COLUMNS + PADDING` is odd.
#[derive(Clone, Copy)]
pub struct Fragments<'a, const ROWS: usize, const COLUMNS: usize, const PADDING: usize> {
    /// The address of the tile in the window of shared memory.
    start: u32,
    _view: PhantomData<&'a Tile<U32x4, ROWS, COLUMNS, PADDING>>,
}

impl<const ROWS: usize, const COLUMNS: usize, const PADDING: usize>
    Shared<Tile<U32x4, ROWS, COLUMNS, PADDING>>
{
    /// Returns the tile as an operand of [`Synced::synced`](crate::Synced::synced) whose view loads
    /// fragments of matrices.
    #[doc(alias = "ldmatrix")]
    #[inline(always)]
    pub fn fragments(&mut self) -> FragmentTile<'_, ROWS, COLUMNS, PADDING> {
        FragmentTile { tile: self }
    }
}

// SAFETY: the memory is borrowed mutably, so no thread writes it while the view exists.
unsafe impl<const ROWS: usize, const COLUMNS: usize, const PADDING: usize> Synced
    for FragmentTile<'_, ROWS, COLUMNS, PADDING>
{
    type View<'v> = Fragments<'v, ROWS, COLUMNS, PADDING>;

    #[inline(always)]
    unsafe fn view<'v>(self) -> Self::View<'v> {
        let address = self.tile.as_ptr() as usize as u64;
        let mut start = 0_u32;
        // A `Shared<Tile<…>>` is created from statics in shared memory only.
        // SAFETY: the result depends on the operand only.
        unsafe {
            ptx!(
                "{{ .reg .b64 window; cvta.to.shared.u64 window, {1}; cvt.u32.u64 {0}, window; }}",
                out(r) start, in(l) address, pure
            );
        }
        Fragments {
            start,
            _view: PhantomData,
        }
    }
}

impl<const ROWS: usize, const COLUMNS: usize, const PADDING: usize>
    Fragments<'_, ROWS, COLUMNS, PADDING>
{
    /// Returns the address of the row that the running lane passes to `ldmatrix`: of 16 rows from
    /// `row` on, in the `U32x4` with index `column` (lanes 0 to 15) or the next one.
    #[inline(always)]
    fn lane_row(&self, warp: &Warp, row: usize, column: usize) -> u32 {
        assert!(
            row <= ROWS && ROWS - row >= 16 && column < COLUMNS && COLUMNS - column >= 2,
            "the fragment is out of bounds"
        );
        const {
            assert!(
                (ROWS as u64) * ((COLUMNS + PADDING) as u64) < 1 << 24,
                "the tile is larger than shared memory"
            );
        };
        let pitch = 16 * (COLUMNS + PADDING) as u32;
        let lane = warp.lane_index();
        let lane_offset = lane % 16 * pitch + lane / 16 * 16;
        self.start + lane_offset + (row as u32 * pitch + column as u32 * 16)
    }

    /// Loads the fragment `a` of [`Warp::mma_bf16`] and [`Warp::mma_f16`]: 16 rows from `row` on,
    /// and 16 elements from the `U32x4` with index `column` on (`ldmatrix.x4`).
    ///
    /// # Panics
    ///
    /// If the fragment is out of bounds.
    #[doc(alias = "ldmatrix")]
    #[inline(always)]
    pub fn load(&self, warp: &Warp, row: usize, column: usize) -> Lanes<[u32; 4]> {
        let address = self.lane_row(warp, row, column);
        let [mut m0, mut m1, mut m2, mut m3] = [0_u32; 4];
        // SAFETY: all lanes of the warp get here, with rows in bounds of a tile in shared memory,
        // which nobody writes.
        unsafe {
            ptx!(
                "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{0}, {1}, {2}, {3}}}, [{4}];",
                out(r) m0, out(r) m1, out(r) m2, out(r) m3, in(r) address
            );
        }
        Lanes([m0, m1, m2, m3])
    }

    /// Loads two fragments `b` of [`Warp::mma_bf16`] and [`Warp::mma_f16`] from a tile whose rows
    /// are those of the second factor: 16 rows from `row` on, and the columns of the `U32x4` with
    /// index `column` and of the next one (`ldmatrix.x4.trans`).
    ///
    /// # Panics
    ///
    /// If the fragments are out of bounds.
    #[doc(alias = "ldmatrix")]
    #[inline(always)]
    pub fn load_transposed(&self, warp: &Warp, row: usize, column: usize) -> [Lanes<[u32; 2]>; 2] {
        let address = self.lane_row(warp, row, column);
        let [mut m0, mut m1, mut m2, mut m3] = [0_u32; 4];
        // SAFETY: all lanes of the warp get here, with rows in bounds of a tile in shared memory,
        // which nobody writes.
        unsafe {
            ptx!(
                "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{{0}, {1}, {2}, {3}}}, [{4}];",
                out(r) m0, out(r) m1, out(r) m2, out(r) m3, in(r) address
            );
        }
        [Lanes([m0, m1]), Lanes([m2, m3])]
    }
}
