//! Code of blocks within code of a grid or a cluster.

use bytemuck::AnyBitPattern;

use crate::output::{PerBlock, PerBlockRow, PerBlockTile, PerThread, PerThreadChunk, PerWarpTile};
use crate::reduce::{Scratch, Shuffle};
use crate::registers::Registers;
use crate::shared::{DynamicShared, Shared, SharedType};

/// A value of each block of a grid or a cluster. Only code of blocks reads it.
///
/// [`Grid::blocks`](crate::Grid::blocks) returns it, and
/// [`Grid::blocks_with`](crate::Grid::blocks_with) passes each block its own value.
#[repr(transparent)]
pub struct BlockValues<T>(pub(crate) T);

// Not derived: a `Clone` of the user would run in the code of the grid, with a value of the block.
impl<T: Copy> Clone for BlockValues<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Copy> Copy for BlockValues<T> {}

impl<T: Copy + Sync> BlockValues<T> {
    /// Creates values that are the same in each block.
    #[inline(always)]
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

/// An operand of [`Grid::blocks_with`](crate::Grid::blocks_with) and
/// [`Cluster::blocks_with`](crate::Cluster::blocks_with).
///
/// Code of a block receives a copy of the operand's handle, which ends with the code. An exchange
/// of two handles by [`core::mem::swap`] in some blocks only is therefore unknown to the code of
/// the grid, which has the same memory under one name in all blocks.
///
/// # Safety
///
/// No two blocks can write the same memory through their parts, unless they synchronize.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand of code of blocks",
    label = "not an operand of code of blocks",
    note = "operands are `&mut Shared<…>`, `&mut GridShared<T>`, `&mut` outputs, `&mut BlockValues<T>`, `&mut Registers<T>`, and tuples of them"
)]
pub unsafe trait BlockOperand {
    /// The handle of the running block.
    #[doc(hidden)]
    type Handle;

    /// The part of a block.
    type Part<'p>;

    /// Returns the handle of the running block.
    ///
    /// # Safety
    ///
    /// The operand is not used while the handle exists, and the handle is used by code of the
    /// running block only.
    #[doc(hidden)]
    unsafe fn block_handle(self) -> Self::Handle;

    /// Returns the part of the running block.
    #[doc(hidden)]
    fn block_part(handle: &mut Self::Handle) -> Self::Part<'_>;
}

/// Implements the trait for handles of memory, which is copied.
macro_rules! handles {
    ($([$($generics:tt)*] $handle:ty, $reason:literal;)*) => {$(
        #[doc = $reason]
        // SAFETY: the documentation of the implementation states why blocks do not write the same
        // memory.
        unsafe impl<$($generics)*> $crate::BlockOperand for &mut $handle {
            type Handle = $handle;
            type Part<'p> = &'p mut $handle;

            #[inline(always)]
            unsafe fn block_handle(self) -> $handle {
                // SAFETY: the caller uses the original only after the copy, and the handle has no
                // destructor.
                unsafe { core::ptr::read(self) }
            }

            #[inline(always)]
            fn block_part(handle: &mut $handle) -> &mut $handle {
                handle
            }
        }
    )*};
}
pub(crate) use handles;

handles! {
    [T: SharedType] Shared<T>, "Each block has shared memory of its own.";
    [T: AnyBitPattern] DynamicShared<T>, "Each block has shared memory of its own.";
    [T: AnyBitPattern] PerThread<T>, "Threads of different blocks own different elements.";
    [T: AnyBitPattern, const N: usize] PerThreadChunk<T, N>, "Threads of different blocks own different elements.";
    [T: AnyBitPattern] PerBlock<T>, "Blocks own different elements.";
    [T: AnyBitPattern] PerBlockRow<T>, "Blocks own different rows.";
    [T: AnyBitPattern, const ROWS: usize, const COLUMNS: usize] PerBlockTile<T, ROWS, COLUMNS>, "Blocks own different tiles.";
    [T: AnyBitPattern, const ROWS: usize, const COLUMNS: usize] PerWarpTile<T, ROWS, COLUMNS>, "Warps of different blocks own different tiles.";
}

/// Implements the trait for values in registers, which are borrowed.
macro_rules! values {
    ($([$($reference:tt)*] $values:ident => $to:ty, $value:ident $conversion:expr;)*) => {$(
        // SAFETY: the values belong to the running block.
        unsafe impl<'a, T: 'static> BlockOperand for &'a $($reference)* $values<T> {
            type Handle = &'a $($reference)* $values<T>;
            type Part<'p> = &'p $($reference)* $to;

            #[inline(always)]
            unsafe fn block_handle(self) -> Self {
                self
            }

            #[inline(always)]
            fn block_part($value: &mut Self::Handle) -> &$($reference)* $to {
                $conversion
            }
        }
    )*};
}

values! {
    [] BlockValues => T, values &values.0;
    [mut] BlockValues => T, values &mut values.0;
    [] Registers => Registers<T>, values values;
    [mut] Registers => Registers<T>, values values;
}

// SAFETY: each block has shared memory of its own. Scratch memory has a state, so it is borrowed
// and not copied. Its content is known to the operations of blocks only, so an exchange of two in
// some blocks changes nothing.
unsafe impl<'a, T: Shuffle> BlockOperand for &'a mut Scratch<T> {
    type Handle = &'a mut Scratch<T>;
    type Part<'p> = &'p mut Scratch<T>;

    #[inline(always)]
    unsafe fn block_handle(self) -> Self {
        self
    }

    #[inline(always)]
    fn block_part(handle: &mut Self::Handle) -> &mut Scratch<T> {
        handle
    }
}

macro_rules! tuples {
    ($($operand:ident)*) => {
        // SAFETY: each operand upholds the contract, and none aliases another, because each is
        // borrowed on its own.
        unsafe impl<$($operand: BlockOperand),*> BlockOperand for ($($operand,)*) {
            type Handle = ($($operand::Handle,)*);
            type Part<'p> = ($($operand::Part<'p>,)*);

            #[inline(always)]
            #[allow(non_snake_case, reason = "the names are those of the types")]
            unsafe fn block_handle(self) -> Self::Handle {
                let ($($operand,)*) = self;
                // SAFETY: the handles are used by code of the running block only, in place of the
                // operands.
                ($(unsafe { $operand.block_handle() },)*)
            }

            #[inline(always)]
            #[allow(non_snake_case, reason = "the names are those of the types")]
            fn block_part(handle: &mut Self::Handle) -> Self::Part<'_> {
                let ($($operand,)*) = handle;
                ($($operand::block_part($operand),)*)
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);

/// Implements the methods of a grid or a cluster that run code of blocks and threads.
macro_rules! code_of_blocks {
    ([$($generics:tt)*] $ty:ty) => {
        impl<const X: u32, const Y: u32, const Z: u32, $($generics)*> $ty {
            /// The number of threads in a block.
            pub const THREADS: usize = $crate::Block::<X, Y, Z>::THREADS;

            /// Runs code in each block. No barrier.
            ///
            /// The closure is `Fn + Sync`, so that nothing that differs between blocks reaches the
            /// code around it, except in [`BlockValues`](crate::BlockValues).
            #[inline(always)]
            pub fn blocks<R>(
                &self,
                code: impl Fn(&$crate::Block<X, Y, Z>) -> R + Sync,
            ) -> $crate::BlockValues<R> {
                // SAFETY: all threads of each block run this, in a launch with these dimensions.
                $crate::BlockValues(code(&unsafe { $crate::Block::new() }))
            }

            /// Runs code in each block, which receives its operands. No barrier.
            ///
            /// Operands are shared memory, outputs, `&mut BlockValues<T>`, `&mut Registers<T>`, and
            /// tuples of them.
            #[inline(always)]
            pub fn blocks_with<A: $crate::BlockOperand, R>(
                &self,
                operands: A,
                code: impl for<'p> Fn(&$crate::Block<X, Y, Z>, A::Part<'p>) -> R + Sync,
            ) -> $crate::BlockValues<R> {
                // SAFETY: the operands are borrowed while the handle exists, and code of this block
                // receives it.
                let mut handle = unsafe { operands.block_handle() };
                // SAFETY: all threads of each block run this, in a launch with these dimensions.
                let block = unsafe { $crate::Block::new() };
                $crate::BlockValues(code(&block, A::block_part(&mut handle)))
            }

            /// Runs code in each thread. No barrier.
            #[inline(always)]
            pub fn threads<R>(
                &self,
                code: impl Fn(&$crate::Thread) -> R + Sync,
            ) -> $crate::Registers<R> {
                self.blocks(|block| block.threads(&code)).0
            }

            /// Runs code in each thread, which receives its part of the operands. No barrier.
            #[inline(always)]
            pub fn threads_with<A: $crate::ThreadOperand<X, Y, Z>, R>(
                &self,
                operands: A,
                code: impl Fn(&$crate::Thread, A::Part) -> R + Sync,
            ) -> $crate::Registers<R> {
                // SAFETY: all threads of each block run this, in a launch with these dimensions.
                let block = unsafe { $crate::Block::<X, Y, Z>::new() };
                block.threads_with(operands, code)
            }
        }
    };
}
pub(crate) use code_of_blocks;
