//! The operands of copies, and the memory that work accesses.

use crate::host_pointer::HostPtr;
use crate::memory::CopyOperand;

/// A range of addresses that a node accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessedRange {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) write: bool,
}

/// A copy of valid rows and layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) to: Side,
    pub(crate) from: Side,
    pub(crate) extent: Extent,
}

/// One operand of a copy: the first row, and the distances of rows and layers in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) start: Start,
    pub(crate) pitch: usize,
    pub(crate) layer: usize,
    /// `true` if the driver allocated the memory, and not the caller.
    pub(crate) is_allocated: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    Device(u64),
    Host(HostPtr),
}

/// The bytes of a row, the rows of a layer, the layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

impl Rows {
    /// Returns the memory of the driver that the copy reads and writes.
    pub(crate) fn touched(&self) -> Vec<AccessedRange> {
        let sides = [(&self.from, false), (&self.to, true)];
        sides
            .into_iter()
            .filter_map(|(side, write)| side.touched(self.extent, write))
            .collect()
    }
}

impl Side {
    /// Returns the addresses from the first byte to the last; none for memory that the driver does
    /// not manage.
    fn touched(&self, extent: Extent, write: bool) -> Option<AccessedRange> {
        let address = match self.start {
            Start::Device(address) => address,
            Start::Host(host) if self.is_allocated => host.0.addr() as u64,
            Start::Host(_) => return None,
        };
        let Extent {
            width,
            height,
            depth,
        } = extent;
        let last_layer = depth.saturating_sub(1) * self.layer;
        let last_row = height.saturating_sub(1) * self.pitch;
        let size = (last_layer + last_row + width) as u64;
        (!extent.is_empty()).then_some(AccessedRange {
            address,
            size,
            write,
        })
    }

    pub(crate) fn row(&self, layer: usize, row: usize) -> CopyOperand {
        let offset = layer * self.layer + row * self.pitch;
        match self.start {
            Start::Device(address) => CopyOperand::Device(address + offset as u64),
            Start::Host(host) => CopyOperand::Host(HostPtr(host.0.wrapping_add(offset))),
        }
    }
}

impl Extent {
    pub(crate) fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }
}
