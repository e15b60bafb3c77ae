//! Operands of code of threads, warps and lanes, which are divided between them.

use crate::registers::Registers;
use crate::warp::{Lanes, PerWarp};

/// An operand of [`Block::threads_with`](crate::Block::threads_with).
///
/// # Safety
///
/// If a thread can write its part, or write through it, no other thread's part of the same operand
/// contains that memory. Every implementation for a type divides it in the same way, so that parts
/// of different calls do not overlap either, unless they belong to the same thread.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not divided between the threads of this block",
    label = "not an operand of code of threads",
    note = "operands are `&Registers<T>`, `&mut Registers<T>`, `&mut Shared<…>`, `&mut PerThread<T>`, `&mut PerThreadChunk<T, N>`, and tuples of them"
)]
pub unsafe trait ThreadOperand<const X: u32, const Y: u32, const Z: u32> {
    /// The part of a thread.
    type Part;

    /// Returns the part of the running thread.
    ///
    /// # Safety
    ///
    /// The part is passed to code of the running thread only, and the block has these dimensions.
    #[doc(hidden)]
    unsafe fn thread_part(self) -> Self::Part;
}

/// An operand of [`Block::warps_with`](crate::Block::warps_with).
///
/// # Safety
///
/// As for [`ThreadOperand`], for warps. All lanes of a warp receive the same part, or one that only
/// code of lanes can read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not divided between the warps of this block",
    label = "not an operand of code of warps",
    note = "operands are `&Registers<T>`, `&mut Registers<T>`, `&PerWarp<T>`, `&mut PerWarp<T>`, `&mut PerWarpChunk<T, N>`, `&mut PerWarpTile<…>`, and tuples of them"
)]
pub unsafe trait WarpOperand<const X: u32, const Y: u32, const Z: u32> {
    /// The part of a warp.
    type Part;

    /// Returns the part of the running warp.
    ///
    /// # Safety
    ///
    /// The part is passed to code of the running warp only, and the block has these dimensions.
    #[doc(hidden)]
    unsafe fn warp_part(self) -> Self::Part;
}

/// An operand of [`Warp::lanes_with`](crate::Warp::lanes_with).
///
/// # Safety
///
/// As for [`ThreadOperand`], for lanes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not divided between the lanes of a warp",
    label = "not an operand of code of lanes",
    note = "operands are `&Lanes<T>`, `&mut Lanes<T>`, `&mut WarpChunk<T>`, and tuples of them"
)]
pub unsafe trait LaneOperand {
    /// The part of a lane.
    type Part;

    /// Returns the part of the running lane.
    ///
    /// # Safety
    ///
    /// The part is passed to code of the running lane only.
    #[doc(hidden)]
    unsafe fn lane_part(self) -> Self::Part;
}

// SAFETY: the registers belong to the running thread.
unsafe impl<'a, T, const X: u32, const Y: u32, const Z: u32> ThreadOperand<X, Y, Z>
    for &'a Registers<T>
{
    type Part = &'a T;

    #[inline(always)]
    unsafe fn thread_part(self) -> &'a T {
        &self.0
    }
}

// SAFETY: the registers belong to the running thread.
unsafe impl<'a, T, const X: u32, const Y: u32, const Z: u32> ThreadOperand<X, Y, Z>
    for &'a mut Registers<T>
{
    type Part = &'a mut T;

    #[inline(always)]
    unsafe fn thread_part(self) -> &'a mut T {
        &mut self.0
    }
}

// SAFETY: the registers belong to the lanes of the running warp, and only code of lanes reads
// `Lanes`.
unsafe impl<'a, T, const X: u32, const Y: u32, const Z: u32> WarpOperand<X, Y, Z>
    for &'a Registers<T>
{
    type Part = &'a Lanes<T>;

    #[inline(always)]
    unsafe fn warp_part(self) -> &'a Lanes<T> {
        // SAFETY: both types are `repr(transparent)` over `T`.
        unsafe { &*(&raw const *self).cast() }
    }
}

// SAFETY: the registers belong to the lanes of the running warp, and only code of lanes reads
// `Lanes`.
unsafe impl<'a, T, const X: u32, const Y: u32, const Z: u32> WarpOperand<X, Y, Z>
    for &'a mut Registers<T>
{
    type Part = &'a mut Lanes<T>;

    #[inline(always)]
    unsafe fn warp_part(self) -> &'a mut Lanes<T> {
        // SAFETY: both types are `repr(transparent)` over `T`.
        unsafe { &mut *(&raw mut *self).cast() }
    }
}

// SAFETY: the value is the same in all lanes of the warp.
unsafe impl<'a, T, const X: u32, const Y: u32, const Z: u32> WarpOperand<X, Y, Z>
    for &'a PerWarp<T>
{
    type Part = &'a T;

    #[inline(always)]
    unsafe fn warp_part(self) -> &'a T {
        &self.0
    }
}

// SAFETY: the value is the same in all lanes of the warp.
unsafe impl<'a, T, const X: u32, const Y: u32, const Z: u32> WarpOperand<X, Y, Z>
    for &'a mut PerWarp<T>
{
    type Part = &'a mut T;

    #[inline(always)]
    unsafe fn warp_part(self) -> &'a mut T {
        &mut self.0
    }
}

// SAFETY: the registers belong to the running lane.
unsafe impl<'a, T> LaneOperand for &'a Lanes<T> {
    type Part = &'a T;

    #[inline(always)]
    unsafe fn lane_part(self) -> &'a T {
        &self.0
    }
}

// SAFETY: the registers belong to the running lane.
unsafe impl<'a, T> LaneOperand for &'a mut Lanes<T> {
    type Part = &'a mut T;

    #[inline(always)]
    unsafe fn lane_part(self) -> &'a mut T {
        &mut self.0
    }
}

macro_rules! tuples {
    ($($operand:ident)*) => {
        // SAFETY: each operand upholds the contract, and none aliases another, because each is
        // borrowed on its own.
        unsafe impl<const X: u32, const Y: u32, const Z: u32, $($operand: ThreadOperand<X, Y, Z>),*> ThreadOperand<X, Y, Z> for ($($operand,)*) {
            type Part = ($($operand::Part,)*);

            #[inline(always)]
            #[allow(non_snake_case, clippy::unused_unit, reason = "the names are those of the types")]
            unsafe fn thread_part(self) -> Self::Part {
                let ($($operand,)*) = self;
                // SAFETY: only code of the running thread receives each part, in a block of these
                // dimensions.
                ($(unsafe { $operand.thread_part() },)*)
            }
        }

        // SAFETY: each operand upholds the contract, and none aliases another, because each is
        // borrowed on its own.
        unsafe impl<const X: u32, const Y: u32, const Z: u32, $($operand: WarpOperand<X, Y, Z>),*> WarpOperand<X, Y, Z> for ($($operand,)*) {
            type Part = ($($operand::Part,)*);

            #[inline(always)]
            #[allow(non_snake_case, clippy::unused_unit, reason = "the names are those of the types")]
            unsafe fn warp_part(self) -> Self::Part {
                let ($($operand,)*) = self;
                // SAFETY: only code of the running warp receives each part, in a block of these
                // dimensions.
                ($(unsafe { $operand.warp_part() },)*)
            }
        }

        // SAFETY: each operand upholds the contract, and none aliases another, because each is
        // borrowed on its own.
        unsafe impl<$($operand: LaneOperand),*> LaneOperand for ($($operand,)*) {
            type Part = ($($operand::Part,)*);

            #[inline(always)]
            #[allow(non_snake_case, clippy::unused_unit, reason = "the names are those of the types")]
            unsafe fn lane_part(self) -> Self::Part {
                let ($($operand,)*) = self;
                // SAFETY: only code of the running lane receives each part.
                ($(unsafe { $operand.lane_part() },)*)
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
