//! Barrier objects in shared memory: `mbarrier`.

use super::handler::unary;
use super::mbarrier::Mbarrier;
use super::tensor_memory::multiply::observe_barrier;
use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::machine::cluster::{address_in, block_rank};
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::memory::window::SHARED_WINDOW;
use crate::exec::ops::access::{read_at, trap, update_at};
use crate::exec::ops::uninitialized;
use crate::exec::values::lane::Lanes;

/// The operation of `run_update`.
pub(crate) const INIT: u8 = 0;

pub(crate) const INVALIDATE: u8 = 1;

pub(crate) const ARRIVE: u8 = 2;

pub(crate) const DROP: u8 = 3;

pub(crate) const EXPECT: u8 = 4;

pub(crate) const COMPLETE: u8 = 5;

pub(crate) const EXPECT_AND_ARRIVE: u8 = 6;

pub(crate) const EXPECT_AND_DROP: u8 = 7;

/// Returns the handler of `mbarrier.pending_count`.
pub(crate) fn pending_count() -> Handler {
    unary(|state: u64| Mbarrier::from_bits(state).pending())
}

/// Returns the bits of an object after an operation.
fn update<const KIND: u8>(bits: u64, count: u32) -> u64 {
    let barrier = Mbarrier::from_bits(bits);
    let barrier = match KIND {
        INIT => Mbarrier::new(count),
        INVALIDATE => return 0,
        ARRIVE => barrier.arrive(count),
        DROP => barrier.drop_out(count),
        EXPECT => barrier.expect(count),
        COMPLETE => barrier.complete(count),
        EXPECT_AND_ARRIVE => barrier.expect(count).arrive(1),
        _ => barrier.expect(count).drop_out(1),
    };
    barrier.bits()
}

/// Returns the reason why PTX does not define an operation on an object with these bits, if it does
/// not.
fn misuse<const KIND: u8>(bits: u64, count: u32) -> Option<&'static str> {
    if matches!(KIND, INIT | INVALIDATE) {
        return None;
    }
    let arrivals = match KIND {
        ARRIVE | DROP => count,
        EXPECT_AND_ARRIVE | EXPECT_AND_DROP => 1,
        _ => 0,
    };
    if bits == 0 {
        Some("operation on an mbarrier object that is not initialized")
    } else if Mbarrier::from_bits(bits).pending() < arrivals {
        Some("more arrivals at an mbarrier object than its phase expects")
    } else {
        None
    }
}

/// Returns the fault of a lane that uses an object in a way that PTX does not define.
#[cold]
fn invalid(op: &Op, lane: usize, address: u64, reason: &'static str) -> Trap {
    trap(
        ReportKind::InvalidBarrier(reason),
        lane,
        address,
        8,
        AccessMode::Write,
    )
    .in_space(op.space)
}

pub(crate) fn run_update<const KIND: u8>(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let address = unit.frame.row::<u64>(op.a)[lane];
        let count = unit.frame.row::<u32>(op.b)[lane];
        if KIND == INIT {
            uninitialized::record_write(unit, op.space, lane, address, 8);
        }
        let result = update_at::<u64>(unit, op.space, lane, address, |bits| {
            update::<KIND>(bits, count)
        });
        match result {
            Ok(before) => {
                if let Some(reason) = misuse::<KIND>(before, count) {
                    return unit.fault(invalid(op, lane, address, reason));
                }
                unit.frame.row_mut::<u64>(op.d).0[lane] = before;
            }
            Err(trap) => return unit.fault(trap),
        }
    }
    Control::Next
}

pub(crate) fn run_test<const BY_PARITY: bool>(unit: &mut Unit<'_>, op: &Op) -> Control {
    let mut over = 0;
    for lane in Lanes(unit.active) {
        let address = unit.frame.row::<u64>(op.a)[lane];
        let parity = if BY_PARITY {
            unit.frame.row::<u32>(op.b)[lane] & 1 == 1
        } else {
            Mbarrier::from_bits(unit.frame.row::<u64>(op.b)[lane]).parity()
        };
        let is_over = match read_at::<u64>(unit, op.space, lane, address) {
            // No phase of an object without arrivals completes.
            Ok(0) if !parity => {
                let reason = "wait at an mbarrier object that is not initialized";
                return unit.fault(invalid(op, lane, address, reason));
            }
            Ok(bits) => Mbarrier::from_bits(bits).parity() != parity,
            Err(trap) => return unit.fault(trap),
        };
        if is_over {
            over |= 1 << lane;
            observe_barrier(unit, op.space, address);
        }
    }
    unit.frame.set_predicate(op.d, over, unit.active);
    Control::Next
}

pub(crate) fn run_map_address(unit: &mut Unit<'_>, op: &Op) -> Control {
    let window = if op.imm == 1 { SHARED_WINDOW } else { 0 };
    let ranks = *unit.frame.row::<u32>(op.b);
    let mut row = *unit.frame.row::<u64>(op.a);
    for (address, rank) in row.iter_mut().zip(ranks) {
        *address = address_in(address.wrapping_sub(window), rank).wrapping_add(window);
    }
    unit.frame.row_mut::<u64>(op.d).merge(&row, unit.active);
    Control::Next
}

pub(crate) fn run_rank(unit: &mut Unit<'_>, op: &Op) -> Control {
    let window = if op.imm == 1 { SHARED_WINDOW } else { 0 };
    let ranks = unit
        .frame
        .row::<u64>(op.a)
        .map(|address| block_rank(address.wrapping_sub(window), unit.block.rank));
    unit.frame.row_mut::<u32>(op.d).merge(&ranks, unit.active);
    Control::Next
}
