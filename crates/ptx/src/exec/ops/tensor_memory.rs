//! Tensor memory (`tcgen05`): 128 lanes of 512 columns of 32 bits, of which a block allocates
//! columns.
//!
//! Each block has all columns. On hardware, the resident blocks of a multiprocessor share them, and
//! an allocation waits for other blocks. Asynchronous accesses are performed immediately;
//! [`machine::tensor_memory::order`](crate::exec::machine::tensor_memory::order) records those
//! whose completion the program has not awaited.

pub(crate) mod allocation;
pub(crate) mod copy;
pub(crate) mod instruction_descriptor;
pub(crate) mod multiply;
pub(crate) mod transfer;

use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::machine::block_state::BlockState;
use crate::exec::machine::tensor_memory::order::TensorAccess;
use crate::exec::machine::tensor_memory::{CELL, Region, TensorAddress, TensorMemory};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::ops::access::trap;
use crate::exec::ops::race::thread_index;

impl Region {
    /// Returns a fault of a thread that accesses the region.
    #[cold]
    pub(crate) fn trap(&self, kind: ReportKind, thread: usize, mode: AccessMode) -> Trap {
        let first = TensorAddress {
            lane: self.lanes.trailing_zeros(),
            column: self.columns.start,
        };
        let bytes = CELL * u64::from(self.columns.end - self.columns.start);
        trap(kind, thread, first.bits().into(), bytes, mode)
    }
}

/// Returns the tensor memory of a block, or the fault of a thread that accesses columns that are
/// not allocated.
fn allocated<'b>(
    block: &'b mut BlockState,
    thread: usize,
    region: &Region,
    mode: AccessMode,
) -> Result<&'b mut TensorMemory, Trap> {
    block
        .tensor_memory
        .as_deref_mut()
        .filter(|memory| memory.are_allocated(region.columns.clone()))
        .ok_or_else(|| region.trap(ReportKind::IllegalAddress, thread, mode))
}

/// Returns the fault of a thread whose access races with one of another thread of the block.
#[cold]
fn race(
    unit: &Unit<'_>,
    thread: usize,
    other: &TensorAccess,
    region: &Region,
    mode: AccessMode,
) -> Trap {
    let kind = ReportKind::Race {
        block: unit.block.index,
        thread: thread_index(other.thread.into(), unit.launch.block),
        wrote: other.is_write,
        same_value: false,
    };
    region.trap(kind, thread, mode)
}

/// Returns the fault of a thread that uses an instruction in a way that the device does not
/// support.
#[cold]
fn illegal(thread: usize, reason: &'static str) -> Trap {
    Trap::new(ReportKind::IllegalInstruction(reason), thread)
}

/// Returns the fault of a thread that reads a cell with unwritten bytes.
#[cold]
fn uninitialized(thread: usize, address: TensorAddress) -> Trap {
    trap(
        ReportKind::Uninitialized,
        thread,
        address.bits().into(),
        CELL,
        AccessMode::Read,
    )
}
