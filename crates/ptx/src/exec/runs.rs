//! Accesses of a whole warp in runs: the addresses of each half warp have a constant step.
//!
//! These are the most frequent accesses of kernels: consecutive elements, one address for all, and both for the sixteen columns of a
//! tile. They require one comparison of all addresses with the expected ones, and one bounds check for each half. Later instructions
//! with the same address register reuse the result of the comparison (see [`KeptRuns`]).

use std::hint::black_box;
use std::ops::Range;

use super::access::{Load, segment};
use super::frame::InFile;
#[cfg(doc)]
use super::kept_runs::KeptRuns;
use super::lane::{FULL, HALF, LANES};
use super::memory::{HostBytes, Word};
use super::op::{Op, RunsSlot};
use super::unit::Unit;

/// The addresses of a warp's access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    /// The address of each half's first lane.
    pub(crate) starts: [u64; 2],
    /// The distance between the addresses of neighboring lanes in bytes: zero, or the size of the element or vector that a lane accesses.
    pub(crate) step: u64,
}

/// The offsets of the lanes from the start of a half, for steps of 0, 1, 2, 4, 8, 16 and 32 bytes.
static RAMPS: [[u64; LANES]; 7] = {
    let mut ramps = [[0; LANES]; 7];
    let mut at = LANES;
    while at < 7 * LANES {
        let (ramp, lane) = (at / LANES, at % LANES);
        ramps[ramp][lane] = ((lane % HALF) << (ramp - 1)) as u64;
        at += 1;
    }
    ramps
};

impl Runs {
    /// Returns the distance between lanes with the same address; 0 if all addresses differ.
    #[inline(always)]
    pub(crate) fn distance(&self) -> i8 {
        if self.step == 0 {
            1
        } else if self.starts[0] == self.starts[1] {
            HALF as i8
        } else {
            0
        }
    }

    /// Returns the runs of the 32-bit addresses in a register, if they form runs.
    #[inline(always)]
    fn find_narrow(row: &[u32; LANES], width: u64) -> Option<Self> {
        let mut addresses = [0; LANES];
        for lane in 0..LANES {
            addresses[lane] = row[lane].into();
        }
        Self::find(&addresses, width)
    }

    /// Returns the runs of addresses, if they form runs with steps of 0 or `width` bytes.
    #[inline(always)]
    fn find(addresses: &[u64; LANES], width: u64) -> Option<Self> {
        let step = if addresses[0] == addresses[1] {
            0
        } else {
            width
        };
        let ramp = if step == 0 {
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
        (differs == 0).then_some(Self { starts, step })
    }

    /// Returns the runs of an instruction's addresses.
    #[inline(always)]
    fn of(unit: &Unit<'_>, op: &Op) -> Option<Self> {
        Self::of_register(unit, op)?.moved(op)
    }

    /// Returns the runs of the address register: those that are kept, if there are any.
    #[inline(always)]
    pub(crate) fn of_register(unit: &Unit<'_>, op: &Op) -> Option<Self> {
        match unit.runs.of(op) {
            Some(runs) => runs,
            None => Self::find_in_register(unit, op),
        }
    }

    /// Returns the runs of the address register.
    #[inline(always)]
    fn find_in_register(unit: &Unit<'_>, op: &Op) -> Option<Self> {
        let width = u64::from(op.align_mask) + 1;
        if op.narrow_address {
            Self::find_narrow(unit.frame.row::<u32>(op.a), width)
        } else {
            Self::find(unit.frame.row::<u64>(op.a), width)
        }
    }

    /// Adds the offset of an instruction. Returns `None` if addresses of 32 bits wrap within a run.
    #[inline(always)]
    fn moved(self, op: &Op) -> Option<Self> {
        let starts = self.starts.map(|start| start.wrapping_add(op.imm));
        if !op.narrow_address {
            return Some(Self { starts, ..self });
        }
        let starts = starts.map(|start| u64::from(start as u32));
        let last = starts[0].max(starts[1]) + (HALF as u64 - 1) * self.step;
        (last <= u32::MAX.into()).then_some(Self { starts, ..self })
    }

    /// Returns the runs at an offset.
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
        let length = (HALF as u64 - 1) * self.step + bytes;
        let [low_end, high_end] = [low, high].map(|start| start.saturating_add(length));
        if low == high {
            [low..low_end, 0..0]
        } else if low_end == high {
            [low..high_end, 0..0]
        } else {
            [low..low_end, high..high_end]
        }
    }

    /// Returns the step of an instruction's runs and the host memory of each, if all lanes are active, aligned and in bounds.
    #[inline(always)]
    fn places<T: Word>(unit: &mut Unit<'_>, op: &Op, write: bool) -> Option<(u64, [HostBytes; 2])> {
        if unit.active != FULL {
            return None;
        }
        let register = Self::of_register(unit, op);
        if let RunsSlot::Keep(slot) = op.runs {
            unit.runs.keep(slot, register);
        }
        let register = register?;
        let Self {
            starts: [low, high],
            step,
        } = register.moved(op)?;
        // The alignment is that of the vector; `op.e` is the offset of the element in it.
        let element = u64::from(op.e);
        let vectors = low.wrapping_sub(element) | high.wrapping_sub(element);
        if vectors & u64::from(op.align_mask) != 0 || (low | high) & (T::SIZE - 1) != 0 {
            return None;
        }
        let length = (HALF as u64 - 1) * step + T::SIZE;
        let segment = segment(unit, op.space, low, write)?;
        unit.runs.keep_segment(op, register, &segment);
        Some((
            step,
            [segment.place(low, length)?, segment.place(high, length)?],
        ))
    }
}

/// Returns the address of all lanes, active or not, if they have the same one.
#[inline(always)]
pub(crate) fn one_address(unit: &Unit<'_>, op: &Op) -> Option<u64> {
    let Runs {
        starts: [low, high],
        step,
    } = Runs::of(unit, op)?;
    (step == 0 && low == high).then_some(low)
}

/// Returns the runs of a warp's access, if all lanes are active and access memory in runs.
#[inline(always)]
pub(crate) fn of_warp(unit: &Unit<'_>, op: &Op) -> Option<Runs> {
    if unit.active == FULL {
        Runs::of(unit, op)
    } else {
        None
    }
}

/// Returns the runs like [`of_warp`], and keeps those of the address register if the instruction has a slot for them.
#[inline(always)]
pub(crate) fn find_of_warp(unit: &mut Unit<'_>, op: &Op) -> Option<Runs> {
    let register = if unit.active == FULL {
        Runs::of_register(unit, op)
    } else {
        None
    };
    if let RunsSlot::Keep(slot) = op.runs {
        unit.runs.keep(slot, register);
    }
    register?.moved(op)
}

/// Loads each lane's value. Returns `false` if a lane is inactive, or if the addresses are not runs that are aligned and in bounds.
#[inline(always)]
pub(crate) fn load<T: Load, D: InFile, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> bool {
    let Some((step, places)) = Runs::places::<T::Word>(unit, op, false) else {
        return false;
    };
    load_places::<T, D, WIDE>(unit, op, step, places);
    true
}

/// Loads like [`load`] through kept runs. Returns `false` if a lane is inactive, or if no runs are kept that are in bounds.
#[inline(always)]
pub(crate) fn load_again<T: Load, D: InFile, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
) -> bool {
    let Some((step, places)) = unit.runs.places(op, unit.active, false) else {
        return false;
    };
    load_places::<T, D, WIDE>(unit, op, step, places);
    true
}

#[inline(always)]
fn load_places<T: Load, D: InFile, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
    step: u64,
    places: [HostBytes; 2],
) {
    let row = &mut unit.frame.row_mut::<D>(op.d).0;
    for (target, bytes) in row.as_chunks_mut::<HALF>().0.iter_mut().zip(places) {
        if step == T::Word::SIZE && T::Word::SIZE == size_of::<D>() as u64 {
            bytes.load_half_as::<T::Word, D, WIDE>(target);
        } else if step == T::Word::SIZE {
            *target = bytes
                .load_half::<T::Word, WIDE>()
                .map(|word| D::truncate(T::extend(word)));
        } else if step == 0 {
            *target = [D::truncate(T::extend(bytes.load(0))); HALF];
        } else {
            load_spaced::<T, D>(target, bytes, step);
        }
    }
}

/// Loads elements of vectors. A separate function, so that the handlers need not save registers for it.
#[inline(never)]
fn load_spaced<T: Load, D: InFile>(target: &mut [D; HALF], bytes: HostBytes, step: u64) {
    for (lane, value) in target.iter_mut().enumerate() {
        *value = D::truncate(T::extend(bytes.load_at(lane as u64 * step)));
    }
}

/// Stores each lane's value, the lowest lane first. Returns `false` in the same cases as [`load`].
#[inline(always)]
pub(crate) fn store<T: Word, S: InFile, const WIDE: bool>(unit: &mut Unit<'_>, op: &Op) -> bool {
    let Some((step, places)) = Runs::places::<T>(unit, op, true) else {
        return false;
    };
    store_places::<T, S, WIDE>(unit, op, step, places);
    true
}

/// Stores like [`store`] through kept runs. Returns `false` in the same cases as [`load_again`].
#[inline(always)]
pub(crate) fn store_again<T: Word, S: InFile, const WIDE: bool>(
    unit: &mut Unit<'_>,
    op: &Op,
) -> bool {
    let Some((step, places)) = unit.runs.places(op, unit.active, true) else {
        return false;
    };
    store_places::<T, S, WIDE>(unit, op, step, places);
    true
}

#[inline(always)]
fn store_places<T: Word, S: InFile, const WIDE: bool>(
    unit: &Unit<'_>,
    op: &Op,
    step: u64,
    places: [HostBytes; 2],
) {
    let row = unit.frame.row::<S>(op.b);
    for (source, bytes) in row.as_chunks::<HALF>().0.iter().zip(places) {
        if step == T::SIZE && T::SIZE == size_of::<S>() as u64 {
            bytes.store_half_as::<T, S, WIDE>(source);
            continue;
        }
        let values = source.map(|value| T::truncate(value.extend()));
        if step == T::SIZE {
            bytes.store_half::<T, WIDE>(&values);
        } else {
            for (lane, value) in values.into_iter().enumerate() {
                bytes.store_at(lane as u64 * step, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses_of(low: u64, high: u64, step: u64) -> [u64; LANES] {
        std::array::from_fn(|lane| [low, high][lane / HALF] + (lane % HALF) as u64 * step)
    }

    #[test]
    fn runs_are_found_for_one_address_and_for_neighbors_only() {
        for width in [1, 2, 4, 8, 16, 32] {
            for step in [0, width] {
                let found = Runs::find(&addresses_of(0x1000, 0x9000, step), width);
                assert_eq!(
                    found,
                    Some(Runs {
                        starts: [0x1000, 0x9000],
                        step
                    }),
                    "{width} {step}"
                );
            }
            assert_eq!(
                Runs::find(&addresses_of(0x1000, 0x9000, 3 * width), width),
                None
            );
            for lane in 0..LANES {
                let mut addresses = addresses_of(0x1000, 0x9000, width);
                addresses[lane] ^= 0x100_0000;
                assert_eq!(Runs::find(&addresses, width), None, "{width} {lane}");
            }
        }
        assert_eq!(Runs::find(&addresses_of(0, 0, 64), 64), None);
    }

    #[test]
    fn ranges_of_both_halves_are_one_where_they_meet() {
        let ranges = |starts, step| Runs { starts, step }.ranges(4);
        assert_eq!(ranges([64, 128], 4), [64..192, 0..0]);
        assert_eq!(ranges([64, 64], 4), [64..128, 0..0]);
        assert_eq!(ranges([64, 132], 4), [64..128, 132..196]);
        assert_eq!(ranges([64, 0], 0), [64..68, 0..4]);
        assert_eq!(ranges([u64::MAX - 3, 0], 0), [u64::MAX - 3..u64::MAX, 0..4]);
    }
}
