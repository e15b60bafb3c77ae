//! Memset nodes.

use curium_sys::CUDA_MEMSET_NODE_PARAMS;

use super::node::{FillNode, Node};
use super::{Graph, NewNode};
use crate::call;
use crate::{DevicePointer, Result};

/// The operands of a memset node: rows of elements, and a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct GraphFill {
    /// The address of the first row.
    pub address: DevicePointer<u8>,
    /// The value written to every element.
    pub value: FillValue,
    /// The number of elements in a row.
    pub elements: usize,
    /// The number of rows.
    pub rows: usize,
    /// The distance in bytes between the starts of consecutive rows; ignored for a single row.
    pub pitch: usize,
}

/// A value to fill memory with. The address must be a multiple of its size.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FillValue {
    /// An 8-bit value.
    U8(u8),
    /// A 16-bit value.
    U16(u16),
    /// A 32-bit value.
    U32(u32),
}

impl GraphFill {
    /// Creates the operands for one row of `elements` elements.
    #[must_use]
    pub const fn new(address: DevicePointer<u8>, value: FillValue, elements: usize) -> Self {
        Self {
            address,
            value,
            elements,
            rows: 1,
            pitch: 0,
        }
    }

    /// Sets the number of rows and the row pitch in bytes.
    #[must_use]
    pub const fn with_rows(mut self, rows: usize, pitch: usize) -> Self {
        self.rows = rows;
        self.pitch = pitch;
        self
    }

    /// Converts the operands to the driver's parameters.
    pub(super) fn to_raw(self) -> CUDA_MEMSET_NODE_PARAMS {
        let (value, size) = match self.value {
            FillValue::U8(value) => (value.into(), 1),
            FillValue::U16(value) => (value.into(), 2),
            FillValue::U32(value) => (value, 4),
        };
        CUDA_MEMSET_NODE_PARAMS {
            dst: self.address.as_raw(),
            pitch: self.pitch,
            value,
            elementSize: size,
            width: self.elements,
            height: self.rows,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the value has the size that is looked at"
    )]
    fn from_raw(raw: &CUDA_MEMSET_NODE_PARAMS) -> Self {
        let value = match raw.elementSize {
            1 => FillValue::U8(raw.value as u8),
            2 => FillValue::U16(raw.value as u16),
            _ => FillValue::U32(raw.value),
        };
        let address = DevicePointer::from_raw(raw.dst);
        Self {
            address,
            value,
            elements: raw.width,
            rows: raw.height,
            pitch: raw.pitch,
        }
    }

    #[cold]
    pub(super) fn describe(&self) -> String {
        format!(
            "{} rows of {} elements at {:?}",
            self.rows, self.elements, self.address
        )
    }
}

impl Graph {
    /// Adds a memset node that depends on the nodes in `after`.
    ///
    /// CUDA: `cuGraphAddMemsetNode`.
    ///
    /// # Safety
    ///
    /// - The memory outlives every executable graph instantiated from the graph, and its launches.
    /// - The fill produces valid values.
    /// - During each launch, no other work that is not ordered with the launch accesses the memory.
    /// - Nodes that access the same memory, of which at least one writes it, are ordered by
    ///   dependencies for as long as they are in the graph.
    ///
    /// # Errors
    ///
    /// An argument error if a node in `after` belongs to another graph or was removed;
    /// `CUDA_ERROR_INVALID_VALUE` if the memory is not within one allocation or not aligned to the
    /// value, or if the pitch is smaller than a row.
    #[doc(alias = "cuGraphAddMemsetNode")]
    #[doc(alias = "cudaGraphAddMemsetNode")]
    pub unsafe fn add_fill(&mut self, after: &[Node], fill: GraphFill) -> Result<FillNode> {
        let raw = fill.to_raw();
        let context = self.context().as_raw();
        let added = self.add("Graph::add_fill", after, None, |driver, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            // SAFETY: the graph, the nodes and the context are live, and the caller is responsible
            // for the memory.
            let added =
                unsafe { call!(driver, cuGraphAddMemsetNode(node, graph, after, count, &raw const raw, context) creates arguments.created()) };
            added.map_err(|error| error.about(fill.describe()))
        });
        added.map(FillNode)
    }

    /// Sets the operands of a memset node. Existing executable graphs are not affected.
    ///
    /// CUDA: `cuGraphMemsetNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_fill`].
    ///
    /// # Errors
    ///
    /// As for [`Graph::add_fill`].
    #[doc(alias = "cuGraphMemsetNodeSetParams")]
    #[doc(alias = "cudaGraphMemsetNodeSetParams")]
    pub unsafe fn set_fill(&mut self, node: FillNode, fill: GraphFill) -> Result<()> {
        let raw = fill.to_raw();
        let state = self.tree.lock()?;
        let node = state.member("Graph::set_fill", self.number, *node)?;
        let set = self.context().entered(|driver| {
            // SAFETY: the node is live, the context of the memory is current, and the caller is
            // responsible for the memory.
            unsafe { call!(driver, cuGraphMemsetNodeSetParams(node, &raw const raw)) }
        });
        set.map_err(|error| error.about(fill.describe()))
    }

    /// Returns the operands of a memset node.
    ///
    /// CUDA: `cuGraphMemsetNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphMemsetNodeGetParams")]
    #[doc(alias = "cudaGraphMemsetNodeGetParams")]
    pub fn fill(&self, node: FillNode) -> Result<GraphFill> {
        let state = self.tree.lock()?;
        let node = state.member("Graph::fill", self.number, *node)?;
        let mut raw = CUDA_MEMSET_NODE_PARAMS::default();
        // SAFETY: the node is live, and `raw` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphMemsetNodeGetParams(node, &raw mut raw)
            )
        }?;
        Ok(GraphFill::from_raw(&raw))
    }
}
