//! Fetches from textures.

use std::sync::Arc;

use super::handler::versions;
use crate::exec::check::report::{ReportKind, Trap};
use crate::exec::frame::Frame;
use crate::exec::image::{Channels, CoordinateMode, Detail, Point, Texel, Texture, TextureAccess};
use crate::exec::machine::op::{Control, Handler, Op};
use crate::exec::machine::unit::Unit;
use crate::exec::memory::AccessMode;
use crate::exec::ops::access::read_at;
use crate::exec::space::Space;
use crate::exec::values::lane::{Lanes, lanes_where};

versions! {
    /// Returns the handler of `tex` and `tld4`.
    texture_handler() = run_texture []
}

#[inline(always)]
fn run_texture(unit: &mut Unit<'_>, op: &Op) -> Control {
    let program = unit.launch.program;
    let access = &program.functions[unit.frame.function as usize].textures[op.table_index()];
    match read_warp(unit, access, op) {
        Some(()) => Control::Next,
        None => read_lanes(unit, access, op),
    }
}

/// Reads a texture for all lanes. Returns `None`, with nothing read, if it is not the same for all
/// or does not support this.
#[inline(always)]
fn read_warp(unit: &mut Unit<'_>, access: &TextureAccess, op: &Op) -> Option<()> {
    let TextureAccess {
        coordinates,
        mode: CoordinateMode::Positions,
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
    let span = texture.warp_span(coordinates.geometry)?;
    let segment = unit
        .cache
        .segment(unit.launch.memory, span.start, AccessMode::Read)?;
    let memory = segment.host_bytes(span.start, span.end - span.start)?;
    let [x, y, _] = coordinates.axes.map(|row| unit.frame.row::<u32>(row));
    let texels = texture.sample_warp(coordinates.geometry, [x, y], memory);
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
fn read_lanes(unit: &mut Unit<'_>, access: &TextureAccess, op: &Op) -> Control {
    let mut residents = 0;
    let mut object: Option<(u64, Arc<Texture>)> = None;
    for lane in Lanes(unit.active) {
        let handle = unit.frame.row::<u64>(op.a)[lane];
        let texture = match &object {
            Some((last, texture)) if *last == handle => texture,
            _ => match unit.objects.texture(unit.launch.runtime, handle) {
                Some(texture) => &object.insert((handle, texture)).1,
                None => return unit.fault(Trap::new(ReportKind::IllegalAddress, lane)),
            },
        };
        match read_texture(unit, access, lane, texture) {
            Ok((texel, is_resident)) => {
                residents |= u32::from(is_resident) << lane;
                for (row, value) in access
                    .destinations
                    .iter()
                    .zip(access.result.registers(texel))
                {
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
    let frame = &unit.frame;
    let sample = access.sample.map_or(0, |row| frame.row::<u32>(row)[lane]);
    if sample != 0 {
        return Ok(([0; 4], true));
    }
    let coordinates = &access.coordinates;
    let geometry = coordinates.geometry;
    let point = Point {
        layer: frame.row::<u32>(coordinates.layer)[lane],
        coordinates: coordinates.axes.map(|row| frame.row::<u32>(row)[lane]),
        mode: access.mode,
        level: level(texture, access, frame, lane),
        offset: access.offset.map_or([0; 3], |offset| {
            offset
                .steps
                .map(|row| offset.step(frame.row::<u32>(row)[lane]))
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
        Detail::Gather(channel) => texture.gather(geometry, &point, channel, &mut read),
        _ => texture.sample(geometry, &point, &mut read),
    }?;
    Ok((texel, is_resident))
}

/// Returns the level of detail of an instruction.
#[inline]
fn level(texture: &Texture, access: &TextureAccess, frame: &Frame, lane: usize) -> f32 {
    match access.detail {
        Detail::Base | Detail::Gather(_) => 0.0,
        Detail::Level(row) => {
            let bits = frame.row::<u32>(row)[lane];
            if access.mode == CoordinateMode::NearestElements {
                bits.cast_signed() as f32
            } else {
                f32::from_bits(bits)
            }
        }
        Detail::Gradient(steps) => texture.gradient_level(
            steps.map(|step| step.map(|row| f32::from_bits(frame.row::<u32>(row)[lane]))),
        ),
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
