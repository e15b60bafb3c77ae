//! `tcgen05.ld` and `tcgen05.st`: transfers between the registers of a warp and its lanes of tensor
//! memory.

use super::{allocated, illegal, race};
use crate::exec::check::report::Trap;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::tensor_memory::order::TensorAccess;
use crate::exec::machine::tensor_memory::{
    Region, TENSOR_COLUMNS, TENSOR_LANES, TensorAddress, WHOLE,
};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::operands::tensor_memory::{TensorTransfer, TransferShape};
use crate::exec::ops::definedness::{UndefinedLoad, UndefinedRegister, undefined_bytes};
use crate::exec::ops::matrix_memory::is_incomplete;
use crate::exec::values::lane::LANES;

/// The number of lanes of a warp.
const WARP_LANES: u32 = TENSOR_LANES / 4;

/// The cells of a transfer by a warp.
struct Placement {
    transfer: TensorTransfer,
    /// The addresses of the first cells of the lower and of the upper half of the warp.
    starts: [TensorAddress; 2],
    regions: Vec<Region>,
}

impl Placement {
    /// Returns the cells of the warp's transfer, or a fault if its lanes are not the warp's own.
    fn new(
        unit: &Unit<'_>,
        op: &Op,
        transfer: TensorTransfer,
        registers: u32,
    ) -> Result<Self, Trap> {
        let shape = transfer.shape;
        let thread = unit.leader();
        let start = TensorAddress::from_bits(unit.frame.row::<u32>(op.a)[thread]);
        let first_lane = unit.warp.index % 4 * WARP_LANES;
        let is_within = start.lane >= first_lane
            && start.lane + shape.lanes() <= first_lane + WARP_LANES
            && start.lane.is_multiple_of(16);
        if !is_within {
            return Err(illegal(
                thread,
                "tcgen05.ld and tcgen05.st: a warp accesses only 32 lanes, from 32 times its rank in the warpgroup",
            ));
        }
        let columns = shape.columns(registers) * if transfer.is_packed { 2 } else { 1 };
        let mut starts = [start; 2];
        let mut regions = vec![Region::new(start, shape.lanes(), columns)];
        if let TransferShape::Lanes16Bits32Twice { distance } = shape {
            // Columns past the end are in no allocation.
            let column = i64::from(start.column)
                .checked_add(distance)
                .and_then(|column| u32::try_from(column).ok());
            starts[1].column = column.unwrap_or(TENSOR_COLUMNS).min(TENSOR_COLUMNS);
            regions.push(Region::new(starts[1], shape.lanes(), columns));
        }
        Ok(Self {
            transfer,
            starts,
            regions,
        })
    }

    /// Checks that the cells are allocated, and records the accesses if races are checked.
    fn check(&self, unit: &mut Unit<'_>, mode: AccessMode) -> Result<(), Trap> {
        let thread = unit.leader();
        let warp = unit.warp.index;
        for region in &self.regions {
            let memory = allocated(unit.block, thread, region, mode)?;
            if !unit.launch.program.checking.races {
                continue;
            }
            let access = TensorAccess {
                thread: (warp * LANES as u32) as u16,
                region: region.clone(),
                is_write: mode == AccessMode::Write,
            };
            if let Some(other) = memory.order.record_transfer(warp, access) {
                return Err(race(unit, thread, &other, region, mode));
            }
        }
        Ok(())
    }

    /// Returns the address of the cell in a register of a thread. With packing, it is the first of
    /// two.
    fn address(&self, thread: usize, register: usize) -> TensorAddress {
        let cell = self.transfer.shape.cell(thread as u32, register as u32);
        let scale = if self.transfer.is_packed { 2 } else { 1 };
        self.starts[thread / (LANES / 2)].offset(cell.lane, cell.column * scale)
    }
}

/// `tcgen05.ld`.
pub(crate) fn run_load(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    match load(unit, op) {
        Ok(()) => Control::Next,
        Err(trap) => unit.fault(trap),
    }
}

/// `tcgen05.st`.
pub(crate) fn run_store(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    match store(unit, op) {
        Ok(()) => Control::Next,
        Err(trap) => unit.fault(trap),
    }
}

/// `tcgen05.wait::ld`, and with `imm` 1 `tcgen05.wait::st`.
pub(crate) fn run_wait(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    if let Some(memory) = &mut unit.block.tensor_memory {
        memory.order.wait(unit.warp.index, op.imm == 1);
    }
    Control::Next
}

fn load(unit: &mut Unit<'_>, op: &Op) -> Result<(), Trap> {
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let transfer = function.tensor_transfers[op.table_index()];
    let rows = &function.row_lists[transfer.rows as usize];
    let placement = Placement::new(unit, op, transfer, rows.len() as u32)?;
    placement.check(unit, AccessMode::Read)?;
    let memory = allocated(
        unit.block,
        unit.active.trailing_zeros() as usize,
        &placement.regions[0],
        AccessMode::Read,
    )?;
    let mut undefined = UndefinedLoad {
        size: rows.len() as u32 * 4,
        addresses: [0; LANES],
        registers: Vec::new(),
    };
    for (register, &row) in rows.iter().enumerate() {
        let mut values = [0; LANES];
        let mut bytes = [0; LANES];
        for thread in 0..LANES {
            let address = placement.address(thread, register);
            values[thread] = memory.read(address);
            bytes[thread] = memory.unwritten(address);
            if transfer.is_packed {
                let next = address.offset(0, 1);
                values[thread] = values[thread] & 0xffff | memory.read(next) << 16;
                bytes[thread] = bytes[thread] & 3 | memory.unwritten(next) << 2 & WHOLE;
            }
            if register == 0 {
                undefined.addresses[thread] = address.bits().into();
            }
        }
        unit.frame.row_mut::<u32>(row).merge(&values, unit.active);
        if bytes != [0; LANES] {
            undefined.registers.push(UndefinedRegister { row, bytes });
        }
    }
    if unit.launch.program.checking.uninitialized && !undefined.registers.is_empty() {
        undefined.add_to(unit, op);
    }
    Ok(())
}

fn store(unit: &mut Unit<'_>, op: &Op) -> Result<(), Trap> {
    let function = &unit.launch.program.functions[unit.frame.function as usize];
    let transfer = function.tensor_transfers[op.table_index()];
    let rows = &function.row_lists[transfer.rows as usize];
    let placement = Placement::new(unit, op, transfer, rows.len() as u32)?;
    placement.check(unit, AccessMode::Write)?;
    let memory = allocated(
        unit.block,
        unit.active.trailing_zeros() as usize,
        &placement.regions[0],
        AccessMode::Write,
    )?;
    for (register, &row) in rows.iter().enumerate() {
        let values = *unit.frame.row::<u32>(row);
        let defined = undefined_bytes(unit.frame, row).map(|bytes| !bytes & WHOLE);
        for thread in 0..LANES {
            let address = placement.address(thread, register);
            if transfer.is_packed {
                // The upper halves of the cells are undefined.
                memory.write(address, values[thread] & 0xffff, defined[thread] & 3);
                let next = address.offset(0, 1);
                memory.write(next, values[thread] >> 16, defined[thread] >> 2);
            } else {
                memory.write(address, values[thread], defined[thread]);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::operands::tensor_memory::Cell;

    /// The shapes that access all columns from the first one on.
    const SHAPES: [TransferShape; 4] = [
        TransferShape::Lanes32Bits32,
        TransferShape::Lanes16Bits64,
        TransferShape::Lanes16Bits128,
        TransferShape::Lanes16Bits256,
    ];

    #[test]
    fn every_cell_is_in_one_register() {
        for shape in SHAPES {
            for repetitions in [1, 2, 8] {
                let registers = shape.registers() * repetitions;
                let columns = shape.columns(registers);
                let mut cells: Vec<u32> = (0..32 * registers)
                    .map(|index| shape.cell(index % 32, index / 32))
                    .map(|Cell { lane, column }| lane * columns + column)
                    .collect();
                cells.sort_unstable();
                let all: Vec<u32> = (0..shape.lanes() * columns).collect();
                assert_eq!(cells, all, "{shape:?} {repetitions}");
            }
        }
    }
}
