//! Bulk copies and reductions: `cp.async.bulk`, `cp.reduce.async.bulk`.

use super::mbarrier::Mbarrier;
use super::tensor::{self};
use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::machine::cluster::address_in;
use crate::exec::machine::op::{Control, NO_REGISTER, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::operands::bulk::BulkReduction;
use crate::exec::ops::access::{check_alignment, check_reach, read_at, trap, update_at, write_at};
use crate::exec::ops::uninitialized;
use crate::exec::space::Space;
use crate::exec::values::lane::Lanes;

/// The alignment of addresses and sizes, in bytes.
const ALIGNMENT: u64 = 16;

/// Flags in `Op::imm`; the bits above are the index of a reduction or of a list of rows.
pub(crate) const TO_SHARED: u64 = 1;
pub(crate) const FROM_SHARED: u64 = 2;
pub(crate) const LIST_SHIFT: u32 = 2;

/// The bytes that one thread copies, and the spaces of the destination and the source.
struct Block {
    lane: usize,
    from: u64,
    size: u64,
    spaces: [Space; 2],
}

impl Block {
    /// Returns the block that a lane copies, or the trap of a misaligned or invalid block.
    fn new(unit: &Unit<'_>, op: &Op, lane: usize) -> Result<Self, Trap> {
        let from = unit.frame.row::<u64>(op.b)[lane];
        let size = u64::from(unit.frame.row::<u32>(op.c)[lane]);
        check_alignment(from, ALIGNMENT, lane, AccessMode::Read)?;
        check_alignment(size, ALIGNMENT, lane, AccessMode::Read)?;
        Ok(Self {
            lane,
            from,
            size,
            spaces: [TO_SHARED, FROM_SHARED].map(|flag| {
                if op.imm & flag == 0 {
                    Space::Global
                } else {
                    Space::Shared
                }
            }),
        })
    }

    fn copy(&self, unit: &mut Unit<'_>, to: u64) -> Result<(), Trap> {
        check_alignment(to, ALIGNMENT, self.lane, AccessMode::Write)?;
        for offset in (0..self.size).step_by(8) {
            let word: u64 = read_at(
                unit,
                self.spaces[1],
                self.lane,
                self.from.wrapping_add(offset),
            )?;
            write_at(
                unit,
                self.spaces[0],
                self.lane,
                to.wrapping_add(offset),
                word,
            )?;
        }
        Ok(())
    }

    fn complete(&self, unit: &mut Unit<'_>, barrier: u64) -> Result<(), Trap> {
        update_at(unit, Space::Shared, self.lane, barrier, |bits| {
            Mbarrier::from_bits(bits).complete(self.size as u32).bits()
        })?;
        Ok(())
    }
}

/// Copies all bytes but some at the start and at the end, whose destination becomes undefined. They
/// may be outside of all memory. The list of rows above the flags has their numbers.
pub(crate) fn run_partial(unit: &mut Unit<'_>, op: &Op) -> Control {
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let rows = &function.row_lists[(op.imm >> LIST_SHIFT) as usize];
    each_lane(unit, op, |unit, block, to, barrier| {
        let lane = block.lane;
        check_alignment(to, ALIGNMENT, lane, AccessMode::Write)?;
        let ignored = [rows[0], rows[1]].map(|row| u64::from(unit.frame.row::<u32>(row)[lane]));
        if ignored.iter().any(|bytes| *bytes >= ALIGNMENT) {
            let reason = "cp.async.bulk.ignore_oob ignores at most 15 bytes at each end";
            return Err(Trap::new(ReportKind::IllegalInstruction(reason), lane));
        }
        let copied = ignored[0]..block.size.saturating_sub(ignored[1]);
        for offset in 0..block.size {
            let target = to.wrapping_add(offset);
            if copied.contains(&offset) {
                let from = block.from.wrapping_add(offset);
                let byte: u8 = read_at(unit, Space::Global, lane, from)?;
                write_at(unit, Space::Shared, lane, target, byte)?;
            } else {
                check_reach(unit, Space::Shared, lane, target, AccessMode::Write)?;
                uninitialized::remove(unit, Space::Shared, lane, target, 1);
            }
        }
        match barrier {
            Some(barrier) => block.complete(unit, barrier),
            None => Ok(()),
        }
    })
}

fn each_lane(
    unit: &mut Unit<'_>,
    op: &Op,
    act: impl Fn(&mut Unit<'_>, Block, u64, Option<u64>) -> Result<(), Trap>,
) -> Control {
    for lane in Lanes(unit.active) {
        let to = unit.frame.row::<u64>(op.a)[lane];
        let barrier = op
            .second_destination()
            .map(|row| unit.frame.row::<u64>(row)[lane]);
        let result = Block::new(unit, op, lane).and_then(|block| act(unit, block, to, barrier));
        if let Err(trap) = result {
            return unit.fault(trap);
        }
    }
    Control::Next
}

pub(crate) fn run_bulk(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, block, to, barrier| {
        let targets = if op.d == NO_REGISTER {
            vec![(to, barrier)]
        } else {
            let ranks = Lanes(unit.frame.row::<u32>(op.d)[block.lane] & 0xffff);
            ranks
                .map(|rank| rank as u32)
                .map(|rank| {
                    let barrier = barrier.map(|barrier| address_in(barrier, rank));
                    (address_in(to, rank), barrier)
                })
                .collect()
        };
        for (to, barrier) in targets {
            block.copy(unit, to)?;
            if let Some(barrier) = barrier {
                block.complete(unit, barrier)?;
            }
        }
        Ok(())
    })
}

/// Copies the bytes that the mask selects in each group of 16.
pub(crate) fn run_masked(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, block, to, _| {
        let lane = block.lane;
        check_alignment(to, ALIGNMENT, lane, AccessMode::Write)?;
        let mask = unit.frame.row::<u32>(op.d)[lane];
        for offset in (0..block.size).filter(|offset| mask >> (offset % ALIGNMENT) & 1 == 1) {
            let from = block.from.wrapping_add(offset);
            let byte: u8 = read_at(unit, Space::Shared, lane, from)?;
            write_at(unit, Space::Global, lane, to.wrapping_add(offset), byte)?;
        }
        Ok(())
    })
}

pub(crate) fn run_reduction(unit: &mut Unit<'_>, op: &Op) -> Control {
    let program = unit.launch.program;
    let function = &program.functions[unit.frame.function as usize];
    let BulkReduction { change, bytes } = function.reductions[(op.imm >> LIST_SHIFT) as usize];
    each_lane(unit, op, |unit, block, to, barrier| {
        check_alignment(to, ALIGNMENT, block.lane, AccessMode::Write)?;
        for offset in (0..block.size).step_by(bytes as usize) {
            let from = block.from.wrapping_add(offset);
            let new = tensor::read_bytes(unit, Space::Shared, block.lane, from, bytes)?;
            let location = tensor::Location {
                space: block.spaces[0],
                lane: block.lane,
                address: to.wrapping_add(offset),
                bytes,
            };
            tensor::update(unit, location, change, new)?;
        }
        match barrier {
            Some(barrier) => block.complete(unit, barrier),
            None => Ok(()),
        }
    })
}

/// Checks the addresses of a prefetch, which has no other effect.
pub(crate) fn run_prefetch(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let from = unit.frame.row::<u64>(op.a)[lane];
        let size = u64::from(unit.frame.row::<u32>(op.c)[lane]);
        let checked = check_alignment(from, ALIGNMENT, lane, AccessMode::Read)
            .and_then(|()| check_alignment(size, ALIGNMENT, lane, AccessMode::Read))
            .and_then(|()| match (size, from.checked_add(size)) {
                (0, _) => Ok(()),
                (_, Some(end)) => check_reach(unit, Space::Global, lane, from, AccessMode::Read)
                    .and_then(|()| {
                        check_reach(unit, Space::Global, lane, end - 1, AccessMode::Read)
                    }),
                (_, None) => Err(trap(
                    ReportKind::IllegalAddress,
                    lane,
                    from,
                    size,
                    AccessMode::Read,
                )),
            });
        if let Err(trap) = checked {
            return unit.fault(trap);
        }
    }
    Control::Next
}
