//! Operations on the values of all threads of a block.

use core::ops::Add;

use bytemuck::AnyBitPattern;

use crate::address::Address;
use crate::block::Block;
use crate::intrinsics as device;
use crate::registers::Registers;
use crate::scope::Launch;
use crate::shared::{Shared, SharedStatic, StaticShared};
use crate::thread::sealed;
use crate::warp::{ALL, Lanes, WHOLE_WARP, Warp, lane_index};

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

/// The maximum number of warps in a block.
const MAX_WARPS: usize = 32;

/// Shared memory of the operations on the values of all threads, such as [`Block::reduce`]. Only they access it.
///
/// An operation writes the value of each warp, has a barrier, combines the values in the first warp, writes the results, and has
/// another barrier, after which all threads read the results. The values of the next operation are other memory than the results,
/// and its results are written after its first barrier, when all threads have read the previous ones.
pub struct Scratch<T> {
    memory: Shared<ScratchMemory<T>>,
}

#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ScratchMemory<T> {
    /// A value of each warp.
    warps: [T; MAX_WARPS],
    /// A result of each warp.
    results: [T; MAX_WARPS],
    /// The result of the block.
    total: T,
}

// SAFETY: the only access to the static is through the result, and any bytes are a value of `T`.
unsafe impl<T: Shuffle> StaticShared for Scratch<T> {
    type Storage = ScratchMemory<T>;

    #[inline(always)]
    unsafe fn from_static(_: &Launch, memory: &'static SharedStatic<ScratchMemory<T>>) -> Self {
        Self {
            // SAFETY: the caller guarantees it.
            memory: unsafe { Shared::new(memory.get()) },
        }
    }
}

/// The addresses of scratch memory.
struct Addresses<T> {
    warps: Address<T>,
    results: Address<T>,
    total: Address<T>,
}

impl<T> Scratch<T> {
    #[inline(always)]
    fn addresses(&mut self) -> Addresses<T> {
        let memory = self.memory.as_ptr();
        Addresses {
            // SAFETY: the memory is valid, and this is the address of a field.
            warps: Address(unsafe { &raw mut (*memory).warps }.cast()),
            // SAFETY: the memory is valid, and this is the address of a field.
            results: Address(unsafe { &raw mut (*memory).results }.cast()),
            // SAFETY: the memory is valid, and this is the address of a field.
            total: Address(unsafe { &raw mut (*memory).total }),
        }
    }
}

impl<const X: u32, const Y: u32, const Z: u32> Block<X, Y, Z> {
    /// Combines the values of all threads, in unspecified order and grouping. All threads receive the result of one of them.
    /// Two barriers, or none if the block is a single warp.
    #[inline(always)]
    pub fn reduce<T: Shuffle>(
        &self,
        values: &Registers<T>,
        scratch: &mut Scratch<T>,
        combine: impl Fn(T, T) -> T + Sync,
    ) -> T {
        // SAFETY: all lanes of each warp get here.
        let warp = unsafe { Warp::new(self.index_in_block() / 32) };
        let of_warp = warp.butterfly(values.0, &combine);
        if Self::WARPS == 1 {
            return warp.broadcast(&Lanes(of_warp), 0);
        }
        let memory = scratch.addresses();
        if lane_index() == 0 {
            // SAFETY: the index is in bounds. Only this thread accesses the value before the barrier.
            unsafe { memory.warps.write(warp.index(), of_warp) };
        }
        self.barrier();
        if warp.index() == 0 {
            let lane = lane_index() as usize;
            // The lanes above the number of warps repeat values, but lane 0 combines each once if the number is a power of two.
            let total = if Self::WARPS.is_power_of_two() {
                // SAFETY: the index is in bounds, and the value was written before the barrier.
                let value = unsafe { memory.warps.read(lane % Self::WARPS) };
                self.combine_lanes(value, &combine)
            } else {
                // SAFETY: the value was written before the barrier.
                let mut total = unsafe { memory.warps.read(0) };
                for index in 1..Self::WARPS {
                    // SAFETY: the index is in bounds, and the value was written before the barrier.
                    total = combine(total, unsafe { memory.warps.read(index) });
                }
                total
            };
            if lane == 0 {
                // SAFETY: only this thread accesses the result before the barrier.
                unsafe { memory.total.write(0, total) };
            }
        }
        self.barrier();
        // SAFETY: the result was written before the barrier, and is written again only after the next one.
        unsafe { memory.total.read(0) }
    }

    /// Returns the sum of the values of all threads. Two barriers, or none if the block is a single warp.
    #[inline(always)]
    pub fn sum<T: Shuffle + Add<Output = T>>(
        &self,
        values: &Registers<T>,
        scratch: &mut Scratch<T>,
    ) -> T {
        self.reduce(values, scratch, |a, b| a + b)
    }

    /// Returns for each thread the combination of the values of all threads before it, in order and starting with `identity`,
    /// and the combination of all. Two barriers.
    #[inline(always)]
    pub fn exclusive_scan<T: Shuffle>(
        &self,
        values: &Registers<T>,
        identity: T,
        scratch: &mut Scratch<T>,
        combine: impl Fn(T, T) -> T + Sync,
    ) -> (Registers<T>, T) {
        // SAFETY: all lanes of each warp get here.
        let warp = unsafe { Warp::new(self.index_in_block() / 32) };
        let lane = lane_index() as usize;
        let inclusive = warp.inclusive_scan(&Lanes(values.0), &combine).0;
        let memory = scratch.addresses();
        if lane == 31 {
            // SAFETY: the index is in bounds. Only this thread accesses the value before the barrier.
            unsafe { memory.warps.write(warp.index(), inclusive) };
        }
        self.barrier();
        if warp.index() == 0 {
            let value = if lane < Self::WARPS {
                // SAFETY: the index is in bounds, and the value was written before the barrier.
                unsafe { memory.warps.read(lane) }
            } else {
                identity
            };
            let of_warps = warp.inclusive_scan(&Lanes(value), &combine).0;
            let before = warp.shuffle_up(&Lanes(of_warps), 1).0;
            if lane < Self::WARPS {
                let before = if lane == 0 {
                    identity
                } else {
                    combine(identity, before)
                };
                // SAFETY: the index is in bounds. Only this thread accesses the result before the barrier.
                unsafe { memory.results.write(lane, before) };
            }
            if lane == Self::WARPS - 1 {
                let total = combine(identity, of_warps);
                // SAFETY: only this thread accesses the result before the barrier.
                unsafe { memory.total.write(0, total) };
            }
        }
        self.barrier();
        // SAFETY: the index is in bounds, and the result was written before the barrier.
        let before_warp = unsafe { memory.results.read(warp.index()) };
        // SAFETY: the result was written before the barrier.
        let total = unsafe { memory.total.read(0) };
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
                // SAFETY: all lanes of the first warp get here.
                unsafe { device::shuffle_xor(ALL, word, mask as u32, WHOLE_WARP) }
            });
            value = combine(value, other);
            mask /= 2;
        }
        value
    }
}
