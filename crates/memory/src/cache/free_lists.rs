//! Free blocks by size class.

use super::size_class::SizeClass;

/// Free blocks by size class. The block freed last is allocated first, since it is most likely in
/// the device's cache.
#[derive(Debug)]
pub(super) struct FreeLists(Box<[Vec<u64>; SizeClass::COUNT]>);

impl FreeLists {
    /// Returns the blocks of a class.
    #[inline]
    pub(super) fn list(&mut self, class: SizeClass) -> &mut Vec<u64> {
        &mut self.0[class.index()]
    }

    /// Removes all blocks.
    pub(super) fn drain(&mut self, mut block: impl FnMut(SizeClass, u64)) {
        for (index, list) in self.0.iter_mut().enumerate() {
            list.drain(..)
                .for_each(|address| block(SizeClass::at(index), address));
        }
    }

    /// Returns all blocks.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (SizeClass, u64)> {
        let lists = self.0.iter().enumerate();
        lists.flat_map(|(index, list)| {
            list.iter()
                .map(move |address| (SizeClass::at(index), *address))
        })
    }

    /// Returns the size of all blocks in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let lists = self.0.iter().enumerate();
        lists
            .map(|(index, list)| SizeClass::at(index).bytes() * list.len() as u64)
            .sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }
}

impl Default for FreeLists {
    fn default() -> Self {
        Self(Box::new([const { Vec::new() }; SizeClass::COUNT]))
    }
}
