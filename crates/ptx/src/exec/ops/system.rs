//! The device runtime functions: `vprintf`, `malloc`, `free`, `__assertfail`.

use super::print::{self, Arguments};
use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::machine::op::{Control, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::machine::warp_state::Assertion;
use crate::exec::ops::access::read_at;
use crate::exec::space::Space;
use crate::exec::values::lane::Lanes;

/// The maximum length of a string in device memory.
const MAX_STRING: usize = 64 << 10;

/// The arguments of one lane's `printf`.
struct LaneArguments<'u, 'r> {
    unit: &'u mut Unit<'r>,
    lane: usize,
    next: u64,
    /// The number of arguments read so far, which `printf` returns.
    count: u64,
}

impl Arguments for LaneArguments<'_, '_> {
    fn next(&mut self, bytes: u64) -> u64 {
        self.count += 1;
        self.next = self.next.next_multiple_of(bytes);
        let address = self.next;
        self.next = self.next.wrapping_add(bytes);
        if bytes == 4 {
            return read_at::<u32>(self.unit, Space::Generic, self.lane, address)
                .map_or(0, u64::from);
        }
        read_at::<u64>(self.unit, Space::Generic, self.lane, address).unwrap_or(0)
    }

    fn string(&mut self, address: u64) -> Vec<u8> {
        string(self.unit, self.lane, address).unwrap_or_default()
    }
}

/// Returns the string at a generic address.
fn string(unit: &mut Unit<'_>, lane: usize, address: u64) -> Result<Vec<u8>, Trap> {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_STRING {
        let byte: u8 = read_at(
            unit,
            Space::Generic,
            lane,
            address.wrapping_add(bytes.len() as u64),
        )?;
        if byte == 0 {
            break;
        }
        bytes.push(byte);
    }
    Ok(bytes)
}

pub(crate) fn run_print(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let format = unit.frame.row::<u64>(op.a)[lane];
        let arguments = unit.frame.row::<u64>(op.b)[lane];
        let format = match string(unit, lane, format) {
            Ok(format) => format,
            Err(trap) => return unit.fault(trap),
        };
        let mut arguments = LaneArguments {
            unit,
            lane,
            next: arguments,
            count: 0,
        };
        let text = print::format(&format, &mut arguments);
        let count = arguments.count;
        unit.launch.runtime.print(&text);
        unit.frame.row_mut::<u64>(op.d).0[lane] = count;
    }
    Control::Next
}

pub(crate) fn run_allocate(unit: &mut Unit<'_>, op: &Op) -> Control {
    // The heap orders a free by one thread before an allocation by another.
    unit.launch.order_accesses();
    for lane in Lanes(unit.active) {
        let size = unit.frame.row::<u64>(op.a)[lane];
        let address = if size == 0 {
            None
        } else {
            unit.launch.runtime.allocate(size)
        };
        unit.frame.row_mut::<u64>(op.d).0[lane] = address.unwrap_or(0);
    }
    Control::Next
}

pub(crate) fn run_free(unit: &mut Unit<'_>, op: &Op) -> Control {
    // The heap orders a free by one thread before an allocation by another.
    unit.launch.order_accesses();
    for lane in Lanes(unit.active) {
        let address = unit.frame.row::<u64>(op.a)[lane];
        if address != 0 && !unit.launch.runtime.free(address) {
            return unit.fault(Trap::new(ReportKind::IllegalAddress, lane));
        }
    }
    Control::Next
}

/// `cudaGraphSetConditional(handle, value)`: each thread sets the value.
pub(crate) fn run_condition(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let value = unit.frame.row::<u64>(op.b)[lane];
        unit.launch.runtime.set_condition(handle, value as u32);
    }
    Control::Next
}

/// `__assertfail(message, file, line, function, character size)` for each thread.
pub(crate) fn run_assertion(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let [message, file, function] = [op.a, op.b, op.e].map(|row| {
            let address = unit.frame.row::<u64>(row)[lane];
            let bytes = string(unit, lane, address).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let line = unit.frame.row::<u64>(op.c)[lane] as u32;
        let [bx, by, bz] = unit.block.index;
        let [x, y, z] = unit.warp.thread.map(|axis| axis[lane]);
        let text = format!(
            "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{x},{y},{z}] Assertion `{message}` failed.\n"
        );
        unit.launch.runtime.write_assertion(text.as_bytes());
        if lane == unit.leader() {
            unit.warp.assertion = Some(Box::new(Assertion {
                message,
                file,
                line,
            }));
        }
    }
    let trap = Trap::new(ReportKind::Assert, unit.leader());
    unit.fault(trap)
}
