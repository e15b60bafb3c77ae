//! Warpgroups, and their matrix products on tensor cores (`wgmma`).
//!
//! A product is asynchronous: it reads shared memory and changes accumulators until a wait.
//! [`Products`] is the only way to start one, and whoever creates it waits before the operands or
//! the accumulators can be used in another way.

use core::marker::PhantomData;

use bytemuck::AnyBitPattern;

use crate::address::Address;
use crate::block::{Block, BlockCodeOnly};
use crate::intrinsics as device;
use crate::launch::Launch;
use crate::mma::pack_bf16;
use crate::parameter::{Description, GridRule, Kind, Parameter, Word};
use crate::ptx;
use crate::registers::Registers;
use crate::thread::Thread;
use crate::tma::{Loaded, RingStage, SwizzledTile, TmaRing};
use crate::vector::F32x2;
use crate::warp::{ALL, WHOLE_WARP};

/// The number of threads of a warpgroup.
const THREADS: usize = 128;

/// The rows of a product.
const ROWS: usize = 64;

/// The columns of a swizzled tile of 16-bit elements.
const INNER: usize = 64;

/// Four adjacent warps of a block, which execute the same code with the same values. Needs the
/// target `sm_90a`.
pub struct WarpGroup {
    index: usize,
    _not_sync: BlockCodeOnly,
}

/// A part of the accumulators of a product of 64 × `N` elements: those of one thread.
///
/// `Registers<Accumulators<N>>` are the accumulators of all warpgroups of a block. Only code of
/// threads reads them ([`Accumulators::for_each`]).
#[derive(Clone, Copy)]
pub struct Accumulators<const N: usize>
where
    Columns<N>: Width,
{
    values: <Columns<N> as Width>::Values,
}

/// The number of columns of a product, as a type.
pub struct Columns<const N: usize>;

/// The numbers of columns of a product: 64, 128 and 256. The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a product of a warpgroup does not have this number of columns",
    note = "a product has 64, 128 or 256 columns"
)]
pub trait Width: sealed::Width {
    /// The accumulators of a thread.
    #[doc(hidden)]
    type Values: Copy + Sync;

    #[doc(hidden)]
    const ZERO: Self::Values;

    /// # Safety
    ///
    /// All threads of a warpgroup call this with the same descriptors of tiles in shared memory.
    /// The tiles are not written, and the accumulators not used, before `wait`.
    #[doc(hidden)]
    unsafe fn add_bf16(values: &mut Self::Values, a: u64, b: u64);

    /// # Safety
    ///
    /// As for `add_bf16`.
    #[doc(hidden)]
    unsafe fn add_f16(values: &mut Self::Values, a: u64, b: u64);

    /// Adds a product whose `a` is in registers.
    ///
    /// # Safety
    ///
    /// As for `add_bf16`, and `a` is used by `wait_for_fragments`.
    #[doc(hidden)]
    unsafe fn add_bf16_fragment(values: &mut Self::Values, a: [u32; 4], b: u64);

    /// Waits for all products, and uses the registers of `a`, so that they keep their values.
    ///
    /// # Safety
    ///
    /// All threads of a warpgroup call this.
    #[doc(hidden)]
    unsafe fn wait_for_fragments(values: &mut Self::Values, a: &[u32; 16]);

    /// Orders earlier accesses to the accumulators before the next product.
    ///
    /// # Safety
    ///
    /// All threads of a warpgroup call this.
    #[doc(hidden)]
    unsafe fn fence(values: &mut Self::Values);

    /// Waits for all products.
    ///
    /// # Safety
    ///
    /// All threads of a warpgroup call this.
    #[doc(hidden)]
    unsafe fn wait(values: &mut Self::Values);

    /// Passes each pair of adjacent accumulators with its number. The code is repeated, so that the
    /// accumulators stay in registers.
    #[doc(hidden)]
    fn for_each_pair(values: &mut Self::Values, code: impl FnMut(usize, &mut [f32; 2]));
}

mod sealed {
    pub trait Width {}
}

macro_rules! width {
    ($columns:literal, $count:literal, $bf16:literal, $f16:literal, $fragment:literal, $values:tt, [$($pair:literal)*]) => {
        impl sealed::Width for Columns<$columns> {}
        impl Width for Columns<$columns> {
            type Values = [f32; $count];

            const ZERO: [f32; $count] = [0.0; $count];

            #[inline(always)]
            unsafe fn add_bf16(values: &mut [f32; $count], a: u64, b: u64) {
                // SAFETY: all threads of the warpgroup get here with these tiles, which nobody
                // writes before `wait`.
                unsafe { ptx!($bf16, inout(f $values) values, in(l) a, in(l) b) };
            }

            #[inline(always)]
            unsafe fn add_f16(values: &mut [f32; $count], a: u64, b: u64) {
                // SAFETY: all threads of the warpgroup get here with these tiles, which nobody
                // writes before `wait`.
                unsafe { ptx!($f16, inout(f $values) values, in(l) a, in(l) b) };
            }

            #[inline(always)]
            unsafe fn add_bf16_fragment(values: &mut [f32; $count], a: [u32; 4], b: u64) {
                // SAFETY: all threads of the warpgroup get here with this tile, which nobody writes
                // before `wait`.
                unsafe { ptx!($fragment, inout(f $values) values, in(r [4]) a, in(l) b) };
            }

            #[inline(always)]
            unsafe fn wait_for_fragments(values: &mut [f32; $count], a: &[u32; 16]) {
                // The operands are not in the text, but are used only after it.
                // SAFETY: the caller guarantees it.
                unsafe {
                    ptx!("wgmma.wait_group.sync.aligned 0;", inout(f $values) values, in(r [16]) a);
                };
            }

            #[inline(always)]
            unsafe fn fence(values: &mut [f32; $count]) {
                // The operands are not in the text, but their values exist before it.
                // SAFETY: the caller guarantees it.
                unsafe { ptx!("wgmma.fence.sync.aligned;", inout(f $values) values) };
            }

            #[inline(always)]
            unsafe fn wait(values: &mut [f32; $count]) {
                // The operands are not in the text, but are used only after it.
                // SAFETY: the caller guarantees it.
                unsafe { ptx!("wgmma.wait_group.sync.aligned 0;", inout(f $values) values) };
            }

            #[inline(always)]
            fn for_each_pair(
                values: &mut [f32; $count],
                mut code: impl FnMut(usize, &mut [f32; 2]),
            ) {
                $(
                    let mut pair = [values[2 * $pair], values[2 * $pair + 1]];
                    code($pair, &mut pair);
                    [values[2 * $pair], values[2 * $pair + 1]] = pair;
                )*
            }
        }
    };
}

width!(
    64,
    32,
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {0}, {1}, {2}, 1, 1, 1, 0, 0;",
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {0}, {1}, {2}, 1, 1, 1, 0, 0;",
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {0}, {1}, {2}, 1, 1, 1, 0;",
    [32],
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]
);
width!(
    128,
    64,
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {0}, {1}, {2}, 1, 1, 1, 0, 0;",
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {0}, {1}, {2}, 1, 1, 1, 0, 0;",
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {0}, {1}, {2}, 1, 1, 1, 0;",
    [64],
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]
);
width!(
    256,
    128,
    "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {0}, {1}, {2}, 1, 1, 1, 0, 0;",
    "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {0}, {1}, {2}, 1, 1, 1, 0, 0;",
    "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {0}, {1}, {2}, 1, 1, 1, 0;",
    [128],
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63]
);

impl<const N: usize> Accumulators<N>
where
    Columns<N>: Width,
{
    /// Zeros.
    pub const ZERO: Self = Self {
        values: <Columns<N> as Width>::ZERO,
    };

    /// Passes each accumulator of the thread with its row, below 64, and its column in the product
    /// of the thread's warpgroup.
    #[inline(always)]
    pub fn for_each(&mut self, thread: &Thread, mut code: impl FnMut((usize, usize), &mut f32)) {
        let (row, column) = first_position(thread.index_in_block() % THREADS);
        Columns::<N>::for_each_pair(&mut self.values, |pair, values| {
            let (row, column) = (row + 8 * (pair % 2), column + 8 * (pair / 2));
            let [first, second] = values;
            code((row, column), first);
            code((row, column + 1), second);
        });
    }
}

/// Returns the position of the first accumulator of a thread of a warpgroup.
#[inline(always)]
fn first_position(thread: usize) -> (usize, usize) {
    let lane = thread % 32;
    (16 * (thread / 32) + lane / 4, 2 * (lane % 4))
}

/// The bfloat16 numbers of a thread, of the 64 × 64 numbers of its warpgroup: an operand of a
/// product in registers.
///
/// `Registers<WarpGroupFragments>` are those of all warpgroups of a block.
#[derive(Clone, Copy)]
pub struct WarpGroupFragments {
    /// Pairs of numbers: four for each product with an inner extent of 16.
    pairs: [u32; 16],
}

impl WarpGroupFragments {
    /// Creates the numbers of a thread. `code` receives the row and the column, both below 64, in
    /// the matrix of the thread's warpgroup.
    ///
    /// ```
    /// # use curium_kernel::prelude::*;
    /// # use curium_kernel::WarpGroupFragments;
    /// # fn example(block: &Block<128>, x: &[f32]) {
    /// let a = block.threads(|t| WarpGroupFragments::from_fn(t, |row, column| x[64 * row + column].max(0.0)));
    /// # let _ = a;
    /// # }
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn from_fn(thread: &Thread, code: impl Fn(usize, usize) -> f32) -> Self {
        let (row, column) = first_position(thread.index_in_block() % THREADS);
        let mut pairs = [0; 16];
        for piece in 0..4 {
            for part in 0..4 {
                let row = row + 8 * (part % 2);
                let column = column + 16 * piece + 8 * (part / 2);
                pairs[4 * piece + part] = pack_bf16(code(row, column), code(row, column + 1));
            }
        }
        Self { pairs }
    }
}

/// Products that a warpgroup adds to its accumulators. Operands live at least as long as `'s`.
///
/// [`WarpGroup::multiply`] and [`TmaRing::multiply`] create it, and wait for the products.
pub struct Products<'v, 's, const N: usize>
where
    Columns<N>: Width,
{
    values: &'v mut <Columns<N> as Width>::Values,
    /// The lifetime is neither shortened nor extended.
    _operands: PhantomData<fn(&'s ()) -> &'s ()>,
}

impl<'s, const N: usize> Products<'_, 's, N>
where
    Columns<N>: Width,
{
    /// Adds the product of 64 rows of `a`, from `first_row` on, and the transposed `b` (`a * bᵀ`),
    /// of bfloat16 numbers.
    ///
    /// `first_row` is a multiple of 8; usually it is `64 * warp_group.index()`.
    ///
    /// PTX: `wgmma.mma_async.m64nNk16.f32.bf16.bf16`, four times.
    ///
    /// # Panics
    ///
    /// If the rows are out of bounds.
    #[doc(alias = "wgmma.mma_async")]
    #[inline(always)]
    pub fn add_bf16<const A: usize>(
        &mut self,
        a: Loaded<'s, SwizzledTile<u16, A, INNER>>,
        first_row: usize,
        b: Loaded<'s, SwizzledTile<u16, N, INNER>>,
    ) {
        let (a, b) = descriptors(&a, first_row, &b);
        for piece in 0..PIECES {
            // SAFETY: all threads of the warpgroup get here. Whoever created `self` waits before
            // the operands or accumulators change.
            unsafe { Columns::<N>::add_bf16(self.values, a + 2 * piece, b + 2 * piece) };
        }
    }

    /// Adds a product of binary16 numbers. See [`Products::add_bf16`].
    ///
    /// PTX: `wgmma.mma_async.m64nNk16.f32.f16.f16`, four times.
    ///
    /// # Panics
    ///
    /// If the rows are out of bounds.
    #[doc(alias = "wgmma.mma_async")]
    #[inline(always)]
    pub fn add_f16<const A: usize>(
        &mut self,
        a: Loaded<'s, SwizzledTile<u16, A, INNER>>,
        first_row: usize,
        b: Loaded<'s, SwizzledTile<u16, N, INNER>>,
    ) {
        let (a, b) = descriptors(&a, first_row, &b);
        for piece in 0..PIECES {
            // SAFETY: all threads of the warpgroup get here. Whoever created `self` waits before
            // the operands or accumulators change.
            unsafe { Columns::<N>::add_f16(self.values, a + 2 * piece, b + 2 * piece) };
        }
    }
}

/// The products with an inner extent of 16 in a tile. The next one begins 32 bytes later, which is
/// 2 in a descriptor.
const PIECES: u64 = (INNER / 16) as u64;

/// The bits of a descriptor besides the address: the swizzle pattern of 128 bytes, whose groups of
/// 8 rows are 1024 bytes apart.
const DESCRIPTOR: u64 = 1 << 62 | (1024 / 16) << 32 | 1 << 16;

/// Returns the descriptors of 64 rows of `a` and of all rows of `b`.
#[inline(always)]
fn descriptors<const A: usize, const B: usize>(
    a: &SwizzledTile<u16, A, INNER>,
    first_row: usize,
    b: &SwizzledTile<u16, B, INNER>,
) -> (u64, u64) {
    assert!(
        first_row.is_multiple_of(8) && first_row <= A && A - first_row >= ROWS,
        "the rows of `a` are out of bounds"
    );
    let a_address = core::ptr::from_ref(a) as usize + first_row * 2 * INNER;
    let b_address = core::ptr::from_ref(b) as usize;
    (descriptor(a_address), descriptor(b_address))
}

#[inline(always)]
fn descriptor(address: usize) -> u64 {
    // SAFETY: the tile is in shared memory.
    let address = unsafe { device::shared_address(address as u64) };
    DESCRIPTOR | u64::from(address & 0x3_ffff) >> 4
}

impl WarpGroup {
    /// Returns the index of the warpgroup in its block.
    #[inline(always)]
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Adds products to the accumulators, and waits for them.
    ///
    /// ```
    /// # use curium_kernel::prelude::*;
    /// type Square = SwizzledTile<u16, 64, 64>;
    ///
    /// /// c = a * bᵀ, for 64 × 64 bfloat16 numbers.
    /// #[kernel]
    /// pub fn multiply(
    ///     block: Block<128>,
    ///     mut ring: TmaRing<(Square, Square)>,
    ///     a: TensorMap<Square>,
    ///     b: TensorMap<Square>,
    ///     mut c: PerWarpGroupTile<f32, 64>,
    /// ) {
    ///     let mut sums = Registers::new(Accumulators::<64>::ZERO);
    ///     ring.pipeline(&block, 1, |_| (a.at(0, 0), b.at(0, 0)), |_, (a, b)| {
    ///         block.warp_groups_with(&mut sums, |warp_group, sums| {
    ///             warp_group.multiply(sums, |products| products.add_bf16(a, 0, b));
    ///         });
    ///     });
    ///     c.store(&block, &sums);
    /// }
    /// ```
    ///
    /// PTX: `wgmma.fence`, `wgmma.mma_async`, `wgmma.commit_group`, `wgmma.wait_group`.
    #[doc(alias = "wgmma.mma_async")]
    #[inline(always)]
    pub fn multiply<'s, const N: usize>(
        &self,
        accumulators: &mut Accumulators<N>,
        code: impl FnOnce(&mut Products<'_, 's, N>),
    ) where
        Columns<N>: Width,
    {
        let values = &mut accumulators.values;
        // SAFETY: all threads of the warpgroup get here.
        unsafe { Columns::<N>::fence(values) };
        code(&mut Products {
            values,
            _operands: PhantomData,
        });
        // SAFETY: all threads of the warpgroup get here.
        unsafe { device::wgmma_commit() };
        // SAFETY: all threads of the warpgroup get here.
        unsafe { Columns::<N>::wait(values) };
    }
}

impl WarpGroup {
    /// Adds the product of `a`, which is in registers, and the transposed `b` (`a * bᵀ`) to the
    /// accumulators, and waits for it.
    ///
    /// PTX: `wgmma.fence`, `wgmma.mma_async`, `wgmma.commit_group`, `wgmma.wait_group`.
    #[doc(alias = "wgmma.mma_async")]
    #[inline(always)]
    pub fn multiply_fragments<const N: usize>(
        &self,
        accumulators: &mut Accumulators<N>,
        a: &WarpGroupFragments,
        b: Loaded<'_, SwizzledTile<u16, N, INNER>>,
    ) where
        Columns<N>: Width,
    {
        let values = &mut accumulators.values;
        let b = descriptor(core::ptr::from_ref(&*b) as usize);
        // SAFETY: all threads of the warpgroup get here.
        unsafe { Columns::<N>::fence(values) };
        for piece in 0..INNER / 16 {
            let pairs = core::array::from_fn(|part| a.pairs[4 * piece + part]);
            // SAFETY: all threads of the warpgroup get here, and wait below before the operands or
            // accumulators change.
            unsafe { Columns::<N>::add_bf16_fragment(values, pairs, b + 2 * piece as u64) };
        }
        // SAFETY: all threads of the warpgroup get here.
        unsafe { device::wgmma_commit() };
        // SAFETY: all threads of the warpgroup get here.
        unsafe { Columns::<N>::wait_for_fragments(values, &a.pairs) };
    }
}

/// An operand of [`Block::warp_groups_with`].
///
/// # Safety
///
/// The part belongs to the running thread, and only code of threads reads what differs between
/// threads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand of code of warpgroups",
    label = "not an operand of code of warpgroups",
    note = "operands are `&mut Registers<Accumulators<N>>`, `&Registers<WarpGroupFragments>`, and tuples of them"
)]
pub unsafe trait WarpGroupOperand {
    /// The part of a warpgroup.
    type Part;

    /// Returns the part of the running warpgroup.
    ///
    /// # Safety
    ///
    /// The part is passed to code of the running warpgroup only.
    #[doc(hidden)]
    unsafe fn warp_group_part(self) -> Self::Part;
}

// SAFETY: the fields of accumulators are private.
unsafe impl<'a, const N: usize> WarpGroupOperand for &'a mut Registers<Accumulators<N>>
where
    Columns<N>: Width,
{
    type Part = &'a mut Accumulators<N>;

    #[inline(always)]
    unsafe fn warp_group_part(self) -> &'a mut Accumulators<N> {
        &mut self.0
    }
}

// SAFETY: the fields of fragments are private.
unsafe impl<'a> WarpGroupOperand for &'a Registers<WarpGroupFragments> {
    type Part = &'a WarpGroupFragments;

    #[inline(always)]
    unsafe fn warp_group_part(self) -> &'a WarpGroupFragments {
        &self.0
    }
}

macro_rules! tuples {
    ($($operand:ident)*) => {
        // SAFETY: each operand upholds the contract.
        unsafe impl<$($operand: WarpGroupOperand),*> WarpGroupOperand for ($($operand,)*) {
            type Part = ($($operand::Part,)*);

            #[inline(always)]
            #[allow(non_snake_case, reason = "the names are those of the types")]
            unsafe fn warp_group_part(self) -> Self::Part {
                let ($($operand,)*) = self;
                // SAFETY: only code of the running warpgroup receives each part.
                ($(unsafe { $operand.warp_group_part() },)*)
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);

impl<const X: u32, const Y: u32, const Z: u32> Block<X, Y, Z> {
    /// The number of warpgroups in the block.
    const WARP_GROUPS: usize = {
        assert!(
            Self::THREADS.is_multiple_of(THREADS),
            "operations of warpgroups need a block whose number of threads is a multiple of 128"
        );
        Self::THREADS / THREADS
    };

    /// Runs code in each warpgroup, which receives its part of the operands. No barrier.
    ///
    /// Operands are `&mut Registers<Accumulators<N>>`, `&Registers<WarpGroupFragments>`, and tuples
    /// of them.
    #[inline(always)]
    pub fn warp_groups_with<A: WarpGroupOperand>(
        &self,
        operands: A,
        code: impl Fn(&WarpGroup, A::Part) + Sync,
    ) {
        // SAFETY: the part is passed to code of this warpgroup.
        code(&self.warp_group(), unsafe { operands.warp_group_part() });
    }

    /// Returns the running warpgroup. Only its code receives it.
    #[inline(always)]
    fn warp_group(&self) -> WarpGroup {
        const { assert!(Self::WARP_GROUPS > 0) };
        let index = (self.index_in_block() / THREADS) as u32;
        // The compiler of the driver cannot see that the index is the same in all lanes.
        // SAFETY: all lanes get here.
        let index = unsafe { device::shuffle_index(ALL, index, 0, WHOLE_WARP) } as usize;
        // SAFETY: the block has that many warpgroups.
        unsafe { core::hint::assert_unchecked(index < Self::WARP_GROUPS) };
        WarpGroup {
            index,
            _not_sync: BlockCodeOnly::NEW,
        }
    }
}

impl<S: RingStage> TmaRing<S> {
    /// Adds products to the accumulators: runs `code` in each warpgroup for each step with its
    /// tiles, while the boxes of the next steps are copied, and the products of the step before are
    /// computed.
    ///
    /// `sources` returns the boxes of a step, as for [`TmaRing::pipeline`]. A stage is reused when
    /// the products of all warpgroups that read it are complete. All products are complete at the
    /// end.
    ///
    /// ```
    /// # use curium_kernel::prelude::*;
    /// type A = SwizzledTile<u16, 128, 64>;
    /// type B = SwizzledTile<u16, 256, 64>;
    ///
    /// /// c = a * bᵀ, of bfloat16 numbers.
    /// #[kernel]
    /// pub fn gemm(
    ///     block: Block<256>,
    ///     mut ring: TmaRing<(A, B)>,
    ///     a: TensorMap<A>,
    ///     b: TensorMap<B>,
    ///     mut c: PerWarpGroupTile<f32, 256>,
    /// ) {
    ///     let row = (128 * block.index_y()) as isize;
    ///     let column = (256 * block.index_x()) as isize;
    ///     let mut sums = Registers::new(Accumulators::<256>::ZERO);
    ///     ring.multiply(
    ///         &block,
    ///         a.columns().div_ceil(64),
    ///         &mut sums,
    ///         |step| (a.at(row, 64 * step as isize), b.at(column, 64 * step as isize)),
    ///         |warp_group, products, (a, b)| products.add_bf16(a, 64 * warp_group.index(), b),
    ///     );
    ///     c.store(&block, &sums);
    /// }
    /// ```
    ///
    /// PTX: `cp.async.bulk.tensor`, `mbarrier.try_wait`, `wgmma.mma_async`, `wgmma.wait_group 1`.
    ///
    /// Code that can panic is a call for the compiler of the driver, which then computes the
    /// products one after the other. It warns of it (C7510).
    #[doc(alias = "wgmma.mma_async")]
    #[inline(always)]
    pub fn multiply<'m, const N: usize, const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        steps: usize,
        accumulators: &mut Registers<Accumulators<N>>,
        mut sources: impl FnMut(usize) -> S::Sources<'m>,
        code: impl for<'v, 's> Fn(&WarpGroup, &mut Products<'v, 's, N>, S::View<'s>) + Sync,
    ) where
        Columns<N>: Width,
    {
        // A ring has at least two stages: the products of one are computed while the next is
        // copied. A check would be a call, and calls make the compiler of the driver wait for each
        // product.
        let warp_group = block.warp_group();
        let mut values = accumulators.0.values;
        self.start(block, steps, &mut sources);
        // SAFETY: all threads of the warpgroup get here.
        unsafe { Columns::<N>::fence(&mut values) };
        let mut previous = None;
        for step in 0..steps {
            let stage = self.wait_full();
            // SAFETY: all threads of the warpgroup get here.
            unsafe { device::wgmma_fence() };
            let mut products = Products {
                values: &mut values,
                _operands: PhantomData,
            };
            // SAFETY: the copies are complete, and the stage is overwritten only after the products
            // are complete, see below.
            let view = unsafe { S::view(self.tiles(stage.index)) };
            code(&warp_group, &mut products, view);
            // SAFETY: all threads of the warpgroup get here.
            unsafe { device::wgmma_commit() };
            if let Some(previous) = previous {
                // SAFETY: all threads of the warpgroup get here. All groups of products but this
                // step's are complete.
                unsafe { device::wgmma_wait_1() };
                // SAFETY: the products of the warp that read the previous stage are complete.
                unsafe { self.release(previous) };
                // SAFETY: the warp has released the stage.
                unsafe { self.refill(block, previous, step - 1, steps, &mut sources) };
            }
            previous = Some(stage);
        }
        // SAFETY: all threads of the warpgroup get here.
        unsafe { Columns::<N>::wait(&mut values) };
        if let Some(previous) = previous {
            // SAFETY: all products are complete.
            unsafe { self.release(previous) };
        }
        accumulators.0.values = values;
    }
}

/// A matrix of which each warpgroup owns a tile of 64 rows and `COLUMNS` columns: those of the
/// block with `blockIdx` (x, y) are one below the other, in column x of tiles.
///
/// In a block with two warpgroups, the block in row y owns the rows from `128 * y` on. A launch
/// passes a `RowMajor` of a mutable buffer or view.
pub struct PerWarpGroupTile<T, const COLUMNS: usize> {
    start: Address<T>,
    rows: u32,
    columns: u32,
    _not_sync: BlockCodeOnly,
}

// SAFETY: the launcher passes memory of `rows * columns` elements, which is borrowed mutably, so
// that only this launch accesses it, and a grid in which blocks have different indices.
unsafe impl<T: AnyBitPattern, const COLUMNS: usize> Parameter for PerWarpGroupTile<T, COLUMNS> {
    type In<'k> = PerWarpGroupTile<T, COLUMNS>;
    type First = *mut T;
    type Second = u32;
    type Third = u32;

    const DESCRIPTION: Description = Description::new::<T>(
        Kind::PerWarpGroupTile,
        [
            Word::exclusive::<T>(),
            Word::value::<u32>(),
            Word::value::<u32>(),
        ],
    )
    .on(GridRule::Plane)
    .with_sizes([ROWS as u32, COLUMNS as u32, 0]);

    #[inline(always)]
    unsafe fn from_words(
        _: &Launch,
        start: *mut T,
        rows: u32,
        columns: u32,
    ) -> PerWarpGroupTile<T, COLUMNS> {
        PerWarpGroupTile {
            start: Address(start),
            rows,
            columns,
            _not_sync: BlockCodeOnly::NEW,
        }
    }
}

impl<T: AnyBitPattern, const COLUMNS: usize> PerWarpGroupTile<T, COLUMNS>
where
    Columns<COLUMNS>: Width,
{
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

    /// Writes the accumulators in pairs of adjacent columns. `P` is a pair of `T`, and `pack`
    /// converts to it.
    #[inline(always)]
    fn store_pairs<P: Copy, const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        accumulators: &Registers<Accumulators<COLUMNS>>,
        pack: impl Fn(f32, f32) -> P,
        split: impl Fn(P) -> [T; 2],
    ) {
        const { assert!(size_of::<P>() == 2 * size_of::<T>()) };
        let thread = block.index_in_block();
        let (row_in_tile, column_in_tile) = first_position(thread % THREADS);
        let groups = Block::<X, Y, Z>::WARP_GROUPS;
        // A block index is below 2³¹ and a size at most 1024, so the sums do not overflow.
        let row = ROWS * (groups * block.index_y() + thread / THREADS) + row_in_tile;
        let column = COLUMNS * block.index_x() + column_in_tile;
        // Pairs are aligned if rows have an even number of columns.
        let is_aligned = self.columns().is_multiple_of(2)
            && (self.start.0 as usize).is_multiple_of(align_of::<P>());
        let mut values = accumulators.0.values;
        Columns::<COLUMNS>::for_each_pair(&mut values, |pair, values| {
            let row = row + 8 * (pair % 2);
            let column = column + 8 * (pair / 2);
            if row >= self.rows() || column >= self.columns() {
                return;
            }
            let packed = pack(values[0], values[1]);
            // The launcher checked that the product of the sizes is the number of elements, so the
            // sum does not overflow.
            // SAFETY: the element is in bounds.
            let address = unsafe { self.start.add(row * self.columns() + column) };
            if is_aligned {
                // SAFETY: the column is even and the number of columns too, so both elements are in
                // bounds. They belong to this thread.
                unsafe { address.0.cast::<P>().write(packed) };
                return;
            }
            let [first, second] = split(packed);
            // SAFETY: the element is in bounds, and belongs to this thread.
            unsafe { address.write(0, first) };
            if column + 1 < self.columns() {
                // SAFETY: the element is in bounds, and belongs to this thread.
                unsafe { address.write(1, second) };
            }
        });
    }
}

impl<const COLUMNS: usize> PerWarpGroupTile<f32, COLUMNS>
where
    Columns<COLUMNS>: Width,
{
    /// Writes the accumulators of each warpgroup to its tile. Elements beyond the matrix are left
    /// out. No barrier.
    #[inline(always)]
    pub fn store<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        accumulators: &Registers<Accumulators<COLUMNS>>,
    ) {
        self.store_pairs(block, accumulators, F32x2::new, |pair| [pair.x, pair.y]);
    }
}

impl<const COLUMNS: usize> PerWarpGroupTile<u16, COLUMNS>
where
    Columns<COLUMNS>: Width,
{
    /// Writes the accumulators of each warpgroup to its tile, rounded to bfloat16. Elements beyond
    /// the matrix are left out. No barrier.
    #[inline(always)]
    pub fn store_bf16<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        accumulators: &Registers<Accumulators<COLUMNS>>,
    ) {
        self.store_pairs(block, accumulators, pack_bf16, |pair| {
            [pair as u16, (pair >> 16) as u16]
        });
    }
}
