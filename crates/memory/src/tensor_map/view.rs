//! Tensor maps that borrow their memory, as kernel arguments.

use std::fmt;

use curium_driver::hazard::Operation;
use curium_driver::{Argument, Error, Parameter, Result};

use super::{Im2col, Im2colWide, TensorInterleave, TensorLayout, TensorMap};
use crate::operand::Operand;
use crate::{DeviceView, DeviceViewMut};

/// The kernel parameter type of a [`TensorMap`] that the kernel only reads through. Pass a
/// `&`[`TensorView`] for it.
#[derive(Clone, Copy, Debug)]
pub struct TensorRead;

/// The kernel parameter type of a [`TensorMap`] that the kernel reads and writes through. Pass a
/// `&mut` [`TensorViewMut`] for it.
#[derive(Clone, Copy, Debug)]
pub struct TensorWrite;

/// A [`TensorMap`] of a tensor in borrowed memory, for reading.
///
/// A [`TensorMap`] alone is only an address, whose validity each launch must guarantee. A view is
/// within its memory, borrows it, and orders the launch with other accesses. A kernel that accesses
/// memory only through its maps can be [declared safe](curium_driver::Kernel::declare_safe),
/// because TMA checks the bounds.
///
/// ```
/// use curium_memory::{DeviceBuffer, TensorDataType, TensorLayout, TensorView};
///
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let matrix = DeviceBuffer::<f32>::zeroed(&stream, 256 * 64)?; // 256 rows of 64
/// let layout = TensorLayout::new(TensorDataType::Float32, matrix.as_pointer(), &[64, 256]);
/// let tiles = TensorView::tiled(&matrix, &layout, &[32, 8])?; // 8 rows of 32
/// // One row more is not in the buffer.
/// let layout = TensorLayout::new(TensorDataType::Float32, matrix.as_pointer(), &[64, 257]);
/// assert!(TensorView::tiled(&matrix, &layout, &[32, 8]).is_err());
/// # let _ = tiles;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    map: TensorMap,
    memory: Operand<'a>,
}

/// A [`TensorMap`] of a tensor in exclusively borrowed memory, for reading and writing. See
/// [`TensorView`].
pub struct TensorViewMut<'a> {
    map: TensorMap,
    memory: Operand<'a>,
}

// SAFETY: the kernel takes the tensor map of 128 bytes by value.
unsafe impl Parameter for TensorRead {
    type Raw = TensorMap;
}

// SAFETY: the kernel takes the tensor map of 128 bytes by value.
unsafe impl Parameter for TensorWrite {
    type Raw = TensorMap;
}

impl<'a> TensorView<'a> {
    /// Creates a map of [tiles](TensorMap::tiled) of a tensor in `memory`.
    ///
    /// CUDA: `cuTensorMapEncodeTiled`. Requires a driver for CUDA 12.0.
    ///
    /// # Errors
    ///
    /// As for [`TensorMap::tiled`]; an argument error if the layout is interleaved or the tensor is
    /// not within the memory.
    pub fn tiled<T: 'a>(
        memory: impl Into<DeviceView<'a, T>>,
        layout: &TensorLayout,
        elements: &[u32],
    ) -> Result<Self> {
        let memory = memory.into();
        let map = TensorMap::tiled(memory.owner_stream().context(), layout, elements)?;
        Ok(Self {
            map,
            memory: within(
                "TensorView::tiled",
                layout,
                layout.span(),
                memory.into_operand(),
            )?,
        })
    }

    /// Creates a map of [im2col columns](TensorMap::im2col) of images in `memory`.
    ///
    /// CUDA: `cuTensorMapEncodeIm2col`. Requires a driver for CUDA 12.0.
    ///
    /// # Errors
    ///
    /// As for [`TensorMap::im2col`]; an argument error if the layout is interleaved or the tensor
    /// is not within the memory.
    pub fn im2col<T: 'a>(
        memory: impl Into<DeviceView<'a, T>>,
        layout: &TensorLayout,
        pixels: &Im2col<'_>,
    ) -> Result<Self> {
        let memory = memory.into();
        let map = TensorMap::im2col(memory.owner_stream().context(), layout, pixels)?;
        Ok(Self {
            map,
            memory: within(
                "TensorView::im2col",
                layout,
                layout.span(),
                memory.into_operand(),
            )?,
        })
    }

    /// Creates a map of [im2col columns along the width](TensorMap::im2col_wide) of images in
    /// `memory`.
    ///
    /// CUDA: `cuTensorMapEncodeIm2colWide`. Requires a driver for CUDA 12.8 and a device of compute
    /// capability 10.0.
    ///
    /// # Errors
    ///
    /// As for [`TensorMap::im2col_wide`]; an argument error if the layout is interleaved or the
    /// tensor is not within the memory.
    pub fn im2col_wide<T: 'a>(
        memory: impl Into<DeviceView<'a, T>>,
        layout: &TensorLayout,
        pixels: &Im2colWide,
    ) -> Result<Self> {
        let memory = memory.into();
        let map = TensorMap::im2col_wide(memory.owner_stream().context(), layout, pixels)?;
        Ok(Self {
            map,
            memory: within(
                "TensorView::im2col_wide",
                layout,
                layout.span(),
                memory.into_operand(),
            )?,
        })
    }

    /// Returns the map, which does not keep the memory alive.
    #[must_use]
    pub fn as_map(&self) -> &TensorMap {
        &self.map
    }
}

impl<'a> TensorViewMut<'a> {
    /// Creates a map of [tiles](TensorMap::tiled) of a tensor in `memory`.
    ///
    /// CUDA: `cuTensorMapEncodeTiled`. Requires a driver for CUDA 12.0.
    ///
    /// # Errors
    ///
    /// As for [`TensorView::tiled`]. TMA rounds the end of the last row up to a multiple of 16
    /// bytes, and that end must lie within the memory.
    pub fn tiled<T: 'a>(
        memory: impl Into<DeviceViewMut<'a, T>>,
        layout: &TensorLayout,
        elements: &[u32],
    ) -> Result<Self> {
        let memory = memory.into();
        let map = TensorMap::tiled(memory.owner_stream().context(), layout, elements)?;
        Ok(Self {
            map,
            memory: within(
                "TensorViewMut::tiled",
                layout,
                layout.written_span(),
                memory.into_operand(),
            )?,
        })
    }

    /// Creates a map of [im2col columns](TensorMap::im2col) of images in `memory`.
    ///
    /// CUDA: `cuTensorMapEncodeIm2col`. Requires a driver for CUDA 12.0.
    ///
    /// # Errors
    ///
    /// As for [`TensorView::im2col`].
    pub fn im2col<T: 'a>(
        memory: impl Into<DeviceViewMut<'a, T>>,
        layout: &TensorLayout,
        pixels: &Im2col<'_>,
    ) -> Result<Self> {
        let memory = memory.into();
        let map = TensorMap::im2col(memory.owner_stream().context(), layout, pixels)?;
        Ok(Self {
            map,
            memory: within(
                "TensorViewMut::im2col",
                layout,
                layout.written_span(),
                memory.into_operand(),
            )?,
        })
    }

    /// Returns the map, which does not keep the memory alive.
    #[must_use]
    pub fn as_map(&self) -> &TensorMap {
        &self.map
    }
}

// SAFETY: `bind` makes the stream wait for the last writes, and the memory cannot be written while
// it is borrowed. Later writers wait for this access, which `launched` records. The tensor is in
// live memory, because freeing waits too.
unsafe impl Argument<TensorRead> for &TensorView<'_> {
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<TensorMap> {
        self.memory
            .tracked
            .before_kernel_read(operation, self.memory.address)?;
        Ok(self.map)
    }

    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        self.memory.tracked.after_read(operation);
    }
}

// SAFETY: `bind` makes the stream wait for every access, the memory is borrowed exclusively, and
// later accesses wait for this one, which `launched` records. The tensor is in live memory, because
// freeing waits too.
unsafe impl Argument<TensorWrite> for &mut TensorViewMut<'_> {
    unsafe fn bind(&mut self, operation: &mut Operation<'_>) -> Result<TensorMap> {
        self.memory
            .tracked
            .before_kernel_write(operation, self.memory.address)?;
        Ok(self.map)
    }

    unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
        self.memory.tracked.after_partial_write(operation);
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "TensorView(in {} bytes at {:#x})",
            self.memory.bytes, self.memory.address
        )
    }
}

impl fmt::Debug for TensorViewMut<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "TensorViewMut(in {} bytes at {:#x})",
            self.memory.bytes, self.memory.address
        )
    }
}

/// Returns the memory if the tensor, whose extents and strides have been checked, is within it.
fn within<'a>(
    operation: &'static str,
    layout: &TensorLayout,
    bytes: u128,
    memory: Operand<'a>,
) -> Result<Operand<'a>> {
    if layout.interleave != TensorInterleave::None {
        let reason =
            "an interleaved layout, whose place in memory is not known: launch with a TensorMap";
        return Err(Error::argument(operation, reason));
    }
    let first = u128::from(layout.address);
    let start = u128::from(memory.address);
    let len = memory.bytes as u128;
    if first >= start && first + bytes <= start + len {
        return Ok(memory);
    }
    let address = layout.address;
    let start = memory.address;
    Err(Error::argument(
        operation,
        format!(
            "tensor out of bounds ({bytes} bytes at {address:#x}, memory of {len} bytes at {start:#x})"
        ),
    ))
}
