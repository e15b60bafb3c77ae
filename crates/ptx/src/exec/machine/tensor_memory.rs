//! The tensor memory of a block: 128 lanes of 512 columns of 32 bits, of which a block allocates
//! columns.

pub(crate) mod order;

use std::ops::Range;

use self::order::AccessOrder;

/// The number of lanes of tensor memory.
pub(crate) const TENSOR_LANES: u32 = 128;

/// The number of columns of tensor memory.
pub(crate) const TENSOR_COLUMNS: u32 = 512;

/// The number of bytes of a cell.
pub(crate) const CELL: u64 = 4;

/// The mask of all bytes of a cell.
pub(crate) const WHOLE: u8 = 0xf;

/// An address in tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorAddress {
    pub(crate) lane: u32,
    pub(crate) column: u32,
}

impl TensorAddress {
    /// Decodes the bits of an address: the lane in the upper half, the column in the lower half.
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self {
            lane: bits >> 16,
            column: bits & 0xffff,
        }
    }

    /// Returns the bits of the address.
    pub(crate) fn bits(self) -> u32 {
        self.lane << 16 | self.column & 0xffff
    }

    /// Returns the address of a cell at a distance.
    pub(crate) fn offset(self, lanes: u32, columns: u32) -> Self {
        Self {
            lane: self.lane + lanes,
            column: self.column + columns,
        }
    }
}

/// The cells of a column.
#[derive(Clone, Debug)]
struct Column {
    cells: [u32; TENSOR_LANES as usize],
    /// The masks of the written bytes of each cell.
    written: [u8; TENSOR_LANES as usize],
}

/// Allocated columns, and the instruction that allocated them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) source: AllocationSource,
}

/// The instruction that allocated columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocationSource {
    pub(crate) warp: u32,
    pub(crate) lane: usize,
    pub(crate) function: u32,
    pub(crate) line: u32,
}

/// The tensor memory of a block.
#[derive(Debug, Default)]
pub(crate) struct TensorMemory {
    /// The columns up to the last one that has been allocated.
    columns: Vec<Column>,
    pub(crate) allocations: Vec<Allocation>,
    /// `true` if the block may not allocate any more.
    pub(crate) is_relinquished: bool,
    /// The number of deallocations so far.
    pub(crate) deallocations: u32,
    /// The pending accesses, if races are checked.
    pub(crate) order: AccessOrder,
}

impl TensorMemory {
    /// Allocates columns at the lowest address where as many are free.
    pub(crate) fn allocate(&mut self, count: u32, source: AllocationSource) -> Option<u32> {
        let first = (0..TENSOR_COLUMNS)
            .step_by(MIN_COLUMNS as usize)
            .find(|&first| {
                first + count <= TENSOR_COLUMNS
                    && self.allocations.iter().all(|allocation| {
                        first + count <= allocation.first
                            || allocation.first + allocation.count <= first
                    })
            })?;
        let columns = first as usize..(first + count) as usize;
        let empty = Column {
            cells: [0; TENSOR_LANES as usize],
            written: [0; TENSOR_LANES as usize],
        };
        if self.columns.len() < columns.end {
            self.columns.resize(columns.end, empty);
        }
        for column in &mut self.columns[columns] {
            column.written = [0; TENSOR_LANES as usize];
        }
        self.allocations.push(Allocation {
            first,
            count,
            source,
        });
        Some(first)
    }

    /// Deallocates columns. Returns `false` unless all of them, and no others, were allocated
    /// together.
    pub(crate) fn deallocate(&mut self, address: TensorAddress, count: u32) -> bool {
        let index = self.allocations.iter().position(|allocation| {
            address.lane == 0 && allocation.first == address.column && allocation.count == count
        });
        if let Some(index) = index {
            self.allocations.swap_remove(index);
            self.deallocations += 1;
            self.order.forget(address.column..address.column + count);
        }
        index.is_some()
    }

    /// Returns the number of deallocations so far.
    pub(crate) fn deallocations(&self) -> u32 {
        self.deallocations
    }

    /// Returns an allocation that is left, if there is one.
    pub(crate) fn remaining_allocation(&self) -> Option<Allocation> {
        self.allocations.first().copied()
    }

    /// Returns `true` if all columns of a range are allocated.
    pub(crate) fn are_allocated(&self, columns: Range<u32>) -> bool {
        columns.into_iter().all(|column| {
            self.allocations
                .iter()
                .any(|allocation| column.wrapping_sub(allocation.first) < allocation.count)
        })
    }

    /// Returns the value of a cell in an allocated column.
    pub(crate) fn read(&self, address: TensorAddress) -> u32 {
        self.columns[address.column as usize].cells[address.lane as usize]
    }

    /// Returns the mask of the bytes of a cell that have not been written.
    pub(crate) fn unwritten(&self, address: TensorAddress) -> u8 {
        !self.columns[address.column as usize].written[address.lane as usize] & WHOLE
    }

    /// Writes a cell in an allocated column. Only the bytes of the mask `defined` have defined
    /// values.
    pub(crate) fn write(&mut self, address: TensorAddress, value: u32, defined: u8) {
        let column = &mut self.columns[address.column as usize];
        column.cells[address.lane as usize] = value;
        column.written[address.lane as usize] = defined;
    }
}

/// Lanes and columns of tensor memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// The mask of the lanes.
    pub(crate) lanes: u128,
    pub(crate) columns: Range<u32>,
}

impl Region {
    /// Creates the region of consecutive lanes.
    pub(crate) fn new(first: TensorAddress, lanes: u32, columns: u32) -> Self {
        Self {
            lanes: u128::MAX >> (TENSOR_LANES - lanes) << first.lane,
            columns: first.column..first.column + columns,
        }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.lanes & other.lanes != 0
            && self.columns.start < other.columns.end
            && other.columns.start < self.columns.end
    }
}

/// The least number of columns of an allocation.
pub(crate) const MIN_COLUMNS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: AllocationSource = AllocationSource {
        warp: 0,
        lane: 0,
        function: 0,
        line: 0,
    };

    #[test]
    fn columns_are_reused_after_deallocation() {
        let mut memory = TensorMemory::default();
        assert_eq!(memory.allocate(256, SOURCE), Some(0));
        assert_eq!(memory.allocate(128, SOURCE), Some(256));
        assert_eq!(memory.allocate(256, SOURCE), None);
        let first = TensorAddress::from_bits(0);
        assert!(!memory.deallocate(first, 128));
        assert!(!memory.deallocate(first.offset(1, 0), 256));
        assert!(memory.deallocate(first, 256));
        assert_eq!(memory.allocate(64, SOURCE), Some(0));
        assert_eq!(memory.allocate(128, SOURCE), Some(64));
        assert!(memory.are_allocated(0..192));
        assert!(!memory.are_allocated(0..193));
        assert!(memory.are_allocated(256..384));
    }

    #[test]
    fn allocated_cells_are_unwritten() {
        let mut memory = TensorMemory::default();
        let address = TensorAddress::from_bits(3 << 16 | 5);
        memory.allocate(32, SOURCE);
        memory.write(address, 7, WHOLE);
        assert_eq!(memory.unwritten(address), 0);
        memory.deallocate(TensorAddress::from_bits(0), 32);
        memory.allocate(32, SOURCE);
        assert_eq!(memory.unwritten(address), WHOLE);
    }
}
