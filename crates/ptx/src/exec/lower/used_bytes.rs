//! Loads with unused bytes: `.pragma "used_bytes_mask N"`.

use std::ops::Range;

use super::address::{Target, row};
use super::error::Lowered;
use super::function::{Lowerer, Slot};
use crate::exec::ops::access::load;
use crate::exec::ops::handler::moves::{copy, insert_byte, lower_word};

impl Lowerer<'_> {
    /// Loads the used bytes of an element; the others become zero.
    pub(super) fn load_bytes(
        &mut self,
        target: Target,
        offset: u64,
        used: u32,
        align: u64,
        slot: Slot,
    ) -> Lowered {
        if used == 0 {
            return Ok(());
        }
        let whole = self.new_double();
        let byte = self.new_double();
        let zero = self.double(0);
        self.emit(copy::<u64>(), whole, [zero, 0, 0]);
        for index in (0..8).filter(|index| used >> index & 1 == 1) {
            self.access(load::<u8, u64>(), target, offset + index, align)
                .d = byte;
            let shift = self.double(8 * index);
            self.emit(insert_byte(), whole, [whole, byte, shift]);
        }
        let (d, double) = row(slot)?;
        let run = if double { copy::<u64>() } else { lower_word() };
        self.emit(run, d, [whole, 0, 0]);
        Ok(())
    }
}

/// Returns the used bytes of an access as ranges. Each range is aligned to its length, a power of
/// two.
pub(super) fn used_byte_ranges(used: u32, bytes: u64) -> Vec<Range<u64>> {
    let whole = u32::MAX >> (32 - bytes);
    match used & whole {
        0 => Vec::new(),
        used if used == whole => std::iter::once(0..bytes).collect(),
        used => {
            let half = bytes / 2;
            let upper = used_byte_ranges(used >> half, half)
                .into_iter()
                .map(|run| run.start + half..run.end + half);
            used_byte_ranges(used, half)
                .into_iter()
                .chain(upper)
                .collect()
        }
    }
}
