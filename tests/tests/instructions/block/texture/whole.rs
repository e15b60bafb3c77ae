//! Textures with integer coordinates, as an H100 fetches them: out-of-bounds elements are zero in
//! every address mode, and an explicit level uses the nearest element. 1D textures support them
//! only on linear memory, not on arrays. With gradients the bits of the integers are interpreted as
//! floating-point numbers, which are almost zero here.

use std::sync::Arc;

use curium_memory::{DeviceBuffer, Texture, TextureFlags, TextureOptions};

use super::{GEOMETRIES, Geometry, HANDLE, KINDS, RESULT, leave, leave_kind, left_kind, ways};
use crate::block::image::Picture;
use crate::block::{BlockForm, Prepared};

/// Returns each geometry with each result type and each level operand.
pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = lines();
    for (geometry, (kind, channel, result)) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| KINDS.map(|kind| (geometry, kind)))
    {
        let picture = Picture::new(channel, 4, geometry.shape);
        for (way, set, [_, operand]) in ways(geometry.directions) {
            let spelling = format!("tex{way}.{}.{kind}.s32", geometry.name);
            let code = format!(
                "{HANDLE}{}{}{set}{spelling} {result}, [%l20, {}]{operand};\n    {}",
                geometry.layer_code(),
                elements(picture.extents(0, geometry.is_layered)),
                geometry.operand(["%r16", "%r17", "%r18"]),
                leave_kind(kind)
            );
            let form = BlockForm::new(spelling, code, move |_, thread| {
                left_kind(
                    named(&picture, geometry, way, thread)
                        .map_or([0.0; 4], |index| picture.read(0, index)),
                    kind,
                )
            });
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}

/// Returns code that loads the index of an element into `%r16` to `%r18`, from one before the first
/// to one after the last.
fn elements([width, height, depth]: [usize; 3]) -> String {
    format!(
        "rem.u32 %r16, %thread, {};
    sub.s32 %r16, %r16, 1;
    div.u32 %r17, %thread, {};
    rem.u32 %r17, %r17, {};
    sub.s32 %r17, %r17, 1;
    rem.u32 %r18, %thread, {};
    sub.s32 %r18, %r18, 1;
    ",
        width + 2,
        width + 2,
        height + 2,
        depth + 3
    )
}

/// Returns the element that a thread fetches, if it is in bounds.
fn named(picture: &Picture, geometry: Geometry, way: &str, thread: usize) -> Option<[usize; 3]> {
    let extents = picture.extents(0, geometry.is_layered);
    let [width, height, depth] = extents;
    let numbers = [
        thread % (width + 2),
        thread / (width + 2) % (height + 2),
        thread % (depth + 3),
    ];
    if geometry.name == "1d" {
        return None;
    }
    let mut coordinates = [0; 3];
    for axis in 0..geometry.directions {
        // The numbers are one too high.
        coordinates[axis] = match way {
            ".grad" => 0,
            ".level" => numbers[axis].saturating_sub(1).min(extents[axis] - 1),
            _ => numbers[axis]
                .checked_sub(1)
                .filter(|index| *index < extents[axis])?,
        };
    }
    if let Some(layer) = geometry.layer(thread) {
        coordinates[2] = if ["", ".base"].contains(&way) && layer >= depth {
            return None;
        } else {
            layer.min(depth - 1)
        };
    }
    Some(coordinates)
}

/// The number of elements of linear memory.
const ELEMENTS: usize = 8;

/// 1D textures of linear memory, for which floating-point coordinates are unsupported.
fn lines() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (way, set, operands) in ways(1) {
        for (kind, operand) in ["f32", "s32"].into_iter().zip(operands) {
            let spelling = format!("tex{way}.1d.v4.u32.{kind}");
            let convert = if kind == "f32" {
                "cvt.rn.f32.s32 %r16, %r16;\n    "
            } else {
                ""
            };
            let code = format!(
                "{HANDLE}{}{convert}{set}{spelling} {RESULT}, [%l20, {{%r16}}]{operand};\n    {}",
                elements([ELEMENTS, 1, 1]),
                leave(4)
            );
            let name = format!("{spelling} of plain memory");
            let form = BlockForm::new(name, code, move |_, thread| {
                let number = thread % (ELEMENTS + 2);
                let index = match way {
                    _ if kind == "f32" => None,
                    ".grad" => None,
                    ".level" => Some(number.saturating_sub(1).min(ELEMENTS - 1)),
                    _ => number.checked_sub(1).filter(|index| *index < ELEMENTS),
                };
                index.map_or([0; 4], |index| element(index).map(u64::from))
            });
            forms.push(form.with(|stream| {
                let elements: Vec<[u32; 4]> = (0..ELEMENTS).map(element).collect();
                let buffer = Arc::new(DeviceBuffer::from_slice(stream, &elements)?);
                let options = TextureOptions::new().with_flags(TextureFlags::READ_AS_INTEGER);
                let texture = Texture::from_buffer(&buffer, &options)?;
                Ok(Prepared {
                    table: [texture.as_raw(), 0, 0, 0],
                    _kept: Box::new(texture),
                })
            }));
        }
    }
    forms
}

fn element(position: usize) -> [u32; 4] {
    std::array::from_fn(|channel| (0x0101_0101 * (position + 1) + channel) as u32)
}
