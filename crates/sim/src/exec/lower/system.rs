//! Functions that the device's runtime provides: `vprintf`, `malloc`, `free`, `__assertfail`, and what its library is made of.

use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot, copy};
use crate::exec::access::read_at;
use crate::exec::lane::Lanes;
use crate::exec::op::{Control, Op, Space};
use crate::exec::print::{self, Arguments};
use crate::exec::report::{ReportKind, Trap};
use crate::exec::unit::Unit;
use crate::ptx::{Call, Operand, ScalarType, Symbol};

/// What `cudaGraphSetConditional` of the device's library calls: no program but the simulator's own knows the name.
pub(crate) const SET_CONDITION: &str = "curium_set_condition";

/// Longest string that is read from device memory.
const LONGEST_STRING: usize = 64 << 10;

impl Lowerer<'_> {
    /// A call of a function that the runtime provides.
    pub(super) fn system_call(&mut self, name: &str, call: &Call) -> Lowered {
        let run = match (name, call.arguments.len()) {
            ("vprintf", 2) => run_print,
            ("malloc", 1) => run_allocate,
            ("free", 1) => run_free,
            (SET_CONDITION, 2) => run_condition,
            ("__assertfail" | "__assert_fail", 4 | 5) => run_assertion,
            _ => return Err(Refusal(format!("unresolved extern function `{name}`"))),
        };
        let mut rows = [0; 4];
        for (row, argument) in rows.iter_mut().zip(&call.arguments) {
            let offset = self.argument(argument)?;
            *row = self.new_double();
            self.copy_from_frame(Slot::Double(*row), offset)?;
        }
        let d = self.new_double();
        let [a, b, c, e] = rows;
        // The runtime sees one thread after the other: all lanes come along.
        let op = self.push(Op { d, a, b, c, e, ..Op::new(run) });
        op.splits = true;
        if let Some(result) = call.returns.first() {
            match result {
                Operand::Symbol(Symbol::Local(id), 0) => {
                    let offset = self.frame_home(*id)?;
                    self.copy_to_frame(Slot::Double(d), offset)?;
                }
                Operand::Register(register) => {
                    let to = self.destination_slot(self.slot(*register), ScalarType::B64)?;
                    self.emit(copy::<u64>(), to, [d, 0, 0]);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The arguments of a `printf` of one lane.
struct Packed<'u, 'r> {
    unit: &'u mut Unit<'r>,
    lane: usize,
    next: u64,
    /// How many have been read, which is what `printf` returns.
    count: u64,
}

impl Arguments for Packed<'_, '_> {
    fn next(&mut self, bytes: u64) -> u64 {
        self.count += 1;
        self.next = self.next.next_multiple_of(bytes);
        let address = self.next;
        self.next = self.next.wrapping_add(bytes);
        if bytes == 4 {
            return read_at::<u32>(self.unit, Space::Generic, self.lane, address).map_or(0, u64::from);
        }
        read_at::<u64>(self.unit, Space::Generic, self.lane, address).unwrap_or(0)
    }

    fn string(&mut self, address: u64) -> Vec<u8> {
        string(self.unit, self.lane, address).unwrap_or_default()
    }
}

/// The string at a generic address.
fn string(unit: &mut Unit<'_>, lane: usize, address: u64) -> Result<Vec<u8>, Trap> {
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST_STRING {
        let byte: u8 = read_at(unit, Space::Generic, lane, address.wrapping_add(bytes.len() as u64))?;
        if byte == 0 {
            break;
        }
        bytes.push(byte);
    }
    Ok(bytes)
}

fn run_print(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let (format, arguments) = (unit.frame.row::<u64>(op.a)[lane], unit.frame.row::<u64>(op.b)[lane]);
        let format = match string(unit, lane, format) {
            Ok(format) => format,
            Err(trap) => return unit.fault(trap),
        };
        let mut arguments = Packed { unit, lane, next: arguments, count: 0 };
        let text = print::format(&format, &mut arguments);
        let count = arguments.count;
        unit.launch.runtime.print(&text);
        unit.frame.row_mut::<u64>(op.d).0[lane] = count;
    }
    Control::Next
}

fn run_allocate(unit: &mut Unit<'_>, op: &Op) -> Control {
    // The heap orders what one thread frees before what another allocates.
    unit.launch.order_accesses();
    for lane in Lanes(unit.active) {
        let size = unit.frame.row::<u64>(op.a)[lane];
        let address = if size == 0 { None } else { unit.launch.runtime.allocate(size) };
        unit.frame.row_mut::<u64>(op.d).0[lane] = address.unwrap_or(0);
    }
    Control::Next
}

fn run_free(unit: &mut Unit<'_>, op: &Op) -> Control {
    // The heap orders what one thread frees before what another allocates.
    unit.launch.order_accesses();
    for lane in Lanes(unit.active) {
        let address = unit.frame.row::<u64>(op.a)[lane];
        if address != 0 && !unit.launch.runtime.free(address) {
            return unit.fault(Trap::new(ReportKind::IllegalAddress, lane));
        }
    }
    Control::Next
}

/// [`SET_CONDITION`]: each thread sets the value.
fn run_condition(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let (handle, value) = (unit.frame.row::<u64>(op.a)[lane], unit.frame.row::<u64>(op.b)[lane]);
        unit.launch.runtime.set_condition(handle, value as u32);
    }
    Control::Next
}

/// `__assertfail(message, file, line, function, size of a character)`: each thread says what failed.
fn run_assertion(unit: &mut Unit<'_>, op: &Op) -> Control {
    for lane in Lanes(unit.active) {
        let argument = |unit: &Unit<'_>, row: u32| unit.frame.row::<u64>(row)[lane];
        let mut text = |row: u32| {
            let address = argument(unit, row);
            let bytes = string(unit, lane, address).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (message, file, function) = (text(op.a), text(op.b), text(op.e));
        let line = argument(unit, op.c) as u32;
        let [bx, by, bz] = unit.block.index;
        let [x, y, z] = unit.warp.thread.map(|axis| axis[lane]);
        let said = format!(
            "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{x},{y},{z}] Assertion `{message}` failed.\n"
        );
        unit.launch.runtime.complain(said.as_bytes());
    }
    let trap = Trap::new(ReportKind::Assert, unit.leader());
    unit.fault(trap)
}
