//! The memory of an access pattern, for accesses at different offsets.

use std::ptr;

use super::access_pattern::AccessPattern;
use super::{HostBytes, Segment};
use crate::exec::memory::AccessMode;
use crate::exec::values::lane::HALF;

/// The memory of an access pattern in one segment, which instructions access at different offsets.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct StridedMemory {
    /// The host memory of each half warp, without an offset.
    hosts: [*mut u8; 2],
    /// The position in the segment of the half warp with the lower addresses, without an offset.
    first: u64,
    /// The last position of that half warp at which both are in bounds.
    last: u64,
    /// The length of the memory of a half warp in bytes.
    length: u64,
    /// The distance between the addresses of neighboring lanes, in bytes.
    pub(crate) stride: u64,
    writable: bool,
}

impl Default for StridedMemory {
    fn default() -> Self {
        Self {
            hosts: [ptr::null_mut(); 2],
            first: 1,
            last: 0,
            length: 0,
            stride: 0,
            writable: false,
        }
    }
}

impl StridedMemory {
    /// Returns the memory of accesses of `bytes` bytes for each lane. Returns `None` if they exceed
    /// the segment at every offset.
    pub(crate) fn new(segment: &Segment, pattern: AccessPattern, bytes: u64) -> Option<Self> {
        let AccessPattern { starts, stride } = pattern;
        let [low, high] = starts;
        let length = (HALF as u64 - 1) * stride + bytes;
        let hosts = starts.map(|start| {
            segment
                .host
                .wrapping_add(start.wrapping_sub(segment.base) as usize)
        });
        Some(Self {
            hosts,
            first: low.min(high).wrapping_sub(segment.base),
            last: segment
                .size
                .checked_sub(low.abs_diff(high))?
                .checked_sub(length)?,
            length,
            stride,
            writable: segment.writable,
        })
    }

    /// Returns the memory of an element at an offset from each lane's bytes, if the bytes of all
    /// lanes are in bounds there.
    #[inline(always)]
    pub(crate) fn at(&self, offset: u64, element: u64, mode: AccessMode) -> Option<[HostBytes; 2]> {
        let is_inside = self.first.wrapping_add(offset) <= self.last && element <= self.length;
        if !is_inside || mode == AccessMode::Write && !self.writable {
            return None;
        }
        let start = offset.wrapping_add(element) as usize;
        Some(self.hosts.map(|host| HostBytes {
            start: host.wrapping_add(start),
            len: self.length - element,
        }))
    }

    /// Returns `true` if both half warps are in bounds at all offsets between the lowest and the
    /// highest.
    #[inline(always)]
    pub(crate) fn covers(&self, offsets: [i32; 2]) -> bool {
        offsets
            .into_iter()
            .all(|offset| self.first.wrapping_add_signed(offset.into()) <= self.last)
    }

    /// Returns the host address of each half warp at an offset.
    #[inline(always)]
    pub(crate) fn starts<T>(&self, offset: i32) -> [*const T; 2] {
        self.hosts
            .map(|host| host.wrapping_offset(offset as isize).cast_const().cast())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Memory as _;
    use super::super::tests::Arena;
    use super::*;

    fn memory(
        segment: &Segment,
        starts: [u64; 2],
        stride: u64,
        bytes: u64,
    ) -> Option<StridedMemory> {
        StridedMemory::new(segment, AccessPattern { starts, stride }, bytes)
    }

    #[test]
    fn both_half_warps_must_be_in_bounds() {
        let arena = Arena::new(0x1000, 1024);
        let segment = arena.segment(0x1000).expect("the first byte is inside");
        let halves = memory(&segment, [0x1100, 0x1080], 4, 4).expect("in bounds");
        for (offset, is_inside) in [
            (-0x84, false),
            (-0x80, true),
            (0, true),
            (0x2c0, true),
            (0x2c4, false),
        ] {
            let offset = i64::cast_unsigned(offset);
            assert_eq!(halves.at(offset, 0, AccessMode::Write).is_some(), is_inside);
        }
        assert!(
            memory(&segment, [0x1000, 0x13c4], 4, 4).is_none(),
            "the second half crosses the end"
        );
        assert!(
            memory(&segment, [0x1000, 0x1010], 64, 128).is_none(),
            "a half is longer than the segment"
        );
        let before = memory(&segment, [0x0fc0, 0x0fe0], 0, 16).expect("in bounds with an offset");
        assert!(before.at(0x30, 0, AccessMode::Read).is_none());
        assert!(before.at(0x40, 12, AccessMode::Read).is_some());
        let constant = Segment {
            writable: false,
            ..segment
        };
        let constant = memory(&constant, [0x1000, 0x1040], 4, 4).expect("in bounds");
        assert!(constant.at(0, 0, AccessMode::Read).is_some());
        assert!(constant.at(0, 0, AccessMode::Write).is_none());
        assert!(
            StridedMemory::default()
                .at(0, 0, AccessMode::Read)
                .is_none()
        );
    }
}
