//! The resolved addresses of a warp's access, checked together.

use crate::exec::memory::{Segment, Word};
use crate::exec::values::lane::LANES;

/// An address in one segment for each lane, in bounds and aligned for values of type `T`.
///
/// Created only by [`LaneAddresses::new`], and not kept beyond an instruction.
pub(crate) struct LaneAddresses<T> {
    host: *mut T,
    /// Offsets in bytes. Each leaves room for a value in the segment, and is a multiple of the
    /// value's size from an aligned address.
    offsets: [u64; LANES],
}

impl<T: Word> LaneAddresses<T> {
    /// Resolves addresses, if all are aligned and in bounds.
    #[inline(always)]
    pub(crate) fn new(segment: &Segment, addresses: &[u64; LANES]) -> Option<Self> {
        let last = segment.size.checked_sub(T::SIZE)?;
        let mut offsets = [0; LANES];
        // One test for all lanes: an offset is past the last valid one if it or its distance from
        // that one is negative.
        let mut outside = last;
        let mut misaligned = 0;
        for lane in 0..LANES {
            let offset = addresses[lane].wrapping_sub(segment.base);
            offsets[lane] = offset;
            outside |= offset | last.wrapping_sub(offset);
            misaligned |= addresses[lane];
        }
        let are_valid = outside >> 63 == 0 && misaligned & (T::SIZE - 1) == 0;
        are_valid.then_some(Self {
            host: segment.host.cast(),
            offsets,
        })
    }

    /// Returns `true` if the lanes `first..end` have one address.
    #[inline(always)]
    pub(crate) fn are_equal(&self, first: usize, end: usize) -> bool {
        let start = self.offsets[first];
        let mut differs = 0;
        for offset in &self.offsets[first..end] {
            differs |= offset ^ start;
        }
        differs == 0
    }

    /// Reads a lane's value.
    #[inline(always)]
    pub(crate) fn load(&self, lane: usize) -> T {
        // SAFETY: `new` checked that the address is aligned and in bounds of a segment. The
        // segment's provider keeps the bytes valid until the launch ends, with the host's address
        // congruent to the device's, and every access of the launch is atomic.
        unsafe { T::load(self.pointer(lane)) }
    }

    /// Writes a lane's value.
    #[inline(always)]
    pub(crate) fn store(&self, lane: usize, value: T) {
        // SAFETY: `new` checked that the address is aligned and in bounds of a segment. The
        // segment's provider keeps the bytes valid until the launch ends, with the host's address
        // congruent to the device's, and every access of the launch is atomic.
        unsafe { T::store(self.pointer(lane), value) }
    }

    #[inline(always)]
    fn pointer(&self, lane: usize) -> *mut T {
        self.host.wrapping_byte_add(self.offsets[lane] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::memory::Memory;
    use crate::exec::memory::tests::Arena;

    fn resolve(addresses: [u64; LANES]) -> Option<LaneAddresses<u32>> {
        let arena = Arena::new(0x1000, 100);
        LaneAddresses::new(
            &arena.segment(0x1000).expect("the arena begins there"),
            &addresses,
        )
    }

    fn with_lane(lane: usize, address: u64) -> [u64; LANES] {
        let mut addresses = [0x1004; LANES];
        addresses[lane] = address;
        addresses
    }

    #[test]
    fn every_lane_must_be_in_bounds_and_aligned() {
        for lane in [0, 1, 15, 16, 31] {
            for valid in [0x1000, 0x1060] {
                let resolved = resolve(with_lane(lane, valid));
                assert!(resolved.is_some(), "{lane} {valid:x}");
            }
            for invalid in [
                0xffc,
                0x1064,
                0x1061,
                0x1002,
                0,
                u64::MAX - 3,
                1 << 63,
                0x1000 | 1 << 63,
            ] {
                let resolved = resolve(with_lane(lane, invalid));
                assert!(resolved.is_none(), "{lane} {invalid:x}");
            }
        }
    }

    #[test]
    fn segment_smaller_than_a_value_cannot_hold_it() {
        let arena = Arena::new(0x1000, 7);
        let segment = arena.segment(0x1000).expect("the arena begins there");
        assert!(LaneAddresses::<u64>::new(&segment, &[0x1000; LANES]).is_none());
        assert!(LaneAddresses::<u32>::new(&segment, &[0x1000; LANES]).is_some());
    }
}
