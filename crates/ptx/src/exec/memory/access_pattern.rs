//! Access patterns of a whole warp: the addresses of each half warp have a constant stride.

use std::hint::black_box;
use std::ops::Range;

use crate::exec::values::lane::{HALF, LANES};

/// The addresses of a warp's access, if those of each half warp have a constant stride.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessPattern {
    /// The address of each half's first lane.
    pub(crate) starts: [u64; 2],
    /// The distance between the addresses of neighboring lanes in bytes: zero, or the size of the
    /// element or vector that a lane accesses.
    pub(crate) stride: u64,
}

/// The offsets of the lanes from the start of a half, for strides of 0, 1, 2, 4, 8, 16 and 32
/// bytes.
static RAMPS: [[u64; LANES]; 7] = {
    let mut ramps = [[0; LANES]; 7];
    let mut ramp = 1;
    while ramp < 7 {
        let mut lane = 0;
        while lane < LANES {
            ramps[ramp][lane] = ((lane % HALF) << (ramp - 1)) as u64;
            lane += 1;
        }
        ramp += 1;
    }
    ramps
};

impl AccessPattern {
    /// Returns the distance between lanes with the same address; 0 if all addresses differ.
    #[inline(always)]
    pub(crate) fn distance(&self) -> i8 {
        if self.stride == 0 {
            1
        } else if self.starts[0] == self.starts[1] {
            HALF as i8
        } else {
            0
        }
    }

    /// Returns the pattern of the 32-bit addresses in a register, if they have one.
    #[inline(always)]
    pub(crate) fn detect_narrow(row: &[u32; LANES], width: u64) -> Option<Self> {
        let mut addresses = [0; LANES];
        for lane in 0..LANES {
            addresses[lane] = row[lane].into();
        }
        Self::detect(&addresses, width)
    }

    /// Returns the pattern of addresses, if each half has a stride of 0 or `width` bytes.
    #[inline(always)]
    pub(crate) fn detect(addresses: &[u64; LANES], width: u64) -> Option<Self> {
        let stride = if addresses[0] == addresses[1] {
            0
        } else {
            width
        };
        let ramp = if stride == 0 {
            0
        } else {
            width.trailing_zeros() as usize + 1
        };
        let ramp = RAMPS.get(ramp)?;
        let starts = [addresses[0], addresses[HALF]];
        // Two lanes are compared with themselves. Without `black_box`, the compiler would treat
        // them specially, and not vectorize the loop.
        let (addresses, ramp) = black_box((addresses, ramp));
        let mut differs = 0;
        for lane in 0..LANES {
            differs |= addresses[lane]
                .wrapping_sub(ramp[lane])
                .wrapping_sub(starts[lane / HALF]);
        }
        (differs == 0).then_some(Self { starts, stride })
    }

    /// Returns the pattern of the addresses plus an offset.
    #[inline(always)]
    pub(crate) fn at(self, offset: i32) -> Self {
        Self {
            starts: self
                .starts
                .map(|start| start.wrapping_add_signed(offset.into())),
            ..self
        }
    }

    /// Returns the address ranges of accesses of `bytes` bytes. If the ranges of the halves are
    /// equal or adjacent, the second is empty.
    #[inline(always)]
    pub(crate) fn ranges(self, bytes: u64) -> [Range<u64>; 2] {
        let [low, high] = self.starts;
        let length = (HALF as u64 - 1) * self.stride + bytes;
        let [low_end, high_end] = [low, high].map(|start| start.saturating_add(length));
        if low == high {
            [low..low_end, 0..0]
        } else if low_end == high {
            [low..high_end, 0..0]
        } else {
            [low..low_end, high..high_end]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(low: u64, high: u64, stride: u64) -> [u64; LANES] {
        std::array::from_fn(|lane| [low, high][lane / HALF] + (lane % HALF) as u64 * stride)
    }

    #[test]
    fn patterns_are_uniform_or_consecutive() {
        for width in [1, 2, 4, 8, 16, 32] {
            for stride in [0, width] {
                assert_eq!(
                    AccessPattern::detect(&strided(0x1000, 0x9000, stride), width),
                    Some(AccessPattern {
                        starts: [0x1000, 0x9000],
                        stride
                    }),
                    "{width} {stride}"
                );
            }
            assert_eq!(
                AccessPattern::detect(&strided(0x1000, 0x9000, 3 * width), width),
                None
            );
            for lane in 0..LANES {
                let mut addresses = strided(0x1000, 0x9000, width);
                addresses[lane] ^= 0x100_0000;
                assert_eq!(
                    AccessPattern::detect(&addresses, width),
                    None,
                    "{width} {lane}"
                );
            }
        }
        assert_eq!(AccessPattern::detect(&strided(0, 0, 64), 64), None);
    }

    fn ranges(starts: [u64; 2], stride: u64) -> [Range<u64>; 2] {
        AccessPattern { starts, stride }.ranges(4)
    }

    #[test]
    fn adjacent_ranges_are_merged() {
        assert_eq!(ranges([64, 128], 4), [64..192, 0..0]);
        assert_eq!(ranges([64, 64], 4), [64..128, 0..0]);
        assert_eq!(ranges([64, 132], 4), [64..128, 132..196]);
        assert_eq!(ranges([64, 0], 0), [64..68, 0..4]);
        assert_eq!(ranges([u64::MAX - 3, 0], 0), [u64::MAX - 3..u64::MAX, 0..4]);
    }
}
