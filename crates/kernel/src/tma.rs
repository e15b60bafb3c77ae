//! Copies of boxes of tensors between global and shared memory, by the tensor memory accelerator
//! (TMA).

use core::marker::PhantomData;
use core::ops::{Deref, Index};

use bytemuck::Pod;

use crate::block::{Block, BlockCodeOnly};
use crate::elements::Elements;
use crate::intrinsics as device;
use crate::launch::Launch;
use crate::mbarrier::{self, converge_warp};
use crate::operand::ThreadOperand;
use crate::parameter::{Description, GridRule, Kind, Parameter, Word};
use crate::ptx;
use crate::shared::{Shared, SharedType};
use crate::thread::Thread;

/// A matrix of constant size in shared memory, stored row by row without padding, to which boxes of
/// tensors are copied.
///
/// `tile[row][column]` is an element. A row has a multiple of 16 bytes. Rows and columns are at
/// most 256.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub struct BoxTile<T, const ROWS: usize, const COLUMNS: usize> {
    rows: [[T; COLUMNS]; ROWS],
}

/// A matrix of constant size in shared memory with rows of 128 bytes, whose 16-byte pieces are
/// exchanged by the swizzle pattern of 128 bytes: the operand of [`WarpGroup`](crate::WarpGroup)
/// products.
///
/// It has a multiple of 8 rows, up to 256. [`SwizzledTile::get`] returns an element.
#[derive(Clone, Copy)]
#[repr(C, align(1024))]
pub struct SwizzledTile<T, const ROWS: usize, const COLUMNS: usize> {
    rows: [[T; COLUMNS]; ROWS],
}

/// Tiles in shared memory to which boxes of tensors are copied: [`BoxTile`] and [`SwizzledTile`].
///
/// # Safety
///
/// The constants describe the type, and any bytes are a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tile for copies of tensors",
    label = "expected `BoxTile<T, ROWS, COLUMNS>` or `SwizzledTile<T, ROWS, COLUMNS>`"
)]
pub unsafe trait TensorTile: SharedType + Sync {
    /// The type of an element.
    type Element: TensorElement;
    /// The number of rows.
    const ROWS: usize;
    /// The number of columns.
    const COLUMNS: usize;
    /// `true` for the swizzle pattern of 128 bytes.
    const IS_SWIZZLED: bool;
}

/// Elements of tensors: `u8`, `u16` (also for binary16 and bfloat16), `u32`, `i32`, `u64`, `i64`,
/// `f32` and `f64`. The trait is sealed.
pub trait TensorElement: Pod + sealed::Element {
    /// `CUtensorMapDataType`.
    #[doc(hidden)]
    const DATA_TYPE: u32;
}

mod sealed {
    pub trait Element {}
}

macro_rules! elements {
    ($($ty:ty = $number:literal)*) => {$(
        impl sealed::Element for $ty {}
        impl TensorElement for $ty {
            const DATA_TYPE: u32 = $number;
        }
    )*};
}

elements!(u8 = 0 u16 = 1 u32 = 2 i32 = 3 u64 = 4 i64 = 5 f32 = 7 f64 = 8);

/// Checks the sizes of a tile, and returns its size in bytes.
const fn checked_bytes<T, const ROWS: usize, const COLUMNS: usize>() -> usize {
    assert!(
        ROWS >= 1 && ROWS <= 256 && COLUMNS >= 1 && COLUMNS <= 256,
        "a box of a tensor has 1 to 256 rows and columns"
    );
    assert!(
        (COLUMNS * size_of::<T>()).is_multiple_of(16),
        "a row of a box has a multiple of 16 bytes"
    );
    ROWS * COLUMNS * size_of::<T>()
}

// SAFETY: any bytes are a value, and the type has no interior mutability.
unsafe impl<T: TensorElement, const ROWS: usize, const COLUMNS: usize> SharedType
    for BoxTile<T, ROWS, COLUMNS>
{
}

// SAFETY: the constants are those of the type.
unsafe impl<T: TensorElement + Sync, const ROWS: usize, const COLUMNS: usize> TensorTile
    for BoxTile<T, ROWS, COLUMNS>
{
    type Element = T;
    const ROWS: usize = {
        let _ = checked_bytes::<T, ROWS, COLUMNS>();
        ROWS
    };
    const COLUMNS: usize = COLUMNS;
    const IS_SWIZZLED: bool = false;
}

// SAFETY: any bytes are a value, and the type has no interior mutability.
unsafe impl<T: TensorElement, const ROWS: usize, const COLUMNS: usize> SharedType
    for SwizzledTile<T, ROWS, COLUMNS>
{
}

// SAFETY: the constants are those of the type.
unsafe impl<T: TensorElement + Sync, const ROWS: usize, const COLUMNS: usize> TensorTile
    for SwizzledTile<T, ROWS, COLUMNS>
{
    type Element = T;
    const ROWS: usize = {
        let _ = checked_bytes::<T, ROWS, COLUMNS>();
        assert!(
            COLUMNS * size_of::<T>() == 128 && ROWS.is_multiple_of(8),
            "a swizzled tile has rows of 128 bytes, and a multiple of 8 rows"
        );
        ROWS
    };
    const COLUMNS: usize = COLUMNS;
    const IS_SWIZZLED: bool = true;
}

impl<T, const ROWS: usize, const COLUMNS: usize> Index<usize> for BoxTile<T, ROWS, COLUMNS> {
    type Output = [T; COLUMNS];

    #[inline(always)]
    fn index(&self, row: usize) -> &[T; COLUMNS] {
        &self.rows[row]
    }
}

impl<T: Copy, const ROWS: usize, const COLUMNS: usize> SwizzledTile<T, ROWS, COLUMNS> {
    /// Returns an element.
    ///
    /// # Panics
    ///
    /// If the row or the column is out of bounds.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> T {
        const { assert!(COLUMNS * size_of::<T>() == 128) };
        assert!(column < COLUMNS, "the column is out of bounds");
        let in_piece = 16 / size_of::<T>();
        let piece = (column / in_piece) ^ (row % 8);
        self.rows[row][piece * in_piece + column % in_piece]
    }
}

// SAFETY: threads own different elements, by their index modulo the number of threads.
unsafe impl<
    'a,
    T: TensorElement,
    const ROWS: usize,
    const COLUMNS: usize,
    const X: u32,
    const Y: u32,
    const Z: u32,
> ThreadOperand<X, Y, Z> for &'a mut Shared<BoxTile<T, ROWS, COLUMNS>>
{
    type Part = Elements<'a, T>;

    #[inline(always)]
    unsafe fn thread_part(self) -> Elements<'a, T> {
        // SAFETY: the caller guarantees the dimensions.
        let thread = unsafe { crate::thread::index_in_block::<X, Y, Z>() };
        // SAFETY: the memory is borrowed mutably, has that many elements without padding, and other
        // threads own other elements.
        unsafe {
            Elements::new(
                self.as_ptr().cast(),
                ROWS * COLUMNS,
                thread,
                Block::<X, Y, Z>::THREADS,
                true,
            )
        }
    }
}

impl<T: TensorElement, const ROWS: usize, const COLUMNS: usize> Shared<BoxTile<T, ROWS, COLUMNS>> {
    /// Writes each element, in the thread that owns it. No barrier.
    ///
    /// `value` receives the row and the column in the tile.
    #[inline(always)]
    pub fn fill<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        value: impl Fn(&Thread, (usize, usize)) -> T + Sync,
    ) {
        block.threads_with(self, |t, elements| {
            for (index, element) in elements {
                *element = value(t, (index / COLUMNS, index % COLUMNS));
            }
        });
    }
}

/// The bytes of a tensor map (`CUtensorMap`).
#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct TensorMapBytes(pub(crate) [u64; 16]);

/// A parameter that the host passes by value and the kernel receives by its address
/// (`__grid_constant__`).
#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(transparent)]
#[cfg(target_arch = "nvptx64")]
pub struct GridConstant<T>(*const T);

/// A parameter that the host passes by value and the kernel receives by its address
/// (`__grid_constant__`).
#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(transparent)]
#[cfg(not(target_arch = "nvptx64"))]
pub struct GridConstant<T>(pub(crate) T);

impl<T> GridConstant<T> {
    #[inline(always)]
    fn address(self) -> u64 {
        #[cfg(target_arch = "nvptx64")]
        {
            self.0 as usize as u64
        }
        #[cfg(not(target_arch = "nvptx64"))]
        {
            crate::intrinsics::only_on_the_device()
        }
    }
}

/// A matrix that a kernel reads in boxes of the size of `Tile`
/// (`const __grid_constant__ CUtensorMap`). Needs compute capability 9.0.
///
/// `map.at(row, column)` is a box, which [`TmaRing::pipeline`], [`TmaRing::multiply`] and
/// [`Barrier::load`](crate::Barrier::load) copy to shared memory. A launch passes a `RowMajor` of
/// `&buffer` or a view, and creates the tensor map from it: the type of elements, the box and the
/// swizzle are those of `Tile`. A row has a multiple of 16 bytes.
#[doc(alias = "CUtensorMap")]
pub struct TensorMap<Tile> {
    map: u64,
    rows: u32,
    columns: u32,
    _tile: PhantomData<fn() -> Tile>,
}

impl<Tile> Clone for TensorMap<Tile> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<Tile> Copy for TensorMap<Tile> {}

/// A box of a tensor: the source of a copy.
pub struct TensorBox<'a, Tile> {
    map: u64,
    row: i32,
    column: i32,
    _map: PhantomData<&'a Tile>,
}

/// A matrix of which each block owns the box with its index: the block with `blockIdx` (x, y) the
/// one in column x and row y of boxes.
///
/// [`PerBlockTensor::store`] copies a tile from shared memory to it (TMA). A launch passes a
/// `RowMajor` of `&mut buffer` or a mutable view. A row has a multiple of 16 bytes. Needs compute
/// capability 9.0.
pub struct PerBlockTensor<Tile> {
    map: u64,
    rows: u32,
    columns: u32,
    _tile: PhantomData<fn() -> Tile>,
    _not_sync: BlockCodeOnly,
}

const TENSOR_WORDS: [Word; 3] = [
    Word::grid_constant::<TensorMapBytes>(),
    Word::value::<u32>(),
    Word::value::<u32>(),
];

// SAFETY: the launcher passes the map of a matrix of that many rows and columns, which is borrowed,
// so that nobody writes it during the launch.
unsafe impl<Tile: TensorTile> Parameter for TensorMap<Tile> {
    type In<'k> = TensorMap<Tile>;
    type First = GridConstant<TensorMapBytes>;
    type Second = u32;
    type Third = u32;

    const DESCRIPTION: Description =
        Description::new::<Tile::Element>(Kind::TensorMap, TENSOR_WORDS).with_sizes([
            Tile::ROWS as u32,
            Tile::COLUMNS as u32,
            Tile::IS_SWIZZLED as u32,
        ]);

    #[inline(always)]
    unsafe fn from_words(
        _: &Launch,
        map: GridConstant<TensorMapBytes>,
        rows: u32,
        columns: u32,
    ) -> TensorMap<Tile> {
        TensorMap {
            map: map.address(),
            rows,
            columns,
            _tile: PhantomData,
        }
    }
}

// SAFETY: the launcher passes the map of a matrix of that many rows and columns, which is borrowed
// mutably, so that only this launch accesses it, and a grid in which blocks have different indices.
unsafe impl<Tile: TensorTile> Parameter for PerBlockTensor<Tile> {
    type In<'k> = PerBlockTensor<Tile>;
    type First = GridConstant<TensorMapBytes>;
    type Second = u32;
    type Third = u32;

    const DESCRIPTION: Description =
        Description::new::<Tile::Element>(Kind::PerBlockTensor, TENSOR_WORDS)
            .on(GridRule::Plane)
            .with_sizes([
                Tile::ROWS as u32,
                Tile::COLUMNS as u32,
                Tile::IS_SWIZZLED as u32,
            ]);

    #[inline(always)]
    unsafe fn from_words(
        _: &Launch,
        map: GridConstant<TensorMapBytes>,
        rows: u32,
        columns: u32,
    ) -> PerBlockTensor<Tile> {
        PerBlockTensor {
            map: map.address(),
            rows,
            columns,
            _tile: PhantomData,
            _not_sync: BlockCodeOnly::NEW,
        }
    }
}

/// The largest number of rows and columns, and the largest coordinate. It is a multiple of 16
/// bytes.
pub(crate) const MAX_COORDINATE: i32 = i32::MAX - 15;

/// Converts a coordinate. One that does not fit stays beyond the edges of the matrix.
#[inline(always)]
fn coordinate(value: isize) -> i32 {
    value.clamp(i32::MIN as isize, MAX_COORDINATE as isize) as i32
}

impl<Tile: TensorTile> TensorMap<Tile> {
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

    /// Returns the box whose first element has this row and column. Both can be negative; elements
    /// beyond the matrix are zero.
    ///
    /// # Panics
    ///
    /// If the column is not a multiple of 16 bytes, which the hardware requires.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, row: isize, column: isize) -> TensorBox<'_, Tile> {
        let columns = const { 16 / size_of::<Tile::Element>() as isize };
        assert!(
            column % columns == 0,
            "the first column of a box is not a multiple of 16 bytes"
        );
        TensorBox {
            map: self.map,
            row: coordinate(row),
            column: coordinate(column),
            _map: PhantomData,
        }
    }
}

impl<Tile: TensorTile> PerBlockTensor<Tile> {
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

    /// Copies the tile to the box of the block, and waits for the copy. Elements beyond the matrix
    /// are left out. Two barriers.
    ///
    /// PTX: `fence.proxy.async`, `cp.async.bulk.tensor`, `cp.async.bulk.commit_group`,
    /// `cp.async.bulk.wait_group`.
    #[doc(alias = "cp.async.bulk.tensor")]
    #[inline(always)]
    pub fn store<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        tile: &mut Shared<Tile>,
    ) {
        // A block index is below 2³¹ and a size at most 256, so the products do not overflow.
        let row = coordinate((block.index_y() * Tile::ROWS) as isize);
        let column = coordinate((block.index_x() * Tile::COLUMNS) as isize);
        // The writes of each thread come before the copy.
        fence_proxy_async();
        block.barrier();
        if block.index_in_block() == 0 {
            // SAFETY: the tile is in shared memory.
            let tile = unsafe { device::shared_address(tile.as_ptr() as usize as u64) };
            // SAFETY: the box belongs to this block, the tile is borrowed mutably and was written
            // before the barrier, and the thread waits for the copy before the other threads
            // continue.
            unsafe {
                ptx!(
                    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [{0}, {{{1}, {2}}}], [{3}]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
                    in(l) self.map, in(r) column.cast_unsigned(), in(r) row.cast_unsigned(), in(r) tile
                );
            }
        }
        block.barrier();
    }
}

/// Orders the running thread's accesses to shared memory before those of later asynchronous copies.
#[inline(always)]
pub(crate) fn fence_proxy_async() {
    // SAFETY: a fence has no requirements.
    unsafe { device::fence_proxy_async() };
}

/// A tile whose copy is complete, and which nobody writes.
pub struct Loaded<'a, Tile> {
    tile: &'a Tile,
}

impl<Tile> Clone for Loaded<'_, Tile> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<Tile> Copy for Loaded<'_, Tile> {}

impl<Tile> Deref for Loaded<'_, Tile> {
    type Target = Tile;

    #[inline(always)]
    fn deref(&self) -> &Tile {
        self.tile
    }
}

/// The tiles of a stage of a [`TmaRing`]: a tile, or a tuple of up to four.
///
/// # Safety
///
/// The constants are the bytes in shared memory, in multiples of 1024, and those that `copy`
/// copies.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stage of a ring",
    label = "expected a tile or a tuple of tiles",
    note = "tiles are `BoxTile<T, ROWS, COLUMNS>` and `SwizzledTile<T, ROWS, COLUMNS>`"
)]
pub unsafe trait RingStage: 'static {
    /// The boxes that are copied to the tiles.
    type Sources<'a>;
    /// The tiles after the copies.
    type View<'a>;
    /// The addresses of the tiles.
    #[doc(hidden)]
    type Addresses: Copy;

    /// The size in shared memory.
    #[doc(hidden)]
    const BYTES: usize;
    /// The number of bytes that are copied.
    #[doc(hidden)]
    const COPIED_BYTES: u32;

    /// Returns the addresses of tiles that begin at `start`, which is aligned to 1024 bytes.
    #[doc(hidden)]
    fn addresses_at(start: *mut u8) -> Self::Addresses;

    /// Starts the copies, which complete on the barrier.
    ///
    /// # Safety
    ///
    /// One thread calls this. Nothing else accesses the tiles until the barrier's phase has ended,
    /// and someone waits for that.
    #[doc(hidden)]
    unsafe fn copy(tiles: Self::Addresses, barrier: u32, sources: Self::Sources<'_>);

    /// # Safety
    ///
    /// The copies are complete, and nobody writes the tiles for `'a`.
    #[doc(hidden)]
    unsafe fn view<'a>(tiles: Self::Addresses) -> Self::View<'a>;
}

/// Tiles in shared memory that [`Barrier::load`](crate::Barrier::load) overwrites: `&mut Shared<…>`
/// of a tile, or a tuple of up to four.
///
/// # Safety
///
/// The tiles are borrowed mutably.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory to which boxes of tensors are copied",
    label = "expected `&mut Shared<…>` of a tile, or a tuple of them",
    note = "tiles are `BoxTile<T, ROWS, COLUMNS>` and `SwizzledTile<T, ROWS, COLUMNS>`"
)]
pub unsafe trait LoadTarget {
    /// The types of the tiles.
    type Stage: RingStage;

    #[doc(hidden)]
    fn addresses(self) -> <Self::Stage as RingStage>::Addresses;
}

// SAFETY: the tile is borrowed mutably.
unsafe impl<Tile: TensorTile> LoadTarget for &mut Shared<Tile> {
    type Stage = Tile;

    #[inline(always)]
    fn addresses(self) -> *mut Tile {
        self.as_ptr()
    }
}

/// Stages and rings begin at multiples of this, the size of the swizzle pattern.
const PATTERN: usize = 1024;

// SAFETY: the constants are those of the tile.
unsafe impl<Tile: TensorTile> RingStage for Tile {
    type Sources<'a> = TensorBox<'a, Tile>;
    type View<'a> = Loaded<'a, Tile>;
    type Addresses = *mut Tile;

    const BYTES: usize = size_of::<Tile>().next_multiple_of(PATTERN);
    const COPIED_BYTES: u32 = checked_copy::<Tile>();

    #[inline(always)]
    fn addresses_at(start: *mut u8) -> Self::Addresses {
        start.cast()
    }

    #[inline(always)]
    unsafe fn copy(tile: Self::Addresses, barrier: u32, source: TensorBox<'_, Tile>) {
        // SAFETY: the tile is in shared memory.
        let tile = unsafe { device::shared_address(tile as usize as u64) };
        // SAFETY: the map was created for this tile, and the caller guarantees the memory.
        unsafe {
            ptx!(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [{0}], [{1}, {{{2}, {3}}}], [{4}];",
                in(r) tile, in(l) source.map, in(r) source.column.cast_unsigned(), in(r) source.row.cast_unsigned(), in(r) barrier
            );
        }
    }

    #[inline(always)]
    unsafe fn view<'a>(tile: Self::Addresses) -> Loaded<'a, Tile> {
        Loaded {
            // SAFETY: the caller guarantees it, and any bytes are a `Tile`.
            tile: unsafe { &*tile },
        }
    }
}

/// Returns the number of bytes of a box.
const fn checked_copy<Tile: TensorTile>() -> u32 {
    let bytes = Tile::ROWS * Tile::COLUMNS * size_of::<Tile::Element>();
    // The number of pending bytes of an mbarrier is limited to 2^20 - 1, for up to four tiles.
    assert!(bytes < 1 << 18, "a tile is smaller than 256 KiB");
    bytes as u32
}

macro_rules! tuples {
    ($($tile:ident $index:tt)*) => {
        // SAFETY: each tile is borrowed mutably.
        unsafe impl<$($tile: TensorTile),*> LoadTarget for ($(&mut Shared<$tile>,)*) {
            type Stage = ($($tile,)*);

            #[inline(always)]
            fn addresses(self) -> <Self::Stage as RingStage>::Addresses {
                ($(LoadTarget::addresses(self.$index),)*)
            }
        }

        // SAFETY: the constants are the sums of those of the tiles.
        unsafe impl<$($tile: TensorTile),*> RingStage for ($($tile,)*) {
            type Sources<'a> = ($(TensorBox<'a, $tile>,)*);
            type View<'a> = ($(Loaded<'a, $tile>,)*);
            type Addresses = ($(<$tile as RingStage>::Addresses,)*);

            const BYTES: usize = 0 $(+ <$tile as RingStage>::BYTES)*;
            const COPIED_BYTES: u32 = 0 $(+ <$tile as RingStage>::COPIED_BYTES)*;

            #[inline(always)]
            #[allow(unused_assignments, reason = "the offset after the last tile")]
            fn addresses_at(start: *mut u8) -> Self::Addresses {
                let mut offset = 0;
                ($({
                    let tile = <$tile as RingStage>::addresses_at(start.wrapping_add(offset));
                    offset += <$tile as RingStage>::BYTES;
                    tile
                },)*)
            }

            #[inline(always)]
            unsafe fn copy(tiles: Self::Addresses, barrier: u32, sources: Self::Sources<'_>) {
                $(
                    // SAFETY: one thread calls this, and nothing else accesses the tiles until the
                    // phase of the barrier has ended.
                    unsafe { <$tile as RingStage>::copy(tiles.$index, barrier, sources.$index) };
                )*
            }

            #[inline(always)]
            unsafe fn view<'a>(tiles: Self::Addresses) -> Self::View<'a> {
                // SAFETY: the copies are complete, and the caller keeps writers away for `'a`.
                ($(unsafe { <$tile as RingStage>::view(tiles.$index) },)*)
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0 B 1);
tuples!(A 0 B 1 C 2);
tuples!(A 0 B 1 C 2 D 3);

/// A ring of tiles in dynamic shared memory, to which boxes of tensors are copied ahead of their
/// use (a multi-stage TMA pipeline). Needs compute capability 9.0.
///
/// `S` is the type of a stage: a [`BoxTile`] or a [`SwizzledTile`], or a tuple of up to four. A
/// launch passes the number of stages as `usize`, at least 2; three or four hide the latency of the
/// copies. A kernel has at most one ring, and then no [`DynamicShared`](crate::DynamicShared).
///
/// Each stage has two barriers in shared memory: *full*, which ends a phase when its copies are
/// complete, and *empty*, which ends one when all warps have released it. The phases are counted by
/// the ring, so code can neither read a stage before its copy is complete nor overwrite it while a
/// warp reads it.
#[doc(alias = "pipeline")]
pub struct TmaRing<S> {
    /// The first stage, aligned to 1024 bytes.
    start: *mut u8,
    /// The address of the full barriers in shared memory. The empty barriers follow.
    barriers: u32,
    stages: u32,
    /// The stage that is used next.
    next: u32,
    /// The parity of that stage's phase.
    parity: u32,
    is_initialized: bool,
    _stage: PhantomData<fn() -> S>,
    _not_sync: BlockCodeOnly,
}

/// The bytes of the two barriers of a stage.
const BARRIER_BYTES: usize = 16;

/// Returns the dynamic shared memory of a ring in bytes, or `None` if it is out of range.
#[cfg(all(feature = "host", not(target_arch = "nvptx64")))]
pub(crate) fn ring_bytes<S: RingStage>(stages: usize) -> Option<u32> {
    let bytes = stages.checked_mul(S::BYTES + BARRIER_BYTES)?;
    u32::try_from(bytes.checked_add(PATTERN)?).ok()
}

// SAFETY: the launcher reserves the bytes, and `KernelTable::new` checks that a kernel has one
// parameter in dynamic shared memory.
unsafe impl<S: RingStage> Parameter for TmaRing<S> {
    type In<'k> = TmaRing<S>;
    type First = ();
    type Second = ();
    type Third = ();

    const DESCRIPTION: Description = {
        assert!(S::BYTES <= 1 << 20, "a stage is larger than shared memory");
        Description::new::<u8>(Kind::TmaRing, [Word::ABSENT; 3]).with_sizes([
            S::BYTES as u32,
            S::COPIED_BYTES,
            0,
        ])
    };

    #[inline(always)]
    unsafe fn from_words(_: &Launch, (): (), (): (), (): ()) -> TmaRing<S> {
        // SAFETY: reads the address.
        let memory = unsafe { device::dynamic_shared() };
        // SAFETY: reads a special register.
        let bytes = unsafe { device::dynamic_shared_size() } as usize;
        let stages = (bytes - PATTERN) / (S::BYTES + BARRIER_BYTES);
        // SAFETY: the memory is in shared memory.
        let address = unsafe { device::shared_address(memory as usize as u64) };
        let padding = address.wrapping_neg() as usize % PATTERN;
        TmaRing {
            start: memory.wrapping_add(padding),
            barriers: address + (padding + stages * S::BYTES) as u32,
            stages: stages as u32,
            next: 0,
            parity: 0,
            is_initialized: false,
            _stage: PhantomData,
            _not_sync: BlockCodeOnly::NEW,
        }
    }
}

impl<S: RingStage> TmaRing<S> {
    /// Returns the number of stages.
    #[inline(always)]
    #[must_use]
    pub fn stages(&self) -> usize {
        self.stages as usize
    }

    /// Runs `code` for each step with its tiles, while the boxes of the next steps are copied.
    ///
    /// `sources` returns the boxes of a step, such as `map.at(row, column)`. Both closures are code
    /// of the block. One thread starts the copies of a step when all warps have released the stage
    /// that it reuses.
    ///
    /// ```
    /// # use curium_kernel::prelude::*;
    /// #[kernel]
    /// pub fn row_sums(
    ///     block: Block<64>,
    ///     mut ring: TmaRing<BoxTile<f32, 64, 32>>,
    ///     x: TensorMap<BoxTile<f32, 64, 32>>,
    ///     mut y: PerThread<f32>,
    /// ) {
    ///     let row = (block.index() * 64) as isize;
    ///     let mut sums = Registers::new(0.0_f32);
    ///     ring.pipeline(
    ///         &block,
    ///         x.columns().div_ceil(32),
    ///         |step| x.at(row, 32 * step as isize),
    ///         |_, tile| {
    ///             block.threads_with(&mut sums, |t, sum| *sum += tile[t.index_in_block()].iter().sum::<f32>());
    ///         },
    ///     );
    ///     block.threads_with((&mut y, &sums), |_, (y, sum)| {
    ///         if let Some(y) = y.first() {
    ///             *y = *sum;
    ///         }
    ///     });
    /// }
    /// ```
    ///
    /// PTX: `cp.async.bulk.tensor`, `mbarrier.arrive.expect_tx`, `mbarrier.try_wait`.
    #[doc(alias = "cp.async.bulk.tensor")]
    #[inline(always)]
    pub fn pipeline<'m, const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        steps: usize,
        mut sources: impl FnMut(usize) -> S::Sources<'m>,
        mut code: impl for<'v> FnMut(usize, S::View<'v>),
    ) {
        self.start(block, steps, &mut sources);
        for step in 0..steps {
            let stage = self.wait_full();
            // SAFETY: the copies are complete, and the stage is overwritten only after all warps
            // have released it.
            code(step, unsafe { S::view(self.tiles(stage.index)) });
            // SAFETY: the warp has finished with the stage.
            unsafe { self.release(stage) };
            // SAFETY: the warp has released the stage.
            unsafe { self.refill(block, stage, step, steps, &mut sources) };
        }
    }

    /// Starts the copies of the first steps.
    #[inline(always)]
    pub(crate) fn start<'m, const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        steps: usize,
        sources: &mut impl FnMut(usize) -> S::Sources<'m>,
    ) {
        if !self.is_initialized {
            if block.index_in_block() == 0 {
                for index in 0..self.stages {
                    // SAFETY: the memory belongs to the ring, is initialized once, and a block
                    // barrier follows.
                    unsafe { mbarrier::init(self.full(index), 1) };
                    // SAFETY: the memory belongs to the ring, is initialized once, and a block
                    // barrier follows.
                    unsafe { mbarrier::init(self.empty(index), Block::<X, Y, Z>::WARPS as u32) };
                }
            }
            self.is_initialized = true;
        }
        // All threads have finished with the stages of an earlier pipeline.
        block.barrier();
        let mut index = self.next;
        for step in 0..steps.min(self.stages()) {
            // SAFETY: no copy to this stage is in flight, and nobody reads it.
            unsafe { self.copy(block, index, sources(step)) };
            index = if index + 1 == self.stages {
                0
            } else {
                index + 1
            };
        }
        converge_warp();
    }

    /// Waits for the copies of the next stage, and returns it.
    #[inline(always)]
    pub(crate) fn wait_full(&mut self) -> Stage {
        let stage = Stage {
            index: self.next,
            parity: self.parity,
        };
        // SAFETY: the copies of the stage were started, and each phase is waited for in turn.
        unsafe { device::mbarrier_wait(self.full(stage.index), stage.parity) };
        converge_warp();
        self.next += 1;
        if self.next == self.stages {
            self.next = 0;
            self.parity ^= 1;
        }
        stage
    }

    /// Releases a stage, for the running warp.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call this once after [`TmaRing::wait_full`], and do not access the
    /// stage any more.
    #[inline(always)]
    pub(crate) unsafe fn release(&mut self, stage: Stage) {
        converge_warp();
        // SAFETY: reads a special register.
        if unsafe { device::laneid() } == 0 {
            // SAFETY: the barrier was initialized for the warps of the block, each of which arrives
            // once in a phase.
            unsafe { device::mbarrier_arrive(self.empty(stage.index)) };
        }
        converge_warp();
    }

    /// Starts the copies of the step that reuses the stage of the step `done`, when all warps have
    /// released it.
    ///
    /// # Safety
    ///
    /// The running warp has released the stage.
    #[inline(always)]
    pub(crate) unsafe fn refill<'m, const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        stage: Stage,
        done: usize,
        steps: usize,
        sources: &mut impl FnMut(usize) -> S::Sources<'m>,
    ) {
        let step = done + self.stages();
        if step >= steps {
            return;
        }
        let sources = sources(step);
        if block.index_in_block() == 0 {
            // SAFETY: all warps release the stage once in each phase.
            unsafe { device::mbarrier_wait(self.empty(stage.index), stage.parity) };
        }
        // SAFETY: all warps have released the stage, and its copies are complete.
        unsafe { self.copy(block, stage.index, sources) };
        converge_warp();
    }

    /// Starts the copies to a stage, in one thread of the block.
    ///
    /// # Safety
    ///
    /// No copy to this stage is in flight, nobody accesses it, and all threads wait for the copies.
    #[inline(always)]
    unsafe fn copy<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        index: u32,
        sources: S::Sources<'_>,
    ) {
        if block.index_in_block() == 0 {
            let full = self.full(index);
            // SAFETY: the barrier was initialized for one arrival.
            unsafe { device::mbarrier_arrive_expect(full, S::COPIED_BYTES) };
            // SAFETY: the caller guarantees the memory.
            unsafe { S::copy(self.tiles(index), full, sources) };
        }
    }

    #[inline(always)]
    pub(crate) fn tiles(&self, index: u32) -> S::Addresses {
        S::addresses_at(self.start.wrapping_add(index as usize * S::BYTES))
    }

    #[inline(always)]
    fn full(&self, index: u32) -> u32 {
        self.barriers + 8 * index
    }

    #[inline(always)]
    fn empty(&self, index: u32) -> u32 {
        self.barriers + 8 * (self.stages + index)
    }
}

/// A stage of a ring in use.
#[derive(Clone, Copy)]
pub(crate) struct Stage {
    pub(crate) index: u32,
    pub(crate) parity: u32,
}
