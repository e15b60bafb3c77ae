//! Accesses of a whole warp by the access pattern of its addresses.
//!
//! The most frequent accesses of kernels have a pattern: consecutive elements, one address for all,
//! and both for the sixteen columns of a tile. They require one comparison of all addresses with
//! the expected ones, and one bounds check for each half. Later instructions with the same address
//! register reuse the result of the comparison (see [`AccessPatternCache`]).

use super::{Load, segment};
use crate::exec::frame::InFile;
#[cfg(doc)]
use crate::exec::machine::access_pattern_cache::AccessPatternCache;
use crate::exec::machine::op::{Op, PatternSlot};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::access_pattern::AccessPattern;
use crate::exec::memory::{AccessMode, HostBytes, Word};
use crate::exec::values::lane::{FULL, HALF};

impl AccessPattern {
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

    /// Adds the offset of an instruction. Returns `None` if 32-bit addresses wrap within a half
    /// warp.
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

    /// Returns the stride of an instruction's access pattern and the host memory of each half warp,
    /// if all lanes are active, aligned and in bounds.
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

/// Returns the pattern like [`for_full_warp`], and caches that of the address register if the
/// instruction has a slot for it.
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

/// Loads each lane's value. Returns `false` if a lane is inactive, if the addresses have no
/// pattern, or if they are misaligned or out of bounds.
#[inline(always)]
pub(crate) fn load<T: Load, D: InFile, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> bool {
    let Some((stride, halves)) = AccessPattern::resolve::<T::Word>(unit, op, AccessMode::Read)
    else {
        return false;
    };
    load_halves::<T, D, WIDE>(unit, op, stride, halves);
    true
}

/// Loads like [`load`] through the cached pattern. Returns `false` if a lane is inactive, or if no
/// pattern is cached that is in bounds.
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

/// Loads elements of vectors. A separate function, so that the handlers need not save registers for
/// it.
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

/// Stores like [`store`] through the cached pattern. Returns `false` in the same cases as
/// [`load_again`].
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
