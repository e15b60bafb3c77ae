//! Pageable host memory, for kernels of a device with access to it.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::ops::Range;

use curium_ptx::exec::Segment;

use crate::host_pointer::HostPtr;

/// Returns the mapping of the process that contains `address`, if the host may read it.
pub(super) fn segment(address: u64) -> Option<Segment> {
    let file = BufReader::new(File::open("/proc/self/maps").ok()?);
    let mut mappings = file.lines().map_while(Result::ok);
    let (range, writable) =
        mappings.find_map(|line| parse(&line).filter(|(range, _)| range.contains(&address)))?;
    let host = HostPtr::from_exposed(range.start).0;
    Some(Segment {
        base: range.start,
        size: range.end - range.start,
        host,
        writable,
    })
}

/// Returns the address range of a line of the list, and `true` if the range is writable. Returns
/// `None` if it is not readable.
fn parse(line: &str) -> Option<(Range<u64>, bool)> {
    let (range, permissions) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let is_writable = permissions.strip_prefix('r')?.starts_with('w');
    Some((start..end, is_writable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_host_memory_is_a_segment() {
        let bytes = [7_u8; 64];
        let segment =
            segment(bytes.as_ptr().expose_provenance() as u64).expect("the process has it");
        assert!(segment.writable && segment.size >= 64);
        assert!(super::segment(8).is_none());
        let constant = super::segment((&raw const *"text").cast::<u8>().expose_provenance() as u64);
        assert!(!constant.expect("constants are not readable").writable);
        assert_eq!(parse("7f00-7f10 ---p 00000000 00:00 0"), None);
        assert_eq!(
            parse("7f00-7f10 r--p 00000000 00:00 0"),
            Some((0x7f00..0x7f10, false))
        );
    }
}
