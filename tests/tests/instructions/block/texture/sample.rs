//! Multisample textures, of which arrays have one sample; residency predicates, which are true for
//! every element of an array; and independent samplers.

use curium_memory::{AddressMode, ArrayFlags, FilterMode, TextureFlags, TextureOptions};

use super::{
    GEOMETRIES, HANDLE, KINDS, RESULT, coordinates, gathered, leave, leave_kind, left, left_kind,
    position, scales, ways,
};
use crate::block::BlockForm;
use crate::block::image::{Channel, Picture};

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = samples();
    forms.extend(residents());
    forms.extend(gathered_residents());
    forms.extend(samplers());
    forms
}

/// Returns forms whose first coordinate is the sample index: sample 0 exists, and the others are
/// zero.
fn samples() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for ((geometry, name), way) in [(GEOMETRIES[1], "2dms"), (GEOMETRIES[4], "a2dms")]
        .into_iter()
        .flat_map(|geometry| ["", ".base"].map(|way| (geometry, way)))
    {
        for (kind, channel, result) in KINDS {
            let picture = Picture::new(channel, 4, geometry.shape);
            let [width, height, layers] = picture.extents(0, geometry.is_layered);
            let spelling = format!("tex{way}.{name}.{kind}.s32");
            let operand = if geometry.is_layered {
                "{%r19, %r20, %r16, %r17}"
            } else {
                "{%r19, %r16, %r17, %r17}"
            };
            let code = format!(
                "{HANDLE}shr.u32 %r19, %thread, 5;
    rem.u32 %r16, %thread, {};
    rem.u32 %r17, %thread, {};
    rem.u32 %r20, %thread, {};
    {spelling} {result}, [%l20, {operand}];\n    {}",
                width + 1,
                height + 1,
                layers + 1,
                leave_kind(kind)
            );
            let form = BlockForm::new(spelling, code, move |_, thread| {
                let element = [
                    thread % (width + 1),
                    thread % (height + 1),
                    if geometry.is_layered {
                        thread % (layers + 1)
                    } else {
                        0
                    },
                ];
                let is_inside = element
                    .iter()
                    .zip([width, height, layers])
                    .all(|(index, extent)| *index < extent);
                let values = if is_inside && thread < 32 {
                    picture.read(0, element)
                } else {
                    [0.0; 4]
                };
                left_kind(values, kind)
            });
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}

/// Stores the result like `leave_kind`, and the predicate with the first word.
fn leave_all(kind: &str) -> String {
    format!(
        "{}selp.b32 %r29, 1, 0, %p1;\n    st.global.b32 [%out+4], %r29;\n    ",
        leave_kind(kind)
    )
}

/// Returns each geometry with each result type and each level operand, including out-of-bounds
/// coordinates.
fn residents() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (geometry, (kind, channel, result)) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| KINDS.map(|kind| (geometry, kind)))
    {
        for (way, set, [level, _]) in ways(geometry.directions) {
            let mut picture = Picture::new(channel, 4, geometry.shape);
            picture.options = picture.options.with_address_mode(AddressMode::Border);
            let spelling = format!("tex{way}.{}.{kind}.f32", geometry.name);
            let code = format!(
                "{HANDLE}{}{}{set}{spelling} {result}|%p1, [%l20, {}]{level};\n    {}",
                geometry.layer_code(),
                coordinates([1.0; 3]),
                geometry.operand(["%r16", "%r17", "%r18"]),
                leave_all(kind)
            );
            let form = BlockForm::new(
                format!("{spelling} and whether it is there"),
                code,
                move |_, thread| {
                    let coordinates = &position(thread)[..geometry.directions];
                    let mut all =
                        left_kind(picture.sample(0, coordinates, geometry.layer(thread)), kind);
                    all[0] |= 1 << 32;
                    all
                },
            );
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}

fn gathered_residents() -> Vec<BlockForm> {
    [GEOMETRIES[1], GEOMETRIES[4]]
        .map(|geometry: super::Geometry| {
            let mut picture = Picture::new(Channel::F32, 4, geometry.shape);
            picture.flags = ArrayFlags::GATHER;
            let spelling = format!("tld4.b.{}.v4.f32.f32", geometry.name);
            let code = format!(
                "{HANDLE}{}{}{spelling} {RESULT}|%p1, [%l20, {}], {{3, -2}};\n    {}",
                geometry.layer_code(),
                coordinates([1.0; 3]),
                geometry.operand(["%r16", "%r17", "%r18"]),
                leave_all("v4.f32")
            );
            let form = BlockForm::new(
                format!("{spelling} and whether it is there"),
                code,
                move |_, thread| {
                    let [x, y, _] = position(thread);
                    let mut all = left(
                        gathered(&picture, [x + 3.0, y - 2.0], geometry.layer(thread), 2),
                        "f32",
                        4,
                    );
                    all[0] |= 1 << 32;
                    all
                },
            );
            form.with(picture.prepare())
        })
        .into()
}

/// Returns forms with a second object as the sampler: the fetch uses the options of the first.
fn samplers() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for geometry in GEOMETRIES {
        let normalized = TextureFlags::NORMALIZED_COORDINATES;
        for (mode, filter, flags) in [
            (
                AddressMode::Border,
                FilterMode::Point,
                TextureFlags::empty(),
            ),
            (AddressMode::Wrap, FilterMode::Point, normalized),
            (AddressMode::Mirror, FilterMode::Linear, normalized),
            (
                AddressMode::Clamp,
                FilterMode::Linear,
                TextureFlags::empty(),
            ),
        ] {
            let mut picture = Picture::new(Channel::F32, 4, geometry.shape);
            let other = TextureOptions::new().with_border_color([3.0; 4]);
            let sampler = other
                .with_flags(flags)
                .with_address_mode(mode)
                .with_filter(filter);
            picture.sampler = Some(sampler);
            let spelling = format!("tex.{}.v4.f32.f32", geometry.name);
            let code = format!(
                "{HANDLE}ld.param.b64 %l21, [table+8];\n    {}{}{spelling} {RESULT}, [%l20, %l21, {}];\n    {}",
                geometry.layer_code(),
                coordinates(scales(&picture)),
                geometry.operand(["%r16", "%r17", "%r18"]),
                leave(4)
            );
            let name = format!("{spelling} with a sampler, {mode:?}, {filter:?}");
            let form = BlockForm::new(name, code, move |_, thread| {
                left(
                    picture.sample(
                        0,
                        &position(thread)[..geometry.directions],
                        geometry.layer(thread),
                    ),
                    "f32",
                    4,
                )
            });
            let form = form.with(picture.prepare());
            forms.push(form.left_out(match geometry.is_layered {
                true => "the compiler of CUDA 13.0 ends with a segmentation fault",
                false => "what CUDA 13.0 compiles reads one element, whatever the place is",
            }));
        }
    }
    forms
}
