//! Advice for managed memory, and the locations that it was prefetched to.

use std::collections::BTreeMap;
use std::ops::Range;

use curium_sys::{CUmemLocationType, CUresult};

use crate::host_pointer::POISON;
use crate::memory::Memory;
use crate::result::Result;

/// The granularity of advice.
const PAGE: u64 = 4096;

/// The policy of each part of an allocation. The policy at an address applies up to the next one.
#[derive(Clone, Debug)]
pub(crate) struct Policies {
    parts: BTreeMap<u64, Advice>,
}

/// The advice for a page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Advice {
    pub(crate) is_read_mostly: bool,
    /// The type and the number of the location.
    pub(crate) preferred: Option<PageLocation>,
    pub(crate) last_prefetch: Option<PageLocation>,
    /// The accessing devices by ordinal; -1 for the host.
    pub(crate) accessed_by: Vec<i32>,
}

/// The type and the number of a location.
pub(crate) type PageLocation = (CUmemLocationType, i32);

impl Policies {
    fn new(base: u64) -> Self {
        Self {
            parts: BTreeMap::from([(base, Advice::default())]),
        }
    }

    fn split(&mut self, address: u64) {
        if let Some((_, advice)) = self.parts.range(..=address).next_back() {
            let advice = advice.clone();
            self.parts.entry(address).or_insert(advice);
        }
    }

    fn change(&mut self, range: Range<u64>, change: impl Fn(&mut Advice)) {
        self.split(range.start);
        self.split(range.end);
        self.parts
            .range_mut(range)
            .for_each(|(_, advice)| change(advice));
    }

    /// Returns the advice of each part of a range.
    fn in_range(&self, range: Range<u64>) -> Vec<Advice> {
        let first = self.parts.range(..=range.start).next_back();
        let others = self
            .parts
            .range(range.start.saturating_add(1)..range.end.max(range.start + 1));
        first
            .into_iter()
            .chain(others)
            .map(|(_, advice)| advice.clone())
            .collect()
    }
}

impl Memory {
    /// Changes the advice for the pages of a range of managed memory.
    pub(crate) fn advise(&self, address: u64, size: u64, change: impl Fn(&mut Advice)) -> Result {
        let (base, pages) = self.managed(address, size)?;
        self.write()
            .policies
            .entry(base)
            .or_insert_with(|| Policies::new(base))
            .change(pages, change);
        Ok(())
    }

    /// Returns the advice for the pages of a range of managed memory.
    pub(crate) fn advice(&self, address: u64, size: u64) -> Result<Vec<Advice>> {
        let (base, pages) = self.managed(address, size)?;
        let policies = self
            .read()
            .policies
            .get(&base)
            .map(|policies| policies.in_range(pages));
        Ok(policies.unwrap_or_else(|| vec![Advice::default()]))
    }

    /// Makes the contents of a range undefined, by filling it with
    /// [`POISON`](crate::host_pointer::POISON).
    pub(crate) fn discard(&self, address: u64, size: u64) -> Result {
        let fill = crate::memory::Fill {
            value: POISON.into(),
            width: 1,
            count: size as usize,
        };
        self.fill(address, fill)
            .map_err(|_| CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)
    }

    /// Returns the allocation that contains a range of managed memory, and the range's pages in it.
    pub(crate) fn managed(&self, address: u64, size: u64) -> Result<(u64, Range<u64>)> {
        let allocation = self
            .find(address)
            .filter(|allocation| !allocation.is_retired && allocation.purpose.is_managed())
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let end = address
            .checked_add(size)
            .filter(|end| size > 0 && *end <= allocation.end())
            .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let first_page = (address / PAGE * PAGE).max(allocation.base);
        Ok((allocation.base, first_page..end.next_multiple_of(PAGE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_applies_to_its_range_only() {
        let mut policies = Policies::new(0);
        policies.change(4096..8192, |advice| advice.is_read_mostly = true);
        let expected: [(Range<u64>, &[bool]); 4] = [
            (0..4096, &[false]),
            (4096..8192, &[true]),
            (0..16384, &[false, true, false]),
            (8192..8193, &[false]),
        ];
        for (range, expected) in expected {
            let advice = policies.in_range(range);
            let flags: Vec<bool> = advice.iter().map(|advice| advice.is_read_mostly).collect();
            assert_eq!(flags, expected);
        }
    }
}
