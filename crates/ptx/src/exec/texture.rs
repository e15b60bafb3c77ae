//! Fetches from textures.

use std::sync::Arc;

use super::access::read_at;
use super::handler::versions;
use super::image::{Channels, Detail, Places, Point, Texel, Texture, TextureAccess};
use super::lane::{Lanes, lanes_where};
use super::op::{Control, Handler, Op, Space};
use super::report::{ReportKind, Trap};
use super::unit::Unit;

versions! {
    /// Returns the handler of `tex` and `tld4`.
    texture_handler() = run_texture []
}

#[inline(always)]
fn run_texture(unit: &mut Unit<'_>, op: &Op) -> Control {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].textures[op.imm as usize];
    match read_together(unit, access, op) {
        Some(()) => Control::Next,
        None => read_one_by_one(unit, access, op),
    }
}

/// Reads a texture for all lanes. Returns `None`, with nothing read, if it is not the same for all or does not support this.
#[inline(always)]
fn read_together(unit: &mut Unit<'_>, access: &TextureAccess, op: &Op) -> Option<()> {
    let TextureAccess {
        spot,
        places: Places::Between,
        detail: Detail::Base,
        offset: None,
        sample: None,
        ..
    } = access
    else {
        return None;
    };
    let handles = unit.frame.row::<u64>(op.a);
    let handle = handles[unit.leader()];
    let others = lanes_where(|lane| handles[lane] != handle) & unit.active;
    if others != 0 || access.result != Channels::Words || unit.launch.program.checking.uninitialized
    {
        return None;
    }
    let texture = unit.objects.texture(unit.launch.runtime, handle)?;
    let span = texture.span_read_together(spot.geometry)?;
    let segment = unit.cache.segment(unit.launch.memory, span.start, false)?;
    let memory = segment.place(span.start, span.end - span.start)?;
    let row = |direction: usize| unit.frame.row::<u32>(spot.at[direction]);
    let texels = texture.sample_together(spot.geometry, [row(0), row(1)], memory);
    let active = unit.active;
    for (row, values) in access.destinations.iter().zip(&texels) {
        unit.frame.row_mut::<u32>(*row).merge(values, active);
    }
    if let Some(predicate) = access.resident {
        unit.frame.set_predicate(predicate, active, active);
    }
    Some(())
}

/// Reads textures lane by lane.
#[inline(never)]
fn read_one_by_one(unit: &mut Unit<'_>, access: &TextureAccess, op: &Op) -> Control {
    let mut residents = 0;
    let mut object: Option<(u64, Arc<Texture>)> = None;
    for lane in Lanes(unit.active) {
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let texture = match &object {
            Some((of, texture)) if *of == handle => texture,
            _ => match unit.objects.texture(unit.launch.runtime, handle) {
                Some(texture) => &object.insert((handle, texture)).1,
                None => return unit.fault(Trap::new(ReportKind::IllegalAddress, lane)),
            },
        };
        match read_texture(unit, access, lane, texture) {
            Ok((texel, is_resident)) => {
                residents |= u32::from(is_resident) << lane;
                for (row, value) in access.destinations.iter().zip(access.result.of(texel)) {
                    unit.frame.row_mut::<u32>(*row).0[lane] = value;
                }
            }
            Err(trap) => return unit.fault(trap),
        }
    }
    if let Some(predicate) = access.resident {
        unit.frame.set_predicate(predicate, residents, unit.active);
    }
    Control::Next
}

/// Returns the value that a lane reads, and `true` if all of its elements have physical memory.
#[inline]
fn read_texture(
    unit: &mut Unit<'_>,
    access: &TextureAccess,
    lane: usize,
    texture: &Texture,
) -> Result<(Texel, bool), Trap> {
    let word = |row: u32| unit.frame.row::<u32>(row)[lane];
    if access.sample.is_some_and(|row| word(row) != 0) {
        return Ok(([0; 4], true));
    }
    let spot = &access.spot;
    let point = Point {
        layer: word(spot.layer),
        coordinates: spot.at.map(word),
        places: access.places,
        level: level(texture, access, &word),
        offset: access.offset.map_or([0; 3], |offset| {
            offset.steps.map(|row| offset.step(word(row)))
        }),
    };
    let mut is_resident = true;
    let mut read = |address, bytes| {
        if texture.has_memory(address) {
            return read_bytes(unit, lane, address, bytes);
        }
        is_resident = false;
        Ok(0)
    };
    let texel = match access.detail {
        Detail::Gather(channel) => texture.gather(spot.geometry, &point, channel, &mut read),
        _ => texture.sample(spot.geometry, &point, &mut read),
    }?;
    Ok((texel, is_resident))
}

/// Returns the level of detail of an instruction.
#[inline]
fn level(texture: &Texture, access: &TextureAccess, word: &impl Fn(u32) -> u32) -> f32 {
    match access.detail {
        Detail::Base | Detail::Gather(_) => 0.0,
        Detail::Level(row) if access.places == Places::NearestElements => {
            word(row).cast_signed() as f32
        }
        Detail::Level(row) => f32::from_bits(word(row)),
        Detail::Gradient(steps) => {
            texture.level_of(steps.map(|step| step.map(|row| f32::from_bits(word(row)))))
        }
    }
}

/// Reads 1, 2, 4 or 8 bytes of device memory.
#[inline]
pub(crate) fn read_bytes(
    unit: &mut Unit<'_>,
    lane: usize,
    address: u64,
    bytes: u64,
) -> Result<u64, Trap> {
    match bytes {
        1 => read_at::<u8>(unit, Space::Global, lane, address).map(u64::from),
        2 => read_at::<u16>(unit, Space::Global, lane, address).map(u64::from),
        4 => read_at::<u32>(unit, Space::Global, lane, address).map(u64::from),
        _ => read_at::<u64>(unit, Space::Global, lane, address),
    }
}
