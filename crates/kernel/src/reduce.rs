//! Operations on the values of all threads of a block.

use core::ops::Add;

use bytemuck::AnyBitPattern;

use crate::address::Address;
use crate::block::Block;
use crate::intrinsics as device;
use crate::launch::Launch;
use crate::registers::Registers;
use crate::shared::{Shared, SharedStatic, StaticShared};
use crate::thread::sealed;
use crate::vector::{F32x2, F64x2, U32x2};
use crate::warp::{ALL, Lanes, WHOLE_WARP, Warp};

/// Numbers that the lanes of a warp exchange. The trait is sealed.
pub trait Shuffle: sealed::Sealed + Copy + Send + Sync + AnyBitPattern {
    /// Applies a shuffle to each 32-bit word of the value.
    #[doc(hidden)]
    fn map_words(self, shuffle: impl Fn(u32) -> u32) -> Self;
}

macro_rules! shuffle {
    ($($ty:ty: $to:expr, $from:expr;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Shuffle for $ty {
            #[inline(always)]
            fn map_words(self, shuffle: impl Fn(u32) -> u32) -> Self {
                $from(shuffle($to(self)))
            }
        }
    )*};
}

shuffle! {
    u32: core::convert::identity, core::convert::identity;
    i32: i32::cast_unsigned, u32::cast_signed;
    f32: f32::to_bits, f32::from_bits;
}

macro_rules! wide_shuffle {
    ($($ty:ty: $to:expr, $from:expr;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Shuffle for $ty {
            #[inline(always)]
            fn map_words(self, shuffle: impl Fn(u32) -> u32) -> Self {
                let bits: u64 = $to(self);
                let low = shuffle(bits as u32);
                let high = shuffle((bits >> 32) as u32);
                $from(u64::from(high) << 32 | u64::from(low))
            }
        }
    )*};
}

wide_shuffle! {
    u64: core::convert::identity, core::convert::identity;
    i64: i64::cast_unsigned, u64::cast_signed;
    usize: |value: usize| value as u64, |bits: u64| bits as usize;
    f64: f64::to_bits, f64::from_bits;
}

macro_rules! vector_shuffle {
    ($($ty:ident)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Shuffle for $ty {
            #[inline(always)]
            fn map_words(self, shuffle: impl Fn(u32) -> u32) -> Self {
                Self::new(self.x.map_words(&shuffle), self.y.map_words(&shuffle))
            }
        }
    )*};
}

vector_shuffle!(F32x2 F64x2 U32x2);

/// The maximum number of warps in a block.
const MAX_WARPS: usize = 32;

/// Shared memory of the operations on the values of all threads, such as [`Block::reduce`]. Only
/// they access it.
///
/// An operation writes a value of each warp, has a barrier, and reads the values of all warps. The
/// next operation writes other memory, and the one after it the same memory again: a barrier after
/// the reads stands between them.
pub struct Scratch<T> {
    memory: Shared<ScratchMemory<T>>,
    /// Selects the values of the next operation.
    is_odd: bool,
}

#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ScratchMemory<T> {
    /// A value of each warp, for even and for odd operations.
    warps: [[T; MAX_WARPS]; 2],
}

// SAFETY: the only access to the static is through the result, and any bytes are a value of `T`.
unsafe impl<T: Shuffle> StaticShared for Scratch<T> {
    type Storage = ScratchMemory<T>;

    #[inline(always)]
    unsafe fn from_static(_: &Launch, memory: &'static SharedStatic<ScratchMemory<T>>) -> Self {
        Self {
            // SAFETY: the caller guarantees it.
            memory: unsafe { Shared::new(memory.get()) },
            is_odd: false,
        }
    }
}

impl<T: Copy> Scratch<T> {
    /// Passes a value of each warp to all threads. One barrier.
    ///
    /// The values of the warps are at the address, in order. They are not written until two more
    /// calls.
    #[inline(always)]
    fn exchange<const X: u32, const Y: u32, const Z: u32>(
        &mut self,
        block: &Block<X, Y, Z>,
        warp: &Warp,
        lane: usize,
        value: T,
    ) -> Address<T> {
        let first = if self.is_odd { MAX_WARPS } else { 0 };
        self.is_odd = !self.is_odd;
        let memory: Address<T> = Address(self.memory.as_ptr().cast());
        // SAFETY: the index is in bounds.
        let warps = unsafe { memory.add(first) };
        if warp.lane_index() as usize == lane {
            // SAFETY: the index is in bounds. Reads of the previous value were before the barrier
            // of the previous call, and no other thread writes it.
            unsafe { warps.write(warp.index(), value) };
        }
        block.barrier();
        warps
    }
}

impl<const X: u32, const Y: u32, const Z: u32> Block<X, Y, Z> {
    /// Combines the values of all threads, in unspecified order and grouping. All threads receive
    /// the same result. One barrier, or none if the block is a single warp.
    #[inline(always)]
    pub fn reduce<T: Shuffle>(
        &self,
        values: &Registers<T>,
        scratch: &mut Scratch<T>,
        combine: impl Fn(T, T) -> T + Sync,
    ) -> T {
        // SAFETY: all lanes of each warp get here.
        let warp = unsafe { Warp::new(self.index_in_block()) };
        let of_warp = warp.butterfly(values.0, &combine);
        if Self::WARPS == 1 {
            return warp.broadcast(&Lanes(of_warp), 0);
        }
        let warps = scratch.exchange(self, &warp, 0, of_warp);
        // Each warp combines the values of all warps, by the same instructions. The lanes combine
        // in different orders, so lane 0 decides.
        let total = if Self::WARPS.is_power_of_two() {
            // The lanes above the number of warps repeat values, but lane 0 combines each once.
            let lane = warp.lane_index() as usize;
            // SAFETY: the index is in bounds, and the value was written before the barrier.
            let value = unsafe { warps.read(lane % Self::WARPS) };
            self.combine_lanes(value, &combine)
        } else {
            // SAFETY: the value was written before the barrier.
            let mut total = unsafe { warps.read(0) };
            for index in 1..Self::WARPS {
                // SAFETY: the index is in bounds, and the value was written before the barrier.
                total = combine(total, unsafe { warps.read(index) });
            }
            total
        };
        warp.broadcast(&Lanes(total), 0)
    }

    /// Returns the sum of the values of all threads. One barrier, or none if the block is a single
    /// warp.
    #[inline(always)]
    pub fn sum<T: Shuffle + Add<Output = T>>(
        &self,
        values: &Registers<T>,
        scratch: &mut Scratch<T>,
    ) -> T {
        self.reduce(values, scratch, |a, b| a + b)
    }

    /// Returns for each thread the combination of the values of all threads before it, in order and
    /// starting with `identity`, and the combination of all. One barrier.
    #[inline(always)]
    pub fn exclusive_scan<T: Shuffle>(
        &self,
        values: &Registers<T>,
        identity: T,
        scratch: &mut Scratch<T>,
        combine: impl Fn(T, T) -> T + Sync,
    ) -> (Registers<T>, T) {
        // SAFETY: all lanes of each warp get here.
        let warp = unsafe { Warp::new(self.index_in_block()) };
        let lane = warp.lane_index() as usize;
        let inclusive = warp.inclusive_scan(&Lanes(values.0), &combine).0;
        let warps = scratch.exchange(self, &warp, 31, inclusive);
        // Each warp combines the values of all warps, by the same instructions.
        let mut total = identity;
        let mut before_warp = identity;
        for index in 0..Self::WARPS {
            if index == warp.index() {
                before_warp = total;
            }
            // SAFETY: the index is in bounds, and the value was written before the barrier.
            total = combine(total, unsafe { warps.read(index) });
        }
        let total = warp.broadcast(&Lanes(total), 0);
        let before_lane = warp.shuffle_up(&Lanes(inclusive), 1).0;
        let exclusive = if lane == 0 {
            before_warp
        } else {
            combine(before_warp, before_lane)
        };
        (Registers(exclusive), total)
    }

    /// Combines the values of the first `WARPS` lanes, which the other lanes repeat.
    #[inline(always)]
    fn combine_lanes<T: Shuffle>(&self, mut value: T, combine: impl Fn(T, T) -> T + Sync) -> T {
        let mut mask = Self::WARPS / 2;
        while mask > 0 {
            let other = value.map_words(|word| {
                // SAFETY: all lanes get here.
                unsafe { device::shuffle_xor(ALL, word, mask as u32, WHOLE_WARP) }
            });
            value = combine(value, other);
            mask /= 2;
        }
        value
    }
}
