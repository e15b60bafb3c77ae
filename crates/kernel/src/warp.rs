//! Warps.

use crate::block::{BlockCodeOnly, ThreadCodeOnly};
use crate::intrinsics as device;
use crate::operand::LaneOperand;
use crate::reduce::Shuffle;
use crate::registers::Registers;
use crate::thread::{SingleThread, sealed};

/// The 32 threads of a warp, which execute the same code with the same values.
pub struct Warp {
    index: usize,
    /// The index of the running lane. Only code of lanes receives it.
    lane: u32,
    _not_sync: BlockCodeOnly,
}

/// A value of each warp of a block. Only code of warps reads it.
#[derive(Copy)]
#[repr(transparent)]
pub struct PerWarp<T>(pub(crate) T);

// Not derived: that would run `T::clone` of a user in code of the block, with a value that differs
// between warps.
impl<T: Copy> Clone for PerWarp<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

/// The values of the lanes of a warp, in registers. Code of the warp moves them as a whole; only
/// code of lanes reads them.
#[derive(Copy)]
#[repr(transparent)]
pub struct Lanes<T>(pub(crate) T);

// Not derived: that would run `T::clone` of a user in code of the warp, with a value that differs
// between lanes.
impl<T: Copy> Clone for Lanes<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

/// A lane of a warp: one of its threads.
pub struct Lane {
    index: u32,
    _not_sync: ThreadCodeOnly,
}

impl sealed::Sealed for Lane {}
impl SingleThread for Lane {}

/// All lanes.
pub(crate) const ALL: u32 = !0;

/// The `clamp` operand of shuffles of a whole warp.
pub(crate) const WHOLE_WARP: u32 = 31;

impl Lane {
    /// Returns the index of the lane in its warp, below 32.
    #[doc(alias = "laneid")]
    #[inline(always)]
    #[must_use]
    pub fn index(&self) -> usize {
        self.index as usize
    }
}

impl<T: Copy + Sync> Lanes<T> {
    /// Creates registers with the same value in each lane.
    #[inline(always)]
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> PerWarp<Lanes<T>> {
    /// Returns the values of the lanes as registers of the block's threads.
    #[inline(always)]
    pub fn into_registers(self) -> Registers<T> {
        Registers(self.0.0)
    }
}

impl Warp {
    /// Returns the warp of the thread with this index in its block. Consecutive threads are in a
    /// warp.
    ///
    /// # Safety
    ///
    /// All lanes of the warp run the code that receives it, and this is the index of the running
    /// thread.
    #[inline(always)]
    pub(crate) unsafe fn new(thread: usize) -> Self {
        Self {
            index: thread / 32,
            lane: thread as u32 % 32,
            _not_sync: BlockCodeOnly::NEW,
        }
    }

    /// Returns the index of the warp in its block.
    #[inline(always)]
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the index of the running lane. The caller must not pass it to code of the warp.
    #[inline(always)]
    pub(crate) fn lane_index(&self) -> u32 {
        self.lane
    }

    #[inline(always)]
    fn lane(&self) -> Lane {
        Lane {
            index: self.lane,
            _not_sync: ThreadCodeOnly::NEW,
        }
    }

    /// Waits for all lanes of the warp (`__syncwarp()`). Their accesses before it happen before
    /// those after it.
    ///
    /// Atomic numbers need it where lanes have to see what other lanes have stored.
    #[doc(alias = "__syncwarp")]
    #[inline(always)]
    pub fn sync(&self) {
        // SAFETY: all lanes get here.
        unsafe { device::warp_sync(ALL) }
    }

    /// Runs code in each lane.
    ///
    /// The closure is `Fn + Sync`, so that nothing that differs between lanes reaches code of the
    /// warp, except in [`Lanes`].
    #[inline(always)]
    pub fn lanes<R>(&self, code: impl Fn(&Lane) -> R + Sync) -> Lanes<R> {
        Lanes(code(&self.lane()))
    }

    /// Runs code in each lane, which receives its part of the operands: `&Lanes<T>`,
    /// `&mut Lanes<T>`, and tuples of them.
    #[inline(always)]
    pub fn lanes_with<A: LaneOperand, R>(
        &self,
        operands: A,
        code: impl Fn(&Lane, A::Part) -> R + Sync,
    ) -> Lanes<R> {
        // SAFETY: the part is passed to code of this lane.
        let part = unsafe { operands.lane_part() };
        Lanes(code(&self.lane(), part))
    }

    /// Returns the value of lane `lane % 32`.
    #[doc(alias = "__shfl_sync")]
    #[inline(always)]
    pub fn broadcast<T: Shuffle>(&self, values: &Lanes<T>, lane: usize) -> T {
        values.0.map_words(|word| {
            // SAFETY: all lanes get here, with the same lane.
            unsafe { device::shuffle_index(ALL, word, lane as u32 & 31, WHOLE_WARP) }
        })
    }

    /// Returns in each lane the value of lane `source % 32`.
    #[doc(alias = "__shfl_sync")]
    #[inline(always)]
    pub fn shuffle<T: Shuffle>(&self, values: &Lanes<T>, source: &Lanes<usize>) -> Lanes<T> {
        Lanes(values.0.map_words(|word| {
            // SAFETY: all lanes get here.
            unsafe { device::shuffle_index(ALL, word, source.0 as u32 & 31, WHOLE_WARP) }
        }))
    }

    /// Returns in each lane the value of the lane whose index is its own, exclusive or `mask % 32`.
    #[doc(alias = "__shfl_xor_sync")]
    #[inline(always)]
    pub fn shuffle_xor<T: Shuffle>(&self, values: &Lanes<T>, mask: usize) -> Lanes<T> {
        Lanes(values.0.map_words(|word| {
            // SAFETY: all lanes get here.
            unsafe { device::shuffle_xor(ALL, word, mask as u32 & 31, WHOLE_WARP) }
        }))
    }

    /// Returns in each lane the value of the lane `delta` below it. The first `delta` lanes keep
    /// their own.
    ///
    /// # Panics
    ///
    /// If `delta` is 32 or more.
    #[doc(alias = "__shfl_up_sync")]
    #[inline(always)]
    pub fn shuffle_up<T: Shuffle>(&self, values: &Lanes<T>, delta: usize) -> Lanes<T> {
        assert!(delta < 32, "a warp has 32 lanes");
        Lanes(values.0.map_words(|word| {
            // SAFETY: all lanes get here.
            unsafe { device::shuffle_up(ALL, word, delta as u32, 0) }
        }))
    }

    /// Returns in each lane the value of the lane `delta` above it. The last `delta` lanes keep
    /// their own.
    ///
    /// # Panics
    ///
    /// If `delta` is 32 or more.
    #[doc(alias = "__shfl_down_sync")]
    #[inline(always)]
    pub fn shuffle_down<T: Shuffle>(&self, values: &Lanes<T>, delta: usize) -> Lanes<T> {
        assert!(delta < 32, "a warp has 32 lanes");
        Lanes(values.0.map_words(|word| {
            // SAFETY: all lanes get here.
            unsafe { device::shuffle_down(ALL, word, delta as u32, WHOLE_WARP) }
        }))
    }

    /// Returns the lanes in which the condition holds: bit `i` for lane `i`.
    #[doc(alias = "__ballot_sync")]
    #[inline(always)]
    #[must_use]
    pub fn ballot(&self, condition: &Lanes<bool>) -> u32 {
        // SAFETY: all lanes get here.
        unsafe { device::ballot(ALL, condition.0) }
    }

    /// Returns `true` if the condition holds in any lane.
    #[doc(alias = "__any_sync")]
    #[inline(always)]
    #[must_use]
    pub fn any(&self, condition: &Lanes<bool>) -> bool {
        self.ballot(condition) != 0
    }

    /// Returns `true` if the condition holds in all lanes.
    #[doc(alias = "__all_sync")]
    #[inline(always)]
    #[must_use]
    pub fn all(&self, condition: &Lanes<bool>) -> bool {
        self.ballot(condition) == ALL
    }

    /// Combines the values of all lanes, in unspecified order and grouping. All lanes receive the
    /// result of one of them.
    #[doc(alias = "__reduce_add_sync")]
    #[inline(always)]
    pub fn reduce<T: Shuffle>(&self, values: &Lanes<T>, combine: impl Fn(T, T) -> T + Sync) -> T {
        let result = self.butterfly(values.0, combine);
        self.broadcast(&Lanes(result), 0)
    }

    /// Returns the sum of the values of all lanes.
    #[inline(always)]
    pub fn sum<T: Shuffle + core::ops::Add<Output = T>>(&self, values: &Lanes<T>) -> T {
        self.reduce(values, |a, b| a + b)
    }

    /// Returns in each lane the combination of the values of all lanes up to it, in the order of
    /// the lanes.
    #[inline(always)]
    pub fn inclusive_scan<T: Shuffle>(
        &self,
        values: &Lanes<T>,
        combine: impl Fn(T, T) -> T + Sync,
    ) -> Lanes<T> {
        let mut result = values.0;
        let mut delta = 1;
        while delta < 32 {
            let other = self.shuffle_up(&Lanes(result), delta).0;
            if self.lane as usize >= delta {
                result = combine(other, result);
            }
            delta *= 2;
        }
        Lanes(result)
    }

    /// Combines the values of all lanes in each lane. The lanes combine in different orders, so
    /// that their results can differ.
    #[inline(always)]
    pub(crate) fn butterfly<T: Shuffle>(
        &self,
        mut value: T,
        combine: impl Fn(T, T) -> T + Sync,
    ) -> T {
        let mut mask = 16;
        while mask > 0 {
            value = combine(value, self.shuffle_xor(&Lanes(value), mask).0);
            mask /= 2;
        }
        value
    }
}
