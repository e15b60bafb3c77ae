//! Pictures: arrays whose elements follow from their places, with what a texture of them must give.

use std::sync::Arc;

use curium_driver::{Result, Stream};
use curium_memory::{
    AddressMode, Array, ArrayFlags, ArrayShape, FilterMode, Half, MipmappedArray, Surface, Texel, Texture,
    TextureFlags, TextureOptions,
};

use super::Prepared;
use super::matrix::half;
use crate::reference::real::F16;

/// What a channel of an element is.
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
    pub(super) const ALL: [Self; 8] =
        [Self::U8, Self::S8, Self::U16, Self::S16, Self::U32, Self::S32, Self::F16, Self::F32];

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::U8 | Self::S8 => 8,
            Self::U16 | Self::S16 | Self::F16 => 16,
            Self::U32 | Self::S32 | Self::F32 => 32,
        }
    }

    /// What PTX reads it as if it is read as it is.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::U8 | Self::U16 | Self::U32 => "u32",
            Self::S8 | Self::S16 | Self::S32 => "s32",
            Self::F16 | Self::F32 => "f32",
        }
    }

    /// What the bits in memory stand for.
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

    /// The fraction that the bits of a small integer stand for.
    fn fraction(self, bits: u32) -> f64 {
        let most = match self {
            Self::U8 => 255.0,
            Self::S8 => 127.0,
            Self::U16 => 65_535.0,
            Self::S16 => 32_767.0,
            _ => return self.value(bits),
        };
        (self.value(bits) / most).max(-1.0)
    }
}

/// An array, and how it is read.
#[derive(Clone, Copy)]
pub(super) struct Picture {
    pub(super) channel: Channel,
    pub(super) channels: usize,
    pub(super) shape: ArrayShape,
    pub(super) levels: u32,
    pub(super) flags: ArrayFlags,
    pub(super) options: TextureOptions,
}

impl Picture {
    /// A picture that is read as it is, by coordinates in elements, the nearest element beyond its edges.
    pub(super) fn new(channel: Channel, channels: usize, shape: ArrayShape) -> Self {
        let flags = if ["u32", "s32"].contains(&channel.kind()) {
            TextureFlags::READ_AS_INTEGER
        } else {
            TextureFlags::empty()
        };
        let options = TextureOptions::new().with_flags(flags).with_border_color([3.0; 4]);
        Self { channel, channels, shape, levels: 1, flags: ArrayFlags::empty(), options }
    }

    pub(super) fn is_normalized(&self) -> bool {
        self.options.flags.contains(TextureFlags::NORMALIZED_COORDINATES)
    }

    /// The extents of a level, the layers not halved.
    pub(super) fn extents(&self, level: u32, is_layered: bool) -> [usize; 3] {
        let half = |extent: usize| (extent >> level).max(1);
        let layers = self.shape.layers();
        [half(self.shape.width()), half(self.shape.rows()), if is_layered { layers } else { half(layers) }]
    }

    /// The bits of the channels of an element: of floating-point numbers, small ones.
    pub(super) fn element(&self, level: u32, [x, y, z]: [usize; 3]) -> [u32; 4] {
        std::array::from_fn(|channel| {
            let place = ((level as usize * 16 + z) * 64 + y) * 64 + x;
            let mixed = ((place * 4 + channel) as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let bits = ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32;
            let small = f64::from(bits % 33) / 2.0 - 8.0;
            match self.channel {
                Channel::F32 => (small as f32).to_bits(),
                Channel::F16 => half(small) as u32,
                _ => bits & u32::MAX >> (32 - self.channel.bits()),
            }
        })
    }

    /// The numbers that an element is read as.
    fn read(&self, level: u32, at: [usize; 3]) -> [f64; 4] {
        let is_srgb = self.options.flags.contains(TextureFlags::SRGB);
        let as_integer = self.options.flags.contains(TextureFlags::READ_AS_INTEGER);
        let element = self.element(level, at);
        std::array::from_fn(|channel| {
            let bits = element[channel];
            match self.channel.fraction(bits) {
                _ if as_integer => self.channel.value(bits),
                dark if is_srgb && channel < 3 && dark <= 0.040_45 => dark / 12.92,
                bright if is_srgb && channel < 3 => ((bright + 0.055) / 1.055).powf(2.4),
                value => value,
            }
        })
    }

    /// The place of an element that may be beyond the edges; `None` is the border.
    fn place(&self, index: i64, extent: usize) -> Option<usize> {
        let extent = extent as i64;
        let place = match self.options.address_modes[0] {
            AddressMode::Border if !(0..extent).contains(&index) => return None,
            AddressMode::Wrap if self.is_normalized() => index.rem_euclid(extent),
            AddressMode::Mirror if self.is_normalized() => {
                let (turn, rest) = (index.div_euclid(extent), index.rem_euclid(extent));
                if turn % 2 == 0 { rest } else { extent - 1 - rest }
            }
            _ => index.clamp(0, extent - 1),
        };
        Some(place as usize)
    }

    /// What a texture gives at coordinates in elements, so many of which count; the third place of layered pictures is the layer.
    pub(super) fn sample(&self, level: u32, at: &[f64], layer: Option<usize>) -> [f64; 4] {
        let extents = self.extents(level, layer.is_some());
        let layer = layer.map(|layer| layer.min(extents[2] - 1));
        let is_linear = self.options.filter == FilterMode::Linear;
        let corners = if is_linear { 1 << at.len() } else { 1 };
        let mut sum = [0.0; 4];
        for corner in 0..corners {
            let (mut share, mut place, mut is_inside) = (1.0, [0; 3], true);
            for (axis, coordinate) in at.iter().enumerate() {
                let (first, second) = if is_linear {
                    let moved = coordinate - 0.5;
                    (moved.floor(), moved - moved.floor())
                } else {
                    (coordinate.floor(), 0.0)
                };
                let step = corner >> axis & 1;
                share *= if step == 1 { second } else { 1.0 - second };
                match self.place(first as i64 + step, extents[axis]) {
                    Some(found) => place[axis] = found,
                    None => is_inside = false,
                }
            }
            place[2] = layer.unwrap_or(place[2]);
            let border = self.options.border_color.map(f64::from);
            let found = if is_inside { self.read(level, place) } else { border };
            sum.iter_mut().zip(found).for_each(|(sum, value)| *sum += share * value);
        }
        sum
    }

    /// Makes the array, and its texture the first word of the table; a surface of it is the second if it can be one.
    pub(super) fn prepare(self) -> impl Fn(&Stream) -> Result<Prepared> {
        macro_rules! prepare {
            ($stream:ident, $($channel:ident: $number:ty),*) => {
                match (self.channel, self.channels) {
                    $(
                        (Channel::$channel, 1) => self.make($stream, |[a, ..]| <$number>::of(a)),
                        (Channel::$channel, 2) => self.make($stream, |[a, b, ..]| [a, b].map(<$number>::of)),
                        (Channel::$channel, _) => self.make($stream, |all| all.map(<$number>::of)),
                    )*
                }
            };
        }
        move |stream| prepare!(stream, U8: u8, S8: i8, U16: u16, S16: i16, U32: u32, S32: i32, F16: Half, F32: f32)
    }

    fn make<T: Texel>(&self, stream: &Stream, element: impl Fn([u32; 4]) -> T) -> Result<Prepared> {
        let is_layered = !matches!(self.shape.kind(), curium_memory::ArrayKind::Solid);
        let elements = |level: u32| -> Vec<T> {
            let [width, height, depth] = self.extents(level, is_layered);
            (0..width * height * depth)
                .map(|place| {
                    element(self.element(level, [place % width, place / width % height, place / width / height]))
                })
                .collect()
        };
        if self.levels > 1 {
            let array = MipmappedArray::<T>::new(stream, self.shape, self.levels, self.flags)?;
            for level in 0..self.levels {
                array.level(level)?.copy_from_slice(&elements(level))?;
            }
            let texture = Texture::of_mipmapped(&Arc::new(array), &self.options, None)?;
            return Ok(Prepared { table: [texture.as_raw(), 0, 0, 0], _kept: Box::new(texture) });
        }
        let array = Arc::new(Array::from_slice(stream, self.shape, self.flags, &elements(0))?);
        let texture = Texture::of_array(&array, &self.options)?;
        let surface = if self.flags.contains(ArrayFlags::SURFACE) { Some(Surface::new(&array)?) } else { None };
        let table = [texture.as_raw(), surface.as_ref().map_or(0, Surface::as_raw), 0, 0];
        Ok(Prepared { table, _kept: Box::new((texture, surface)) })
    }
}

/// A channel in memory.
trait Number {
    fn of(bits: u32) -> Self;
}

macro_rules! numbers {
    ($($number:ty = $of:expr;)*) => {
        $(
            impl Number for $number {
                fn of(bits: u32) -> Self {
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
    Half = |bits| Half(bits as u16);
    f32 = f32::from_bits;
}
