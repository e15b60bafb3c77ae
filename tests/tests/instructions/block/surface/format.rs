//! `sust.p`: formatted stores, which convert to the format of the surface.

use curium_memory::ArrayFlags;

use super::{GEOMETRIES, MODES, beyond, element, is_lost, leave, registers, vectors};
use crate::block::image::{Channel, Picture};
use crate::block::matrix::half;
use crate::block::{BlockForm, output_from_bytes};

/// `sust.p` with numbers that the format can represent.
pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let channels = [
        Channel::U8,
        Channel::S8,
        Channel::U16,
        Channel::S16,
        Channel::U32,
        Channel::S32,
        Channel::F16,
        Channel::F32,
    ];
    for (geometry, mode) in GEOMETRIES
        .into_iter()
        .flat_map(|geometry| MODES.map(|mode| (geometry, mode)))
    {
        for ((vector, count), channel) in
            vectors(4).flat_map(|vector| channels.map(|channel| (vector, channel)))
        {
            let picture = Picture {
                flags: ArrayFlags::SURFACE,
                ..Picture::new(channel, count, geometry.shape)
            };
            let spelling = format!("sust.p.{}{vector}.b32.{mode}", geometry.name);
            let bits = channel.bits();
            // A number of the channel in 32 bits.
            let narrow: String = (0..count)
                .map(|part| match channel.kind() {
                    "f32" => format!(
                        "shr.s32 %r{0}, %r{part}, 26; cvt.rn.f32.s32 %r{0}, %r{0}; mul.f32 %r{0}, %r{0}, 0.5;\n    ",
                        12 + part
                    ),
                    "s32" => format!("shr.s32 %r{}, %r{part}, {};\n    ", 12 + part, 32 - bits),
                    _ => format!("shr.u32 %r{}, %r{part}, {};\n    ", 12 + part, 32 - bits),
                })
                .collect();
            let moved = if mode == "trap" {
                String::new()
            } else {
                beyond(geometry, 1)
            };
            let (class, bytes) = if bits == 32 {
                ('r', 4)
            } else {
                ('h', bits as usize / 8)
            };
            let code = format!(
                "{narrow}{}{moved}{spelling} [%l20, {operand}], {};
    {}suld.b.{}{vector}.b{bits}.trap {}, [%l20, {operand}];
    {}",
                geometry.code(1),
                registers('r', 12, count),
                geometry.code(bytes * count),
                geometry.name,
                registers(class, 8, count),
                leave(class, count, bytes, 0),
                operand = geometry.operand(),
            );
            let form = BlockForm::new(
                format!("{spelling} of {channel:?}"),
                code,
                move |all, thread| {
                    if is_lost(geometry, thread, mode) {
                        let [low, high] = element(&picture, geometry.position(thread));
                        return [low, high, 0, 0];
                    }
                    let parts: Vec<u8> = all[thread][..count]
                        .iter()
                        .flat_map(|word| {
                            stored(channel, *word as u32)
                                .to_le_bytes()
                                .into_iter()
                                .take(bytes)
                        })
                        .collect();
                    output_from_bytes(|index| parts.get(index).copied().unwrap_or(0))
                },
            );
            forms.push(form.with(picture.prepare()));
        }
    }
    forms
}

/// Returns the bits in memory after the form stores a word.
fn stored(channel: Channel, word: u32) -> u32 {
    let small = f64::from(word.cast_signed() >> 26) / 2.0;
    match channel {
        Channel::F32 => (small as f32).to_bits(),
        Channel::F16 => half(small) as u32,
        _ => word >> (32 - channel.bits()),
    }
}
