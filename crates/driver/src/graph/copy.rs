//! Copy nodes.

use std::ffi::c_void;

use curium_sys::{CUDA_MEMCPY3D, CUarray, CUmemorytype};

use super::node::{CopyNode, Node};
use super::{Graph, NewNode};
use crate::call;
use crate::{DevicePointer, Result};

/// The operands of a memory copy node: a 1D, 2D or 3D copy of `layers` layers of `rows` rows of
/// `bytes` bytes.
///
/// ```
/// use curium_driver::{CopyPlace, DevicePointer, GraphCopy};
///
/// let from = DevicePointer::from_raw(0x1000);
/// let to = DevicePointer::from_raw(0x8000);
/// let line = GraphCopy::new(CopyPlace::device(from), CopyPlace::device(to), 256);
/// let image = line.with_rows(64);
/// assert_eq!((image.rows, image.layers), (64, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GraphCopy {
    /// The source.
    pub from: CopyPlace,
    /// The destination.
    pub to: CopyPlace,
    /// The width of a row in bytes.
    pub bytes: usize,
    /// The number of rows in a layer.
    pub rows: usize,
    /// The number of layers.
    pub layers: usize,
}

/// The source or the destination of a [`GraphCopy`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CopyPlace {
    /// The memory.
    pub memory: CopyMemory,
    /// The distance in bytes between the starts of consecutive rows; 0 if rows are contiguous.
    pub pitch: usize,
    /// The distance in rows between the starts of consecutive layers; 0 if layers are contiguous.
    pub layer_rows: usize,
    /// The start of the copy: byte within the row, row within the layer, and layer.
    pub origin: (usize, usize, usize),
}

/// A memory operand of a copy node.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CopyMemory {
    /// Device memory.
    Device(DevicePointer<u8>),
    /// Host memory. The address is accessed when the node runs.
    Host(*mut c_void),
    /// Memory whose location the driver determines from its address, such as managed memory.
    Unified(DevicePointer<u8>),
    /// An array, as a raw handle.
    Array(CUarray),
}

// SAFETY: the host address is never dereferenced here; only nodes access it, and the caller that
// adds the node is responsible for it.
unsafe impl Send for CopyMemory {}
// SAFETY: the host address is never dereferenced here; only nodes access it, and the caller that
// adds the node is responsible for it.
unsafe impl Sync for CopyMemory {}

impl GraphCopy {
    /// Creates the operands of a copy of `bytes` bytes.
    #[must_use]
    pub const fn new(from: CopyPlace, to: CopyPlace, bytes: usize) -> Self {
        Self {
            from,
            to,
            bytes,
            rows: 1,
            layers: 1,
        }
    }

    /// Sets the number of rows in a layer.
    #[must_use]
    pub const fn with_rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// Sets the number of layers.
    #[must_use]
    pub const fn with_layers(mut self, layers: usize) -> Self {
        self.layers = layers;
        self
    }

    /// Converts the operands to the driver's parameters.
    pub(super) fn to_raw(self) -> CUDA_MEMCPY3D {
        let mut raw = CUDA_MEMCPY3D {
            WidthInBytes: self.bytes,
            Height: self.rows,
            Depth: self.layers,
            srcPitch: self.from.row_pitch(self.bytes),
            srcHeight: self.from.layer_pitch(self.rows),
            dstPitch: self.to.row_pitch(self.bytes),
            dstHeight: self.to.layer_pitch(self.rows),
            ..CUDA_MEMCPY3D::default()
        };
        (raw.srcXInBytes, raw.srcY, raw.srcZ) = self.from.origin;
        (raw.dstXInBytes, raw.dstY, raw.dstZ) = self.to.origin;
        raw.srcMemoryType = self.from.memory.kind();
        raw.dstMemoryType = self.to.memory.kind();
        match self.from.memory {
            CopyMemory::Device(address) | CopyMemory::Unified(address) => {
                raw.srcDevice = address.as_raw();
            }
            CopyMemory::Host(address) => raw.srcHost = address,
            CopyMemory::Array(array) => raw.srcArray = array,
        }
        match self.to.memory {
            CopyMemory::Device(address) | CopyMemory::Unified(address) => {
                raw.dstDevice = address.as_raw();
            }
            CopyMemory::Host(address) => raw.dstHost = address,
            CopyMemory::Array(array) => raw.dstArray = array,
        }
        raw
    }

    fn from_raw(raw: &CUDA_MEMCPY3D) -> Self {
        let from = CopyPlace {
            memory: CopyMemory::from_raw(
                raw.srcMemoryType,
                raw.srcDevice,
                raw.srcHost.cast_mut(),
                raw.srcArray,
            ),
            pitch: raw.srcPitch,
            layer_rows: raw.srcHeight,
            origin: (raw.srcXInBytes, raw.srcY, raw.srcZ),
        };
        let to = CopyPlace {
            memory: CopyMemory::from_raw(
                raw.dstMemoryType,
                raw.dstDevice,
                raw.dstHost,
                raw.dstArray,
            ),
            pitch: raw.dstPitch,
            layer_rows: raw.dstHeight,
            origin: (raw.dstXInBytes, raw.dstY, raw.dstZ),
        };
        Self {
            from,
            to,
            bytes: raw.WidthInBytes,
            rows: raw.Height,
            layers: raw.Depth,
        }
    }
}

impl CopyPlace {
    /// Device memory starting at `address`.
    #[must_use]
    pub const fn device(address: DevicePointer<u8>) -> Self {
        Self::new(CopyMemory::Device(address))
    }

    /// Host memory starting at `address`.
    #[must_use]
    pub const fn host(address: *mut c_void) -> Self {
        Self::new(CopyMemory::Host(address))
    }

    /// The start of `memory`, with contiguous rows and layers.
    #[must_use]
    pub const fn new(memory: CopyMemory) -> Self {
        Self {
            memory,
            pitch: 0,
            layer_rows: 0,
            origin: (0, 0, 0),
        }
    }

    /// Sets the row pitch in bytes: the distance between the starts of consecutive rows.
    #[must_use]
    pub const fn with_pitch(mut self, pitch: usize) -> Self {
        self.pitch = pitch;
        self
    }

    /// Sets the layer height in rows: the distance between the starts of consecutive layers.
    #[must_use]
    pub const fn with_layer_rows(mut self, rows: usize) -> Self {
        self.layer_rows = rows;
        self
    }

    /// Sets the start of the copy: byte within the row, row within the layer, and layer.
    #[must_use]
    pub const fn with_origin(mut self, byte: usize, row: usize, layer: usize) -> Self {
        self.origin = (byte, row, layer);
        self
    }

    const fn row_pitch(&self, bytes: usize) -> usize {
        if self.pitch == 0 {
            bytes.saturating_add(self.origin.0)
        } else {
            self.pitch
        }
    }

    const fn layer_pitch(&self, rows: usize) -> usize {
        if self.layer_rows == 0 {
            rows.saturating_add(self.origin.1)
        } else {
            self.layer_rows
        }
    }
}

impl CopyMemory {
    const fn kind(&self) -> CUmemorytype {
        match self {
            Self::Device(_) => CUmemorytype::CU_MEMORYTYPE_DEVICE,
            Self::Host(_) => CUmemorytype::CU_MEMORYTYPE_HOST,
            Self::Unified(_) => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            Self::Array(_) => CUmemorytype::CU_MEMORYTYPE_ARRAY,
        }
    }

    fn from_raw(kind: CUmemorytype, device: u64, host: *mut c_void, array: CUarray) -> Self {
        match kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => Self::Host(host),
            CUmemorytype::CU_MEMORYTYPE_ARRAY => Self::Array(array),
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => Self::Unified(DevicePointer::from_raw(device)),
            _ => Self::Device(DevicePointer::from_raw(device)),
        }
    }
}

impl Graph {
    /// Adds a memory copy node that depends on the nodes in `after`.
    ///
    /// CUDA: `cuGraphAddMemcpyNode`.
    ///
    /// # Safety
    ///
    /// - Both operands are memory of their kind that outlives every executable graph instantiated
    ///   from the graph, and its launches.
    /// - The copy produces valid values in the destination.
    /// - During each launch, no other work that is not ordered with the launch accesses the memory
    ///   in a conflicting way, including on the host.
    /// - Nodes that access the same memory, of which at least one writes it, are ordered by
    ///   dependencies for as long as they are in the graph.
    ///
    /// # Errors
    ///
    /// An argument error if a node in `after` belongs to another graph or was removed;
    /// `CUDA_ERROR_INVALID_VALUE` if an operand is not within one allocation, or a pitch is smaller
    /// than a row.
    #[doc(alias = "cuGraphAddMemcpyNode")]
    #[doc(alias = "cudaGraphAddMemcpyNode")]
    pub unsafe fn add_copy(&mut self, after: &[Node], copy: GraphCopy) -> Result<CopyNode> {
        let raw = copy.to_raw();
        let context = self.context().as_raw();
        let added = self.add("Graph::add_copy", after, None, |driver, arguments| {
            let NewNode {
                node,
                graph,
                after,
                count,
            } = arguments;
            // SAFETY: the graph, the nodes and the context are live, and the caller is responsible
            // for the operands.
            let added =
                unsafe { call!(driver, cuGraphAddMemcpyNode(node, graph, after, count, &raw const raw, context) creates arguments.created()) };
            added.map_err(|error| error.about(copy.describe()))
        });
        added.map(CopyNode)
    }

    /// Sets the operands of a copy node. Existing executable graphs are not affected.
    ///
    /// CUDA: `cuGraphMemcpyNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As for [`Graph::add_copy`].
    ///
    /// # Errors
    ///
    /// As for [`Graph::add_copy`].
    #[doc(alias = "cuGraphMemcpyNodeSetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeSetParams")]
    pub unsafe fn set_copy(&mut self, node: CopyNode, copy: GraphCopy) -> Result<()> {
        let raw = copy.to_raw();
        let state = self.tree.lock()?;
        let node = state.member("Graph::set_copy", self.number, *node)?;
        let set = self.context().entered(|driver| {
            // SAFETY: the node is live, the context of the operands is current, and the caller is
            // responsible for them.
            unsafe { call!(driver, cuGraphMemcpyNodeSetParams(node, &raw const raw)) }
        });
        set.map_err(|error| error.about(copy.describe()))
    }

    /// Returns the operands of a copy node.
    ///
    /// CUDA: `cuGraphMemcpyNodeGetParams`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is in another graph or was removed.
    #[doc(alias = "cuGraphMemcpyNodeGetParams")]
    #[doc(alias = "cudaGraphMemcpyNodeGetParams")]
    pub fn copy(&self, node: CopyNode) -> Result<GraphCopy> {
        let state = self.tree.lock()?;
        let node = state.member("Graph::copy", self.number, *node)?;
        let mut raw = CUDA_MEMCPY3D::default();
        // SAFETY: the node is live, and `raw` is valid for writes.
        unsafe {
            call!(
                self.driver(),
                cuGraphMemcpyNodeGetParams(node, &raw mut raw)
            )
        }?;
        Ok(GraphCopy::from_raw(&raw))
    }
}

impl GraphCopy {
    #[cold]
    pub(super) fn describe(&self) -> String {
        format!(
            "{} layers of {} rows of {} bytes",
            self.layers, self.rows, self.bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_rows_have_their_length_as_pitch() {
        let from = CopyPlace::device(DevicePointer::from_raw(64)).with_origin(8, 2, 0);
        let to = CopyPlace::device(DevicePointer::from_raw(128)).with_pitch(512);
        let copy = GraphCopy::new(from, to, 256).with_rows(4);
        let raw = copy.to_raw();
        assert_eq!(
            (raw.srcPitch, raw.srcHeight, raw.dstPitch, raw.dstHeight),
            (264, 6, 512, 4)
        );
        assert_eq!(
            (raw.srcXInBytes, raw.srcY, raw.srcDevice, raw.dstDevice),
            (8, 2, 64, 128)
        );
        assert_eq!((raw.WidthInBytes, raw.Height, raw.Depth), (256, 4, 1));
    }
}
