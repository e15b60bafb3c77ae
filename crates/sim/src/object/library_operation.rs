//! Operations of libraries.

use crate::library_operation::LibraryOperation;
use crate::object::copy::AccessedRange;

impl LibraryOperation {
    /// Returns the memory that the operation accesses, except for runs whose addresses are stored
    /// in device memory.
    pub(crate) fn touched(&self) -> Vec<AccessedRange> {
        let mut ranges = Vec::new();
        for operand in self.operands.iter() {
            ranges.extend(operand.runs().iter().map(|run| AccessedRange {
                address: run.address,
                size: run.bytes as u64,
                write: operand.is_written,
            }));
        }
        ranges
    }
}
