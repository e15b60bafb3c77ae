//! `suld`, `sust` and `sured`: surfaces read, written and changed byte by byte, or element by element as their format says.

use std::sync::Arc;

use super::error::{Lowered, Refusal};
use super::function::{Lowerer, Slot};
use super::texture::{geometry, read_bytes};
use crate::exec::access::{update_at, write_at};
use crate::exec::image::{Beyond, Change, Element, Surface, SurfaceAccess};
use crate::exec::lane::Lanes;
use crate::exec::op::{Control, Handler, Op, Space};
use crate::exec::report::{ReportKind, Trap};
use crate::exec::unit::Unit;
use crate::ptx::{Instruction, Keyword, Modifier, Operand, Operation, ScalarType, Tensor};

/// Bytes that an access moves at most.
const WIDEST: u64 = 16;

impl Lowerer<'_> {
    /// `suld.b`.
    pub(super) fn load_surface(&mut self, instruction: &Instruction) -> Lowered {
        moved_bits(instruction)?;
        match &instruction.operands[..] {
            [destination, Operand::Tensor(tensor)] if !is_formatted(instruction) => {
                self.surface(instruction, tensor, destination, run_load)
            }
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// `sust`.
    pub(super) fn store_surface(&mut self, instruction: &Instruction) -> Lowered {
        let run = if is_formatted(instruction) { run_store_formatted } else { run_store };
        moved_bits(instruction)?;
        match &instruction.operands[..] {
            [Operand::Tensor(tensor), source] => self.surface(instruction, tensor, source, run),
            _ => Err(Refusal::form(instruction)),
        }
    }

    /// `sured`.
    pub(super) fn reduce_surface(&mut self, instruction: &Instruction) -> Lowered {
        let change = if is_formatted(instruction) {
            let of = |scalar| reduction(instruction, scalar);
            Some([of(ScalarType::U32), of(ScalarType::S32)])
        } else {
            instruction.types().next().map(|scalar| [reduction(instruction, scalar); 2])
        };
        let Some([Some(plain), Some(signed)]) = change else {
            return Err(Refusal::form(instruction));
        };
        if is_formatted(instruction) && instruction.types().next() != Some(ScalarType::B32)
            || geometry(instruction)?.has_layers()
        {
            return Err(Refusal::form(instruction));
        }
        let [Operand::Tensor(tensor), source] = &instruction.operands[..] else {
            return Err(Refusal::form(instruction));
        };
        self.surface(instruction, tensor, source, run_reduce)?;
        if let Some(access) = self.out.surfaces.last_mut() {
            access.change = Some([plain, signed]);
        }
        Ok(())
    }

    fn surface(&mut self, instruction: &Instruction, tensor: &Tensor, moved: &Operand, run: Handler) -> Lowered {
        let scalar = instruction.types().next().ok_or_else(|| Refusal::form(instruction))?;
        let beyond = beyond(instruction)?;
        let formatted = is_formatted(instruction);
        let spot = self.coordinates(instruction, tensor)?;
        if spot.geometry.is_cube() || tensor.sampler.is_some() {
            return Err(Refusal::form(instruction));
        }
        let a = self.address_row(tensor.handle)?;
        let (slots, ..) = self.elements(moved, scalar)?;
        if !matches!(slots.len(), 1 | 2 | 4) || slots.len() as u64 * scalar.bytes() > WIDEST {
            return Err(Refusal::form(instruction));
        }
        let row = |slot| match (slot, scalar.bits() == 64) {
            (Slot::Word(row), false) | (Slot::Double(row), true) => Ok(row),
            _ => Err(Refusal::operand("registers of the width of the surface access")),
        };
        let registers = slots.into_iter().map(row).collect::<Lowered<_>>()?;
        let bytes = scalar.bytes();
        self.out.surfaces.push(SurfaceAccess { spot, registers, bytes, formatted, beyond, change: None });
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

/// Checks that a load or a store moves bits of a width that there is; of what is converted, words.
fn moved_bits(instruction: &Instruction) -> Lowered {
    use ScalarType::{B8, B16, B32, B64};
    match instruction.types().next() {
        Some(B32) => Ok(()),
        Some(B8 | B16 | B64) if !is_formatted(instruction) => Ok(()),
        _ => Err(Refusal::form(instruction)),
    }
}

/// Whether an access counts elements instead of bytes, and converts.
fn is_formatted(instruction: &Instruction) -> bool {
    !instruction.has(Modifier::Keyword(Keyword::B))
}

/// How a reduction of numbers of a type changes what is there.
fn reduction(instruction: &Instruction, scalar: ScalarType) -> Option<Change> {
    let has = |operation| instruction.has(Modifier::Operation(operation));
    let is_of_bits = scalar == ScalarType::B32 || is_formatted(instruction);
    Some(match scalar {
        _ if is_of_bits && has(Operation::And) => |old, new| old & new,
        _ if is_of_bits && has(Operation::Or) => |old, new| old | new,
        // What is beyond the width is cut off.
        ScalarType::U32 | ScalarType::S32 | ScalarType::U64 if has(Operation::Add) => u64::wrapping_add,
        ScalarType::U32 | ScalarType::U64 if has(Operation::Min) => u64::min,
        ScalarType::U32 | ScalarType::U64 if has(Operation::Max) => u64::max,
        ScalarType::S64 if has(Operation::Min) => |old, new| old.cast_signed().min(new.cast_signed()).cast_unsigned(),
        ScalarType::S64 if has(Operation::Max) => |old, new| old.cast_signed().max(new.cast_signed()).cast_unsigned(),
        ScalarType::S32 if has(Operation::Min) => |old, new| u64::from((old as i32).min(new as i32).cast_unsigned()),
        ScalarType::S32 if has(Operation::Max) => |old, new| u64::from((old as i32).max(new as i32).cast_unsigned()),
        _ => return None,
    })
}

fn run_load(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, place| {
        let place = place.map(|place| place.address);
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
            let value = value(unit, access, lane, *row);
            write_bytes(unit, lane, place.address + index * access.bytes, access.bytes, value)?;
        }
        Ok(())
    })
}

/// Writes what the element's channels hold for the registers. Channels without a register may hold anything then: they stay.
fn run_store_formatted(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, place| {
        let Some(Place { address, element }) = place else { return Ok(()) };
        let bytes = element.channel.bytes();
        for (index, row) in (0..u64::from(element.channels)).zip(&access.registers) {
            let bits = element.channel.stored(unit.frame.row::<u32>(*row)[lane]);
            write_bytes(unit, lane, address + index * bytes, bytes, bits.into())?;
        }
        Ok(())
    })
}

/// Writes 1, 2, 4 or 8 bytes of device memory.
fn write_bytes(unit: &mut Unit<'_>, lane: usize, address: u64, bytes: u64, value: u64) -> Result<(), Trap> {
    match bytes {
        1 => write_at(unit, Space::Global, lane, address, value as u8),
        2 => write_at(unit, Space::Global, lane, address, value as u16),
        4 => write_at(unit, Space::Global, lane, address, value as u32),
        _ => write_at(unit, Space::Global, lane, address, value),
    }
}

fn run_reduce(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, place| {
        let (Some(place), Some(change), [row]) = (place, access.change, &access.registers[..]) else { return Ok(()) };
        let new = value(unit, access, lane, *row);
        let change = change[usize::from(place.element.channel.is_signed())];
        if access.bytes == 8 {
            return update_at::<u64>(unit, Space::Global, lane, place.address, |old| change(old, new)).map(|_| ());
        }
        update_at::<u32>(unit, Space::Global, lane, place.address, |old| change(old.into(), new) as u32).map(|_| ())
    })
}

/// What a lane holds in a row of an access.
#[inline]
fn value(unit: &Unit<'_>, access: &SurfaceAccess, lane: usize, row: u32) -> u64 {
    if access.bytes == 8 { unit.frame.row::<u64>(row)[lane] } else { unit.frame.row::<u32>(row)[lane].into() }
}

/// Does a surface access for each active lane, at the address that its coordinates are; none beyond the edges.
#[inline]
fn each_lane(
    unit: &mut Unit<'_>,
    op: &Op,
    mut act: impl FnMut(&mut Unit<'_>, &SurfaceAccess, usize, Option<Place>) -> Result<(), Trap>,
) -> Control {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].surfaces[op.imm as usize];
    let mut object: Option<(u64, Arc<Surface>)> = None;
    for lane in Lanes(unit.active) {
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let surface = match &object {
            Some((of, surface)) if *of == handle => surface,
            _ => match unit.objects.surface(unit.launch.runtime, handle) {
                Some(surface) => &object.insert((handle, surface)).1,
                None => return unit.fault(Trap::new(ReportKind::IllegalAddress, lane)),
            },
        };
        let done = place(unit, access, lane, surface).and_then(|place| act(unit, access, lane, place));
        if let Err(trap) = done {
            return unit.fault(trap);
        }
    }
    Control::Next
}

/// Where an access goes, and what is there.
struct Place {
    address: u64,
    element: Element,
}

#[inline]
fn place(unit: &Unit<'_>, access: &SurfaceAccess, lane: usize, surface: &Surface) -> Result<Option<Place>, Trap> {
    let word = |row: u32| unit.frame.row::<u32>(row)[lane];
    let (layer, mut at, element) = (word(access.spot.layer), access.spot.at.map(word), surface.element);
    let mut bytes = access.bytes * access.registers.len() as u64;
    if access.formatted {
        bytes = element.bytes();
        at[0] = at[0].cast_signed().saturating_mul(bytes as i32).cast_unsigned();
    }
    match surface.place(access.spot.geometry, (layer, at), bytes, access.beyond) {
        None if access.beyond == Beyond::Trap => Err(Trap::new(ReportKind::Trap, lane)),
        place => Ok(place.map(|address| Place { address, element })),
    }
}
