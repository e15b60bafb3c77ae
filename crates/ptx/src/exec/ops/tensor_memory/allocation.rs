//! `tcgen05.alloc`, `tcgen05.dealloc` and `tcgen05.relinquish_alloc_permit`.

use super::illegal;
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::tensor_memory::{
    AllocationSource, MIN_COLUMNS, TENSOR_COLUMNS, TensorAddress,
};
use crate::exec::machine::unit::Unit;
use crate::exec::ops::access::write_at;
use crate::exec::ops::matrix_memory::is_incomplete;

/// Returns `true` if columns of this number can be allocated together.
pub(crate) fn is_valid_count(count: u32) -> bool {
    (MIN_COLUMNS..=TENSOR_COLUMNS).contains(&count) && count.is_power_of_two()
}

/// `tcgen05.alloc`: writes the address of the columns to shared memory.
pub(crate) fn run_allocate(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    let thread = unit.leader();
    let count = unit.frame.row::<u32>(op.b)[thread];
    if !is_valid_count(count) {
        return unit.fault(illegal(
            thread,
            "tcgen05.alloc: the number of columns is not a power of two from 32 to 512",
        ));
    }
    let source = AllocationSource {
        warp: unit.warp.index,
        lane: thread,
        function: unit.frame.function,
        line: op.line,
    };
    let memory = unit.block.tensor_memory.get_or_insert_default();
    if memory.is_relinquished {
        return unit.fault(illegal(
            thread,
            "tcgen05.alloc: the block has relinquished the permit to allocate",
        ));
    }
    let Some(column) = memory.allocate(count, source) else {
        let deallocations = memory.deallocations;
        return Control::WaitForTensorMemory { deallocations };
    };
    let to = unit.frame.row::<u64>(op.a)[thread];
    match write_at(unit, op.space, thread, to, column) {
        Ok(()) => Control::Next,
        Err(trap) => unit.fault(trap),
    }
}

/// `tcgen05.dealloc`.
pub(crate) fn run_deallocate(unit: &mut Unit<'_>, op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    let thread = unit.leader();
    let address = TensorAddress::from_bits(unit.frame.row::<u32>(op.a)[thread]);
    let count = unit.frame.row::<u32>(op.b)[thread];
    let is_allocation = unit
        .block
        .tensor_memory
        .as_mut()
        .is_some_and(|memory| memory.deallocate(address, count));
    if is_allocation {
        Control::Next
    } else {
        unit.fault(illegal(
            thread,
            "tcgen05.dealloc: no allocation has this address and number of columns",
        ))
    }
}

/// `tcgen05.relinquish_alloc_permit`.
pub(crate) fn run_relinquish(unit: &mut Unit<'_>, _op: &Op) -> Control {
    if is_incomplete(unit) {
        return Control::Converge;
    }
    unit.block
        .tensor_memory
        .get_or_insert_default()
        .is_relinquished = true;
    Control::Next
}
