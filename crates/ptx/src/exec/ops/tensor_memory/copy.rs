//! `tcgen05.cp`: copies from shared to tensor memory, issued by single threads.

use super::multiply::record;
use super::{allocated, illegal};
use crate::exec::check::report::Trap;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::tensor_memory::{Region, TENSOR_LANES, TensorAddress, WHOLE};
use crate::exec::machine::unit::Unit;
use crate::exec::matrix::descriptor::{Descriptor, PIECE};
use crate::exec::memory::AccessMode;
use crate::exec::ops::access::read_at;
use crate::exec::space::Space;
use crate::exec::values::lane::Lanes;

/// The number of lanes of a quarter of tensor memory.
const QUARTER: u32 = TENSOR_LANES / 4;

/// The shape of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyShape {
    /// 128 rows of 32 bytes.
    Lanes128Bits256,
    /// 128 rows of 16 bytes.
    Lanes128Bits128,
    /// 64 rows of 16 bytes, the first half to the quarters 0 and 2, the second to the quarters 1
    /// and 3.
    Lanes64ToAlternatingQuarters,
    /// 64 rows of 16 bytes, the first half to the quarters 0 and 1, the second to the quarters 2
    /// and 3.
    Lanes64ToNeighboringQuarters,
    /// 32 rows of 16 bytes to every quarter.
    Lanes32ToEveryQuarter,
}

impl CopyShape {
    /// Every shape; `Op::imm` is an index.
    pub(crate) const ALL: [Self; 5] = [
        Self::Lanes128Bits256,
        Self::Lanes128Bits128,
        Self::Lanes64ToAlternatingQuarters,
        Self::Lanes64ToNeighboringQuarters,
        Self::Lanes32ToEveryQuarter,
    ];

    /// Returns the number of columns of each row.
    const fn columns(self) -> u32 {
        match self {
            Self::Lanes128Bits256 => 8,
            _ => 4,
        }
    }

    /// Returns the row that is copied to a lane.
    const fn row(self, lane: u32) -> u32 {
        match self {
            Self::Lanes128Bits256 | Self::Lanes128Bits128 => lane,
            Self::Lanes64ToAlternatingQuarters => lane % (2 * QUARTER),
            Self::Lanes64ToNeighboringQuarters => lane / (2 * QUARTER) * QUARTER + lane % QUARTER,
            Self::Lanes32ToEveryQuarter => lane % QUARTER,
        }
    }
}

/// `tcgen05.cp`. The address is in row `a`, the descriptor in row `b`.
pub(crate) fn run_copy(unit: &mut Unit<'_>, op: &Op) -> Control {
    for thread in Lanes(unit.active) {
        if let Err(trap) = copy(unit, op, thread) {
            return unit.fault(trap);
        }
    }
    Control::Next
}

fn copy(unit: &mut Unit<'_>, op: &Op, thread: usize) -> Result<(), Trap> {
    let shape = CopyShape::ALL[op.imm as usize];
    let to = TensorAddress::from_bits(unit.frame.row::<u64>(op.a)[thread] as u32);
    if to.lane != 0 {
        return Err(illegal(
            thread,
            "tcgen05.cp: the destination does not begin at lane 0",
        ));
    }
    let descriptor = Descriptor::from_tensor_bits(unit.frame.row::<u64>(op.b)[thread])
        .map_err(|reason| illegal(thread, reason))?;
    let region = Region::new(to, TENSOR_LANES, shape.columns());
    record(unit, thread, &region, AccessMode::Write)?;
    for lane in 0..TENSOR_LANES {
        for column in 0..shape.columns() {
            let byte = u64::from(column) * 4;
            let piece = descriptor.along(shape.row(lane).into(), byte / PIECE);
            let value: u32 = read_at(unit, Space::Shared, thread, piece + byte % PIECE)?;
            let memory = allocated(unit.block, thread, &region, AccessMode::Write)?;
            memory.write(to.offset(lane, column), value, WHOLE);
        }
    }
    Ok(())
}
