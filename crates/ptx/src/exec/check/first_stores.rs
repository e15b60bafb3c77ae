//! The stores that filled a block's shared memory, for reports of uninitialized reads.

use std::ops::Range;

/// The maximum number of instructions that are recorded.
const MAX_STORES: usize = 16;

/// The stores of a block that wrote bytes of its shared memory which no earlier store had written.
#[derive(Debug, Default)]
pub(crate) struct FirstStores {
    stores: Vec<FirstStoreRecord>,
}

/// A store instruction, with all its executions that wrote such bytes.
#[derive(Debug)]
pub(crate) struct FirstStoreRecord {
    /// The PTX line.
    pub(crate) line: u32,
    /// The range from the first to the last byte.
    pub(crate) bytes: Range<u64>,
    /// The lanes of each warp.
    pub(crate) lanes: Vec<u32>,
}

impl FirstStores {
    /// Forgets all stores.
    pub(crate) fn clear(&mut self) {
        self.stores.clear();
    }

    /// Records a store of some lanes of a warp.
    pub(crate) fn record(&mut self, line: u32, warp: u32, lanes: u32, bytes: Range<u64>) {
        let index = self.stores.iter().position(|store| store.line == line);
        let index = match index {
            Some(index) => index,
            None if self.stores.len() == MAX_STORES => return,
            None => {
                self.stores.push(FirstStoreRecord {
                    line,
                    bytes: bytes.clone(),
                    lanes: Vec::new(),
                });
                self.stores.len() - 1
            }
        };
        let store = &mut self.stores[index];
        store.bytes = store.bytes.start.min(bytes.start)..store.bytes.end.max(bytes.end);
        let warp = warp as usize;
        if store.lanes.len() <= warp {
            store.lanes.resize(warp + 1, 0);
        }
        store.lanes[warp] |= lanes;
    }

    /// Returns the stores to some bytes.
    pub(crate) fn overlapping(&self, bytes: Range<u64>) -> impl Iterator<Item = &FirstStoreRecord> {
        self.stores
            .iter()
            .filter(move |store| store.bytes.start < bytes.end && bytes.start < store.bytes.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_of_an_instruction_are_one_record() {
        let mut stores = FirstStores::default();
        stores.record(7, 1, 0b11, 64..72);
        stores.record(9, 0, 1, 200..204);
        stores.record(7, 0, 0b100, 8..12);
        let records: Vec<_> = stores.overlapping(0..100).collect();
        let [record] = records[..] else {
            panic!("one record: {records:?}")
        };
        assert_eq!(record.line, 7);
        assert_eq!(record.bytes, 8..72);
        assert_eq!(record.lanes, [0b100, 0b11]);
        assert_eq!(stores.overlapping(72..200).count(), 0);
        for line in 100..200 {
            stores.record(line, 0, 1, 0..4);
        }
        assert_eq!(stores.overlapping(0..300).count(), MAX_STORES);
        stores.clear();
        assert_eq!(stores.overlapping(0..300).count(), 0);
    }
}
