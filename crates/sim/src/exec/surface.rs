//! Loads, stores and reductions of surfaces.

use std::sync::Arc;

use super::access::{update_at, write_at};
use super::image::{Beyond, Element, Surface, SurfaceAccess};
use super::lane::Lanes;
use super::op::{Control, Op, Space};
use super::report::{ReportKind, Trap};
use super::texture::read_bytes;
use super::unit::Unit;

pub(crate) fn run_load(unit: &mut Unit<'_>, op: &Op) -> Control {
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

pub(crate) fn run_store(unit: &mut Unit<'_>, op: &Op) -> Control {
    each_lane(unit, op, |unit, access, lane, place| {
        let Some(place) = place else { return Ok(()) };
        for (index, row) in (0..).zip(&access.registers) {
            let value = value(unit, access, lane, *row);
            write_bytes(unit, lane, place.address + index * access.bytes, access.bytes, value)?;
        }
        Ok(())
    })
}

/// Converts the registers to the element's format, and writes them. Channels without a register are undefined in PTX; here they keep their
/// values.
pub(crate) fn run_store_formatted(unit: &mut Unit<'_>, op: &Op) -> Control {
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

pub(crate) fn run_reduce(unit: &mut Unit<'_>, op: &Op) -> Control {
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

/// Returns a lane's value in a row of an access.
#[inline]
fn value(unit: &Unit<'_>, access: &SurfaceAccess, lane: usize, row: u32) -> u64 {
    if access.bytes == 8 { unit.frame.row::<u64>(row)[lane] } else { unit.frame.row::<u32>(row)[lane].into() }
}

/// Performs a surface access for each active lane. Lanes with coordinates beyond the edges are skipped.
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

/// The address of an access, and the value in memory.
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
