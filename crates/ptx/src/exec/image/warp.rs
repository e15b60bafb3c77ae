//! Fetches of a whole warp at once, from one- and two-dimensional textures.

use super::axis::{Axis, Pairs, WEIGHT_STEPS};
use super::element::{Channel, Texel};
use super::sample::weight;
use super::{AddressMode, Geometry, Texture};
use crate::exec::memory::{HostBytes, Word};
use crate::exec::values::lane::LANES;

/// The texels of a warp's lanes, by channels.
pub(crate) type Texels = [[u32; LANES]; 4];

impl Texture {
    /// Returns the device addresses that [`Texture::sample_warp`] may read, or `None` if it does
    /// not support the texture. It supports a single line or plane that does not repeat, has memory
    /// everywhere, and has aligned channels.
    pub(crate) fn warp_span(&self, geometry: Geometry) -> Option<std::ops::Range<u64>> {
        let directions = directions(geometry)?;
        let [image] = &self.levels[..] else {
            return None;
        };
        let has_edge = geometry == Geometry::Line
            && self.is_linear
            && self.address_modes[1] == AddressMode::Border;
        let is_aligned = (image.base | image.pitch) & (self.element.channel.bytes() - 1) == 0;
        let mut axes = (0..directions).map(|direction| self.axis(image, direction, false));
        let is_supported = self.tiles.is_empty()
            && !self.is_buffer
            && !has_edge
            && is_aligned
            && axes.all(Axis::is_single);
        let last_row = if directions == 2 {
            u64::from(image.height) - 1
        } else {
            0
        };
        let bytes = last_row * image.pitch + u64::from(image.width) * self.element.bytes();
        is_supported.then_some(image.base..image.base + bytes)
    }

    /// Returns the texture at the coordinates of a warp. `memory` is that of
    /// [`Texture::warp_span`].
    #[inline(always)]
    pub(crate) fn sample_warp(
        &self,
        geometry: Geometry,
        [across, down]: [&[u32; LANES]; 2],
        memory: HostBytes,
    ) -> Texels {
        let columns = self.axis(&self.levels[0], 0, false);
        let rows = self.axis(&self.levels[0], 1, false);
        let is_plane = directions(geometry) == Some(2);
        if self.is_linear && self.returns_floats() {
            let columns = columns.pairs::<true>(across);
            let rows = if is_plane {
                rows.pairs::<true>(down)
            } else {
                FIRST
            };
            self.blend_warp(memory, &columns, &rows)
        } else {
            let columns = columns.pairs::<false>(across);
            let rows = if is_plane {
                rows.pairs::<false>(down)
            } else {
                FIRST
            };
            self.warp_texels(memory, &columns.elements[0], &rows.elements[0])
        }
    }

    /// Returns the weighted sums of the elements around the coordinates.
    #[inline(always)]
    fn blend_warp(&self, memory: HostBytes, columns: &Pairs, rows: &Pairs) -> Texels {
        let mut sums = [[0.0; LANES]; 4];
        for [column, row] in [[0, 0], [1, 0], [0, 1], [1, 1]] {
            let texels = self.warp_texels(memory, &columns.elements[column], &rows.elements[row]);
            let mut weights = [0.0; LANES];
            #[expect(
                clippy::needless_range_loop,
                reason = "the compiler vectorizes this form"
            )]
            for lane in 0..LANES {
                let weight = weight(
                    [columns.weights[lane], rows.weights[lane], 0],
                    [column, row, 0],
                );
                weights[lane] = f64::from(weight.cast_signed()) / f64::from(WEIGHT_STEPS);
            }
            for (sums, texels) in sums
                .iter_mut()
                .zip(&texels)
                .take(self.element.channels as usize)
            {
                for lane in 0..LANES {
                    let part = weights[lane] * f64::from(f32::from_bits(texels[lane]));
                    // Infinities and NaN with weight zero do not count.
                    sums[lane] += if weights[lane] > 0.0 { part } else { 0.0 };
                }
            }
        }
        let mut blends = [[0; LANES]; 4];
        for (blends, sums) in blends.iter_mut().zip(&sums) {
            for lane in 0..LANES {
                blends[lane] = (sums[lane] as f32).to_bits();
            }
        }
        if self.element.channel == Channel::F16 {
            replace_texels(&mut blends, |_, texel| self.element.rounded(texel));
        }
        blends
    }

    /// Returns the elements in columns and rows, or the border where one of them is negative.
    #[inline(always)]
    fn warp_texels(
        &self,
        memory: HostBytes,
        columns: &[i32; LANES],
        rows: &[i32; LANES],
    ) -> Texels {
        let pitch = self.levels[0].pitch;
        let bytes = self.element.bytes();
        let mut offsets = [0; LANES];
        let mut signs = 0;
        for lane in 0..LANES {
            let row = u64::from(rows[lane].max(0).cast_unsigned());
            let column = u64::from(columns[lane].max(0).cast_unsigned());
            offsets[lane] = row * pitch + column * bytes;
            signs |= columns[lane] | rows[lane];
        }
        let mut texels = [[0; LANES]; 4];
        let channel = self.element.channel;
        for (number, texels) in (0..u64::from(self.element.channels)).zip(&mut texels) {
            let first = number * channel.bytes();
            match channel.bytes() {
                1 => load::<u8>(memory, &offsets, first, texels),
                2 => load::<u16>(memory, &offsets, first, texels),
                _ => load::<u32>(memory, &offsets, first, texels),
            }
            channel.values(texels, self.reading().for_channel(number as usize));
        }
        if signs < 0 {
            let border = self.element.border(self.border, self.reading());
            replace_texels(&mut texels, |lane, texel| {
                if columns[lane] | rows[lane] < 0 {
                    border
                } else {
                    texel
                }
            });
        }
        texels
    }
}

/// Replaces the texel of each lane.
#[inline(never)]
fn replace_texels(texels: &mut Texels, replace: impl Fn(usize, Texel) -> Texel) {
    for lane in 0..LANES {
        let texel = replace(lane, texels.map(|channel| channel[lane]));
        for channel in 0..4 {
            texels[channel][lane] = texel[channel];
        }
    }
}

/// Loads a channel of the elements at offsets.
#[inline(always)]
fn load<T: Word>(memory: HostBytes, offsets: &[u64; LANES], first: u64, values: &mut [u32; LANES]) {
    for (value, offset) in values.iter_mut().zip(offsets) {
        *value = memory.load_at::<T>(offset + first).extend() as u32;
    }
}

/// The row of a one-dimensional texture.
const FIRST: Pairs = Pairs {
    elements: [[0; LANES]; 2],
    weights: [0; LANES],
};

fn directions(geometry: Geometry) -> Option<usize> {
    match geometry {
        Geometry::Line => Some(1),
        Geometry::Plane => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::image::warp::*;
    use crate::exec::image::{AddressMode, CoordinateMode, Element, Image, Point};
    use crate::exec::memory::Memory;
    use crate::exec::memory::tests::Arena;

    const BASE: u64 = 0x1000;
    const CHANNELS: [Channel; 8] = [
        Channel::U8,
        Channel::I8,
        Channel::U16,
        Channel::I16,
        Channel::U32,
        Channel::I32,
        Channel::F16,
        Channel::F32,
    ];

    /// Returns a texture of 7 x 5 elements whose properties are the bits of a number.
    fn texture(channel: Channel, number: u32) -> Texture {
        let [
            is_clamped,
            is_linear,
            is_normalized,
            reads_integers,
            is_srgb,
        ] = [0, 1, 2, 3, 4].map(|bit| number >> bit & 1 == 1);
        let mode = if is_clamped {
            AddressMode::Clamp
        } else {
            AddressMode::Border
        };
        Texture {
            levels: vec![Image {
                base: BASE + 64,
                width: 7,
                height: 5,
                depth: 1,
                pitch: 128,
            }],
            element: Element {
                channel,
                channels: [1, 2, 4][number as usize % 3],
            },
            address_modes: [mode, AddressMode::Clamp, AddressMode::Clamp],
            is_linear,
            is_linear_in_levels: false,
            has_normalized_coordinates: is_normalized,
            reads_integers,
            is_srgb,
            is_buffer: false,
            level_bias: 0.0,
            level_range: [0.0; 2],
            border: [0.25, -1.5, 3.0, 0.5],
            tiles: Vec::new(),
        }
    }

    #[test]
    fn warp_reads_the_values_that_its_lanes_read() {
        let arena = Arena::new(BASE, 1024);
        let mut random = fastrand::Rng::with_seed(3);
        let words: Vec<u32> = (0..256).map(|_| random.u32(..)).collect();
        arena.write(0, &words);
        for (channel, number) in CHANNELS
            .into_iter()
            .flat_map(|channel| (0..96).map(move |number| (channel, number)))
        {
            let texture = texture(channel, number);
            let geometry = if number % 5 == 0 {
                Geometry::Line
            } else {
                Geometry::Plane
            };
            let scale = if texture.has_normalized_coordinates {
                1.0
            } else {
                8.0
            };
            let mut row: [u32; LANES] = std::array::from_fn(|_| {
                (random.u16(..4096) as f32 / 2048.0 * scale - 0.5 * scale).to_bits()
            });
            row[..3]
                .copy_from_slice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY].map(f32::to_bits));
            let column = std::array::from_fn(|lane| row[(lane * 7 + 5) % LANES]);
            let span = texture.warp_span(geometry).expect("it does not repeat");
            let memory = arena
                .segment(BASE)
                .and_then(|segment| segment.host_bytes(span.start, span.end - span.start))
                .expect("in bounds");
            let texels = texture.sample_warp(geometry, [&row, &column], memory);
            for lane in 0..LANES {
                let coordinates = [row[lane], column[lane], 0];
                let point = Point {
                    layer: 0,
                    coordinates,
                    mode: CoordinateMode::Positions,
                    level: 0.0,
                    offset: [0; 3],
                };
                let mut read = |address: u64, bytes: u64| {
                    let word =
                        arena.read::<u32>((address - BASE) & !3, 1)[0] >> (8 * (address & 3));
                    Ok(u64::from(word & u32::MAX >> (32 - 8 * bytes)))
                };
                let expected = texture
                    .sample(geometry, &point, &mut read)
                    .expect("sampled outside of the image");
                let texel = texels.map(|channel| channel[lane]);
                for (bits, expected) in texel.into_iter().zip(expected) {
                    let are_nan = [bits, expected].map(|bits| f32::from_bits(bits).is_nan());
                    assert!(
                        bits == expected || texture.is_linear && are_nan == [true; 2],
                        "{texture:?} {coordinates:x?}: {bits:x} {expected:x}"
                    );
                }
            }
        }
    }

    #[test]
    fn texture_that_must_be_read_by_lanes_has_no_span() {
        let supported = texture(Channel::F32, 7);
        assert_eq!(
            supported.warp_span(Geometry::Plane),
            Some(BASE + 64..BASE + 64 + 4 * 128 + 7 * 8)
        );
        assert_eq!(supported.warp_span(Geometry::Volume), None);
        let changes: [fn(&mut Texture); 4] = [
            |texture| texture.is_buffer = true,
            |texture| texture.address_modes[1] = AddressMode::Wrap,
            |texture| texture.levels[0].base += 2,
            |texture| texture.levels.push(texture.levels[0]),
        ];
        for change in changes {
            let mut texture = supported.clone();
            change(&mut texture);
            assert_eq!(texture.warp_span(Geometry::Plane), None, "{texture:?}");
        }
    }
}
