//! Texel offsets, which are added before the address mode is applied, and depth-compare operands.
//! No CUDA texture compares, and an H100 ignores these operands.

use std::sync::Arc;

use curium_memory::{
    AddressMode, ArrayFlags, DeviceBuffer, FilterMode, Texture, TextureFlags, TextureOptions,
};

use super::{
    GEOMETRIES, Geometry, HANDLE, KINDS, RESULT, coordinates, gathered, leave, leave_kind, left,
    left_kind, position, scales, ways,
};
use crate::block::image::{Channel, Picture};
use crate::block::{BlockForm, Prepared};

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = kinds();
    forms.extend(modes());
    forms.extend(constants());
    forms.extend(comparisons());
    forms.extend(elements());
    forms.extend(memory());
    forms.extend(gathers());
    forms
}

/// Returns the offsets of a thread in each dimension, from the smallest to the largest.
fn steps(thread: usize, bits: u32) -> [i64; 3] {
    let range = 1_usize << bits;
    [5, 11, 3].map(|factor| ((thread * factor) % range) as i64 - range as i64 / 2)
}

/// Returns code that loads the offsets into `%r24` to `%r26`, with bits above the used ones.
fn set_steps(bits: u32) -> String {
    let range = 1 << bits;
    [(24, 5), (25, 11), (26, 3)]
        .map(|(register, factor): (u32, u32)| {
            format!(
                "mul.lo.u32 %r{register}, %thread, {factor};
    rem.u32 %r{register}, %r{register}, {range};
    sub.s32 %r{register}, %r{register}, {};
    ",
                range / 2
            )
        })
        .concat()
}

fn operand(directions: usize) -> &'static str {
    match directions {
        1 => "{%r24}",
        2 => "{%r24, %r25}",
        _ => "{%r24, %r25, %r26, %r26}",
    }
}

/// Returns the coordinates of a thread with its offsets.
fn moved(thread: usize, steps: [i64; 3]) -> [f64; 3] {
    let coordinates = position(thread);
    std::array::from_fn(|axis| coordinates[axis] + steps[axis] as f64)
}

/// Returns each geometry with each result type and each level operand.
fn kinds() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (geometry, (kind, channel, result)) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| KINDS.map(|kind| (geometry, kind)))
    {
        let picture = Picture::new(channel, 4, geometry.shape);
        for (way, set, [level, _]) in ways(geometry.directions) {
            let spelling = format!("tex{way}.{}.{kind}.f32", geometry.name);
            let code = format!(
                "{HANDLE}{}{}{}{set}{spelling} {result}, [%l20, {}]{level}, {};\n    {}",
                geometry.layer_code(),
                coordinates([1.0; 3]),
                set_steps(4),
                geometry.operand(["%r16", "%r17", "%r18"]),
                operand(geometry.directions),
                leave_kind(kind)
            );
            let form = BlockForm::new(
                format!("{spelling} with an offset"),
                code,
                move |_, thread| {
                    let coordinates = moved(thread, steps(thread, 4));
                    left_kind(
                        picture.sample(
                            0,
                            &coordinates[..geometry.directions],
                            geometry.layer(thread),
                        ),
                        kind,
                    )
                },
            );
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}

/// Returns out-of-bounds coordinates, normalized and unnormalized, with nearest and linear
/// filtering.
fn modes() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let modes = [
        AddressMode::Clamp,
        AddressMode::Wrap,
        AddressMode::Mirror,
        AddressMode::Border,
    ];
    let flags = [TextureFlags::empty(), TextureFlags::NORMALIZED_COORDINATES];
    for (geometry, mode) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| modes.map(|mode| (geometry, mode)))
    {
        // The compiler leaves the upper bits of a negative offset in the second dimension, which a
        // 1D texture does not have.
        if geometry.name == "1d" && mode == AddressMode::Border {
            continue;
        }
        for (filter, flags) in [FilterMode::Point, FilterMode::Linear]
            .into_iter()
            .flat_map(|filter| flags.map(|flags| (filter, flags)))
        {
            if geometry.directions == 1
                && mode == AddressMode::Border
                && filter == FilterMode::Linear
            {
                continue;
            }
            let mut picture = Picture::new(Channel::F32, 4, geometry.shape);
            picture.options = picture
                .options
                .with_flags(flags)
                .with_address_mode(mode)
                .with_filter(filter);
            let how = if flags.is_empty() {
                "in elements"
            } else {
                "from 0 to 1"
            };
            forms.push(read(
                &format!("with an offset, {mode:?}, {filter:?}, {how}"),
                geometry,
                picture,
            ));
        }
    }
    forms
}

fn read(name: &str, geometry: Geometry, picture: Picture) -> BlockForm {
    let spelling = format!("tex.{}.v4.f32.f32", geometry.name);
    let code = format!(
        "{HANDLE}{}{}{}{spelling} {RESULT}, [%l20, {}], {};\n    {}",
        geometry.layer_code(),
        coordinates(scales(&picture)),
        set_steps(4),
        geometry.operand(["%r16", "%r17", "%r18"]),
        operand(geometry.directions),
        leave(4)
    );
    let form = BlockForm::new(format!("{spelling} {name}"), code, move |_, thread| {
        let coordinates = moved(thread, steps(thread, 4));
        left(
            picture.sample(
                0,
                &coordinates[..geometry.directions],
                geometry.layer(thread),
            ),
            "f32",
            4,
        )
    });
    form.with(picture.prepare())
}

/// Immediate offsets, of which four bits are used.
fn constants() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for geometry in GEOMETRIES {
        for (steps, taken) in [([7, -8, 3], [7, -8, 3]), ([8, -9, 17], [-8, 7, 1])] {
            let [x, y, z] = steps;
            let operand = match geometry.directions {
                1 => format!("{{{x}}}"),
                2 => format!("{{{x}, {y}}}"),
                _ => format!("{{{x}, {y}, {z}, {z}}}"),
            };
            let picture = Picture::new(Channel::F32, 4, geometry.shape);
            let spelling = format!("tex.{}.v4.f32.f32", geometry.name);
            let code = format!(
                "{HANDLE}{}{}{spelling} {RESULT}, [%l20, {}], {operand};\n    {}",
                geometry.layer_code(),
                coordinates([1.0; 3]),
                geometry.operand(["%r16", "%r17", "%r18"]),
                leave(4)
            );
            let name = format!("{spelling} with the offset {steps:?}");
            let form = BlockForm::new(name, code, move |_, thread| {
                let coordinates = moved(thread, taken);
                left(
                    picture.sample(
                        0,
                        &coordinates[..geometry.directions],
                        geometry.layer(thread),
                    ),
                    "f32",
                    4,
                )
            });
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}

/// Depth-compare operands, alone and after an offset. 3D textures do not support them.
fn comparisons() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (geometry, has_offset) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| [(geometry, false), (geometry, true)])
    {
        for (way, set, [level, _]) in ways(geometry.directions) {
            if geometry.directions == 3 {
                continue;
            }
            let picture = Picture::new(Channel::F32, 4, geometry.shape);
            let spelling = format!("tex{way}.{}.v4.f32.f32", geometry.name);
            let offset = if has_offset {
                format!(", {}", operand(geometry.directions))
            } else {
                String::new()
            };
            let code = format!(
                "{HANDLE}{}{}{}{set}.reg .f32 %compared;
    mov.b32 %compared, %r0;
    {spelling} {RESULT}, [%l20, {}]{level}{offset}, %compared;\n    {}",
                geometry.layer_code(),
                coordinates([1.0; 3]),
                set_steps(4),
                geometry.operand(["%r16", "%r17", "%r18"]),
                leave(4)
            );
            let what = if has_offset { "an offset and " } else { "" };
            let form = BlockForm::new(
                format!("{spelling} with {what}a comparison"),
                code,
                move |_, thread| {
                    let coordinates =
                        moved(thread, if has_offset { steps(thread, 4) } else { [0; 3] });
                    left(
                        picture.sample(
                            0,
                            &coordinates[..geometry.directions],
                            geometry.layer(thread),
                        ),
                        "f32",
                        4,
                    )
                },
            );
            let form = form.with(picture.prepare());
            let is_zero = geometry.name == "1d" && way == ".grad";
            forms.push(if is_zero {
                form.left_out("an H100 gives zeroes")
            } else {
                form
            });
        }
    }
    forms
}

/// Integer coordinates: zeros out of bounds, and the nearest element for a level.
fn elements() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (geometry, way) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| ["", ".base", ".level"].map(|way| (geometry, way)))
    {
        // Only 1D textures of linear memory support them.
        if geometry.name == "1d" {
            continue;
        }
        let picture = Picture::new(Channel::U32, 4, geometry.shape);
        let extents = picture.extents(0, geometry.is_layered);
        let spelling = format!("tex{way}.{}.v4.u32.s32", geometry.name);
        let code = format!(
            "{HANDLE}rem.u32 %r20, %thread, {};
    rem.u32 %r16, %thread, {};
    rem.u32 %r17, %thread, {};
    rem.u32 %r18, %thread, {};
    {}{spelling} {RESULT}, [%l20, {}]{}, {};\n    {}",
            extents[2],
            extents[0],
            extents[1],
            extents[2],
            set_steps(4),
            geometry.operand(["%r16", "%r17", "%r18"]),
            if way == ".level" { ", 0" } else { "" },
            operand(geometry.directions),
            leave(4)
        );
        let form = BlockForm::new(
            format!("{spelling} with an offset"),
            code,
            move |_, thread| {
                let mut coordinates = [0, 0, thread % extents[2]];
                let moved = steps(thread, 4);
                for axis in 0..geometry.directions {
                    let wanted = (thread % extents[axis]) as i64 + moved[axis];
                    let last = extents[axis] as i64 - 1;
                    if way != ".level" && !(0..=last).contains(&wanted) {
                        return [0; 4];
                    }
                    coordinates[axis] = wanted.clamp(0, last) as usize;
                }
                left(picture.read(0, coordinates), "u32", 4)
            },
        );
        forms.push(form.with(picture.prepare()));
    }
    forms
}

/// The number of elements of linear memory.
const ELEMENTS: usize = 16;

/// 1D textures of linear memory, with the offset in a vector and as a scalar.
fn memory() -> Vec<BlockForm> {
    ["{%r24}", "%r24"]
        .map(|offset: &str| {
            let spelling = "tex.1d.v4.u32.s32";
            let code = format!(
                "{HANDLE}rem.u32 %r16, %thread, {ELEMENTS};
    {}{spelling} {RESULT}, [%l20, {{%r16}}], {offset};\n    {}",
                set_steps(4),
                leave(4)
            );
            let form = BlockForm::new(
                format!("{spelling} of plain memory with the offset {offset}"),
                code,
                |_, thread| {
                    let wanted = (thread % ELEMENTS) as i64 + steps(thread, 4)[0];
                    let value = if (0..ELEMENTS as i64).contains(&wanted) {
                        wanted as u64 * 7 + 1
                    } else {
                        0
                    };
                    [value, 0, 0, 0]
                },
            );
            let form = form.left_out("an H100 reads another element, and which was not found out");
            form.with(|stream| {
                let elements: Vec<u32> = (0..ELEMENTS as u32).map(|index| index * 7 + 1).collect();
                let buffer = Arc::new(DeviceBuffer::from_slice(stream, &elements)?);
                let options = TextureOptions::new().with_flags(TextureFlags::READ_AS_INTEGER);
                let texture = Texture::from_buffer(&buffer, &options)?;
                Ok(Prepared {
                    table: [texture.as_raw(), 0, 0, 0],
                    _kept: Box::new(texture),
                })
            })
        })
        .into()
}

/// `tld4`, whose offsets have six bits, with and without a depth-compare operand.
fn gathers() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let kinds = [
        ("u32", Channel::U32),
        ("s32", Channel::S32),
        ("f32", Channel::F32),
    ];
    let operands = [
        ("an offset", ", {%r24, %r25}", 6),
        ("a comparison", ", %compared", 0),
        ("both", ", {%r24, %r25}, %compared", 6),
    ];
    for geometry in [GEOMETRIES[1], GEOMETRIES[4]] {
        for ((kind, channel), (what, operand, bits)) in kinds
            .into_iter()
            .flat_map(|kind| operands.map(|operand| (kind, operand)))
        {
            let mut picture = Picture::new(channel, 4, geometry.shape);
            picture.flags = ArrayFlags::GATHER;
            picture.options = picture.options.with_address_mode(AddressMode::Border);
            let spelling = format!("tld4.g.{}.v4.{kind}.f32", geometry.name);
            let code = format!(
                "{HANDLE}{}{}{}.reg .f32 %compared;
    mov.b32 %compared, %r0;
    {spelling} {RESULT}, [%l20, {}]{operand};\n    {}",
                geometry.layer_code(),
                coordinates([1.0; 3]),
                set_steps(6),
                geometry.operand(["%r16", "%r17", "%r18"]),
                leave(4)
            );
            let form = BlockForm::new(format!("{spelling} with {what}"), code, move |_, thread| {
                let [x, y, _] = moved(
                    thread,
                    if bits == 0 {
                        [0; 3]
                    } else {
                        steps(thread, bits)
                    },
                );
                left(
                    gathered(&picture, [x, y], geometry.layer(thread), 1),
                    kind,
                    4,
                )
            });
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}
