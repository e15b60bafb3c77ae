//! Access patterns of a whole warp: the addresses of each half warp have a constant stride.
//!
//! These are the most frequent accesses of kernels: consecutive elements, one address for all, and both for the sixteen columns of a
//! tile. They require one comparison of all addresses with the expected ones, and one bounds check for each half. Later instructions
//! with the same address register reuse the result of the comparison (see [`AccessPatternCache`]).

use std::hint::black_box;
use std::ops::Range;

use super::access::{AccessMode, Load, segment};
#[cfg(doc)]
use super::access_pattern_cache::AccessPatternCache;
use crate::exec::machine::frame::InFile;
use crate::exec::machine::op::{Op, PatternSlot};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::{HostBytes, Word};
use crate::exec::values::lane::{FULL, HALF, LANES};

/// The addresses of a warp's access, if those of each half warp have a constant stride.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessPattern {
    /// The address of each half's first lane.
    pub(crate) starts: [u64; 2],
    /// The distance between the addresses of neighboring lanes in bytes: zero, or the size of the element or vector that a lane accesses.
    pub(crate) stride: u64,
}

/// The offsets of the lanes from the start of a half, for strides of 0, 1, 2, 4, 8, 16 and 32 bytes.
static RAMPS: [[u64; LANES]; 7] = {
    let mut ramps = [[0; LANES]; 7];
    let mut ramp = 1;
    while ramp < 7 {
        let mut lane = 0;
        while lane < LANES {
            ramps[ramp][lane] = ((lane % HALF) << (ramp - 1)) as u64;
            lane += 1;
        }
        ramp += 1;
    }
    ramps
};

impl AccessPattern {
    /// Returns the distance between lanes with the same address; 0 if all addresses differ.
    #[inline(always)]
    pub(crate) fn distance(&self) -> i8 {
        if self.stride == 0 {
            1
        } else if self.starts[0] == self.starts[1] {
            HALF as i8
        } else {
            0
        }
    }

    /// Returns the pattern of the 32-bit addresses in a register, if they have one.
    #[inline(always)]
    fn detect_narrow(row: &[u32; LANES], width: u64) -> Option<Self> {
        let mut addresses = [0; LANES];
        for lane in 0..LANES {
            addresses[lane] = row[lane].into();
        }
        Self::detect(&addresses, width)
    }

    /// Returns the pattern of addresses, if each half has a stride of 0 or `width` bytes.
    #[inline(always)]
    fn detect(addresses: &[u64; LANES], width: u64) -> Option<Self> {
        let stride = if addresses[0] == addresses[1] {
            0
        } else {
            width
        };
        let ramp = if stride == 0 {
            0
        } else {
            width.trailing_zeros() as usize + 1
        };
        let ramp = RAMPS.get(ramp)?;
        let starts = [addresses[0], addresses[HALF]];
        // Two lanes are compared with themselves. Without `black_box`, the compiler would treat them specially, and not vectorize the loop.
        let (addresses, ramp) = black_box((addresses, ramp));
        let mut differs = 0;
        for lane in 0..LANES {
            differs |= addresses[lane]
                .wrapping_sub(ramp[lane])
                .wrapping_sub(starts[lane / HALF]);
        }
        (differs == 0).then_some(Self { starts, stride })
    }

    /// Returns the pattern of an instruction's addresses.
    #[inline(always)]
    fn for_access(unit: &Unit<'_>, op: &Op) -> Option<Self> {
        Self::for_register(unit, op)?.with_offset(op)
    }

    /// Returns the pattern of the address register, from the cache if it is there.
    #[inline(always)]
    pub(crate) fn for_register(unit: &Unit<'_>, op: &Op) -> Option<Self> {
        match unit.patterns.get(op) {
            Some(pattern) => pattern,
            None => Self::detect_in_register(unit, op),
        }
    }

    #[inline(always)]
    fn detect_in_register(unit: &Unit<'_>, op: &Op) -> Option<Self> {
        let width = u64::from(op.align_mask) + 1;
        if op.narrow_address {
            Self::detect_narrow(unit.frame.row::<u32>(op.a), width)
        } else {
            Self::detect(unit.frame.row::<u64>(op.a), width)
        }
    }

    /// Adds the offset of an instruction. Returns `None` if 32-bit addresses wrap within a half warp.
    #[inline(always)]
    fn with_offset(self, op: &Op) -> Option<Self> {
        let starts = self.starts.map(|start| start.wrapping_add(op.imm));
        if !op.narrow_address {
            return Some(Self { starts, ..self });
        }
        let starts = starts.map(|start| u64::from(start as u32));
        let last = starts[0].max(starts[1]) + (HALF as u64 - 1) * self.stride;
        (last <= u32::MAX.into()).then_some(Self { starts, ..self })
    }

    /// Returns the pattern of the addresses plus an offset.
    #[inline(always)]
    pub(crate) fn at(self, offset: i32) -> Self {
        Self {
            starts: self
                .starts
                .map(|start| start.wrapping_add_signed(offset.into())),
            ..self
        }
    }

    /// Returns the address ranges of accesses of `bytes` bytes. If the ranges of the halves are equal or adjacent, the second is empty.
    #[inline(always)]
    pub(crate) fn ranges(self, bytes: u64) -> [Range<u64>; 2] {
        let [low, high] = self.starts;
        let length = (HALF as u64 - 1) * self.stride + bytes;
        let [low_end, high_end] = [low, high].map(|start| start.saturating_add(length));
        if low == high {
            [low..low_end, 0..0]
        } else if low_end == high {
            [low..high_end, 0..0]
        } else {
            [low..low_end, high..high_end]
        }
    }

    /// Returns the stride of an instruction's access pattern and the host memory of each half warp, if all lanes are active, aligned and
    /// in bounds.
    #[inline(always)]
    fn resolve<T: Word>(
        unit: &mut Unit<'_>,
        op: &Op,
        mode: AccessMode,
    ) -> Option<(u64, [HostBytes; 2])> {
        if unit.active != FULL {
            return None;
        }
        let register = Self::for_register(unit, op);
        if let PatternSlot::Fill(slot) = op.pattern {
            unit.patterns.insert(slot, register);
        }
        let register = register?;
        let Self {
            starts: [low, high],
            stride,
        } = register.with_offset(op)?;
        // The alignment is that of the vector.
        let element = op.element_offset();
        let vectors = low.wrapping_sub(element) | high.wrapping_sub(element);
        if vectors & u64::from(op.align_mask) != 0 || (low | high) & (T::SIZE - 1) != 0 {
            return None;
        }
        let length = (HALF as u64 - 1) * stride + T::SIZE;
        let segment = segment(unit, op.space, low, mode)?;
        unit.patterns.insert_memory(op, register, &segment);
        let halves = [
            segment.host_bytes(low, length)?,
            segment.host_bytes(high, length)?,
        ];
        Some((stride, halves))
    }
}

/// Returns the address of all lanes, active or not, if they have the same one.
#[inline(always)]
pub(crate) fn uniform_address(unit: &Unit<'_>, op: &Op) -> Option<u64> {
    let AccessPattern {
        starts: [low, high],
        stride,
    } = AccessPattern::for_access(unit, op)?;
    (stride == 0 && low == high).then_some(low)
}

/// Returns the pattern of a warp's access, if all lanes are active and the addresses have one.
#[inline(always)]
pub(crate) fn for_full_warp(unit: &Unit<'_>, op: &Op) -> Option<AccessPattern> {
    if unit.active == FULL {
        AccessPattern::for_access(unit, op)
    } else {
        None
    }
}

/// Returns the pattern like [`for_full_warp`], and caches that of the address register if the instruction has a slot for it.
#[inline(always)]
pub(crate) fn for_full_warp_cached(unit: &mut Unit<'_>, op: &Op) -> Option<AccessPattern> {
    let register = if unit.active == FULL {
        AccessPattern::for_register(unit, op)
    } else {
        None
    };
    if let PatternSlot::Fill(slot) = op.pattern {
        unit.patterns.insert(slot, register);
    }
    register?.with_offset(op)
}

/// Loads each lane's value. Returns `false` if a lane is inactive, if the addresses have no pattern, or if they are misaligned or out of
/// bounds.
#[inline(always)]
pub(crate) fn load<T: Load, D: InFile, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> bool {
    let Some((stride, halves)) = AccessPattern::resolve::<T::Word>(unit, op, AccessMode::Read)
    else {
        return false;
    };
    load_halves::<T, D, WIDE>(unit, op, stride, halves);
    true
}

/// Loads like [`load`] through the cached pattern. Returns `false` if a lane is inactive, or if no pattern is cached that is in bounds.
#[inline(always)]
pub(crate) fn load_again<T: Load, D: InFile, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
) -> bool {
    let Some((stride, halves)) = unit.patterns.memory(op, unit.active, AccessMode::Read) else {
        return false;
    };
    load_halves::<T, D, WIDE>(unit, op, stride, halves);
    true
}

#[inline(always)]
fn load_halves<T: Load, D: InFile, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
    stride: u64,
    halves: [HostBytes; 2],
) {
    let row = &mut unit.frame.row_mut::<D>(op.d).0;
    for (target, bytes) in row.as_chunks_mut::<HALF>().0.iter_mut().zip(halves) {
        if stride == T::Word::SIZE && T::Word::SIZE == size_of::<D>() as u64 {
            bytes.load_half_as::<T::Word, D, WIDE>(target);
        } else if stride == T::Word::SIZE {
            *target = bytes
                .load_half::<T::Word, WIDE>()
                .map(|word| D::truncate(T::extend(word)));
        } else if stride == 0 {
            *target = [D::truncate(T::extend(bytes.load(0))); HALF];
        } else {
            load_strided::<T, D>(target, bytes, stride);
        }
    }
}

/// Loads elements of vectors. A separate function, so that the handlers need not save registers for it.
#[inline(never)]
fn load_strided<T: Load, D: InFile>(target: &mut [D; HALF], bytes: HostBytes, stride: u64) {
    for (lane, value) in target.iter_mut().enumerate() {
        *value = D::truncate(T::extend(bytes.load_at(lane as u64 * stride)));
    }
}

/// Stores each lane's value, the lowest lane first. Returns `false` in the same cases as [`load`].
#[inline(always)]
pub(crate) fn store<T: Word, S: InFile, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> bool {
    let Some((stride, halves)) = AccessPattern::resolve::<T>(unit, op, AccessMode::Write) else {
        return false;
    };
    store_halves::<T, S, WIDE>(unit, op, stride, halves);
    true
}

/// Stores like [`store`] through the cached pattern. Returns `false` in the same cases as [`load_again`].
#[inline(always)]
pub(crate) fn store_again<T: Word, S: InFile, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
) -> bool {
    let Some((stride, halves)) = unit.patterns.memory(op, unit.active, AccessMode::Write) else {
        return false;
    };
    store_halves::<T, S, WIDE>(unit, op, stride, halves);
    true
}

#[inline(always)]
fn store_halves<T: Word, S: InFile, const WIDE: bool>(
    unit: &Unit<'_>,
    op: &Op,
    stride: u64,
    halves: [HostBytes; 2],
) {
    let row = unit.frame.row::<S>(op.b);
    for (source, bytes) in row.as_chunks::<HALF>().0.iter().zip(halves) {
        if stride == T::SIZE && T::SIZE == size_of::<S>() as u64 {
            bytes.store_half_as::<T, S, WIDE>(source);
            continue;
        }
        let values = source.map(|value| T::truncate(value.extend()));
        if stride == T::SIZE {
            bytes.store_half::<T, WIDE>(&values);
        } else {
            for (lane, value) in values.into_iter().enumerate() {
                bytes.store_at(lane as u64 * stride, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(low: u64, high: u64, stride: u64) -> [u64; LANES] {
        std::array::from_fn(|lane| [low, high][lane / HALF] + (lane % HALF) as u64 * stride)
    }

    #[test]
    fn patterns_are_uniform_or_consecutive() {
        for width in [1, 2, 4, 8, 16, 32] {
            for stride in [0, width] {
                assert_eq!(
                    AccessPattern::detect(&strided(0x1000, 0x9000, stride), width),
                    Some(AccessPattern {
                        starts: [0x1000, 0x9000],
                        stride
                    }),
                    "{width} {stride}"
                );
            }
            assert_eq!(
                AccessPattern::detect(&strided(0x1000, 0x9000, 3 * width), width),
                None
            );
            for lane in 0..LANES {
                let mut addresses = strided(0x1000, 0x9000, width);
                addresses[lane] ^= 0x100_0000;
                assert_eq!(
                    AccessPattern::detect(&addresses, width),
                    None,
                    "{width} {lane}"
                );
            }
        }
        assert_eq!(AccessPattern::detect(&strided(0, 0, 64), 64), None);
    }

    fn ranges(starts: [u64; 2], stride: u64) -> [Range<u64>; 2] {
        AccessPattern { starts, stride }.ranges(4)
    }

    #[test]
    fn adjacent_ranges_are_merged() {
        assert_eq!(ranges([64, 128], 4), [64..192, 0..0]);
        assert_eq!(ranges([64, 64], 4), [64..128, 0..0]);
        assert_eq!(ranges([64, 132], 4), [64..128, 132..196]);
        assert_eq!(ranges([64, 0], 0), [64..68, 0..4]);
        assert_eq!(ranges([u64::MAX - 3, 0], 0), [u64::MAX - 3..u64::MAX, 0..4]);
    }
}
