//! Cubemap textures, with directions as coordinates.

use curium_memory::{ArrayShape, FilterMode, TextureFlags};

use super::{
    Geometry, HANDLE, KINDS, coordinate, coordinates, gathered, leave, leave_kind, left, left_kind,
    ways,
};
use crate::block::image::{Channel, Picture};
use crate::block::{BlockForm, THREADS};

/// Offsets of directions, none of which is at an edge of a face or of an element.
const SHIFTS: [f64; 3] = [16.0 / 128.0, 9.0 / 128.0, 21.0 / 128.0];

fn direction(thread: usize) -> [f64; 3] {
    std::array::from_fn(|axis| coordinate(axis, thread) - 0.125 + SHIFTS[axis])
}

/// Returns the face of a direction, and the coordinates on it from 0 to 1: the table of the CUDA
/// Programming Guide.
fn face([x, y, z]: [f64; 3]) -> (usize, [f64; 2]) {
    let most = x.abs().max(y.abs()).max(z.abs());
    let (face, s, t) = match () {
        () if most == x => (0, -z, -y),
        () if most == -x => (1, z, -y),
        () if most == y => (2, x, z),
        () if most == -y => (3, x, -z),
        () if most == z => (4, x, -y),
        () => (5, -x, -y),
    };
    (
        face,
        [s, t].map(|coordinate| (coordinate / most + 1.0) / 2.0),
    )
}

const GEOMETRIES: [Geometry; 2] = [
    Geometry {
        name: "cube",
        directions: 3,
        shape: ArrayShape::cubemap(4),
        is_layered: false,
    },
    Geometry {
        name: "acube",
        directions: 3,
        shape: ArrayShape::layered_cubemap(4, 2),
        is_layered: true,
    },
];

/// Returns code that loads a direction into `%r16` to `%r18`, and one beyond the last cubemap into
/// `%r20`.
fn directions() -> String {
    format!(
        "rem.u32 %r20, %thread, 3;\n    {}{}",
        coordinates([1.0; 3]),
        (0..3)
            .map(|axis: usize| {
                let shift = (SHIFTS[axis] - 0.125) as f32;
                format!(
                    "add.f32 %r{0}, %r{0}, 0f{1:08x};\n    ",
                    16 + axis,
                    shift.to_bits()
                )
            })
            .collect::<String>()
    )
}

/// Returns the coordinates that a thread fetches in a level of this width, and its layer.
fn spot(geometry: Geometry, thread: usize, width: usize) -> ([f64; 2], usize) {
    let (face, position) = face(direction(thread));
    let cube = if geometry.is_layered {
        (thread % 3).min(1)
    } else {
        0
    };
    (
        position.map(|coordinate| coordinate * width as f64),
        6 * cube + face,
    )
}

fn picture(channel: Channel, geometry: Geometry, levels: u32) -> Picture {
    let mut picture = Picture::new(channel, 4, geometry.shape);
    picture.levels = levels;
    let flags = picture.options.flags | TextureFlags::NORMALIZED_COORDINATES;
    picture.options = picture
        .options
        .with_flags(flags)
        .with_mipmaps(FilterMode::Point, 0.0, 2.0);
    picture
}

/// Cubemaps, single and layered, with no level, with a level, and with gradients small enough for
/// level 0.
pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = gathers();
    for (geometry, (kind, channel, result)) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| KINDS.map(|kind| (geometry, kind)))
    {
        for (way, set, [operand, _]) in ways(3) {
            let by_level = way == ".level";
            let (levels, operand) = if by_level {
                (3, ", %r21")
            } else {
                (1, operand.as_str())
            };
            let picture = picture(channel, geometry, levels);
            let spelling = format!("tex{way}.{}.{kind}.f32", geometry.name);
            let code = format!(
                "{HANDLE}{}{set}rem.u32 %r21, %thread, 4;
    cvt.rn.f32.u32 %r21, %r21;
    {spelling} {result}, [%l20, {}]{operand};
    {}",
                directions(),
                geometry.operand(["%r16", "%r17", "%r18"]),
                leave_kind(kind)
            );
            let form = BlockForm::new(spelling, code, move |_, thread| {
                let level = (thread as u32 % 4).min(levels - 1);
                let (at, layer) = spot(geometry, thread, 4 >> level);
                left_kind(picture.sample(level, &at, Some(layer)), kind)
            });
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}

/// `tld4` if all four elements lie on one face; other threads write nothing.
fn gathers() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (geometry, (kind, channel, result)) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| KINDS[..3].iter().map(move |kind| (geometry, *kind)))
    {
        let inside = move |thread: usize| {
            let (at, _) = spot(geometry, thread, 4);
            at.iter().all(|coordinate| (0.5..3.5).contains(coordinate))
        };
        let mask = (0..THREADS).fold(0_u64, |mask, thread| {
            mask | u64::from(inside(thread)) << thread
        });
        for (number, letter) in ["r", "g", "b", "a"].into_iter().enumerate() {
            let picture = picture(channel, geometry, 1);
            let spelling = format!("tld4.{letter}.{}.{kind}.f32", geometry.name);
            let code = format!(
                "{HANDLE}{}mov.b64 %l21, {mask:#x};
    shr.u64 %l21, %l21, %thread;
    and.b64 %l21, %l21, 1;
    setp.eq.u64 %p1, %l21, 0;
    @%p1 ret;
    {spelling} {result}, [%l20, {}];
    {}",
                directions(),
                geometry.operand(["%r16", "%r17", "%r18"]),
                leave(4)
            );
            let form = BlockForm::new(spelling, code, move |_, thread| {
                if !inside(thread) {
                    return [0; 4];
                }
                let ([x, y], layer) = spot(geometry, thread, 4);
                left(
                    gathered(&picture, [x, y], Some(layer), number),
                    &kind[3..],
                    4,
                )
            });
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}
