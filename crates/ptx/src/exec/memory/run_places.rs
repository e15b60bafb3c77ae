//! The memory at runs of addresses, for accesses at different offsets.

use std::ptr;

use super::{HostBytes, Segment};
use crate::exec::lane::HALF;

/// The memory at two runs of addresses in one segment, which instructions access at different offsets.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct RunPlaces {
    /// The host memory of each run, without an offset.
    hosts: [*mut u8; 2],
    /// The position in the segment of the run that begins first, without an offset.
    first: u64,
    /// The last position of that run with which both runs are in bounds.
    last: u64,
    /// The length of a run in bytes.
    length: u64,
    /// The distance between the addresses of neighboring lanes, in bytes.
    pub(crate) step: u64,
    writable: bool,
}

impl Default for RunPlaces {
    fn default() -> Self {
        Self {
            hosts: [ptr::null_mut(); 2],
            first: 1,
            last: 0,
            length: 0,
            step: 0,
            writable: false,
        }
    }
}

impl RunPlaces {
    /// Returns the memory at runs of `bytes` bytes for each lane. Returns `None` if they do not fit the segment at any offset.
    pub(crate) fn new(segment: &Segment, starts: [u64; 2], step: u64, bytes: u64) -> Option<Self> {
        let [low, high] = starts;
        let length = (HALF as u64 - 1) * step + bytes;
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
            step,
            writable: segment.writable,
        })
    }

    /// Returns the memory of an element at an offset from each lane's bytes, if the bytes of all lanes are in bounds there.
    #[inline(always)]
    pub(crate) fn at(&self, offset: u64, element: u64, write: bool) -> Option<[HostBytes; 2]> {
        let is_inside = self.first.wrapping_add(offset) <= self.last && element <= self.length;
        if !is_inside || write && !self.writable {
            return None;
        }
        let start = offset.wrapping_add(element) as usize;
        Some(self.hosts.map(|host| HostBytes {
            start: host.wrapping_add(start),
            len: self.length - element,
        }))
    }

    /// Returns `true` if both runs are in bounds at all offsets between the lowest and the highest.
    #[inline(always)]
    pub(crate) fn covers(&self, offsets: [i32; 2]) -> bool {
        let is_inside = |offset: i32| self.first.wrapping_add_signed(offset.into()) <= self.last;
        offsets.into_iter().all(is_inside)
    }

    /// Returns the host address of each run at an offset.
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

    #[test]
    fn runs_are_in_bounds_only_where_both_are() {
        let arena = Arena::new(0x1000, 1024);
        let segment = arena.segment(0x1000).expect("the first byte is inside");
        let runs = |starts, step, bytes| RunPlaces::new(&segment, starts, step, bytes);
        let fits = |offset: i64, write| {
            let runs = runs([0x1100, 0x1080], 4, 4).expect("they fit");
            runs.at(offset.cast_unsigned(), 0, write).is_some()
        };
        assert_eq!(
            [-0x84, -0x80, 0, 0x2c0, 0x2c4].map(|offset| fits(offset, true)),
            [false, true, true, true, false]
        );
        assert!(
            runs([0x1000, 0x13c4], 4, 4).is_none(),
            "the second run crosses the end"
        );
        assert!(
            runs([0x1000, 0x1010], 64, 128).is_none(),
            "a run is longer than the segment"
        );
        let before = runs([0x0fc0, 0x0fe0], 0, 16).expect("they fit with an offset");
        assert!(before.at(0x30, 0, false).is_none() && before.at(0x40, 12, false).is_some());
        let constant = Segment {
            writable: false,
            ..segment
        };
        let runs = RunPlaces::new(&constant, [0x1000, 0x1040], 4, 4).expect("they fit");
        assert!(runs.at(0, 0, false).is_some() && runs.at(0, 0, true).is_none());
        assert!(RunPlaces::default().at(0, 0, false).is_none());
    }
}
