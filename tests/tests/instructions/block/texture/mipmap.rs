//! Mipmap levels: by number, by gradients, with linear filtering between two, with a bias and with
//! clamping.

use curium_memory::{FilterMode, TextureFlags};

use super::{GEOMETRIES, HANDLE, RESULT, coordinates, leave, left, position, scales};
use crate::block::image::{Channel, Picture};
use crate::block::{BlockForm, THREADS};

/// Returns forms for levels by number, by gradients, between two levels, with a bias and with
/// clamping.
pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for geometry in GEOMETRIES {
        let mut picture = Picture::new(Channel::F32, 1, geometry.shape);
        picture.levels = if geometry.directions == 1 { 4 } else { 3 };
        picture.options = picture
            .options
            .with_flags(TextureFlags::NORMALIZED_COORDINATES);
        let last = picture.levels - 1;
        let nearest = picture
            .options
            .with_mipmaps(FilterMode::Point, 0.0, last as f32);
        let between = picture
            .options
            .with_mipmaps(FilterMode::Linear, 0.0, last as f32);
        let within = picture.options.with_mipmaps(FilterMode::Linear, 0.5, 1.25);
        let biased = between.with_mipmap_level_bias(0.75);
        let least = move |level: f64| level.clamp(0.0, last.into());
        type Level = Box<dyn Fn(f64) -> f64>;
        let cases: [(&str, _, Level); 4] = [
            (
                "the nearest",
                nearest,
                Box::new(move |level| (least(level) + 0.5).floor().min(last.into())),
            ),
            ("between two", between, Box::new(least)),
            (
                "within bounds",
                within,
                Box::new(|level| level.clamp(0.5, 1.25)),
            ),
            (
                "with a bias",
                biased,
                Box::new(move |level| least(level + 0.75)),
            ),
        ];
        for (name, options, level) in cases {
            let picture = Picture { options, ..picture };
            // From -0.75 to 3 in quarters plus a sixteenth, because no level is nearest halfway
            // between two.
            let quarters = "and.b32 %r21, %thread, 15;
    sub.s32 %r21, %r21, 3;
    cvt.rn.f32.s32 %r21, %r21;
    fma.rn.f32 %r21, %r21, 0f3e800000, 0f3d800000;
    ";
            let whole = "rem.u32 %r21, %thread, 3;\n    cvt.rn.f32.u32 %r21, %r21;\n    ";
            // A gradient of the level's width in one dimension.
            let steps = format!(
                "ex2.approx.f32 %r22, %r21;\n    mul.f32 %r22, %r22, 0f{:08x};\n    mov.b32 %r23, 0;\n    ",
                (1.0 / picture.shape.width() as f32).to_bits()
            );
            let vector = |first: &str| match geometry.directions {
                1 => format!("{{{first}}}"),
                2 => format!("{{{first}, %r23}}"),
                _ => format!("{{{first}, %r23, %r23, %r23}}"),
            };
            let grad = format!(", {}, {}", vector("%r22"), vector("%r23"));
            // The level for gradients is implementation-defined, except at integers.
            for (way, set, operand, is_whole) in [
                (".level", quarters.to_owned(), ", %r21".to_owned(), false),
                (".grad", whole.to_owned() + &steps, grad, true),
            ] {
                let spelling = format!("tex{way}.{}.v4.f32.f32", geometry.name);
                let code = format!(
                    "{HANDLE}{}{}{set}{spelling} {RESULT}, [%l20, {}]{operand};\n    {}",
                    geometry.layer_code(),
                    coordinates(scales(&picture)),
                    geometry.operand(["%r16", "%r17", "%r18"]),
                    leave(1)
                );
                let asked = |thread: usize| {
                    if is_whole {
                        (thread % 3) as f64
                    } else {
                        (thread % 16) as f64 / 4.0 - 0.75 + 0.0625
                    }
                };
                let levels: Vec<f64> = (0..THREADS).map(|thread| level(asked(thread))).collect();
                let form = BlockForm::new(format!("{spelling} {name}"), code, move |_, thread| {
                    let level = levels[thread];
                    let coordinates = position(thread);
                    let sample = |level: u32| {
                        let scaled: Vec<f64> = (coordinates[..geometry.directions]
                            .iter()
                            .enumerate())
                        .map(|(axis, coordinate)| {
                            let scale = picture.extents(level, geometry.is_layered)[axis] as f64
                                / picture.extents(0, geometry.is_layered)[axis] as f64;
                            coordinate * scale
                        })
                        .collect();
                        picture.sample(level, &scaled, geometry.layer(thread))[0]
                    };
                    let first = level.floor();
                    let share = level - level.floor();
                    let nearer = sample(first as u32);
                    let value = if share == 0.0 {
                        nearer
                    } else {
                        nearer * (1.0 - share) + sample(first as u32 + 1) * share
                    };
                    left([value, 0.0, 0.0, 0.0], "f32", 1)
                });
                forms.push(form.with(picture.prepare()));
            }
        }
    }
    forms
}
