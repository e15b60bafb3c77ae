//! Elements of images: their representations in memory and in registers.

use super::Read;
use crate::exec::check::report::Trap;
use crate::exec::values::exact::{self, Rounding};
use crate::exec::values::lane::LANES;
use crate::exec::values::narrow::Half;

/// The format of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// The format of each channel.
    pub channel: Channel,
    /// The number of channels: 1, 2 or 4.
    pub channels: u32,
}

/// The format of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
}

/// The conversion of channels on reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Returns integers as integers and not as fractions.
    pub(super) integers: bool,
    pub(super) is_srgb: bool,
}

impl Reading {
    /// Returns the conversion of a channel. The fourth channel is not a color.
    #[inline(always)]
    pub(super) fn for_channel(self, channel: usize) -> Self {
        Self {
            is_srgb: self.is_srgb && channel < 3,
            ..self
        }
    }
}

/// The channels of an element as registers hold them.
pub(crate) type Texel = [u32; 4];

/// The layout of the four channels in the registers of a texture instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channels {
    /// Each channel in 32 bits.
    Words,
    /// Each channel as a 16-bit number.
    Halves,
    /// Two channels per register, as 16-bit numbers.
    Pairs,
}

impl Channels {
    /// Returns the contents of the registers. Unused registers are not written.
    pub(crate) fn registers(self, texel: Texel) -> [u32; 4] {
        if self == Self::Words {
            return texel;
        }
        let halves = texel.map(|bits| Channel::F16.stored(bits));
        if self == Self::Halves {
            return halves;
        }
        let [red, green, blue, alpha] = halves;
        [red | green << 16, blue | alpha << 16, 0, 0]
    }
}

impl Element {
    /// Returns the number of bytes of an element.
    #[must_use]
    #[inline]
    pub fn bytes(self) -> u64 {
        self.channel.bytes() * u64::from(self.channels)
    }

    /// Returns `true` if reads return floating-point numbers, which can be filtered.
    #[inline]
    pub(super) fn returns_floats(self, reading: Reading) -> bool {
        match self.channel {
            Channel::U8 | Channel::I8 | Channel::U16 | Channel::I16 => !reading.integers,
            Channel::U32 | Channel::I32 => false,
            Channel::F16 | Channel::F32 => true,
        }
    }

    /// Reads the element at an address. Missing channels are 0.
    #[inline]
    pub(super) fn read(
        self,
        address: u64,
        reading: Reading,
        read: &mut impl Read,
    ) -> Result<Texel, Trap> {
        let mut texel = [0; 4];
        for (index, channel) in (0..u64::from(self.channels)).zip(&mut texel) {
            let bits = read(address + index * self.channel.bytes(), self.channel.bytes())? as u32;
            *channel = self
                .channel
                .value(bits, reading.for_channel(index as usize));
        }
        Ok(texel)
    }

    /// Rounds a filtered element as hardware does: 16-bit channels to the nearest f16.
    #[inline]
    pub(super) fn rounded(self, blend: Texel) -> Texel {
        if self.channel == Channel::F16 {
            blend.map(nearest_half)
        } else {
            blend
        }
    }

    /// Returns a border color in the format of elements: the low bits for integers, the nearest
    /// value for other formats.
    pub(super) fn border(self, color: [f32; 4], reading: Reading) -> Texel {
        let mut texel = [0; 4];
        for (index, channel) in texel.iter_mut().enumerate().take(self.channels as usize) {
            *channel = self
                .channel
                .border(color[index], reading.for_channel(index));
        }
        texel
    }
}

impl Channel {
    /// Returns `true` for signed integers.
    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32)
    }

    /// Converts the value of a register to the bits in memory: the nearest integer or number of the
    /// format.
    pub(crate) fn stored(self, bits: u32) -> u32 {
        match self {
            Self::U8 => bits.min(0xff),
            Self::U16 => bits.min(0xffff),
            Self::I8 => bits.cast_signed().clamp(-0x80, 0x7f).cast_unsigned(),
            Self::I16 => bits.cast_signed().clamp(-0x8000, 0x7fff).cast_unsigned(),
            Self::F16 if f32::from_bits(bits).is_nan() => 0x7fff,
            Self::F16 => {
                exact::narrow(f32::from_bits(bits).into(), exact::F16, Rounding::Nearest) as u32
            }
            Self::U32 | Self::I32 | Self::F32 => bits,
        }
    }

    /// Converts a component of the border color to the value of a register.
    fn border(self, value: f32, reading: Reading) -> u32 {
        let bits = value.to_bits();
        let value = if reading.is_srgb && !reading.integers {
            encoded(value)
        } else {
            value
        };
        match self {
            Self::U8 if reading.integers => bits & 0xff,
            Self::U16 if reading.integers => bits & 0xffff,
            Self::I8 | Self::I16 if reading.integers => self.value(bits, reading),
            Self::U8 => self.value(quantized(value, 0.0, 255.0), reading),
            Self::U16 => self.value(quantized(value, 0.0, 65_535.0), reading),
            Self::I8 => self.value(quantized(value, -1.0, 127.0), reading),
            Self::I16 => self.value(quantized(value, -1.0, 32_767.0), reading),
            Self::F16 if value.is_finite() => self.value(
                exact::narrow(value.into(), exact::F16, Rounding::Zero) as u32,
                reading,
            ),
            Self::U32 | Self::I32 | Self::F16 | Self::F32 => bits,
        }
    }

    #[inline]
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
        }
    }

    /// Converts the bits in memory to the values of registers, in all lanes.
    #[inline(always)]
    pub(super) fn values(self, row: &mut [u32; LANES], reading: Reading) {
        match self {
            Self::U32 | Self::I32 | Self::F32 => {}
            Self::F16 => {
                for bits in row {
                    *bits = Half(*bits as u16).to_f32().to_bits();
                }
            }
            _ => {
                for bits in row {
                    *bits = self.value(*bits, reading);
                }
            }
        }
    }

    /// Converts the bits in memory to the value of a register.
    #[inline]
    fn value(self, bits: u32, reading: Reading) -> u32 {
        match self {
            Self::U8 if reading.is_srgb && !reading.integers => {
                linear(bits as f32 / 255.0).to_bits()
            }
            Self::U8 if !reading.integers => fraction(bits as f32, 255.0),
            Self::U16 if !reading.integers => fraction(bits as f32, 65_535.0),
            Self::I8 if !reading.integers => fraction(f32::from(bits as i8), 127.0),
            Self::I16 if !reading.integers => fraction(f32::from(bits as i16), 32_767.0),
            Self::I8 => i32::from(bits as i8).cast_unsigned(),
            Self::I16 => i32::from(bits as i16).cast_unsigned(),
            Self::F16 => Half(bits as u16).to_f32().to_bits(),
            Self::U8 | Self::U16 | Self::U32 | Self::I32 | Self::F32 => bits,
        }
    }
}

/// Returns the bits of `value / max`, at least -1.
#[inline]
fn fraction(value: f32, max: f32) -> u32 {
    (value / max).max(-1.0).to_bits()
}

/// Returns the integer with the fraction `value` of `max`, clamped to `min` and 1.
///
/// Half a step rounds down, and on hardware so do some fractions up to 0.55.
fn quantized(value: f32, min: f32, max: f32) -> u32 {
    let steps = (f64::from(value.clamp(min, 1.0)) * f64::from(max)).abs() - 0.5;
    (steps.ceil().copysign(value.into()) as i32).cast_unsigned()
}

/// Returns the nearest f16, ties away from zero.
fn nearest_half(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    let exponent = (value.abs().to_bits() >> 23).cast_signed() - 127;
    let step = 2_f32.powi(exponent.max(-14) - 10);
    if value.is_finite() {
        ((value / step).round() * step).to_bits()
    } else {
        bits
    }
}

/// Converts a linear value to sRGB.
fn encoded(brightness: f32) -> f32 {
    if brightness <= 0.003_130_8 {
        brightness * 12.92
    } else {
        1.055 * brightness.powf(1.0 / 2.4) - 0.055
    }
}

/// Converts an sRGB value to a linear one.
fn linear(value: f32) -> f32 {
    if value <= 0.040_45 {
        value / 12.92
    } else {
        ((value + 0.055) / 1.055).powf(2.4)
    }
}

#[cfg(test)]
mod tests {
    use crate::exec::image::element::*;

    const FRACTIONS: Reading = Reading {
        integers: false,
        is_srgb: false,
    };

    const INTEGERS: Reading = Reading {
        integers: true,
        is_srgb: false,
    };

    #[test]
    fn integers_are_read_as_fractions_or_integers() {
        for (channel, bits, expected) in [
            (Channel::U8, 255, 1.0),
            (Channel::I8, 0x80, -1.0),
            (Channel::I8, 127, 1.0),
            (Channel::U16, 65_535, 1.0),
            (Channel::I16, 0x8000, -1.0),
        ] {
            let value = f32::from_bits(channel.value(bits, FRACTIONS));
            assert_eq!(value, expected, "{channel:?} {bits:#x}");
        }
        assert_eq!(Channel::I8.value(0x80, INTEGERS), 0xffff_ff80);
        assert_eq!(Channel::U8.value(0x80, INTEGERS), 0x80);
    }

    #[test]
    fn channels_that_are_missing_are_zero() -> Result<(), Trap> {
        let element = Element {
            channel: Channel::U16,
            channels: 2,
        };
        let texel = element.read(10, INTEGERS, &mut |address, bytes| Ok(address + bytes))?;
        assert_eq!(texel, [12, 14, 0, 0]);
        Ok(())
    }

    #[test]
    fn border_color_is_converted_to_the_element_format() {
        let color = [3.0, -2.5, 1.0 / 3.0, 1e10];
        for (channel, expected) in [
            (Channel::U8, [1.0, 0.0, 85.0 / 255.0, 1.0]),
            (Channel::I8, [1.0, -1.0, 42.0 / 127.0, 1.0]),
            (Channel::F16, [3.0, -2.5, 0.333_251_95, 65_504.0]),
            (Channel::F32, color),
        ] {
            let element = Element {
                channel,
                channels: 4,
            };
            let border = element.border(color, FRACTIONS).map(f32::from_bits);
            assert_eq!(border, expected, "{channel:?}");
        }
        // The low bits.
        for (channel, expected) in [
            (Channel::U16, [0, 0, 0xaaab, 0x02f9]),
            (Channel::I8, [0, 0, 0xffff_ffab, 0xffff_fff9]),
        ] {
            let element = Element {
                channel,
                channels: 4,
            };
            assert_eq!(element.border(color, INTEGERS), expected, "{channel:?}");
        }
        let two_channels = Element {
            channel: Channel::U32,
            channels: 2,
        };
        let border = two_channels.border(color, FRACTIONS);
        assert_eq!(border[1..], [0xc020_0000, 0, 0]);
    }

    #[test]
    fn blended_halves_round_to_nearest() {
        let tie = 1.0 + 1.0 / 2048.0;
        let farther = 1.0 + 1.0 / 1024.0;
        let least = 2_f32.powi(-24);
        for (value, expected) in [
            (tie, farther),
            (-tie, -farther),
            (1.25, 1.25),
            (0.0, 0.0),
            (0.5 * least, least),
            (0.4 * least, 0.0),
            (-1.5 * least, -2.0 * least),
            (f32::INFINITY, f32::INFINITY),
        ] {
            let rounded = f32::from_bits(nearest_half(value.to_bits()));
            assert_eq!(rounded, expected, "{value}");
        }
    }

    #[test]
    fn colors_in_srgb_are_read_as_brightness() {
        assert_eq!(linear(0.0), 0.0);
        assert_eq!(linear(1.0), 1.0);
        assert!((linear(encoded(0.3)) - 0.3).abs() < 1e-6);
        assert!((linear(188.0 / 255.0) - 0.5).abs() < 0.003);
    }
}
