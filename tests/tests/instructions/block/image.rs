//! Test images: arrays with elements computed from their coordinates, and the expected results of
//! texture fetches.

use std::sync::Arc;

use curium_driver::{Result, Stream};
use curium_memory::{
    AddressMode, Array, ArrayFlags, ArrayShape, FilterMode, MipmappedArray, Surface, Texel,
    Texture, TextureFlags, TextureOptions,
};
use half::f16;

use super::Prepared;
use super::matrix::half;
use crate::reference::real::F16;

/// The format of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    F16,
    F32,
}

impl Channel {
    pub(super) const ALL: [Self; 8] = [
        Self::U8,
        Self::S8,
        Self::U16,
        Self::S16,
        Self::U32,
        Self::S32,
        Self::F16,
        Self::F32,
    ];

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::U8 | Self::S8 => 8,
            Self::U16 | Self::S16 | Self::F16 => 16,
            Self::U32 | Self::S32 | Self::F32 => 32,
        }
    }

    /// Returns the PTX type of an unconverted fetch.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::U8 | Self::U16 | Self::U32 => "u32",
            Self::S8 | Self::S16 | Self::S32 => "s32",
            Self::F16 | Self::F32 => "f32",
        }
    }

    /// Returns the number represented by the bits in memory.
    pub(super) fn value(self, bits: u32) -> f64 {
        match self {
            Self::F32 => f32::from_bits(bits).into(),
            Self::F16 => F16.value(bits.into()),
            Self::S8 => f64::from(bits as i8),
            Self::S16 => f64::from(bits as i16),
            Self::S32 => f64::from(bits.cast_signed()),
            Self::U8 | Self::U16 | Self::U32 => bits.into(),
        }
    }

    /// Returns the small integer that represents 1.0 in a normalized fetch.
    fn one(self) -> Option<f64> {
        match self {
            Self::U8 => Some(255.0),
            Self::S8 => Some(127.0),
            Self::U16 => Some(65_535.0),
            Self::S16 => Some(32_767.0),
            _ => None,
        }
    }

    /// Returns the normalized value of a small integer.
    fn fraction(self, bits: u32) -> f64 {
        self.one()
            .map_or(self.value(bits), |one| (self.value(bits) / one).max(-1.0))
    }

    /// Returns the normalized value nearest to a number.
    fn nearest_fraction(self, value: f64) -> f64 {
        self.one().map_or(value, |one| (value * one).round() / one)
    }
}

/// An array, and the options of its texture.
#[derive(Clone, Copy)]
pub(super) struct Picture {
    pub(super) channel: Channel,
    pub(super) channels: usize,
    pub(super) shape: ArrayShape,
    pub(super) levels: u32,
    pub(super) flags: ArrayFlags,
    pub(super) options: TextureOptions,
    /// The options of a second texture of the array, which is the second word of the table.
    pub(super) sampler: Option<TextureOptions>,
}

impl Picture {
    /// Creates an image with unnormalized coordinates, element read mode and clamped addresses.
    pub(super) fn new(channel: Channel, channels: usize, shape: ArrayShape) -> Self {
        let flags = if ["u32", "s32"].contains(&channel.kind()) {
            TextureFlags::READ_AS_INTEGER
        } else {
            TextureFlags::empty()
        };
        let options = TextureOptions::new()
            .with_flags(flags)
            .with_border_color([3.0; 4]);
        Self {
            channel,
            channels,
            shape,
            levels: 1,
            flags: ArrayFlags::empty(),
            options,
            sampler: None,
        }
    }

    pub(super) fn is_normalized(&self) -> bool {
        self.options
            .flags
            .contains(TextureFlags::NORMALIZED_COORDINATES)
    }

    /// Returns the extents of a level; the number of layers is not halved.
    pub(super) fn extents(&self, level: u32, is_layered: bool) -> [usize; 3] {
        let half = |extent: usize| (extent >> level).max(1);
        let layers = self.shape.layers();
        [
            half(self.shape.width()),
            half(self.shape.rows()),
            if is_layered { layers } else { half(layers) },
        ]
    }

    /// Returns the channel bits of an element; floating-point channels contain small numbers.
    pub(super) fn element(&self, level: u32, [x, y, z]: [usize; 3]) -> [u32; 4] {
        std::array::from_fn(|channel| {
            let index = ((level as usize * 16 + z) * 64 + y) * 64 + x;
            let mixed = ((index * 4 + channel) as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let bits = ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32;
            let small = f64::from(bits % 33) / 2.0 - 8.0;
            match self.channel {
                Channel::F32 => (small as f32).to_bits(),
                Channel::F16 => half(small) as u32,
                _ => bits & u32::MAX >> (32 - self.channel.bits()),
            }
        })
    }

    fn reads_integers(&self) -> bool {
        self.options.flags.contains(TextureFlags::READ_AS_INTEGER)
    }

    /// Returns the result of fetching an element; missing channels are zero.
    pub(super) fn read(&self, level: u32, at: [usize; 3]) -> [f64; 4] {
        let is_srgb = self.options.flags.contains(TextureFlags::SRGB);
        let element = self.element(level, at);
        std::array::from_fn(|channel| {
            let bits = element[channel];
            match self.channel.fraction(bits) {
                _ if channel >= self.channels => 0.0,
                _ if self.reads_integers() => self.channel.value(bits),
                dark if is_srgb && channel < 3 && dark <= 0.040_45 => dark / 12.92,
                bright if is_srgb && channel < 3 => ((bright + 0.055) / 1.055).powf(2.4),
                value => value,
            }
        })
    }

    /// Returns the result beyond the boundary on an H100: for integers the low bits of the border
    /// color, otherwise the nearest number of the element's format.
    fn border(&self) -> [f64; 4] {
        let number = |value: f32| match self.channel {
            Channel::U32 | Channel::S32 => self.channel.value(value.to_bits()),
            Channel::F32 => value.into(),
            // The bits that `f16` lacks are truncated.
            Channel::F16 => {
                f32::from_bits(value.clamp(-65_504.0, 65_504.0).to_bits() & !0x1fff).into()
            }
            _ if self.reads_integers() => self
                .channel
                .value(value.to_bits() & u32::MAX >> (32 - self.channel.bits())),
            Channel::U8 | Channel::U16 => {
                self.channel.nearest_fraction(value.clamp(0.0, 1.0).into())
            }
            Channel::S8 | Channel::S16 => {
                self.channel.nearest_fraction(value.clamp(-1.0, 1.0).into())
            }
        };
        let color = self.options.border_color;
        std::array::from_fn(|channel| {
            if channel < self.channels {
                number(color[channel])
            } else {
                0.0
            }
        })
    }

    /// Returns the index of an element that may be out of bounds; `None` is the border.
    fn position(&self, index: i64, extent: usize) -> Option<usize> {
        let extent = extent as i64;
        let wrapped = match self.options.address_modes[0] {
            AddressMode::Border if !(0..extent).contains(&index) => return None,
            AddressMode::Wrap if self.is_normalized() => index.rem_euclid(extent),
            AddressMode::Mirror if self.is_normalized() => {
                let turn = index.div_euclid(extent);
                let remainder = index.rem_euclid(extent);
                if turn % 2 == 0 {
                    remainder
                } else {
                    extent - 1 - remainder
                }
            }
            _ => index.clamp(0, extent - 1),
        };
        Some(wrapped as usize)
    }

    /// Returns the result of a texture fetch at unnormalized coordinates; the third coordinate of a
    /// layered image is its layer.
    pub(super) fn sample(&self, level: u32, at: &[f64], layer: Option<usize>) -> [f64; 4] {
        let extents = self.extents(level, layer.is_some());
        let layer = layer.map(|layer| layer.min(extents[2] - 1));
        let is_linear = self.options.filter == FilterMode::Linear;
        let corners = if is_linear { 1 << at.len() } else { 1 };
        // The position of the first of two elements in units of 1/256; the remainder is the weight
        // of the second.
        let steps: Vec<i64> = at
            .iter()
            .zip(extents)
            .map(|(coordinate, extent)| match is_linear {
                true if self.clamps() => ((256.0 * (coordinate - 0.5) + 0.5).floor() as i64)
                    .clamp(0, 256 * (extent as i64 - 1)),
                true => (256.0 * (coordinate - 0.5) + 0.5).floor() as i64,
                false => 256 * coordinate.floor() as i64,
            })
            .collect();
        let mut sum = [0.0; 4];
        for corner in 0..corners {
            let mut coordinates = [0; 3];
            let mut is_inside = true;
            for (axis, steps) in steps.iter().enumerate() {
                match self.position(steps.div_euclid(256) + (corner >> axis & 1), extents[axis]) {
                    Some(found) => coordinates[axis] = found,
                    None => is_inside = false,
                }
            }
            coordinates[2] = layer.unwrap_or(coordinates[2]);
            let element = if is_inside {
                self.read(level, coordinates)
            } else {
                self.border()
            };
            let share = share(corner, &steps);
            sum.iter_mut()
                .zip(element)
                .for_each(|(sum, value)| *sum += share * value);
        }
        if self.channel == Channel::F16 {
            sum.map(nearest_half)
        } else {
            sum
        }
    }

    /// Returns `true` if out-of-bounds coordinates are clamped.
    fn clamps(&self) -> bool {
        match self.options.address_modes[0] {
            AddressMode::Clamp => true,
            AddressMode::Border => false,
            _ => !self.is_normalized(),
        }
    }

    /// Creates the array; its texture is the first word of the table, and its surface the second if
    /// it supports surfaces.
    pub(super) fn prepare(self) -> impl Fn(&Stream) -> Result<Prepared> {
        macro_rules! prepare {
            ($stream:ident, $($channel:ident: $number:ty),*) => {
                match (self.channel, self.channels) {
                    $(
                        (Channel::$channel, 1) => self.make($stream, |[a, ..]| <$number>::from_low_bits(a)),
                        (Channel::$channel, 2) => self.make($stream, |[a, b, ..]| [a, b].map(<$number>::from_low_bits)),
                        (Channel::$channel, _) => self.make($stream, |all| all.map(<$number>::from_low_bits)),
                    )*
                }
            };
        }
        move |stream| prepare!(stream, U8: u8, S8: i8, U16: u16, S16: i16, U32: u32, S32: i32, F16: f16, F32: f32)
    }

    fn make<T: Texel>(&self, stream: &Stream, element: impl Fn([u32; 4]) -> T) -> Result<Prepared> {
        let is_layered = !matches!(self.shape.kind(), curium_memory::ArrayKind::Regular);
        let elements = |level: u32| -> Vec<T> {
            let [width, height, depth] = self.extents(level, is_layered);
            (0..width * height * depth)
                .map(|position| {
                    element(self.element(
                        level,
                        [
                            position % width,
                            position / width % height,
                            position / width / height,
                        ],
                    ))
                })
                .collect()
        };
        if self.levels > 1 {
            let array = MipmappedArray::<T>::new(stream, self.shape, self.levels, self.flags)?;
            for level in 0..self.levels {
                array.level(level)?.copy_from_slice(&elements(level))?;
            }
            let texture = Texture::from_mipmapped_array(&Arc::new(array), &self.options, None)?;
            return Ok(Prepared {
                table: [texture.as_raw(), 0, 0, 0],
                _kept: Box::new(texture),
            });
        }
        let array = Arc::new(Array::from_slice(
            stream,
            &elements(0),
            self.shape,
            self.flags,
        )?);
        let texture = Texture::from_array(&array, &self.options)?;
        let surface = if self.flags.contains(ArrayFlags::SURFACE) {
            Some(Surface::new(&array)?)
        } else {
            None
        };
        let sampler = self
            .sampler
            .map(|options| Texture::from_array(&array, &options))
            .transpose()?;
        let second = surface
            .as_ref()
            .map(Surface::as_raw)
            .or(sampler.as_ref().map(Texture::as_raw));
        let table = [texture.as_raw(), second.unwrap_or(0), 0, 0];
        Ok(Prepared {
            table,
            _kept: Box::new((texture, surface, sampler)),
        })
    }
}

/// Returns the weight of a corner as an H100 computes it: the weight of a layer is split between
/// its two columns, and the weight of a column between its two rows, in units of 1/256. The second
/// column, the first row of the first column and the second row of the second are rounded to
/// nearest, and the others receive the remainder.
fn share(corner: i64, steps: &[i64]) -> f64 {
    let second = |axis: usize| steps.get(axis).map_or(0, |steps| steps.rem_euclid(256));
    let is_second = |axis: usize| corner >> axis & 1 == 1;
    let nearest = |parts: i64| (parts + 128).div_euclid(256);
    let layer = if is_second(2) {
        second(2)
    } else {
        256 - second(2)
    };
    let right = nearest(layer * second(0));
    let column = if is_second(0) { right } else { layer - right };
    let row = if is_second(1) {
        second(1)
    } else {
        256 - second(1)
    };
    let parts = if is_second(0) == is_second(1) {
        nearest(column * row)
    } else {
        column - nearest(column * (256 - row))
    };
    parts as f64 / 256.0
}

/// Returns the nearest `f16` number, ties away from zero, as an H100 rounds interpolated halves.
fn nearest_half(value: f64) -> f64 {
    let ulp = 2_f64.powi(value.abs().max(2_f64.powi(-14)).log2().floor() as i32 - 10);
    (value / ulp).round() * ulp
}

/// A channel in memory.
trait Number {
    fn from_low_bits(bits: u32) -> Self;
}

macro_rules! numbers {
    ($($number:ty = $of:expr;)*) => {
        $(
            impl Number for $number {
                fn from_low_bits(bits: u32) -> Self {
                    ($of)(bits)
                }
            }
        )*
    };
}

numbers! {
    u8 = |bits| bits as u8;
    i8 = |bits| bits as i8;
    u16 = |bits| bits as u16;
    i16 = |bits| bits as i16;
    u32 = |bits| bits;
    i32 = u32::cast_signed;
    f16 = |bits| f16::from_bits(bits as u16);
    f32 = f32::from_bits;
}
