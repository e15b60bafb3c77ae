//! `suld`, `sust` and `sured`: surfaces read, written and changed byte by byte.

use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use super::texture::read_bytes;
use crate::exec::access::{update_at, write_at};
use crate::exec::fault::{FaultKind, Trap};
use crate::exec::image::{Beyond, SurfaceAccess};
use crate::exec::lane::Lanes;
use crate::exec::op::{Control, Handler, Op, Space};
use crate::exec::unit::Unit;
use crate::ptx::{Instruction, Keyword, Modifier, Operand, Operation, ScalarType, Tensor};

impl Lowerer<'_> {
    /// `suld.b`.
    pub(super) fn load_surface(&mut self, instruction: &Instruction) -> Lowered {
        match &instruction.operands[..] {
            [destination, Operand::Tensor(tensor)] => self.surface(instruction, tensor, destination, run_load),
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// `sust.b`.
    pub(super) fn store_surface(&mut self, instruction: &Instruction) -> Lowered {
        match &instruction.operands[..] {
            [Operand::Tensor(tensor), source] => self.surface(instruction, tensor, source, run_store),
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// `sured.b`.
    pub(super) fn reduce_surface(&mut self, instruction: &Instruction) -> Lowered {
        let change = reduction(instruction).ok_or_else(|| Refusal::form(instruction))?;
        let [Operand::Tensor(tensor), source] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        self.surface(instruction, tensor, source, run_reduce)?;
        if let Some(access) = self.out.surfaces.last_mut() {
            access.change = Some(change);
        }
        Ok(())
    }

    fn surface(&mut self, instruction: &Instruction, tensor: &Tensor, moved: &Operand, run: Handler) -> Lowered {
        let scalar = instruction.types().next().ok_or_else(|| Refusal::form(instruction))?;
        let beyond = beyond(instruction)?;
        // Accesses that convert count elements instead of bytes.
        if !instruction.has(Modifier::Keyword(Keyword::B)) {
            return Err(Refusal::form(instruction));
        }
        let spot = self.coordinates(instruction, tensor)?;
        let a = self.address_row(tensor.handle)?;
        let (slots, ..) = self.elements(moved, scalar)?;
        let row = |slot| match (slot, scalar.bits() == 64) {
            (Slot::Word(row), false) | (Slot::Double(row), true) => Ok(row),
            _ => Err(Refusal::operand("registers of the width of the surface access")),
        };
        let registers = slots.into_iter().map(row).collect::<Lowered<_>>()?;
        self.out.surfaces.push(SurfaceAccess { spot, registers, bytes: scalar.bytes(), beyond, change: None });
        let number = self.out.surfaces.len() as u64 - 1;
        self.push(Op { a, ..Op::new(run) }).imm = number;
        Ok(())
    }
}

fn beyond(instruction: &Instruction) -> Lowered<Beyond> {
    let modes = [(Keyword::Trap, Beyond::Trap), (Keyword::Clamp, Beyond::Clamp), (Keyword::Zero, Beyond::Zero)];
    let found = modes.into_iter().find(|(keyword, _)| instruction.has(Modifier::Keyword(*keyword)));
    found.map(|(_, beyond)| beyond).ok_or_else(|| Refusal::form(instruction))
}

/// How a reduction changes what is there.
fn reduction(instruction: &Instruction) -> Option<fn(u64, u64) -> u64> {
    let has = |operation| instruction.has(Modifier::Operation(operation));
    Some(match instruction.types().next()? {
        ScalarType::B32 if has(Operation::And) => |old, new| old & new,
        ScalarType::B32 if has(Operation::Or) => |old, new| old | new,
        // What is beyond the width is cut off.
        _ if has(Operation::Add) => u64::wrapping_add,
        ScalarType::U32 if has(Operation::Min) => u64::min,
        ScalarType::U32 if has(Operation::Max) => u64::max,
        ScalarType::S32 if has(Operation::Min) => |old, new| u64::from((old as i32).min(new as i32).cast_unsigned()),
        ScalarType::S32 if has(Operation::Max) => |old, new| u64::from((old as i32).max(new as i32).cast_unsigned()),
        _ => return None,
    })
}

fn run_load(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, place| {
        for (index, row) in (0..).zip(&access.registers) {
            let value = match place {
                Some(place) => read_bytes(unit, lane, place + index * access.bytes, access.bytes)?,
                None => 0,
            };
            if access.bytes == 8 {
                unit.frame.row_mut::<u64>(*row).0[lane] = value;
            } else {
                unit.frame.row_mut::<u32>(*row).0[lane] = value as u32;
            }
        }
        Ok(())
    })
}

fn run_store(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, place| {
        let Some(place) = place else { return Ok(()) };
        for (index, row) in (0..).zip(&access.registers) {
            let (value, address) = (value(unit, access, lane, *row), place + index * access.bytes);
            match access.bytes {
                1 => write_at(unit, Space::Global, lane, address, value as u8)?,
                2 => write_at(unit, Space::Global, lane, address, value as u16)?,
                4 => write_at(unit, Space::Global, lane, address, value as u32)?,
                _ => write_at(unit, Space::Global, lane, address, value)?,
            }
        }
        Ok(())
    })
}

fn run_reduce(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, place| {
        let (Some(place), Some(change), [row]) = (place, access.change, &access.registers[..]) else { return Ok(()) };
        let new = value(unit, access, lane, *row);
        if access.bytes == 8 {
            return update_at::<u64>(unit, Space::Global, lane, place, |old| change(old, new)).map(|_| ());
        }
        update_at::<u32>(unit, Space::Global, lane, place, |old| change(old.into(), new) as u32).map(|_| ())
    })
}

/// What a lane holds in a row of an access.
fn value(unit: &Unit<'_>, access: &SurfaceAccess, lane: usize, row: u32) -> u64 {
    if access.bytes == 8 { unit.frame.row::<u64>(row)[lane] } else { unit.frame.row::<u32>(row)[lane].into() }
}

/// Does a surface access for each active lane, at the address that its coordinates are; none beyond the edges.
fn each_lane(
    unit: &mut Unit<'_>,
    op: &Op,
    mut act: impl FnMut(&mut Unit<'_>, &SurfaceAccess, usize, Option<u64>) -> Result<(), Trap>,
) -> Control {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].surfaces[op.imm as usize];
    for lane in Lanes(unit.active) {
        let done = place(unit, op, access, lane).and_then(|place| act(unit, access, lane, place));
        if let Err(trap) = done {
            return unit.fault(trap);
        }
    }
    Control::Next
}

fn place(unit: &Unit<'_>, op: &Op, access: &SurfaceAccess, lane: usize) -> Result<Option<u64>, Trap> {
    let handle = unit.frame.row::<u64>(op.a)[lane];
    let missing = Trap::new(FaultKind::IllegalAddress, lane);
    let surface = unit.launch.runtime.surface(handle).ok_or(missing)?;
    let word = |row: u32| unit.frame.row::<u32>(row)[lane];
    let at = (word(access.spot.layer), access.spot.at.map(word));
    let bytes = access.bytes * access.registers.len() as u64;
    match surface.place(access.spot.geometry, at, bytes, access.beyond) {
        None if access.beyond == Beyond::Trap => Err(Trap::new(FaultKind::Trap, lane)),
        place => Ok(place),
    }
}
